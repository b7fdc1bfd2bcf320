//! Runs of many seeds, of a store with a bug, and of one seed twice.

#[path = "../../../../tests/size.rs"]
mod size;

use std::collections::BTreeMap;

use adjutant_simulation::{Options, Plant, Sweep, run, run_traced};

/// Simulates the seeds of a sweep, none of which may fail, and returns how often things happened.
fn all_hold(seeds: u64, options: Options) -> BTreeMap<&'static str, u64> {
    let (mut failed, mut tally) = (Vec::new(), BTreeMap::new());
    let sweep = Sweep {
        seeds: 0..seeds,
        options,
    };
    sweep.run(|report| {
        if report.failure.is_some() {
            failed.push(report.failed(options));
        }
        for (what, times) in report.tally {
            *tally.entry(what).or_insert(0_u64) += times;
        }
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    tally
}

/// Seeds in which no fault happens would prove nothing.
fn all_happened(wanted: &[&str], tally: &BTreeMap<&'static str, u64>) {
    let missing: Vec<_> = wanted
        .iter()
        .filter(|what| !tally.contains_key(*what))
        .collect();
    assert!(
        missing.is_empty(),
        "never happened: {missing:?}; what did: {tally:?}"
    );
}

#[test]
fn the_invariants_hold_for_every_seed() {
    let tally = all_hold(size::cases(10_000, 200), Options::new(0));
    let wanted = [
        "kill",
        "stop",
        "outage",
        "taken for gone",
        "answer lost",
        "news lost",
        "messages lost",
        "messages sent",
        "taken over",
        "epoch over",
        "conflict",
        "elsewhere",
        "dispatched",
        "dispatched twice",
        "dispatch lost",
        "tool failed",
        "call_in_doubt",
        "tried again",
        "turn_taken_up",
        "turn_parked",
        "LIMIT:BUDGET",
        "CANCELLED:BY_USER",
        "restored",
    ];
    all_happened(&wanted, &tally);
}

#[test]
fn the_invariants_hold_in_disasters() {
    let options = Options {
        disasters: true,
        ..Options::new(0)
    };
    let tally = all_hold(size::cases(10_000, 200), options);
    all_happened(
        &["clock stepped", "commits lost", "disk failed", "kill"],
        &tally,
    );
}

/// Checks that a bug is found by an invariant with these words, again by the same seed, and that
/// the output says how.
fn is_found(plant: Plant, disasters: bool, words: &str) {
    let mut found = Vec::new();
    let sound = Options {
        disasters,
        ..Options::new(0)
    };
    let options = Options {
        plant: Some(plant),
        ..sound
    };
    let sweep = Sweep {
        seeds: 0..200,
        options,
    };
    sweep.run(|report| {
        let failure = report.failure.as_ref();
        if failure.is_some_and(|failure| failure.0.contains(words)) {
            found.push(report.seed);
        }
    });
    assert!(!found.is_empty(), "none of 200 seeds finds it");
    let seed = found.into_iter().min().unwrap_or_default();
    let failed = run(Options { seed, ..options }).failed(options);
    let again = format!("cargo xtask simulate --seed {seed} --plant {plant}");
    assert!(failed.contains(&again), "{failed}");
    assert!(failed.contains("FAILED: writes: "), "{failed}");
    // Without the bug, the same seed holds.
    assert_eq!(run(Options { seed, ..sound }).failure, None);
}

#[test]
fn a_store_that_does_not_compare_epochs_is_found() {
    let words = "in an epoch in which it does not have the conversation";
    is_found(Plant::Epoch, false, words);
}

#[test]
fn a_store_that_judges_leases_by_the_clock_of_who_asks_is_found() {
    is_found(Plant::Clock, true, "took what");
}

#[test]
fn a_loss_of_commits_that_no_process_is_told_of_is_found() {
    is_found(Plant::Loss, true, "was started unasked");
}

/// The last two made a budget reservation loop without end, after a grant that took longer than a
/// lease lasts.
#[test]
fn seeds_that_failed_once_hold() {
    for seed in [6, 316, 1920, 1962, 4183, 6128] {
        let report = run(Options::new(seed));
        assert_eq!(report.failure, None, "seed {seed}");
    }
    // States that were cached before the store lost commits were continued.
    for seed in [356, 361, 797, 1135, 1139] {
        let report = run(Options {
            disasters: true,
            ..Options::new(seed)
        });
        assert_eq!(report.failure, None, "seed {seed}");
    }
}

#[test]
fn a_seed_makes_the_same_run_every_time() {
    for seed in 0..40 {
        let (first, second) = (
            run_traced(Options::new(seed)),
            run_traced(Options::new(seed)),
        );
        for (one, other) in first.trace.iter().zip(&second.trace) {
            assert_eq!(one, other, "seed {seed}");
        }
        assert_eq!(
            (first.digest, first.lines),
            (second.digest, second.lines),
            "seed {seed}"
        );
    }
    assert_ne!(run(Options::new(1)).digest, run(Options::new(2)).digest);
}
