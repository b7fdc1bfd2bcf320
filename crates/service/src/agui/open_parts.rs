//! Tracking of the messages, calls and steps that an event stream has opened and not closed.

use serde::Deserialize;

use super::event::Event;

/// The events that close what is open, in the order of opening.
#[derive(Debug, Default)]
pub(crate) struct OpenParts(Vec<Event>);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SentEvent {
    r#type: String,
    message_id: Option<String>,
    tool_call_id: Option<String>,
    step_name: Option<String>,
}

impl OpenParts {
    /// Records an event that was sent, as JSON.
    pub(crate) fn record(&mut self, data: &str) {
        let Ok(sent) = serde_json::from_str::<SentEvent>(data) else {
            return;
        };
        let kind = sent.r#type.as_str();
        let suffixes = [
            ("_START", true),
            ("_STARTED", true),
            ("_END", false),
            ("_FINISHED", false),
        ];
        let strip = |(suffix, begins)| Some((kind.strip_suffix(suffix)?, begins));
        let Some((kind, begins)) = suffixes.into_iter().find_map(strip) else {
            return;
        };
        let end = match (kind, sent.message_id, sent.tool_call_id, sent.step_name) {
            ("TEXT_MESSAGE", Some(message_id), ..) => Event::TextMessageEnd { message_id },
            ("REASONING", Some(message_id), ..) => Event::ReasoningEnd { message_id },
            ("REASONING_MESSAGE", Some(message_id), ..) => {
                Event::ReasoningMessageEnd { message_id }
            }
            ("TOOL_CALL", _, Some(tool_call_id), _) => Event::ToolCallEnd { tool_call_id },
            ("STEP", _, _, Some(step_name)) => Event::StepFinished { step_name },
            _ => return,
        };
        if begins {
            self.0.push(end);
        } else {
            self.0.retain(|open| *open != end);
        }
    }

    /// Returns the events that close everything, the innermost first.
    pub(crate) fn close_all(&mut self) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.0);
        events.reverse();
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_parts_are_closed_innermost_first() {
        let id = || "m".to_owned();
        let step = || Event::StepStarted {
            step_name: "model call 1".to_owned(),
        };
        let mut open_parts = OpenParts::default();
        for event in [
            Event::RunStarted {
                thread_id: id(),
                run_id: id(),
                protocol_version: "1.0",
            },
            step(),
            Event::ReasoningStart { message_id: id() },
            Event::ReasoningMessageStart {
                message_id: id(),
                role: "reasoning",
            },
            Event::ReasoningMessageEnd { message_id: id() },
            Event::ReasoningEnd { message_id: id() },
            Event::TextMessageStart {
                message_id: id(),
                role: "assistant",
            },
            Event::TextMessageContent {
                message_id: id(),
                delta: "Hel".to_owned(),
            },
        ] {
            open_parts.record(&serde_json::to_string(&event).unwrap());
        }
        let step = Event::StepFinished {
            step_name: "model call 1".to_owned(),
        };
        assert_eq!(
            open_parts.close_all(),
            [Event::TextMessageEnd { message_id: id() }, step]
        );
        assert_eq!(open_parts.close_all(), []);
    }
}
