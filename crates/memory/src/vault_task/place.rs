//! The places of the tasks of a note, and finding one of them again.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::task_line::TaskLine;
use crate::vault::markdown::{Outline, line_start};

/// A task of a note.
#[derive(Debug, Clone)]
pub(crate) struct Placed<'a> {
    /// Its line in the text, without what ends it.
    pub(crate) range: Range<usize>,
    /// Its line, from 1.
    pub(crate) number: usize,
    pub(crate) line: TaskLine<'a>,
}

/// A name of a task: its line as it was read, and what is needed to tell it from lines that read
/// the same.
///
/// An editor that writes other lines above or below it meanwhile does not make it mean another
/// line.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskAddress {
    /// The note, relative to the vault, with `/` and `.md`.
    pub path: String,
    /// The whole line, without what ends it.
    pub line: String,
    /// Its place, from 0, among the tasks of the note that read the same.
    pub nth: usize,
    /// The number of those.
    pub of: usize,
    /// The digest of the lines above and below it.
    pub around: String,
    /// The digest of the whole note as it was read.
    pub note: String,
}

/// Returns the tasks of a text, in their order. A line in code, in a comment or in front matter is
/// none, nor is one without the text that the vault's owner wants in all tasks.
pub(crate) fn placed<'a>(text: &'a str, global_filter: &str) -> Vec<Placed<'a>> {
    let mut found = Vec::new();
    let mut at = if text.starts_with('\u{FEFF}') { 3 } else { 0 };
    for (number, whole) in text
        .get(at..)
        .unwrap_or_default()
        .split_inclusive('\n')
        .enumerate()
    {
        let line = whole.strip_suffix('\n').unwrap_or(whole);
        let line = line.strip_suffix('\r').unwrap_or(line);
        // Most lines are not: what the note's other lines make of it is asked only for those that
        // are.
        if let Some(line) = TaskLine::read(line).filter(|line| has_filter(line, global_filter)) {
            found.push(Placed {
                range: at..at + line.text.len(),
                number: number + 1,
                line,
            });
        }
        at += whole.len();
    }
    if !found.is_empty() {
        let outline = Outline::of(text);
        let items = list_items(text, outline.body);
        found.retain(|task| {
            let mark = task.range.start + task.line.mark;
            items.binary_search(&task.range.start).is_ok() && !outline.is_dead(mark)
        });
    }
    found
}

fn has_filter(line: &TaskLine<'_>, global_filter: &str) -> bool {
    global_filter.is_empty()
        || line
            .text
            .get(line.words.start..line.end)
            .is_some_and(|body| body.contains(global_filter))
}

/// Returns the starts of the lines on which items of lists begin, at any depth, also in quotes.
fn list_items(text: &str, body: usize) -> Vec<usize> {
    let source = text.get(body..).unwrap_or_default();
    let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_MATH;
    let mut starts: Vec<usize> = Parser::new_ext(source, options)
        .into_offset_iter()
        .filter(|(event, _)| matches!(event, Event::Start(Tag::Item)))
        .map(|(_, range)| {
            // The end of the line above is a part of an item that is indented by a tab.
            let item = source.get(range.clone()).unwrap_or_default();
            let ends = item.len() - item.trim_start_matches(['\r', '\n']).len();
            line_start(text, body + range.start + ends)
        })
        .collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// The reason that a task is not found again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// No task of the note reads so.
    Gone,
    /// Several do, and nothing tells which is meant.
    Unclear,
}

/// Finds a task again: the only one that reads so, or the one whose neighbours are the same, or the
/// same one of a note that has not changed.
pub(crate) fn find(text: &str, tasks: &[Placed<'_>], address: &TaskAddress) -> Result<usize, Lost> {
    let same: Vec<usize> = tasks
        .iter()
        .enumerate()
        .filter(|(_, task)| task.line.text == address.line)
        .map(|(index, _)| index)
        .collect();
    match same.as_slice() {
        [] => return Err(Lost::Gone),
        [only] if address.of == 1 => return Ok(*only),
        _ => {}
    }
    if same.len() == address.of && digest(text) == address.note {
        return same.get(address.nth).copied().ok_or(Lost::Gone);
    }
    let near = |index: &&usize| {
        tasks
            .get(**index)
            .is_some_and(|task| around(text, &task.range) == address.around)
    };
    match same.iter().filter(near).collect::<Vec<_>>().as_slice() {
        [only] => Ok(**only),
        _ => Err(Lost::Unclear),
    }
}

/// Returns the digest of the lines above and below a line.
pub(crate) fn around(text: &str, line: &Range<usize>) -> String {
    let above = line_above(text, line.start);
    let below = line_below(text, line.end);
    digest(&format!(
        "{}\n{}\n{}",
        above.is_some(),
        above.unwrap_or_default(),
        below.unwrap_or("\n")
    ))
}

/// Returns the line above, without what ends it.
pub(crate) fn line_above(text: &str, start: usize) -> Option<&str> {
    let before = text.get(..start)?.strip_suffix('\n')?;
    let line = before.rsplit('\n').next().unwrap_or(before);
    Some(line.strip_suffix('\r').unwrap_or(line))
}

/// Returns the line below, without what ends it; `None` at the end of the text.
pub(crate) fn line_below(text: &str, end: usize) -> Option<&str> {
    let (_, after) = text.get(end..)?.split_once('\n')?;
    let line = after.split('\n').next().filter(|_| !after.is_empty())?;
    Some(line.strip_suffix('\r').unwrap_or(line))
}

/// Returns the SHA-256 of a text, in hexadecimal digits, shortened to 32.
pub(crate) fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Returns where lines stand in a text, whole and one below the other, without what ends the last.
pub(crate) fn occurrences(text: &str, lines: &str) -> Vec<Range<usize>> {
    let wanted: Vec<&str> = lines.split('\n').collect();
    let mut at = if text.starts_with('\u{FEFF}') { 3 } else { 0 };
    let all: Vec<(Range<usize>, &str)> = text
        .get(at..)
        .unwrap_or_default()
        .split_inclusive('\n')
        .map(|whole| {
            let line = whole.strip_suffix('\n').unwrap_or(whole);
            let line = line.strip_suffix('\r').unwrap_or(line);
            let range = at..at + line.len();
            at += whole.len();
            (range, line)
        })
        .collect();
    all.windows(wanted.len())
        .filter(|window| {
            window
                .iter()
                .map(|(_, line)| *line)
                .eq(wanted.iter().copied())
        })
        .filter_map(|window| Some(window.first()?.0.start..window.last()?.0.end))
        .collect()
}
