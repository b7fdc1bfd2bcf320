//! Killed at every place a process can die at, and started again. Needs the feature `faults`.

use crate::harness::{Home, Run};

const ADD: &[&str] = &[
    r#"{"match": "success", "text": "Added."}"#,
    r#"{"match": "milk", "calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}"#,
];

#[test]
fn the_next_run_finishes_what_a_kill_left_open_and_does_nothing_twice() {
    let mut kills = 0;
    for boundary in 1.. {
        let home = Home::new();
        let model = home.script(ADD);
        let killed =
            Run::of(home.command(&["-m", &model, "add milk"]).env("ADJUTANT_KILL_AT", boundary.to_string()));
        if killed.code == 0 {
            break;
        }
        assert_eq!(killed.code, -1, "{killed:?}");
        kills += 1;
        let accepted = !killed.stderr.contains("before the input is accepted");
        let next =
            home.run(&["-m", &home.script(&[ADD[0], ADD[1], r#"{"text": "hello"}"#]), "hi"]).succeeds();
        let finished = next.stderr.contains("finished what was left open: Added.");
        // Killed behind the last event there is nothing left to finish.
        let (_, log) = home.json(&["log", "list", "--outcome", "SUCCESS:TASK_COMPLETED"]);
        let completed = log.as_array().unwrap().len();
        assert_eq!(completed, usize::from(accepted), "boundary {boundary}: {killed:?} {next:?}");
        assert!(finished || !accepted || next.stdout == "hello\n", "boundary {boundary}: {next:?}");
        assert_eq!(home.tasks().len(), usize::from(accepted), "boundary {boundary}");
    }
    assert!(kills > 5, "only {kills} places to die at");
}
