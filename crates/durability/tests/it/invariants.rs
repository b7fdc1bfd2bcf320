//! Checks that hold after every run, whatever was done to it.

use adjutant_core::{ConversationKey, Effect, Event, TurnId, conversation};

use crate::bench::Played;
use crate::journal;

/// All of it. `golden`: the same scene without harm.
pub(crate) fn check(played: &Played, golden: &Played) {
    let about = format!("{:?}, {:?}", played.talk.effect, played.kills);
    basics(played, played.kills.len(), &about);
    only_what_was_open_is_in_doubt(played, &about);
    assert_eq!(
        summaries(played),
        summaries(golden),
        "{about}: what was summarised"
    );
    let model_calls = played.model_calls();
    assert!(
        model_calls <= golden.model_calls() + played.kills.len(),
        "{about}: {model_calls} model calls"
    );
    if played.in_doubt().is_empty() {
        assert_eq!(history(played), history(golden), "{about}");
        assert_eq!(played.talk.outcome(), golden.talk.outcome(), "{about}");
    }
}

/// Checks what holds whatever was played: inputs have their ends, calls one result, and no effect
/// is repeated, but for what may be after so many kills.
pub(crate) fn basics(played: &Played, kills: usize, about: &str) {
    journal::every_input_has_its_end(&played.loaded, &played.talk.inputs(), about);
    journal::no_effect_is_repeated(&played.loaded, &played.called(), kills, about);
    journal::every_call_has_one_result(&played.loaded, about);
}

/// A doubt comes only from a kill between the start of a call and its end; and there, of a call
/// that must not be repeated and cannot be asked about, it does come.
pub(crate) fn only_what_was_open_is_in_doubt(played: &Played, about: &str) {
    let doubts = played.in_doubt();
    if played.probed {
        return assert!(
            doubts.is_empty(),
            "{about}: the tool could have been asked about {doubts:?}"
        );
    }
    let open: Vec<_> = played
        .open
        .iter()
        .filter(|call| played.has_effect(call, Effect::Once))
        .cloned()
        .collect();
    assert!(
        doubts.iter().eq(&open),
        "{about}: in doubt {doubts:?}, open at a kill {open:?}"
    );
}

/// Returns the number of messages that each summary replaces: none is made twice, and none is
/// missing.
pub(crate) fn summaries(played: &Played) -> Vec<usize> {
    let events = played.loaded.events.iter().map(|recorded| &*recorded.event);
    let made = events.filter_map(|event| match event {
        Event::ConversationSummarized { summary, .. } => Some(summary.summarized_at),
        _ => None,
    });
    made.collect()
}

/// The history in words that are the same in every conversation.
pub(crate) fn history(played: &Played) -> Vec<String> {
    let events = &played.loaded.events;
    let ConversationKey {
        conversation: id, ..
    } = &played.talk.key;
    let turns: Vec<TurnId> = events
        .iter()
        .filter_map(|recorded| match &*recorded.event {
            Event::TurnStarted { turn, .. } => Some(*turn),
            _ => None,
        })
        .collect();
    let history = conversation::history(events);
    let words = history.iter().map(|message| {
        let mut text = serde_json::to_string(message)
            .unwrap()
            .replace(&id.to_string(), "CONVERSATION");
        for (number, turn) in turns.iter().enumerate() {
            let hex = turn.0.simple().to_string();
            text = text.replace(&hex[16..], &format!("TURN{number}"));
        }
        text
    });
    words.collect()
}
