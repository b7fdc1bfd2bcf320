//! The store of a person's tasks: the database, or the notes of their vault.

use std::sync::Arc;

use adjutant_core::port::TaskStore;
use adjutant_memory::{Memory, VaultTaskStore};

use super::Desk;
use crate::config::Settings;
use crate::error::CliError;
use crate::store::Stores;

/// Returns the store of the tasks, over vaults that are open: each has the tasks of its owner, and
/// the database those of everybody else.
///
/// # Errors
/// `vault.tasks` says that they are in the notes, and there is no vault.
pub(crate) fn task_store<'a>(
    settings: &Settings,
    memories: impl IntoIterator<Item = &'a Memory>,
    stores: &Stores,
) -> Result<Arc<dyn TaskStore>, CliError> {
    let mut store: Arc<dyn TaskStore> = stores.kept.clone();
    if !settings.memory.tasks_in_notes {
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
    for tasks in over_notes {
        // A temporary conversation leaves no numbers behind.
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

/// Returns the store of the tasks of the person of this machine. The vault is opened only if they
/// are there.
///
/// # Errors
/// As [`task_store`]; the vault is not there or cannot be read.
pub(crate) async fn own_task_store(
    settings: &Settings,
    stores: &Stores,
) -> Result<Arc<dyn TaskStore>, CliError> {
    if !settings.memory.tasks_in_notes {
        return Ok(stores.kept.clone());
    }
    let desk = Desk::open(settings, stores.kept.clone()).await?;
    task_store(settings, desk.memory(), stores)
}
