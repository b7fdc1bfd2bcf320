//! Branches: another way to go on from an earlier place of a conversation.

use adjutant_core::conversation;
use adjutant_core::port::{BranchPoint, Branched, Branching, StoreError};
use adjutant_core::{ConversationId, ConversationKey, Event, InputBody, Recorded, TurnId};
use uuid::Uuid;

use crate::{Agent, RunContext};

/// A conversation that goes on from an earlier place of another one.
#[derive(Debug, Clone)]
pub struct Branch {
    /// The conversation, with its history: what was said before the turn.
    pub context: RunContext,
    /// The place at which it begins.
    pub from: BranchPoint,
    /// The input that the turn answered, in the words that the model got. Given to
    /// [`Agent::run_input`] with [`Branch::context`], it is answered anew.
    pub input: InputBody,
}

/// Why there is no branch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BranchError {
    /// The user has no such conversation with the agent, or nothing was said in it.
    #[error("there is no such conversation")]
    NoSuchConversation,
    /// The conversation has no such turn.
    #[error("the conversation has no such turn")]
    NoSuchTurn,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Agent {
    /// Makes a branch: a conversation that has in common with this one what was said before a turn,
    /// and goes on differently. It is how an earlier message is edited, and how another answer is
    /// asked for (regenerated); the conversation itself stays as it is, and
    /// [`ConversationStore::alternatives`](adjutant_core::port::ConversationStore::alternatives)
    /// finds the way between them.
    ///
    /// `before`: the turn that the branch does not have any more; `None`: the last one, open or
    /// not. `id`: the id of the branch, so that whoever sends the request again gets the same
    /// branch; `None`: a new one.
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
    /// // Another answer to the same words.
    /// let mut branch = agent.branch(&agent.key(&context), None, None).await?;
    /// let again = agent.run_input(&mut branch.context, None, branch.input).await?;
    /// assert_eq!(again.content, "Coffee.");
    ///
    /// // Other words in the place of the same message.
    /// let mut edited = agent.branch(&agent.key(&context), None, None).await?.context;
    /// assert_eq!(agent.run_in(&mut edited, "Something sweet, please.").await?.content, "Cocoa.");
    ///
    /// // All of them are kept.
    /// let all = agent.conversations().alternatives(&agent.key(&context)).await?;
    /// assert_eq!(all[0].conversations, [context.conversation, branch.context.conversation, edited.conversation]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`BranchError`]. An id of another conversation is [`StoreError::Reused`].
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
        let (at, input) = turn(&events, before).ok_or(BranchError::NoSuchTurn)?;
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
            // It was deleted a moment ago.
            Branched::NoSuchConversation => return Err(BranchError::NoSuchConversation),
            Branched::NotBetweenTurns => return Err(BranchError::NoSuchTurn),
        };
        events.retain(|recorded| recorded.seq <= seq);
        let history = conversation::history(&events);
        let context = RunContext {
            conversation: id,
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

/// Finds where a turn starts, and what it answers.
fn turn(events: &[Recorded], wanted: Option<TurnId>) -> Option<(u64, InputBody)> {
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
                ..
            } if wanted.is_none_or(|wanted| wanted == *turn) => {
                let input = match call {
                    Some(call) => InputBody::Call(call.clone()),
                    None => InputBody::Message {
                        text: message.clone(),
                        output_schema: output_schema.clone(),
                        limits: None,
                        client: client.clone(),
                    },
                };
                Some((recorded.seq, input))
            }
            _ => None,
        })
}
