//! Tasks in a store in memory: every [`InMemoryTables`] is a [`TaskStore`].

use std::any::Any;
use std::collections::HashMap;

use adjutant_core::port::StoreError;
use adjutant_core::{
    BoxFuture, IdempotencyKey, InMemoryTables, StoreChange, StoreId, UserId, UserTable, UserTables,
};
use jiff::Timestamp;

use super::model::{DELETED_TASK_DAYS, Task, TaskChange, TaskChanged, TaskFilter, TaskId};
use super::store::TaskStore;

/// The tasks of one user, by id.
#[derive(Debug, Default)]
struct Tasks {
    last_id: Option<TaskId>,
    tasks: Vec<Task>,
    /// Outcomes of changes, by the idempotency keys of their calls.
    applied: HashMap<IdempotencyKey, TaskChanged>,
    /// Deleted tasks, each with the time of its deletion.
    deleted: Vec<(Timestamp, Task)>,
}

impl Tasks {
    /// Applies a change, once per idempotency key.
    fn apply(
        &mut self,
        user: &UserId,
        change: &TaskChange,
        key: Option<&IdempotencyKey>,
        now: Timestamp,
    ) -> TaskChanged {
        // The call ran before: a worker that was lost may have made it.
        if let Some(known) = key.and_then(|key| self.applied.get(key)) {
            return known.clone();
        }
        let changed = self.change(user, change, now);
        if let Some(key) = key {
            // With the change, as a database writes both in one transaction: a repeat finds both or
            // neither.
            self.applied.insert(key.clone(), changed.clone());
        }
        changed
    }

    fn change(&mut self, user: &UserId, change: &TaskChange, now: Timestamp) -> TaskChanged {
        let (id, changed) = match change {
            TaskChange::Add {
                description,
                from_others,
            } => {
                let id = self.last_id.map_or(TaskId::FIRST, TaskId::next);
                self.last_id = Some(id);
                let task = Task {
                    id,
                    user_id: user.clone(),
                    description: description.clone(),
                    completed: false,
                    created_at: now,
                    updated_at: now,
                    completed_at: None,
                    from_others: *from_others,
                };
                self.tasks.push(task.clone());
                return TaskChanged::Added { task };
            }
            TaskChange::Update {
                id,
                description,
                from_others,
            } => {
                let update = |task: &mut Task| {
                    let before = std::mem::replace(&mut task.description, description.clone());
                    task.from_others = *from_others;
                    task.updated_at = now;
                    let task = task.clone();
                    TaskChanged::Updated { task, before }
                };
                (*id, self.find(*id).map(update))
            }
            TaskChange::Complete { id } => {
                let complete = |task: &mut Task| {
                    let already = std::mem::replace(&mut task.completed, true);
                    if !already {
                        task.completed_at = Some(now);
                        task.updated_at = now;
                    }
                    let task = task.clone();
                    TaskChanged::Completed { task, already }
                };
                (*id, self.find(*id).map(complete))
            }
            TaskChange::Delete { id } => {
                let place = self.tasks.iter().position(|task| task.id == *id);
                let delete = |place| {
                    let task = self.tasks.remove(place);
                    // Here and not by a clock: without another deletion there is nothing that
                    // grows.
                    self.deleted.retain(|(at, _)| is_kept(*at, now));
                    self.deleted.push((now, task.clone()));
                    TaskChanged::Deleted { task }
                };
                (*id, place.map(delete))
            }
            TaskChange::Restore { id } => (*id, self.restore(*id, now)),
        };
        changed.unwrap_or(TaskChanged::NoSuchTask { id })
    }

    /// Restores a deleted task, unless it is too old. A task that was not deleted stays as it is.
    fn restore(&mut self, id: TaskId, now: Timestamp) -> Option<TaskChanged> {
        if let Some(task) = self.find(id) {
            let (task, already) = (task.clone(), true);
            return Some(TaskChanged::Restored { task, already });
        }
        let found = self
            .deleted
            .iter()
            .position(|(at, task)| task.id == id && is_kept(*at, now))?;
        let (_, task) = self.deleted.remove(found);
        // Lists are by id, so it goes back between its neighbours.
        let place = self.tasks.partition_point(|other| other.id < id);
        self.tasks.insert(place, task.clone());
        let already = false;
        Some(TaskChanged::Restored { task, already })
    }

    fn find(&mut self, id: TaskId) -> Option<&mut Task> {
        self.tasks.iter_mut().find(|task| task.id == id)
    }
}

/// Returns true if a task that was deleted then can still be restored.
fn is_kept(deleted_at: Timestamp, now: Timestamp) -> bool {
    now.duration_since(deleted_at).as_hours() < DELETED_TASK_DAYS * 24
}

impl UserTable for Tasks {
    fn forget_outcomes(&mut self, prefix: &str) {
        self.applied
            .retain(|key, _| !key.as_str().starts_with(prefix));
    }
}

impl StoreChange for TaskChange {
    fn apply_in_memory(
        &self,
        tables: &mut UserTables,
        user: &UserId,
        key: &IdempotencyKey,
        now: Timestamp,
    ) -> Box<dyn Any> {
        let tasks: &mut Tasks = tables.table();
        Box::new(tasks.apply(user, self, Some(key), now))
    }
}

impl<S: InMemoryTables> TaskStore for S {
    fn store_id(&self) -> Option<StoreId> {
        Some(InMemoryTables::store_id(self))
    }

    fn apply<'a>(
        &'a self,
        user: &'a UserId,
        change: &'a TaskChange,
        key: Option<&'a IdempotencyKey>,
    ) -> BoxFuture<'a, Result<TaskChanged, StoreError>> {
        ready(self.with_tables(user, |tables, now| {
            tables.table::<Tasks>().apply(user, change, key, now)
        }))
    }

    fn list<'a>(
        &'a self,
        user: &'a UserId,
        filter: TaskFilter,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>> {
        ready(self.with_tables(user, |tables, _| {
            let tasks = tables.table::<Tasks>().tasks.iter();
            tasks.filter(|task| filter.takes(task)).cloned().collect()
        }))
    }

    fn list_last<'a>(
        &'a self,
        user: &'a UserId,
        filter: TaskFilter,
        before: Option<TaskId>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>> {
        ready(self.with_tables(user, |tables, _| {
            // From the end, so that the cost does not grow with the number of other tasks.
            let is_before = |task: &&Task| before.is_none_or(|before| task.id < before);
            let found = tables
                .table::<Tasks>()
                .tasks
                .iter()
                .rev()
                .filter(is_before)
                .filter(|task| filter.takes(task));
            let mut last: Vec<Task> = found
                .take(usize::try_from(limit).unwrap_or(usize::MAX))
                .cloned()
                .collect();
            last.reverse();
            last
        }))
    }

    fn get<'a>(
        &'a self,
        user: &'a UserId,
        id: TaskId,
    ) -> BoxFuture<'a, Result<Option<Task>, StoreError>> {
        ready(self.with_tables(user, |tables, _| {
            tables.table::<Tasks>().find(id).map(|task| task.clone())
        }))
    }
}

/// Answers at once: a store in memory waits for nothing.
fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, Result<T, StoreError>> {
    Box::pin(std::future::ready(Ok(value)))
}
