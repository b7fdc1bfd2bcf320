//! Compares the tasks after a turn with those that a case expects.

use std::collections::BTreeMap;
use std::fmt;

use adjutant_tools::{Task, TaskId};

use crate::terminal::display::plural;

use super::expect::{Changes, TaskAfter};
use super::matching::{Difference, pair};
use super::task_before::open_or_done;

/// A difference between the tasks before and after a turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Change<'a> {
    Added(&'a Task),
    Completed(&'a Task),
    Reopened(&'a Task),
    Renamed { before: &'a Task, after: &'a Task },
    Deleted(&'a Task),
}

/// Returns every difference between the tasks before and after a turn.
pub(crate) fn changes<'a>(before: &'a [Task], after: &'a [Task]) -> Vec<Change<'a>> {
    let by_id: BTreeMap<TaskId, &Task> = before.iter().map(|task| (task.id, task)).collect();
    let mut changes = Vec::new();
    for task in after {
        let Some(&old) = by_id.get(&task.id) else {
            changes.push(Change::Added(task));
            continue;
        };
        if old.description != task.description {
            changes.push(Change::Renamed {
                before: old,
                after: task,
            });
        }
        match (old.completed, task.completed) {
            (false, true) => changes.push(Change::Completed(task)),
            (true, false) => changes.push(Change::Reopened(task)),
            (true, true) | (false, false) => {}
        }
    }
    let gone = |old: &&Task| after.iter().all(|task| task.id != old.id);
    changes.extend(before.iter().filter(gone).map(Change::Deleted));
    changes
}

impl fmt::Display for Change<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(task) => write!(f, "added task \u{201c}{}\u{201d}", task.description),
            Self::Completed(task) => write!(
                f,
                "completed task {} \u{201c}{}\u{201d}",
                task.id, task.description
            ),
            Self::Reopened(task) => write!(
                f,
                "reopened task {} \u{201c}{}\u{201d}",
                task.id, task.description
            ),
            Self::Renamed { before, after } => write!(
                f,
                "renamed task {} \u{201c}{}\u{201d} to \u{201c}{}\u{201d}",
                before.id, before.description, after.description
            ),
            Self::Deleted(task) => write!(
                f,
                "deleted task {} \u{201c}{}\u{201d}",
                task.id, task.description
            ),
        }
    }
}

/// The changes of a turn beside those that were expected.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    /// Expected changes that did not happen, in words.
    pub(crate) lacking: Vec<String>,
    /// Changes that were not expected, in words.
    pub(crate) surplus: Vec<String>,
}

/// Compares the changes of a turn with those that a case expects.
pub(crate) fn compare_changes(wanted: &Changes, before: &[Task], after: &[Task]) -> Compared {
    let changes = changes(before, after);
    let mut compared = Compared::default();
    let added: Vec<&Task> = changes
        .iter()
        .filter_map(|change| match change {
            Change::Added(task) => Some(*task),
            _ => None,
        })
        .collect();
    let fits: Vec<Vec<usize>> = wanted
        .added
        .iter()
        .map(|wording| {
            // A new task is open; one that is done is not what was asked for.
            let fit = |task: &Task| !task.completed && wording.fits(task.description.as_str());
            (0..added.len()).filter(|&at| fit(added[at])).collect()
        })
        .collect();
    let places = pair(&fits, added.len());
    for (wording, place) in wanted.added.iter().zip(&places) {
        if place.is_none() {
            compared.lacking.push(format!("added no task {wording}"));
        }
    }
    for id in &wanted.completed {
        let done =
            |change: &Change<'_>| matches!(change, Change::Completed(task) if task.id == *id);
        if !changes.iter().any(done) {
            compared.lacking.push(format!("task {id} is not completed"));
        }
    }
    for (id, wording) in &wanted.renamed {
        let renamed = |change: &Change<'_>| matches!(change, Change::Renamed { before, .. } if before.id == *id);
        if !changes.iter().any(renamed) {
            compared
                .lacking
                .push(format!("task {id} is not renamed to {wording}"));
        }
    }
    let mut new_tasks = 0;
    for change in &changes {
        let expected = match change {
            Change::Added(_) => {
                new_tasks += 1;
                places.contains(&Some(new_tasks - 1))
            }
            Change::Completed(task) => wanted.completed.contains(&task.id),
            Change::Renamed { before, after } => wanted
                .renamed
                .get(&before.id)
                .is_some_and(|wording| wording.fits(after.description.as_str())),
            Change::Reopened(_) | Change::Deleted(_) => false,
        };
        if !expected {
            compared.surplus.push(change.to_string());
        }
    }
    compared
}

/// Returns the reasons why the changes are not those that a case expects.
pub(crate) fn judge_changes(wanted: &Changes, before: &[Task], after: &[Task]) -> Vec<String> {
    let Compared { lacking, surplus } = compare_changes(wanted, before, after);
    let unexpected = surplus
        .into_iter()
        .map(|change| format!("unexpected: {change}"));
    lacking.into_iter().chain(unexpected).collect()
}

/// Returns the reasons why the tasks after a turn are not those that a case expects.
pub(crate) fn judge_tasks(wanted: &[TaskAfter], tasks: &[Task]) -> Vec<String> {
    let mut reasons = Vec::new();
    if wanted.len() != tasks.len() {
        reasons.push(format!(
            "{} after the turn, expected {}",
            plural(tasks.len() as u64, "task", "tasks"),
            wanted.len()
        ));
    }
    let candidates: Vec<Vec<usize>> = wanted
        .iter()
        .map(|wanted| {
            let indexes = 0..tasks.len();
            indexes.filter(|&task| fits(wanted, &tasks[task])).collect()
        })
        .collect();
    let matched = pair(&candidates, tasks.len());
    for (wanted, _) in wanted
        .iter()
        .zip(&matched)
        .filter(|(_, task)| task.is_none())
    {
        reasons.push(format!("no task {wanted}"));
    }
    for (index, task) in tasks.iter().enumerate() {
        if !matched.contains(&Some(index)) {
            reasons.push(format!(
                "unexpected task \u{201c}{}\u{201d} {}",
                task.description,
                open_or_done(task.completed)
            ));
        }
    }
    reasons
}

/// Returns true if a change of the tasks is not one that leads to those that a case expects.
pub(crate) fn surprises(wanted: &[TaskAfter], before: &[Task], after: &[Task]) -> bool {
    let changes = changes(before, after);
    let is_changed = |task: &&Task| {
        changes.iter().any(|change| match change {
            Change::Added(other) | Change::Completed(other) | Change::Reopened(other) => {
                other.id == task.id
            }
            Change::Renamed { after, .. } => after.id == task.id,
            Change::Deleted(_) => false,
        })
    };
    let (new, same) = after.iter().partition(is_changed);
    let gone = changes.iter().filter_map(|change| match change {
        Change::Deleted(task) => Some(*task),
        _ => None,
    });
    let difference = Difference {
        same,
        new,
        gone: gone.collect(),
    };
    difference.surprises(wanted, fits)
}

fn fits(wanted: &TaskAfter, task: &Task) -> bool {
    wanted.completed == task.completed && wanted.wording.fits(task.description.as_str())
}
