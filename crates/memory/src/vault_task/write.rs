//! Adding, completing, editing, moving and deleting.

use adjutant_core::{MemoryChange, MemoryEffect, MemoryState, TaskLines};
use jiff::civil::Date;
use serde_json::json;

use super::note::{Changed, NoteTasks, refused};
use super::place::{TaskAddress, occurrences};
use super::settings::{PluginSettings, TaskStatus};
use super::{Earlier, TaskEdit, TaskWritten, VaultTask, VaultTasks};
use crate::memory::{ATTEMPTS_MAX, Cause, Planned, Shared, blocking};
use crate::task_line::{TaskEdit as LineEdit, complete, edit, new_line};
use crate::vault::path::folded;
use crate::vault::{NotePath, Stored};
use crate::{MemoryError, VaultError};

/// A plan for a note: nothing, because it is so already, or another text.
enum Plan {
    Already(TaskWritten),
    Write(Box<Changed>, TaskWritten),
}

/// The one who changes a task, and what is known of the attempt before.
struct Call<'a> {
    cause: &'a Cause,
    begun: Option<MemoryChange>,
    settings: PluginSettings,
    /// The day on which it is done; that of the first attempt.
    today: Date,
}

impl VaultTasks {
    /// Adds a task at the end of a note, which is made if there is none. `note` is its whole path.
    ///
    /// # Errors
    /// [`MemoryError::Task`] without words; [`VaultError`] for the note.
    pub async fn add(
        &self,
        words: &str,
        note: &str,
        cause: &Cause,
    ) -> Result<TaskWritten, MemoryError> {
        let call = match self.begin(cause).await? {
            Begun::Answered(written) => return Ok(*written),
            Begun::Call(call) => *call,
        };
        let (vault, name) = (self.0.vault.clone(), note.to_owned());
        let path = blocking(move || {
            let path = vault.settle(&NotePath::of_owner(&name)?)?;
            if vault.locate(&path)?.exists {
                Ok(path)
            } else {
                vault.settle(&NotePath::for_new(&name)?)
            }
        });
        let path = self.guard(path.await?)?;
        let line = new_line(words, call.today, &call.settings.style).map_err(refused)?;
        self.change(&path, &call, |text| {
            let note = NoteTasks::read(path.as_str(), text.unwrap_or_default(), &call.settings);
            let changed = note.appended(&line)?;
            let task = last_of(&path, &changed.text, &call.settings)?;
            Ok(Plan::Write(Box::new(changed), TaskWritten::of(task)))
        })
        .await
    }

    /// Completes a task: its status is `x`, the day is written at its end. If it recurs, its next
    /// occurrence is written beside it. Completing a completed task succeeds and says so.
    ///
    /// # Errors
    /// [`MemoryError::Task`] if the line is not surely found, or recurs by another rule than
    /// `every N days|weeks|months|years [when done]`.
    pub async fn complete(
        &self,
        task: &TaskAddress,
        cause: &Cause,
    ) -> Result<TaskWritten, MemoryError> {
        let call = match self.begin(cause).await? {
            Begun::Answered(written) => return Ok(*written),
            Begun::Call(call) => *call,
        };
        let path = self.note(&task.path)?;
        self.change(&path, &call, |text| {
            let note = NoteTasks::read(
                path.as_str(),
                text.ok_or_else(|| gone(&path))?,
                &call.settings,
            );
            let index = note.find(task)?;
            let (line, before) = found(&note, index, &path)?;
            match before.status {
                TaskStatus::Done => {
                    return Ok(Plan::Already(TaskWritten {
                        already: true,
                        ..TaskWritten::of(before)
                    }));
                }
                TaskStatus::NonTask => {
                    return Err(refused(
                        "its checkbox is set not to be a task in the plugin's settings".to_owned(),
                    ));
                }
                TaskStatus::Todo | TaskStatus::InProgress | TaskStatus::Cancelled => {}
            }
            let made = complete(line, call.today, &call.settings.style).map_err(refused)?;
            let mut lines: Vec<String> = made.next.iter().chain(&made.done).cloned().collect();
            let mut places = (
                made.next.as_ref().map(|_| 0),
                made.done.as_ref().map(|_| lines.len() - 1),
            );
            if call.settings.style.next_below && lines.len() == 2 {
                lines.reverse();
                places = (Some(1), Some(0));
            }
            let changed = note.replaced(index, &lines)?;
            let now = NoteTasks::read(path.as_str(), &changed.text, &call.settings);
            let at = |place: Option<usize>| place.and_then(|place| now.task(index + place));
            let written = TaskWritten {
                task: at(places.1).unwrap_or_else(|| before.clone()),
                next: at(places.0),
                gone: made.done.is_none(),
                before: Some(before),
                already: false,
            };
            Ok(Plan::Write(Box::new(changed), written))
        })
        .await
    }

    /// Gives a task other words or another day.
    ///
    /// # Errors
    /// [`MemoryError::Task`] if the line is not surely found, or for words that cannot be a task's.
    pub async fn edit(
        &self,
        task: &TaskAddress,
        change: &TaskEdit,
        cause: &Cause,
    ) -> Result<TaskWritten, MemoryError> {
        let call = match self.begin(cause).await? {
            Begun::Answered(written) => return Ok(*written),
            Begun::Call(call) => *call,
        };
        let path = self.note(&task.path)?;
        let words = change.words.as_deref();
        if words.is_some_and(|words| {
            words
                .chars()
                .any(|char| char.is_control() || matches!(char, '\u{2028}' | '\u{2029}'))
        }) {
            return Err(refused("a task is one line".to_owned()));
        }
        let line_edit = LineEdit {
            words,
            due: change.due,
        };
        self.change(&path, &call, |text| {
            let note = NoteTasks::read(
                path.as_str(),
                text.ok_or_else(|| gone(&path))?,
                &call.settings,
            );
            let index = note.find(task)?;
            let (line, before) = found(&note, index, &path)?;
            let new = edit(line, &line_edit, &call.settings.style).map_err(refused)?;
            if new == line.text {
                let same = TaskWritten {
                    before: Some(before.clone()),
                    already: true,
                    ..TaskWritten::of(before)
                };
                return Ok(Plan::Already(same));
            }
            let changed = note.replaced(index, &[new])?;
            let now = NoteTasks::read(path.as_str(), &changed.text, &call.settings);
            let (_, task) = found(&now, index, &path)?;
            Ok(Plan::Write(
                Box::new(changed),
                TaskWritten {
                    before: Some(before),
                    ..TaskWritten::of(task)
                },
            ))
        })
        .await
    }

    /// Deletes a task: its line, and no other. It can be brought back for 30 days.
    ///
    /// # Errors
    /// [`MemoryError::Task`] if the line is not surely found; [`VaultError::Shape`] if tasks below
    /// it would be none without it.
    pub async fn delete(
        &self,
        task: &TaskAddress,
        cause: &Cause,
    ) -> Result<TaskWritten, MemoryError> {
        let call = match self.begin(cause).await? {
            Begun::Answered(written) => return Ok(*written),
            Begun::Call(call) => *call,
        };
        let path = self.note(&task.path)?;
        self.change(&path, &call, |text| {
            let note = NoteTasks::read(
                path.as_str(),
                text.ok_or_else(|| gone(&path))?,
                &call.settings,
            );
            let index = note.find(task)?;
            let (_, before) = found(&note, index, &path)?;
            let changed = note.replaced(index, &[])?;
            Ok(Plan::Write(
                Box::new(changed),
                TaskWritten {
                    gone: true,
                    ..TaskWritten::of(before)
                },
            ))
        })
        .await
    }

    /// Moves a task to the end of another note: its line, from the mark of the list on. Between the
    /// two writes it stands in both notes, never in none.
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
            Begun::Answered(written) => return Ok(*written),
            Begun::Call(call) => *call,
        };
        let from = self.note(&task.path)?;
        let to = self.destination(note).await?;
        if folded(from.as_str()) == folded(to.as_str()) {
            return Err(refused(format!("it stands in {to} already")));
        }
        let shared = &self.0;
        let mut lock = shared.lock().await?;
        let mut begun = call.begun.clone();
        for _ in 0..ATTEMPTS_MAX {
            let (source, target) = (shared.read(&from).await?, shared.read(&to).await?);
            let (source_text, target_text) = (
                source.as_ref().map(Stored::text),
                target.as_ref().map(Stored::text),
            );
            let there = begun.as_ref().is_some_and(|change| {
                after_of(change).is_some_and(|after| stands_more_often(after, target_text))
            });
            if there
                && let Some(change) = begun.as_ref()
                && before_of(change).is_some_and(|before| stands_less_often(before, source_text))
                && let Some(answer) = answer_of(change)
            {
                shared.finish(begun).await;
                return Ok(answer);
            }
            let note = NoteTasks::read(
                from.as_str(),
                source_text.ok_or_else(|| gone(&from))?,
                &call.settings,
            );
            let index = note.find(task)?;
            let (line, before) = found(&note, index, &from)?;
            let taken = note.replaced(index, &[])?;
            if !there {
                let line = line.text.get(line.mark..).unwrap_or_default();
                let other =
                    NoteTasks::read(to.as_str(), target_text.unwrap_or_default(), &call.settings);
                let put = other.appended(line)?;
                let task = last_of(&to, &put.text, &call.settings)?;
                let answer = TaskWritten {
                    before: Some(before),
                    ..TaskWritten::of(task)
                };
                let effect = MemoryEffect::Task {
                    words: answer.task.words.clone(),
                    before: taken.before.clone(),
                    after: put.after.clone(),
                    created: target.is_none(),
                    answer: json!(answer),
                };
                let change = match begun.take() {
                    Some(change) => MemoryChange {
                        effect,
                        state: MemoryState::Begun,
                        ..change
                    },
                    None => shared.common.new_change(call.cause, effect),
                };
                shared
                    .common
                    .ledger
                    .put(&shared.common.scope, &change)
                    .await?;
                begun = Some(change.clone());
                match shared.replace(lock, &to, target, put.text).await {
                    Ok((held, true)) => lock = held,
                    Ok((held, false)) => {
                        lock = held;
                        continue;
                    }
                    Err(error) => {
                        shared.void(Some(change)).await;
                        return Err(error);
                    }
                }
            }
            match shared.replace(lock, &from, source, taken.text).await? {
                (_, true) => {
                    let answer = begun.as_ref().and_then(answer_of);
                    shared.finish(begun).await;
                    return answer
                        .ok_or_else(|| refused("its new line could not be told".to_owned()));
                }
                (held, false) => lock = held,
            }
        }
        Err(VaultError::Busy {
            name: from.to_string(),
        }
        .into())
    }

    /// Begins a change, or gives the answer of an earlier one with the same key.
    async fn begin<'a>(&self, cause: &'a Cause) -> Result<Begun<'a>, MemoryError> {
        let begun = match self.0.earlier_task(cause).await? {
            Earlier::Answered(written) => return Ok(Begun::Answered(written)),
            Earlier::Begun(change) => Some(*change),
            Earlier::None => None,
        };
        let vault = self.0.vault.clone();
        let settings = blocking(move || Ok(PluginSettings::of(&vault))).await?;
        let now = (self.0.common.clock)();
        let at = begun
            .as_ref()
            .map(|change| change.at.to_zoned(now.time_zone().clone()));
        let today = at.unwrap_or(now).date();
        Ok(Begun::Call(Box::new(Call {
            cause,
            begun,
            settings,
            today,
        })))
    }

    /// Returns the path of a task's note.
    fn note(&self, path: &str) -> Result<NotePath, MemoryError> {
        let path = NotePath::of_owner(path)?;
        self.guard(path)
    }

    /// Returns the path of the note that a task is moved to: one that answers to the name, or a new
    /// one.
    async fn destination(&self, name: &str) -> Result<NotePath, MemoryError> {
        let (vault, name) = (self.0.vault.clone(), name.to_owned());
        let path = blocking(move || match vault.resolve(&name) {
            Ok(path) => vault.settle(&path),
            Err(VaultError::NoSuchNote { .. }) => vault.settle(&NotePath::for_new(&name)?),
            Err(error) => Err(error),
        })
        .await?;
        self.guard(path)
    }

    /// Refuses the file of the facts, which has a form of its own.
    fn guard(&self, path: NotePath) -> Result<NotePath, MemoryError> {
        let facts = &self.0.facts;
        let same_file = || match (self.0.vault.locate(&path), self.0.vault.locate(facts)) {
            (Ok(one), Ok(other)) => one.exists && other.exists && one.real == other.real,
            _ => false,
        };
        if folded(path.as_str()) == folded(facts.as_str()) || same_file() {
            let reason = "the facts are kept there, no tasks";
            return Err(VaultError::Name {
                name: path.to_string(),
                reason,
            }
            .into());
        }
        Ok(path)
    }

    /// Changes one note.
    async fn change(
        &self,
        path: &NotePath,
        call: &Call<'_>,
        plan: impl Fn(Option<&str>) -> Result<Plan, MemoryError>,
    ) -> Result<TaskWritten, MemoryError> {
        let shared: &Shared = &self.0;
        shared
            .change(path, call.cause, call.begun.as_ref(), |text| {
                // What an attempt before a crash has written is not written again.
                if let Some(answer) = call
                    .begun
                    .as_ref()
                    .and_then(|change| done_before(change, text))
                {
                    return Ok(Planned::Nothing(answer));
                }
                Ok(match plan(text)? {
                    Plan::Already(written) => Planned::Nothing(written),
                    Plan::Write(changed, answer) => {
                        let effect = MemoryEffect::Task {
                            words: answer.task.words.clone(),
                            before: changed.before,
                            after: changed.after,
                            created: text.is_none(),
                            answer: json!(answer),
                        };
                        Planned::Write {
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

enum Begun<'a> {
    Answered(Box<TaskWritten>),
    Call(Box<Call<'a>>),
}

/// Returns the answer of a call that was begun before a crash, if its lines stand in the note as it
/// would have left them.
fn done_before(change: &MemoryChange, text: Option<&str>) -> Option<TaskWritten> {
    let done = match (before_of(change), after_of(change)) {
        (_, Some(after)) => stands_more_often(after, text),
        (Some(before), None) => stands_less_often(before, text),
        (None, None) => false,
    };
    if done { answer_of(change) } else { None }
}

fn stands_more_often(lines: &TaskLines, text: Option<&str>) -> bool {
    text.is_some_and(|text| occurrences(text, &lines.text).len() > lines.found_before)
}

fn stands_less_often(lines: &TaskLines, text: Option<&str>) -> bool {
    text.is_none_or(|text| occurrences(text, &lines.text).len() < lines.found_before)
}

fn before_of(change: &MemoryChange) -> Option<&TaskLines> {
    let MemoryEffect::Task { before, .. } = &change.effect else {
        return None;
    };
    before.as_ref()
}

fn after_of(change: &MemoryChange) -> Option<&TaskLines> {
    let MemoryEffect::Task { after, .. } = &change.effect else {
        return None;
    };
    after.as_ref()
}

fn answer_of(change: &MemoryChange) -> Option<TaskWritten> {
    let MemoryEffect::Task { answer, .. } = &change.effect else {
        return None;
    };
    serde_json::from_value(answer.clone()).ok()
}

fn found<'a, 'n>(
    note: &'n NoteTasks<'a>,
    index: usize,
    path: &NotePath,
) -> Result<(&'n crate::task_line::TaskLine<'a>, VaultTask), MemoryError> {
    note.line(index)
        .zip(note.task(index))
        .ok_or_else(|| gone(path))
}

fn last_of(
    path: &NotePath,
    text: &str,
    settings: &PluginSettings,
) -> Result<VaultTask, MemoryError> {
    NoteTasks::read(path.as_str(), text, settings)
        .all()
        .pop()
        .ok_or_else(|| gone(path))
}

fn gone(path: &NotePath) -> MemoryError {
    VaultError::NoSuchNote {
        name: path.to_string(),
        nearest: Vec::new(),
    }
    .into()
}
