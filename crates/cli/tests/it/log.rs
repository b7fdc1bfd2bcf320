//! The decision log from outside.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::harness::Home;

#[test]
fn a_turn_can_be_listed_and_shown() {
    let home = Home::new();
    assert!(
        home.run(&["log", "list"])
            .succeeds()
            .stdout
            .contains("Nothing has been decided")
    );
    home.run(&["log", "show"]).ends_with(1);
    let model = home.script(&[
        r#"{"calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}"#,
        r#"{"text": "Added."}"#,
    ]);
    let (_, first) = home.ask(&model, "add milk");
    let (_, second) = home.ask(&home.script(&[r#"{"fault": "quota"}"#]), "again");

    let list = home.run(&["log", "list"]).succeeds().stdout;
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(
        lines[0].contains("REFUSAL:RATE_LIMITED") && lines[0].contains("again"),
        "{list}"
    );
    assert!(
        lines[1].contains("SUCCESS:TASK_COMPLETED") && lines[1].contains("add milk"),
        "{list}"
    );

    let turn = first["turn"].as_str().unwrap();
    for id in [turn, &turn[turn.len() - 8..]] {
        let (code, shown) = home.json(&["log", "show", id]);
        assert_eq!(code, 0);
        assert_eq!(shown["decision"]["id"], turn);
        assert_eq!(shown["decision"]["intent"], "CREATE_TASK");
        assert_eq!(shown["tool_invocations"][0]["tool"], "add_task");
        assert_eq!(shown["tool_invocations"][0]["result"]["success"], true);
    }
    let shown = home.run(&["log", "show", turn]).succeeds().stdout;
    for words in [
        "add milk",
        "SUCCESS:TASK_COMPLETED",
        "add_task {\"description\":\"buy milk\"}",
        "Added.",
    ] {
        assert!(shown.contains(words), "no {words:?} in {shown}");
    }
    let (_, newest) = home.json(&["log", "show"]);
    assert_eq!(newest["decision"]["id"], second["turn"]);
    assert_eq!(newest["decision"]["error_code"], "quota");
}

#[test]
fn the_list_is_filtered_and_bounded() {
    let home = Home::new();
    for words in ["one", "two", "three"] {
        home.ask(&home.script(&[r#"{"text": "ok"}"#]), words);
    }
    let (_, bounded) = home.json(&["log", "list", "-n", "2"]);
    assert_eq!(bounded.as_array().unwrap().len(), 2);
    let (_, none) = home.json(&["log", "list", "--outcome", "ERROR:LLM_FAILURE"]);
    assert_eq!(none.as_array().unwrap().len(), 0);
    home.run(&["log", "list", "--outcome", "ERROR:LLM_FALURE"])
        .ends_with(2)
        .says("ERROR:LLM_FAILURE");
    home.run(&["log", "show", "0"]).ends_with(1);
}

const TASKS: [&str; 2] = [
    r#"{"calls": [{"name": "add_task", "args": {"description": "buy milk"}}], "usage": {"input": 10, "output": 2}}"#,
    r#"{"text": "Added.", "usage": {"input": 20, "output": 3}}"#,
];

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn decisions_are_filtered_added_up_and_exported() {
    let home = Home::new();
    let (_, added) = home.ask(&home.script(&TASKS), "add milk");
    home.ask(
        &home.script(&[r#"{"text": "Hello.", "usage": {"input": 5, "output": 1}}"#]),
        "hi",
    );
    home.ask(&home.script(&[r#"{"fault": "quota"}"#]), "again");

    let count = |args: &[&str]| {
        let (code, list) = home.json(&[&["log", "list"], args].concat());
        assert_eq!(code, 0, "{args:?}: {list}");
        list.as_array().unwrap().len()
    };
    assert_eq!(count(&["--tool", "add_task"]), 1);
    assert_eq!(count(&["--tool", "delete_task"]), 0);
    assert_eq!(count(&["--since", "1h"]), 3);
    assert_eq!(count(&["--until", "2000-01-01"]), 0);
    assert_eq!(count(&["--user", "bert"]), 0);
    let conversation = added["conversation"].as_str().unwrap();
    assert_eq!(count(&["--thread", conversation]), 1);
    home.run(&["log", "list", "--since", "soon"])
        .ends_with(2)
        .says("no time");
    home.run(&["log", "export", "--thread", "x"])
        .ends_with(2)
        .says("no conversation");

    let (_, stats) = home.json(&["log", "stats"]);
    let total = &stats["total"];
    assert_eq!(
        (&total["decisions"], &total["model_calls"]),
        (&3.into(), &4.into()),
        "{stats}"
    );
    assert_eq!(
        (&total["input_tokens"], &total["output_tokens"]),
        (&35.into(), &6.into()),
        "{stats}"
    );
    assert_eq!(total["outcomes"]["SUCCESS:TASK_COMPLETED"], 1);
    assert_eq!(total["outcomes"]["REFUSAL:RATE_LIMITED"], 1);
    assert!(
        total["total_ms"]["p95"].as_u64() >= total["total_ms"]["p50"].as_u64(),
        "{stats}"
    );
    assert_eq!(
        stats["days"]
            .as_array()
            .unwrap()
            .iter()
            .map(|day| day["decisions"].as_u64().unwrap())
            .sum::<u64>(),
        3
    );
    let (_, none) = home.json(&["log", "stats", "-n", "0"]);
    assert_eq!(
        (&none["days"], &none["total"]),
        (&Value::Array(Vec::new()), total),
        "{none}"
    );
    let words = home.run(&["log", "stats"]).succeeds().stdout;
    assert!(
        words.contains("SUCCESS:TASK_COMPLETED") && words.contains("all"),
        "{words}"
    );

    let all = lines(&home.run(&["log", "export"]).succeeds().stdout);
    assert_eq!(all.len(), 3);
    assert_eq!(all[2]["tool_invocations"][0]["tool"], "add_task");
    assert_eq!(all[2]["id"], added["turn"]);
    let some = lines(
        &home
            .run(&["log", "export", "--tool", "add_task"])
            .succeeds()
            .stdout,
    );
    assert_eq!(some.len(), 1);
}

#[test]
fn a_decision_is_shown_with_where_its_time_went() {
    let home = Home::new();
    home.ask(&home.script(&TASKS), "add milk");
    let (_, shown) = home.json(&["log", "show"]);
    let kinds: Vec<&str> = shown["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["kind"].as_str().unwrap())
        .filter(|kind| *kind != "engine")
        .collect();
    assert_eq!(
        kinds,
        ["queue", "load", "model", "tool", "model"],
        "{shown}"
    );
    let shown = home.run(&["log", "show"]).succeeds().stdout;
    assert!(
        shown.contains("20/3 tok") && shown.contains("step"),
        "{shown}"
    );
}

#[test]
fn what_is_said_is_in_the_log_only_as_far_as_it_is_let_in() {
    for (content, is_there) in [("full", true), ("redacted", false), ("none", false)] {
        let home = Home::new();
        home.config(&format!("[log]\ncontent = \"{content}\"\n"));
        home.ask(&home.script(&TASKS), "add milk, please");
        for command in [
            &["log", "export"][..],
            &["log", "show"],
            &["log", "show", "--json"],
            &["log", "list"],
        ] {
            let printed = home.run(command).succeeds().stdout;
            let said = printed.contains("please")
                || printed.contains("buy milk")
                || printed.contains("Added.");
            assert_eq!(said, is_there, "{content} {command:?}: {printed}");
        }
        // The conversation goes on all the same, and tasks are as they are.
        assert_eq!(home.tasks(), ["buy milk"]);
    }
    let home = Home::new();
    home.config("[log]\ncontent = \"some\"\n");
    home.run(&["log", "list"])
        .ends_with(3)
        .says("log.content must be full or redacted or none");
}

#[test]
fn tail_prints_existing_and_new_decisions() {
    let home = Home::new();
    let said = |words: &str| home.ask(&home.script(&[r#"{"text": "ok"}"#]), words);
    for words in ["one", "two", "three"] {
        said(words);
    }
    let mut tail = home
        .command(&["log", "tail", "-n", "2", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut printed = BufReader::new(tail.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&printed.next().unwrap().unwrap()).unwrap() };
    assert_eq!(
        (next()["message"].clone(), next()["message"].clone()),
        ("two".into(), "three".into())
    );
    let (_, four) = said("four");
    let news = next();
    assert_eq!(
        (&news["message"], &news["id"]),
        (&"four".into(), &four["turn"])
    );
    assert_eq!(news["outcome"], "SUCCESS:RESPONSE_GIVEN");
    tail.kill().unwrap();
    tail.wait().unwrap();
}
