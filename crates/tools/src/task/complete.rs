//! `complete_task`.

use adjutant_core::{Annotations, Arguments, ToolDefinition, ToolError};
use serde_json::{Value, json};

use super::change_tool::{ChangeTool, TaskAction, no_result};
use super::definition::{TaskArgs, definition, task_id_property};
use super::model::{Task, TaskChange, TaskChanged, TaskId};
use super::resolve::Prefer;
use super::view::{quoted_description, quoted_field, task_schema, to_json};
use crate::arguments::parse_arguments;

/// The tool `complete_task`, which marks a task as done.
pub type CompleteTask = ChangeTool<Complete>;

/// The action of [`CompleteTask`].
#[derive(Debug)]
pub struct Complete;

impl TaskAction for Complete {
    fn definition() -> ToolDefinition {
        definition(
            "complete_task",
            "Mark a task as completed. Use when user says done, finished, or completed.",
            json!({ "task_id": task_id_property("Task ID to complete") }),
            Annotations {
                // A task that is done stays as it is, with the time of its completion.
                idempotent: true,
                keyed: true,
                ..Annotations::default()
            },
            task_schema(json!({ "already_completed": { "type": "boolean" } })),
        )
        .with_intent("COMPLETE_TASK")
    }

    fn reference(arguments: &Arguments) -> Result<Option<(String, Prefer)>, ToolError> {
        let args: TaskArgs<String> = parse_arguments(arguments.clone())?;
        Ok(Some((args.task_id, Prefer::Open)))
    }

    fn preview(_arguments: &Arguments, task: Option<&Task>) -> Result<String, ToolError> {
        Ok(format!("Complete {}", quoted_description(task)))
    }

    fn change(arguments: &Arguments, _from_others: bool) -> Result<TaskChange, ToolError> {
        let args: TaskArgs<TaskId> = parse_arguments(arguments.clone())?;
        Ok(TaskChange::Complete { id: args.task_id })
    }

    fn result(changed: &TaskChanged) -> Result<Value, ToolError> {
        match changed {
            TaskChanged::Completed { task, already } => {
                let mut data = to_json(task);
                if *already {
                    data["already_completed"] = json!(true);
                }
                Ok(data)
            }
            other => Err(no_result(other)),
        }
    }

    fn describe(data: &Value) -> Option<String> {
        let task = quoted_field(data, "description")?;
        Some(
            if data.get("already_completed") == Some(&Value::Bool(true)) {
                format!("{task} was already done.")
            } else {
                format!("Completed {task}.")
            },
        )
    }
}
