//! One note with its tasks: what a change of one line makes of its text.

use std::collections::HashMap;

use adjutant_core::TaskLines;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::place::{self, Lost, Placed, TaskAddress, placed};
use super::settings::{PluginSettings, TaskStatus};
use crate::key_fact::document::{insertion, splice};
use crate::task_line::{Kind, TaskLine, undated};
use crate::vault::markdown::{Outline, line_ending};
use crate::{MemoryError, VaultError};

/// A task in a note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VaultTask {
    /// By which it is found again.
    #[serde(flatten)]
    pub address: TaskAddress,
    /// Its line in the note, from 1, when it was read.
    pub line_number: usize,
    /// The words of the task, with its tags.
    pub words: String,
    /// The same with its dates, priority and recurrence, as they stand in the line.
    pub text: String,
    /// Its status.
    pub status: TaskStatus,
    /// The day it is due, if it has one that exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Date>,
    /// The day it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<Date>,
    /// The day it was written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Date>,
}

/// A note's text, read.
pub(crate) struct NoteTasks<'a> {
    path: &'a str,
    text: &'a str,
    tasks: Vec<Placed<'a>>,
    /// For each task, its place among those that read the same.
    nths: Vec<usize>,
    /// The number of tasks that read the same, by their line.
    counts: HashMap<&'a str, usize>,
    settings: &'a PluginSettings,
    digest: String,
}

/// A text after a change of one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) text: String,
    pub(crate) before: Option<TaskLines>,
    pub(crate) after: Option<TaskLines>,
}

impl<'a> NoteTasks<'a> {
    pub(crate) fn read(path: &'a str, text: &'a str, settings: &'a PluginSettings) -> Self {
        let tasks = placed(text, &settings.style.global_filter);
        let digest = if tasks.is_empty() {
            String::new()
        } else {
            place::digest(text)
        };
        let mut counts: HashMap<&str, usize> = HashMap::new();
        let mut next = |task: &Placed<'a>| {
            let count = counts.entry(task.line.text).or_default();
            *count += 1;
            *count - 1
        };
        let nths = tasks.iter().map(&mut next).collect();
        Self {
            path,
            text,
            tasks,
            nths,
            counts,
            settings,
            digest,
        }
    }

    /// Returns all tasks of the note, in their order.
    pub(crate) fn all(&self) -> Vec<VaultTask> {
        (0..self.tasks.len())
            .filter_map(|index| self.task(index))
            .collect()
    }

    pub(crate) fn task(&self, index: usize) -> Option<VaultTask> {
        let task = self.tasks.get(index)?;
        Some(VaultTask {
            address: TaskAddress {
                path: self.path.to_owned(),
                line: task.line.text.to_owned(),
                nth: self.nths.get(index).copied().unwrap_or_default(),
                of: self.counts.get(task.line.text).copied().unwrap_or_default(),
                around: place::around(self.text, &task.range),
                note: self.digest.clone(),
            },
            line_number: task.number,
            words: task.line.description(),
            text: undated(&task.line),
            status: self.settings.status(task.line.status),
            due: task.line.date(Kind::Due),
            done: task.line.date(Kind::Done),
            created: task.line.date(Kind::Created),
        })
    }

    pub(crate) fn line(&self, index: usize) -> Option<&TaskLine<'a>> {
        self.tasks.get(index).map(|task| &task.line)
    }

    /// Finds a task again.
    ///
    /// # Errors
    /// [`MemoryError::Task`] if no line is surely the one that was meant.
    pub(crate) fn find(&self, address: &TaskAddress) -> Result<usize, MemoryError> {
        place::find(self.text, &self.tasks, address).map_err(|lost| {
            let path = self.path;
            refused(match lost {
                Lost::Gone => format!(
                    "{path:?} was changed since: the task's line no longer reads as it did, so nothing was changed; look at the list again"
                ),
                Lost::Unclear => format!(
                    "{path:?} was changed since and has several tasks that read the same, so it is not clear which is meant; nothing was changed. Make them differ, or change it in the note"
                ),
            })
        })
    }

    /// Replaces the line of a task by others, or takes it out.
    ///
    /// # Errors
    /// [`VaultError::Shape`] if another task would no longer be one.
    pub(crate) fn replaced(&self, index: usize, lines: &[String]) -> Result<Changed, MemoryError> {
        let Some(task) = self.tasks.get(index) else {
            return Err(refused(format!("{:?} has no such task", self.path)));
        };
        let ending = ending_at(self.text, task.range.end);
        let divider = if ending.is_empty() {
            line_ending(self.text)
        } else {
            ending
        };
        let (range, with) = if lines.is_empty() {
            (
                task.range.start..task.range.end + ending.len(),
                String::new(),
            )
        } else {
            (task.range.clone(), lines.join(divider))
        };
        let text = splice(self.text, range, &with);
        let mut expected: Vec<&str> = self.tasks.iter().map(|task| task.line.text).collect();
        expected.splice(index..=index, lines.iter().map(String::as_str));
        let hint = if lines.is_empty() {
            "the tasks below it would no longer be read as tasks without it; move them first, in the note"
        } else {
            "written so, it or another task of the note would no longer be read as one"
        };
        self.check(&text, &expected, hint)?;
        let around =
            |lines: String, text: &str| self.lines(lines, text, task.range.start, task.range.end);
        Ok(Changed {
            text,
            before: Some(around(task.line.text.to_owned(), self.text)),
            after: (!lines.is_empty()).then(|| around(lines.join("\n"), self.text)),
        })
    }

    /// Writes the line of a task at the end of the note.
    ///
    /// # Errors
    /// [`VaultError::Shape`] if it would not be read as a task there.
    pub(crate) fn appended(&self, line: &str) -> Result<Changed, MemoryError> {
        let mut expected: Vec<&str> = self.tasks.iter().map(|task| task.line.text).collect();
        expected.push(line);
        let last = self
            .text
            .trim_end_matches(['\n', '\r'])
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .trim_start();
        let ending = line_ending(self.text);
        let blank = || insertion(self.text, self.text.len(), line);
        let direct = if self.text.ends_with('\n') {
            format!("{line}{ending}")
        } else {
            format!("{ending}{line}")
        };
        let in_list = last.starts_with(['-', '*', '+'])
            && !self.text.ends_with("\n\n")
            && !self.text.ends_with("\n\r\n");
        let hint = "a task at its end would not be read as one: it ends in code, a comment or a quote that is not closed";
        let tries = if in_list {
            vec![direct, blank()]
        } else {
            vec![blank()]
        };
        let mut refusal = None;
        for inserted in tries {
            let text = format!("{}{inserted}", self.text);
            match self.check(&text, &expected, hint) {
                Ok(()) => {
                    let start = text.trim_end_matches(['\r', '\n']).len() - line.len();
                    let found_before = place::occurrences(self.text, line).len();
                    let after = self.lines(line.to_owned(), &text, start, start + line.len());
                    let after = Some(TaskLines {
                        found_before,
                        ..after
                    });
                    return Ok(Changed {
                        text,
                        before: None,
                        after,
                    });
                }
                Err(error) => refusal = Some(error),
            }
        }
        Err(refusal.unwrap_or_else(|| refused(hint.to_owned())))
    }

    fn lines(&self, lines: String, text: &str, start: usize, end: usize) -> TaskLines {
        TaskLines {
            path: self.path.to_owned(),
            above: place::line_above(text, start).map(str::to_owned),
            below: place::line_below(text, end).map(str::to_owned),
            found_before: place::occurrences(text, &lines).len(),
            text: lines,
        }
    }

    /// Checks that the note has exactly these tasks after a change, and that what stands below is
    /// as visible as before.
    fn check(&self, text: &str, expected: &[&str], hint: &str) -> Result<(), MemoryError> {
        let now = placed(text, &self.settings.style.global_filter);
        let hides = |text: &str| text.contains("%%") && Outline::of(text).open_comment;
        if now
            .iter()
            .map(|task| task.line.text)
            .eq(expected.iter().copied())
            && hides(text) == hides(self.text)
        {
            return Ok(());
        }
        Err(VaultError::Shape {
            name: self.path.to_owned(),
            reason: hint.to_owned(),
        }
        .into())
    }
}

/// Returns what ends the line that ends at a place.
pub(crate) fn ending_at(text: &str, end: usize) -> &str {
    let after = text.get(end..).unwrap_or_default();
    let length = if after.starts_with("\r\n") {
        2
    } else {
        usize::from(after.starts_with('\n'))
    };
    after.get(..length).unwrap_or_default()
}

pub(crate) fn refused(reason: String) -> MemoryError {
    MemoryError::Task { reason }
}
