//! The memory in the database.

use std::sync::Arc;

use adjutant_memory::DatabaseMemory;

use crate::clock;
use crate::config::Settings;
use crate::store::{self, Store};

/// Returns the memory in the database, unless the settings turn it off.
pub(crate) fn in_database(settings: &Settings, store: &Arc<dyn Store>) -> Option<DatabaseMemory> {
    let clock = Arc::new(clock::zoned);
    let max = settings.memory.max_facts as usize;
    let memory = DatabaseMemory::new(store.clone(), store.clone(), max, clock);
    settings
        .memory
        .in_database
        .then(|| memory.with_conversations(store.clone(), store::agent_name()))
}
