//! An entry of the daily log, and its position in the note.

use std::ops::Range;

use jiff::Zoned;

use crate::text::{insertion, line_below, on_one_line, splice, without_controls};
use crate::vault::markdown::{Block, BlockKind, Item, Outline, line_ending};
use crate::{MemoryError, VaultError};

/// Bound of an entry, in Unicode characters.
pub(crate) const ENTRY_CHARS_MAX: usize = 10_000;
/// Bound of the title of an entry, in Unicode characters.
const TITLE_CHARS_MAX: usize = 200;

/// An entry as it stands in the note, lines divided by `\n`: `- 14:05 activity`, or `- 14:05
/// **title**: activity`. Further lines are indented, so that any Markdown in them is a part of the
/// entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry(String);

impl Entry {
    /// # Errors
    /// [`MemoryError::Fact`] for an entry without text, or with too much.
    pub(crate) fn new(
        activity: &str,
        title: Option<&str>,
        time: &Zoned,
    ) -> Result<Self, MemoryError> {
        let activity = without_controls(activity);
        let activity = activity.trim();
        if activity.is_empty() {
            return Err(MemoryError::fact("an entry needs words"));
        }
        let chars = activity.chars().count();
        if chars > ENTRY_CHARS_MAX {
            return Err(MemoryError::fact(format!(
                "an entry has at most {ENTRY_CHARS_MAX} characters, this one has {chars}; write a note instead"
            )));
        }
        // It stands in bold, on one line.
        let title = title.map(|title| on_one_line(title).replace("**", ""));
        let title = title.filter(|title| !title.is_empty());
        if title
            .as_ref()
            .is_some_and(|title| title.chars().count() > TITLE_CHARS_MAX)
        {
            return Err(MemoryError::fact(format!(
                "a title has at most {TITLE_CHARS_MAX} characters"
            )));
        }
        let words = match title {
            Some(title) => format!("**{title}**: {activity}"),
            None => activity.to_owned(),
        };
        // A `%%` that nothing closes would hide the rest of the note.
        let words = if words.matches("%%").count() % 2 == 1 {
            words.replace("%%", "% %")
        } else {
            words
        };
        let mut lines = words.lines();
        let first = lines.next().unwrap_or_default();
        let mut text = format!("- {} {first}", time.strftime("%H:%M"));
        for line in lines {
            text.push('\n');
            if !line.trim().is_empty() {
                // Two spaces make the line a part of the item.
                text.push_str("  ");
                text.push_str(line.trim_end());
            }
        }
        Ok(Self(text))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    fn to_text(&self, ending: &str) -> String {
        self.0.replace('\n', ending)
    }
}

/// The position of an entry in a note.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EntryPlace {
    /// The entry stands there already, with the same text and minute.
    Present,
    /// The text is to be inserted at this byte.
    At(usize, String),
}

/// Finds the position of an entry: under the heading, after all that stands there. If the note does
/// not have the heading, it is added at the end with the entry.
///
/// # Errors
/// [`VaultError::Shape`] if the entry would disappear in code or in a comment that is not closed.
pub(crate) fn place_entry(
    name: &str,
    text: &str,
    heading: &str,
    entry: &Entry,
) -> Result<EntryPlace, VaultError> {
    let ending = line_ending(text);
    let outline = Outline::parse(text);
    let entry = entry.to_text(ending);
    let found = outline.blocks.iter().position(
        |block| matches!(&block.kind, BlockKind::Heading { title, .. } if title.eq_ignore_ascii_case(heading)),
    );
    let (at, inserted) = match found {
        None => {
            let block = format!("## {heading}{ending}{ending}{entry}");
            (text.len(), insertion(text, text.len(), &block))
        }
        Some(found) => {
            let section = outline.section(found);
            if contains_entry(&outline, text, section.clone(), &entry) {
                return Ok(EntryPlace::Present);
            }
            let last = section.last().unwrap_or(found);
            match outline.blocks.get(last) {
                Some(block) if matches!(block.kind, BlockKind::Bullets(_)) => {
                    let end = block.range.end;
                    (end, line_below(text, end, &entry))
                }
                Some(block) => (block.range.end, insertion(text, block.range.end, &entry)),
                None => (text.len(), insertion(text, text.len(), &entry)),
            }
        }
    };
    let new = splice(text, at..at, &inserted);
    if is_visible(&new, at, &inserted, &entry) {
        return Ok(EntryPlace::At(at, inserted));
    }
    let reason =
        "the entry would disappear in a code block, a comment or a quote that is not closed";
    Err(VaultError::shape(name, reason))
}

fn contains_entry(outline: &Outline, text: &str, section: Range<usize>, entry: &str) -> bool {
    let has_text = |item: &Item| {
        text.get(item.range.clone())
            .is_some_and(|item| item.trim_end() == entry.trim_end())
    };
    bullets(outline.blocks.get(section).unwrap_or_default()).any(has_text)
}

fn bullets(blocks: &[Block]) -> impl Iterator<Item = &Item> {
    let items = blocks.iter().map(|block| match &block.kind {
        BlockKind::Bullets(items) => items.as_slice(),
        _ => &[],
    });
    items.flatten()
}

fn is_visible(new: &str, at: usize, inserted: &str, entry: &str) -> bool {
    let Some(begin) = inserted.find(entry) else {
        return false;
    };
    let begin = at + begin;
    let outline = Outline::parse(new);
    bullets(&outline.blocks).any(|item| item.range.start == begin)
}
