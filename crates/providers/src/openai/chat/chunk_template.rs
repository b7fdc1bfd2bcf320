//! [`ChunkTemplate`]: fast decoding of chunks that differ from the one before in a single text.
//!
//! A streamed answer is hundreds of chunks, each of which repeats a few hundred bytes around a word
//! or two. Once one of them was parsed, the next can usually be recognised by comparing bytes: what
//! is the same means the same, and only the text is decoded. Any other chunk is parsed as JSON,
//! independently of those before.

use std::borrow::Cow;
use std::ops::Range;

use super::wire::{Call, Choice, Function, LooseValue, Message, Reply};
use crate::json::string_length;

/// The field that holds the text that changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextField {
    Content,
    ReasoningContent,
    Reasoning,
    /// The arguments of the chunk's only call, whose index this is.
    Arguments(Option<u64>),
}

/// A chunk in which only one text is new, with the places of what changes.
#[derive(Debug)]
pub(super) struct ChunkTemplate {
    field: TextField,
    /// The text's range in the JSON, without its quotes.
    text: Range<usize>,
    /// The range of the random letters after it, with which OpenAI hides the text's length.
    padding: Option<Range<usize>>,
}

/// The new content of a chunk that matches the template.
pub(super) enum NewContent<'a> {
    /// Text of the answer, which most chunks have. Kept apart from messages, because it needs no
    /// further decoding.
    Text(Cow<'a, str>),
    Message(Message<'a>),
}

impl ChunkTemplate {
    /// Returns the template of a chunk; `None` if more than one text of it may change.
    pub(super) fn new(json: &str, reply: &Reply<'_>) -> Option<Self> {
        let Reply {
            model: _,
            choices,
            usage: None,
            x_groq: None,
            error: None,
            obfuscation,
        } = reply
        else {
            return None;
        };
        let [
            choice @ Choice {
                index: _,
                delta: Some(delta),
                message: None,
                finish_reason: None,
                usage: None,
                error: None,
            },
        ] = choices.as_deref()?
        else {
            return None;
        };
        if !choice.is_first() {
            return None;
        }
        let (field, text) = text_field(delta)?;
        let text = range_in(json, text)?;
        let padding = match obfuscation {
            Some(padding) => {
                Some(range_in(json, padding).filter(|padding| padding.start > text.end)?)
            }
            None => None,
        };
        Some(Self {
            field,
            text,
            padding,
        })
    }

    /// Decodes `json` if it has this template, and moves the ranges to where they are in `json`.
    /// `last` is the chunk before, to which the ranges belong. `None` if anything else differs.
    pub(super) fn decode<'j>(&mut self, last: &str, json: &'j str) -> Option<NewContent<'j>> {
        let begins = |json: &'j str, part: Range<usize>| json.strip_prefix(last.get(part)?);
        let behind = begins(json, 0..self.text.start)?;
        let length = string_length(behind.as_bytes())?;
        let (start, end) = (self.text.start, self.text.start + length);
        let text = json.get(start..end)?;
        let rest = json.get(end..)?;
        let padding = match self.padding.clone() {
            None if rest == last.get(self.text.end..)? => None,
            None => return None,
            Some(padding) => {
                let behind = begins(rest, self.text.end..padding.start)?;
                let length = string_length(behind.as_bytes())?;
                if behind.get(length..)? != last.get(padding.end..)? {
                    return None;
                }
                // The padding moves with the length of the text before it.
                let start = json.len() - behind.len();
                // Its letters do not matter, but they have to be valid JSON.
                (!behind.get(..length)?.contains('\\')).then_some(Some(start..start + length))?
            }
        };
        // Without an escape the JSON text is the text itself.
        let text = match text.contains('\\') {
            false => Cow::Borrowed(text),
            true => Cow::Owned(serde_json::from_str(json.get(start - 1..=end)?).ok()?),
        };
        (self.text, self.padding) = (start..end, padding);
        Some(match self.field {
            TextField::Content => NewContent::Text(text),
            field => NewContent::Message(field.message(LooseValue::Text(text))),
        })
    }
}

impl TextField {
    /// Returns a message with a text in this field and nothing else.
    fn message(self, text: LooseValue<'_>) -> Message<'_> {
        let text = Some(text);
        match self {
            Self::Content => Message {
                content: text,
                ..Message::default()
            },
            Self::ReasoningContent => Message {
                reasoning_content: text,
                ..Message::default()
            },
            Self::Reasoning => Message {
                reasoning: text,
                ..Message::default()
            },
            Self::Arguments(index) => {
                let function = Some(Function {
                    name: None,
                    arguments: text,
                });
                let call = Call {
                    index: index.map(LooseValue::Count),
                    function,
                    ..Call::default()
                };
                Message {
                    tool_calls: Some(vec![call]),
                    ..Message::default()
                }
            }
        }
    }
}

/// Returns the only text of a message and its field; `None` if the message has anything else.
fn text_field<'m, 'a>(message: &'m Message<'a>) -> Option<(TextField, &'m LooseValue<'a>)> {
    let Message {
        content,
        refusal: None,
        reasoning_content,
        reasoning,
        reasoning_details: None,
        images: None,
        executed_tools: None,
        tool_calls,
        function_call: None,
    } = message
    else {
        return None;
    };
    match (content, reasoning_content, reasoning, tool_calls.as_deref()) {
        (Some(text), None, None, None) => Some((TextField::Content, text)),
        (None, Some(text), None, None) => Some((TextField::ReasoningContent, text)),
        (None, None, Some(text), None) => Some((TextField::Reasoning, text)),
        (
            None,
            None,
            None,
            Some(
                [
                    Call {
                        index,
                        id: None,
                        function:
                            Some(Function {
                                name: None,
                                arguments: Some(text),
                            }),
                        custom: None,
                        extra_content: None,
                    },
                ],
            ),
        ) => match index {
            None => Some((TextField::Arguments(None), text)),
            Some(index) => Some((TextField::Arguments(Some(index.as_u64()?)), text)),
        },
        _ => None,
    }
}

/// Returns the range of a text in the JSON that it was parsed from; `None` if it was not borrowed
/// from there, because it has escapes.
fn range_in(json: &str, text: &LooseValue<'_>) -> Option<Range<usize>> {
    let LooseValue::Text(Cow::Borrowed(text)) = text else {
        return None;
    };
    // A borrowed text lies in the JSON, so its address tells its place without a search.
    let start = text.as_ptr().addr().checked_sub(json.as_ptr().addr())?;
    let end = start.checked_add(text.len())?;
    let is_there = json
        .get(start.checked_sub(1)?..=end)?
        .strip_prefix('"')?
        .strip_suffix('"')?
        == *text;
    is_there.then_some(start..end)
}
