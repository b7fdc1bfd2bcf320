//! The real binary, killed with SIGKILL at every place a process can die at, and started again.
//! Needs the feature `faults`. Boundaries number themselves: a run that is not killed has passed
//! the last one. Effects are counted by processes of their own, `adjutant tasks list` and
//! `adjutant log list`.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::harness::{Home, Run};
use crate::size;

/// One turn with two tool calls, and what the next start may be asked.
const SHOPPING: &[&str] = &[
    r#"{"match": "success", "text": "Added both."}"#,
    r#"{"match": "shopping", "calls": [{"name": "add_task", "args": {"description": "buy milk"}}, {"name": "add_task", "args": {"description": "buy bread"}}]}"#,
    r#"{"match": "are you there", "text": "hello"}"#,
];
/// One turn that waits before it deletes.
const CLEARING: &[&str] = &[
    r#"{"match": "success", "text": "Gone."}"#,
    r#"{"match": "drop the milk", "calls": [{"name": "delete_task", "args": {"task_id": "milk"}}]}"#,
    r#"{"match": "are you there", "text": "hello"}"#,
];

/// Runs the binary, to be killed at this boundary. Whether it was.
fn kill_at(home: &Home, boundary: u32, args: &[&str]) -> Option<Run> {
    run_to(&mut home.command(args), boundary)
}

/// The same for a command of any kind.
fn run_to(command: &mut Command, boundary: u32) -> Option<Run> {
    let run = Run::of(command.env("ADJUTANT_KILL_AT", boundary.to_string()));
    match run.code {
        0 | 4 => None,
        -1 => Some(run),
        other => panic!("neither killed nor done but {other}: {run:?}"),
    }
}

/// The next start that takes up what was left open: not that of a single question.
fn next_start(home: &Home, model: &str) -> Run {
    home.pipe(&["chat", "-m", model], b"are you there\n")
}

fn decisions(home: &Home, about: &str) -> Vec<Value> {
    let (_, log) = home.json(&["log", "list"]);
    let log = log.as_array().unwrap().iter();
    log.filter(|row| row["message"].as_str().unwrap().contains(about))
        .cloned()
        .collect()
}

/// Checks the invariants after the last kill: an accepted message has one turn that ended well, and
/// each of its calls one effect; a message that was not accepted has nothing.
fn check_shopping(home: &Home, kills: usize, context: &str) {
    let turns = decisions(home, "shopping");
    let tasks = home.tasks();
    match turns.as_slice() {
        [] => assert!(tasks.is_empty(), "{context}: {tasks:?}"),
        [turn] => {
            assert_eq!(
                turn["outcome"], "SUCCESS:TASK_COMPLETED",
                "{context}: {turn}"
            );
            assert_eq!(tasks, ["buy milk", "buy bread"], "{context}");
            // A recorded answer is not asked for again; one that was not recorded is, once for each
            // kill.
            let calls = turn["model_calls"].as_u64().unwrap();
            assert_eq!(calls, 2, "{context}: recorded answers after {kills} kills");
        }
        more => panic!("{context}: {} turns for one message", more.len()),
    }
}

#[test]
fn a_turn_with_two_calls_survives_a_kill_at_every_boundary() {
    let mut kills = 0;
    for boundary in 1.. {
        let home = Home::new();
        let model = home.script(SHOPPING);
        let Some(killed) = kill_at(&home, boundary, &["-m", &model, "shopping list please"]) else {
            break;
        };
        kills += 1;
        let accepted = !killed.stderr.contains("before the input is accepted");
        let next = next_start(&home, &model).succeeds();
        assert_eq!(next.stdout, "hello\n");
        check_shopping(&home, 1, &killed.stderr);
        assert_eq!(
            decisions(&home, "shopping").len(),
            usize::from(accepted),
            "{}",
            killed.stderr
        );
    }
    // Two tools have at least: input, turn, model, intents, two effects, two results, model, end.
    assert!(kills >= 10, "only {kills} places to die at");
}

/// A command whose end nobody saw is sent again with the same name.
#[test]
fn a_task_command_survives_a_kill_at_every_boundary() {
    let mut kills = 0;
    for boundary in 1.. {
        let home = Home::new();
        let add = ["tasks", "add", "buy milk", "--idempotency-key", "once"];
        let Some(killed) = kill_at(&home, boundary, &add) else {
            break;
        };
        kills += 1;
        home.run(&add).succeeds();
        assert_eq!(home.tasks(), ["buy milk"], "{}", killed.stderr);
        assert_eq!(decisions(&home, "add_task").len(), 1, "{}", killed.stderr);
    }
    // Input, turn, intent, effect, result, end.
    assert!(kills >= 6, "only {kills} places to die at");
}

#[test]
fn a_turn_survives_a_kill_of_the_start_that_finishes_it() {
    let next = AtomicU32::new(1);
    // Hundreds of runs: on as many threads as CI has cores.
    let count = || -> u32 {
        std::iter::from_fn(|| second_kills(next.fetch_add(1, Ordering::Relaxed))).sum()
    };
    let pairs: u32 = std::thread::scope(|scope| {
        let other = scope.spawn(count);
        count() + other.join().unwrap()
    });
    assert!(
        pairs > size::cases(50, 6),
        "only {pairs} pairs of places to die at"
    );
}

/// Kills a turn at `first`, and the start after it at each of its boundaries in turn, or a sample
/// of them. How many those are; `None` if the turn has no boundary `first`.
fn second_kills(first: u32) -> Option<u32> {
    let places = (1..).filter(|second| size::takes(first + second, 5));
    for (killed, second) in (0..).zip(places) {
        let home = Home::new();
        let model = home.script(SHOPPING);
        kill_at(&home, first, &["-m", &model, "shopping list please"])?;
        let mut command = home.command(&["chat", "-m", &model]);
        let said = std::fs::File::open(home.file("said", "are you there\n")).unwrap();
        if run_to(command.stdin(said), second).is_none() {
            return Some(killed);
        }
        next_start(&home, &model).succeeds();
        check_shopping(&home, 2, &format!("killed at {first}, then at {second}"));
    }
    None
}

#[test]
fn an_approved_delete_survives_a_kill_at_every_boundary() {
    let mut kills = 0;
    for boundary in 1.. {
        let home = Home::new();
        let model = home.script(CLEARING);
        home.add_task("buy milk");
        home.add_task("buy bread");
        home.run(&["-m", &model, "drop the milk"]).ends_with(4);
        let Some(killed) = kill_at(&home, boundary, &["-m", &model, "-c", "yes"]) else {
            break;
        };
        kills += 1;
        next_start(&home, &model).succeeds();
        let waits = home.json(&["pending", "list"]).1;
        let turns = decisions(&home, "drop");
        assert_eq!(turns.len(), 1, "{}", killed.stderr);
        if waits.as_array().unwrap().is_empty() {
            assert_eq!(
                turns[0]["outcome"], "SUCCESS:TASK_COMPLETED",
                "{}",
                killed.stderr
            );
            assert_eq!(home.tasks(), ["buy bread"], "{}", killed.stderr);
        } else {
            // The yes never arrived, so it still waits, untouched.
            assert!(
                killed.stderr.contains("before the input is accepted"),
                "{}",
                killed.stderr
            );
            assert_eq!(home.tasks(), ["buy milk", "buy bread"]);
        }
    }
    assert!(kills >= 6, "only {kills} places to die at");
}
