//! Fits a request into a model's window before every call: old results are cleared first, then the oldest turns go.
//! What is dropped is announced; what cannot be made to fit is a typed failure.

use serde_json::json;

use super::history::turn_after;
use crate::decision::Notice;
use crate::message::{Content, Message, Role};
use crate::model::GenerateRequest;
use crate::tool::ToolResult;

/// A result below this many tokens is not worth clearing.
const RESULT_TOKENS_KEPT: u32 = 64;
/// What a message costs beside its words: role marks and separators. Source: the providers' cookbooks use 3 to 4.
const TOKENS_PER_MESSAGE: u32 = 4;
/// The most a picture is taken to cost. Source: the vendors' guides on vision; a full-size picture costs some 1,600 tokens
/// with Anthropic and 1,500 with OpenAI, and less with Gemini (checked 2026-11).
const IMAGE_TOKENS: u32 = 2000;

/// The request cannot be made to fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("about {needed} tokens are needed and {window} fit, {reserve} of them reserved for the answer")]
pub struct DoesNotFit {
    /// What the smallest form needs.
    pub needed: u32,
    /// The model's window.
    pub window: u32,
    /// Kept free for the answer.
    pub reserve: u32,
}

/// Estimates the tokens of a text: UTF-8 bytes / 4, rounded up. For models without a tokenizer of their own.
#[must_use]
pub fn estimate_tokens(text: &str) -> u32 {
    u32::try_from(text.len().div_ceil(4)).unwrap_or(u32::MAX)
}

/// Shrinks `request` until it fits `window - reserve` tokens as `count` counts them.
///
/// The instruction and the last turn always stay; every step removes something or the function fails.
///
/// # Errors
/// [`DoesNotFit`] if the instruction, the tools and the last turn alone are too long.
pub fn fit(
    mut request: GenerateRequest,
    window: u32,
    reserve: u32,
    count: &dyn Fn(&str) -> u32,
) -> Result<(GenerateRequest, Option<Notice>), DoesNotFit> {
    let budget = window.saturating_sub(reserve);
    let fixed = tools_tokens(&request, count);
    let mut sizes: Vec<u32> = request.messages.iter().map(|message| message_tokens(message, count)).collect();
    let needed = |sizes: &[u32]| sizes.iter().fold(fixed, |sum, size| sum.saturating_add(*size));
    if needed(&sizes) <= budget {
        return Ok((request, None));
    }

    let last_turn = request
        .messages
        .iter()
        .rposition(|message| message.role() == Role::User)
        .unwrap_or(request.messages.len());
    let mut cleared = 0_usize;
    for at in 0..last_turn {
        if needed(&sizes) <= budget {
            break;
        }
        if sizes[at] > RESULT_TOKENS_KEPT
            && let Some(message) = clear_result(&request.messages[at])
        {
            sizes[at] = message_tokens(&message, count);
            request.messages[at] = message;
            cleared += 1;
        }
    }

    let mut dropped = 0_usize;
    while needed(&sizes) > budget {
        let first =
            usize::from(request.messages.first().is_some_and(|message| message.role() == Role::System));
        let next = turn_after(&request.messages, first);
        match next {
            Some(next) => {
                dropped += next - first;
                request.messages.drain(first..next);
                sizes.drain(first..next);
            }
            None => return Err(DoesNotFit { needed: needed(&sizes), window, reserve }),
        }
    }
    let text = match (cleared, dropped) {
        (0, dropped) => format!("The conversation is long: its {dropped} oldest messages were left out."),
        (cleared, 0) => format!("The conversation is long: {cleared} old tool results were left out."),
        (cleared, dropped) => format!(
            "The conversation is long: {cleared} old tool results and its {dropped} oldest messages were left out."
        ),
    };
    Ok((request, Some(Notice { code: "context_trimmed".to_owned(), text })))
}

/// What a request costs to read, in tokens as `count` counts them.
#[must_use]
pub fn request_tokens(request: &GenerateRequest, count: &dyn Fn(&str) -> u32) -> u32 {
    let messages = request.messages.iter().map(|message| message_tokens(message, count));
    messages.fold(tools_tokens(request, count), u32::saturating_add)
}

fn clear_result(message: &Message) -> Option<Message> {
    let (call_id, name, _) = message.tool_result()?;
    let result =
        ToolResult::ok(json!("left out: the conversation is long; call the tool again if it is needed"));
    Message::tool(call_id.clone(), name, result).ok()
}

fn tools_tokens(request: &GenerateRequest, count: &dyn Fn(&str) -> u32) -> u32 {
    let schema = request.response_schema.as_ref().map_or(0, |schema| count(&schema.to_string()));
    request.tools.iter().fold(schema, |sum, tool| {
        sum.saturating_add(count(&tool.description))
            .saturating_add(count(&tool.parameters.to_string()))
            .saturating_add(8)
    })
}

/// Counts every part; a picture counts [`IMAGE_TOKENS`], and what nobody can read nothing.
fn message_tokens(message: &Message, count: &dyn Fn(&str) -> u32) -> u32 {
    message.parts().iter().fold(TOKENS_PER_MESSAGE, |sum, part| {
        let size = match &part.content {
            Content::Text { text } | Content::Thinking { text } | Content::Refusal { text } => count(text),
            Content::ToolCall(call) => count(&call.name)
                .saturating_add(count(&serde_json::Value::Object(call.arguments.clone()).to_string())),
            Content::ToolResult { result, .. } => count(&result.to_json().to_string()),
            Content::Image { .. } => IMAGE_TOKENS,
            Content::Opaque { .. } => 0,
        };
        sum.saturating_add(size)
    })
}
