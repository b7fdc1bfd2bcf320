//! The trace of a turn, read from a journal.

use adjutant_core::port::{Journal, StoreError};
use adjutant_core::{
    ConversationKey, Event, GivenHistory, LogContent, Recorded, Step, TurnId, conversation,
};

/// Reads the steps of a turn from a journal, see [`adjutant_core::trace`]. Empty if the user has no
/// such turn.
///
/// It reads the turn, the earlier turns whose messages its first request had, and the one with the
/// summary in front of them; so the cost does not grow with the conversation. If the turn does not
/// record its history (no model call was answered, or an older version wrote it), the whole
/// conversation is read.
///
/// # Errors
/// [`StoreError`] if the journal cannot be read.
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
    let mut events = match (conversation::given_history(of_turn()), of_turn().next()) {
        (Some(past), Some(Event::TurnStarted { limits, .. })) => {
            let began = read.after + 1;
            events_before(journal, key, began, past, limits.history_messages_max).await?
        }
        // A call without a model sends no history.
        (None, Some(Event::TurnStarted { call: Some(_), .. })) => Vec::new(),
        _ => {
            let loaded = journal.load(key).await?;
            return Ok(adjutant_core::trace(&loaded.events, turn, content));
        }
    };
    events.extend(read.events);
    Ok(adjutant_core::trace(&events, turn, content))
}

/// Reads the events before a turn that contain the history it was given.
async fn events_before(
    journal: &(impl Journal + ?Sized),
    key: &ConversationKey,
    began: u64,
    past: &GivenHistory,
    messages_max: Option<usize>,
) -> Result<Vec<Recorded>, StoreError> {
    // A turn has at least one message, so this many turns have enough messages.
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
