//! What a turn says, piece by piece. A whole answer is its pieces put together, so both are always
//! the same.
//!
//! What was said cannot be taken back in this API. Words a model says before it calls a tool stay
//! where they are, and the answer follows behind an empty line.

use adjutant_core::{AgentResponse, Arguments, DecisionKind, ToolResult};
use adjutant_runtime::RunEvent;
use serde_json::Value;

/// How much of a call's arguments or a tool's error is shown, in characters.
const SHOWN: usize = 300;

/// A piece of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Of the answer.
    Content(String),
    /// Of what goes on before it.
    Reasoning(String),
    /// The same, and nothing that the answer has begun with: the turn may still come to nothing.
    Note(String),
}

/// Turns events into pieces.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    /// The words of a model call may have to be other words in the end: JSON of a certain form.
    /// They are held back.
    whole: bool,
    /// What the running model call has said.
    said: String,
    /// Something was said by an earlier one.
    said_before: bool,
    /// The last piece before the answer does not end its line.
    in_line: bool,
}

impl Encoder {
    /// `whole`: the answer is said when it is known to be the answer, and not word by word.
    pub(super) fn new(whole: bool) -> Self {
        Self {
            whole,
            ..Self::default()
        }
    }

    /// What an event adds. The answer itself is complete with [`Encoder::end`].
    pub(super) fn event(&mut self, event: &RunEvent) -> Option<Piece> {
        match event {
            RunEvent::ModelStarted { .. } => {
                self.said_before |= !self.said.is_empty();
                self.said.clear();
                None
            }
            RunEvent::Text(text) if !self.whole && !text.is_empty() => {
                Some(Piece::Content(self.say(text)))
            }
            RunEvent::Thinking(text) if !text.is_empty() => {
                let text = shown(text);
                self.in_line = !text.ends_with('\n');
                Some(Piece::Reasoning(text))
            }
            RunEvent::ToolStarted { call } => {
                let line = format!("⚙ {} {}", call.name, arguments(&call.arguments));
                Some(Piece::Reasoning(self.line(&line)))
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
                Some(Piece::Reasoning(self.line(&line)))
            }
            RunEvent::Retrying { wait, .. } => {
                let line = format!(
                    "… the model is asked again in {} s",
                    wait.as_secs_f64().ceil()
                );
                Some(Piece::Note(self.line(&line)))
            }
            RunEvent::Noticed(notice) => {
                Some(Piece::Note(self.line(&format!("ℹ {}", notice.text))))
            }
            _ => None,
        }
    }

    /// What is left of the answer to say.
    pub(super) fn end(&mut self, response: &AgentResponse) -> Option<Piece> {
        if response.decision.kind == DecisionKind::AwaitResult {
            // Nobody is asked for anything: the calls say what there is to do.
            return None;
        }
        let content = response.content.trim_end();
        let said = self.said.trim();
        let rest = match content.strip_prefix(said) {
            Some(rest) if !said.is_empty() => rest.to_owned(),
            _ if self.said.is_empty() => return Some(Piece::Content(self.say(content))),
            _ => format!("\n\n{content}"),
        };
        (!rest.is_empty()).then_some(Piece::Content(rest))
    }

    fn say(&mut self, text: &str) -> String {
        let apart = self.said.is_empty() && self.said_before;
        self.said.push_str(text);
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
            shown(text).replace('\n', " ")
        )
    }
}

fn arguments(arguments: &Arguments) -> String {
    cut(&Value::Object(arguments.clone()).to_string())
}

fn cut(text: &str) -> String {
    let mut head: String = text.chars().take(SHOWN).collect();
    if head.len() < text.len() {
        head.push('…');
    }
    head
}

/// Without what steers a terminal, or turns the direction of the words around it.
fn shown(text: &str) -> String {
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

    fn pieces(events: &[RunEvent]) -> Vec<Piece> {
        let mut encoder = Encoder::default();
        events
            .iter()
            .filter_map(|event| encoder.event(event))
            .collect()
    }

    #[test]
    fn words_before_a_tool_stay_and_the_answer_stands_apart() {
        let said = pieces(&[
            RunEvent::ModelStarted { number: 1 },
            text("Let me "),
            text("look."),
            started("list_tasks", json!({})),
            RunEvent::ModelStarted { number: 2 },
            text("Nothing"),
            text(" is open."),
        ]);
        let content = |text: &str| Piece::Content(text.to_owned());
        assert_eq!(
            said,
            [
                content("Let me "),
                content("look."),
                Piece::Reasoning("⚙ list_tasks {}\n".to_owned()),
                content("\n\nNothing"),
                content(" is open."),
            ]
        );
    }

    #[test]
    fn what_tools_and_models_say_steers_nothing_and_has_an_end() {
        let said = pieces(&[
            RunEvent::Thinking("hm \u{1b}[2J\u{202e}".to_owned()),
            started(
                "add_task",
                json!({"description": format!("\u{202e}{}", "x".repeat(1000))}),
            ),
        ]);
        let [Piece::Reasoning(thought), Piece::Reasoning(call)] = said.as_slice() else {
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
