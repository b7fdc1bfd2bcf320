//! Invariants of a conversation's journal that hold after every run, whatever fault was injected
//! and whichever worker continued it.

use std::collections::{BTreeMap, BTreeSet};

use adjutant_core::port::Loaded;
use adjutant_core::{
    CallId, Content, Effect, Event, InputId, Message, ResolvedBy, Verdict, conversation,
};
use adjutant_durability::Called;

/// Accepted inputs were taken in order, each message started at most one turn, and each turn ended
/// once.
pub(crate) fn every_input_has_its_end(loaded: &Loaded, inputs: &[InputId], about: &str) {
    assert!(loaded.inbox.is_empty(), "{about}: {:?}", loaded.inbox);
    let events = || loaded.events.iter().map(|recorded| &*recorded.event);
    let mut taken_before = 0;
    for input in inputs {
        let takers: Vec<&Event> = events()
            .filter(|event| event.takes_input() == Some(input))
            .collect();
        let at = events()
            .position(|event| event.takes_input() == Some(input))
            .unwrap_or_default();
        assert!(
            at >= taken_before,
            "{about}: {input} was taken before the one that came before it"
        );
        taken_before = at;
        let turns: Vec<_> = takers.iter().map(|event| event.turn()).collect();
        assert!(!takers.is_empty(), "{about}: nobody took {input}");
        assert!(
            turns.iter().all(|turn| turn == &turns[0]),
            "{about}: {input} was taken twice: {takers:?}"
        );
    }
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for event in events() {
        match event {
            Event::TurnStarted { turn, .. } => drop(ends.insert(turn.to_string(), 0)),
            Event::TurnFinished { turn, .. } => *ends.get_mut(&turn.to_string()).unwrap() += 1,
            _ => {}
        }
    }
    assert!(ends.values().all(|ends| *ends == 1), "{about}: {ends:?}");
    let seqs: Vec<u64> = loaded.events.iter().map(|recorded| recorded.seq).collect();
    assert!(
        seqs.iter().copied().eq(1..=seqs.len() as u64),
        "{about}: {seqs:?}"
    );
}

/// A call with `Once` was executed once unless a person asked for a retry, one with `Keyed` has one
/// key, and one with `None` was repeated only after a kill. `seen`: the calls that reached the
/// tools.
pub(crate) fn no_effect_is_repeated(loaded: &Loaded, seen: &[Called], kills: usize, about: &str) {
    let calls: BTreeSet<&CallId> = seen.iter().map(|called| &called.call).collect();
    for call in calls {
        let of_call = || seen.iter().filter(|called| called.call == *call);
        let keys: BTreeSet<&str> = of_call().map(|called| called.key.as_str()).collect();
        assert_eq!(keys.len(), 1, "{about}: {call} has the keys {keys:?}");
        let is_once = of_call().any(|called| called.effect == Effect::Once);
        let allowed = 1 + if is_once { wished(loaded, call) } else { kills };
        let times = of_call().count();
        assert!(
            times <= allowed,
            "{about}: {call} was called {times} times, {allowed} are allowed"
        );
    }
}

/// Returns the number of retries of a call that a person asked for.
fn wished(loaded: &Loaded, wanted: &CallId) -> usize {
    let wishes = loaded.events.iter().filter(|recorded| {
        matches!(
            &*recorded.event,
            Event::DoubtResolved { call, by: ResolvedBy::Person, verdict: Verdict::Retry, .. } if call == wanted
        )
    });
    wishes.count()
}

/// Every call has one result in the history, which the model of the next turn gets.
pub(crate) fn every_call_has_one_result(loaded: &Loaded, about: &str) {
    let history = conversation::history(&loaded.events);
    let parts = || history.iter().flat_map(Message::parts);
    for part in parts() {
        let Content::ToolCall(call) = &part.content else {
            continue;
        };
        let results = parts().filter(
            |part| matches!(&part.content, Content::ToolResult { call_id, .. } if *call_id == call.id),
        );
        assert_eq!(results.count(), 1, "{about}: results of {}", call.id);
    }
}

/// Returns the calls that were in doubt.
pub(crate) fn in_doubt(loaded: &Loaded) -> BTreeSet<CallId> {
    let doubts = loaded
        .events
        .iter()
        .filter_map(|recorded| match &*recorded.event {
            Event::CallInDoubt { call, .. } => Some(call.clone()),
            _ => None,
        });
    doubts.collect()
}
