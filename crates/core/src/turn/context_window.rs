//! Fits a request into a model's window before every call: what is very long is shown in part, old results are cleared, the
//! oldest turns go, and at last results of the turn itself are shortened. What is dropped is announced; what cannot be made
//! to fit is a typed failure.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::history::turn_after;
use crate::decision::Notice;
use crate::message::{Content, Message, Role};
use crate::model::GenerateRequest;
use crate::tool::ToolResult;

/// What stands around the text of a result.
const RESULT_FRAME_TOKENS: u32 = 8;
/// The tool by which a model reads on in a result that it was shown in part, where the agent has it.
pub const READ_RESULT: &str = "read_result";

/// A result below this many tokens is not worth clearing.
const RESULT_TOKENS_KEPT: u32 = 64;
/// A result that takes more than this part of what fits is always shown in part, the same part in every request: requests of
/// a conversation begin alike.
const LONG: u32 = 2;
/// What is shown of it, as a part of what fits.
const SHOWN: u32 = 4;
/// What is shown of a result of the turn itself where nothing else is left to go.
const SHOWN_AT_LEAST: u32 = 32;
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

/// Shrinks `request` until it fits `window - reserve` tokens as `count` counts them, and says what it took away.
///
/// The instruction stays, and so do the words and calls of the last turn; every step removes something or the function
/// fails.
///
/// # Errors
/// [`DoesNotFit`] if the instruction, the tools and the last turn without its results are too long.
pub fn fit(
    mut request: GenerateRequest,
    window: u32,
    reserve: u32,
    count: &dyn Fn(&str) -> u32,
) -> Result<(GenerateRequest, Vec<Notice>), DoesNotFit> {
    let budget = window.saturating_sub(reserve);
    let fixed = tools_tokens(&request, count);
    let can_read_on = request.tools.iter().any(|tool| tool.name.as_str() == READ_RESULT);
    let mut sizes: Vec<u32> = request.messages.iter().map(|message| message_tokens(message, count)).collect();
    let needed = |sizes: &[u32]| sizes.iter().fold(fixed, |sum, size| sum.saturating_add(*size));
    let mut notices = Vec::new();
    for (message, size) in request.messages.iter_mut().zip(&mut sizes) {
        if *size > budget / LONG
            && let Some(part) = in_part(message, budget / SHOWN, can_read_on, count)
        {
            in_part_notice(message, *size).join(&mut notices);
            *size = message_tokens(&part, count);
            *message = part;
        }
    }
    if needed(&sizes) <= budget {
        return Ok((request, notices));
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
            None => break,
        }
    }

    // Nothing is left but the turn itself: what it read first is shortened first.
    for at in 0..sizes.len() {
        if needed(&sizes) <= budget {
            break;
        }
        let least = (budget / SHOWN_AT_LEAST).max(RESULT_TOKENS_KEPT);
        if sizes[at] > least
            && let Some(message) = in_part(&request.messages[at], least, can_read_on, count)
        {
            in_part_notice(&request.messages[at], sizes[at]).join(&mut notices);
            sizes[at] = message_tokens(&message, count);
            request.messages[at] = message;
        }
    }
    if needed(&sizes) > budget {
        return Err(DoesNotFit { needed: needed(&sizes), window, reserve });
    }
    let text = match (cleared, dropped) {
        (0, 0) => return Ok((request, notices)),
        (0, dropped) => format!("The conversation is long: its {dropped} oldest messages were left out."),
        (cleared, 0) => format!("The conversation is long: {cleared} old tool results were left out."),
        (cleared, dropped) => format!(
            "The conversation is long: {cleared} old tool results and its {dropped} oldest messages were left out."
        ),
    };
    notices.push(Notice { code: "context_trimmed".to_owned(), text });
    Ok((request, notices))
}

/// A result with the middle left out, in so many tokens. `None`: it is no result, or cannot be shortened.
fn in_part(
    message: &Message,
    tokens: u32,
    can_read_on: bool,
    count: &dyn Fn(&str) -> u32,
) -> Option<Message> {
    let (call_id, name, result) = message.tool_result()?;
    let whole = match (&result.data, &result.error) {
        (Some(Value::String(text)), _) | (None, Some(text)) => Cow::Borrowed(text.as_str()),
        (Some(data), _) => Cow::Owned(data.to_string()),
        (None, None) => return None,
    };
    let size = message_tokens(message, count).max(1);
    // In proportion, then less until it fits: text is not equally dense everywhere.
    let mut shown = usize::try_from(u64::from(tokens) * whole.len() as u64 / u64::from(size)).unwrap_or(0);
    let chars = whole.chars().count();
    while shown > 0 {
        let (begun, rest) = whole.split_at(whole.floor_char_boundary(shown - shown / 4));
        let (_, ended) = rest.split_at(rest.ceil_char_boundary(rest.len().saturating_sub(shown / 4)));
        let head = begun.chars().count();
        let how = match can_read_on {
            true => format!("; {READ_RESULT} with call {:?} and from {head} reads on", call_id.as_str()),
            false => String::new(),
        };
        let left_out = chars - head - ended.chars().count();
        let part =
            format!("{begun}\n[... {left_out} of {chars} characters are left out here{how} ...]\n{ended}");
        let result = match result.success {
            true => {
                ToolResult { data: Some(part.into()), success: true, error: None, verbatim: result.verbatim }
            }
            false => ToolResult::failed(part),
        };
        let message = Message::tool(call_id.clone(), name, result).ok()?;
        if message_tokens(&message, count) <= tokens {
            return Some(message);
        }
        shown = shown * 3 / 4;
    }
    clear_result(message)
}

/// The text of a result that was shown in part, in which [`READ_RESULT`] counts: a string as it is, all else as JSON.
#[must_use]
pub fn text_of(data: &Value) -> String {
    data.as_str().map_or_else(|| data.to_string(), str::to_owned)
}

fn in_part_notice(message: &Message, tokens: u32) -> Notice {
    let name = message.tool_result().map_or("a tool", |(_, name, _)| name);
    let text = format!(
        "The result of {name} is long (about {tokens} tokens): the model was shown its beginning and its end. The whole is in the log."
    );
    Notice { code: "result_in_part".to_owned(), text }
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

/// Long texts are counted where they are: making JSON of them for every request takes longer than all else.
fn result_tokens(result: &ToolResult, count: &dyn Fn(&str) -> u32) -> u32 {
    match &result.data {
        Some(Value::String(text)) => count(text).saturating_add(RESULT_FRAME_TOKENS),
        _ => count(&result.to_json().to_string()),
    }
}

/// Counts every part; a picture counts [`IMAGE_TOKENS`], and what nobody can read nothing.
fn message_tokens(message: &Message, count: &dyn Fn(&str) -> u32) -> u32 {
    message.parts().iter().fold(TOKENS_PER_MESSAGE, |sum, part| {
        let size = match &part.content {
            Content::Text { text } | Content::Thinking { text } | Content::Refusal { text } => count(text),
            Content::ToolCall(call) => {
                count(&call.name).saturating_add(count(&Value::Object(call.arguments.clone()).to_string()))
            }
            Content::ToolResult { result, .. } => result_tokens(result, count),
            Content::Image { .. } => IMAGE_TOKENS,
            Content::Opaque { .. } => 0,
        };
        sum.saturating_add(size)
    })
}
