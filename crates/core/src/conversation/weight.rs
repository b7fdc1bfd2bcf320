//! Estimates how much memory what was said takes.

use serde_json::Value;

use crate::message::{Content, ImageSource, Message, Part};
use crate::tool::{Arguments, ToolResult};

/// Returns about how many bytes a message takes.
pub(super) fn message_weight(message: &Message) -> usize {
    size_of::<Message>() + message.parts().iter().map(part_weight).sum::<usize>()
}

pub(super) fn part_weight(part: &Part) -> usize {
    let content = match &part.content {
        Content::Text { text } | Content::Thinking { text } | Content::Refusal { text } => text.len(),
        Content::Image { source: ImageSource::Base64 { data, .. } } => data.len(),
        Content::Image { source: ImageSource::Url(url) } => url.len(),
        Content::ToolCall(call) => call.name.len() + arguments_weight(&call.arguments),
        Content::ToolResult { result, .. } => result_weight(result),
        Content::Opaque { kind } => kind.len(),
    };
    size_of::<Part>() + content + part.state.as_ref().map_or(0, |state| value_weight(&state.data))
}

pub(super) fn arguments_weight(arguments: &Arguments) -> usize {
    arguments.iter().map(|(name, value)| name.len() + value_weight(value)).sum()
}

pub(super) fn result_weight(result: &ToolResult) -> usize {
    result.data.as_ref().map_or(0, value_weight) + result.error.as_ref().map_or(0, String::len)
}

fn value_weight(value: &Value) -> usize {
    let inner = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(value_weight).sum(),
        Value::Object(map) => map.iter().map(|(name, value)| name.len() + value_weight(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + inner
}
