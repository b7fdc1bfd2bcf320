//! The tasks of one user.

use std::collections::HashMap;

use adjutant_core::{IdempotencyKey, Task, TaskChange, TaskChanged, TaskId, UserId};
use jiff::Timestamp;

#[derive(Debug, Default)]
pub(super) struct Tasks {
    pub(super) last_id: Option<TaskId>,
    pub(super) tasks: Vec<Task>,
    pub(super) applied: HashMap<IdempotencyKey, TaskChanged>,
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
                    TaskChanged::Updated { task: task.clone(), before }
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
                    TaskChanged::Completed { task: task.clone(), already }
                }
                None => TaskChanged::NoSuchTask { id: *id },
            },
            TaskChange::Delete { id } => match self.tasks.iter().position(|task| task.id == *id) {
                Some(at) => TaskChanged::Deleted { task: self.tasks.remove(at) },
                None => TaskChanged::NoSuchTask { id: *id },
            },
        }
    }

    pub(super) fn find(&mut self, id: TaskId) -> Option<&mut Task> {
        self.tasks.iter_mut().find(|task| task.id == id)
    }
}
