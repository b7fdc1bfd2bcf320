//! Tasks: the to-do list of the task assistant, the ports of stores that keep it, and the tools
//! over it, one file for each tool.
//!
//! Stores implement [`TaskStore`]; every store in memory ([`adjutant_core::InMemoryTables`]) has it
//! already.

mod add;
mod change_tool;
mod complete;
mod definition;
mod delete;
mod in_memory;
mod index;
mod list;
mod model;
mod resolve;
mod store;
mod update;
mod view;

use std::sync::Arc;

use adjutant_core::Tool;

pub use add::{Add, AddTask};
pub use change_tool::{ChangeTool, TaskAction};
pub use complete::{Complete, CompleteTask};
pub use delete::{Delete, DeleteTask};
pub use index::{NumbersChange, TaskIndex, TaskNumber};
pub use list::ListTasks;
pub use model::{
    DELETED_TASK_DAYS, DESCRIPTION_CHARS_MAX, InvalidDescription, Task, TaskChange, TaskChanged,
    TaskDescription, TaskFilter, TaskId,
};
pub use resolve::Prefer;
pub use store::TaskStore;
pub use update::{Update, UpdateTask};

/// Returns all task tools over one store, in the order in which models see them.
///
/// # Examples
///
/// ```no_run
/// use std::sync::Arc;
/// use adjutant_core::ToolRegistry;
/// use adjutant_tools::{TaskStore, task_tools};
///
/// fn register(store: Arc<dyn TaskStore>) -> Result<ToolRegistry, adjutant_core::InvalidTool> {
///     let mut registry = ToolRegistry::default();
///     for tool in task_tools(store) {
///         registry.register(tool)?;
///     }
///     Ok(registry)
/// }
/// ```
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
