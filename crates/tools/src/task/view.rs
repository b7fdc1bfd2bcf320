//! Results of the task tools: JSON for the model, text for the user.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::model::{Task, TaskFilter};

/// The JSON form of a task. It leaves out the owner: the model never learns who the user is.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct TaskView {
    pub(super) id: String,
    pub(super) description: String,
    pub(super) completed: bool,
    created_at: Timestamp,
    updated_at: Timestamp,
    completed_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    from_others: bool,
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
            from_others: task.from_others,
        }
    }
}

/// Returns the JSON form of a task.
pub(super) fn to_json(task: &Task) -> Value {
    json!(TaskView::from(task))
}

/// Returns true if the JSON form of a task says that a program wrote it.
pub(super) fn is_from_others(task: &Value) -> bool {
    task.get("from_others").and_then(Value::as_bool) == Some(true)
}

/// Returns the JSON Schema of a task. `more` holds further fields, which may be absent.
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
            "from_others": { "type": "boolean", "description": "True if a program wrote it, not the user" },
        },
        "required": ["id", "description", "completed", "created_at", "updated_at", "completed_at"],
        "additionalProperties": false,
    });
    // Not required: they are there only where they say something.
    for (name, field) in more.as_object().into_iter().flatten() {
        schema["properties"][name] = field.clone();
    }
    schema
}

/// Returns the JSON Schema of [`ListView`].
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

/// The result of `list_tasks`.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ListView {
    pub(super) tasks: Vec<TaskView>,
    pub(super) count: usize,
    pub(super) status: TaskFilter,
}

impl ListView {
    /// Returns a heading and a line for each task, with the id as its number; one sentence if there
    /// is none.
    pub(super) fn to_text(&self) -> String {
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

/// Returns the text of a field of a result, in quotation marks.
pub(super) fn quoted_field(data: &Value, field: &str) -> Option<String> {
    data.get(field).and_then(Value::as_str).map(quoted)
}

/// Puts a text in quotation marks.
pub(super) fn quoted(text: &str) -> String {
    format!("“{text}”")
}

/// Returns the description of a task in quotation marks.
pub(super) fn quoted_description(task: Option<&Task>) -> String {
    quoted(task.map_or("", |task| task.description.as_str()))
}
