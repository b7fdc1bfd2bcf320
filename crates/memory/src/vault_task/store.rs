//! The tasks in the notes as the task store of an assistant.

use std::collections::HashSet;
use std::sync::Arc;

use adjutant_core::port::{NumbersChange, StoreError, TaskIndex, TaskNumber, TaskStore};
use adjutant_core::{
    BoxFuture, DELETED_TASK_DAYS, DESCRIPTION_CHARS_MAX, IdempotencyKey, Task, TaskChange,
    TaskChanged, TaskDescription, TaskFilter, TaskId, UserId,
};
use jiff::Zoned;

use super::note::VaultTask;
use super::numbers::{Known, Numbered, matched};
use super::{TaskAddress, TaskEdit, TaskStatus, TaskWritten, VaultTasks};
use crate::memory::Cause;
use crate::{MemoryError, VaultError};

/// A [`TaskStore`] over the notes of a vault. The lines are the truth; a database has the numbers
/// by which people and models name them, and what was carried out under which key. Whoever is not
/// the vault's owner has their tasks elsewhere.
pub struct VaultTaskStore {
    tasks: VaultTasks,
    index: Arc<dyn TaskIndex>,
    others: Arc<dyn TaskStore>,
    note: String,
}

/// A task in a note, with its number.
struct Row {
    id: TaskId,
    known: Known,
    task: VaultTask,
}

impl VaultTaskStore {
    /// Over the tasks of a vault. New tasks go to the end of `note`; the tasks of everybody but the
    /// owner are in `others`.
    #[must_use]
    pub fn new(
        tasks: VaultTasks,
        index: Arc<dyn TaskIndex>,
        others: Arc<dyn TaskStore>,
        note: impl Into<String>,
    ) -> Self {
        Self {
            tasks,
            index,
            others,
            note: note.into(),
        }
    }

    fn owner(&self) -> &UserId {
        &self.tasks.0.common.scope.user
    }

    fn is_owner(&self, user: &UserId) -> bool {
        self.owner() == user
    }

    /// Reads the tasks and their numbers, and writes what changed in these. `moved`: the line that
    /// a number stands for by now.
    async fn rows(&self, moved: Option<(TaskId, &VaultTask)>) -> Result<Vec<Row>, StoreError> {
        let (rows, change) = self.look(moved).await?;
        if change.is_empty() {
            return Ok(rows);
        }
        // Two processes would give two numbers to one line.
        let _lock = self.tasks.0.lock().await.map_err(refused)?;
        let (mut rows, change) = self.look(moved).await?;
        let ids = self
            .index
            .new_numbers(self.owner(), change.new.len())
            .await?;
        let mut put = change.put;
        for (id, (known, task)) in ids.into_iter().zip(change.new) {
            put.push(Numbered {
                id,
                known: known.clone(),
            });
            rows.push(Row { id, known, task });
        }
        let at = (self.tasks.0.common.clock)().timestamp();
        let put: Vec<TaskNumber> = put
            .into_iter()
            .map(|number| {
                let body = serde_json::to_string(&number.known).map_err(unreadable)?;
                Ok(TaskNumber {
                    id: number.id,
                    at,
                    body,
                })
            })
            .collect::<Result<_, StoreError>>()?;
        let scope = &self.tasks.0.common.scope;
        self.index
            .put_numbers(
                scope,
                NumbersChange {
                    put: &put,
                    removed: &change.removed,
                    applied: None,
                },
            )
            .await?;
        rows.sort_by_key(|row| row.id);
        Ok(rows)
    }

    /// Reads the tasks and their numbers, and what is to be changed in these.
    async fn look(
        &self,
        moved: Option<(TaskId, &VaultTask)>,
    ) -> Result<(Vec<Row>, Change), StoreError> {
        let mut tasks = self.tasks.list().await.map_err(refused)?.tasks;
        tasks.retain(|task| task.status != TaskStatus::NonTask);
        let mut numbers = self.numbers().await?;
        let now = (self.tasks.0.common.clock)();
        let mut change = Change::default();
        if let Some((id, task)) = moved {
            for number in &mut numbers {
                if number.id == id {
                    number.known = number.known.at(&task.address, &task.words);
                } else if number.known.stands_at(&task.address) {
                    // Given to the line while nobody knew that it is this task's.
                    number.known = number.known.gone(&now);
                    change.put.push(number.clone());
                }
            }
        }
        let found = matched(&tasks, &numbers);
        change.lose(&numbers, &found, &now);
        let mut rows = Vec::new();
        for (task, number) in tasks.into_iter().zip(found) {
            match number.and_then(|at| numbers.get(at)) {
                Some(number) => {
                    let known = number.known.of(&task, &now);
                    // Compared with what is written, which does not know yet where it moved to.
                    if known != number.known || moved.is_some_and(|(id, _)| id == number.id) {
                        change.put.push(Numbered {
                            id: number.id,
                            known: known.clone(),
                        });
                    }
                    rows.push(Row {
                        id: number.id,
                        known,
                        task,
                    });
                }
                None => change.new.push((Known::new(&task, &now), task)),
            }
        }
        rows.sort_by_key(|row| row.id);
        Ok((rows, change))
    }

    async fn numbers(&self) -> Result<Vec<Numbered>, StoreError> {
        let numbers = self.index.numbers(&self.tasks.0.common.scope).await?;
        numbers
            .into_iter()
            .map(|number| {
                let known = serde_json::from_str(&number.body).map_err(unreadable)?;
                Ok(Numbered {
                    id: number.id,
                    known,
                })
            })
            .collect()
    }

    /// Carries out a change that is not recorded under its key.
    async fn change(
        &self,
        change: &TaskChange,
        key: Option<&IdempotencyKey>,
    ) -> Result<TaskChanged, StoreError> {
        let cause = Cause {
            source: None,
            key: key.cloned(),
        };
        let tasks = &self.tasks;
        let id = match change {
            TaskChange::Add { description } => {
                let written = tasks
                    .add(description.as_str(), &self.note, &cause)
                    .await
                    .map_err(refused)?;
                let rows = self.rows(None).await?;
                let address = &written.task.address;
                let is_it = |row: &&Row| {
                    row.task.address.path == address.path && row.task.address.line == address.line
                };
                let row = rows
                    .iter()
                    .rev()
                    .find(is_it)
                    .ok_or_else(|| StoreError::Refused {
                        reason: format!(
                            "it was added to {} and has been changed there since",
                            address.path
                        ),
                    })?;
                return Ok(TaskChanged::Added {
                    task: self.task(row)?,
                });
            }
            TaskChange::Restore { id } => return self.restore(*id).await,
            TaskChange::Update { id, .. }
            | TaskChange::Complete { id }
            | TaskChange::Delete { id } => *id,
        };
        let Some((address, known)) = self.address(id, &cause).await? else {
            return Ok(TaskChanged::NoSuchTask { id });
        };
        let written = match change {
            TaskChange::Update { description, .. } => {
                let edit = TaskEdit {
                    words: Some(description.to_string()),
                    due: None,
                };
                tasks.edit(&address, &edit, &cause).await
            }
            TaskChange::Complete { .. } => tasks.complete(&address, &cause).await,
            TaskChange::Delete { .. } => tasks.delete(&address, &cause).await,
            TaskChange::Add { .. } | TaskChange::Restore { .. } => {
                return Ok(TaskChanged::NoSuchTask { id });
            }
        };
        self.outcome(change, (id, &known), written.map_err(refused)?)
            .await
    }

    /// Says what was done to a task, and lets its number stand for its line as it is now.
    async fn outcome(
        &self,
        change: &TaskChange,
        (id, known): (TaskId, &Known),
        written: TaskWritten,
    ) -> Result<TaskChanged, StoreError> {
        let moved = (!written.gone).then_some((id, &written.task));
        let rows = self.rows(moved).await?;
        let now = (self.tasks.0.common.clock)();
        let task = match rows.iter().find(|row| row.id == id) {
            Some(row) => self.task(row)?,
            None => self.task(&Row {
                id,
                known: known.of(&written.task, &now),
                task: written.task.clone(),
            })?,
        };
        Ok(match change {
            TaskChange::Update { .. } => {
                let before = written.before.as_ref().unwrap_or(&written.task);
                TaskChanged::Updated {
                    task,
                    before: description(before)?,
                }
            }
            TaskChange::Complete { .. } => {
                let at = task.completed_at.unwrap_or_else(|| now.timestamp());
                let task = Task {
                    completed: true,
                    completed_at: Some(at),
                    ..task
                };
                TaskChanged::Completed {
                    task,
                    already: written.already,
                }
            }
            TaskChange::Delete { .. } | TaskChange::Add { .. } | TaskChange::Restore { .. } => {
                TaskChanged::Deleted { task }
            }
        })
    }

    /// Finds the line of a number. A call that was begun before finds the line as it was then: it
    /// may have been done.
    async fn address(
        &self,
        id: TaskId,
        cause: &Cause,
    ) -> Result<Option<(TaskAddress, Known)>, StoreError> {
        let shared = &self.tasks.0;
        if let Some(key) = &cause.key
            && shared
                .common
                .ledger
                .by_key(&shared.common.scope, key)
                .await?
                .is_some()
        {
            let known = self
                .numbers()
                .await?
                .into_iter()
                .find(|number| number.id == id);
            return Ok(known.map(|number| (number.known.address(), number.known)));
        }
        let row = self.rows(None).await?.into_iter().find(|row| row.id == id);
        Ok(row.map(|row| (row.task.address, row.known)))
    }

    async fn restore(&self, id: TaskId) -> Result<TaskChanged, StoreError> {
        if let Some(row) = self.rows(None).await?.iter().find(|row| row.id == id) {
            return Ok(TaskChanged::Restored {
                task: self.task(row)?,
                already: true,
            });
        }
        let none = TaskChanged::NoSuchTask { id };
        let number = self
            .numbers()
            .await?
            .into_iter()
            .find(|number| number.id == id);
        let deleted = self.tasks.deleted().await.map_err(refused)?;
        let is_it = |known: &Known| {
            deleted
                .iter()
                .find(|deleted| deleted.path == known.path && deleted.line == known.line)
        };
        let Some(deleted) = number.as_ref().and_then(|number| is_it(&number.known)) else {
            return Ok(none);
        };
        self.tasks.restore(deleted.change).await.map_err(refused)?;
        match self.rows(None).await?.iter().find(|row| row.id == id) {
            Some(row) => Ok(TaskChanged::Restored {
                task: self.task(row)?,
                already: false,
            }),
            None => Ok(none),
        }
    }

    fn task(&self, Row { id, known, task }: &Row) -> Result<Task, StoreError> {
        Ok(Task {
            id: *id,
            user_id: self.owner().clone(),
            description: description(task)?,
            completed: task.status.is_closed(),
            created_at: known.created_at,
            updated_at: known.updated_at,
            completed_at: known.completed_at,
        })
    }
}

/// Changes of numbers that are to be written.
#[derive(Default)]
struct Change {
    put: Vec<Numbered>,
    new: Vec<(Known, VaultTask)>,
    removed: Vec<TaskId>,
}

impl Change {
    fn is_empty(&self) -> bool {
        self.put.is_empty() && self.new.is_empty() && self.removed.is_empty()
    }

    /// Numbers whose line is gone are kept as long as a deleted task is.
    fn lose(&mut self, numbers: &[Numbered], found: &[Option<usize>], now: &Zoned) {
        let live: HashSet<usize> = found.iter().flatten().copied().collect();
        for (_, number) in numbers
            .iter()
            .enumerate()
            .filter(|(at, _)| !live.contains(at))
        {
            match number.known.gone_at {
                None => {
                    self.put.push(Numbered {
                        id: number.id,
                        known: number.known.gone(now),
                    });
                }
                Some(gone)
                    if now.timestamp().duration_since(gone).as_hours() > DELETED_TASK_DAYS * 24 =>
                {
                    self.removed.push(number.id);
                }
                Some(_) => {}
            }
        }
    }
}

/// Returns the words of a task with its dates: the store's tasks have their dates in their words.
fn description(task: &VaultTask) -> Result<TaskDescription, StoreError> {
    TaskDescription::new(&task.text).or_else(|_| {
        let short: String = task
            .text
            .chars()
            .take(DESCRIPTION_CHARS_MAX - 1)
            .chain(['…'])
            .collect();
        TaskDescription::new(&short).map_err(|error| StoreError::Unreadable {
            message: error.to_string(),
        })
    })
}

fn unreadable(error: serde_json::Error) -> StoreError {
    StoreError::Unreadable {
        message: format!("the number of a task in notes: {error}"),
    }
}

fn refused(error: MemoryError) -> StoreError {
    match error {
        MemoryError::Ledger { reason } => StoreError::Unavailable { message: reason },
        MemoryError::Vault(VaultError::Busy { .. }) => StoreError::Unavailable { message: error.to_string() },
        // Where on the disk the vault is, is the person's business.
        MemoryError::Vault(VaultError::Missing { .. } | VaultError::NotAFolder { .. }) => StoreError::Refused {
            reason: "The vault's folder is not there at the moment, and the tasks are in its notes; nothing was changed."
                .to_owned(),
        },
        error => StoreError::Refused { reason: error.to_string() },
    }
}

impl TaskStore for VaultTaskStore {
    fn apply<'a>(
        &'a self,
        user: &'a UserId,
        change: &'a TaskChange,
        key: Option<&'a IdempotencyKey>,
    ) -> BoxFuture<'a, Result<TaskChanged, StoreError>> {
        if !self.is_owner(user) {
            return self.others.apply(user, change, key);
        }
        Box::pin(async move {
            let Some(key) = key else {
                return self.change(change, None).await;
            };
            if let Some(known) = self.index.applied(user, key).await? {
                return Ok(known);
            }
            let changed = self.change(change, Some(key)).await?;
            let applied = NumbersChange {
                applied: Some((key, &changed)),
                ..NumbersChange::default()
            };
            self.index
                .put_numbers(&self.tasks.0.common.scope, applied)
                .await?;
            Ok(changed)
        })
    }

    fn list<'a>(
        &'a self,
        user: &'a UserId,
        filter: TaskFilter,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>> {
        if !self.is_owner(user) {
            return self.others.list(user, filter);
        }
        Box::pin(async move {
            let rows = self.rows(None).await?;
            let tasks: Vec<Task> = rows
                .iter()
                .map(|row| self.task(row))
                .collect::<Result<_, _>>()?;
            Ok(tasks
                .into_iter()
                .filter(|task| filter.takes(task))
                .collect())
        })
    }

    fn list_last<'a>(
        &'a self,
        user: &'a UserId,
        filter: TaskFilter,
        before: Option<TaskId>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>> {
        if !self.is_owner(user) {
            return self.others.list_last(user, filter, before, limit);
        }
        Box::pin(async move {
            let mut tasks = self.list(user, filter).await?;
            tasks.retain(|task| before.is_none_or(|before| task.id < before));
            let left_out = tasks
                .len()
                .saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
            Ok(tasks.split_off(left_out))
        })
    }

    fn get<'a>(
        &'a self,
        user: &'a UserId,
        id: TaskId,
    ) -> BoxFuture<'a, Result<Option<Task>, StoreError>> {
        if !self.is_owner(user) {
            return self.others.get(user, id);
        }
        Box::pin(async move {
            let tasks = self.list(user, TaskFilter::All).await?;
            Ok(tasks.into_iter().find(|task| task.id == id))
        })
    }
}
