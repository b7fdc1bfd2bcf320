//! Permissions given at a question, and taken back: the real binary at a terminal and in a pipe.

use crate::harness::Home;
use crate::terminal::pty::Terminal;

/// A model that deletes the task of the message's number, and says so.
fn deleting(home: &Home) -> String {
    home.script(&[
        r#"{"match": "\"success\":true", "text": "It is gone.", "repeat": true}"#,
        r#"{"match": "\"success\":false", "text": "I kept it.", "repeat": true}"#,
        r#"{"match": "delete one", "calls": [{"name": "delete_task", "args": {"task_id": "1"}}], "repeat": true}"#,
        r#"{"match": "delete two", "calls": [{"name": "delete_task", "args": {"task_id": "2"}}], "repeat": true}"#,
        r#"{"match": "delete three", "calls": [{"name": "delete_task", "args": {"task_id": "3"}}], "repeat": true}"#,
    ])
}

fn home_with_three_tasks() -> (Home, String) {
    let home = Home::new();
    for task in ["buy milk", "buy bread", "buy salt"] {
        home.add_task(task);
    }
    let model = deleting(&home);
    (home, model)
}

fn talking(home: &Home, model: &str) -> Terminal {
    let mut terminal = Terminal::start(home, &["-m", model]);
    terminal.prompts_after("Ctrl-D quits");
    terminal
}

fn granted(home: &Home) -> Vec<serde_json::Value> {
    home.json(&["policy", "list"]).1.as_array().unwrap().clone()
}

#[test]
fn a_tool_is_allowed_for_one_conversation_and_asked_in_another() {
    let (home, model) = home_with_three_tasks();
    let mut terminal = talking(&home, &model);
    terminal
        .line("delete one")
        .sees("[a] always")
        .keys("a")
        .sees("[4] these arguments, for good");
    // Esc goes back to the question, and nothing has been allowed.
    terminal.keys("\x1b").waits("the question again", |screen| {
        screen.contents().matches("[a] always").count() == 2
    });
    assert!(granted(&home).is_empty());
    terminal.keys("a").waits("the choices again", |screen| {
        screen.contents().matches("[4]").count() == 2
    });
    terminal
        .keys("7\r")
        .sees("a number from 1 to 4")
        .waits("the choices once more", |screen| {
            screen.contents().matches("[4]").count() == 3
        });
    terminal.keys("1").prompts_after("It is gone.");
    terminal
        .line("delete two")
        .sees("allowed by policy: delete_task, any arguments, in one conversation");
    terminal.prompts_after("allowed by policy");
    assert_eq!(home.tasks(), ["buy salt"]);
    let grants = granted(&home);
    assert_eq!(
        (grants.len(), grants[0]["tool"].as_str()),
        (1, Some("delete_task")),
        "{grants:?}"
    );
    terminal.line("/new").prompts_after("a new conversation");
    terminal
        .line("delete three")
        .sees("buy salt")
        .waits("a question", |screen| {
            screen.contents().matches("[a] always").count() == 3
        });
    terminal.keys("n").prompts_after("I kept it.");
    terminal.keys("\x04");
    terminal.ends_with(0);
    assert_eq!(home.tasks(), ["buy salt"]);
}

#[test]
fn exact_arguments_are_allowed_for_good_and_others_are_asked() {
    let (home, model) = home_with_three_tasks();
    let mut terminal = talking(&home, &model);
    terminal
        .line("delete one")
        .sees("[a] always")
        .keys("a")
        .sees("[4]")
        .keys("4")
        .prompts_after("It is gone.");
    terminal
        .line("delete two")
        .sees("“buy bread”  [y] delete")
        .keys("n")
        .prompts_after("I kept it.");
    terminal.keys("\x04");
    terminal.ends_with(0);
    assert_eq!(home.tasks(), ["buy bread", "buy salt"]);
    let grants = granted(&home);
    assert_eq!(
        grants[0]["arguments"],
        serde_json::json!({"task_id": "1"}),
        "{grants:?}"
    );
    assert!(grants[0].get("conversation").is_none(), "{grants:?}");
}

#[test]
fn what_is_allowed_for_good_runs_in_a_pipe_too_until_it_is_taken_back() {
    let (home, model) = home_with_three_tasks();
    home.run(&["policy", "allow", "delete_task"]).succeeds();
    let run = home.run(&["ask", "-m", &model, "delete one"]).succeeds();
    assert_eq!(run.stdout, "It is gone.\n");
    run.says("allowed by policy: delete_task, any arguments, for good (adjutant policy rm ");
    // JSON stays JSON.
    let (code, answer) = home.ask(&model, "delete two");
    assert_eq!(
        (code, answer["outcome"].as_str()),
        (0, Some("SUCCESS:TASK_COMPLETED")),
        "{answer}"
    );
    let id = granted(&home)[0]["id"].as_str().unwrap().to_owned();
    home.run(&["policy", "rm", &id])
        .ends_with(4)
        .says("adjutant policy rm -y");
    assert_eq!(granted(&home).len(), 1);
    home.run(&["policy", "rm", "-y", &id]).succeeds();
    home.run(&["ask", "-m", &model, "delete three"])
        .ends_with(4);
    assert_eq!(home.tasks(), ["buy salt"]);
    assert!(
        home.run(&["policy", "list"])
            .succeeds()
            .stdout
            .contains("every such call asks first")
    );
}

#[test]
fn only_a_tool_of_our_own_is_allowed_by_its_name() {
    let home = Home::new();
    home.run(&["policy", "allow", "delete_tsk"])
        .ends_with(2)
        .says("delete_task");
    home.run(&["policy", "allow", "*"]).ends_with(2);
    home.run(&["policy", "allow", "fx__send"])
        .ends_with(2)
        .says("answer a at its next question");
    home.run(&["policy", "allow", "delete_task", "--args", "[1]"])
        .ends_with(2)
        .says("JSON object");
    home.run(&["policy", "rm", "-y", "nothing"])
        .ends_with(1)
        .says("adjutant policy list");
    assert!(granted(&home).is_empty());
}

#[test]
fn what_is_denied_stays_denied_and_what_is_confirmed_may_be_allowed() {
    let (home, model) = home_with_three_tasks();
    home.run(&["policy", "allow", "delete_task"]).succeeds();
    home.config("[agent]\nconfirm = [\"delete_task\"]\n");
    home.run(&["ask", "-m", &model, "delete one"]).succeeds();
    home.config("[agent]\ndeny = [\"delete_task\"]\n");
    home.run(&["ask", "-m", &model, "delete two"]);
    assert_eq!(home.tasks(), ["buy bread", "buy salt"]);
}

#[test]
fn permissions_go_with_their_conversation() {
    let (home, model) = home_with_three_tasks();
    let mut terminal = talking(&home, &model);
    terminal
        .line("delete one")
        .sees("[a] always")
        .keys("a")
        .sees("[4]")
        .keys("1")
        .prompts_after("It is gone.");
    terminal.keys("\x04");
    terminal.ends_with(0);
    let conversation = granted(&home)[0]["conversation"]
        .as_str()
        .unwrap()
        .to_owned();
    // It survives the process, in its conversation.
    home.run(&["-c", "-m", &model, "delete two"])
        .succeeds()
        .says("allowed by policy");
    home.run(&["sessions", "rm", "-y", &conversation])
        .succeeds();
    assert!(granted(&home).is_empty());
}
