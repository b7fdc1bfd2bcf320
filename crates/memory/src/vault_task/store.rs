//! The tasks in the notes as the task store of an assistant.

use std::collections::HashSet;
use std::sync::Arc;

use adjutant_core::port::StoreError;
use adjutant_core::{BoxFuture, IdempotencyKey, MemoryScope, UserId};
use adjutant_tools::{
    DELETED_TASK_DAYS, DESCRIPTION_CHARS_MAX, NumbersChange, Task, TaskChange, TaskChanged,
    TaskDescription, TaskFilter, TaskId, TaskIndex, TaskNumber, TaskStore,
};
use jiff::Zoned;

use super::note::VaultTask;
use super::numbers::{NumberedTask, TaskRecord, match_tasks};
use super::{TaskAddress, TaskEdit, TaskStatus, TaskWritten, VaultTasks};
use crate::context::Cause;
use crate::{MemoryError, VaultError};

/// A [`TaskStore`] over the notes of a vault. The lines hold the tasks; a database has the numbers
/// by which users and models name them, and the calls that were carried out. Every user but the
/// vault's owner has their tasks in another store.
pub struct VaultTaskStore {
    tasks: VaultTasks,
    index: Arc<dyn TaskIndex>,
    others: Arc<dyn TaskStore>,
    note: String,
}

/// A task in a note, with its number.
struct Row {
    number: NumberedTask,
    task: VaultTask,
}

impl VaultTaskStore {
    /// Returns a store over the tasks of a vault. New tasks go to the end of `note`; the tasks of
    /// every other user are in `others`.
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

    fn scope(&self) -> &MemoryScope {
        &self.tasks.0.context.scope
    }

    fn owner(&self) -> &UserId {
        &self.scope().user
    }

    fn is_owner(&self, user: &UserId) -> bool {
        self.owner() == user
    }

    /// Reads the tasks and their numbers, and writes the numbers that changed. `moved`: the line
    /// that a number stands for from now on.
    async fn rows(&self, moved: Option<(TaskId, &VaultTask)>) -> Result<Vec<Row>, StoreError> {
        // Most reads change no number, and need no lock.
        let (rows, change) = self.read_and_match(moved).await?;
        if change.is_empty() {
            return Ok(rows);
        }
        // Without the lock two processes could give two numbers to one line.
        let _lock = self.tasks.0.lock().await.map_err(store_error)?;
        let (mut rows, change) = self.read_and_match(moved).await?;
        // A crash before they are stored leaves numbers unused, and none is given twice.
        let ids = self
            .index
            .new_numbers(self.owner(), change.new.len())
            .await?;
        let mut put = change.put;
        for (id, (record, task)) in ids.into_iter().zip(change.new) {
            let number = NumberedTask { id, record };
            put.push(number.clone());
            rows.push(Row { number, task });
        }
        self.put(&put, &change.removed).await?;
        rows.sort_by_key(|row| row.number.id);
        Ok(rows)
    }

    /// Writes numbers, and removes others.
    async fn put(&self, put: &[NumberedTask], removed: &[TaskId]) -> Result<(), StoreError> {
        let at = (self.tasks.0.context.clock)().timestamp();
        let put: Vec<TaskNumber> = put
            .iter()
            .map(|number| {
                let body = serde_json::to_string(&number.record).map_err(unreadable)?;
                Ok(TaskNumber {
                    id: number.id,
                    at,
                    body,
                })
            })
            .collect::<Result<_, StoreError>>()?;
        let change = NumbersChange {
            put: &put,
            removed,
            applied: None,
        };
        self.index.put_numbers(self.scope(), change).await
    }

    /// Returns the row of a line that was added. Its number is given even if another program has
    /// changed the note since: the line was added, and whoever hears of an error would add it
    /// again.
    async fn added_row(&self, task: VaultTask) -> Result<Row, StoreError> {
        let is_it = |row: &Row| {
            row.task.address.path == task.address.path && row.task.address.line == task.address.line
        };
        let rows = self.rows(None).await?;
        // An older line with the same text has a smaller number.
        if let Some(row) = rows.into_iter().rev().find(is_it) {
            return Ok(row);
        }
        let _lock = self.tasks.0.lock().await.map_err(store_error)?;
        let ids = self.index.new_numbers(self.owner(), 1).await?;
        let id = ids.into_iter().next().ok_or_else(|| StoreError::Refused {
            reason: format!("it was added to {}, but got no number", task.address.path),
        })?;
        let record = TaskRecord::new(&task, &(self.tasks.0.context.clock)());
        let number = NumberedTask { id, record };
        self.put(std::slice::from_ref(&number), &[]).await?;
        Ok(Row { number, task })
    }

    /// Reads the tasks and their numbers, and returns the changes of numbers that are to be
    /// written.
    async fn read_and_match(
        &self,
        moved: Option<(TaskId, &VaultTask)>,
    ) -> Result<(Vec<Row>, NumberChanges), StoreError> {
        let mut tasks = self.tasks.list().await.map_err(store_error)?.tasks;
        // The owner has set that such a checkbox is no task.
        tasks.retain(|task| task.status != TaskStatus::NonTask);
        let mut numbers = self.numbers().await?;
        let now = (self.tasks.0.context.clock)();
        let mut change = NumberChanges::default();
        if let Some((id, task)) = moved {
            for number in &mut numbers {
                if number.id == id {
                    number.record = number.record.moved_to(&task.address, &task.words);
                } else if number.record.is_at(&task.address) {
                    // A number that was given to the line while it was not known to be that of this
                    // task.
                    number.record = number.record.marked_gone(&now);
                    change.put.push(number.clone());
                }
            }
        }
        let found = match_tasks(&tasks, &numbers);
        change.track_missing(&numbers, &found, &now);
        let mut rows = Vec::new();
        for (task, number) in tasks.into_iter().zip(found) {
            match number.and_then(|at| numbers.get(at)) {
                Some(number) => {
                    let new = number.with_record(number.record.updated_from(&task, &now));
                    // Compared with what is written, which does not know yet where it moved to.
                    if new != *number || moved.is_some_and(|(id, _)| id == number.id) {
                        change.put.push(new.clone());
                    }
                    rows.push(Row { number: new, task });
                }
                None => change.new.push((TaskRecord::new(&task, &now), task)),
            }
        }
        rows.sort_by_key(|row| row.number.id);
        Ok((rows, change))
    }

    async fn numbers(&self) -> Result<Vec<NumberedTask>, StoreError> {
        let numbers = self.index.numbers(self.scope()).await?;
        numbers
            .into_iter()
            .map(|number| {
                let record = serde_json::from_str(&number.body).map_err(unreadable)?;
                let id = number.id;
                Ok(NumberedTask { id, record })
            })
            .collect()
    }

    async fn number(&self, id: TaskId) -> Result<Option<TaskRecord>, StoreError> {
        let mut numbers = self.numbers().await?.into_iter();
        let found = numbers.find(|number| number.id == id);
        Ok(found.map(|number| number.record))
    }

    async fn row(&self, id: TaskId) -> Result<Option<Row>, StoreError> {
        let mut rows = self.rows(None).await?.into_iter();
        Ok(rows.find(|row| row.number.id == id))
    }

    /// Carries out a change that was not carried out under its key before.
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
            TaskChange::Add { description, .. } => {
                let written = tasks
                    .add(description.as_str(), &self.note, &cause)
                    .await
                    .map_err(store_error)?;
                let row = self.added_row(written.task).await?;
                return Ok(TaskChanged::Added {
                    task: self.task(&row)?,
                });
            }
            TaskChange::Restore { id } => return self.restore(*id).await,
            TaskChange::Update { id, .. }
            | TaskChange::Complete { id }
            | TaskChange::Delete { id } => *id,
        };
        let Some((address, record)) = self.address(id, &cause).await? else {
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
        self.outcome(change, id, &record, written.map_err(store_error)?)
            .await
    }

    /// Returns the result of a change of a task, and moves its number to the line as it is now.
    async fn outcome(
        &self,
        change: &TaskChange,
        id: TaskId,
        record: &TaskRecord,
        written: TaskWritten,
    ) -> Result<TaskChanged, StoreError> {
        let moved = (!written.gone).then_some((id, &written.task));
        let rows = self.rows(moved).await?;
        let now = (self.tasks.0.context.clock)();
        let task = match rows.iter().find(|row| row.number.id == id) {
            Some(row) => self.task(row)?,
            None => {
                let record = record.updated_from(&written.task, &now);
                let number = NumberedTask { id, record };
                let task = written.task.clone();
                self.task(&Row { number, task })?
            }
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

    /// Finds the line of a number. A call that was begun before finds the line as it was then: the
    /// change may have been carried out.
    async fn address(
        &self,
        id: TaskId,
        cause: &Cause,
    ) -> Result<Option<(TaskAddress, TaskRecord)>, StoreError> {
        let context = &self.tasks.0.context;
        if let Some(key) = &cause.key
            && context.ledger.by_key(&context.scope, key).await?.is_some()
        {
            let record = self.number(id).await?;
            return Ok(record.map(|record| (record.address(), record)));
        }
        let row = self.row(id).await?;
        Ok(row.map(|row| (row.task.address, row.number.record)))
    }

    async fn restore(&self, id: TaskId) -> Result<TaskChanged, StoreError> {
        if let Some(row) = self.row(id).await? {
            return Ok(TaskChanged::Restored {
                task: self.task(&row)?,
                already: true,
            });
        }
        let record = self.number(id).await?;
        let mut deleted = self.tasks.deleted().await.map_err(store_error)?.into_iter();
        let deleted = record.and_then(|record| {
            deleted.find(|deleted| deleted.path == record.path && deleted.line == record.line)
        });
        let Some(deleted) = deleted else {
            return Ok(TaskChanged::NoSuchTask { id });
        };
        self.tasks
            .restore(deleted.change)
            .await
            .map_err(store_error)?;
        Ok(match self.row(id).await? {
            Some(row) => TaskChanged::Restored {
                task: self.task(&row)?,
                already: false,
            },
            None => TaskChanged::NoSuchTask { id },
        })
    }

    fn task(&self, Row { number, task }: &Row) -> Result<Task, StoreError> {
        Ok(Task {
            id: number.id,
            user_id: self.owner().clone(),
            description: description(task)?,
            completed: task.status.is_closed(),
            created_at: number.record.created_at,
            updated_at: number.record.updated_at,
            completed_at: number.record.completed_at,
            // Whoever wrote it, a vault is the person's own.
            from_others: false,
        })
    }
}

/// Changes of numbers that are to be written.
#[derive(Default)]
struct NumberChanges {
    put: Vec<NumberedTask>,
    new: Vec<(TaskRecord, VaultTask)>,
    removed: Vec<TaskId>,
}

impl NumberChanges {
    fn is_empty(&self) -> bool {
        self.put.is_empty() && self.new.is_empty() && self.removed.is_empty()
    }

    /// Records the numbers whose line is gone. They are kept as long as a deleted task can be
    /// restored.
    fn track_missing(&mut self, numbers: &[NumberedTask], found: &[Option<usize>], now: &Zoned) {
        let live: HashSet<usize> = found.iter().flatten().copied().collect();
        for (at, number) in numbers.iter().enumerate() {
            if live.contains(&at) {
                continue;
            }
            match number.record.gone_at {
                None => self
                    .put
                    .push(number.with_record(number.record.marked_gone(now))),
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

/// Returns the text of a task with its dates: tasks of a store have their dates in their
/// descriptions.
fn description(task: &VaultTask) -> Result<TaskDescription, StoreError> {
    // A line of a note may be longer than the text of a task.
    TaskDescription::new(&task.text).or_else(|_| {
        let short: String = task
            .text
            .chars()
            .take(DESCRIPTION_CHARS_MAX - 1)
            .chain(['…'])
            .collect();
        TaskDescription::new(&short)
            .map_err(|error| StoreError::unreadable(error.to_string()).with_source(error))
    })
}

fn unreadable(error: serde_json::Error) -> StoreError {
    StoreError::unreadable(format!("the number of a task in notes: {error}")).with_source(error)
}

fn store_error(error: MemoryError) -> StoreError {
    match error {
        MemoryError::Ledger { source } => {
            StoreError::unavailable(source.to_string()).with_source(source)
        }
        MemoryError::Vault(VaultError::Busy { .. }) => {
            StoreError::unavailable(error.to_string()).with_source(error)
        }
        // A model must not learn where on the disk the vault is.
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
            if let Some(record) = self.index.applied(user, key).await? {
                return Ok(record);
            }
            let changed = self.change(change, Some(key)).await?;
            let applied = NumbersChange {
                applied: Some((key, &changed)),
                ..NumbersChange::default()
            };
            self.index.put_numbers(self.scope(), applied).await?;
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
            let tasks = rows.iter().map(|row| self.task(row));
            let mut tasks = tasks.collect::<Result<Vec<_>, _>>()?;
            tasks.retain(|task| filter.takes(task));
            Ok(tasks)
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
            // The notes have no order by number: all are read to take the last.
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
