//! The state that is shown beside a conversation: the open tasks, and how they changed, as JSON
//! Patch (RFC 6902). Those that are done are not in it: a run would cost more with each of them.

use adjutant_core::Task;
use serde_json::{Value, json};

use crate::wire::TaskView;

/// The open tasks as a client has them.
#[derive(Debug, Default)]
pub(crate) struct State {
    tasks: Vec<Value>,
}

impl State {
    /// The whole state.
    pub(crate) fn of(tasks: &[Task]) -> Self {
        Self {
            tasks: tasks.iter().map(shown).collect(),
        }
    }

    /// Returns whether a client has it, as the state that it sent says.
    pub(crate) fn is(&self, theirs: &Value) -> bool {
        theirs.get("tasks").and_then(Value::as_array) == Some(&self.tasks)
    }

    /// As it is sent.
    pub(crate) fn snapshot(&self) -> Value {
        json!({ "tasks": self.tasks })
    }

    /// What is different in `next`, which is known from then on: taken away from the end, then put
    /// in from the beginning, so that every place means what it says when its operation is carried
    /// out. Both are in the order of their ids.
    pub(crate) fn update(&mut self, next: &[Task]) -> Vec<Value> {
        let next = Self::of(next).tasks;
        let has =
            |tasks: &[Value], task: &Value| tasks.iter().any(|other| other["id"] == task["id"]);
        let mut patch = Vec::new();
        for at in (0..self.tasks.len()).rev() {
            if self.tasks.get(at).is_some_and(|task| !has(&next, task)) {
                patch.push(json!({"op": "remove", "path": format!("/tasks/{at}")}));
            }
        }
        for (at, task) in next.iter().enumerate() {
            let op = match self.tasks.iter().find(|known| known["id"] == task["id"]) {
                Some(known) if known == task => continue,
                Some(_) => "replace",
                None => "add",
            };
            patch.push(json!({"op": op, "path": format!("/tasks/{at}"), "value": task}));
        }
        self.tasks = next;
        patch
    }
}

/// A task as every route shows it: without whose it is, which is the reader.
fn shown(task: &Task) -> Value {
    serde_json::to_value(TaskView::from(task.clone())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use adjutant_core::UserId;

    use super::*;

    fn task(id: u64, words: &str) -> Task {
        let value = json!({
            "id": id.to_string(), "user_id": "anna", "description": words, "completed": false,
            "created_at": "2026-11-22T08:00:00Z", "updated_at": "2026-11-22T08:00:00Z", "completed_at": null,
        });
        serde_json::from_value(value).unwrap()
    }

    /// Carries out a patch as a client does.
    fn apply(document: &mut Value, patch: &[Value]) {
        for operation in patch {
            let at: usize = operation["path"]
                .as_str()
                .unwrap()
                .strip_prefix("/tasks/")
                .unwrap()
                .parse()
                .unwrap();
            let tasks = document["tasks"].as_array_mut().unwrap();
            match operation["op"].as_str().unwrap() {
                "remove" => drop(tasks.remove(at)),
                "replace" => tasks[at] = operation["value"].clone(),
                "add" => tasks.insert(at, operation["value"].clone()),
                other => panic!("{other}"),
            }
        }
    }

    #[test]
    fn a_client_that_follows_has_what_a_client_that_asks_gets() {
        let steps: [&[Task]; 7] = [
            &[],
            &[task(1, "milk")],
            &[task(1, "milk"), task(2, "bread"), task(3, "tea")],
            &[task(1, "milk"), task(3, "green tea")],
            &[task(4, "salt")],
            &[
                task(1, "milk"),
                task(2, "b"),
                task(4, "salt"),
                task(10, "x"),
            ],
            &[],
        ];
        let mut state = State::default();
        let mut client = state.snapshot();
        for next in steps {
            let patch = state.update(next);
            apply(&mut client, &patch);
            assert_eq!(client, State::of(next).snapshot(), "{patch:?}");
        }
        assert!(state.update(&[]).is_empty());
    }

    #[test]
    fn whose_task_it_is_stays_here() {
        let owner = UserId::new("anna").unwrap();
        assert!(
            !State::of(&[task(1, "milk")])
                .snapshot()
                .to_string()
                .contains(owner.as_str())
        );
    }
}
