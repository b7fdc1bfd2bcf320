//! A person leaves a conversation.

use adjutant_core::conversation::Status;
use adjutant_core::{ConversationKey, Event, Recorded};
use std::time::Duration;

use super::now;
use crate::error::CliError;
use crate::store::Store;

/// Far more than one append takes.
const CLAIM: Duration = Duration::from_secs(15);

/// Writes down that the person ended the session. Nothing is written where nothing was said, where
/// it has ended before, or where somebody else works on the conversation: for them it goes on.
///
/// # Errors
/// The store cannot be written to.
pub(crate) async fn end(store: &dyn Store, key: &ConversationKey) -> Result<(), CliError> {
    let worker = format!("{}-{}", adjutant_store::worker_id(), uuid::Uuid::now_v7());
    if !store.claim(key, &worker, CLAIM).await?.is_held() {
        return Ok(());
    }
    let ended = append(store, key).await;
    store.release(key, worker.as_str().into()).await?;
    ended
}

async fn append(store: &dyn Store, key: &ConversationKey) -> Result<(), CliError> {
    let known = store.load(key).await?;
    let Some(last) = known.events.last() else {
        return Ok(());
    };
    let runs = Status::of(&known.events).runs();
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
