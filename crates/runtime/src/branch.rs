//! Branches: regenerating an answer, or editing an earlier message.

use adjutant_core::conversation;
use adjutant_core::port::{BranchPoint, Branched, Branching, StoreError};
use adjutant_core::{ConversationId, ConversationKey, Event, InputBody, Recorded, TurnId};
use uuid::Uuid;

use crate::{Agent, RunContext};

/// A conversation that continues another one from an earlier point. Made with [`Agent::branch`].
#[derive(Debug, Clone)]
pub struct Branch {
    /// The context of the branch, with the history before the turn.
    pub context: RunContext,
    /// The point of the other conversation at which it begins.
    pub from: BranchPoint,
    /// The input that the turn answered, as the model got it. Submitted with [`Agent::run_input`]
    /// in [`Branch::context`], it is answered again.
    pub input: InputBody,
}

/// An error because of which [`Agent::branch`] created no branch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BranchError {
    /// The user has no such conversation with the agent, or it has no events.
    #[error("there is no such conversation")]
    NoSuchConversation,
    /// No turn of this id starts in the conversation.
    #[error("the conversation has no such turn")]
    NoSuchTurn,
    /// The journal could not be read, or the branch not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Agent {
    /// Creates a branch: a conversation that shares the turns before a given one, and continues
    /// differently. Use it to edit an earlier message or to regenerate an answer. The conversation
    /// itself is unchanged;
    /// [`ConversationStore::alternatives`](adjutant_core::port::ConversationStore::alternatives)
    /// lists the branches of each point.
    ///
    /// `before`: the first turn that the branch leaves out; `None`: the last one, open or not.
    /// `id`: the id of the branch, so that a repeated request returns the same branch; `None`: a
    /// new one.
    ///
    /// # Errors
    /// [`BranchError`]. An id of another conversation is [`StoreError::Reused`].
    ///
    /// # Examples
    ///
    /// ```
    /// use adjutant_providers::scripted::{ScriptedModel, text};
    /// use adjutant_runtime::{Agent, RunContext};
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let model = ScriptedModel::new([text("Tea."), text("Coffee."), text("Cocoa.")]);
    /// let agent = Agent::builder("waiter").model(model).instruction("Suggest a drink.").build()?;
    /// let mut context = RunContext::default();
    /// agent.run_in(&mut context, "Something hot, please.").await?;
    ///
    /// // Regenerate: another answer to the same message.
    /// let mut branch = agent.branch(&agent.key(&context), None, None).await?;
    /// let again = agent.run_input(&mut branch.context, None, branch.input).await?;
    /// assert_eq!(again.content, "Coffee.");
    ///
    /// // Edit: another message in place of the first one.
    /// let mut edited = agent.branch(&agent.key(&context), None, None).await?.context;
    /// assert_eq!(agent.run_in(&mut edited, "Something sweet, please.").await?.content, "Cocoa.");
    ///
    /// // All three branches are kept.
    /// let all = agent.conversations().alternatives(&agent.key(&context)).await?;
    /// assert_eq!(all[0].conversations, [context.conversation, branch.context.conversation, edited.conversation]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn branch(
        &self,
        key: &ConversationKey,
        before: Option<TurnId>,
        id: Option<ConversationId>,
    ) -> Result<Branch, BranchError> {
        let mut events = self.inner().load(key).await?.events;
        if events.is_empty() {
            return Err(BranchError::NoSuchConversation);
        }
        let (at, input) = find_turn(&events, before).ok_or(BranchError::NoSuchTurn)?;
        // The branch shares everything before the first event of the turn.
        let seq = at.saturating_sub(1);
        let id = id.unwrap_or_else(|| ConversationId(Uuid::now_v7()));
        let branching = Branching {
            from: key,
            seq,
            id,
            at: self.now(),
        };
        let from = match self.conversations().branch(branching).await? {
            Branched::At(from) => from,
            // The conversation was deleted since its events were read.
            Branched::NoSuchConversation => return Err(BranchError::NoSuchConversation),
            Branched::NotBetweenTurns => return Err(BranchError::NoSuchTurn),
        };
        events.retain(|recorded| recorded.seq <= seq);
        let history = conversation::history(&events);
        let context = RunContext {
            conversation: id,
            history_is_from_others: conversation::hold_text_of_others(&history),
            history,
            ..RunContext::new(key.user.clone())
        };
        Ok(Branch {
            context,
            from,
            input,
        })
    }
}

/// Returns the sequence number of a turn's first event, and the input that the turn answers.
fn find_turn(events: &[Recorded], wanted: Option<TurnId>) -> Option<(u64, InputBody)> {
    events
        .iter()
        .rev()
        .find_map(|recorded| match &*recorded.event {
            Event::TurnStarted {
                turn,
                message,
                output_schema,
                call,
                client,
                from_others,
                ..
            } if wanted.is_none_or(|wanted| wanted == *turn) => {
                let input = match call {
                    Some(call) => InputBody::Call(call.clone()),
                    None => InputBody::Message {
                        text: message.clone(),
                        output_schema: output_schema.clone(),
                        limits: None,
                        client: client.clone(),
                        shown: Vec::new(),
                        time_zone: None,
                        from_others: *from_others,
                    },
                };
                Some((recorded.seq, input))
            }
            _ => None,
        })
}
