//! `add_task`.

use std::sync::Arc;

use adjutant_core::port::TaskStore;
use adjutant_core::{
    Annotations, Arguments, BoxFuture, Prepared, TaskChange, TaskChanged, Tool, ToolContext, ToolDefinition,
    ToolError,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::words::{quoted, quoted_field, task_schema, to_json};
use super::{definition, description_property, store_failed, words_of_task, wrong_outcome};
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
            Annotations { keyed: true, ..Annotations::default() },
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
            Ok(Prepared::Ready { arguments, preview: Some(format!("Add {}", quoted(description.as_str()))) })
        })
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let args: Args = read(arguments)?;
            let change = TaskChange::Add { description: words_of_task(&args.description)? };
            match self.tasks.apply(&context.user, &change, Some(&context.key)).await.map_err(store_failed)? {
                TaskChanged::Added { task } => Ok(to_json(&task)),
                TaskChanged::Updated { .. }
                | TaskChanged::Completed { .. }
                | TaskChanged::Deleted { .. }
                | TaskChanged::NoSuchTask { .. } => Err(wrong_outcome()),
            }
        })
    }

    fn describe(&self, _arguments: &Arguments, data: &Value) -> Option<String> {
        Some(format!("Added {}.", quoted_field(data, "description")?))
    }
}
