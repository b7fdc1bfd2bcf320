//! Fitting requests into a context window: long results are truncated, old results are removed,
//! then the oldest turns, and last results of the turn itself are truncated. Everything that is
//! dropped is announced; a request that cannot be made to fit is a typed error.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::calibration::Calibration;
use crate::decision::Notice;
use crate::message::{Content, Message, Role};
use crate::model::GenerateRequest;
use crate::summary::{put_block, without_block};
use crate::tool::ToolResult;
use crate::trim::turn_after;

/// Estimated size of the JSON around the text of a result, in tokens.
const RESULT_FRAME_TOKENS: u32 = 8;
/// Estimated size of a tool's name and of the JSON around its declaration, in tokens.
const DECLARATION_FRAME_TOKENS: u32 = 8;
/// Name of the tool with which a model reads the rest of a truncated result, if the agent has it.
pub const READ_RESULT: &str = "read_result";

/// Size below which removing a result is not worthwhile, in tokens.
const RESULT_TOKENS_KEPT: u32 = 64;
/// A result of more than this fraction of the usable window is truncated, at the same place in
/// every request, so that requests begin with the same bytes.
const LONG: u32 = 2;
/// Fraction of the usable window that is left of a truncated result.
const SHOWN: u32 = 4;
/// Size that is left of a result of the turn itself when nothing else can be dropped, in tokens.
const SHOWN_AT_LEAST: u32 = 32;
/// Declarations of tools that take more than this fraction of the window are a reason why a request
/// does not fit.
const TOOLS_SHARE: u32 = 4;
/// Overhead of a message, in tokens: role marks and separators. Source: the providers' cookbooks
/// use 3 to 4.
const TOKENS_PER_MESSAGE: u32 = 4;
/// Upper bound of the size of an image, in tokens. Source: the providers' guides on vision; a
/// full-size image takes about 1,600 tokens with Anthropic and 1,500 with OpenAI, and less with
/// Gemini (checked 2026-11).
const IMAGE_TOKENS: u32 = 2000;

/// The request cannot be made to fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "about {needed} tokens are needed and {window} fit, {reserve} of them reserved for the answer{}",
    about_tools(*.tools, *.window)
)]
pub struct DoesNotFit {
    /// Size of the smallest form of the request, in tokens.
    pub needed: u32,
    /// Context window of the model, in tokens.
    pub window: u32,
    /// Tokens that are reserved for the answer.
    pub reserve: u32,
    /// Size of the tools' declarations, in tokens.
    pub tools: u32,
}

/// Returns what is said about tools that are a reason why a request does not fit.
fn about_tools(tools: u32, window: u32) -> String {
    if tools < window / TOOLS_SHARE {
        return String::new();
    }
    format!("; {tools} of the needed ones declare the tools")
}

/// Estimates the tokens of a text: UTF-8 bytes / 4, rounded up. For models without a tokenizer of
/// their own.
///
/// # Examples
///
/// ```
/// use adjutant_core::turn::estimate_tokens;
///
/// assert_eq!(estimate_tokens("Is it raining?"), 4);
/// ```
#[must_use]
pub fn estimate_tokens(text: &str) -> u32 {
    u32::try_from(text.len().div_ceil(4)).unwrap_or(u32::MAX)
}

/// The capacity of a request: context window, reserve for the answer, and what must stay.
#[derive(Debug, Clone, Default)]
pub struct WindowCapacity {
    /// Context window of the model, in its tokens.
    window: u32,
    /// Tokens that are reserved for the answer.
    reserve: u32,
    calibration: Calibration,
    /// Summary in front of the person's first message, which is dropped last.
    summary: Option<String>,
    /// Number of messages at the end that belong to the turn itself.
    own: usize,
}

impl WindowCapacity {
    /// Returns the capacity of a context window without the reserve for the answer, which is at
    /// most half of a small window.
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

    /// Sets the summary of the request and the number of messages that belong to the turn itself.
    #[must_use]
    pub fn for_turn(self, summary: Option<String>, own: usize) -> Self {
        Self {
            summary,
            own,
            ..self
        }
    }

    /// Context window of the model, in its tokens.
    #[must_use]
    pub fn window(&self) -> u32 {
        self.window
    }

    /// Returns the tokens that are reserved for the answer.
    #[must_use]
    pub fn reserve(&self) -> u32 {
        self.reserve
    }

    /// Returns the largest size of a request, in the model's tokens.
    #[must_use]
    pub fn usable(&self) -> u32 {
        self.window.saturating_sub(self.reserve)
    }

    /// Returns the calibration of estimated sizes.
    #[must_use]
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// Returns the largest size of a request, as it is estimated here.
    fn budget(&self) -> u32 {
        self.calibration.counted_within(self.usable())
    }
}

/// A request that fits into the context window.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// Request to send to the model.
    pub request: GenerateRequest,
    /// Notices about what was dropped or truncated.
    pub notices: Vec<Notice>,
    /// Estimated size; [`Calibration::tokens`] converts it to the model's tokens.
    pub counted: u32,
    /// True if something was dropped or truncated.
    pub is_shortened: bool,
}

/// Shrinks a request until it fits, and reports what was dropped. `count` returns the tokens of a
/// text.
///
/// The instruction and the messages and calls of the turn itself stay. Each step removes something,
/// so the function terminates.
///
/// # Errors
///
/// [`DoesNotFit`] if the instruction, the tools and the turn itself without its results are too
/// long.
pub fn fit(
    mut request: GenerateRequest,
    capacity: &WindowCapacity,
    count: &dyn Fn(&str) -> u32,
) -> Result<Fitted, DoesNotFit> {
    let budget = capacity.budget();
    // Tools and schema stay, whatever happens to the messages.
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
    let needed = |sizes: &[u32]| total(sizes.iter().copied()).saturating_add(fixed);
    let first = usize::from(
        request
            .messages
            .first()
            .is_some_and(|message| message.role() == Role::System),
    );
    let last_turn = request
        .messages
        .len()
        .saturating_sub(capacity.own)
        .max(first);
    let mut notices = Vec::new();
    // By the window alone, not by what was learned since: the same part in every request.
    let usable = capacity.usable();
    for (at, (message, size)) in request.messages.iter_mut().zip(&mut sizes).enumerate() {
        if *size > usable / LONG
            && let Some(part) = in_part(message, usable / SHOWN, can_read_on, count)
        {
            // An earlier turn announced what was truncated of its own results.
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

    // Old results first: they are the largest part, and a tool can be called again, while what was
    // said is gone with its turn.
    let mut cleared = 0_usize;
    for at in 0..last_turn {
        if needed(&sizes) <= budget {
            break;
        }
        // The text that says what was left out takes space too.
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
    // Whole turns: providers reject a call without its result, and a result without its call.
    while needed(&sizes) > budget && last_turn > first {
        let next = turn_after(&request.messages, first)
            .unwrap_or(last_turn)
            .min(last_turn);
        let block = capacity
            .summary
            .as_deref()
            .filter(|block| begins_with(&request.messages[first..next], block));
        dropped += next - first;
        request.messages.drain(first..next);
        sizes.drain(first..next);
        last_turn -= next - first;
        // The summary stood in the turn that is dropped now. It stands for more than that turn, so
        // the next one carries it.
        if let Some(block) = block {
            put_block(&mut request.messages[first..], block);
            if let (Some(message), Some(size)) = (request.messages.get(first), sizes.get_mut(first))
            {
                *size = message_tokens(message, count);
            }
        }
    }

    // Only the turn itself is left: its oldest results are truncated first.
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
        && let Some(block) = &capacity.summary
    {
        // Last of all, because it stands for everything that was dropped before.
        let found = request.messages.iter().enumerate();
        let found = found
            .skip(first)
            .find_map(|(at, message)| Some((at, without_block(message, block)?)));
        if let Some((at, message)) = found {
            sizes[at] = message_tokens(&message, count);
            request.messages[at] = message;
            let text = "The conversation is long: the summary of its beginning was left out.";
            notices.push(Notice::new("summary_left_out", text));
        }
    }
    if needed(&sizes) > budget {
        return Err(DoesNotFit {
            needed: capacity.calibration.tokens(needed(&sizes)),
            window: capacity.window,
            reserve: capacity.reserve,
            tools: capacity.calibration.tokens(fixed),
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
    notices.extend(text.map(|text| Notice::new("context_trimmed", text)));
    Ok(Fitted {
        counted: needed(&sizes),
        request,
        notices,
        is_shortened: true,
    })
}

/// Returns true if the person's first message begins with a summary.
fn begins_with(messages: &[Message], block: &str) -> bool {
    let first = messages.iter().find(|message| message.role() == Role::User);
    first.is_some_and(|message| message.text().starts_with(block))
}

/// Estimated sizes of the parts of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parts {
    /// Size of the instruction, in tokens.
    pub instruction: u32,
    /// Size of the tools and of the answer's schema, in tokens.
    pub tools: u32,
    /// Size of the summary of old turns, in tokens.
    pub summary: u32,
    /// Size of messages and calls, in tokens.
    pub history: u32,
    /// Size of the results of tools, in tokens.
    pub results: u32,
}

/// Returns the estimated sizes of the parts of a request with this summary.
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

/// Returns the size of a message of an earlier turn in the form in which requests contain it.
pub(super) fn shown_tokens(message: &Message, usable: u32, count: &dyn Fn(&str) -> u32) -> u32 {
    let size = message_tokens(message, count);
    // As `fit` shortens results in every request: a summary is planned with the sizes that are
    // sent.
    let in_part = size > usable / LONG && message.tool_result().is_some();
    if in_part { usable / SHOWN } else { size }
}

/// Returns a result with its middle left out, of about `tokens` tokens. `None`: it is not a result,
/// or cannot be shortened.
fn in_part(
    message: &Message,
    tokens: u32,
    can_read_on: bool,
    count: &dyn Fn(&str) -> u32,
) -> Option<Message> {
    let (call_id, name, result) = message.tool_result()?;
    // As `text_of` writes it: `read_result` counts its positions in that text.
    let whole = match (result.data.as_deref(), &result.error) {
        (Some(Value::String(text)), _) | (None, Some(text)) => Cow::Borrowed(text.as_str()),
        (Some(data), _) => Cow::Owned(data.to_string()),
        (None, None) => return None,
    };
    let size = message_tokens(message, count).max(1);
    // Proportionally first, then less until it fits: text is not equally dense everywhere.
    let mut shown =
        usize::try_from(u64::from(tokens) * whole.len() as u64 / u64::from(size)).unwrap_or(0);
    // In characters, as `read_result` counts.
    let chars = whole.chars().count();
    while shown > 0 {
        let (beginning, rest) = whole.split_at(whole.floor_char_boundary(shown - shown / 4));
        let (_, end) = rest.split_at(rest.ceil_char_boundary(rest.len().saturating_sub(shown / 4)));
        let head = beginning.chars().count();
        let how = match can_read_on {
            true => format!(
                "; {READ_RESULT} with call {:?} and from {head} reads on",
                call_id.as_str()
            ),
            false => String::new(),
        };
        let left_out = chars - head - end.chars().count();
        let part = format!(
            "{beginning}\n[... {left_out} of {chars} characters are left out here{how} ...]\n{end}"
        );
        let result = match result.success {
            true => ToolResult {
                data: Some(Value::String(part).into()),
                success: true,
                error: None,
                verbatim: result.verbatim,
                note: result.note.clone(),
                from_others: result.from_others,
            },
            false => ToolResult::failed(part).marked(result.from_others),
        };
        let message = Message::tool(call_id.clone(), name, result).ok()?;
        if message_tokens(&message, count) <= tokens {
            return Some(message);
        }
        shown = shown * 3 / 4;
    }
    clear_result(message)
}

/// Returns the text of a truncated result in which [`READ_RESULT`] counts positions: a string
/// unchanged, everything else as JSON.
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
    Notice::new("result_in_part", text)
}

/// Returns the size of a request in tokens, as `count` counts them.
#[must_use]
pub fn request_tokens(request: &GenerateRequest, count: &dyn Fn(&str) -> u32) -> u32 {
    let messages = request.messages.iter();
    total(messages.map(|message| message_tokens(message, count)))
        .saturating_add(tools_tokens(request, count))
}

/// Returns the sum of sizes, or the maximum if it is beyond that.
pub(super) fn total(sizes: impl Iterator<Item = u32>) -> u32 {
    sizes.fold(0, u32::saturating_add)
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
        sum.saturating_add(declaration_tokens(&tool.description, parameters, count))
    })
}

/// Returns the size of a tool's declaration in tokens, as `count` counts them. `parameters`: the
/// JSON Schema of its parameters as text.
#[must_use]
pub fn declaration_tokens(description: &str, parameters: &str, count: &dyn Fn(&str) -> u32) -> u32 {
    count(description)
        .saturating_add(count(parameters))
        .saturating_add(DECLARATION_FRAME_TOKENS)
}

/// Returns the size of a message in tokens, as `count` counts them. An image counts as the most it
/// can cost, opaque state as nothing.
#[must_use]
pub fn message_tokens(message: &Message, count: &dyn Fn(&str) -> u32) -> u32 {
    let parts = message.parts().iter().enumerate().map(|(at, part)| {
        let json = || count(message.json_text(at));
        match &part.content {
            Content::Text { text } | Content::Thinking { text } | Content::Refusal { text } => {
                count(text)
            }
            Content::ToolCall(call) => count(&call.name).saturating_add(json()),
            // A long text is counted directly, without building the JSON around it.
            Content::ToolResult { result, .. } => match result.data.as_deref() {
                Some(Value::String(text)) => count(text).saturating_add(RESULT_FRAME_TOKENS),
                _ => json(),
            },
            Content::Image { .. } => IMAGE_TOKENS,
            Content::Opaque { .. } => 0,
        }
    });
    total(parts).saturating_add(TOKENS_PER_MESSAGE)
}
