//! Checks that hold after every run, whatever was done to it.

use std::collections::BTreeSet;

use adjutant_core::port::Loaded;
use adjutant_core::{CallId, Effect, Event, InputId};
use adjutant_durability::Called;

use crate::journal;

/// All of it, after so many kills.
pub(crate) fn check(
    loaded: &Loaded,
    inputs: &[InputId],
    seen: &[Called],
    kills: usize,
    about: &str,
) {
    let starts = |event: &Event| matches!(event, Event::TurnStarted { .. });
    assert!(
        loaded.events.iter().any(|recorded| starts(&recorded.event)),
        "{about}: no turn was started"
    );
    journal::every_input_has_its_end(loaded, inputs, about);
    journal::no_effect_is_repeated(loaded, seen, kills, about);
    journal::every_call_has_one_result(loaded, about);
    let doubts = journal::in_doubt(loaded);
    let once = seen
        .iter()
        .filter(|called| called.effect == Effect::Once)
        .map(|called| &called.call);
    assert!(
        kills > 0 || doubts.is_empty(),
        "{about}: in doubt without a kill: {doubts:?}"
    );
    // What was not in doubt was done.
    let done = finished(loaded);
    for call in once {
        assert!(
            done.contains(call) || doubts.contains(call),
            "{about}: {call} ran and nobody knows"
        );
    }
}

fn finished(loaded: &Loaded) -> BTreeSet<CallId> {
    let ends = loaded
        .events
        .iter()
        .filter_map(|recorded| match &*recorded.event {
            Event::CallFinished { call, .. } => Some(call.clone()),
            _ => None,
        });
    ends.collect()
}
