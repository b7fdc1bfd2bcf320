//! A change of tasks in one transaction with the events of the call that makes it.

use adjutant_core::port::{JournaledChange, StoreError};
use adjutant_core::{BoxFuture, LogContent, Recorded};

use super::append::new_events;
use super::appending::{Added, Appending};
use super::open_turns::Open;
use super::{Connection, Failure, Work, task};

/// Events of a call, its change, and the state of the conversation behind the events.
pub(super) struct Call<C> {
    pub(super) before: Appending,
    pub(super) behind: Open,
    pub(super) change: JournaledChange,
    pub(super) content: LogContent,
    /// How the database adds events.
    pub(super) append: Work<C, Appending, (i64, i64)>,
}

/// Adds events, carries out a change, and adds the event that says what it led to. Returns that
/// event, and the state behind it.
pub(super) fn append<'a, C: Connection>(
    rows: &'a mut C,
    Call {
        before,
        behind,
        change,
        content,
        append,
    }: &'a Call<C>,
) -> BoxFuture<'a, Result<(Recorded, Open), Failure>> {
    Box::pin(async move {
        let key = &before.key;
        append(rows, before).await?;
        let changed = task::apply(rows, &key.user, &change.change, Some(&change.key)).await?;
        let ended = (change.ended)(&changed);
        let events = new_events(std::slice::from_ref(&ended))?;
        if events.iter().any(|(row, _)| row.seq != behind.next_seq) {
            return Err(StoreError::Conflict.into());
        }
        let (added, after) = Added::behind(behind.clone(), key, events, *content)?;
        let last = Appending {
            worker: before.worker.clone(),
            added: Some(added),
            ..Appending::of(key, None)
        };
        append(rows, &last).await?;
        Ok((ended, after))
    })
}
