//! A change of tasks in one transaction with the events of the call that makes it.

use adjutant_core::port::{JournaledChange, StoreError, Writer};
use adjutant_core::{BoxFuture, ConversationKey, LogContent, Recorded};

use super::append::new_events;
use super::appending::{Added, Appending};
use super::journal::Writes;
use super::open_turns::Open;
use super::{Failure, SqlStore, task};

/// Events of a call, its change, and the state of the conversation behind the events.
struct Call {
    before: Appending,
    behind: Open,
    change: JournaledChange,
    content: LogContent,
}

/// Adds events, carries out a change, and adds the event that says what it led to, which is returned.
pub(super) async fn append<B: Writes>(
    store: &SqlStore<B>,
    key: &ConversationKey,
    writer: Writer<'_>,
    events: &[Recorded],
    change: JournaledChange,
) -> Result<Recorded, Failure> {
    let Some((added, behind)) = store.added(key, events).await? else {
        return Err(StoreError::Conflict.into());
    };
    let before = Appending { added: Some(added), ..Appending::of(key, Some(writer)) };
    let call = Call { before, behind, change, content: store.1.log_content };
    let (ended, after) = store.0.write(call, write::<B>).await?;
    store.0.open_turns().keep(key.clone(), after);
    Ok(ended)
}

fn write<'a, B: Writes>(
    rows: &'a mut B::Connection,
    Call { before, behind, change, content }: &'a Call,
) -> BoxFuture<'a, Result<(Recorded, Open), Failure>> {
    Box::pin(async move {
        let key = &before.key;
        B::append_in(rows, before).await?;
        let changed = task::apply(rows, &key.user, &change.change, Some(&change.key)).await?;
        let ended = (change.ended)(&changed);
        let events = new_events(std::slice::from_ref(&ended))?;
        if events.iter().any(|(row, _)| row.seq != behind.next_seq) {
            return Err(StoreError::Conflict.into());
        }
        let (added, after) = Added::behind(behind.clone(), key, events, *content)?;
        let worker = before.worker.clone();
        B::append_in(rows, &Appending { worker, added: Some(added), ..Appending::of(key, None) }).await?;
        Ok((ended, after))
    })
}
