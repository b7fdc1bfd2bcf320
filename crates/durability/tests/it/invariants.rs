//! What must hold after every run, whatever was done to it (`durability.md` 4, part 5).

use std::collections::BTreeMap;

use adjutant_core::{
    CallId, Content, ConversationKey, Effect, Event, Message, ResolvedBy, TurnId, Verdict, conversation,
};
use adjutant_durability::EFFECTS;

use crate::bench::Played;

/// All of it. `golden`: the same scene without harm.
pub(crate) fn check(played: &Played, golden: &Played) {
    let about = format!("{:?}, {:?}", played.talk.effect, played.kills);
    every_input_has_its_end(played, &about);
    no_effect_is_repeated(played, played.kills.len(), &about);
    only_what_was_open_is_in_doubt(played, &about);
    every_call_has_one_result(played, &about);
    assert_eq!(summaries(played), summaries(golden), "{about}: what was summarised");
    let model_calls = played.model_calls();
    assert!(model_calls <= golden.model_calls() + played.kills.len(), "{about}: {model_calls} model calls");
    if played.in_doubt().is_empty() {
        assert_eq!(history(played), history(golden), "{about}");
        assert_eq!(played.talk.outcome(), golden.talk.outcome(), "{about}");
    }
}

/// Accepted inputs were taken, each message started at most one turn, and each turn ended once.
pub(crate) fn every_input_has_its_end(played: &Played, about: &str) {
    assert!(played.loaded.inbox.is_empty(), "{about}: {:?}", played.loaded.inbox);
    let events = || played.loaded.events.iter().map(|recorded| &*recorded.event);
    let mut taken_before = 0;
    for input in played.talk.inputs() {
        let takers: Vec<&Event> = events().filter(|event| event.takes_input() == Some(&input)).collect();
        let at = events().position(|event| event.takes_input() == Some(&input)).unwrap_or_default();
        assert!(at >= taken_before, "{about}: {input} was taken before the one that came before it");
        taken_before = at;
        let turns: Vec<_> = takers.iter().map(|event| event.turn()).collect();
        assert!(!takers.is_empty(), "{about}: nobody took {input}");
        assert!(turns.iter().all(|turn| turn == &turns[0]), "{about}: {input} was taken twice: {takers:?}");
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
    let seqs: Vec<u64> = played.loaded.events.iter().map(|recorded| recorded.seq).collect();
    assert!(seqs.iter().copied().eq(1..=seqs.len() as u64), "{about}: {seqs:?}");
}

/// Once is once, unless a person says to try again; keyed has one key; and what is read is read again only after a kill.
pub(crate) fn no_effect_is_repeated(played: &Played, kills: usize, about: &str) {
    for effect in EFFECTS {
        for (call, times, keys) in played.calls(effect) {
            assert_eq!(keys, 1, "{about}: {call} has {keys} keys");
            let allowed = 1 + if effect == Effect::Once { wished(played, &call) } else { kills };
            assert!(times <= allowed, "{about}: {effect:?} {call} was called {times} times");
        }
    }
}

/// How often a person said to try a call again.
fn wished(played: &Played, wanted: &CallId) -> usize {
    let wishes = played.loaded.events.iter().filter(|recorded| {
        matches!(
            &*recorded.event,
            Event::DoubtResolved { call, by: ResolvedBy::Person, verdict: Verdict::Retry, .. } if call == wanted
        )
    });
    wishes.count()
}

/// A doubt comes only from a kill between the start of a call and its end; and there, of a call that must not be repeated
/// and cannot be asked about, it does come.
pub(crate) fn only_what_was_open_is_in_doubt(played: &Played, about: &str) {
    let doubts = played.in_doubt();
    if played.probed {
        return assert!(doubts.is_empty(), "{about}: the tool could have been asked about {doubts:?}");
    }
    let open: Vec<_> =
        played.open.iter().filter(|call| played.has_effect(call, Effect::Once)).cloned().collect();
    assert!(doubts.iter().eq(&open), "{about}: in doubt {doubts:?}, open at a kill {open:?}");
}

/// How much of the history each summary stands for: none is made twice, and none is missing.
pub(crate) fn summaries(played: &Played) -> Vec<usize> {
    let events = played.loaded.events.iter().map(|recorded| &*recorded.event);
    let made = events.filter_map(|event| match event {
        Event::ConversationSummarized { summary, .. } => Some(summary.summarized_at),
        _ => None,
    });
    made.collect()
}

/// In the history, and so for the model of the next turn.
pub(crate) fn every_call_has_one_result(played: &Played, about: &str) {
    let history = conversation::history(&played.loaded.events);
    let parts = || history.iter().flat_map(Message::parts);
    for part in parts() {
        let Content::ToolCall(call) = &part.content else { continue };
        let results = parts().filter(
            |part| matches!(&part.content, Content::ToolResult { call_id, .. } if *call_id == call.id),
        );
        assert_eq!(results.count(), 1, "{about}: results of {}", call.id);
    }
}

/// The history in words that are the same in every conversation.
pub(crate) fn history(played: &Played) -> Vec<String> {
    let events = &played.loaded.events;
    let ConversationKey { conversation: id, .. } = &played.talk.key;
    let turns: Vec<TurnId> = events
        .iter()
        .filter_map(|recorded| match &*recorded.event {
            Event::TurnStarted { turn, .. } => Some(*turn),
            _ => None,
        })
        .collect();
    let history = conversation::history(events);
    let words = history.iter().map(|message| {
        let mut text = serde_json::to_string(message).unwrap().replace(&id.to_string(), "CONVERSATION");
        for (number, turn) in turns.iter().enumerate() {
            let hex = turn.0.simple().to_string();
            text = text.replace(&hex[16..], &format!("TURN{number}"));
        }
        text
    });
    words.collect()
}
