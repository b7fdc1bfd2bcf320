//! The trace of a turn, read from a journal.

use adjutant_core::port::{Journal, StoreError};
use adjutant_core::{
    ConversationKey, Event, LogContent, Past, Recorded, Step, TurnId, conversation,
};

/// Reads the steps of a turn from a journal, see [`adjutant_core::trace`]. Empty if the user has no
/// such turn there.
///
/// Reads no more in a longer conversation: the turn, the turns before it whose messages its first
/// request had, and the one that has the summary in front of them. A turn that does not say which
/// those are is read with the whole conversation: one whose first model call has no reply yet, or
/// was given up, and one of before that was written down.
///
/// # Errors
/// [`StoreError`].
pub async fn read_trace(
    journal: &(impl Journal + ?Sized),
    key: &ConversationKey,
    turn: TurnId,
    content: LogContent,
) -> Result<Vec<Step>, StoreError> {
    let Some(read) = journal.load_turn(key, turn).await? else {
        return Ok(Vec::new());
    };
    let of_turn = || read.events.iter().map(|recorded| &*recorded.event);
    let mut events = match (conversation::past(of_turn()), of_turn().next()) {
        (Some(past), Some(Event::TurnStarted { limits, .. })) => {
            before(
                journal,
                key,
                read.after + 1,
                (past, limits.history_messages_max),
            )
            .await?
        }
        // It asked no model, so nothing of before was sent.
        (None, Some(Event::TurnStarted { call: Some(_), .. })) => Vec::new(),
        _ => {
            let loaded = journal.load(key).await?;
            return Ok(adjutant_core::trace(&loaded.events, turn, content));
        }
    };
    events.extend(read.events);
    Ok(adjutant_core::trace(&events, turn, content))
}

/// Reads the events before the place at which a turn began that have what it was given.
async fn before(
    journal: &(impl Journal + ?Sized),
    key: &ConversationKey,
    began: u64,
    (past, messages_max): (&Past, Option<usize>),
) -> Result<Vec<Recorded>, StoreError> {
    // A turn has a message of a person at least.
    let turns =
        u32::try_from(messages_max.unwrap_or(past.messages).min(past.messages)).unwrap_or(u32::MAX);
    let mut events = match turns {
        0 => Vec::new(),
        turns => journal
            .load_turns(key, Some(began), turns)
            .await?
            .map(|read| read.events)
            .unwrap_or_default(),
    };
    let first = events.first().map_or(began, |recorded| recorded.seq);
    if let Some(place) = past.summary.filter(|place| *place < first)
        && let Some(read) = journal.load_turns(key, Some(place + 1), 1).await?
    {
        events.splice(0..0, read.events);
    }
    Ok(events)
}
