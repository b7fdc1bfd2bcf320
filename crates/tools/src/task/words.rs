//! A task as the model sees it (JSON) and as the person reads it (words).

use adjutant_core::{Task, TaskFilter};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A task without its owner: the model never learns who the user is.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct TaskView {
    pub(super) id: String,
    pub(super) description: String,
    pub(super) completed: bool,
    created_at: Timestamp,
    updated_at: Timestamp,
    completed_at: Option<Timestamp>,
}

impl From<&Task> for TaskView {
    fn from(task: &Task) -> Self {
        Self {
            id: task.id.to_string(),
            description: task.description.to_string(),
            completed: task.completed,
            created_at: task.created_at,
            updated_at: task.updated_at,
            completed_at: task.completed_at,
        }
    }
}

/// One task as result data.
pub(super) fn to_json(task: &Task) -> Value {
    json!(TaskView::from(task))
}

/// The schema of one task as result data, with these fields more, which may be absent.
pub(super) fn task_schema(more: Value) -> Value {
    let time = json!({ "type": "string", "format": "date-time" });
    let mut schema = json!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "description": "Names the task in other calls" },
            "description": { "type": "string" },
            "completed": { "type": "boolean" },
            "created_at": time,
            "updated_at": time,
            "completed_at": { "type": ["string", "null"], "format": "date-time" },
        },
        "required": ["id", "description", "completed", "created_at", "updated_at", "completed_at"],
        "additionalProperties": false,
    });
    for (name, field) in more.as_object().into_iter().flatten() {
        schema["properties"][name] = field.clone();
    }
    schema
}

/// The schema of [`ListView`].
pub(super) fn list_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "tasks": { "type": "array", "items": task_schema(json!({})) },
            "count": { "type": "integer", "minimum": 0 },
            "status": { "type": "string", "enum": ["pending", "completed", "all"] },
        },
        "required": ["tasks", "count", "status"],
        "additionalProperties": false,
    })
}

/// What `list_tasks` gives back.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ListView {
    pub(super) tasks: Vec<TaskView>,
    pub(super) count: usize,
    pub(super) status: TaskFilter,
}

impl ListView {
    /// A heading and a line per task, with the id as its number; one sentence if there is none.
    pub(super) fn to_words(&self) -> String {
        let (heading, none) = match self.status {
            TaskFilter::All => ("Your tasks:", "You have no tasks."),
            TaskFilter::Pending => ("Open tasks:", "You have nothing left to do."),
            TaskFilter::Completed => ("Completed tasks:", "You have no completed tasks."),
        };
        if self.tasks.is_empty() {
            return none.to_owned();
        }
        let lines = self.tasks.iter().map(|task| {
            let done = if task.completed { " (done)" } else { "" };
            format!("\n  {}. {}{done}", task.id, task.description)
        });
        std::iter::once(heading.to_owned()).chain(lines).collect()
    }
}

/// The words of a field of result data, in quotation marks.
pub(super) fn quoted_field(data: &Value, field: &str) -> Option<String> {
    data.get(field).and_then(Value::as_str).map(quoted)
}

/// Words in quotation marks.
pub(super) fn quoted(words: &str) -> String {
    format!("“{words}”")
}
