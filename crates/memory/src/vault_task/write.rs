//! Changes of tasks: add, complete, edit, delete, move.

use adjutant_core::{MemoryChange, MemoryEffect, MemoryState, TaskLines};
use jiff::civil::Date;
use serde_json::{Value, json};

use super::locate::{TaskAddress, occurrences};
use super::note::{EditedNote, NoteTasks, task_error};
use super::settings::{PluginSettings, TaskStatus};
use super::{TaskEdit, TaskWritten, VaultTask, VaultTasks};
use crate::context::Cause;
use crate::task_line::{TaskEdit as LineEdit, TaskLine, complete, edit, new_line};
use crate::vault::path::case_folded;
use crate::vault::{NotePath, StoredText};
use crate::vault_memory::{ATTEMPTS_MAX, PlannedWrite, PriorAttempt, blocking, busy};
use crate::{MemoryError, VaultError};

/// A planned change of a note, or the answer if it needs none.
enum NotePlan {
    Already(TaskWritten),
    Write(Box<EditedNote>, TaskWritten),
}

/// A call that changes a task, and its unfinished earlier attempt.
struct TaskCall<'a> {
    cause: &'a Cause,
    unfinished: Option<MemoryChange>,
    settings: PluginSettings,
    /// The day on which the change is made; that of the first attempt.
    today: Date,
}

/// A task that was found in its note, with the call that changes it.
struct FoundTask<'n, 'a> {
    call: &'n TaskCall<'n>,
    path: &'n NotePath,
    note: &'n NoteTasks<'a>,
    index: usize,
    line: &'n TaskLine<'a>,
    task: VaultTask,
}

impl VaultTasks {
    /// Adds a task at the end of a note, which is created if it does not exist. `note` is its whole
    /// path.
    ///
    /// # Errors
    /// [`MemoryError::Task`] for a task without text; [`VaultError`] for the note.
    pub async fn add(
        &self,
        words: &str,
        note: &str,
        cause: &Cause,
    ) -> Result<TaskWritten, MemoryError> {
        let call = match self.begin(cause).await? {
            Start::Answered(written) => return Ok(written),
            Start::Call(call) => call,
        };
        let (vault, name) = (self.0.vault.clone(), note.to_owned());
        let path = blocking(move || {
            let path = vault.settle(&NotePath::from_owner(&name)?)?;
            // A task that nobody can see again would be lost.
            vault.check_visible(&path)?;
            // A note that has to be created gets a name that every system can have.
            if vault.locate(&path)?.exists {
                Ok(path)
            } else {
                vault.settle(&NotePath::for_new(&name)?)
            }
        });
        let path = self.refuse_facts_file(path.await?)?;
        let line = new_line(words, call.today, &call.settings.style).map_err(task_error)?;
        self.change(&path, &call, |text| {
            let note = NoteTasks::parse(path.as_str(), text.unwrap_or_default(), &call.settings);
            let changed = note.append_line(&line)?;
            let task = last_task(&path, &changed.text, &call.settings)?;
            Ok(NotePlan::Write(Box::new(changed), TaskWritten::new(task)))
        })
        .await
    }

    /// Completes a task: its status becomes `x`, and the day is written at its end. If it recurs,
    /// its next occurrence is written beside it. Completing a completed task succeeds, with
    /// [`TaskWritten::already`].
    ///
    /// # Errors
    /// [`MemoryError::Task`] if the line is not found with certainty, or recurs by another rule
    /// than `every N days|weeks|months|years [when done]`.
    pub async fn complete(
        &self,
        task: &TaskAddress,
        cause: &Cause,
    ) -> Result<TaskWritten, MemoryError> {
        self.change_task(task, cause, |found| {
            match found.task.status {
                TaskStatus::Done => {
                    return Ok(NotePlan::Already(TaskWritten {
                        already: true,
                        ..TaskWritten::new(found.task)
                    }));
                }
                TaskStatus::NonTask => {
                    return Err(task_error(
                        "its checkbox is set not to be a task in the plugin's settings".to_owned(),
                    ));
                }
                TaskStatus::Todo | TaskStatus::InProgress | TaskStatus::Cancelled => {}
            }
            let style = &found.call.settings.style;
            let made = complete(found.line, found.call.today, style).map_err(task_error)?;
            // The plugin too writes the next occurrence above the completed line.
            let mut lines: Vec<String> = made.next.iter().chain(&made.done).cloned().collect();
            // The offsets of the next occurrence and of the completed line.
            let mut offsets = (
                made.next.as_ref().map(|_| 0),
                made.done.as_ref().map(|_| lines.len() - 1),
            );
            if style.next_below && lines.len() == 2 {
                lines.reverse();
                offsets = (Some(1), Some(0));
            }
            let changed = found.note.replace_line(found.index, &lines)?;
            let settings = &found.call.settings;
            let now = NoteTasks::parse(found.path.as_str(), &changed.text, settings);
            let at = |offset: Option<usize>| offset.and_then(|at| now.task(found.index + at));
            let written = TaskWritten {
                task: at(offsets.1).unwrap_or_else(|| found.task.clone()),
                next: at(offsets.0),
                gone: made.done.is_none(),
                before: Some(found.task.clone()),
                already: false,
            };
            Ok(NotePlan::Write(Box::new(changed), written))
        })
        .await
    }

    /// Changes the text or the due date of a task.
    ///
    /// # Errors
    /// [`MemoryError::Task`] if the line is not found with certainty, or for a text that no task
    /// can have.
    pub async fn edit(
        &self,
        task: &TaskAddress,
        change: &TaskEdit,
        cause: &Cause,
    ) -> Result<TaskWritten, MemoryError> {
        let words = change.words.as_deref();
        // JavaScript, in which the plugin is written, ends a line at the last two as well.
        let ends_line = |char: char| char.is_control() || matches!(char, '\u{2028}' | '\u{2029}');
        self.change_task(task, cause, |found| {
            if words.is_some_and(|words| words.contains(ends_line)) {
                return Err(task_error("a task is one line".to_owned()));
            }
            let due = change.due;
            let style = &found.call.settings.style;
            let new = edit(found.line, &LineEdit { words, due }, style).map_err(task_error)?;
            if new == found.line.text {
                let same = TaskWritten {
                    before: Some(found.task.clone()),
                    already: true,
                    ..TaskWritten::new(found.task)
                };
                return Ok(NotePlan::Already(same));
            }
            let changed = found.note.replace_line(found.index, &[new])?;
            let settings = &found.call.settings;
            let now = NoteTasks::parse(found.path.as_str(), &changed.text, settings);
            let now = now.task(found.index);
            let written = TaskWritten {
                before: Some(found.task),
                ..TaskWritten::new(now.ok_or_else(|| gone(found.path))?)
            };
            Ok(NotePlan::Write(Box::new(changed), written))
        })
        .await
    }

    /// Deletes a task: its line, and no other. It can be restored for 30 days.
    ///
    /// # Errors
    /// [`MemoryError::Task`] if the line is not found with certainty; [`VaultError::Shape`] if
    /// tasks nested below it would be none without it.
    pub async fn delete(
        &self,
        task: &TaskAddress,
        cause: &Cause,
    ) -> Result<TaskWritten, MemoryError> {
        self.change_task(task, cause, |found| {
            let changed = found.note.replace_line(found.index, &[])?;
            let written = TaskWritten {
                gone: true,
                ..TaskWritten::new(found.task)
            };
            Ok(NotePlan::Write(Box::new(changed), written))
        })
        .await
    }

    /// Moves a task to the end of another note: its line, from the list mark on. Between the two
    /// writes it stands in both notes, never in none.
    ///
    /// # Errors
    /// As [`VaultTasks::delete`], and [`VaultError`] for the other note.
    pub async fn move_to(
        &self,
        task: &TaskAddress,
        note: &str,
        cause: &Cause,
    ) -> Result<TaskWritten, MemoryError> {
        let call = match self.begin(cause).await? {
            Start::Answered(written) => return Ok(written),
            Start::Call(call) => call,
        };
        let from = self.task_note(&task.path)?;
        let to = self.destination(note).await?;
        if case_folded(from.as_str()) == case_folded(to.as_str()) {
            return Err(task_error(format!("it stands in {to} already")));
        }
        let memory = &self.0;
        // One lock over both notes, so that no other process of ours changes the task between the
        // two writes.
        let lock = memory.lock().await?;
        let mut begun = call.unfinished.clone();
        for _ in 0..ATTEMPTS_MAX {
            let (source, target) = (memory.read(&from).await?, memory.read(&to).await?);
            let (source_text, target_text) = (
                source.as_ref().map(StoredText::as_str),
                target.as_ref().map(StoredText::as_str),
            );
            let (before, after) = begun.as_ref().map_or((None, None), task_sides);
            let is_there = after.is_some_and(|after| occurs_more_often(after, target_text));
            if is_there
                && before.is_some_and(|before| occurs_less_often(before, source_text))
                && let Some(answer) = begun.as_ref().and_then(recorded_task)
            {
                memory.context.settle(begun, MemoryState::Done).await;
                return Ok(answer);
            }
            let note = NoteTasks::parse(
                from.as_str(),
                source_text.ok_or_else(|| gone(&from))?,
                &call.settings,
            );
            let index = note.find(task)?;
            let (line, before) = line_and_task(&note, index, &from)?;
            let taken = note.replace_line(index, &[])?;
            if !is_there {
                let line = line.text.get(line.mark..).unwrap_or_default();
                let other =
                    NoteTasks::parse(to.as_str(), target_text.unwrap_or_default(), &call.settings);
                let put = other.append_line(line)?;
                let task = last_task(&to, &put.text, &call.settings)?;
                let answer = TaskWritten {
                    before: Some(before),
                    ..TaskWritten::new(task)
                };
                let effect = MemoryEffect::Task {
                    words: answer.task.words.clone(),
                    before: taken.before.clone(),
                    after: put.after.clone(),
                    created: target.is_none(),
                    answer: json!(answer),
                };
                let change = memory
                    .context
                    .begin_change(call.cause, begun.take(), effect);
                memory.context.record(&change).await?;
                begun = Some(change.clone());
                // First in, then out: after a crash in between the task is in both notes, not in
                // none.
                match memory.replace(&lock, &to, target, put.text).await {
                    Ok(true) => {}
                    Ok(false) => continue,
                    Err(error) => {
                        memory.context.settle(Some(change), MemoryState::Void).await;
                        return Err(error);
                    }
                }
            }
            if memory.replace(&lock, &from, source, taken.text).await? {
                let answer = begun.as_ref().and_then(recorded_task);
                memory.context.settle(begun, MemoryState::Done).await;
                return answer
                    .ok_or_else(|| task_error("its new line could not be found".to_owned()));
            }
        }
        Err(busy(&from))
    }

    /// Begins a change, or returns the answer of an earlier attempt with the same key.
    async fn begin<'a>(&self, cause: &'a Cause) -> Result<Start<'a>, MemoryError> {
        let attempt = self.0.context.prior_attempt(cause, recorded_answer).await?;
        let unfinished = match attempt {
            PriorAttempt::Answered(written) => return Ok(Start::Answered(written)),
            PriorAttempt::Open(change) => change.map(|change| *change),
        };
        let vault = self.0.vault.clone();
        let settings = blocking(move || Ok(PluginSettings::load(&vault))).await?;
        let now = (self.0.context.clock)();
        // A repeat after a crash writes the dates of the first attempt, else it could not find its
        // line.
        let at = unfinished
            .as_ref()
            .map(|change| change.at.to_zoned(now.time_zone().clone()));
        Ok(Start::Call(TaskCall {
            cause,
            unfinished,
            settings,
            today: at.unwrap_or(now).date(),
        }))
    }

    /// Returns the path of a task's note.
    fn task_note(&self, path: &str) -> Result<NotePath, MemoryError> {
        let path = NotePath::from_owner(path)?;
        self.refuse_facts_file(path)
    }

    /// Returns the path of the note that a task is moved to: an existing note of that name, or a
    /// new one.
    async fn destination(&self, name: &str) -> Result<NotePath, MemoryError> {
        let (vault, name) = (self.0.vault.clone(), name.to_owned());
        self.refuse_facts_file(blocking(move || vault.resolve_or_new(&name)).await?)
    }

    /// Refuses the file of the facts: a task in it would be read as text of the owner.
    fn refuse_facts_file(&self, path: NotePath) -> Result<NotePath, MemoryError> {
        let reason = "the facts are kept there, no tasks";
        self.0.refuse_facts_file(&path, reason)?;
        Ok(path)
    }

    /// Changes one task: finds its line, plans the change, and writes its note.
    async fn change_task(
        &self,
        task: &TaskAddress,
        cause: &Cause,
        plan: impl Fn(FoundTask<'_, '_>) -> Result<NotePlan, MemoryError>,
    ) -> Result<TaskWritten, MemoryError> {
        let call = match self.begin(cause).await? {
            Start::Answered(written) => return Ok(written),
            Start::Call(call) => call,
        };
        let path = self.task_note(&task.path)?;
        self.change(&path, &call, |text| {
            let text = text.ok_or_else(|| gone(&path))?;
            let note = NoteTasks::parse(path.as_str(), text, &call.settings);
            let index = note.find(task)?;
            let (line, task) = line_and_task(&note, index, &path)?;
            plan(FoundTask {
                call: &call,
                path: &path,
                note: &note,
                index,
                line,
                task,
            })
        })
        .await
    }

    /// Changes one note.
    async fn change(
        &self,
        path: &NotePath,
        call: &TaskCall<'_>,
        plan: impl Fn(Option<&str>) -> Result<NotePlan, MemoryError>,
    ) -> Result<TaskWritten, MemoryError> {
        self.0
            .change(path, call.cause, call.unfinished.as_ref(), |text| {
                // What an attempt before a crash has written is not written again.
                if let Some(answer) = call
                    .unfinished
                    .as_ref()
                    .and_then(|change| finished_answer(change, text))
                {
                    return Ok(PlannedWrite::Nothing(answer));
                }
                Ok(match plan(text)? {
                    NotePlan::Already(written) => PlannedWrite::Nothing(written),
                    NotePlan::Write(changed, answer) => {
                        let effect = MemoryEffect::Task {
                            words: answer.task.words.clone(),
                            before: changed.before,
                            after: changed.after,
                            created: text.is_none(),
                            answer: json!(answer),
                        };
                        PlannedWrite::Write {
                            text: changed.text,
                            effect: Box::new(effect),
                            answer,
                        }
                    }
                })
            })
            .await
    }
}

/// A call that may begin, or the answer of an earlier attempt.
enum Start<'a> {
    Answered(TaskWritten),
    Call(TaskCall<'a>),
}

/// Returns the answer of an attempt that crashed after it wrote the note: its lines stand there as
/// it would have left them.
fn finished_answer(change: &MemoryChange, text: Option<&str>) -> Option<TaskWritten> {
    let done = match task_sides(change) {
        (_, Some(after)) => occurs_more_often(after, text),
        (Some(before), None) => occurs_less_often(before, text),
        (None, None) => false,
    };
    if done { recorded_task(change) } else { None }
}

fn occurs_more_often(lines: &TaskLines, text: Option<&str>) -> bool {
    text.is_some_and(|text| occurrences(text, &lines.text).len() > lines.found_before)
}

fn occurs_less_often(lines: &TaskLines, text: Option<&str>) -> bool {
    text.is_none_or(|text| occurrences(text, &lines.text).len() < lines.found_before)
}

/// Returns the lines that a change of a task replaced, and those that took their place.
fn task_sides(change: &MemoryChange) -> (Option<&TaskLines>, Option<&TaskLines>) {
    match &change.effect {
        MemoryEffect::Task { before, after, .. } => (before.as_ref(), after.as_ref()),
        MemoryEffect::Fact { .. } | MemoryEffect::Note { .. } => (None, None),
    }
}

fn recorded_answer(effect: &MemoryEffect) -> Option<&Value> {
    match effect {
        MemoryEffect::Task { answer, .. } => Some(answer),
        MemoryEffect::Fact { .. } | MemoryEffect::Note { .. } => None,
    }
}

fn recorded_task(change: &MemoryChange) -> Option<TaskWritten> {
    serde_json::from_value(recorded_answer(&change.effect)?.clone()).ok()
}

fn line_and_task<'a, 'n>(
    note: &'n NoteTasks<'a>,
    index: usize,
    path: &NotePath,
) -> Result<(&'n TaskLine<'a>, VaultTask), MemoryError> {
    note.line(index)
        .zip(note.task(index))
        .ok_or_else(|| gone(path))
}

fn last_task(
    path: &NotePath,
    text: &str,
    settings: &PluginSettings,
) -> Result<VaultTask, MemoryError> {
    NoteTasks::parse(path.as_str(), text, settings)
        .tasks()
        .pop()
        .ok_or_else(|| gone(path))
}

fn gone(path: &NotePath) -> MemoryError {
    VaultError::no_such_note(path.as_str()).into()
}
