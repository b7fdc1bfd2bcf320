//! Tells what a text quotes from what it asks for.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::wanted;

/// A text, taken apart.
#[derive(Debug)]
pub(super) struct Text {
    /// The words that ask for something, without those that are quoted.
    pub(super) order: String,
    pub(super) quoted: Quoted,
}

/// The manner in which a conversation is quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoted {
    /// As programs do: between tags, or as a list of JSON.
    Marked,
    /// As people do too: by who speaks, or behind a heading.
    Announced,
    Nothing,
}

/// Words for a conversation or a part of one.
const CONVERSATION: &str = "conversation|chat|messages?|dialog(?:ue)?|transcript|exchange|history|discussion|\
                            chatverlauf|gesprächsverlauf|verlauf|gespräch|unterhaltung|nachrichten|nachricht|protokoll";
/// Words for those who speak in one.
const SPEAKERS: &str = "user|assistant|human|ai|bot|model|agent|chatgpt|customer|client|nutzer(?:in)?|benutzer(?:in)?|\
                        anwender(?:in)?|kunde|kundin|mensch|ki|assistent(?:in)?|assistenz";

struct Signs {
    /// The name of a tag, and whether it ends something.
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
static SIGNS: LazyLock<Signs> = LazyLock::new(|| {
    let regex = |pattern: &str| Regex::new(pattern).expect("a pattern of our own");
    Signs {
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

impl Text {
    pub(super) fn of(text: &str) -> Self {
        let (outside, marked) = without_elements(text);
        if marked {
            return Self {
                order: outside,
                quoted: Quoted::Marked,
            };
        }
        if let Some(first) = SIGNS.json.find(&outside) {
            return Self {
                order: around(&outside, first.start(), last_paragraph(&outside)),
                quoted: Quoted::Marked,
            };
        }
        if let Some(first) = SIGNS.speaker.find(&outside) {
            // A heading belongs to what it announces, and so does what stands between the two.
            let heading = SIGNS
                .heading
                .find(&outside)
                .filter(|heading| heading.end() <= first.start());
            let begin = heading.map_or(first.start(), |heading| heading.end());
            return Self {
                order: around(&outside, begin, behind_speakers(&outside)),
                quoted: Quoted::Announced,
            };
        }
        if let Some(heading) = SIGNS.heading.find(&outside) {
            return Self {
                order: around(&outside, heading.end(), last_paragraph(&outside)),
                quoted: Quoted::Announced,
            };
        }
        Self {
            order: outside,
            quoted: Quoted::Nothing,
        }
    }
}

/// Returns the text before a quotation, if that says what is wanted; else also what stands behind
/// it. Words of the quotation could be taken for an order, so what may be one is left out where
/// there is one already.
fn around(text: &str, begin: usize, behind: usize) -> String {
    let before = text.get(..begin).unwrap_or_default();
    if wanted::names_something(before) {
        return before.to_owned();
    }
    let behind = text.get(behind.max(begin)..).unwrap_or_default();
    format!("{before}\n{behind}")
}

/// A tag in a text.
struct Tag {
    range: Range<usize>,
    name: String,
    is_end: bool,
    /// Between `<` and `>`: brackets stand for other things too.
    is_angled: bool,
    of_conversation: bool,
}

impl Tag {
    /// `None`: it is only spoken of, between backticks.
    fn of(text: &str, found: &Captures<'_>) -> Option<Self> {
        let whole = found.get(0)?;
        let name = found.get(2)?.as_str().to_lowercase();
        let is_spoken_of = text.get(..whole.start())?.ends_with('`');
        (!is_spoken_of).then(|| Self {
            range: whole.range(),
            is_end: found.get(1).is_some_and(|slash| !slash.is_empty()),
            is_angled: whole.as_str().starts_with('<'),
            of_conversation: SIGNS.named.is_match(&name),
            name,
        })
    }
}

/// Returns the place of the paragraph or, if there is one only, the line behind the last words of a
/// speaker.
fn behind_speakers(text: &str) -> usize {
    let last = SIGNS
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

/// Returns a text without what stands between tags, and whether any of those says that it holds a
/// conversation. A conversation that is not closed goes to the end of the text.
fn without_elements(text: &str) -> (String, bool) {
    let tags: Vec<Tag> = SIGNS
        .tag
        .captures_iter(text)
        .filter_map(|tag| Tag::of(text, &tag))
        .collect();
    // What is said in a conversation may have tags of its own, so it goes on to the last end of its
    // name; anything else to the next.
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
    // A conversation that an example's tags seem to hold is one all the same.
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
