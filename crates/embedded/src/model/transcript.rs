//! Converts a request's messages to a chat of plain text.
//!
//! The model learns about tools from its instruction and its schema (core's constrained tool
//! calling), so calls and results of earlier turns are only shown to it here.

use adjutant_core::{Content, GenerateRequest, Message, Role, ToolCall};
use serde_json::{Map, Value};

use crate::template::{ChatTurn, Speaker};

/// Converts the messages of `request` to turns, and describes everything that was left out.
pub(super) fn turns(request: &GenerateRequest) -> (Vec<ChatTurn>, Vec<String>) {
    let mut losses = Losses::default();
    let mut turns: Vec<ChatTurn> = Vec::new();
    for message in &request.messages {
        let turn = turn(message, &mut losses);
        match turns.last_mut() {
            // Results of one round are joined, because the model was trained on turns that
            // alternate.
            Some(last) if message.role() == Role::Tool && last.speaker == Speaker::User => {
                last.text.push('\n');
                last.text.push_str(&turn.text);
            }
            _ => turns.push(turn),
        }
    }
    if !request.tools.is_empty() {
        losses.add("the embedded model takes a response schema, not tools: none were sent");
    }
    (turns, losses.reasons)
}

fn turn(message: &Message, losses: &mut Losses) -> ChatTurn {
    let calls: Vec<&ToolCall> = message.tool_calls().collect();
    let mut pieces: Vec<String> = Vec::new();
    for part in message.parts() {
        match &part.content {
            // A provider's explanation of an answer it refused, which is not the assistant's text.
            Content::Refusal { .. } if part.is_explanation() => {}
            Content::Text { text } | Content::Refusal { text } => pieces.push(text.clone()),
            Content::ToolCall(_) => {}
            Content::ToolResult { name, result, .. } => {
                pieces.push(format!(
                    "Result of {name}: {}",
                    serde_json::to_value(result).unwrap_or_default()
                ));
            }
            Content::Image { .. } => {
                losses.add("the embedded model cannot see images: they were left out")
            }
            Content::Thinking { .. } | Content::Opaque { .. } => {
                losses.add("thinking and traces of another model were left out");
            }
            _ => losses.add("a part of an unknown kind was left out"),
        }
    }
    if !calls.is_empty() {
        pieces.push(actions(&calls));
    }
    let speaker = match message.role() {
        Role::System => Speaker::System,
        Role::User | Role::Tool => Speaker::User,
        Role::Assistant => Speaker::Assistant,
    };
    ChatTurn::new(speaker, pieces.join("\n"))
}

/// Encodes calls in the form in which the model writes actions itself.
fn actions(calls: &[&ToolCall]) -> String {
    let action = |call: &&ToolCall| {
        Value::Object(Map::from_iter([(
            call.name.clone(),
            Value::Object(call.arguments.clone()),
        )]))
    };
    Value::Array(calls.iter().map(action).collect()).to_string()
}

/// Descriptions of what was left out, each once.
#[derive(Debug, Default)]
struct Losses {
    reasons: Vec<String>,
}

impl Losses {
    fn add(&mut self, reason: &str) {
        if !self.reasons.iter().any(|known| known == reason) {
            self.reasons.push(reason.to_owned());
        }
    }
}
