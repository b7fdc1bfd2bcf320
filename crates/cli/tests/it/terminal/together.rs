//! Several calls of one turn that wait for a yes.

use super::*;

/// Ends a turn after the results of calls.
const DONE: &str = r#"{"match": "\"success\":", "text": "Done.", "repeat": true}"#;

/// Talks to a model that deletes three tasks in one answer.
fn deleting_three(home: &Home) -> Terminal {
    for task in ["buy milk", "call mom", "pay rent"] {
        home.add_task(task);
    }
    let calls: Vec<_> = (1..=3)
        .map(|id| serde_json::json!({"name": "delete_task", "args": {"task_id": id.to_string()}}))
        .collect();
    let delete = serde_json::json!({"match": "delete", "calls": calls}).to_string();
    let mut terminal = talking(home, &[DONE, &delete]);
    terminal
        .line("delete all")
        .sees("? 3 calls wait for your answer")
        .sees("1  delete_task “buy milk”")
        .sees("3  delete_task “pay rent”")
        .sees("[y] delete all  [n] keep all  [o] one by one");
    assert!(!terminal.screen().contains("[c]"));
    terminal
}

#[test]
fn one_key_answers_for_all() {
    for (key, left) in [("y", 0), ("n", 3), ("\r", 3)] {
        let home = Home::new();
        let mut terminal = deleting_three(&home);
        terminal.paste("y").keys(key).prompts_after("Done.");
        assert_eq!(terminal.screen().matches("[y]").count(), 1);
        terminal.quits();
        assert_eq!(home.tasks().len(), left, "{key:?}");
    }
}

#[test]
fn they_can_be_answered_one_by_one() {
    let home = Home::new();
    let mut terminal = deleting_three(&home);
    terminal.keys("x\r").sees("Please answer y, n or o.");
    let questions = |count: usize| {
        move |screen: &vt100::Screen| screen.contents().matches("[n] keep  [e]").count() == count
    };
    terminal.waits("the question again", |screen| {
        screen.contents().matches("[o]").count() == 2
    });
    terminal.keys("o").waits("the first", questions(1));
    terminal.keys("y").waits("the second", questions(2));
    terminal.keys("n").waits("the third", questions(3));
    terminal.keys("y").prompts_after("Done.");
    terminal.quits();
    assert_eq!(home.tasks(), ["call mom"]);
}

#[test]
fn a_permission_given_for_the_first_covers_the_others() {
    let home = Home::new();
    let mut terminal = deleting_three(&home);
    terminal.keys("o").sees("[a] always").keys("a");
    terminal.sees("[1] any arguments").keys("1");
    terminal
        .sees("allowed by policy: delete_task")
        .prompts_after("Done.");
    terminal.quits();
    assert!(home.tasks().is_empty());
}

#[test]
fn ctrl_c_leaves_all_of_them_pending() {
    let home = Home::new();
    let mut terminal = deleting_three(&home);
    terminal.keys(CTRL_C).prompts_after("pending approve");
    terminal.quits();
    assert_eq!(home.tasks().len(), 3);
    let (_, pending) = home.json(&["pending", "list"]);
    assert_eq!(pending.as_array().unwrap().len(), 3);
}

#[test]
fn what_is_longer_than_a_line_keeps_a_question_of_its_own() {
    let home = Home::new();
    home.config("[agent]\nconfirm = [\"add_task\"]\n");
    let task =
        |words: &str| serde_json::json!({"name": "add_task", "args": {"description": words}});
    let long = format!("{}end", "word ".repeat(80));
    let calls = [task("call mom"), task(&long), task("pay rent")];
    let add = serde_json::json!({"match": "add", "calls": calls}).to_string();
    let mut terminal = talking(&home, &[DONE, &add]);
    terminal
        .line("add them")
        .sees("? 2 calls wait for your answer")
        .sees("[y] add all  [n] none")
        .keys("y");
    terminal
        .sees("[v] view all")
        .keys("n")
        .prompts_after("Done.");
    terminal.quits();
    assert_eq!(home.tasks(), ["call mom", "pay rent"]);
}

#[test]
fn a_yes_can_count_for_the_conversation() {
    let home = Home::new();
    let server = home.file("server.sh", include_str!("../mcp_servers/server.sh"));
    home.config(&format!(
        "[mcp.servers.shell]\ncommand = [\"sh\", \"{}\"]\n",
        arg(&server)
    ));
    let add = |words: &str| serde_json::json!({"name": "add_task", "args": {"description": words}});
    let read = serde_json::json!({"match": "look", "calls": [{"name": "shell__look", "args": {}}]});
    let both =
        serde_json::json!({"match": "token", "calls": [add("transfer 500"), add("open gate")]});
    let again = serde_json::json!({"match": "more", "calls": [add("close window")]});
    let mut terminal = talking(
        &home,
        &[
            &again.to_string(),
            &read.to_string(),
            &both.to_string(),
            r#"{"text": "Done.", "repeat": true}"#,
        ],
    );
    terminal
        .line("have a look")
        .sees("? 2 calls wait for your answer")
        .sees("[c] all, in this conversation")
        .keys("c")
        .prompts_after("Done.");
    terminal.line("more of it").sees("close window");
    terminal.waits("the prompt", |screen| {
        screen.contents().matches("Done.").count() == 2
            && screen.contents().trim_end().ends_with("you>")
    });
    terminal.quits();
    assert_eq!(home.tasks(), ["transfer 500", "open gate", "close window"]);
}
