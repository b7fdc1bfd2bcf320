//! The events of one conversation, in their order.

use std::collections::{BTreeMap, BTreeSet};

use adjutant_core::port::Loaded;
use adjutant_core::{CallId, Event, TurnId};

/// Checks that the events are a legal order, and notes which turn each message began.
pub(super) fn check(loaded: &Loaded, turns: &mut BTreeMap<String, TurnId>) -> Result<(), String> {
    if let Some(input) = loaded.inbox.first() {
        return Err(format!("input {} was never taken", input.id));
    }
    let mut open: Option<TurnId> = None;
    let mut started: BTreeSet<CallId> = BTreeSet::new();
    let mut finished: BTreeSet<CallId> = BTreeSet::new();
    for (place, recorded) in (1..).zip(&loaded.events) {
        let (event, kind) = (&*recorded.event, recorded.event.kind());
        if recorded.seq != place {
            return Err(format!("place {} stands where {place} should", recorded.seq));
        }
        match event {
            Event::TurnStarted { turn, input, .. } => {
                if open.is_some() {
                    return Err(format!("a turn begins at {place} while another is open"));
                }
                if turns.insert(input.to_string(), *turn).is_some() {
                    return Err(format!("input {input} began two turns"));
                }
                (open, started, finished) = (Some(*turn), BTreeSet::new(), BTreeSet::new());
            }
            Event::InputIgnored { .. } | Event::HistorySet { .. } | Event::SessionEnded {} => {}
            _ if event.turn() != open => return Err(format!("{kind} at {place} is not of the open turn")),
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
