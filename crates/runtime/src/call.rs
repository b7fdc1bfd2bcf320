//! A tool called without a model: by a person, a page, or another program for them.
//!
//! Such a call is a turn of its own, in a conversation of its own: it passes the same gate, is
//! written to the same journal before it runs, is in doubt after the same crashes, and is confirmed
//! in the same way as a call of a model.

use adjutant_core::port::StoreError;
use adjutant_core::{
    Answer, ConversationKey, Event, GateVerdict, InputBody, InputId, PendingCall, Recorded,
    RequestedCall, ToolInvocation, TurnId, conversation,
};

use crate::{Agent, RunContext, RunError};

/// How a call without a model stands.
#[derive(Debug, Clone, PartialEq)]
pub enum CallOutcome {
    /// It ran, or was begun and is not known to have ended: the result says which.
    Done {
        /// The call and its result.
        invocation: ToolInvocation,
        /// Words for the person, as in [`RunEvent::ToolFinished`](crate::RunEvent::ToolFinished).
        summary: Option<String>,
    },
    /// It has to be confirmed; nothing was done. [`Agent::answer_call`] takes the answer.
    Confirm(PendingCall),
    /// It was begun, and nobody knows whether it was carried out: a person has to say.
    /// [`Agent::answer_call`] takes the answer.
    InDoubt(PendingCall),
    /// It is not clear what is meant; nothing was done.
    Ask(String),
    /// The gate refused it; nothing was done.
    Refused(String),
    /// A person did not agree, nobody answered in time, or it was stopped; nothing was done.
    Declined(String),
}

impl Agent {
    /// Calls a tool without a model, through the same gate and journal as a model's calls. The
    /// context is one of [`RunContext::for_call`]; with the `id` of a call that was made before in
    /// it, nothing is done again and what became of that call is returned. Once
    /// [`RunContext::cancelled`] fires, a call without effects is stopped, and another is told and
    /// waited for.
    ///
    /// ```
    /// # use adjutant_core::{RequestedCall, ToolError, UserId};
    /// # use adjutant_runtime::{Agent, CallOutcome, RunContext};
    /// # async fn shown(agent: &Agent) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut context = RunContext::for_call(UserId::local(), None);
    /// let arguments = serde_json::from_str(r#"{"task_id": "milk"}"#)?;
    /// let call = RequestedCall { tool: "delete_task".to_owned(), arguments };
    /// if let CallOutcome::Confirm(pending) = agent.call_tool(&mut context, None, call).await? {
    ///     println!("{}?", pending.preview);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RunError`] if the call could not be accepted or written. After it was accepted it is not
    /// lost: it goes on with [`Agent::sweep`].
    pub async fn call_tool(
        &self,
        context: &mut RunContext,
        id: Option<InputId>,
        call: RequestedCall,
    ) -> Result<CallOutcome, RunError> {
        let response = self.drained(context, id, InputBody::Call(call)).await?;
        self.outcome_of(&self.key(context), response.turn).await
    }

    /// Answers a call that waits for a person: a confirmation, or what became of a call in doubt.
    /// The answer carries the digest of what was shown; an answer to anything else changes nothing.
    ///
    /// # Errors
    /// As [`Agent::call_tool`].
    pub async fn answer_call(
        &self,
        context: &mut RunContext,
        id: Option<InputId>,
        answer: Answer,
    ) -> Result<CallOutcome, RunError> {
        let response = self
            .drained(
                context,
                id,
                InputBody::Answers {
                    answers: vec![answer],
                },
            )
            .await?;
        self.outcome_of(&self.key(context), response.turn).await
    }

    /// Returns the call that a conversation of [`RunContext::for_call`] is about, and how it
    /// stands. `None`: the user has no such conversation, or its call has not begun.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn requested_call(
        &self,
        key: &ConversationKey,
    ) -> Result<Option<(RequestedCall, CallOutcome)>, StoreError> {
        let events = self.inner().load(key).await?.events;
        let requested = events.iter().find_map(|recorded| match &*recorded.event {
            Event::TurnStarted {
                turn,
                call: Some(call),
                ..
            } => Some((*turn, call.clone())),
            _ => None,
        });
        let Some((turn, call)) = requested else {
            return Ok(None);
        };
        Ok(outcome(&events, turn).map(|outcome| (call, outcome)))
    }

    async fn outcome_of(
        &self,
        key: &ConversationKey,
        turn: TurnId,
    ) -> Result<CallOutcome, RunError> {
        let events = self.journal().load(key).await?.events;
        outcome(&events, turn)
            .ok_or_else(|| RunError::CannotContinue("the call neither ended nor waits".to_owned()))
    }
}

/// Reads how the call of a turn stands. `None`: it runs.
fn outcome(events: &[Recorded], turn: TurnId) -> Option<CallOutcome> {
    if let Some(pending) = conversation::pending(events).into_iter().next() {
        return Some(match pending.doubt {
            Some(_) => CallOutcome::InDoubt(pending),
            None => CallOutcome::Confirm(pending),
        });
    }
    let of_turn = || {
        events
            .iter()
            .filter(move |recorded| recorded.event.turn() == Some(turn))
    };
    let ended = of_turn().find_map(|recorded| match &*recorded.event {
        Event::CallFinished {
            tool,
            arguments,
            result,
            summary,
            ..
        } => Some(CallOutcome::Done {
            invocation: ToolInvocation {
                tool: tool.clone(),
                arguments: arguments.clone(),
                result: result.clone(),
            },
            summary: summary.clone(),
        }),
        Event::CallChecked {
            verdict: GateVerdict::Ask { question },
            ..
        } => Some(CallOutcome::Ask(question.clone())),
        Event::CallChecked {
            verdict: GateVerdict::Refuse { message, .. },
            ..
        } => Some(CallOutcome::Refused(message.clone())),
        _ => None,
    });
    // What was not carried out for another reason says why at the end of its turn.
    let stopped = || {
        of_turn().find_map(|recorded| match &*recorded.event {
            Event::TurnFinished { end, .. } => {
                Some(CallOutcome::Declined(end.decision.text.clone()))
            }
            _ => None,
        })
    };
    ended.or_else(stopped)
}
