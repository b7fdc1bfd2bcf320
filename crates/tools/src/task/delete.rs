//! `delete_task`.

use adjutant_core::{Annotations, Arguments, ToolDefinition, ToolError};
use serde_json::{Value, json};

use super::change_tool::{ChangeTool, TaskAction, no_result};
use super::definition::{TaskArgs, definition, task_id_property};
use super::model::{Task, TaskChange, TaskChanged, TaskId};
use super::resolve::Prefer;
use super::view::{quoted_description, quoted_field, task_schema, to_json};
use crate::arguments::parse_arguments;

/// The tool `delete_task`, which removes a task from the user's list. The user is asked first.
pub type DeleteTask = ChangeTool<Delete>;

/// The action of [`DeleteTask`].
#[derive(Debug)]
pub struct Delete;

impl TaskAction for Delete {
    fn definition() -> ToolDefinition {
        definition(
            "delete_task",
            "Delete a task permanently. Use when user wants to remove or delete a task.",
            json!({ "task_id": task_id_property("Task ID to delete") }),
            Annotations {
                destructive: true,
                // A second deletion finds no task and changes nothing.
                idempotent: true,
                keyed: true,
                ..Annotations::default()
            },
            task_schema(json!({ "deleted": { "const": true } })),
        )
        .with_intent("DELETE_TASK")
    }

    fn reference(arguments: &Arguments) -> Result<Option<(String, Prefer)>, ToolError> {
        let args: TaskArgs<String> = parse_arguments(arguments.clone())?;
        Ok(Some((args.task_id, Prefer::Any)))
    }

    fn preview(_arguments: &Arguments, task: Option<&Task>) -> Result<String, ToolError> {
        Ok(format!("Delete {}", quoted_description(task)))
    }

    fn change(arguments: &Arguments, _from_others: bool) -> Result<TaskChange, ToolError> {
        let args: TaskArgs<TaskId> = parse_arguments(arguments.clone())?;
        Ok(TaskChange::Delete { id: args.task_id })
    }

    fn result(changed: &TaskChanged) -> Result<Value, ToolError> {
        match changed {
            TaskChanged::Deleted { task } => {
                let mut data = to_json(task);
                data["deleted"] = json!(true);
                Ok(data)
            }
            other => Err(no_result(other)),
        }
    }

    fn describe(data: &Value) -> Option<String> {
        Some(format!("Deleted {}.", quoted_field(data, "description")?))
    }
}
