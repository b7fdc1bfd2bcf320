//! Fits a request into a model's window before every call: what is very long is shown in part, old
//! results are cleared, the oldest turns go, and at last results of the turn itself are shortened.
//! What is dropped is announced; what cannot be made to fit is a typed failure.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::calibration::Calibration;
use crate::decision::Notice;
use crate::message::{Content, Message, Role};
use crate::model::GenerateRequest;
use crate::summary::{put_block, without_block};
use crate::tool::ToolResult;
use crate::trim::turn_after;

/// What stands around the text of a result.
const RESULT_FRAME_TOKENS: u32 = 8;
/// The tool by which a model reads on in a result that it was shown in part, where the agent has
/// it.
pub const READ_RESULT: &str = "read_result";

/// A result below this many tokens is not worth clearing.
const RESULT_TOKENS_KEPT: u32 = 64;
/// A result that takes more than this part of what fits is always shown in part, the same part in
/// every request: requests of a conversation begin alike.
const LONG: u32 = 2;
/// What is shown of it, as a part of what fits.
const SHOWN: u32 = 4;
/// What is shown of a result of the turn itself where nothing else is left to go.
const SHOWN_AT_LEAST: u32 = 32;
/// What a message costs beside its words: role marks and separators. Source: the providers'
/// cookbooks use 3 to 4.
const TOKENS_PER_MESSAGE: u32 = 4;
/// The most a picture is taken to cost. Source: the vendors' guides on vision; a full-size picture
/// costs some 1,600 tokens with Anthropic and 1,500 with OpenAI, and less with Gemini (checked
/// 2026-11).
const IMAGE_TOKENS: u32 = 2000;

/// The request cannot be made to fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "about {needed} tokens are needed and {window} fit, {reserve} of them reserved for the answer"
)]
pub struct DoesNotFit {
    /// What the smallest form needs.
    pub needed: u32,
    /// The model's window.
    pub window: u32,
    /// Kept free for the answer.
    pub reserve: u32,
}

/// Estimates the tokens of a text: UTF-8 bytes / 4, rounded up. For models without a tokenizer of
/// their own.
#[must_use]
pub fn estimate_tokens(text: &str) -> u32 {
    u32::try_from(text.len().div_ceil(4)).unwrap_or(u32::MAX)
}

/// How much fits into a request, and what of it must stay.
#[derive(Debug, Clone, Default)]
pub struct Room {
    /// The model's window, in its tokens.
    window: u32,
    /// Kept free for the answer.
    reserve: u32,
    calibration: Calibration,
    /// What stands for old turns, in front of the person's first words: it goes last.
    summary: Option<String>,
    /// How many messages at the end are those of the turn itself.
    own: usize,
}

impl Room {
    /// The whole window but what the answer may take; in a small window that is half of it.
    #[must_use]
    pub fn new(window: u32, reserve: u32, calibration: Calibration) -> Self {
        let window = calibration.window(window);
        Self {
            window,
            reserve: reserve.min(window / 2),
            calibration,
            summary: None,
            own: 1,
        }
    }

    /// The same for a request that has a summary, and ends with so many messages of the turn
    /// itself.
    #[must_use]
    pub fn for_turn(self, summary: Option<String>, own: usize) -> Self {
        Self {
            summary,
            own,
            ..self
        }
    }

    /// The model's window, in its tokens.
    #[must_use]
    pub fn window(&self) -> u32 {
        self.window
    }

    /// Kept free for the answer, in tokens.
    #[must_use]
    pub fn reserve(&self) -> u32 {
        self.reserve
    }

    /// What a request may take, in the model's tokens.
    #[must_use]
    pub fn usable(&self) -> u32 {
        self.window.saturating_sub(self.reserve)
    }

    /// How our count relates to the model's.
    #[must_use]
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// What a request may take, as it is counted here.
    fn budget(&self) -> u32 {
        self.calibration.counted_within(self.usable())
    }
}

/// A request that fits.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// What is sent.
    pub request: GenerateRequest,
    /// What was taken away.
    pub notices: Vec<Notice>,
    /// Its size, as it is counted here; [`Calibration::tokens`] makes the model's tokens of it.
    pub counted: u32,
    /// Whether anything was taken away because it was too long.
    pub is_shortened: bool,
}

/// Shrinks `request` until it fits into `room`, and says what it took away. `count` counts the
/// tokens of a text.
///
/// The instruction stays, and so do the words and calls of the turn itself; every step removes
/// something or the function fails.
///
/// # Errors
/// [`DoesNotFit`] if the instruction, the tools and the turn itself without its results are too
/// long.
pub fn fit(
    mut request: GenerateRequest,
    room: &Room,
    count: &dyn Fn(&str) -> u32,
) -> Result<Fitted, DoesNotFit> {
    let budget = room.budget();
    let fixed = tools_tokens(&request, count);
    let can_read_on = request
        .tools
        .iter()
        .any(|tool| tool.name.as_str() == READ_RESULT);
    let mut sizes: Vec<u32> = request
        .messages
        .iter()
        .map(|message| message_tokens(message, count))
        .collect();
    let needed = |sizes: &[u32]| {
        sizes
            .iter()
            .fold(fixed, |sum, size| sum.saturating_add(*size))
    };
    let first = usize::from(
        request
            .messages
            .first()
            .is_some_and(|message| message.role() == Role::System),
    );
    let last_turn = request.messages.len().saturating_sub(room.own).max(first);
    let mut notices = Vec::new();
    // By the window alone, and not by what was learned since: the same part in every request.
    let usable = room.usable();
    for (at, (message, size)) in request.messages.iter_mut().zip(&mut sizes).enumerate() {
        if *size > usable / LONG
            && let Some(part) = in_part(message, usable / SHOWN, can_read_on, count)
        {
            // What an earlier turn read was announced there.
            if at >= last_turn {
                in_part_notice(message, *size).join(&mut notices);
            }
            *size = message_tokens(&part, count);
            *message = part;
        }
    }
    if needed(&sizes) <= budget {
        return Ok(Fitted {
            counted: needed(&sizes),
            request,
            notices,
            is_shortened: false,
        });
    }

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
    let mut last_turn = last_turn;
    while needed(&sizes) > budget && last_turn > first {
        let next = turn_after(&request.messages, first)
            .unwrap_or(last_turn)
            .min(last_turn);
        let block = room
            .summary
            .as_deref()
            .filter(|block| begins_with(&request.messages[first..next], block));
        dropped += next - first;
        request.messages.drain(first..next);
        sizes.drain(first..next);
        last_turn -= next - first;
        if let Some(block) = block {
            put_block(&mut request.messages[first..], block);
            for (message, size) in request.messages.iter().zip(&mut sizes).skip(first).take(1) {
                *size = message_tokens(message, count);
            }
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
    if needed(&sizes) > budget
        && let Some(block) = &room.summary
    {
        let found = request.messages.iter().enumerate();
        let found = found
            .skip(first)
            .find_map(|(at, message)| Some((at, without_block(message, block)?)));
        if let Some((at, message)) = found {
            sizes[at] = message_tokens(&message, count);
            request.messages[at] = message;
            let text =
                "The conversation is long: the summary of its beginning was left out.".to_owned();
            notices.push(Notice {
                code: "summary_left_out".to_owned(),
                text,
            });
        }
    }
    if needed(&sizes) > budget {
        return Err(DoesNotFit {
            needed: room.calibration.tokens(needed(&sizes)),
            window: room.window,
            reserve: room.reserve,
        });
    }
    let text = match (cleared, dropped) {
        (0, 0) => None,
        (0, dropped) => Some(format!(
            "The conversation is long: its {dropped} oldest messages were left out."
        )),
        (cleared, 0) => Some(format!(
            "The conversation is long: {cleared} old tool results were left out."
        )),
        (cleared, dropped) => Some(format!(
            "The conversation is long: {cleared} old tool results and its {dropped} oldest messages were left out."
        )),
    };
    notices.extend(text.map(|text| Notice {
        code: "context_trimmed".to_owned(),
        text,
    }));
    Ok(Fitted {
        counted: needed(&sizes),
        request,
        notices,
        is_shortened: true,
    })
}

/// Whether the first words of the person among these begin with a summary.
fn begins_with(messages: &[Message], block: &str) -> bool {
    let first = messages.iter().find(|message| message.role() == Role::User);
    first.is_some_and(|message| message.text().starts_with(block))
}

/// What the parts of a request take, as they are counted here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parts {
    /// The instruction.
    pub instruction: u32,
    /// The tools and the schema of the answer.
    pub tools: u32,
    /// What stands for old turns.
    pub summary: u32,
    /// What was said, and the calls.
    pub history: u32,
    /// What tools answered.
    pub results: u32,
}

/// What the parts of a request take. `summary`: what stands for old turns in it.
#[must_use]
pub fn parts_of(
    request: &GenerateRequest,
    summary: Option<&str>,
    count: &dyn Fn(&str) -> u32,
) -> Parts {
    let mut parts = Parts {
        tools: tools_tokens(request, count),
        ..Parts::default()
    };
    for message in &request.messages {
        let size = message_tokens(message, count);
        match message.role() {
            Role::System => parts.instruction = parts.instruction.saturating_add(size),
            Role::Tool => parts.results = parts.results.saturating_add(size),
            Role::User | Role::Assistant => {
                let block = summary.filter(|block| {
                    message.role() == Role::User && message.text().starts_with(block)
                });
                let of_summary = block.map_or(0, count).min(size);
                parts.summary = parts.summary.saturating_add(of_summary);
                parts.history = parts.history.saturating_add(size - of_summary);
            }
        }
    }
    parts
}

/// What a message of an earlier turn takes, as it is shown in a request.
pub(super) fn shown_tokens(message: &Message, usable: u32, count: &dyn Fn(&str) -> u32) -> u32 {
    let size = message_tokens(message, count);
    let in_part = size > usable / LONG && message.tool_result().is_some();
    if in_part { usable / SHOWN } else { size }
}

/// A result with the middle left out, in so many tokens. `None`: it is no result, or cannot be
/// shortened.
fn in_part(
    message: &Message,
    tokens: u32,
    can_read_on: bool,
    count: &dyn Fn(&str) -> u32,
) -> Option<Message> {
    let (call_id, name, result) = message.tool_result()?;
    let whole = match (result.data.as_deref(), &result.error) {
        (Some(Value::String(text)), _) | (None, Some(text)) => Cow::Borrowed(text.as_str()),
        (Some(data), _) => Cow::Owned(data.to_string()),
        (None, None) => return None,
    };
    let size = message_tokens(message, count).max(1);
    // In proportion, then less until it fits: text is not equally dense everywhere.
    let mut shown =
        usize::try_from(u64::from(tokens) * whole.len() as u64 / u64::from(size)).unwrap_or(0);
    let chars = whole.chars().count();
    while shown > 0 {
        let (begun, rest) = whole.split_at(whole.floor_char_boundary(shown - shown / 4));
        let (_, ended) =
            rest.split_at(rest.ceil_char_boundary(rest.len().saturating_sub(shown / 4)));
        let head = begun.chars().count();
        let how = match can_read_on {
            true => format!(
                "; {READ_RESULT} with call {:?} and from {head} reads on",
                call_id.as_str()
            ),
            false => String::new(),
        };
        let left_out = chars - head - ended.chars().count();
        let part = format!(
            "{begun}\n[... {left_out} of {chars} characters are left out here{how} ...]\n{ended}"
        );
        let result = match result.success {
            true => ToolResult {
                data: Some(Value::String(part).into()),
                success: true,
                error: None,
                verbatim: result.verbatim,
            },
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

/// The text of a result that was shown in part, in which [`READ_RESULT`] counts: a string as it is,
/// all else as JSON.
#[must_use]
pub fn text_of(data: &Value) -> String {
    data.as_str()
        .map_or_else(|| data.to_string(), str::to_owned)
}

fn in_part_notice(message: &Message, tokens: u32) -> Notice {
    let name = message.tool_result().map_or("a tool", |(_, name, _)| name);
    let text = format!(
        "The result of {name} is long (about {tokens} tokens): the model was shown its beginning and its end. The whole is in the log."
    );
    Notice {
        code: "result_in_part".to_owned(),
        text,
    }
}

/// What a request costs to read, in tokens as `count` counts them.
#[must_use]
pub fn request_tokens(request: &GenerateRequest, count: &dyn Fn(&str) -> u32) -> u32 {
    let messages = request
        .messages
        .iter()
        .map(|message| message_tokens(message, count));
    messages.fold(tools_tokens(request, count), u32::saturating_add)
}

fn clear_result(message: &Message) -> Option<Message> {
    let (call_id, name, _) = message.tool_result()?;
    let result = ToolResult::ok(json!(
        "left out: the conversation is long; call the tool again if it is needed"
    ));
    Message::tool(call_id.clone(), name, result).ok()
}

fn tools_tokens(request: &GenerateRequest, count: &dyn Fn(&str) -> u32) -> u32 {
    let schema = request
        .response_schema
        .as_ref()
        .map_or(0, |schema| count(&schema.to_string()));
    let tools = request.tools.iter().zip(request.tools.parameter_texts());
    tools.fold(schema, |sum, (tool, parameters)| {
        sum.saturating_add(count(&tool.description))
            .saturating_add(count(parameters))
            .saturating_add(8)
    })
}

/// Long texts are counted where they are, without the JSON around them.
fn result_tokens(
    result: &ToolResult,
    json: impl FnOnce() -> u32,
    count: &dyn Fn(&str) -> u32,
) -> u32 {
    match result.data.as_deref() {
        Some(Value::String(text)) => count(text).saturating_add(RESULT_FRAME_TOKENS),
        _ => json(),
    }
}

/// What a message takes of a request, in tokens as `count` counts them: every part; a picture
/// counts as much as one can cost, and what nobody can read nothing.
#[must_use]
pub fn message_tokens(message: &Message, count: &dyn Fn(&str) -> u32) -> u32 {
    message
        .parts()
        .iter()
        .enumerate()
        .fold(TOKENS_PER_MESSAGE, |sum, (at, part)| {
            let json = || count(message.json_text(at));
            let size = match &part.content {
                Content::Text { text } | Content::Thinking { text } | Content::Refusal { text } => {
                    count(text)
                }
                Content::ToolCall(call) => count(&call.name).saturating_add(json()),
                Content::ToolResult { result, .. } => result_tokens(result, json, count),
                Content::Image { .. } => IMAGE_TOKENS,
                Content::Opaque { .. } => 0,
            };
            sum.saturating_add(size)
        })
}
