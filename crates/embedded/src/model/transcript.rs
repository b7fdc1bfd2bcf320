//! Converts a request's messages to a chat of plain text.
//!
//! The model learns about tools from its instruction and its schema (core's constrained tool
//! calling), so calls and results of earlier turns are only shown to it here.

use adjutant_core::{Content, GenerateRequest, Message, Role, ToolCall};
use serde_json::{Map, Value};

use crate::template::{ChatTurn, Speaker};

/// Converts the messages of `request` to turns, and describes everything that was left out.
pub(super) fn turns(request: &GenerateRequest) -> (Vec<ChatTurn>, Vec<String>) {
    let mut losses = Vec::new();
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
        let reason = "the embedded model takes a response schema, not tools: none were sent";
        record_loss(&mut losses, reason);
    }
    (turns, losses)
}

fn turn(message: &Message, losses: &mut Vec<String>) -> ChatTurn {
    let calls: Vec<&ToolCall> = message.tool_calls().collect();
    let mut pieces: Vec<String> = Vec::new();
    for part in message.parts() {
        match &part.content {
            // A provider's explanation of an answer it refused, which is not the assistant's text.
            Content::Refusal { .. } if part.is_explanation() => {}
            Content::Text { text } | Content::Refusal { text } => pieces.push(text.clone()),
            // All calls of the message are written as one list below.
            Content::ToolCall(_) => {}
            Content::ToolResult { name, result, .. } => {
                pieces.push(format!(
                    "Result of {name}: {}",
                    serde_json::to_value(result).unwrap_or_default()
                ));
            }
            Content::Image { .. } => {
                record_loss(
                    losses,
                    "the embedded model cannot see images: they were left out",
                );
            }
            Content::Thinking { .. } | Content::Opaque { .. } => {
                record_loss(losses, "thinking and traces of another model were left out");
            }
            _ => record_loss(losses, "a part of an unknown kind was left out"),
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

/// Records a loss once, however many parts have it.
fn record_loss(losses: &mut Vec<String>, reason: &str) {
    if !losses.iter().any(|known| known == reason) {
        losses.push(reason.to_owned());
    }
}
