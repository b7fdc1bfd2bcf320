//! Finds out whether a model had read words of others when it proposed its calls.

use adjutant_core::conversation::Conversation;
use adjutant_core::turn::READ_RESULT;
use adjutant_core::{Arguments, CallId, Event};
use serde_json::Value;

use super::Steps;

impl Steps<'_> {
    /// Returns the person's words, if the model had read words of others in this turn when it
    /// proposed its last calls.
    pub(super) async fn said_before_others(&self) -> Option<String> {
        let log = self.log.lock().await;
        let conversation = log.conversation();
        let current = conversation.current()?;
        let has_read = current
            .before_last_reply()?
            .iter()
            .any(|recorded| match &*recorded.event {
                // A result that was not found has only our own words.
                Event::CallFinished { tool, result, .. }
                    if tool == READ_RESULT && !result.success =>
                {
                    false
                }
                Event::CallFinished {
                    tool, arguments, ..
                } => self.holds_words_of_others(conversation, tool, arguments),
                _ => false,
            });
        match current.started()? {
            Event::TurnStarted { message, .. } if has_read => Some(message.clone()),
            _ => None,
        }
    }

    /// Returns whether the result of a call may hold words of others.
    fn holds_words_of_others(
        &self,
        conversation: &Conversation,
        tool: &str,
        arguments: &Arguments,
    ) -> bool {
        let (mut tool, mut arguments) = (tool.to_owned(), arguments.clone());
        // Read on in another result, which may be of an earlier turn: the words are those of that
        // one. Each step leads to an earlier call, and a chain that is longer than this is nothing
        // a model needs.
        const CHAIN_MAX: usize = 32;
        for _ in 0..CHAIN_MAX {
            if tool != READ_RESULT {
                // One that is not there any more was a server's.
                return self
                    .inner
                    .gate
                    .registry
                    .get(&tool)
                    .is_none_or(|tool| tool.reads_from_others());
            }
            let wanted = arguments
                .get("call")
                .and_then(Value::as_str)
                .and_then(|id| CallId::new(id).ok());
            // Without a call it reads nothing.
            let Some(wanted) = wanted else { return false };
            match call_of(conversation, &wanted) {
                Some(call) => (tool, arguments) = call,
                // It is older than what is kept here, and nobody knows whose words it holds.
                None => return true,
            }
        }
        true
    }
}

/// Returns the tool and the arguments of a call that ended, in this turn or in what is kept of
/// those before.
fn call_of(conversation: &Conversation, wanted: &CallId) -> Option<(String, Arguments)> {
    if let Some((tool, arguments)) = conversation
        .current()
        .and_then(|current| current.ran(wanted))
    {
        return Some((tool.to_owned(), arguments.clone()));
    }
    let kept = conversation.kept_messages();
    let mut calls = kept.iter().rev().flat_map(|message| message.tool_calls());
    if let Some(call) = calls.find(|call| call.id == *wanted) {
        return Some((call.name.clone(), call.arguments.clone()));
    }
    // A history from elsewhere may hold a result whose call was left out.
    let mut results = kept
        .iter()
        .rev()
        .filter_map(|message| message.tool_result());
    let (_, tool, _) = results.find(|(call, ..)| *call == wanted)?;
    Some((tool.to_owned(), Arguments::new()))
}
