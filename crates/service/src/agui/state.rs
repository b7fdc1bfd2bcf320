//! The shared state of AG-UI: the open tasks, and their changes as JSON Patch (RFC 6902). Completed
//! tasks are not part of it, or each run would cost more with every one of them.

use adjutant_tools::Task;
use serde_json::{Value, json};

use crate::wire::TaskView;

/// The open tasks as the client has them.
#[derive(Debug, Default)]
pub(crate) struct State {
    tasks: Vec<Value>,
}

impl State {
    /// Creates the state from the open tasks, ordered by id.
    pub(crate) fn new(tasks: &[Task]) -> Self {
        Self {
            tasks: tasks.iter().map(to_json).collect(),
        }
    }

    /// Returns true if the client's state, as it sent it, is this one.
    pub(crate) fn equals(&self, theirs: &Value) -> bool {
        theirs.get("tasks").and_then(Value::as_array) == Some(&self.tasks)
    }

    /// Returns the whole state as JSON.
    pub(crate) fn snapshot(&self) -> Value {
        json!({ "tasks": self.tasks })
    }

    /// Replaces the state, and returns the patch. Removals come first, from the end, then additions
    /// and changes from the beginning, so that each path is valid when its operation is applied.
    /// Both lists are ordered by id.
    pub(crate) fn update(&mut self, next: &[Task]) -> Vec<Value> {
        let next = Self::new(next).tasks;
        let has =
            |tasks: &[Value], task: &Value| tasks.iter().any(|other| other["id"] == task["id"]);
        let mut patch = Vec::new();
        // From the end, so that a removal does not shift the paths of the next ones.
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

/// Serializes a task as other routes do, without its owner.
fn to_json(task: &Task) -> Value {
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

    /// Applies a patch as a client does.
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
    fn patches_lead_to_the_same_state_as_a_snapshot() {
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
            assert_eq!(client, State::new(next).snapshot(), "{patch:?}");
        }
        assert!(state.update(&[]).is_empty());
    }

    #[test]
    fn the_state_does_not_contain_the_owner() {
        let owner = UserId::new("anna").unwrap();
        assert!(
            !State::new(&[task(1, "milk")])
                .snapshot()
                .to_string()
                .contains(owner.as_str())
        );
    }
}
