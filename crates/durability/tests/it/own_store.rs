//! Calls that change the tasks of the journal's own store: after a kill at any boundary the whole
//! call is there, or nothing of it.

use adjutant_core::{Effect, Event};

use crate::bench::{Bench, Kind, Played};
use crate::invariants;
use crate::scene::{TASK, Talk};

/// Kinds of the call's events, in order.
fn call_events(played: &Played) -> Vec<&'static str> {
    let of_call = |event: &Event| {
        matches!(
            event,
            Event::CallChecked { .. }
                | Event::CallStarted { .. }
                | Event::CallFinished { .. }
                | Event::CallInDoubt { .. }
        )
    };
    let events = played.loaded.events.iter().map(|recorded| &*recorded.event);
    events
        .filter(|event| of_call(event))
        .map(Event::kind)
        .collect()
}

fn killed_at_every_boundary(kind: Kind) {
    let Some(bench) = Bench::new(kind) else {
        return;
    };
    for boundary in 1.. {
        let played = bench.play(Talk::new(&TASK, Effect::None), &[boundary]);
        let about = format!("{kind:?}, {:?}", played.kills);
        invariants::basics(&played, played.kills.len(), &about);
        assert!(
            played.open.is_empty(),
            "{about}: an intent was written without its end"
        );
        assert_eq!(
            call_events(&played),
            ["call_checked", "call_started", "call_finished"],
            "{about}"
        );
        assert_eq!(bench.tasks(&played.talk.key.user).len(), 1, "{about}");
        // Message, call, result, answer.
        assert_eq!(invariants::history(&played).len(), 4, "{about}");
        if played.kills.is_empty() {
            assert!(boundary > 8, "only {boundary} places to die at");
            return;
        }
    }
}

#[test]
fn a_task_is_added_once_wherever_the_process_dies_on_sqlite() {
    killed_at_every_boundary(Kind::Sqlite);
}

#[test]
fn a_task_is_added_once_wherever_the_process_dies_on_postgres() {
    killed_at_every_boundary(Kind::Postgres);
}
