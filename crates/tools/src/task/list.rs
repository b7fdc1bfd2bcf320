//! `list_tasks`.

use std::sync::Arc;

use adjutant_core::{
    Annotations, Arguments, BoxFuture, Prepared, Tool, ToolContext, ToolDefinition, ToolError,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::change_tool::store_failed;
use super::definition::definition;
use super::model::TaskFilter;
use super::store::TaskStore;
use super::view::{ListView, TaskView, is_from_others, list_schema};
use crate::arguments::parse_arguments;

/// The tool `list_tasks`, which shows the user's tasks.
pub struct ListTasks {
    definition: ToolDefinition,
    tasks: Arc<dyn TaskStore>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default)]
    status: TaskFilter,
}

impl ListTasks {
    /// Creates the tool over a store of tasks.
    #[must_use]
    pub fn new(tasks: Arc<dyn TaskStore>) -> Self {
        let definition = definition(
            "list_tasks",
            "Get user's tasks. Use when user wants to see, view, or list their tasks.",
            json!({ "status": {
                "type": "string",
                "enum": ["pending", "completed", "all"],
                "description": "Filter by status (default: all)",
            } }),
            Annotations {
                read_only: true,
                idempotent: true,
                ..Annotations::default()
            },
            list_schema(),
        )
        .with_intent("LIST_TASKS");
        Self { definition, tasks }
    }
}

impl Tool for ListTasks {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn prepare<'a>(
        &'a self,
        _context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Prepared, ToolError>> {
        // Only a policy that confirms reads shows it.
        let preview = Some("Show the tasks".to_owned());
        Box::pin(std::future::ready(Ok(Prepared::Ready {
            arguments,
            preview,
        })))
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let Args { status } = parse_arguments(arguments)?;
            let tasks = self.tasks.list(&context.user, status).await;
            let tasks: Vec<TaskView> = tasks
                .map_err(store_failed)?
                .iter()
                .map(TaskView::from)
                .collect();
            Ok(json!(ListView {
                count: tasks.len(),
                tasks,
                status
            }))
        })
    }

    fn holds_text_of_others(&self, data: &Value) -> bool {
        let tasks = data.get("tasks").and_then(Value::as_array);
        tasks.is_some_and(|tasks| tasks.iter().any(is_from_others))
    }

    fn describe(&self, _arguments: &Arguments, data: &Value) -> Option<String> {
        ListView::deserialize(data).ok().map(|list| list.to_text())
    }
}
