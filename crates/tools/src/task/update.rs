//! `update_task`.

use std::sync::Arc;

use adjutant_core::port::TaskStore;
use adjutant_core::{
    Annotations, Arguments, BoxFuture, Prepared, Reference, StoreId, TaskChange, TaskChanged,
    TaskId, TaskTool, Tool, ToolContext, ToolDefinition, ToolError, UserId,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::resolve::Prefer;
use super::words::{quoted, quoted_field, task_schema, to_json};
use super::{
    call, definition, description_property, no_such_task, prepare_reference, task_id_property,
    task_references, words_of_task, wrong_outcome,
};
use crate::arguments::read;

/// Changes the words of a task.
pub struct UpdateTask {
    definition: ToolDefinition,
    tasks: Arc<dyn TaskStore>,
}

/// `Id` is text, an id or words, until the call has been prepared.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args<Id> {
    task_id: Id,
    description: String,
}

impl UpdateTask {
    /// Over this store.
    #[must_use]
    pub fn new(tasks: Arc<dyn TaskStore>) -> Self {
        let definition = definition(
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
        );
        Self { definition, tasks }
    }
}

impl Tool for UpdateTask {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn prepare<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Prepared, ToolError>> {
        Box::pin(async move {
            let args: Args<String> = read(arguments.clone())?;
            let description = words_of_task(&args.description)?;
            let preview = |task: &adjutant_core::Task| {
                format!(
                    "Rename {} to {}",
                    quoted(task.description.as_str()),
                    quoted(description.as_str())
                )
            };
            prepare_reference(
                &*self.tasks,
                &context.user,
                &args.task_id,
                Prefer::Any,
                arguments,
                preview,
            )
            .await
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

    fn references<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<Vec<Reference>, ToolError>> {
        Box::pin(task_references(&*self.tasks, user))
    }

    fn describe(&self, _arguments: &Arguments, data: &Value) -> Option<String> {
        let before = quoted_field(data, "previous_description")?;
        let after = quoted_field(data, "description")?;
        Some(format!("Renamed {before} to {after}."))
    }
}

impl TaskTool for UpdateTask {
    fn store_id(&self) -> Option<StoreId> {
        self.tasks.store_id()
    }

    fn change(&self, arguments: &Arguments) -> Result<TaskChange, ToolError> {
        let args: Args<TaskId> = read(arguments.clone())?;
        Ok(TaskChange::Update {
            id: args.task_id,
            description: words_of_task(&args.description)?,
        })
    }

    fn result(&self, changed: &TaskChanged) -> Result<Value, ToolError> {
        match changed {
            TaskChanged::Updated { task, before } => {
                let mut data = to_json(task);
                data["previous_description"] = json!(before);
                Ok(data)
            }
            TaskChanged::NoSuchTask { id } => Err(no_such_task(*id)),
            TaskChanged::Added { .. }
            | TaskChanged::Completed { .. }
            | TaskChanged::Deleted { .. }
            | TaskChanged::Restored { .. } => Err(wrong_outcome()),
        }
    }
}
