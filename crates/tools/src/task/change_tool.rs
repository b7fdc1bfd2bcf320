//! The common part of the tools that change tasks: resolving a task, making the change, its result.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use adjutant_core::port::StoreError;
use adjutant_core::{
    Arguments, BoxFuture, Prepared, Reference, StoreChange, StoreId, Tool, ToolContext,
    ToolDefinition, ToolError, TransactionalTool, UserId,
};
use serde_json::Value;

use super::definition::KIND;
use super::model::{Task, TaskChange, TaskChanged, TaskFilter};
use super::resolve::{Prefer, resolve};
use super::store::TaskStore;
use super::view::is_from_others;

/// A tool whose calls are one change of the user's tasks each, written with the call's events where
/// the tasks are in the journal's store.
pub struct ChangeTool<A> {
    definition: ToolDefinition,
    tasks: Arc<dyn TaskStore>,
    action: PhantomData<A>,
}

/// The part that differs from tool to tool.
pub trait TaskAction: Send + Sync + 'static {
    /// Returns the definition that models see.
    fn definition() -> ToolDefinition;

    /// Returns the text that names a task, and which tasks it may mean. Default: the tool names
    /// none.
    ///
    /// # Errors
    /// [`ToolError::Invalid`] for arguments that cannot be used.
    fn reference(arguments: &Arguments) -> Result<Option<(String, Prefer)>, ToolError> {
        let _ = arguments;
        Ok(None)
    }

    /// Describes the call before it is made, as a person is asked about it. `task`: the task that
    /// [`TaskAction::reference`] means.
    ///
    /// # Errors
    /// [`ToolError::Invalid`] for arguments that cannot be used.
    fn preview(arguments: &Arguments, task: Option<&Task>) -> Result<String, ToolError>;

    /// Returns the change that a prepared call makes. `from_others`: see [`Task::from_others`].
    ///
    /// # Errors
    /// [`ToolError::Invalid`] for arguments that cannot be used.
    fn change(arguments: &Arguments, from_others: bool) -> Result<TaskChange, ToolError>;

    /// Returns the call's result from the outcome of its change.
    ///
    /// # Errors
    /// [`ToolError::NotFound`] if there is no such task.
    fn result(changed: &TaskChanged) -> Result<Value, ToolError>;

    /// Describes a result in one sentence for the user.
    fn describe(data: &Value) -> Option<String>;
}

impl<A: TaskAction> ChangeTool<A> {
    /// Creates the tool over a store of tasks.
    #[must_use]
    pub fn new(tasks: Arc<dyn TaskStore>) -> Self {
        Self {
            definition: A::definition(),
            tasks,
            action: PhantomData,
        }
    }

    async fn all_tasks(&self, user: &UserId) -> Result<Vec<Task>, ToolError> {
        let tasks = self.tasks.list(user, TaskFilter::All).await;
        tasks.map_err(store_failed)
    }
}

impl<A> fmt::Debug for ChangeTool<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeTool")
            .field("definition", &self.definition)
            .finish_non_exhaustive()
    }
}

impl<A: TaskAction> Tool for ChangeTool<A> {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn prepare<'a>(
        &'a self,
        context: &'a ToolContext,
        mut arguments: Arguments,
    ) -> BoxFuture<'a, Result<Prepared, ToolError>> {
        Box::pin(async move {
            let preview = match A::reference(&arguments)? {
                None => A::preview(&arguments, None)?,
                Some((text, prefer)) => {
                    let tasks = self.all_tasks(&context.user).await?;
                    let task = match resolve(&text, &tasks, prefer) {
                        Ok(task) => task,
                        Err(question) => return Ok(Prepared::Ask { question }),
                    };
                    let preview = A::preview(&arguments, Some(task))?;
                    // From here on the call names the task by its id, so that it changes the task
                    // that the user was shown, whatever is renamed meanwhile.
                    arguments.insert("task_id".to_owned(), Value::String(task.id.to_string()));
                    preview
                }
            };
            Ok(Prepared::Ready {
                arguments,
                preview: Some(preview),
            })
        })
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            // Only where the journal is in another store; else the change is written with its
            // events.
            let change = A::change(&arguments, context.from_others)?;
            let key = Some(&context.key);
            let changed = self.tasks.apply(&context.user, &change, key).await;
            A::result(&changed.map_err(store_failed)?)
        })
    }

    fn references<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<Vec<Reference>, ToolError>> {
        Box::pin(async move {
            // `add_task` refers to no task: the list is not read for it.
            if self.definition.references.is_empty() {
                return Ok(Vec::new());
            }
            let tasks = self.all_tasks(user).await?.into_iter();
            let references = tasks.map(|task| Reference {
                kind: KIND.to_owned(),
                id: task.id.to_string(),
                label: task.description.into(),
                done: task.completed,
            });
            Ok(references.collect())
        })
    }

    fn describe(&self, _arguments: &Arguments, data: &Value) -> Option<String> {
        A::describe(data)
    }

    fn holds_text_of_others(&self, data: &Value) -> bool {
        is_from_others(data)
    }

    // Always: whether the stores are one is found by their ids when a call is made.
    fn as_transactional(&self) -> Option<&dyn TransactionalTool> {
        Some(self)
    }
}

impl<A: TaskAction> TransactionalTool for ChangeTool<A> {
    fn store_id(&self) -> Option<StoreId> {
        self.tasks.store_id()
    }

    fn change(
        &self,
        context: &ToolContext,
        arguments: &Arguments,
    ) -> Result<Arc<dyn StoreChange>, ToolError> {
        Ok(Arc::new(A::change(arguments, context.from_others)?))
    }

    fn result(&self, outcome: &dyn Any) -> Result<Value, ToolError> {
        // The store shares the type with `change`, so another one is a fault of the store.
        A::result(outcome.downcast_ref().ok_or_else(wrong_outcome)?)
    }
}

/// Returns the error for an outcome that is not the one of the change: there is no such task, or
/// the store broke its contract.
pub(super) fn no_result(changed: &TaskChanged) -> ToolError {
    match changed {
        TaskChanged::NoSuchTask { id } => ToolError::NotFound {
            what: KIND.to_owned(),
            id: id.to_string(),
        },
        _ => wrong_outcome(),
    }
}

/// Returns the error for a store that did not do its work. Its own message may name hosts and
/// files, and this one is shown to the user, so it is not repeated here.
pub(super) fn store_failed(error: StoreError) -> ToolError {
    ToolError::failed(match error {
        // A reason that the store gives for the user.
        StoreError::Refused { reason } => return ToolError::failed(reason),
        StoreError::Conflict | StoreError::Unavailable { .. } => {
            "The task list did not answer and nothing was changed. Please try again in a moment."
        }
        // A kind of error that is new counts as one of the store itself until it has a message.
        StoreError::Unusable { .. } | StoreError::Unreadable { .. } | _ => {
            "The task list cannot be used at the moment and nothing was changed. Whoever runs this assistant has to look at its storage."
        }
    })
}

/// Returns the error for a store that broke its contract and returned the outcome of another
/// change.
pub(super) fn wrong_outcome() -> ToolError {
    ToolError::Unknown {
        message:
            "The task list gave an unexpected answer. Please look at the list before trying again."
                .to_owned(),
    }
}
