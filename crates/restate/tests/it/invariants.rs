//! What must hold after every run, whatever was done to it (`durability.md` 4, part 5).

use std::collections::{BTreeMap, BTreeSet};

use adjutant_core::port::Loaded;
use adjutant_core::{CallId, Content, Effect, Event, InputId, Message, conversation};

use crate::tools::Called;

/// All of it, after so many kills.
pub(crate) fn check(loaded: &Loaded, inputs: &[InputId], seen: &[Called], kills: usize, about: &str) {
    every_input_has_its_end(loaded, inputs, about);
    no_effect_is_repeated(seen, kills, about);
    every_call_has_one_result(loaded, about);
    let doubts = in_doubt(loaded);
    let once = seen.iter().filter(|called| called.effect == Effect::Once).map(|called| &called.call);
    assert!(kills > 0 || doubts.is_empty(), "{about}: in doubt without a kill: {doubts:?}");
    // What was not in doubt was done.
    let done = finished(loaded);
    for call in once {
        assert!(done.contains(call) || doubts.contains(call), "{about}: {call} ran and nobody knows");
    }
}

fn every_input_has_its_end(loaded: &Loaded, inputs: &[InputId], about: &str) {
    assert!(loaded.inbox.is_empty(), "{about}: {:?}", loaded.inbox);
    let events = || loaded.events.iter().map(|recorded| &*recorded.event);
    for input in inputs {
        let takers: BTreeSet<String> = events()
            .filter(|event| event.takes_input() == Some(input))
            .map(|event| format!("{:?}", event.turn()))
            .collect();
        assert_eq!(takers.len(), 1, "{about}: {input} was taken by {takers:?}");
    }
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for event in events() {
        match event {
            Event::TurnStarted { turn, .. } => drop(ends.insert(turn.to_string(), 0)),
            Event::TurnFinished { turn, .. } => *ends.get_mut(&turn.to_string()).unwrap() += 1,
            _ => {}
        }
    }
    assert!(!ends.is_empty() && ends.values().all(|ends| *ends == 1), "{about}: {ends:?}");
    let seqs: Vec<u64> = loaded.events.iter().map(|recorded| recorded.seq).collect();
    assert!(seqs.iter().copied().eq(1..=seqs.len() as u64), "{about}: {seqs:?}");
}

/// Once is once, keyed has one key, and what is read is read again only after a kill.
fn no_effect_is_repeated(seen: &[Called], kills: usize, about: &str) {
    let calls: BTreeSet<&CallId> = seen.iter().map(|called| &called.call).collect();
    for call in calls {
        let of_call = || seen.iter().filter(|called| called.call == *call);
        let keys: BTreeSet<&str> = of_call().map(|called| called.key.as_str()).collect();
        assert_eq!(keys.len(), 1, "{about}: {call} has the keys {keys:?}");
        let once = of_call().any(|called| called.effect == Effect::Once);
        let allowed = if once { 1 } else { 1 + kills };
        let times = of_call().count();
        assert!(times <= allowed, "{about}: {call} was called {times} times");
    }
}

/// In the history, and so for the model of the next turn.
fn every_call_has_one_result(loaded: &Loaded, about: &str) {
    let history = conversation::history(&loaded.events);
    let parts = || history.iter().flat_map(Message::parts);
    for part in parts() {
        let Content::ToolCall(call) = &part.content else { continue };
        let results = parts().filter(
            |part| matches!(&part.content, Content::ToolResult { call_id, .. } if *call_id == call.id),
        );
        assert_eq!(results.count(), 1, "{about}: results of {}", call.id);
    }
}

fn finished(loaded: &Loaded) -> BTreeSet<CallId> {
    let ends = loaded.events.iter().filter_map(|recorded| match &*recorded.event {
        Event::CallFinished { call, .. } => Some(call.clone()),
        _ => None,
    });
    ends.collect()
}

/// Calls whose fate was unknown.
pub(crate) fn in_doubt(loaded: &Loaded) -> BTreeSet<CallId> {
    let doubts = loaded.events.iter().filter_map(|recorded| match &*recorded.event {
        Event::CallInDoubt { call, .. } => Some(call.clone()),
        _ => None,
    });
    doubts.collect()
}
