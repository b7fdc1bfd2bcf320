//! Pieces of a stream that say the same but for one text.
//!
//! A streamed answer is hundreds of events, each of which repeats a few hundred bytes around a word
//! or two. Once one of them was read, the next is usually told by comparing: what is the same means
//! the same, and only the text is read. Anything else is read as JSON, as if nothing had been
//! known.

use std::borrow::Cow;
use std::ops::Range;

use super::wire::{Call, Choice, Choices, Function, Loose, Message, Reply};
use crate::json::string_length;

/// The place of the text that differs from one piece to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Content,
    ReasoningContent,
    Reasoning,
    /// The arguments of the one call of the piece, and its number.
    Arguments(Option<u64>),
}

/// The form of a piece, in which nothing but one text says anything new.
#[derive(Debug)]
pub(super) struct Form {
    place: Place,
    /// Place of the text in the JSON, without its quotes.
    text: Range<usize>,
    /// Behind it, the random letters with which OpenAI hides how long the text is.
    padding: Option<Range<usize>>,
}

/// The part of a piece that its form does not say.
pub(super) enum Beyond<'a> {
    /// Words, which are most of most answers.
    Words(Cow<'a, str>),
    Message(Message<'a>),
}

impl Form {
    /// Returns the form of a piece. `None`: the next one has to be read as a whole.
    pub(super) fn of(json: &str, reply: &Reply<'_>) -> Option<Self> {
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
        let Choices { first, count: 1 } = choices.as_ref()? else {
            return None;
        };
        let Some(Choice {
            index: _,
            delta: Some(delta),
            message: None,
            finish_reason: None,
            usage: None,
            error: None,
        }) = first
        else {
            return None;
        };
        let (place, text) = place(delta)?;
        let text = within(json, text)?;
        let padding = match obfuscation {
            Some(padding) => {
                Some(within(json, padding).filter(|padding| padding.start > text.end)?)
            }
            None => None,
        };
        Some(Self {
            place,
            text,
            padding,
        })
    }

    /// Returns what `json` says beyond `last`, the piece that has this form and its places, and
    /// moves those to where they are in `json`. `None`: it has another form.
    pub(super) fn read<'j>(&mut self, last: &str, json: &'j str) -> Option<Beyond<'j>> {
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
                let start = json.len() - behind.len();
                // What it says does not matter, but it has to be JSON.
                (!behind.get(..length)?.contains('\\')).then_some(Some(start..start + length))?
            }
        };
        let text = match text.contains('\\') {
            false => Cow::Borrowed(text),
            true => Cow::Owned(serde_json::from_str(json.get(start - 1..=end)?).ok()?),
        };
        (self.text, self.padding) = (start..end, padding);
        Some(match self.place {
            Place::Content => Beyond::Words(text),
            place => Beyond::Message(place.message(Loose::Text(text))),
        })
    }
}

impl Place {
    /// A message with nothing but a text in this place.
    fn message(self, text: Loose<'_>) -> Message<'_> {
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
                    index: index.map(Loose::Count),
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

/// The only text of a message, if it has one that can differ.
fn place<'m, 'a>(message: &'m Message<'a>) -> Option<(Place, &'m Loose<'a>)> {
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
        (Some(text), None, None, None) => Some((Place::Content, text)),
        (None, Some(text), None, None) => Some((Place::ReasoningContent, text)),
        (None, None, Some(text), None) => Some((Place::Reasoning, text)),
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
            None => Some((Place::Arguments(None), text)),
            Some(index) => Some((Place::Arguments(Some(index.as_u64()?)), text)),
        },
        _ => None,
    }
}

/// Returns the place of a text in the JSON that it was read from. `None`: it is not there as it is.
fn within(json: &str, text: &Loose<'_>) -> Option<Range<usize>> {
    let Loose::Text(Cow::Borrowed(text)) = text else {
        return None;
    };
    let start = text.as_ptr().addr().checked_sub(json.as_ptr().addr())?;
    let end = start.checked_add(text.len())?;
    let is_there = json
        .get(start.checked_sub(1)?..=end)?
        .strip_prefix('"')?
        .strip_suffix('"')?
        == *text;
    is_there.then_some(start..end)
}
