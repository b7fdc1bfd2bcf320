//! Separation of a text's order from the conversation that it quotes.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::order;

/// A text, split into order and quotation.
#[derive(Debug)]
pub(super) struct SplitText {
    /// The text without the quotation.
    pub(super) order: String,
    pub(super) quotation: Quotation,
}

/// Form in which a conversation is quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotation {
    /// As programs quote: between tags, or as a JSON list.
    Marked,
    /// As people quote too: with names of speakers, or after a heading.
    Announced,
    /// No conversation is quoted.
    None,
}

/// Words for a conversation or a part of it, in English and German.
const CONVERSATION: &str = "conversation|chat|messages?|dialog(?:ue)?|transcript|exchange|history|discussion|\
                            chatverlauf|gesprächsverlauf|verlauf|gespräch|unterhaltung|nachrichten|nachricht|protokoll";
/// Words for the speakers of a conversation, in English and German.
const SPEAKERS: &str = "user|assistant|human|ai|bot|model|agent|chatgpt|customer|client|nutzer(?:in)?|benutzer(?:in)?|\
                        anwender(?:in)?|kunde|kundin|mensch|ki|assistent(?:in)?|assistenz";

struct Patterns {
    /// A tag: its slash, if it is a closing one, and its name.
    tag: Regex,
    named: Regex,
    json: Regex,
    speaker: Regex,
    heading: Regex,
}

#[expect(
    clippy::expect_used,
    reason = "patterns of our own; every test of this module compiles them"
)]
static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    let regex = |pattern: &str| Regex::new(pattern).expect("a pattern of our own");
    Patterns {
        tag: regex(r"[<\[](/?)(\p{L}[\p{L}\d_-]{0,40})[^<>\[\]\n]{0,80}[>\]]"),
        named: regex(&format!("(?i)^(?:{CONVERSATION})|(?:{CONVERSATION})$")),
        json: regex(r#"(?i)["']role["']\s*:\s*["'](?:user|assistant|system|human)["']"#),
        speaker: regex(&format!(
            r"(?im)^[\s>*_#\[(-]*(?:{SPEAKERS})[\s\d]{{0,4}}[*_\])]*\s*:"
        )),
        heading: regex(&format!(
            r#"(?im)^[^\n]*\b(?:{CONVERSATION})\b[^\n:]*:[*_]*[ \t]*(?:$|["'`“„«»])|^[#*=\-\s]+[^\n:]*\b(?:{CONVERSATION})\b[^\n:]*$"#
        )),
    }
});

impl SplitText {
    pub(super) fn parse(text: &str) -> Self {
        // From the clearest form of quotation to the vaguest.
        let (outside, marked) = without_elements(text);
        if marked {
            return Self {
                order: outside,
                quotation: Quotation::Marked,
            };
        }
        if let Some(first) = PATTERNS.json.find(&outside) {
            return Self {
                order: around(&outside, first.start(), last_paragraph(&outside)),
                quotation: Quotation::Marked,
            };
        }
        if let Some(first) = PATTERNS.speaker.find(&outside) {
            // The quotation starts with its heading, if it has one.
            let heading = PATTERNS
                .heading
                .find(&outside)
                .filter(|heading| heading.end() <= first.start());
            let begin = heading.map_or(first.start(), |heading| heading.end());
            return Self {
                order: around(&outside, begin, behind_speakers(&outside)),
                quotation: Quotation::Announced,
            };
        }
        if let Some(heading) = PATTERNS.heading.find(&outside) {
            return Self {
                order: around(&outside, heading.end(), last_paragraph(&outside)),
                quotation: Quotation::Announced,
            };
        }
        Self {
            order: outside,
            quotation: Quotation::None,
        }
    }
}

/// Returns the text before a quotation, and also the text after it unless the first already has an
/// order: the end of a quotation may be taken for one.
fn around(text: &str, begin: usize, behind: usize) -> String {
    let before = text.get(..begin).unwrap_or_default();
    if order::has_signs(before) {
        return before.to_owned();
    }
    let behind = text.get(behind.max(begin)..).unwrap_or_default();
    format!("{before}\n{behind}")
}

/// A tag in a text, such as `<chat_history>`.
struct Tag {
    range: Range<usize>,
    name: String,
    is_end: bool,
    /// True for `<` and `>`. Brackets have other uses too.
    is_angled: bool,
    of_conversation: bool,
}

impl Tag {
    /// Converts a match; `None` if the tag is only mentioned, between backticks.
    fn from_match(text: &str, found: &Captures<'_>) -> Option<Self> {
        let whole = found.get(0)?;
        let name = found.get(2)?.as_str().to_lowercase();
        let is_spoken_of = text.get(..whole.start())?.ends_with('`');
        (!is_spoken_of).then(|| Self {
            range: whole.range(),
            is_end: found.get(1).is_some_and(|slash| !slash.is_empty()),
            is_angled: whole.as_str().starts_with('<'),
            of_conversation: PATTERNS.named.is_match(&name),
            name,
        })
    }
}

/// Returns the start of the paragraph after the last speaker's words, or of the line if there is no
/// further paragraph.
fn behind_speakers(text: &str) -> usize {
    let last = PATTERNS
        .speaker
        .find_iter(text)
        .last()
        .map_or(0, |speaker| speaker.end());
    let rest = text.get(last..).unwrap_or_default();
    let end = rest
        .find("\n\n")
        .map(|paragraph| paragraph + 2)
        .or_else(|| rest.find('\n'));
    last + end.unwrap_or(rest.len())
}

fn last_paragraph(text: &str) -> usize {
    let text = text.trim_end();
    text.rfind("\n\n")
        .or_else(|| text.rfind('\n'))
        .map_or(text.len(), |line| line + 1)
}

/// Returns a text without the elements in it, and true if one of them is named as a conversation.
/// An unclosed conversation extends to the end of the text.
fn without_elements(text: &str) -> (String, bool) {
    let tags: Vec<Tag> = PATTERNS
        .tag
        .captures_iter(text)
        .filter_map(|tag| Tag::from_match(text, &tag))
        .collect();
    // A conversation may contain tags of its own name, so it extends to the last closing tag; other
    // elements extend to the next.
    let mut ends = HashMap::new();
    let elements = tags
        .iter()
        .rev()
        .filter_map(|tag| {
            if tag.is_end {
                if !tag.of_conversation || !ends.contains_key(&tag.name) {
                    ends.insert(&tag.name, tag.range.end);
                }
                return None;
            }
            let unclosed = (tag.of_conversation && tag.is_angled).then_some(text.len());
            let end = ends.get(&tag.name).copied().or(unclosed)?;
            (end > tag.range.end).then_some((tag.range.start..end, tag.of_conversation))
        })
        .collect::<Vec<_>>();
    // Also if it is inside of another element, such as an example.
    let marked = elements.iter().any(|(_, of_conversation)| *of_conversation);
    let mut cut: Vec<Range<usize>> = Vec::new();
    for (range, _) in elements.into_iter().rev() {
        match cut.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => cut.push(range),
        }
    }
    let (mut kept, mut at) = (String::new(), 0);
    for range in cut {
        kept.push_str(text.get(at..range.start).unwrap_or_default());
        kept.push(' ');
        at = range.end;
    }
    kept.push_str(text.get(at..).unwrap_or_default());
    (kept, marked)
}
