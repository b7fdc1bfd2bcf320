//! The tasks of one user.

use std::collections::HashMap;

use adjutant_core::{
    DELETED_TASK_DAYS, IdempotencyKey, Task, TaskChange, TaskChanged, TaskId, UserId,
};
use jiff::Timestamp;

#[derive(Debug, Default)]
pub(super) struct Tasks {
    pub(super) last_id: Option<TaskId>,
    pub(super) tasks: Vec<Task>,
    pub(super) applied: HashMap<IdempotencyKey, TaskChanged>,
    /// The time at which each was deleted.
    deleted: Vec<(Timestamp, Task)>,
}

impl Tasks {
    /// Carries out a change, once per key.
    pub(super) fn apply(
        &mut self,
        user: &UserId,
        change: &TaskChange,
        key: Option<&IdempotencyKey>,
        now: Timestamp,
    ) -> TaskChanged {
        if let Some(known) = key.and_then(|key| self.applied.get(key)) {
            return known.clone();
        }
        let changed = self.change(user, change, now);
        if let Some(key) = key {
            self.applied.insert(key.clone(), changed.clone());
        }
        changed
    }

    fn change(&mut self, user: &UserId, change: &TaskChange, now: Timestamp) -> TaskChanged {
        match change {
            TaskChange::Add { description } => {
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
                };
                self.tasks.push(task.clone());
                TaskChanged::Added { task }
            }
            TaskChange::Update { id, description } => match self.find(*id) {
                Some(task) => {
                    let before = std::mem::replace(&mut task.description, description.clone());
                    task.updated_at = now;
                    TaskChanged::Updated {
                        task: task.clone(),
                        before,
                    }
                }
                None => TaskChanged::NoSuchTask { id: *id },
            },
            TaskChange::Complete { id } => match self.find(*id) {
                Some(task) => {
                    let already = std::mem::replace(&mut task.completed, true);
                    if !already {
                        task.completed_at = Some(now);
                        task.updated_at = now;
                    }
                    TaskChanged::Completed {
                        task: task.clone(),
                        already,
                    }
                }
                None => TaskChanged::NoSuchTask { id: *id },
            },
            TaskChange::Delete { id } => match self.tasks.iter().position(|task| task.id == *id) {
                Some(at) => {
                    let task = self.tasks.remove(at);
                    self.deleted.retain(|(at, _)| is_kept(*at, now));
                    self.deleted.push((now, task.clone()));
                    TaskChanged::Deleted { task }
                }
                None => TaskChanged::NoSuchTask { id: *id },
            },
            TaskChange::Restore { id } => self.restore(*id, now),
        }
    }

    fn restore(&mut self, id: TaskId, now: Timestamp) -> TaskChanged {
        if let Some(task) = self.find(id) {
            return TaskChanged::Restored {
                task: task.clone(),
                already: true,
            };
        }
        let found = self
            .deleted
            .iter()
            .position(|(at, task)| task.id == id && is_kept(*at, now));
        let Some(found) = found else {
            return TaskChanged::NoSuchTask { id };
        };
        let (_, task) = self.deleted.remove(found);
        let place = self.tasks.partition_point(|other| other.id < id);
        self.tasks.insert(place, task.clone());
        TaskChanged::Restored {
            task,
            already: false,
        }
    }

    pub(super) fn find(&mut self, id: TaskId) -> Option<&mut Task> {
        self.tasks.iter_mut().find(|task| task.id == id)
    }
}

/// Returns whether what was deleted then can be brought back.
fn is_kept(deleted_at: Timestamp, now: Timestamp) -> bool {
    now.duration_since(deleted_at).as_hours() < DELETED_TASK_DAYS * 24
}
