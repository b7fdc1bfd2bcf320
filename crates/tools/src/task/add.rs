//! `add_task`.

use adjutant_core::{Annotations, Arguments, ToolDefinition, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::change_tool::{ChangeTool, TaskAction, wrong_outcome};
use super::definition::{definition, description_property, parse_description};
use super::model::{Task, TaskChange, TaskChanged};
use super::view::{quoted, quoted_field, task_schema, to_json};
use crate::arguments::parse_arguments;

/// The tool `add_task`, which adds a task to the user's list.
pub type AddTask = ChangeTool<Add>;

/// The action of [`AddTask`].
#[derive(Debug)]
pub struct Add;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    description: String,
}

impl TaskAction for Add {
    fn definition() -> ToolDefinition {
        definition(
            "add_task",
            "Create a new task. Use when user wants to add, create, or remember something.",
            json!({ "description": description_property("Task description") }),
            // The store writes the task and the key of the call in one transaction.
            Annotations {
                keyed: true,
                ..Annotations::default()
            },
            task_schema(json!({})),
        )
        .with_intent("CREATE_TASK")
    }

    fn preview(arguments: &Arguments, _task: Option<&Task>) -> Result<String, ToolError> {
        let args: Args = parse_arguments(arguments.clone())?;
        let description = parse_description(&args.description)?;
        Ok(format!("Add {}", quoted(description.as_str())))
    }

    fn change(arguments: &Arguments, from_others: bool) -> Result<TaskChange, ToolError> {
        let args: Args = parse_arguments(arguments.clone())?;
        Ok(TaskChange::Add {
            description: parse_description(&args.description)?,
            from_others,
        })
    }

    fn result(changed: &TaskChanged) -> Result<Value, ToolError> {
        match changed {
            TaskChanged::Added { task } => Ok(to_json(task)),
            _ => Err(wrong_outcome()),
        }
    }

    fn describe(data: &Value) -> Option<String> {
        Some(format!("Added {}.", quoted_field(data, "description")?))
    }
}
