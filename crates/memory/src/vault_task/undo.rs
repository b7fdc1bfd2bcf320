//! The way back of a change of a task's line.

use adjutant_core::{FilePatch, MemoryChange, MemoryEffect, TaskLines};

use super::note::ending_at;
use super::place::{line_above, line_below, occurrences};
use crate::key_fact::document::{insertion, splice};
use crate::memory::{ATTEMPTS_MAX, Shared, blocking};
use crate::patch::taken_back;
use crate::vault::markdown::line_ending;
use crate::vault::{NotePath, Stored};
use crate::{MemoryError, VaultError};

/// Takes a change of a task back. Words for the person, or nothing if the lines no longer read as
/// the change left them.
///
/// # Errors
/// Whatever keeps the notes from being written; nothing is changed then, or, if the task was moved,
/// it stands in both notes.
pub(crate) async fn take_back(
    shared: &Shared,
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
                let exact = patch.and_then(|patch| taken_back(text, patch));
                exact.or_else(|| {
                    let at = only(text, after)?;
                    let ending = ending_at(text, at.end);
                    let divider = if ending.is_empty() {
                        line_ending(text)
                    } else {
                        ending
                    };
                    Some(splice(text, at, &before.text.replace('\n', divider)))
                })
            };
            rewrite(shared, &before.path, back, false).await?
        }
        (Some(before), None) => {
            rewrite(
                shared,
                &before.path,
                |text| put_back(text, before, patch),
                false,
            )
            .await?
        }
        (None, Some(after)) => {
            rewrite(
                shared,
                &after.path,
                |text| take_out(text?, after, patch),
                *created,
            )
            .await?
        }
        (Some(before), Some(after)) => {
            let there = shared.read(&NotePath::of_owner(&after.path)?).await?;
            if there.is_none_or(|stored| only(stored.text(), after).is_none()) {
                return Ok(None);
            }
            // First back, then out: a task stands twice rather than nowhere.
            rewrite(
                shared,
                &before.path,
                |text| put_back(text, before, None),
                false,
            )
            .await?
                && rewrite(
                    shared,
                    &after.path,
                    |text| take_out(text?, after, None),
                    *created,
                )
                .await?
        }
        (None, None) => false,
    };
    let told = match (before, after) {
        (Some(before), None) => format!("Brought “{words}” back to {}.", before.path),
        (None, _) => format!("Took “{words}” out of the tasks again."),
        (Some(before), Some(_)) => {
            format!("The task “{words}” in {} is as it was before.", before.path)
        }
    };
    Ok(done.then_some(told))
}

/// Returns where lines stand, if that is clear: they stand there once, or once between the same
/// neighbours.
fn only(text: &str, lines: &TaskLines) -> Option<std::ops::Range<usize>> {
    let found = occurrences(text, &lines.text);
    if let [one] = found.as_slice() {
        return Some(one.clone());
    }
    let near = |range: &&std::ops::Range<usize>| {
        line_above(text, range.start) == lines.above.as_deref()
            && line_below(text, range.end) == lines.below.as_deref()
    };
    match found.iter().filter(near).collect::<Vec<_>>().as_slice() {
        [one] => Some((*one).clone()),
        _ => None,
    }
}

fn take_out(text: &str, lines: &TaskLines, patch: Option<&FilePatch>) -> Option<String> {
    if let Some(before) = patch.and_then(|patch| taken_back(text, patch)) {
        return Some(before);
    }
    let at = only(text, lines)?;
    let end = at.end + ending_at(text, at.end).len();
    Some(splice(text, at.start..end, ""))
}

/// Returns a text with lines where they stood: between the same neighbours, else below or above one
/// of them, else at the end.
fn put_back(text: Option<&str>, lines: &TaskLines, patch: Option<&FilePatch>) -> Option<String> {
    let Some(text) = text else {
        return Some(format!("{}\n", lines.text));
    };
    if let Some(before) = patch.and_then(|patch| taken_back(text, patch)) {
        return Some(before);
    }
    let ending = line_ending(text);
    let block = lines.text.replace('\n', ending);
    let above = lines
        .above
        .as_deref()
        .map(|line| occurrences(text, line))
        .unwrap_or_default();
    let below = lines
        .below
        .as_deref()
        .map(|line| occurrences(text, line))
        .unwrap_or_default();
    let start_of_next = |end: usize| end + ending_at(text, end).len();
    let between = above
        .iter()
        .find(|line| line_below(text, line.end) == lines.below.as_deref());
    let after = match (between, above.as_slice(), below.as_slice()) {
        (Some(line), _, _) | (None, [line], _) => Some(line.end),
        _ => None,
    };
    let at_start = lines.above.is_none() && line_is_first(text, lines.below.as_deref());
    Some(match (after, below.as_slice()) {
        (Some(end), _) if start_of_next(end) > end => {
            let at = start_of_next(end);
            splice(text, at..at, &format!("{block}{ending}"))
        }
        (Some(end), _) => splice(text, end..end, &format!("{ending}{block}")),
        (None, [line]) => splice(text, line.start..line.start, &format!("{block}{ending}")),
        (None, _) if at_start => {
            let at = if text.starts_with('\u{FEFF}') { 3 } else { 0 };
            splice(text, at..at, &format!("{block}{ending}"))
        }
        (None, _) => format!("{text}{}", insertion(text, text.len(), &block)),
    })
}

/// Returns whether the first line of a text reads so.
fn line_is_first(text: &str, line: Option<&str>) -> bool {
    let first = text.trim_start_matches('\u{FEFF}').lines().next();
    first == line
}

/// Replaces the text of a note by what `work` makes of it; `false` if it makes nothing. A note that
/// was created for the change and has nothing left is removed.
async fn rewrite(
    shared: &Shared,
    path: &str,
    work: impl Fn(Option<&str>) -> Option<String>,
    created: bool,
) -> Result<bool, MemoryError> {
    let path = NotePath::of_owner(path)?;
    let mut lock = shared.lock().await?;
    for _ in 0..ATTEMPTS_MAX {
        let stored = shared.read(&path).await?;
        let Some(new) = work(stored.as_ref().map(Stored::text)) else {
            return Ok(false);
        };
        let (vault, at) = (shared.vault.clone(), path.clone());
        let (held, done) = blocking(move || {
            let done = match &stored {
                Some(stored) if created && new.trim().is_empty() => {
                    vault.remove(&lock, &at, stored)?
                }
                stored => vault.replace(&lock, &at, stored.as_ref(), &new)?,
            };
            Ok((lock, done))
        })
        .await?;
        if done {
            return Ok(true);
        }
        lock = held;
    }
    Err(VaultError::Busy {
        name: path.to_string(),
    }
    .into())
}
