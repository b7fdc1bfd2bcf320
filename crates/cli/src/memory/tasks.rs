//! The store of a user's tasks: the database, or the notes of their vault.

use std::sync::Arc;

use adjutant_memory::{Memory, VaultTaskStore};
use adjutant_tools::TaskStore;

use super::UserMemory;
use crate::config::{Settings, TaskStorage};
use crate::error::CliError;
use crate::store::Stores;

/// Creates the store of tasks over opened vaults: their owners' tasks are in them, those of all
/// others in the database.
///
/// # Errors
/// `vault.tasks` places tasks in notes, and there is no vault.
pub(crate) fn task_store<'a>(
    settings: &Settings,
    memories: impl IntoIterator<Item = &'a Memory>,
    stores: &Stores,
) -> Result<Arc<dyn TaskStore>, CliError> {
    let mut store: Arc<dyn TaskStore> = stores.kept.clone();
    if settings.memory.tasks != TaskStorage::Notes {
        return Ok(store);
    }
    let mut over_notes = memories.into_iter().filter_map(Memory::tasks).peekable();
    if over_notes.peek().is_none() {
        return Err(CliError::configuration(
            "vault.tasks says that the tasks are in the notes, and there is no vault",
        )
        .or_try("adjutant config set vault.path DIR, or --vault DIR")
        .or_try("adjutant config set vault.tasks database"));
    }
    // Each store answers for its owner and passes all other users on, so the order does not matter.
    for tasks in over_notes {
        // A temporary conversation leaves no task numbers behind.
        let index = if settings.bounds.temp {
            stores.conversation.clone()
        } else {
            stores.kept.clone()
        };
        let note = settings.memory.tasks_note.as_str();
        store = Arc::new(VaultTaskStore::new(tasks, index, store, note));
    }
    Ok(store)
}

/// Creates the store of the local user's tasks. The vault is opened only if the tasks are in it.
///
/// # Errors
/// Those of [`task_store`]; the vault does not exist or cannot be read.
pub(crate) async fn own_task_store(
    settings: &Settings,
    stores: &Stores,
) -> Result<Arc<dyn TaskStore>, CliError> {
    if settings.memory.tasks != TaskStorage::Notes {
        return Ok(stores.kept.clone());
    }
    let user_memory = UserMemory::open(settings, stores.kept.clone()).await?;
    task_store(settings, user_memory.memory(), stores)
}
