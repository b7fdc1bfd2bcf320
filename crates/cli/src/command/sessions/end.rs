//! Records that the user left a conversation.

use adjutant_core::conversation::Status;
use adjutant_core::{ConversationKey, Event, Recorded};
use std::time::Duration;

use crate::clock::now;
use crate::error::CliError;
use crate::store::Store;

/// Duration of the lease for the event; far more than one append takes.
const CLAIM: Duration = Duration::from_secs(15);

/// Records the end of the session. Writes nothing if the conversation is empty or has ended
/// already, or if another worker has its lease: there it continues.
///
/// # Errors
/// The store cannot be written to.
pub(crate) async fn end(store: &dyn Store, key: &ConversationKey) -> Result<(), CliError> {
    let worker = format!("{}-{}", adjutant_store::worker_id(), uuid::Uuid::now_v7());
    // Without the lease, the event could come between those of a turn that another process runs.
    if !store.claim(key, &worker, CLAIM).await?.is_held() {
        return Ok(());
    }
    let ended = append(store, key).await;
    // Also after an error, so that the next command need not wait until the lease expires.
    store.release(key, worker.as_str().into()).await?;
    ended
}

async fn append(store: &dyn Store, key: &ConversationKey) -> Result<(), CliError> {
    let known = store.load(key).await?;
    let Some(last) = known.events.last() else {
        return Ok(());
    };
    let runs = Status::from_events(&known.events).runs();
    // With a turn or an input left, this is no end: the conversation will be recovered and goes on.
    if matches!(*last.event, Event::SessionEnded {}) || !known.inbox.is_empty() || runs {
        return Ok(());
    }
    Ok(store
        .append(
            key,
            &Recorded::sequence(known.next_seq(), now(), &[Event::SessionEnded {}]),
        )
        .await?)
}
