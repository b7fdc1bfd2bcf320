//! Tool calls without a model: by a person, a page, or another program for them.
//!
//! Such a call is a turn in a conversation of its own: it passes the same gate, is journaled before
//! it runs, is in doubt after the same crashes, and is confirmed in the same way as a model's call.

use adjutant_core::port::StoreError;
use adjutant_core::{
    Answer, ConversationKey, Event, GateVerdict, InputBody, InputId, PendingCall, Recorded,
    RequestedCall, ToolInvocation, TurnId, conversation,
};

use crate::{Agent, RunContext, RunError};

/// The outcome of a call without a model, from [`Agent::call_tool`].
#[derive(Debug, Clone, PartialEq)]
pub enum CallOutcome {
    /// The call was executed, or started without a known end: the result says which.
    Done {
        /// The tool, its arguments and its result.
        invocation: ToolInvocation,
        /// A sentence for the user, as in
        /// [`RunEvent::ToolFinished`](crate::RunEvent::ToolFinished).
        summary: Option<String>,
    },
    /// The call waits for a confirmation; nothing was executed. [`Agent::answer_call`] takes the
    /// answer.
    Confirm(PendingCall),
    /// The call was started, and its end is unknown: a person has to resolve the doubt.
    /// [`Agent::answer_call`] takes the answer.
    InDoubt(PendingCall),
    /// The arguments are ambiguous; nothing was executed. Contains the question.
    Ask(String),
    /// The gate refused the call; nothing was executed. Contains the reason.
    Refused(String),
    /// The call was denied, expired or cancelled; nothing was executed. Contains the message for
    /// the user.
    Declined(String),
}

impl Agent {
    /// Calls a tool without a model, through the same gate and journal as a model's calls. The
    /// context is one of [`RunContext::for_call`]. With the `id` of an earlier call in the same
    /// context, nothing is executed and the outcome of that call is returned. When
    /// [`RunContext::cancelled`] fires, a call without effects is stopped; one with effects is
    /// notified and awaited.
    ///
    /// # Errors
    /// [`RunError`] if the call could not be accepted or written. An accepted call is not lost: it
    /// continues with [`Agent::recover`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use adjutant_core::{RequestedCall, ToolError, UserId};
    /// # use adjutant_runtime::{Agent, CallOutcome, RunContext};
    /// # async fn shown(agent: &Agent) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut context = RunContext::for_call(UserId::local(), None);
    /// let arguments = serde_json::from_str(r#"{"task_id": "milk"}"#)?;
    /// let call = RequestedCall::new("delete_task", arguments);
    /// if let CallOutcome::Confirm(pending) = agent.call_tool(&mut context, None, call).await? {
    ///     println!("{}?", pending.preview);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn call_tool(
        &self,
        context: &mut RunContext,
        id: Option<InputId>,
        call: RequestedCall,
    ) -> Result<CallOutcome, RunError> {
        let response = self.run_input(context, id, InputBody::Call(call)).await?;
        self.outcome_of(&self.key(context), response.turn).await
    }

    /// Answers a pending call of [`Agent::call_tool`]: a confirmation, or the resolution of a
    /// doubt. The answer carries the digest of the call as it was shown; with another digest it has
    /// no effect.
    ///
    /// # Errors
    /// [`RunError`] as [`Agent::call_tool`].
    pub async fn answer_call(
        &self,
        context: &mut RunContext,
        id: Option<InputId>,
        answer: Answer,
    ) -> Result<CallOutcome, RunError> {
        let answers = vec![answer];
        let response = self
            .run_input(context, id, InputBody::Answers { answers })
            .await?;
        self.outcome_of(&self.key(context), response.turn).await
    }

    /// Returns the call of a conversation of [`RunContext::for_call`], and its outcome so far.
    /// `None`: the user has no such conversation, or its call runs or has not started.
    ///
    /// # Errors
    /// [`StoreError`] if the journal cannot be read.
    pub async fn requested_call(
        &self,
        key: &ConversationKey,
    ) -> Result<Option<(RequestedCall, CallOutcome)>, StoreError> {
        // The conversation of a call has one turn, so all of it is read.
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

/// Reads the outcome of a turn's call. `None`: it still runs.
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
    // A call that was not executed for another reason: the end of its turn has the message.
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
