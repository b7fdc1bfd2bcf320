//! Keeps the index for conversation search up to date, in the background.

use std::sync::Arc;

use adjutant_core::port::StoreError;
use adjutant_memory::index_conversations;
use adjutant_runtime::Agent;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::store::{self, Store};

/// A task that fills the index until this is dropped. The rest is indexed by the next process, or
/// before a search.
pub(crate) struct SearchIndexer {
    news: Arc<Notify>,
    task: JoinHandle<()>,
}

impl SearchIndexer {
    /// Starts the task: it indexes everything missing, and continues whenever a conversation has
    /// changed.
    pub(crate) fn keep(store: Arc<dyn Store>) -> Self {
        let news = Arc::<Notify>::default();
        let task = tokio::spawn({
            let news = news.clone();
            async move {
                loop {
                    // Nothing is lost: the next run tries again, and a search includes turns that
                    // are not indexed.
                    if let Err(error) = index_all(&*store).await {
                        tracing::warn!(target: "adjutant::past", %error, "what was said could not be put into the index of past conversations");
                    }
                    // A turn that ended during the run has left a permit, so this returns at once.
                    news.notified().await;
                }
            }
        });
        Self { news, task }
    }

    /// Has the task index conversations of an agent when their turns have ended.
    pub(crate) fn listen(&self, agent: &Agent) {
        let news = self.news.clone();
        agent.on_idle(move |_| news.notify_one());
    }
}

impl Drop for SearchIndexer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Indexes everything that is not indexed, in batches.
///
/// # Errors
/// [`StoreError`]; batches written before stay.
pub(crate) async fn index_all(store: &dyn Store) -> Result<(), StoreError> {
    let agent = store::agent_name();
    while index_conversations(store, &agent).await? {}
    Ok(())
}
