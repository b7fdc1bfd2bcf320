//! The two places in which one user's facts can be: a file of a vault, or a database.

use std::sync::Arc;

use adjutant_core::port::FactStore;

use crate::context::MemoryContext;
use crate::vault_memory::VaultMemory;

/// The storage of one user's facts.
#[derive(Clone)]
pub(crate) enum Backend {
    Vault(Arc<VaultMemory>),
    Database(Arc<DatabaseFacts>),
}

/// A user's facts in a database.
#[derive(Clone)]
pub(crate) struct DatabaseFacts {
    pub(crate) store: Arc<dyn FactStore>,
    pub(crate) context: MemoryContext,
}

impl Backend {
    pub(crate) fn context(&self) -> &MemoryContext {
        match self {
            Self::Vault(memory) => &memory.context,
            Self::Database(database) => &database.context,
        }
    }
}
