//! Conversion of a turn's events to the parts of an answer. A complete answer is the concatenation
//! of its parts, so streamed and complete answers never differ.
//!
//! This API cannot take text back. Text that the model writes before a tool call stays, and the
//! answer follows after an empty line.

use adjutant_core::{AgentResponse, Arguments, DecisionKind, ToolResult};
use adjutant_runtime::RunEvent;
use serde_json::Value;

/// Longest excerpt of a call's arguments or of an error, in Unicode characters.
const EXCERPT_MAX: usize = 300;

/// A part of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AnswerPart {
    /// Text of the answer.
    Content(String),
    /// Text about the work before the answer: thinking and tool calls.
    Reasoning(String),
    /// Text like [`AnswerPart::Reasoning`] that commits to nothing: the turn may still fail, and
    /// the stream has not started yet.
    Note(String),
}

/// Converts the events of one turn.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    /// True if the model's text must not be streamed, because it is validated as a whole:
    /// structured output.
    whole: bool,
    /// Text of the current model call.
    text: String,
    /// True if an earlier model call wrote text.
    has_earlier_text: bool,
    /// True if the last reasoning text did not end with a newline.
    in_line: bool,
}

impl Encoder {
    /// Creates an encoder. `whole`: the answer is sent as a whole at the end.
    pub(super) fn new(whole: bool) -> Self {
        Self {
            whole,
            ..Self::default()
        }
    }

    /// Converts an event. [`Encoder::finish`] completes the answer.
    pub(super) fn encode(&mut self, event: &RunEvent) -> Option<AnswerPart> {
        match event {
            RunEvent::ModelStarted { .. } => {
                self.has_earlier_text |= !self.text.is_empty();
                self.text.clear();
                None
            }
            RunEvent::Text(text) if !self.whole && !text.is_empty() => {
                Some(AnswerPart::Content(self.push_text(text)))
            }
            RunEvent::Thinking(text) if !text.is_empty() => {
                let text = printable(text);
                self.in_line = !text.ends_with('\n');
                Some(AnswerPart::Reasoning(text))
            }
            RunEvent::ToolStarted { call } => {
                let line = format!("⚙ {} {}", call.name, arguments(&call.arguments));
                Some(AnswerPart::Reasoning(self.line(&line)))
            }
            RunEvent::ToolFinished {
                tool, result, ms, ..
            } => {
                let line = match result {
                    ToolResult { success: true, .. } => format!("✓ {tool} {ms} ms"),
                    ToolResult { error, .. } => {
                        format!("✗ {tool}: {}", cut(error.as_deref().unwrap_or("it failed")))
                    }
                };
                Some(AnswerPart::Reasoning(self.line(&line)))
            }
            RunEvent::Retrying { wait, .. } => {
                let line = format!(
                    "… the model is asked again in {} s",
                    wait.as_secs_f64().ceil()
                );
                Some(AnswerPart::Note(self.line(&line)))
            }
            RunEvent::Noticed(notice) => {
                Some(AnswerPart::Note(self.line(&format!("ℹ {}", notice.text))))
            }
            _ => None,
        }
    }

    /// Returns the rest of the answer at the end of the turn.
    pub(super) fn finish(&mut self, response: &AgentResponse) -> Option<AnswerPart> {
        if response.decision.kind == DecisionKind::AwaitResult {
            // The tool calls are the answer.
            return None;
        }
        let content = response.content.trim_end();
        let sent = self.text.trim();
        // Streamed text cannot be taken back: the rest follows it, or the whole answer as a
        // paragraph of its own.
        let rest = match content.strip_prefix(sent) {
            Some(rest) if !sent.is_empty() => rest.to_owned(),
            _ if self.text.is_empty() => return Some(AnswerPart::Content(self.push_text(content))),
            _ => format!("\n\n{content}"),
        };
        (!rest.is_empty()).then_some(AnswerPart::Content(rest))
    }

    fn push_text(&mut self, text: &str) -> String {
        let apart = self.text.is_empty() && self.has_earlier_text;
        self.text.push_str(text);
        if apart {
            format!("\n\n{text}")
        } else {
            text.to_owned()
        }
    }

    fn line(&mut self, text: &str) -> String {
        let apart = std::mem::take(&mut self.in_line);
        format!(
            "{}{}\n",
            if apart { "\n" } else { "" },
            printable(text).replace('\n', " ")
        )
    }
}

fn arguments(arguments: &Arguments) -> String {
    cut(&Value::Object(arguments.clone()).to_string())
}

fn cut(text: &str) -> String {
    let mut head: String = text.chars().take(EXCERPT_MAX).collect();
    if head.len() < text.len() {
        head.push('…');
    }
    head
}

/// Removes characters that control a terminal or change the direction of the surrounding text.
fn printable(text: &str) -> String {
    let steers = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().filter(|c| !steers(*c)).collect()
}

#[cfg(test)]
mod tests {
    use adjutant_core::{CallId, ToolCall};
    use serde_json::json;

    use super::*;

    fn text(text: &str) -> RunEvent {
        RunEvent::Text(text.to_owned())
    }

    fn started(name: &str, arguments: Value) -> RunEvent {
        let call = ToolCall::from_json_text(0, None, name.to_owned(), &arguments.to_string());
        RunEvent::ToolStarted {
            call: ToolCall {
                id: CallId::new("c").unwrap(),
                ..call
            },
        }
    }

    fn pieces(events: &[RunEvent]) -> Vec<AnswerPart> {
        let mut encoder = Encoder::default();
        events
            .iter()
            .filter_map(|event| encoder.encode(event))
            .collect()
    }

    #[test]
    fn text_before_a_tool_call_stays_and_the_answer_is_a_new_paragraph() {
        let said = pieces(&[
            RunEvent::ModelStarted { number: 1 },
            text("Let me "),
            text("look."),
            started("list_tasks", json!({})),
            RunEvent::ModelStarted { number: 2 },
            text("Nothing"),
            text(" is open."),
        ]);
        let content = |text: &str| AnswerPart::Content(text.to_owned());
        assert_eq!(
            said,
            [
                content("Let me "),
                content("look."),
                AnswerPart::Reasoning("⚙ list_tasks {}\n".to_owned()),
                content("\n\nNothing"),
                content(" is open."),
            ]
        );
    }

    #[test]
    fn control_characters_are_removed_and_excerpts_are_bounded() {
        let said = pieces(&[
            RunEvent::Thinking("hm \u{1b}[2J\u{202e}".to_owned()),
            started(
                "add_task",
                json!({"description": format!("\u{202e}{}", "x".repeat(1000))}),
            ),
        ]);
        let [AnswerPart::Reasoning(thought), AnswerPart::Reasoning(call)] = said.as_slice() else {
            panic!("{said:?}")
        };
        assert_eq!(thought, "hm [2J");
        assert!(
            call.starts_with("\n⚙ add_task {\"description\":\"xxx") && call.ends_with("…\n"),
            "{call}"
        );
        assert!(call.chars().count() < 400, "{call}");
    }
}
