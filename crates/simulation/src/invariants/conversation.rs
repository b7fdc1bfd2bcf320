//! The events of one conversation, in their order.

use std::collections::{BTreeMap, BTreeSet};

use adjutant_core::port::Loaded;
use adjutant_core::{CallId, Event, InputId, OutcomeCategory, TurnId};

/// The turns that belong to inputs.
#[derive(Debug, Default)]
pub(super) struct Turns {
    began: BTreeMap<InputId, TurnId>,
    /// The turns that took an input, or at whose end it waited.
    told: BTreeSet<(InputId, TurnId)>,
}

impl Turns {
    /// Returns true if the sender of an input may get the response of a turn.
    pub(super) fn is_of(&self, input: &InputId, turn: TurnId) -> bool {
        self.told.contains(&(input.clone(), turn))
    }

    fn note(&mut self, event: &Event) {
        let input = match event {
            Event::InputQueued { input, .. } => Some(input),
            event => event.takes_input(),
        };
        if let (Some(input), Some(turn)) = (input, event.turn()) {
            self.told.insert((input.clone(), turn));
        }
    }
}

/// Checks that the events are in a legal order, and records the turns of the inputs.
pub(super) fn check(loaded: &Loaded, turns: &mut Turns) -> Result<(), String> {
    if let Some(input) = loaded.inbox.first() {
        return Err(format!("input {} was never taken", input.id));
    }
    let mut open: Option<TurnId> = None;
    let mut started: BTreeSet<CallId> = BTreeSet::new();
    let mut finished: BTreeSet<CallId> = BTreeSet::new();
    for (place, recorded) in (1..).zip(&loaded.events) {
        let (event, kind) = (&*recorded.event, recorded.event.kind());
        if recorded.seq != place {
            return Err(format!(
                "place {} stands where {place} should",
                recorded.seq
            ));
        }
        turns.note(event);
        match event {
            Event::TurnStarted { turn, input, .. } => {
                if open.is_some() {
                    return Err(format!("a turn begins at {place} while another is open"));
                }
                if turns.began.insert(input.clone(), *turn).is_some() {
                    return Err(format!("input {input} began two turns"));
                }
                (open, started, finished) = (Some(*turn), BTreeSet::new(), BTreeSet::new());
            }
            Event::InputIgnored { .. } | Event::HistorySet { .. } | Event::SessionEnded {} => {}
            _ if event.turn() != open => {
                return Err(format!("{kind} at {place} is not of the open turn"));
            }
            Event::TurnFinished { .. } => open = None,
            Event::CallStarted { call, .. } => {
                started.insert(call.clone());
            }
            Event::CallFinished { call, .. } => {
                if !started.contains(call) {
                    return Err(format!("{call} ends at {place} and has not begun"));
                }
                if !finished.insert(call.clone()) {
                    return Err(format!("{call} ends twice, again at {place}"));
                }
            }
            Event::CallInDoubt { call, .. } if !started.contains(call) => {
                return Err(format!("{call} is in doubt at {place} and has not begun"));
            }
            _ => {}
        }
    }
    match open {
        Some(_) => Err("its last turn has no end".to_owned()),
        None => Ok(()),
    }
}

/// Checks that a turn was cancelled only by a sender of an input that it took. Returns the number
/// of turns that were cancelled by a cancellation that came too late for its own turn: a
/// cancellation in the inbox names no turn, which is a known limitation (seed 2029 shows it).
pub(super) fn nobody_stops_turns_of_others(
    loaded: &Loaded,
    stopped: &BTreeSet<InputId>,
) -> Result<u64, String> {
    // A sender who answers, and cancels before the turn has read the answer, has cancelled it.
    let unread = loaded
        .events
        .iter()
        .filter_map(|recorded| match &*recorded.event {
            Event::InputIgnored { input, .. } => Some(input),
            _ => None,
        });
    let unread: Vec<&InputId> = unread.collect();
    let (mut taken, mut before, mut late) = (Vec::<&InputId>::new(), Vec::<&InputId>::new(), 0);
    let mut waits = false;
    for recorded in &loaded.events {
        if let Event::TurnStarted { .. } = &*recorded.event {
            before.append(&mut taken);
        }
        let waited = waits;
        waits = match &*recorded.event {
            Event::TurnParked { .. } => true,
            Event::InputQueued { .. }
            | Event::AnswerUnclear { .. }
            | Event::AnswerRefused { .. }
            | Event::CallEdited { .. } => waits,
            _ => false,
        };
        taken.extend(recorded.event.takes_input());
        let Event::TurnFinished { input: by, end, .. } = &*recorded.event else {
            continue;
        };
        if end.outcome != OutcomeCategory::Cancelled {
            continue;
        }
        let is_stopped = |input: &&&InputId| stopped.contains(**input);
        // So has a sender who writes to a waiting turn, and cancels before it has read that.
        if taken.iter().chain(&unread).any(|input| is_stopped(&input))
            || (waited && !stopped.is_empty())
        {
            continue;
        }
        if by.is_none() || !before.iter().any(|input| is_stopped(&input)) {
            let of = taken.first().map_or("nobody", |input| input.as_str());
            return Err(format!(
                "the turn of {of} was stopped, and not by who sent it"
            ));
        }
        late += 1;
    }
    Ok(late)
}
