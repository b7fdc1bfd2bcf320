//! A change of tasks in the same transaction as the events of its call.

use std::any::Any;

use adjutant_core::port::{JournaledChange, StoreError};
use adjutant_core::{BoxFuture, LogContent, Recorded};
use adjutant_tools::TaskChange;

use super::append::{AddedEvents, AppendRequest, Appended};
use super::open_turn_cache::OpenTurn;
use super::projection::new_events;
use super::{Connection, Failure, Work, task};

/// Events of a call, the change, and the state of the conversation after the events.
pub(super) struct Call<C> {
    pub(super) before: AppendRequest,
    pub(super) behind: OpenTurn,
    pub(super) change: JournaledChange,
    pub(super) content: LogContent,
    /// The database's way to append events.
    pub(super) append: Work<C, AppendRequest, Appended>,
}

/// Appends events, applies the change, and appends the event with its outcome. Returns that event,
/// and the state after it.
pub(super) fn append<'a, C: Connection>(
    tx: &'a mut C,
    Call {
        before,
        behind,
        change,
        content,
        append,
    }: &'a Call<C>,
) -> BoxFuture<'a, Result<(Recorded, OpenTurn), Failure>> {
    Box::pin(async move {
        let key = &before.key;
        append(tx, before).await?;
        let Some(tasks) = (&*change.change as &dyn Any).downcast_ref::<TaskChange>() else {
            let message = format!("this store cannot apply {:?}", change.change);
            return Err(StoreError::unusable(message).into());
        };
        let outcome = task::apply(tx, &key.user, tasks, Some(&change.key)).await?;
        let ended = (change.ended)(&outcome);
        let events = new_events(std::slice::from_ref(&ended))?;
        // The caller has numbered the event; another number would leave a gap, or overwrite one.
        if events.iter().any(|(row, _)| row.seq != behind.next_seq) {
            return Err(StoreError::Conflict.into());
        }
        let (added, after) = AddedEvents::compute(behind.clone(), key, events, *content)?;
        let last = AppendRequest {
            worker: before.worker.clone(),
            added: Some(added),
            ..AppendRequest::new(key, None)
        };
        append(tx, &last).await?;
        Ok((ended, after))
    })
}
