//! SIGKILL at every boundary, and at every pair of boundaries in a long run; otherwise at a sample
//! of the pairs, and at every boundary only where the tool must not be called twice.

use adjutant_core::{Effect, Verdict};

use crate::bench::{Bench, Kind};
use crate::invariants;
use crate::scene::{APPROVE, CALL_APPROVED, ONE, SCENES, Scene, TWO, Talk};
use crate::size;

/// One of this many pairs of boundaries is in the sample.
const ONE_OF: u32 = 7;

/// One of this many boundaries is in the sample. If a call can be left in doubt, every one is.
fn one_of(effect: Effect) -> u32 {
    match effect {
        Effect::None | Effect::Keyed => 3,
        Effect::Once => 1,
    }
}

/// Returns the scenes that are played with a kill at every pair of boundaries: every part of a turn
/// is in one of them. The other scenes have the same parts in another order or number, and one kill
/// at every boundary.
fn twice(effect: Effect) -> &'static [Scene] {
    match effect {
        Effect::None | Effect::Keyed => &[ONE],
        Effect::Once => &[ONE, APPROVE, CALL_APPROVED],
    }
}

/// Kills at every boundary, or at a sample of them. Returns the number of boundaries.
fn at_every_boundary(bench: &Bench, scene: &Scene, effect: Effect) -> u32 {
    let golden = bench.golden(scene, effect);
    invariants::check(&golden, &golden);
    assert_eq!(
        invariants::summaries(&golden).len(),
        usize::from(scene.long),
        "{scene:?}"
    );
    let mut last = 0;
    for boundary in (1..).filter(|boundary| size::takes(*boundary, one_of(effect))) {
        let played = bench.play(Talk::new(scene, effect), &[boundary]);
        invariants::check(&played, &golden);
        if played.kills.is_empty() {
            return last;
        }
        last = boundary;
    }
    unreachable!("there are always more numbers")
}

fn at_every_pair(bench: &Bench, scene: &Scene, effect: Effect) -> usize {
    let golden = bench.golden(scene, effect);
    let mut pairs = 0;
    for first in 1.. {
        for second in (1..).filter(|second| size::takes(first + second, ONE_OF)) {
            let played = bench.play(Talk::new(scene, effect), &[first, second]);
            invariants::check(&played, &golden);
            match played.kills.len() {
                0 => return pairs,
                1 => break,
                _ => pairs += 1,
            }
        }
    }
    unreachable!("there are always more numbers")
}

fn askable(kind: Kind) -> Option<Bench> {
    let mut bench = Bench::new(kind)?;
    bench.setup.probe = true;
    Some(bench)
}

/// Checks that the scene ends as it does without a kill.
#[test]
fn a_tool_that_can_be_asked_leaves_no_doubt_on_sqlite() {
    let pairs = at_every_pair(&askable(Kind::Sqlite).unwrap(), &ONE, Effect::Once);
    assert!(
        pairs > size::cases(80, 8),
        "only {pairs} pairs of places to die at"
    );
}

#[test]
fn a_tool_that_can_be_asked_leaves_no_doubt_on_postgres() {
    let Some(bench) = askable(Kind::Postgres) else {
        return;
    };
    let boundaries = at_every_boundary(&bench, &TWO, Effect::Once);
    assert!(boundaries >= 12, "only {boundaries} places to die at");
}

fn single_kills(kind: Kind, effect: Effect) {
    let Some(bench) = Bench::new(kind) else {
        return;
    };
    for scene in SCENES
        .iter()
        .filter(|scene| scene.effects().contains(&effect))
    {
        let boundaries = at_every_boundary(&bench, scene, effect);
        // Input, lease, model or call, answer, end: at least.
        let least = if scene.tools && scene.model { 12 } else { 6 };
        assert!(
            boundaries >= least,
            "{scene:?}: only {boundaries} places to die at"
        );
    }
}

fn double_kills(kind: Kind, effect: Effect) {
    let Some(bench) = Bench::new(kind) else {
        return;
    };
    for scene in twice(effect) {
        let pairs = at_every_pair(&bench, scene, effect);
        assert!(
            pairs > size::cases(80, 8),
            "{scene:?}: only {pairs} pairs of places to die at"
        );
    }
}

/// A call is in doubt, and the user resolves it; the worker that carries that out is killed at
/// every boundary too.
fn doubts(kind: Kind, verdict: Verdict) {
    let Some(bench) = Bench::new(kind) else {
        return;
    };
    let golden = bench.golden(&ONE, Effect::Once);
    let talk = || Talk::new(&ONE, Effect::Once).in_doubt(verdict);
    let mut kills = 0;
    for first in 1.. {
        let played = bench.play(talk(), &[first]);
        invariants::check(&played, &golden);
        if played.kills.is_empty() {
            break;
        }
        if played.in_doubt().is_empty() {
            continue;
        }
        for second in (1..).filter(|second| size::takes(first + second, ONE_OF)) {
            let played = bench.play(talk(), &[first, second]);
            invariants::check(&played, &golden);
            if verdict == Verdict::Retry {
                // In the end the call was executed, and that is recorded.
                assert_eq!(
                    invariants::history(&played),
                    invariants::history(&golden),
                    "{:?}",
                    played.kills
                );
            }
            if played.kills.len() < 2 {
                break;
            }
            kills += 1;
        }
    }
    assert!(
        kills > size::cases(30, 2),
        "only {kills} places to die at with a doubt"
    );
}

#[test]
fn a_doubt_is_taken_as_done_on_sqlite() {
    doubts(Kind::Sqlite, Verdict::Done);
}

#[test]
fn a_doubt_is_tried_again_on_sqlite() {
    doubts(Kind::Sqlite, Verdict::Retry);
}

#[test]
fn a_doubt_is_tried_again_on_postgres() {
    doubts(Kind::Postgres, Verdict::Retry);
}

/// One test for each, so that they run in parallel.
macro_rules! over_databases_and_effects {
    ($($name:ident: $kind:ident, $effect:ident;)+) => {
        mod once_killed {
            use super::*;
            $(#[test] fn $name() { single_kills(Kind::$kind, Effect::$effect); })+
        }
        mod twice_killed {
            use super::*;
            $(#[test] fn $name() { double_kills(Kind::$kind, Effect::$effect); })+
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
