//! Estimates how much memory what was said takes.

use serde_json::Value;

use crate::event::{Event, GateVerdict};
use crate::message::{Content, ImageSource, Message, Part};
use crate::tool::{Arguments, ToolResult};

/// An event takes at least about so many bytes where it is stored, with nothing in it that is long.
const STORED_MIN: usize = 128;

/// Returns about how many bytes an event takes in memory: what can be long is counted.
pub(super) fn event_weight(event: &Event) -> usize {
    let repeated = match event {
        Event::TurnFinished { end, .. } => end.messages.iter().map(message_weight).sum(),
        _ => 0,
    };
    size_of::<Event>() + said_weight(event) + repeated
}

/// Returns about how many bytes of words and results an event adds to what is stored of a
/// conversation, rather too few than too many.
#[must_use]
pub fn stored_weight(event: &Event) -> usize {
    STORED_MIN + said_weight(event)
}

/// The parts of an event that can be long and are not said before.
fn said_weight(event: &Event) -> usize {
    match event {
        Event::ModelReplied {
            reply: Ok(reply), ..
        } => reply.parts.iter().map(part_weight).sum(),
        Event::CallChecked {
            verdict: GateVerdict::Run { arguments },
            ..
        }
        | Event::CallStarted { arguments, .. } => arguments_weight(arguments),
        Event::CallFinished {
            arguments, result, ..
        } => arguments_weight(arguments) + result_weight(result),
        Event::TurnStarted { message, told, .. } => {
            message.len() + told.iter().map(|told| told.text.len()).sum::<usize>()
        }
        _ => 0,
    }
}

/// Returns about how many bytes a message takes.
pub(super) fn message_weight(message: &Message) -> usize {
    size_of::<Message>() + message.parts().iter().map(part_weight).sum::<usize>()
}

fn part_weight(part: &Part) -> usize {
    let content = match &part.content {
        Content::Text { text } | Content::Thinking { text } | Content::Refusal { text } => {
            text.len()
        }
        Content::Image {
            source: ImageSource::Base64 { data, .. },
        } => data.len(),
        Content::Image {
            source: ImageSource::Url(url),
        } => url.len(),
        Content::ToolCall(call) => call.name.len() + arguments_weight(&call.arguments),
        Content::ToolResult { result, .. } => result_weight(result),
        Content::Opaque { kind } => kind.len(),
    };
    size_of::<Part>()
        + content
        + part
            .state
            .as_ref()
            .map_or(0, |state| value_weight(&state.data))
}

fn arguments_weight(arguments: &Arguments) -> usize {
    arguments
        .iter()
        .map(|(name, value)| name.len() + value_weight(value))
        .sum()
}

fn result_weight(result: &ToolResult) -> usize {
    result.data.as_deref().map_or(0, value_weight) + result.error.as_ref().map_or(0, String::len)
}

fn value_weight(value: &Value) -> usize {
    let inner = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(value_weight).sum(),
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| name.len() + value_weight(value))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + inner
}
