//! `complete_task`.

use std::sync::Arc;

use adjutant_core::port::TaskStore;
use adjutant_core::{
    Annotations, Arguments, BoxFuture, Prepared, Reference, StoreId, Task, TaskChange, TaskChanged,
    TaskId, TaskTool, Tool, ToolContext, ToolDefinition, ToolError, UserId,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::resolve::Prefer;
use super::words::{quoted, quoted_field, task_schema, to_json};
use super::{
    call, definition, no_such_task, prepare_reference, task_id_property, task_references,
    wrong_outcome,
};
use crate::arguments::read;

/// Marks a task as done.
pub struct CompleteTask {
    definition: ToolDefinition,
    tasks: Arc<dyn TaskStore>,
}

/// `Id` is text, an id or words, until the call has been prepared.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args<Id> {
    task_id: Id,
}

impl CompleteTask {
    /// Over this store.
    #[must_use]
    pub fn new(tasks: Arc<dyn TaskStore>) -> Self {
        let definition = definition(
            "complete_task",
            "Mark a task as completed. Use when user says done, finished, or completed.",
            json!({ "task_id": task_id_property("Task ID to complete") }),
            Annotations {
                idempotent: true,
                keyed: true,
                ..Annotations::default()
            },
            task_schema(json!({ "already_completed": { "type": "boolean" } })),
        );
        Self { definition, tasks }
    }
}

impl Tool for CompleteTask {
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
            let preview = |task: &Task| format!("Complete {}", quoted(task.description.as_str()));
            prepare_reference(
                &*self.tasks,
                &context.user,
                &args.task_id,
                Prefer::Open,
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
        let words = quoted_field(data, "description")?;
        Some(
            if data.get("already_completed") == Some(&Value::Bool(true)) {
                format!("{words} was already done.")
            } else {
                format!("Completed {words}.")
            },
        )
    }
}

impl TaskTool for CompleteTask {
    fn store_id(&self) -> Option<StoreId> {
        self.tasks.store_id()
    }

    fn change(&self, arguments: &Arguments) -> Result<TaskChange, ToolError> {
        let args: Args<TaskId> = read(arguments.clone())?;
        Ok(TaskChange::Complete { id: args.task_id })
    }

    fn result(&self, changed: &TaskChanged) -> Result<Value, ToolError> {
        match changed {
            TaskChanged::Completed { task, already } => {
                let mut data = to_json(task);
                if *already {
                    data["already_completed"] = json!(true);
                }
                Ok(data)
            }
            TaskChanged::NoSuchTask { id } => Err(no_such_task(*id)),
            TaskChanged::Added { .. }
            | TaskChanged::Updated { .. }
            | TaskChanged::Deleted { .. }
            | TaskChanged::Restored { .. } => Err(wrong_outcome()),
        }
    }
}
