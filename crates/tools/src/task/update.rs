//! `update_task`.

use adjutant_core::{Annotations, Arguments, ToolDefinition, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::change_tool::{ChangeTool, TaskAction, no_result};
use super::definition::{definition, description_property, parse_description, task_id_property};
use super::model::{Task, TaskChange, TaskChanged, TaskId};
use super::resolve::Prefer;
use super::view::{quoted, quoted_description, quoted_field, task_schema, to_json};
use crate::arguments::parse_arguments;

/// The tool `update_task`, which gives a task another description.
pub type UpdateTask = ChangeTool<Update>;

/// The action of [`UpdateTask`].
#[derive(Debug)]
pub struct Update;

/// `Id` is text, an id or words, until the call has been prepared.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args<Id> {
    task_id: Id,
    description: String,
}

impl TaskAction for Update {
    fn definition() -> ToolDefinition {
        definition(
            "update_task",
            "Update a task's description. Use when user wants to change, edit, or rename a task.",
            json!({
                "task_id": task_id_property("Task ID to update"),
                "description": description_property("New description"),
            }),
            Annotations {
                idempotent: true,
                keyed: true,
                ..Annotations::default()
            },
            task_schema(json!({ "previous_description": { "type": "string" } })),
        )
        .with_intent("UPDATE_TASK")
    }

    fn reference(arguments: &Arguments) -> Result<Option<(String, Prefer)>, ToolError> {
        let args: Args<String> = parse_arguments(arguments.clone())?;
        // Before the task is looked for: a description that cannot be used is the better message.
        parse_description(&args.description)?;
        Ok(Some((args.task_id, Prefer::Any)))
    }

    fn preview(arguments: &Arguments, task: Option<&Task>) -> Result<String, ToolError> {
        let args: Args<String> = parse_arguments(arguments.clone())?;
        let description = parse_description(&args.description)?;
        Ok(format!(
            "Rename {} to {}",
            quoted_description(task),
            quoted(description.as_str())
        ))
    }

    fn change(arguments: &Arguments, from_others: bool) -> Result<TaskChange, ToolError> {
        let args: Args<TaskId> = parse_arguments(arguments.clone())?;
        Ok(TaskChange::Update {
            id: args.task_id,
            description: parse_description(&args.description)?,
            from_others,
        })
    }

    fn result(changed: &TaskChanged) -> Result<Value, ToolError> {
        match changed {
            TaskChanged::Updated { task, before } => {
                let mut data = to_json(task);
                data["previous_description"] = json!(before);
                Ok(data)
            }
            other => Err(no_result(other)),
        }
    }

    fn describe(data: &Value) -> Option<String> {
        let before = quoted_field(data, "previous_description")?;
        let after = quoted_field(data, "description")?;
        Some(format!("Renamed {before} to {after}."))
    }
}
