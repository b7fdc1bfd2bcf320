//! The task tools of the task assistant: one file per tool.

mod add;
mod complete;
mod delete;
mod list;
mod resolve; // words to a task
mod update;
mod words; // a task as JSON and as words

use std::sync::Arc;

use adjutant_core::port::{StoreError, TaskStore};
use adjutant_core::{
    Annotations, Arguments, DESCRIPTION_CHARS_MAX, InvalidDescription, Prepared, Reference,
    ReferenceArgument, Task, TaskDescription, TaskFilter, TaskId, TaskTool, Tool, ToolContext,
    ToolDefinition, ToolError, UserId,
};
use serde_json::{Value, json};

pub use add::AddTask;
pub use complete::CompleteTask;
pub use delete::DeleteTask;
pub use list::ListTasks;
pub use update::UpdateTask;

use resolve::{Prefer, resolve};

/// All task tools over one store, in the order models see them.
#[must_use]
pub fn task_tools(store: Arc<dyn TaskStore>) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(AddTask::new(store.clone())),
        Arc::new(ListTasks::new(store.clone())),
        Arc::new(UpdateTask::new(store.clone())),
        Arc::new(CompleteTask::new(store.clone())),
        Arc::new(DeleteTask::new(store)),
    ]
}

/// The kind of thing `task_id` refers to.
const KIND: &str = "task";

/// The definition of a task tool. `properties` is what the seed declares; all but `status` are
/// required. Tasks are kept here: no tool of them reaches further.
fn definition(
    name: &str,
    description: &str,
    properties: Value,
    annotations: Annotations,
    output_schema: Value,
) -> ToolDefinition {
    let annotations = Annotations {
        closed_world: true,
        ..annotations
    };
    let required: Vec<&String> = properties
        .as_object()
        .map(|properties| properties.keys().filter(|name| *name != "status").collect())
        .unwrap_or_default();
    let references = if required.iter().any(|name| *name == "task_id") {
        vec![ReferenceArgument {
            argument: "task_id".to_owned(),
            kind: KIND.to_owned(),
        }]
    } else {
        Vec::new()
    };
    let mut parameters = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        parameters["required"] = json!(required);
    }
    parameters["additionalProperties"] = json!(false);
    #[expect(
        clippy::expect_used,
        reason = "names and descriptions are constants of this folder, tested"
    )]
    let definition =
        ToolDefinition::new(name, description, parameters).expect("a valid definition");
    ToolDefinition {
        references,
        ..definition.annotated(annotations).returning(output_schema)
    }
}

/// The schema of a task's words.
fn description_property(description: &str) -> Value {
    json!({ "type": "string", "description": description, "minLength": 1, "maxLength": DESCRIPTION_CHARS_MAX })
}

/// The schema of `task_id`.
fn task_id_property(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

/// Checks the words of a task.
fn words_of_task(text: &str) -> Result<TaskDescription, ToolError> {
    TaskDescription::new(text)
        .map_err(|error: InvalidDescription| ToolError::invalid(error.to_string()))
}

/// Puts the id of the task that `text` names into the arguments, or asks which task is meant.
async fn prepare_reference(
    store: &dyn TaskStore,
    user: &UserId,
    text: &str,
    prefer: Prefer,
    mut arguments: Arguments,
    preview: impl FnOnce(&Task) -> String,
) -> Result<Prepared, ToolError> {
    let tasks = store
        .list(user, TaskFilter::All)
        .await
        .map_err(store_failed)?;
    Ok(match resolve(text, &tasks, prefer) {
        Ok(task) => {
            arguments.insert("task_id".to_owned(), Value::String(task.id.to_string()));
            Prepared::Ready {
                arguments,
                preview: Some(preview(task)),
            }
        }
        Err(question) => Prepared::Ask { question },
    })
}

/// The user's tasks as things that arguments may name.
async fn task_references(
    store: &dyn TaskStore,
    user: &UserId,
) -> Result<Vec<Reference>, ToolError> {
    let tasks = store
        .list(user, TaskFilter::All)
        .await
        .map_err(store_failed)?;
    Ok(tasks
        .into_iter()
        .map(|task| Reference {
            kind: KIND.to_owned(),
            id: task.id.to_string(),
            label: task.description.into(),
            done: task.completed,
        })
        .collect())
}

/// The user has no such task.
fn no_such_task(id: TaskId) -> ToolError {
    ToolError::NotFound {
        what: KIND.to_owned(),
        id: id.to_string(),
    }
}

/// Calls a tool outside of a journal's transaction.
async fn call(
    tool: &dyn TaskTool,
    store: &dyn TaskStore,
    context: &ToolContext,
    arguments: &Arguments,
) -> Result<Value, ToolError> {
    let change = tool.change(arguments)?;
    tool.result(
        &store
            .apply(&context.user, &change, Some(&context.key))
            .await
            .map_err(store_failed)?,
    )
}

/// Words for the person. What the store says may name hosts and files, so it is not repeated here.
fn store_failed(error: StoreError) -> ToolError {
    ToolError::failed(match error {
        // These are words for the person.
        StoreError::Refused { reason } => return ToolError::failed(reason),
        StoreError::Conflict | StoreError::Unavailable { .. } => {
            "The task list did not answer and nothing was changed. Please try again in a moment."
        }
        // New kinds of trouble are trouble of the store itself until somebody gives them words.
        StoreError::Unusable { .. } | StoreError::Unreadable { .. } | _ => {
            "The task list cannot be used at the moment and nothing was changed. Whoever runs this assistant has to look at its storage."
        }
    })
}

/// A store that broke its contract: the outcome of another change came back.
fn wrong_outcome() -> ToolError {
    ToolError::Unknown {
        message:
            "The task list gave an unexpected answer. Please look at the list before trying again."
                .to_owned(),
    }
}
