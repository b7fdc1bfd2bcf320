//! The index of past conversations, filled behind the turns.

use std::sync::Arc;

use adjutant_core::port::StoreError;
use adjutant_memory::index_past;
use adjutant_runtime::Agent;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::store::{self, Store};

/// A task that fills the index of a store, and ends with this. The rest is done by the next one, or
/// before a search.
pub(crate) struct PastIndex {
    news: Arc<Notify>,
    task: JoinHandle<()>,
}

impl PastIndex {
    /// Begins with what is not in the index yet, and goes on whenever there is more.
    pub(crate) fn keep(store: Arc<dyn Store>) -> Self {
        let news = Arc::<Notify>::default();
        let task = tokio::spawn({
            let news = news.clone();
            async move {
                loop {
                    // What could not be written now is still there the next time, and every search
                    // looks through it.
                    if let Err(error) = index_all(&*store).await {
                        tracing::warn!(%error, "what was said could not be put into the index of past conversations");
                    }
                    news.notified().await;
                }
            }
        });
        Self { news, task }
    }

    /// Has the conversations of an agent put into the index as soon as they are at rest.
    pub(crate) fn listen(&self, agent: &Agent) {
        let news = self.news.clone();
        agent.on_rest(move |_| news.notify_one());
    }
}

impl Drop for PastIndex {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Puts everything into the index that is not in it, a portion at a time.
///
/// # Errors
/// [`StoreError`]; what was put there before stays.
pub(crate) async fn index_all(store: &dyn Store) -> Result<(), StoreError> {
    let agent = store::agent_name();
    while index_past(store, &agent).await? {}
    Ok(())
}
