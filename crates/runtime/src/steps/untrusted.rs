//! Finds out whether a model had read untrusted text (web pages, mails, other programs) when it
//! made its calls: such text may contain instructions (prompt injection).

use adjutant_core::conversation::Conversation;
use adjutant_core::turn::READ_RESULT;
use adjutant_core::{Arguments, CallId, Event};
use serde_json::Value;

use super::Steps;

impl Steps<'_> {
    /// Returns the user's message, if the model had read untrusted text in this turn when it made
    /// its last calls.
    pub(super) async fn message_before_untrusted(&self) -> Option<String> {
        let log = self.log.lock().await;
        let conversation = log.conversation();
        let current = conversation.current()?;
        let has_read = current
            .before_last_reply()?
            .iter()
            .any(|recorded| match &*recorded.event {
                // The error of a result that was not found is our own text.
                Event::CallFinished { tool, result, .. }
                    if tool == READ_RESULT && !result.success =>
                {
                    false
                }
                Event::CallFinished {
                    tool, arguments, ..
                } => self.may_hold_untrusted(conversation, tool, arguments),
                _ => false,
            });
        match current.started()? {
            Event::TurnStarted { message, .. } if has_read => Some(message.clone()),
            _ => None,
        }
    }

    /// Returns true if the result of a call may hold untrusted text.
    fn may_hold_untrusted(
        &self,
        conversation: &Conversation,
        tool: &str,
        arguments: &Arguments,
    ) -> bool {
        let (mut tool, mut arguments) = (tool.to_owned(), arguments.clone());
        // A call of `READ_RESULT` reads on in the result of an earlier call, perhaps of an earlier
        // turn, so that call decides. Chains longer than this are treated as untrusted.
        const CHAIN_MAX: usize = 32;
        for _ in 0..CHAIN_MAX {
            if tool != READ_RESULT {
                // A tool that is not registered any more came from an MCP server.
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
            // Without the id of a call it reads nothing.
            let Some(wanted) = wanted else { return false };
            match call_of(conversation, &wanted) {
                Some(call) => (tool, arguments) = call,
                // The call is older than the state, so its tool is unknown.
                None => return true,
            }
        }
        true
    }
}

/// Returns the tool and the arguments of a call that ended, in this turn or in the messages that
/// are kept of earlier ones.
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
    // A history from the caller may hold a result whose call was left out.
    let mut results = kept
        .iter()
        .rev()
        .filter_map(|message| message.tool_result());
    let (_, tool, _) = results.find(|(call, ..)| *call == wanted)?;
    Some((tool.to_owned(), Arguments::new()))
}
