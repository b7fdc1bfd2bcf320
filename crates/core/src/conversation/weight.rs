//! Estimates of the memory that events and messages take.

use serde_json::Value;

use crate::event::{Event, GateVerdict};
use crate::message::{Content, ImageSource, Message, Part};
use crate::tool::{Arguments, ToolResult};

/// Approximate size of a stored event without long values, in bytes.
const STORED_MIN: usize = 128;

/// Returns the approximate size of an event in memory, in bytes. Only long values are counted.
#[must_use]
pub fn event_weight(event: &Event) -> usize {
    let repeated = match event {
        // The end of a turn repeats in memory what the store keeps once, with the events before it.
        Event::TurnFinished { end, .. } => end.messages.iter().map(message_weight).sum(),
        Event::HistorySet { messages, .. } => messages.iter().map(message_weight).sum(),
        _ => 0,
    };
    size_of::<Event>() + said_weight(event) + repeated
}

/// Returns the approximate number of bytes of text and results that an event adds to a stored
/// conversation, rather too few than too many.
#[must_use]
pub fn stored_weight(event: &Event) -> usize {
    STORED_MIN + said_weight(event)
}

/// Returns the size of the long values of an event that no earlier event has.
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
        Event::TurnStarted {
            message,
            recalled_texts,
            ..
        } => {
            message.len()
                + recalled_texts
                    .iter()
                    .map(|recalled| recalled.text.len())
                    .sum::<usize>()
        }
        _ => 0,
    }
}

/// Returns the approximate size of a message, in bytes.
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
    // The size of a map's own nodes is left out: an estimate that is a little low is enough to
    // bound a cache.
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
