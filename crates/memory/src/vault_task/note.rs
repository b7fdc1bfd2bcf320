//! A note with its tasks, and the edits of its text that change one line.

use std::collections::HashMap;
use std::ops::Range;

use adjutant_core::TaskLines;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::locate::{self, LocateError, LocatedTask, TaskAddress, find_tasks};
use super::settings::{PluginSettings, TaskStatus};
use crate::task_line::{Kind, TaskLine, without_closing_dates};
use crate::text::{insertion, line_below, splice};
use crate::vault::markdown::{Outline, line_ending};
use crate::{MemoryError, VaultError};

/// A task in a note, as it was when the note was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VaultTask {
    /// The address by which the task is found again.
    #[serde(flatten)]
    pub address: TaskAddress,
    /// The number of its line in the note, from 1.
    pub line_number: usize,
    /// The text of the task, with its tags.
    pub words: String,
    /// The text with its dates, priority and recurrence, as they stand in the line.
    pub text: String,
    /// The status, from the character between its brackets.
    pub status: TaskStatus,
    /// The due date, if the task has one that exists in the calendar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Date>,
    /// The day on which it was completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<Date>,
    /// The day on which it was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Date>,
}

/// The parsed text of a note.
pub(crate) struct NoteTasks<'a> {
    path: &'a str,
    text: &'a str,
    tasks: Vec<LocatedTask<'a>>,
    /// For each task, its index among those with the same line.
    nths: Vec<usize>,
    /// The number of tasks with each line.
    counts: HashMap<&'a str, usize>,
    settings: &'a PluginSettings,
    digest: String,
}

/// The text of a note after a change of one line, and the change as the ledger records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditedNote {
    pub(crate) text: String,
    pub(crate) before: Option<TaskLines>,
    pub(crate) after: Option<TaskLines>,
}

impl<'a> NoteTasks<'a> {
    pub(crate) fn parse(path: &'a str, text: &'a str, settings: &'a PluginSettings) -> Self {
        // Only tasks need the digest, which reads the whole note.
        let tasks = find_tasks(text, &settings.style.global_filter);
        let digest = if tasks.is_empty() {
            String::new()
        } else {
            locate::digest(text)
        };
        let mut counts: HashMap<&str, usize> = HashMap::new();
        let mut next = |task: &LocatedTask<'a>| {
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
    pub(crate) fn tasks(&self) -> Vec<VaultTask> {
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
                around: locate::around(self.text, &task.range),
                note: self.digest.clone(),
            },
            line_number: task.number,
            words: task.line.description(),
            text: without_closing_dates(&task.line),
            status: self.settings.status(task.line.status),
            due: task.line.date(Kind::Due),
            done: task.line.date(Kind::Done),
            created: task.line.date(Kind::Created),
        })
    }

    pub(crate) fn line(&self, index: usize) -> Option<&TaskLine<'a>> {
        self.tasks.get(index).map(|task| &task.line)
    }

    /// Finds a task again, by its address.
    ///
    /// # Errors
    /// [`MemoryError::Task`] if no line is certainly the one that is meant.
    pub(crate) fn find(&self, address: &TaskAddress) -> Result<usize, MemoryError> {
        locate::locate(self.text, &self.tasks, address).map_err(|lost| {
            let path = self.path;
            task_error(match lost {
                LocateError::Gone => format!(
                    "{path:?} was changed since: the task's line no longer reads as it did, so nothing was changed; look at the list again"
                ),
                LocateError::Ambiguous => format!(
                    "{path:?} was changed since and has several tasks that read the same, so it is not clear which is meant; nothing was changed. Make them differ, or change it in the note"
                ),
            })
        })
    }

    /// Replaces the line of a task by other lines, or removes it.
    ///
    /// # Errors
    /// [`VaultError::Shape`] if another task of the note would no longer be one.
    pub(crate) fn replace_line(
        &self,
        index: usize,
        lines: &[String],
    ) -> Result<EditedNote, MemoryError> {
        let Some(task) = self.tasks.get(index) else {
            return Err(task_error(format!("{:?} has no such task", self.path)));
        };
        let end = task.range.end;
        let text = if lines.is_empty() {
            let end = end + line_ending_at(self.text, end).len();
            splice(self.text, task.range.start..end, "")
        } else {
            let with = lines.join(line_divider(self.text, end));
            splice(self.text, task.range.clone(), &with)
        };
        let mut expected: Vec<&str> = self.tasks.iter().map(|task| task.line.text).collect();
        expected.splice(index..=index, lines.iter().map(String::as_str));
        let hint = if lines.is_empty() {
            "the tasks below it would no longer be read as tasks without it; move them first, in the note"
        } else {
            "written so, it or another task of the note would no longer be read as one"
        };
        self.verify(&text, &expected, hint)?;
        let recorded = |lines: String| self.ledger_lines(lines, self.text, &task.range);
        Ok(EditedNote {
            text,
            before: Some(recorded(task.line.text.to_owned())),
            after: (!lines.is_empty()).then(|| recorded(lines.join("\n"))),
        })
    }

    /// Appends the line of a task to the note.
    ///
    /// # Errors
    /// [`VaultError::Shape`] if it would not be read as a task there.
    pub(crate) fn append_line(&self, line: &str) -> Result<EditedNote, MemoryError> {
        let mut expected: Vec<&str> = self.tasks.iter().map(|task| task.line.text).collect();
        expected.push(line);
        let last = self
            .text
            .trim_end_matches(['\n', '\r'])
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .trim_start();
        let blank = || insertion(self.text, self.text.len(), line);
        let direct = line_below(self.text, self.text.len(), line);
        // A task joins a list at the end of the note; else it gets a blank line before it.
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
        // Which of the two is a task depends on Markdown that only the parser knows, so both are
        // tried.
        for inserted in tries {
            let text = format!("{}{inserted}", self.text);
            match self.verify(&text, &expected, hint) {
                Ok(()) => {
                    let start = text.trim_end_matches(['\r', '\n']).len() - line.len();
                    let found_before = locate::occurrences(self.text, line).len();
                    let range = start..start + line.len();
                    let after = Some(TaskLines {
                        found_before,
                        ..self.ledger_lines(line.to_owned(), &text, &range)
                    });
                    return Ok(EditedNote {
                        text,
                        before: None,
                        after,
                    });
                }
                Err(error) => refusal = Some(error),
            }
        }
        Err(refusal.unwrap_or_else(|| task_error(hint.to_owned())))
    }

    fn ledger_lines(&self, lines: String, text: &str, at: &Range<usize>) -> TaskLines {
        TaskLines {
            path: self.path.to_owned(),
            above: locate::line_above(text, at.start).map(str::to_owned),
            below: locate::line_below(text, at.end).map(str::to_owned),
            found_before: locate::occurrences(text, &lines).len(),
            text: lines,
        }
    }

    /// Checks that a changed text has exactly the expected tasks, and that no comment hides what
    /// was visible.
    fn verify(&self, text: &str, expected: &[&str], hint: &str) -> Result<(), MemoryError> {
        let now = find_tasks(text, &self.settings.style.global_filter);
        // Compared with before: a comment that its owner left open is no fault of this change.
        let hides = |text: &str| text.contains("%%") && Outline::parse(text).open_comment;
        if now
            .iter()
            .map(|task| task.line.text)
            .eq(expected.iter().copied())
            && hides(text) == hides(self.text)
        {
            return Ok(());
        }
        Err(VaultError::shape(self.path, hint).into())
    }
}

/// Returns the line ending at an offset, the end of a line.
pub(crate) fn line_ending_at(text: &str, end: usize) -> &str {
    let after = text.get(end..).unwrap_or_default();
    let length = if after.starts_with("\r\n") {
        2
    } else {
        usize::from(after.starts_with('\n'))
    };
    after.get(..length).unwrap_or_default()
}

/// Returns the line ending to write between lines that take the place of one that ends at an
/// offset: its own, or that of the text if it is the last.
pub(crate) fn line_divider(text: &str, end: usize) -> &str {
    match line_ending_at(text, end) {
        "" => line_ending(text),
        ending => ending,
    }
}

pub(crate) fn task_error(reason: String) -> MemoryError {
    MemoryError::Task { reason }
}
