//! The location of tasks in the text of a note, and the addresses by which they are found again.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::task_line::TaskLine;
use crate::text::{lines_with_ranges, sha256_hex};
use crate::vault::markdown::Outline;

/// A task and its location in a note.
#[derive(Debug, Clone)]
pub(crate) struct LocatedTask<'a> {
    /// The range of its line, without the line ending.
    pub(crate) range: Range<usize>,
    /// The number of its line, from 1.
    pub(crate) number: usize,
    pub(crate) line: TaskLine<'a>,
}

/// The address of a task: its line as it was read, and what distinguishes it from lines with the
/// same text.
///
/// An address stays valid if an editor adds or removes other lines meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskAddress {
    /// The path of the note, relative to the vault, with `/` and `.md`.
    pub path: String,
    /// The whole line, without the line ending.
    pub line: String,
    /// Its index, from 0, among the tasks of the note with the same line.
    pub nth: usize,
    /// Number of tasks of the note with the same line.
    pub of: usize,
    /// The digest of the lines above and below it.
    pub around: String,
    /// The digest of the whole note as it was read.
    pub note: String,
}

/// Returns the tasks of a text, in their order. Lines in code, in comments or in front matter are
/// no tasks, nor are those without the text that the owner's settings require of tasks.
pub(crate) fn find_tasks<'a>(text: &'a str, global_filter: &str) -> Vec<LocatedTask<'a>> {
    let mut found = Vec::new();
    for (number, (range, line)) in lines_with_ranges(text).enumerate() {
        let task = TaskLine::parse(line);
        if let Some(line) = task.filter(|task| has_filter(task, global_filter)) {
            found.push(LocatedTask {
                range,
                number: number + 1,
                line,
            });
        }
    }
    // Most notes have no task, and need not be parsed as Markdown.
    if !found.is_empty() {
        let outline = Outline::parse(text);
        found.retain(|task| {
            let mark = task.range.start + task.line.mark;
            outline.item_lines.binary_search(&task.range.start).is_ok() && !outline.is_opaque(mark)
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

/// The reason for which a task is not found again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocateError {
    /// No task of the note has the line.
    Gone,
    /// Several tasks have the line, and nothing tells which is meant.
    Ambiguous,
}

/// Finds a task again: the only one with its line, or the one with the same neighbours, or the one
/// at the same index of a note that has not changed.
pub(crate) fn locate(
    text: &str,
    tasks: &[LocatedTask<'_>],
    address: &TaskAddress,
) -> Result<usize, LocateError> {
    // By the text of the line: its number changes with every edit above it.
    let same: Vec<usize> = tasks
        .iter()
        .enumerate()
        .filter(|(_, task)| task.line.text == address.line)
        .map(|(index, _)| index)
        .collect();
    match same.as_slice() {
        [] => return Err(LocateError::Gone),
        // The only line with this text, then and now: no other can be meant.
        [only] if address.of == 1 => return Ok(*only),
        _ => {}
    }
    // Nothing in the note has changed, so the index still holds.
    if same.len() == address.of && digest(text) == address.note {
        return same.get(address.nth).copied().ok_or(LocateError::Gone);
    }
    let near = |index: &&usize| {
        tasks
            .get(**index)
            .is_some_and(|task| around(text, &task.range) == address.around)
    };
    match same.iter().filter(near).collect::<Vec<_>>().as_slice() {
        [only] => Ok(**only),
        _ => Err(LocateError::Ambiguous),
    }
}

/// Returns the digest of the lines above and below a line.
pub(crate) fn around(text: &str, line: &Range<usize>) -> String {
    let above = line_above(text, line.start);
    let below = line_below(text, line.end);
    // The flag distinguishes a line below a blank one from the first line of the note.
    digest(&format!(
        "{}\n{}\n{}",
        above.is_some(),
        above.unwrap_or_default(),
        below.unwrap_or("\n")
    ))
}

/// Returns the line above the one that begins at `start`, without its ending.
pub(crate) fn line_above(text: &str, start: usize) -> Option<&str> {
    let before = text.get(..start)?.strip_suffix('\n')?;
    let line = before.rsplit('\n').next().unwrap_or(before);
    Some(line.strip_suffix('\r').unwrap_or(line))
}

/// Returns the line below the one that ends at `end`, without its ending. `None` at the end of the
/// text.
pub(crate) fn line_below(text: &str, end: usize) -> Option<&str> {
    let (_, after) = text.get(end..)?.split_once('\n')?;
    let line = after.split('\n').next().filter(|_| !after.is_empty())?;
    Some(line.strip_suffix('\r').unwrap_or(line))
}

/// Returns a digest of a text, 32 hexadecimal digits.
pub(crate) fn digest(text: &str) -> String {
    sha256_hex(text.as_bytes(), 16)
}

/// Returns the ranges of whole consecutive lines in a text, without the last line ending.
pub(crate) fn occurrences(text: &str, lines: &str) -> Vec<Range<usize>> {
    let wanted: Vec<&str> = lines.split('\n').collect();
    let all: Vec<(Range<usize>, &str)> = lines_with_ranges(text).collect();
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
