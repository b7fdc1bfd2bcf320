//! A worker that is suspended past the end of its lease, taken for lost, and then resumed: its
//! writes are refused.

use std::collections::BTreeSet;

use adjutant_core::{Effect, Verdict};

use crate::bench::{Bench, Kind, open_calls};
use crate::invariants;
use crate::scene::{ONE, Talk};
use crate::size;
use crate::worker::{Harm, Worker, receive};
use crate::world::{Manner, Seen};

/// Longer than the time to the first heartbeat: a worker that is suspended during a heartbeat holds
/// SQLite's lock, and then no other worker can take over.
const LEASE: Harm = Harm {
    kill_at: None,
    stop_at: None,
    lease_ms: Some(1000),
    disk_kib: None,
};

/// Lets `other` submit everything that is left.
fn finish(talk: &mut Talk, other: &Worker) {
    while let Some(request) = talk.next() {
        talk.record(other.ask(&request).unwrap().unwrap());
    }
}

/// A worker is suspended at every boundary in turn, in the sample at every third: each waits for
/// the end of a lease.
fn at_every_boundary(kind: Kind, effect: Effect) {
    let Some(bench) = Bench::new(kind) else {
        return;
    };
    let golden = bench.golden(&ONE, effect);
    let mut refused = 0;
    for boundary in (1..).filter(|boundary| size::takes(*boundary, 3)) {
        let mut talk = Talk::new(&ONE, effect);
        let request = talk.next().unwrap();
        let sleeper = bench.start_as(
            "sleeper",
            Harm {
                stop_at: Some(boundary),
                ..LEASE
            },
        );
        let answer = sleeper.submit(&request).unwrap();
        let Some(words) = sleeper.stopped_before(&answer) else {
            assert!(boundary > 12, "only {boundary} places to stand still at");
            assert!(
                refused > size::cases(8, 1),
                "only {refused} of {boundary} were refused"
            );
            return;
        };
        let open = open_calls(&bench.load(&talk.key));
        finish(&mut talk, &bench.start_as("other", LEASE));
        sleeper.signal("-CONT");
        match receive(&answer).unwrap() {
            // It was suspended where it had nothing to write any more, or nothing yet: it finds
            // everything done.
            Ok(response) => assert_eq!(response.outcome, talk.outcome(), "{words}"),
            Err(error) => {
                assert!(
                    error.contains("another process is writing"),
                    "{words}: {error}"
                );
                refused += 1;
            }
        }
        invariants::check(&bench.played(talk, vec![words], open), &golden);
    }
}

/// A worker is suspended while a tool runs.
fn in_a_tool(kind: Kind, effect: Effect) {
    let Some(bench) = Bench::new(kind) else {
        return;
    };
    let golden = bench.golden(&ONE, effect);
    let mut talk = Talk::new(&ONE, effect);
    let conversation = talk.key.conversation;
    let request = talk.next().unwrap();
    bench.world.set(conversation, Manner::HoldTools);
    let sleeper = bench.start_as("sleeper", LEASE);
    let answer = sleeper.submit(&request).unwrap();
    bench.world.wait_for(conversation, |seen| {
        seen.iter().any(|seen| matches!(seen, Seen::Tool(_)))
    });
    sleeper.signal("-STOP");
    let open: BTreeSet<_> = open_calls(&bench.load(&talk.key));
    assert_eq!(open.len(), 1);
    bench.world.set(conversation, Manner::Prompt);
    finish(&mut talk, &bench.start_as("other", LEASE));
    sleeper.signal("-CONT");
    let refused = receive(&answer).unwrap().unwrap_err();
    assert!(refused.contains("another process is writing"), "{refused}");
    invariants::check(
        &bench.played(talk, vec!["stopped in a tool".to_owned()], open),
        &golden,
    );
}

/// A worker is suspended between the intent of a call that must not be repeated and its sending,
/// until another worker has asked a person about the call and was asked to retry: the call is sent
/// once, by that worker.
fn before_a_tool(kind: Kind) {
    let Some(bench) = Bench::new(kind) else {
        return;
    };
    for boundary in 1.. {
        let mut talk = Talk::new(&ONE, Effect::Once).in_doubt(Verdict::Retry);
        let conversation = talk.key.conversation;
        let request = talk.next().unwrap();
        let sleeper = bench.start_as(
            "sleeper",
            Harm {
                stop_at: Some(boundary),
                ..LEASE
            },
        );
        let answer = sleeper.submit(&request).unwrap();
        let words = sleeper.stopped_before(&answer).unwrap();
        if !words.contains("intent recorded, tool not begun") {
            sleeper.signal("-CONT");
            sleeper.kill();
            continue;
        }
        finish(&mut talk, &bench.start_as("other", LEASE));
        sleeper.signal("-CONT");
        let refused = receive(&answer).unwrap().unwrap_err();
        assert!(refused.contains("another process is writing"), "{refused}");
        let sent = bench.world.seen(conversation);
        let sent = sent
            .iter()
            .filter(|seen| matches!(seen, Seen::Tool(_)))
            .count();
        assert_eq!(sent, 1, "{words}");
        return;
    }
}

#[test]
fn what_must_not_be_repeated_is_not_sent_late_sqlite() {
    before_a_tool(Kind::Sqlite);
}

#[test]
fn what_must_not_be_repeated_is_not_sent_late_postgres() {
    before_a_tool(Kind::Postgres);
}

macro_rules! over_databases_and_effects {
    ($($name:ident: $kind:ident, $effect:ident;)+) => {
        mod anywhere {
            use super::*;
            $(#[test] fn $name() { at_every_boundary(Kind::$kind, Effect::$effect); })+
        }
        mod in_its_tool {
            use super::*;
            $(#[test] fn $name() { in_a_tool(Kind::$kind, Effect::$effect); })+
        }
    };
}

over_databases_and_effects! {
    sqlite_read_only: Sqlite, None;
    sqlite_keyed: Sqlite, Keyed;
    sqlite_once: Sqlite, Once;
    postgres_read_only: Postgres, None;
    postgres_keyed: Postgres, Keyed;
    postgres_once: Postgres, Once;
}
