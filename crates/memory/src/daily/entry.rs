//! One entry of the daily log, and where in the note it goes.

use std::ops::Range;

use jiff::Zoned;

use crate::key_fact::document::insertion;
use crate::vault::markdown::{BlockKind, Outline, line_ending};
use crate::{MemoryError, VaultError};

/// Characters of one entry.
pub(crate) const ENTRY_CHARS_MAX: usize = 10_000;
/// Characters of its title.
const TITLE_CHARS_MAX: usize = 200;

/// An entry as it stands in the note, lines divided by `\n`: `- 14:05 activity`, or
/// `- 14:05 **title**: activity`. Further lines are indented, so that whatever they hold belongs to
/// the entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry(String);

impl Entry {
    /// # Errors
    /// [`MemoryError::Fact`] for no or too many words.
    pub(crate) fn new(
        activity: &str,
        title: Option<&str>,
        time: &Zoned,
    ) -> Result<Self, MemoryError> {
        let activity = crate::notes::visible(activity);
        let activity = activity.trim();
        if activity.is_empty() {
            return Err(MemoryError::Fact {
                reason: "an entry needs words".to_owned(),
            });
        }
        let chars = activity.chars().count();
        if chars > ENTRY_CHARS_MAX {
            let reason = format!(
                "an entry has at most {ENTRY_CHARS_MAX} characters, this one has {chars}; write a note instead"
            );
            return Err(MemoryError::Fact { reason });
        }
        let title = title.map(|title| {
            title
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .replace("**", "")
        });
        let title = title.filter(|title| !title.is_empty());
        if title
            .as_ref()
            .is_some_and(|title| title.chars().count() > TITLE_CHARS_MAX)
        {
            return Err(MemoryError::Fact {
                reason: format!("a title has at most {TITLE_CHARS_MAX} characters"),
            });
        }
        let words = match title {
            Some(title) => format!("**{title}**: {activity}"),
            None => activity.to_owned(),
        };
        // One `%%` that nothing closes would hide the rest of the note.
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
                text.push_str("  ");
                text.push_str(line.trim_end());
            }
        }
        Ok(Self(text))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    fn in_file(&self, ending: &str) -> String {
        self.0.replace('\n', ending)
    }
}

/// Where the entry goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// It stands there already, to the letter and the minute.
    Already,
    /// This is to be inserted at this byte.
    At(usize, String),
}

/// Under the heading, after everything that stands there; with the heading, at the end, if the note
/// has none.
///
/// # Errors
/// [`VaultError::Shape`] if the entry would disappear in code or in a comment that is not closed.
pub(crate) fn place(
    name: &str,
    text: &str,
    heading: &str,
    entry: &Entry,
) -> Result<Placed, VaultError> {
    let ending = line_ending(text);
    let outline = Outline::of(text);
    let entry = entry.in_file(ending);
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
            if stands_in(&outline, text, section.clone(), &entry) {
                return Ok(Placed::Already);
            }
            let last = section.last().unwrap_or(found);
            match outline.blocks.get(last) {
                Some(block) if matches!(block.kind, BlockKind::Bullets(_)) => {
                    let open = block.range.end == text.len() && !text.ends_with('\n');
                    let line = if open {
                        format!("{ending}{entry}")
                    } else {
                        format!("{entry}{ending}")
                    };
                    (block.range.end, line)
                }
                Some(block) => (block.range.end, insertion(text, block.range.end, &entry)),
                None => (text.len(), insertion(text, text.len(), &entry)),
            }
        }
    };
    let new = crate::key_fact::document::splice(text, at..at, &inserted);
    if is_visible(&new, at, &inserted, &entry) {
        return Ok(Placed::At(at, inserted));
    }
    let reason =
        "the entry would disappear in a code block, a comment or a quote that is not closed"
            .to_owned();
    Err(VaultError::Shape {
        name: name.to_owned(),
        reason,
    })
}

fn stands_in(outline: &Outline, text: &str, section: Range<usize>, entry: &str) -> bool {
    outline
        .blocks
        .get(section)
        .unwrap_or_default()
        .iter()
        .any(|block| match &block.kind {
            BlockKind::Bullets(items) => items.iter().any(|item| {
                text.get(item.range.clone())
                    .is_some_and(|item| item.trim_end() == entry.trim_end())
            }),
            _ => false,
        })
}

/// Whether the entry is an item of a list at the top level of the note.
fn is_visible(new: &str, at: usize, inserted: &str, entry: &str) -> bool {
    let Some(begin) = inserted.find(entry) else {
        return false;
    };
    let begin = at + begin;
    Outline::of(new)
        .blocks
        .iter()
        .any(|block| match &block.kind {
            BlockKind::Bullets(items) => items.iter().any(|item| item.range.start == begin),
            _ => false,
        })
}
