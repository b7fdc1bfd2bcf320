//! The decision log from outside.

use crate::harness::Home;

#[test]
fn a_turn_can_be_listed_and_shown() {
    let home = Home::new();
    assert!(home.run(&["log", "list"]).succeeds().stdout.contains("Nothing has been decided"));
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
    assert!(lines[0].contains("REFUSAL:RATE_LIMITED") && lines[0].contains("again"), "{list}");
    assert!(lines[1].contains("SUCCESS:TASK_COMPLETED") && lines[1].contains("add milk"), "{list}");

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
    for words in ["add milk", "SUCCESS:TASK_COMPLETED", "add_task {\"description\":\"buy milk\"}", "Added."] {
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
    home.run(&["log", "list", "--outcome", "ERROR:LLM_FALURE"]).ends_with(2).says("ERROR:LLM_FAILURE");
    home.run(&["log", "show", "0"]).ends_with(1);
}
