//! Undo of a change of a task's line.

use std::ops::Range;

use adjutant_core::{FilePatch, MemoryChange, MemoryEffect, TaskLines};

use super::locate::{line_above, line_below, occurrences};
use super::note::{line_divider, line_ending_at};
use crate::MemoryError;
use crate::patch::revert;
use crate::text::{insertion, splice};
use crate::vault::NotePath;
use crate::vault::markdown::{bom_len, line_ending};
use crate::vault_memory::VaultMemory;

/// Undoes a change of a task. Returns the message for the user; `None` if the lines are not as the
/// change left them.
///
/// # Errors
/// Any error of the notes; nothing is changed then, or, if the task was moved, it stands in both
/// notes.
pub(crate) async fn undo_task_change(
    memory: &VaultMemory,
    change: &MemoryChange,
) -> Result<Option<String>, MemoryError> {
    let MemoryEffect::Task {
        words,
        before,
        after,
        created,
        ..
    } = &change.effect
    else {
        return Ok(None);
    };
    let patch = change.patch.as_ref();
    let done = match (before, after) {
        (Some(before), Some(after)) if before.path == after.path => {
            let back = |text: Option<&str>| {
                let text = text?;
                let exact = patch.and_then(|patch| revert(text, patch));
                exact.or_else(|| {
                    let at = find_unique(text, after)?;
                    let divider = line_divider(text, at.end);
                    Some(splice(text, at, &before.text.replace('\n', divider)))
                })
            };
            rewrite(memory, &before.path, false, back).await?
        }
        (Some(before), None) => {
            let back = |text: Option<&str>| reinsert(text, before, patch);
            rewrite(memory, &before.path, false, back).await?
        }
        (None, Some(after)) => {
            let out = |text: Option<&str>| remove_lines(text?, after, patch);
            rewrite(memory, &after.path, *created, out).await?
        }
        (Some(before), Some(after)) => {
            // Checked before anything is put back: else the task would stand in both notes.
            let there = memory.read(&NotePath::from_owner(&after.path)?).await?;
            if there.is_none_or(|stored| find_unique(stored.as_str(), after).is_none()) {
                return Ok(None);
            }
            let back = |text: Option<&str>| reinsert(text, before, None);
            let out = |text: Option<&str>| remove_lines(text?, after, None);
            // First back, then out: after a crash in between the task is in both notes, not in
            // none.
            rewrite(memory, &before.path, false, back).await?
                && rewrite(memory, &after.path, *created, out).await?
        }
        (None, None) => false,
    };
    let message = match (before, after) {
        (Some(before), None) => format!("Brought “{words}” back to {}.", before.path),
        (None, _) => format!("Undone: the task “{words}” is removed."),
        (Some(before), Some(_)) => {
            format!("The task “{words}” in {} is as it was before.", before.path)
        }
    };
    Ok(done.then_some(message))
}

/// Returns the range of lines if it is certain: they stand in the text once, or once between the
/// same neighbours.
fn find_unique(text: &str, lines: &TaskLines) -> Option<Range<usize>> {
    let found = occurrences(text, &lines.text);
    if let [one] = found.as_slice() {
        return Some(one.clone());
    }
    let near = |range: &&Range<usize>| {
        line_above(text, range.start) == lines.above.as_deref()
            && line_below(text, range.end) == lines.below.as_deref()
    };
    match found.iter().filter(near).collect::<Vec<_>>().as_slice() {
        [one] => Some((*one).clone()),
        _ => None,
    }
}

fn remove_lines(text: &str, lines: &TaskLines, patch: Option<&FilePatch>) -> Option<String> {
    if let Some(before) = patch.and_then(|patch| revert(text, patch)) {
        return Some(before);
    }
    let at = find_unique(text, lines)?;
    let end = at.end + line_ending_at(text, at.end).len();
    Some(splice(text, at.start..end, ""))
}

/// Returns a text with lines in their old position: between the same neighbours, else below or
/// above one of them, else at the end.
fn reinsert(text: Option<&str>, lines: &TaskLines, patch: Option<&FilePatch>) -> Option<String> {
    let Some(text) = text else {
        return Some(format!("{}\n", lines.text));
    };
    if let Some(before) = patch.and_then(|patch| revert(text, patch)) {
        return Some(before);
    }
    let ending = line_ending(text);
    let block = lines.text.replace('\n', ending);
    let places = |line: Option<&str>| line.map_or(Vec::new(), |line| occurrences(text, line));
    let above = places(lines.above.as_deref());
    let below = places(lines.below.as_deref());
    let start_of_next = |end: usize| end + line_ending_at(text, end).len();
    // The place between the two old neighbours, else beside the only one that is left.
    let between = above
        .iter()
        .find(|line| line_below(text, line.end) == lines.below.as_deref());
    let after = match (between, above.as_slice(), below.as_slice()) {
        (Some(line), _, _) | (None, [line], _) => Some(line.end),
        _ => None,
    };
    let at_start = lines.above.is_none() && is_first_line(text, lines.below.as_deref());
    Some(match (after, below.as_slice()) {
        (Some(end), _) if start_of_next(end) > end => {
            let at = start_of_next(end);
            splice(text, at..at, &format!("{block}{ending}"))
        }
        (Some(end), _) => splice(text, end..end, &format!("{ending}{block}")),
        (None, [line]) => splice(text, line.start..line.start, &format!("{block}{ending}")),
        (None, _) if at_start => {
            let at = bom_len(text);
            splice(text, at..at, &format!("{block}{ending}"))
        }
        (None, _) => format!("{text}{}", insertion(text, text.len(), &block)),
    })
}

/// Returns true if a text begins with a line.
fn is_first_line(text: &str, line: Option<&str>) -> bool {
    let first = text.trim_start_matches('\u{FEFF}').lines().next();
    first == line
}

async fn rewrite(
    memory: &VaultMemory,
    path: &str,
    removes_blank: bool,
    work: impl Fn(Option<&str>) -> Option<String>,
) -> Result<bool, MemoryError> {
    let path = NotePath::from_owner(path)?;
    memory
        .rewrite(&path, removes_blank, |text| Ok(work(text)))
        .await
}
