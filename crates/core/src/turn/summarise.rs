//! Summaries of old turns: the choice of turns, the request to the model, and the use of its
//! answer. Waiting for the answer is elsewhere.

use serde_json::{Value, json};

use super::Turn;
use super::context_window::{shown_tokens, total};
use crate::decision::Notice;
use crate::event::Event;
use crate::message::{Content, Message, Role};
use crate::model::{FinishReason, GenerateRequest, GenerateResponse, GenerationConfig, MaxTokens};
use crate::recall_block;
use crate::summary::{Summary, TurnHistory, unmarked};
use crate::words;

/// Maximum size of a summary, as a fraction (1/8) of the usable window.
const PART: u32 = 8;
/// Minimum size of a useful summary, in tokens.
const TOKENS_MIN: u32 = 48;
/// Lengths to which messages are truncated for the summarising model, in characters: the first with
/// which everything fits.
const SHOWN: [usize; 7] = [16_000, 8_000, 4_000, 2_000, 1_000, 500, 200];
/// Name of the tag around the conversation in the request.
const MARK: &str = "conversation";
/// Name of the tag around the person's focus.
const FOCUS_MARK: &str = "focus";
/// Maximum number of characters for each token of a summary; a longer answer is truncated.
const CHARS_PER_TOKEN: usize = 8;

/// A plan to summarise old turns.
#[derive(Debug, Clone, PartialEq)]
pub struct Summarise {
    /// Number of messages of the history, from the beginning, that the summary will replace.
    pub summarized_at: usize,
    /// Number of those that no earlier summary replaces.
    pub messages: usize,
    /// Current size of these messages and the earlier summary, in tokens.
    pub counted: u32,
    /// Maximum size of the summary, in tokens.
    pub tokens_max: u32,
    /// The earlier summary and the messages as JSON lines, as the summarising model reads them.
    lines: Vec<Value>,
    /// True if the first line is an earlier summary.
    has_earlier: bool,
    /// True if the messages are in no request any more, so that a summary need not be shorter.
    is_left_out: bool,
}

/// The reason for which an answer is not a summary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsummarised {
    /// The model refused, or the provider filtered the answer.
    #[error("the answer was filtered")]
    Filtered,
    /// The answer has no text.
    #[error("there are no words in the answer")]
    Empty,
    /// The summary is not shorter than what it replaces.
    #[error("the summary takes {after} tokens, and what it stands for {before}")]
    NotShorter {
        /// Size of the replaced messages, in tokens.
        before: u32,
        /// Size of the summary, in tokens.
        after: u32,
    },
}

impl Summarise {
    /// Plans a summary of whole turns, the oldest first: of the first `left_out` messages, which
    /// requests do not contain any more, and of others until at most `keep` tokens of the history
    /// are left; 0: all finished turns. Returns `None` if nothing is gained.
    #[must_use]
    pub fn plan(
        recalled: &TurnHistory,
        left_out: usize,
        usable: u32,
        keep: u32,
        count: &dyn Fn(&str) -> u32,
    ) -> Option<Self> {
        let tokens_max = (usable / PART).min(crate::limits::SUMMARY_TOKENS_MAX);
        // A window this small has no space for a summary that says anything.
        if tokens_max < TOKENS_MIN || recalled.messages.is_empty() {
            return None;
        }
        let sizes: Vec<u32> = recalled
            .messages
            .iter()
            .map(|message| shown_tokens(message, usable, count))
            .collect();
        let sum = |sizes: &[u32]| total(sizes.iter().copied());
        // A cut is where a message of the person begins, so that no call is parted from its result.
        let begins = |at: &usize| {
            recalled
                .messages
                .get(*at)
                .is_none_or(|next| next.role() == Role::User)
        };
        let cut = (left_out..=sizes.len())
            .filter(begins)
            .find(|at| sum(&sizes[*at..]) <= keep)?;
        if cut == 0 {
            return None;
        }
        let mut lines = Vec::new();
        let mut counted = sum(&sizes[..cut]);
        if let Some(earlier) = &recalled.summary {
            counted = counted.saturating_add(count(&earlier.block()));
            lines.push(json!({ "summary_of_what_came_before": earlier.text }));
        }
        lines.extend(recalled.messages[..cut].iter().flat_map(lines_of));
        Some(Self {
            summarized_at: recalled.from + cut,
            messages: cut,
            counted,
            tokens_max,
            lines,
            has_earlier: recalled.summary.is_some(),
            is_left_out: left_out > 0,
        })
    }

    /// Returns the request for the summary, of at most `within` tokens. If it does not fit,
    /// messages are truncated in the middle, and last the oldest are left out.
    #[must_use]
    pub fn request(
        &self,
        prompt: &str,
        focus: Option<&str>,
        within: u32,
        config: &GenerationConfig,
        count: &dyn Fn(&str) -> u32,
    ) -> GenerateRequest {
        let instruction = prompt.replace("{{words}}", &(self.tokens_max / 2).to_string());
        let focus = focus.map(str::trim).filter(|focus| !focus.is_empty());
        let focus = focus.map_or_else(String::new, |focus| {
            let focus = unmarked(focus, FOCUS_MARK);
            format!("\n<{FOCUS_MARK}>\n{focus}\n</{FOCUS_MARK}>")
        });
        let around = count(&instruction)
            .saturating_add(count(&focus))
            .saturating_add(64);
        let capacity = within.saturating_sub(around);
        // It is the only trace of the turns it stands for, so it stays whole.
        let (earlier, messages) = self.lines.split_at(usize::from(self.has_earlier));
        let (mut lines, mut size) = (Vec::new(), 0);
        for chars in SHOWN {
            let shown = messages.iter().map(|line| shown_line(line, chars));
            lines = earlier.iter().map(Value::to_string).chain(shown).collect();
            size = total(lines.iter().map(|line| count(line)));
            if size <= capacity {
                break;
            }
        }
        let first = earlier.len();
        let gone = lines[first..]
            .iter()
            .take_while(|line| {
                let over = size > capacity;
                size = size.saturating_sub(if over { count(line) } else { 0 });
                over
            })
            .count();
        lines.drain(first..first + gone);
        let text = format!(
            "<{MARK}>\n{}\n</{MARK}>{focus}\nWrite the summary.",
            unmarked(&lines.join("\n"), MARK)
        );
        let messages = [Message::system(instruction), Message::user(text)];
        let max_tokens = MaxTokens::new(self.tokens_max).ok();
        GenerateRequest {
            config: GenerationConfig {
                max_tokens,
                ..config.clone()
            },
            ..GenerateRequest::new(messages.into_iter().flatten().collect())
        }
    }

    /// Returns the summary of an answer and its estimated size.
    ///
    /// # Errors
    ///
    /// [`Unsummarised`] if the answer cannot be used.
    pub fn read(
        &self,
        reply: &GenerateResponse,
        count: &dyn Fn(&str) -> u32,
    ) -> Result<(Summary, u32), Unsummarised> {
        if reply.finish == FinishReason::ContentFilter {
            return Err(Unsummarised::Filtered);
        }
        let text = reply.text();
        let most = usize::try_from(self.tokens_max)
            .unwrap_or(usize::MAX)
            .saturating_mul(CHARS_PER_TOKEN);
        // A model may ignore the length that it was asked for.
        let text = super::cut(text.trim(), most).unwrap_or_else(|| text.trim().to_owned());
        if text.is_empty() {
            return Err(Unsummarised::Empty);
        }
        let summary = Summary {
            summarized_at: self.summarized_at,
            text,
        };
        let after = count(&summary.block());
        if after >= self.counted && !self.is_left_out {
            return Err(Unsummarised::NotShorter {
                before: self.counted,
                after,
            });
        }
        Ok((summary, after))
    }
}

impl Turn {
    /// Applies the events about a summary before a model call of this turn. Returns true if the
    /// request changes.
    pub fn take_summary<'a>(
        &mut self,
        events: impl Iterator<Item = &'a Event>,
        before_call: usize,
    ) -> bool {
        for event in events {
            match event {
                Event::ConversationSummarized {
                    turn,
                    number,
                    summary,
                    before,
                    after,
                    usage,
                    cost,
                    ..
                } if *turn == Some(self.setup.turn)
                    && usize::try_from(*number) == Ok(before_call) =>
                {
                    let text = words::summarized(summary.summarized_at, *before, *after);
                    let notice = Notice::new("context_summarized", text);
                    self.on_summary(summary.clone(), *usage, *cost, notice);
                    return true;
                }
                Event::SummaryFailed {
                    turn,
                    number,
                    usage,
                    cost,
                    ..
                } if *turn == Some(self.setup.turn)
                    && usize::try_from(*number) == Ok(before_call) =>
                {
                    let notice = Notice::new("context_not_summarized", words::NOT_SUMMARIZED);
                    self.on_summary_failed(*usage, *cost, notice);
                    return false;
                }
                _ => {}
            }
        }
        false
    }
}

/// Returns a message as JSON lines, so that no text can pass for another message.
fn lines_of(message: &Message) -> Vec<Value> {
    let mut lines = Vec::new();
    let text = message.text();
    let who = match message.role() {
        Role::User => "person",
        Role::Assistant | Role::System | Role::Tool => "assistant",
    };
    // Recalled facts are attached again where they are needed; a summary would keep facts that were
    // forgotten since.
    let text = if message.role() == Role::User {
        recall_block::strip(&text)
    } else {
        &text
    };
    if !text.trim().is_empty() {
        lines.push(json!({ who: text }));
    }
    for part in message.parts() {
        match &part.content {
            Content::ToolCall(call) => {
                lines.push(json!({ "assistant_calls": call.name, "with": call.arguments }));
            }
            Content::ToolResult { name, result, .. } => {
                lines.push(json!({ "result_of": name, "is": result.to_text() }));
            }
            Content::Image { .. } => lines.push(json!({ who: "[a picture]" })),
            Content::Text { .. }
            | Content::Thinking { .. }
            | Content::Refusal { .. }
            | Content::Opaque { .. } => {}
        }
    }
    lines
}

/// Returns a line with its texts truncated to `chars` characters.
fn shown_line(line: &Value, chars: usize) -> String {
    let fields = line.as_object().into_iter().flatten();
    let shown = fields.map(|(key, value)| (key.clone(), shortened(value, chars)));
    Value::Object(shown.collect()).to_string()
}

/// Returns JSON with long texts truncated in the middle.
fn shortened(value: &Value, chars: usize) -> Value {
    let text = match value {
        Value::String(text) => std::borrow::Cow::Borrowed(text.as_str()),
        other => std::borrow::Cow::Owned(other.to_string()),
    };
    if text.len() <= chars {
        return value.clone();
    }
    let beginning = &text[..text.floor_char_boundary(chars * 2 / 3)];
    let end = &text[text.ceil_char_boundary(text.len() - chars / 3)..];
    Value::String(format!("{beginning} [... left out ...] {end}"))
}
