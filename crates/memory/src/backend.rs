//! The two places in which one user's facts can be: a file of a vault, or a database.

use std::sync::Arc;

use adjutant_core::port::FactStore;

use crate::MemoryError;
use crate::context::MemoryContext;
use crate::key_fact::IndexCache;
use crate::user_queue::UserQueues;
use crate::vault_memory::{VaultMemory, blocking};

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
    /// Shared by all users of the database.
    pub(crate) queues: UserQueues,
    pub(crate) indexes: IndexCache,
}

impl Backend {
    /// Runs work whose cost grows with the number of facts where it holds up no other request.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, MemoryError> {
        match self {
            Self::Vault(_) => blocking(|| Ok(work())).await,
            Self::Database(database) => database.queues.compute(work).await,
        }
    }

    pub(crate) fn context(&self) -> &MemoryContext {
        match self {
            Self::Vault(memory) => &memory.context,
            Self::Database(database) => &database.context,
        }
    }
}
