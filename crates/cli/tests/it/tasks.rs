//! Tasks in the person's own hand.

use crate::harness::Home;

#[test]
fn tasks_live_and_die_without_a_model() {
    let home = Home::new();
    assert_eq!(home.run(&["tasks", "list"]).succeeds().stdout, "You have no tasks.\n");
    assert_eq!(home.run(&["tasks", "add", "buy", "milk"]).succeeds().stdout, "Added “buy milk”.\n");
    home.add_task("call mum");
    home.run(&["tasks", "update", "1", "buy", "oat", "milk"]).succeeds();
    assert_eq!(home.run(&["tasks", "done", "call", "mum"]).succeeds().stdout, "Completed “call mum”.\n");
    assert_eq!(home.run(&["tasks", "done", "2"]).succeeds().stdout, "“call mum” was already done.\n");
    let list = home.run(&["tasks", "list"]).succeeds();
    assert_eq!(list.stdout, "Your tasks:\n  1. buy oat milk\n  2. call mum (done)\n");
    assert_eq!(
        home.run(&["tasks", "list", "--status", "pending"]).stdout,
        "Open tasks:\n  1. buy oat milk\n"
    );
    assert_eq!(list.stderr, "");
}

#[test]
fn words_that_are_no_task_are_told_by_what_is_wrong_with_them() {
    let home = Home::new();
    let long = "x".repeat(1001);
    for args in [&["tasks", "add", &long][..], &["tasks", "update", "1", &long]] {
        let run = home
            .run(args)
            .ends_with(1)
            .says("a task description has at most 1000 characters, this one has 1001");
        assert!(!run.stderr.contains("xxx") && !run.stderr.contains("_task"), "{run:?}");
    }
    let (code, told) = home.json(&["tasks", "add", &long]);
    assert_eq!((code, &told["error"]["code"]), (1, &serde_json::json!("failed")));
}

#[test]
fn the_demo_says_what_was_done_and_no_json() {
    let home = Home::new();
    let ask = |words: &str| home.run(&["-m", "demo", words]).succeeds().stdout;
    assert_eq!(ask("Add task to buy groceries"), "[demo] Added “buy groceries”.\n");
    assert_eq!(ask("show my tasks"), "[demo] Your tasks: buy groceries.\n");
    assert_eq!(ask("complete buy groceries"), "[demo] Completed “buy groceries”.\n");
}

#[test]
fn deleting_needs_a_yes() {
    let home = Home::new();
    home.add_task("buy milk");
    home.run(&["tasks", "rm", "milk"]).ends_with(4).says("Delete “buy milk”").says("-y");
    assert_eq!(home.tasks(), ["buy milk"]);
    let (code, refused) = home.json(&["tasks", "rm", "1"]);
    assert_eq!((code, refused["error"]["code"].as_str()), (4, Some("confirmation_needed")));
    assert_eq!(home.run(&["tasks", "rm", "-y", "milk"]).succeeds().stdout, "Deleted “buy milk”.\n");
    assert!(home.tasks().is_empty());
}

#[test]
fn what_is_not_clear_is_not_guessed() {
    let home = Home::new();
    home.add_task("buy milk");
    home.add_task("buy bread");
    home.run(&["tasks", "done", "buy"]).ends_with(1).says("buy milk").says("buy bread");
    home.run(&["tasks", "done", "99"]).ends_with(1);
    home.run(&["tasks", "add", " "]).ends_with(1).says("a task needs a description");
    home.run(&["tasks", "add"]).ends_with(2);
    let (_, list) = home.json(&["tasks", "list", "--status", "completed"]);
    assert_eq!(list["result"]["data"]["count"], 0);
}

#[test]
fn json_is_the_call_and_its_result() {
    let home = Home::new();
    let (code, added) = home.json(&["tasks", "add", "buy milk"]);
    assert_eq!(code, 0);
    assert_eq!(added["tool"], "add_task");
    assert_eq!(added["arguments"]["description"], "buy milk");
    assert_eq!(added["result"]["success"], true);
    assert_eq!(added["result"]["data"]["id"], "1");
    assert_eq!(added["error"], serde_json::Value::Null);
}

#[test]
fn options_without_a_meaning_are_refused() {
    let home = Home::new();
    home.run(&["tasks", "list", "-c"]).ends_with(2);
    home.run(&["chat", "--json"]).ends_with(2);
}
