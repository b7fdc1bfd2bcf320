//! The state of a conversation: folded in one go, in two, and from a snapshot.

use adjutant_core::Recorded;
use adjutant_core::conversation::Conversation;
use adjutant_core::limits::HISTORY_MESSAGES_MAX;

use crate::world::World;

/// Checks that all ways to compute the state give the same result.
pub(super) fn check(world: &World, events: &[Recorded]) -> Result<(), String> {
    let most = Some(HISTORY_MESSAGES_MAX);
    let whole = Conversation::from_events(most, events.iter().cloned());
    let cut = world.chance().below(events.len() + 1);
    let (before, behind) = events.split_at(cut);
    let first = Conversation::from_events(most, before.iter().cloned());
    same(&whole, first.clone(), behind)
        .map_err(|what| format!("folded in two at {cut}, {what} differs"))?;
    if let Ok(Some(snapshot)) = first.snapshot() {
        let said = before
            .iter()
            .filter(|recorded| recorded.seq >= snapshot.messages_from);
        let said: Vec<Recorded> = said
            .filter(|recorded| recorded.event.has_messages())
            .cloned()
            .collect();
        let Some(restored) = Conversation::restore(most, &snapshot, said) else {
            return Err(format!("its snapshot at {cut} cannot be restored"));
        };
        same(&whole, restored, behind)
            .map_err(|what| format!("restored at {cut}, {what} differs"))?;
    }
    Ok(())
}

/// Compares a state with another one after folding the rest of its events. Returns the difference.
fn same(
    whole: &Conversation,
    mut other: Conversation,
    behind: &[Recorded],
) -> Result<(), &'static str> {
    for recorded in behind {
        other.apply(recorded.clone());
    }
    let checks = [
        (whole.seq() == other.seq(), "its place"),
        (whole.status() == other.status(), "its status"),
        (whole.open_turn() == other.open_turn(), "the open turn"),
        (whole.pending() == other.pending(), "what waits"),
        (
            whole.turn_history() == other.turn_history(),
            "what is recalled",
        ),
        (whole.usage() == other.usage(), "the usage"),
        (
            whole.messages() == other.messages(),
            "the number of messages",
        ),
    ];
    checks
        .into_iter()
        .find(|(holds, _)| !holds)
        .map_or(Ok(()), |(_, what)| Err(what))
}
