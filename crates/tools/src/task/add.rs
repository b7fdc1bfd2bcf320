//! `add_task`.

use std::sync::Arc;

use adjutant_core::port::TaskStore;
use adjutant_core::{
    Annotations, Arguments, BoxFuture, Prepared, StoreId, TaskChange, TaskChanged, TaskTool, Tool,
    ToolContext, ToolDefinition, ToolError,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::words::{quoted, quoted_field, task_schema, to_json};
use super::{call, definition, description_property, words_of_task, wrong_outcome};
use crate::arguments::read;

/// Adds a task.
pub struct AddTask {
    definition: ToolDefinition,
    tasks: Arc<dyn TaskStore>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    description: String,
}

impl AddTask {
    /// Over this store.
    #[must_use]
    pub fn new(tasks: Arc<dyn TaskStore>) -> Self {
        let definition = definition(
            "add_task",
            "Create a new task. Use when user wants to add, create, or remember something.",
            json!({ "description": description_property("Task description") }),
            // The store writes the task and the key of the call in one transaction.
            Annotations {
                keyed: true,
                ..Annotations::default()
            },
            task_schema(json!({})),
        );
        Self { definition, tasks }
    }
}

impl Tool for AddTask {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn prepare<'a>(
        &'a self,
        _context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Prepared, ToolError>> {
        Box::pin(async move {
            let args: Args = read(arguments.clone())?;
            let description = words_of_task(&args.description)?;
            Ok(Prepared::Ready {
                arguments,
                preview: Some(format!("Add {}", quoted(description.as_str()))),
            })
        })
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move { call(self, &*self.tasks, context, &arguments).await })
    }

    fn as_task_tool(&self) -> Option<&dyn TaskTool> {
        Some(self)
    }

    fn describe(&self, _arguments: &Arguments, data: &Value) -> Option<String> {
        Some(format!("Added {}.", quoted_field(data, "description")?))
    }
}

impl TaskTool for AddTask {
    fn store_id(&self) -> Option<StoreId> {
        self.tasks.store_id()
    }

    fn change(&self, arguments: &Arguments) -> Result<TaskChange, ToolError> {
        let args: Args = read(arguments.clone())?;
        Ok(TaskChange::Add {
            description: words_of_task(&args.description)?,
        })
    }

    fn result(&self, changed: &TaskChanged) -> Result<Value, ToolError> {
        match changed {
            TaskChanged::Added { task } => Ok(to_json(task)),
            TaskChanged::Updated { .. }
            | TaskChanged::Completed { .. }
            | TaskChanged::Deleted { .. }
            | TaskChanged::Restored { .. }
            | TaskChanged::NoSuchTask { .. } => Err(wrong_outcome()),
        }
    }
}
