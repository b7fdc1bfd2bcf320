//! Finds out whether a model had read words of others when it proposed its calls.

use adjutant_core::turn::READ_RESULT;
use adjutant_core::{Arguments, Event, Recorded};
use serde_json::Value;

use super::Steps;

impl Steps<'_> {
    /// Returns the person's words, if the model had read words of others in this turn when it proposed its last calls.
    pub(super) async fn said_before_others(&self) -> Option<String> {
        let log = self.log.lock().await;
        let of_turn = |recorded: &Recorded| recorded.event.turn() == Some(self.turn);
        let proposed = log.events.iter().rposition(|recorded| {
            of_turn(recorded) && matches!(recorded.event, Event::ModelReplied { .. })
        })?;
        let has_read =
            log.events[..proposed].iter().enumerate().any(|(at, recorded)| match &recorded.event {
                Event::CallFinished { tool, arguments, .. } if of_turn(recorded) => {
                    self.holds_words_of_others(&log.events[..at], tool, arguments)
                }
                _ => false,
            });
        let said = |recorded: &Recorded| match &recorded.event {
            Event::TurnStarted { turn, message, .. } if *turn == self.turn => Some(message.clone()),
            _ => None,
        };
        has_read.then(|| log.events.iter().find_map(said)).flatten()
    }

    /// Returns whether the result of a call may hold words of others. `before`: what was recorded before it.
    fn holds_words_of_others(&self, before: &[Recorded], tool: &str, arguments: &Arguments) -> bool {
        if tool != READ_RESULT {
            // One that is not there any more was a server's.
            return self.inner.gate.registry.get(tool).is_none_or(|tool| tool.reads_from_others());
        }
        // Read on in another result, which may be of an earlier turn: the words are those of that one.
        let Some(wanted) = arguments.get("call").and_then(Value::as_str) else { return false };
        before.iter().enumerate().rev().any(|(at, recorded)| match &recorded.event {
            Event::CallFinished { call, tool, arguments, .. } if call.as_str() == wanted => {
                self.holds_words_of_others(&before[..at], tool, arguments)
            }
            Event::HistorySet { messages } => messages.iter().any(|message| {
                let of = message.tool_result().filter(|(call, ..)| call.as_str() == wanted);
                of.is_some_and(|(_, tool, _)| self.holds_words_of_others(&[], tool, &Arguments::new()))
            }),
            _ => false,
        })
    }
}
