//! What of the past a turn is given: whole turns, in blocks, so that the prefix of requests stays stable.

use crate::limits::HISTORY_MESSAGES_KEPT;
use crate::message::{Message, Role};

/// Cuts a message to `chars_max` Unicode characters. `None` if it fits.
#[must_use]
pub fn cut(text: &str, chars_max: usize) -> Option<String> {
    let (end, _) = text.char_indices().nth(chars_max)?;
    Some(text.get(..end).unwrap_or(text).to_owned())
}

/// The history a turn is given: all of it, or, once it holds more than `messages_max` user and assistant messages, its
/// last whole turns.
///
/// Trimming goes in blocks: dropping down to half the bound each time keeps the beginning of the request the same for
/// several turns, so that prompt caches hit. The position depends on nothing but the history itself. Calls and results
/// ride with their turn.
#[must_use]
pub fn trim(history: &[Message], messages_max: Option<usize>) -> &[Message] {
    let Some(max) = messages_max else { return history };
    let kept = HISTORY_MESSAGES_KEPT.min(max.div_ceil(2)).max(1);
    let mut start = 0;
    // Replays the past message by message, so that the cut falls where it fell last time.
    for end in 1..=history.len() {
        if spoken(&history[start..end]) <= max {
            continue;
        }
        let mut next = start;
        while spoken(&history[next..end]) > kept {
            match turn_after(&history[..end], next) {
                Some(after) => next = after,
                None => break,
            }
        }
        start = next;
    }
    &history[start..]
}

/// How many messages of people and models there are; results do not count.
fn spoken(messages: &[Message]) -> usize {
    messages.iter().filter(|message| matches!(message.role(), Role::User | Role::Assistant)).count()
}

/// Where the turn after the one at `start` begins.
pub(super) fn turn_after(messages: &[Message], start: usize) -> Option<usize> {
    messages
        .iter()
        .enumerate()
        .skip(start + 1)
        .find(|(_, message)| message.role() == Role::User)
        .map(|(at, _)| at)
}
