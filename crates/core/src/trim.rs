//! Trimming of history to whole turns, in blocks, so that the beginning of requests stays the same.

use crate::message::{Message, Role};

/// Truncates a text to `chars_max` Unicode characters. Returns `None` if it fits.
#[must_use]
pub fn cut(text: &str, chars_max: usize) -> Option<String> {
    let (end, _) = text.char_indices().nth(chars_max)?;
    Some(text.get(..end).unwrap_or(text).to_owned())
}

/// Returns the part of a history that a turn is given: all of it, or, once it holds more than
/// `messages_max` user and assistant messages, its last whole turns.
///
/// Trimming goes in blocks: dropping down to half the bound each time keeps the beginning of the
/// request the same for several turns, so that prompt caches hit. The position depends on nothing
/// but the history itself. Calls and results ride with their turn.
#[must_use]
pub fn trim(history: &[Message], messages_max: Option<usize>) -> &[Message] {
    let Some(max) = messages_max else {
        return history;
    };
    let (mut start, mut held) = (0, 0);
    // Replays the history message by message, so that the cut is where it was in earlier requests.
    for (at, message) in history.iter().enumerate() {
        held += usize::from(is_spoken(message));
        if held > max {
            let dropped = trimmed_at(&history[start..=at], max);
            held -= spoken(&history[start..start + dropped]);
            start += dropped;
        }
    }
    &history[start..]
}

/// Returns the number of messages that [`trim`] drops from the front of a history that just
/// exceeded `messages_max`: so many that half of the bound remains.
pub(crate) fn trimmed_at(history: &[Message], messages_max: usize) -> usize {
    let kept = messages_max.div_ceil(2).max(1);
    let mut start = 0;
    while spoken(&history[start..]) > kept {
        match turn_after(history, start) {
            Some(after) => start = after,
            None => break,
        }
    }
    start
}

/// Returns true for messages of a person or model, false for tool results.
pub(crate) fn is_spoken(message: &Message) -> bool {
    matches!(message.role(), Role::User | Role::Assistant)
}

fn spoken(messages: &[Message]) -> usize {
    messages.iter().filter(|message| is_spoken(message)).count()
}

/// Returns the index at which the turn after the one at `start` begins.
pub(crate) fn turn_after(messages: &[Message], start: usize) -> Option<usize> {
    messages
        .iter()
        .enumerate()
        .skip(start + 1)
        .find(|(_, message)| message.role() == Role::User)
        .map(|(at, _)| at)
}
