//! Confirmations: asked, answered later, answered by option, never assumed.

use crate::harness::Home;

/// A home with a task, and a model that deletes it and says so.
fn home_with_milk() -> (Home, String) {
    let home = Home::new();
    home.add_task("buy milk");
    // What the tool gave back holds the word "delete" too, so its lines come first.
    let model = home.script(&[
        r#"{"match": "\"success\":true", "text": "It is gone."}"#,
        r#"{"match": "\"success\":false", "text": "I kept it."}"#,
        r#"{"match": "delete", "calls": [{"name": "delete_task", "args": {"task_id": "milk"}}]}"#,
    ]);
    (home, model)
}

#[test]
fn without_a_terminal_nothing_runs_and_the_ways_are_named() {
    let (home, model) = home_with_milk();
    let run = home.run(&["-m", &model, "delete milk"]).ends_with(4);
    assert!(run.stdout.contains("Delete “buy milk”?"), "{run:?}");
    run.says("adjutant pending approve ")
        .says("adjutant pending deny ")
        .says("adjutant -c yes");
    assert_eq!(home.tasks(), ["buy milk"]);
}

#[test]
fn without_a_terminal_the_question_is_printed_once() {
    let (home, model) = home_with_milk();
    let run = home.run(&["-m", &model, "delete milk"]).ends_with(4);
    assert_eq!(run.stdout, "Delete “buy milk”? Please answer yes or no.\n");
    let ways: Vec<&str> = run.stderr.lines().skip(1).collect();
    let [approve, deny, yes] = ways.as_slice() else {
        panic!("three ways to answer, and no question: {run:?}");
    };
    assert!(
        approve.starts_with("  adjutant pending approve ")
            && approve.ends_with("    Delete “buy milk”")
    );
    assert!(deny.starts_with("  adjutant pending deny "));
    assert_eq!(*yes, "  adjutant -c yes");
}

#[test]
fn approving_later_runs_exactly_what_was_shown() {
    let (home, model) = home_with_milk();
    let (code, asked) = home.ask(&model, "delete milk");
    assert_eq!(code, 4);
    let pending = &asked["pending"][0];
    assert_eq!(pending["arguments"]["task_id"], "1");
    assert!(pending["digest"].as_str().unwrap().len() == 64 && pending["expires_at"].is_string());

    let (_, listed) = home.json(&["pending", "list"]);
    assert_eq!(listed[0]["id"], pending["id"]);
    assert_eq!(listed[0]["conversation"], asked["conversation"]);
    let list = home.run(&["pending", "list"]).succeeds();
    for words in [
        "Delete “buy milk”",
        "expires in",
        asked["conversation"].as_str().unwrap(),
    ] {
        assert!(list.stdout.contains(words), "{list:?}");
    }

    let run = home
        .run(&[
            "pending",
            "approve",
            pending["id"].as_str().unwrap(),
            "-m",
            &model,
        ])
        .succeeds();
    assert_eq!(run.stdout, "It is gone.\n");
    assert!(home.tasks().is_empty());
    assert!(
        home.run(&["pending", "list"])
            .succeeds()
            .stdout
            .contains("Nothing waits")
    );
    // Nothing waits under that id any more.
    home.run(&[
        "pending",
        "approve",
        pending["id"].as_str().unwrap(),
        "-m",
        &model,
    ])
    .ends_with(1);
}

#[test]
fn denying_later_keeps_it() {
    let (home, model) = home_with_milk();
    let (_, asked) = home.ask(&model, "delete milk");
    let call = asked["pending"][0]["call_id"].as_str().unwrap();
    let (code, answer) = home.json(&["pending", "deny", call, "-m", &model]);
    assert_eq!(
        (code, answer["outcome"].as_str()),
        (0, Some("REFUSAL:CONFIRMATION_DENIED"))
    );
    assert_eq!(home.tasks(), ["buy milk"]);
}

#[test]
fn the_next_message_is_read_as_the_answer() {
    for (words, code, left) in [
        ("yes", 0, 0),
        ("No.", 0, 1),
        ("maybe", 4, 1),
        ("yes, but the other", 4, 1),
    ] {
        let (home, model) = home_with_milk();
        home.run(&["-m", &model, "delete milk"]).ends_with(4);
        let (exit, answer) = home.json(&["-c", "-m", &model, words]);
        assert_eq!(
            (exit, home.tasks().len()),
            (code, left),
            "{words}: {answer}"
        );
    }
}

#[test]
fn an_unclear_answer_asks_again() {
    let (home, model) = home_with_milk();
    let (_, first) = home.ask(&model, "delete milk");
    let (code, again) = home.json(&["-c", "-m", &model, "maybe"]);
    assert_eq!(
        (code, again["decision"].as_str()),
        (4, Some("REQUEST_CONFIRMATION"))
    );
    assert_eq!(again["pending"][0]["id"], first["pending"][0]["id"]);
    home.run(&["-c", "-m", &model, "yes"]).succeeds();
    assert!(home.tasks().is_empty());
}

#[test]
fn an_option_says_yes_to_all_or_to_named_tools() {
    for (option, code, left) in [
        ("-y", 0, 0),
        ("--yes=delete_task", 0, 0),
        ("--yes=add_task", 4, 1),
    ] {
        let (home, model) = home_with_milk();
        let run = home
            .run(&["ask", option, "-m", &model, "delete milk"])
            .ends_with(code);
        assert_eq!(home.tasks().len(), left, "{option}: {run:?}");
    }
    let (home, model) = home_with_milk();
    home.run(&["ask", "--yes=delete_tsk", "-m", &model, "x"])
        .ends_with(2)
        .says("delete_task");
}

#[test]
fn what_is_confirmed_is_a_setting() {
    let home = Home::new();
    home.config("[agent]\nconfirm = [\"add_task\"]\nallow = [\"delete_task\"]\n");
    home.run(&["tasks", "add", "x"]).ends_with(4);
    home.run(&["tasks", "add", "-y", "x"]).succeeds();
    home.run(&["tasks", "rm", "1"]).succeeds();
}

#[test]
fn an_answer_that_is_too_late_is_refused_and_nothing_runs() {
    let (home, model) = home_with_milk();
    home.config("[agent]\nconfirmation_expiry = \"1s\"\n");
    let (_, asked) = home.ask(&model, "delete milk");
    let expires = asked["pending"][0]["expires_at"]
        .as_str()
        .unwrap()
        .to_owned();
    // Waits until the clock has passed what was promised, however long a run takes.
    while home.run(&["pending", "list"]).stdout.contains("expires in") {}
    let id = asked["pending"][0]["id"].as_str().unwrap();
    let (code, answer) = home.json(&["pending", "approve", id, "-m", &model]);
    assert_eq!(
        (code, answer["outcome"].as_str()),
        (1, Some("REFUSAL:CONFIRMATION_EXPIRED")),
        "{expires}"
    );
    assert_eq!(home.tasks(), ["buy milk"]);
}

#[test]
fn an_id_nothing_has_is_an_error_before_a_model_is_looked_for() {
    let home = Home::new();
    home.run(&["pending", "approve", "nothing"])
        .ends_with(1)
        .says("adjutant pending list");
    home.run(&["pending", "deny", ""]).ends_with(1);
}

#[test]
fn a_yes_may_carry_other_arguments_which_are_checked_again() {
    let home = Home::new();
    home.add_task("buy milk");
    home.add_task("buy bread");
    let model = home.script(&[
        r#"{"match": "\"success\":true", "text": "It is gone."}"#,
        r#"{"match": "delete", "calls": [{"name": "delete_task", "args": {"task_id": "milk"}}]}"#,
    ]);
    let (_, asked) = home.ask(&model, "delete milk");
    let id = asked["pending"][0]["id"].as_str().unwrap();
    let approve = |args: &str| home.run(&["pending", "approve", id, "-m", &model, "--args", args]);
    approve("2").ends_with(2).says("JSON object");
    // What does not fit is refused with the reason, and the call keeps waiting.
    approve(r#"{"task": 2}"#).ends_with(4);
    assert_eq!(home.tasks(), ["buy milk", "buy bread"]);
    // What fits is shown before it is done.
    approve(r#"{"task_id": "bread"}"#)
        .ends_with(4)
        .says("buy bread");
    assert_eq!(home.tasks(), ["buy milk", "buy bread"]);
    home.run(&["pending", "approve", id, "-m", &model])
        .succeeds();
    assert_eq!(home.tasks(), ["buy milk"]);
}

#[test]
fn several_calls_are_answered_one_by_one_in_any_order() {
    let home = Home::new();
    home.add_task("buy milk");
    home.add_task("buy bread");
    let model = home.script(&[
        r#"{"match": "\"success\":", "text": "As you said."}"#,
        r#"{"match": "delete", "calls": [{"name": "delete_task", "args": {"task_id": "1"}}, {"name": "delete_task", "args": {"task_id": "2"}}]}"#,
    ]);
    let (code, asked) = home.ask(&model, "delete both");
    let id = |number: usize| asked["pending"][number]["id"].as_str().unwrap();
    assert_eq!(
        (code, asked["pending"].as_array().unwrap().len()),
        (4, 2),
        "{asked}"
    );
    let first = home
        .run(&["pending", "deny", id(1), "-m", &model])
        .ends_with(4);
    first.says(id(0));
    assert_eq!(home.tasks(), ["buy milk", "buy bread"]);
    let last = home
        .run(&["pending", "approve", id(0), "-m", &model])
        .succeeds();
    assert_eq!(last.stdout, "As you said.\n");
    assert_eq!(home.tasks(), ["buy bread"]);
}

#[test]
fn a_call_that_was_not_begun_is_in_no_doubt() {
    let (home, model) = home_with_milk();
    let (_, asked) = home.ask(&model, "delete milk");
    let id = asked["pending"][0]["id"].as_str().unwrap();
    home.run(&["pending", "resolve", id, "done"])
        .ends_with(2)
        .says("adjutant pending approve");
    home.run(&["pending", "resolve", id, "perhaps"])
        .ends_with(2);
    assert_eq!(home.tasks(), ["buy milk"]);
}
