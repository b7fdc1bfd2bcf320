//! The expected result of a turn, as a case gives it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use adjutant_core::DecisionKind;
use adjutant_tools::TaskId;
use serde::Deserialize;

use super::task_before::{TaskBefore, open_or_done};
use super::wording::{OneOrMany, Wording};

/// The expected result of a turn. Missing fields are not checked.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Expect {
    /// The decision is one of these.
    pub(crate) decision: Option<Vec<DecisionKind>>,
    /// Exactly these tools were executed.
    pub(crate) tools: Option<BTreeSet<String>>,
    /// Exactly these calls wait for confirmation, in any order.
    pub(crate) pending: Option<OneOrMany<PendingExpected>>,
    /// The reply contains each of these, ignoring case.
    pub(crate) reply_has: Vec<String>,
    /// The reply contains none of these, ignoring case.
    pub(crate) reply_lacks: Vec<String>,
    /// All tasks after the turn, in any order.
    pub(crate) tasks_after: Option<Vec<TaskAfter>>,
    /// All changes of tasks.
    pub(crate) changes: Option<Changes>,
    /// All facts after the turn, in any order: each contains its words, ignoring case.
    pub(crate) facts_after: Option<Vec<Vec<String>>>,
    /// Today's note contains each of these, ignoring case. An empty list expects no note.
    pub(crate) note_today: Option<Vec<String>>,
    /// Other results that are right too.
    pub(crate) or: Vec<Expect>,
}

/// A call that has to wait for confirmation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PendingExpected {
    pub(crate) tool: String,
    pub(crate) task_id: Option<TaskId>,
    /// The question contains each of these, ignoring case.
    #[serde(default)]
    pub(crate) has: Vec<String>,
}

/// A task after the turn.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "TaskAfterFields")]
pub(crate) struct TaskAfter {
    pub(crate) wording: Wording,
    pub(crate) completed: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskAfterFields {
    is: Option<OneOrMany<String>>,
    has: Option<Vec<String>>,
    completed: bool,
}

/// The changes of tasks: all other tasks stay exactly as they were.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Changes {
    pub(crate) added: Vec<Wording>,
    pub(crate) completed: BTreeSet<TaskId>,
    pub(crate) renamed: BTreeMap<TaskId, Wording>,
}

impl Expect {
    /// Checks an expectation of a case with these tasks.
    ///
    /// # Errors
    /// The expectation could never hold or never fail.
    pub(super) fn check(&self, tasks: &[TaskBefore], said: bool) -> Result<(), String> {
        // A case without expectations would count as passed and hide that it tests nothing.
        let says_nothing = Self {
            or: Vec::new(),
            ..self.clone()
        } == Self::default();
        if says_nothing {
            return Err("expect is empty: the case could not fail".to_owned());
        }
        if self.decision.as_ref().is_some_and(Vec::is_empty) {
            return Err("expect.decision is empty: the case could not pass".to_owned());
        }
        if self.changes.is_some() && self.tasks_after.is_some() {
            return Err("expect has both changes and tasks_after: give one of them".to_owned());
        }
        if let Some(changes) = &self.changes {
            changes.check(tasks)?;
        }
        let pending = self.pending.iter().flat_map(|calls| &calls.0);
        // What was said before may have added tasks, whose ids the case does not know.
        match pending
            .filter_map(|call| call.task_id)
            .find(|id| find(tasks, *id).is_none())
        {
            Some(id) if !said => Err(no_task("pending", id, tasks)),
            _ => self.or.iter().enumerate().try_for_each(|(index, other)| {
                if !other.or.is_empty() {
                    return Err(format!("expect.or[{index}] has an or of its own"));
                }
                let in_list = |reason: String| format!("expect.or[{index}]: {reason}");
                other.check(tasks, said).map_err(in_list)
            }),
        }
    }

    /// Returns all results that are right, this one first.
    pub(super) fn alternatives(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.or)
    }
}

impl Changes {
    fn check(&self, tasks: &[TaskBefore]) -> Result<(), String> {
        if let Some(&id) = self.renamed.keys().find(|id| find(tasks, **id).is_none()) {
            return Err(no_task("changes.renamed", id, tasks));
        }
        for &id in &self.completed {
            match find(tasks, id) {
                None => return Err(no_task("changes.completed", id, tasks)),
                Some(task) if task.completed => {
                    return Err(format!(
                        "changes.completed has task {id}, which is done before the turn"
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

fn find(tasks: &[TaskBefore], id: TaskId) -> Option<&TaskBefore> {
    // The store counts from 1 in order of creation.
    let index = usize::try_from(id.get()).ok()?.checked_sub(1)?;
    tasks.get(index)
}

fn no_task(field: &str, id: TaskId, tasks: &[TaskBefore]) -> String {
    match tasks.len() {
        0 => format!("{field} has task {id}, and the case has no tasks"),
        1 => format!("{field} has task {id}, and the only task of the case is 1"),
        last => format!("{field} has task {id}, and the tasks of the case are 1 to {last}"),
    }
}

impl TryFrom<TaskAfterFields> for TaskAfter {
    type Error = String;
    fn try_from(fields: TaskAfterFields) -> Result<Self, String> {
        Ok(Self {
            wording: Wording::new(fields.is.map(|is| is.0), fields.has)?,
            completed: fields.completed,
        })
    }
}

impl fmt::Display for PendingExpected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.task_id {
            Some(task) => write!(f, "{} of task {task}", self.tool),
            None => write!(f, "{} of {}", self.tool, self.has.join(" ")),
        }
    }
}

impl fmt::Display for TaskAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.wording, open_or_done(self.completed))
    }
}
