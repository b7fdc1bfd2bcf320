//! Scenarios from end to end, by name: five flows, five errors, four dangers.

use serde_json::{Value, json};

use crate::harness::Home;
use crate::service::Serving;

fn tools(answer: &Value) -> Vec<&str> {
    answer["tools_used"]
        .as_array()
        .unwrap()
        .iter()
        .map(|used| used["tool"].as_str().unwrap())
        .collect()
}

fn content(answer: &Value) -> String {
    answer["content"].as_str().unwrap().to_lowercase()
}

#[test]
fn integration_add_task_to_buy_groceries() {
    let home = Home::new();
    let model = home.script(&[
        r#"{"calls": [{"name": "add_task", "args": {"description": "buy groceries"}}]}"#,
        r#"{"text": "I added “buy groceries” to your list."}"#,
    ]);
    let (code, answer) = home.ask(&model, "Add task to buy groceries");
    assert_eq!(code, 0);
    assert_eq!(tools(&answer), ["add_task"]);
    assert_eq!(answer["tools_used"][0]["result"]["success"], true);
    assert_eq!(answer["decision"], "INVOKE_TOOL");
    assert_eq!(answer["intent"], "CREATE_TASK");
    assert_eq!(answer["outcome"], "SUCCESS:TASK_COMPLETED");
    assert_eq!(answer["content"], "I added “buy groceries” to your list.");
    assert_eq!(home.tasks(), ["buy groceries"]);
}

#[test]
fn integration_show_my_tasks() {
    let home = Home::new();
    home.add_task("call mum");
    let model = home.script(&[
        r#"{"calls": [{"name": "list_tasks"}]}"#,
        r#"{"text": "You have one task: {{result}}"}"#,
    ]);
    let (code, answer) = home.ask(&model, "Show my tasks");
    assert_eq!(code, 0);
    assert_eq!(tools(&answer), ["list_tasks"]);
    assert_eq!(answer["intent"], "LIST_TASKS");
    assert!(content(&answer).contains("call mum"), "{answer}");
}

#[test]
fn integration_hello() {
    let home = Home::new();
    let model = home
        .script(&[r#"{"text": "Hello! What shall we do?", "usage": {"input": 12, "output": 6}}"#]);
    let (code, answer) = home.ask(&model, "Hello!");
    assert_eq!(code, 0);
    assert!(tools(&answer).is_empty());
    assert_eq!(answer["intent"], "GENERAL_CHAT");
    assert_eq!(answer["usage"]["input_tokens"], 12);
}

#[test]
fn integration_groceries_alone_is_ambiguous() {
    let home = Home::new();
    let model = home.script(&[
        r#"{"calls": [{"name": "ask_user", "args": {"question": "Shall I add “groceries” as a task?"}}]}"#,
    ]);
    let (code, answer) = home.ask(&model, "groceries");
    assert_eq!(code, 0);
    assert_eq!(answer["decision"], "ASK_CLARIFICATION");
    assert_eq!(answer["outcome"], "AMBIGUITY:UNCLEAR_INTENT");
    assert_eq!(answer["content"], "Shall I add “groceries” as a task?");
    assert!(tools(&answer).is_empty() && home.tasks().is_empty());
}

#[test]
fn integration_delete_my_task() {
    let home = Home::new();
    home.add_task("buy milk");
    let model = home.script(&[r#"{"calls": [{"name": "delete_task", "args": {"task_id": "1"}}]}"#]);
    let (code, answer) = home.ask(&model, "Delete my task");
    assert_eq!(code, 4);
    assert_eq!(answer["decision"], "REQUEST_CONFIRMATION");
    assert_eq!(answer["pending"][0]["tool"], "delete_task");
    assert_eq!(answer["pending"][0]["preview"], "Delete “buy milk”");
    assert_eq!(home.tasks(), ["buy milk"]);
}

#[test]
fn error_llm_returns_malformed_json() {
    let home = Home::new();
    let model = home.script(&[r#"{"fault": "invalid_response", "raw": "{\"candidates\": [}"}"#]);
    let (code, answer) = home.ask(&model, "hello");
    assert_eq!(code, 5);
    assert!(content(&answer).contains("trouble processing"), "{answer}");
    assert_eq!(answer["outcome"], "ERROR:LLM_FAILURE");
    assert_eq!(answer["error"]["code"], "invalid_response");
    let (_, log) = home.json(&["log", "show"]);
    assert_eq!(log["decision"]["raw_response"], "{\"candidates\": [}");
}

#[test]
fn error_llm_times_out() {
    let home = Home::new();
    let model = home.script(&[r#"{"fault": "stall"}"#, r#"{"fault": "stall"}"#]);
    let mut command = home.command(&["ask", "-m", &model, "--json", "hello"]);
    let run = crate::harness::Run::of(command.env("LLM_TIMEOUT", "1")).ends_with(5);
    let answer = run.json();
    assert!(
        content(&answer).contains("temporarily unavailable"),
        "{answer}"
    );
    assert_eq!(answer["error"]["code"], "timeout");
    assert!(
        answer["error"]["hint"]
            .as_str()
            .unwrap()
            .contains("LLM_TIMEOUT")
    );
}

#[test]
fn error_rate_limit_exceeded() {
    let home = Home::new();
    let model = home.script(&[
        r#"{"config": {"retries": 0}}"#,
        r#"{"fault": "rate_limit", "retry_after_s": 30}"#,
    ]);
    let (code, answer) = home.ask(&model, "hello");
    assert_eq!(code, 5);
    assert!(content(&answer).contains("too many requests"), "{answer}");
    assert_eq!(answer["outcome"], "REFUSAL:RATE_LIMITED");
    assert_eq!(answer["error"]["code"], "rate_limit");
    assert_eq!(answer["error"]["retry_after"], json!(30.0));
}

#[test]
fn error_tool_execution_fails() {
    let home = Home::new();
    home.add_task("buy milk");
    let model = home.script(&[
        r#"{"calls": [{"name": "delete_task", "args": {"task_id": "1"}}]}"#,
        r#"{"text": "That did not work: {{result}}"}"#,
    ]);
    let (_, asked) = home.ask(&model, "Delete my task");
    // Somebody else is quicker, so that the approved call finds nothing to delete.
    home.run(&["tasks", "rm", "1", "-y"]).succeeds();
    let id = asked["pending"][0]["id"].as_str().unwrap();
    let (code, answer) = home.json(&["pending", "approve", id, "-m", &model]);
    assert_eq!(code, 0);
    assert_eq!(
        answer["tools_used"][0]["result"],
        json!({ "success": false, "error": "there is no task 1" })
    );
    assert_eq!(answer["outcome"], "ERROR:TOOL_FAILURE");
    assert_eq!(answer["error"]["code"], "tool_failure");
    assert!(content(&answer).contains("there is no task 1"), "{answer}");
}

/// More rounds than the bound, no call three times.
const LOOP: &[&str] = &[
    r#"{"calls": [{"name": "list_tasks", "args": {"status": "all"}}]}"#,
    r#"{"calls": [{"name": "list_tasks", "args": {"status": "pending"}}]}"#,
    r#"{"calls": [{"name": "list_tasks", "args": {"status": "completed"}}]}"#,
    r#"{"calls": [{"name": "list_tasks"}]}"#,
    r#"{"calls": [{"name": "list_tasks", "args": {"status": "all"}}]}"#,
    r#"{"calls": [{"name": "list_tasks", "args": {"status": "pending"}}]}"#,
    r#"{"text": "never said"}"#,
];

#[test]
fn error_max_iterations_reached() {
    let home = Home::new();
    let (code, answer) = home.ask(&home.script(LOOP), "loop");
    assert_eq!(code, 6);
    assert!(content(&answer).contains("too complex"), "{answer}");
    assert_eq!(answer["outcome"], "LIMIT:ITERATIONS");
    assert_eq!(answer["error"]["code"], "limit_reached");
    assert!(
        answer["error"]["hint"]
            .as_str()
            .unwrap()
            .contains("max_tool_iterations")
    );
}

#[test]
fn safety_whats_the_weather() {
    let home = Home::new();
    let model = home.script(&[
        r#"{"calls": [{"name": "decline", "args": {"message": "I only look after your tasks."}}]}"#,
    ]);
    let (code, answer) = home.ask(&model, "What's the weather?");
    assert_eq!(code, 0);
    assert_eq!(answer["outcome"], "REFUSAL:OUT_OF_SCOPE");
    assert_eq!(answer["content"], "I only look after your tasks.");
    assert!(tools(&answer).is_empty());
}

#[test]
fn safety_unknown_tool_is_told_to_the_model_only() {
    let home = Home::new();
    let model = home.script(&[
        r#"{"calls": [{"name": "send_email", "args": {"to": "all"}}]}"#,
        r#"{"text": "I cannot send mail."}"#,
    ]);
    let run = home
        .run(&["ask", "-v", "--json", "-m", &model, "mail everybody"])
        .succeeds();
    let answer = run.json();
    assert!(tools(&answer).is_empty());
    // The turn is what the answer says, and the person never reads what the tool would have been
    // called.
    assert_eq!(answer["content"], "I cannot send mail.");
    assert_eq!(answer["outcome"], "REFUSAL:OUT_OF_SCOPE");
    run.says("send_email  ✗ there is no tool");
}

#[test]
fn safety_infinite_tool_loop_terminates_at_iteration_5() {
    let home = Home::new();
    let (_, answer) = home.ask(&home.script(LOOP), "loop");
    assert_eq!(tools(&answer).len(), 5);
    let (_, log) = home.json(&["log", "show"]);
    assert_eq!(log["decision"]["iterations"], 5);
    assert_eq!(log["decision"]["model_calls"], 5);
}

#[test]
fn safety_very_long_message_is_truncated() {
    let home = Home::new();
    let model = home.script(&[r#"{"text": "ok"}"#]);
    // The bound of the task assistant; that of one's own assistant in the terminal is the model's
    // window.
    let serve = || home.serve_command(&model);
    let service = Serving::start(&mut serve());
    let answer = service.chat(service.token(), &json!({ "message": "ä".repeat(4_321) }));
    assert_eq!(answer.body["notices"][0]["code"], "message_cut");
    drop(service);
    let (_, log) = home.json(&["log", "show"]);
    assert_eq!(log["decision"]["message_chars"], 4_321);
    assert_eq!(
        log["decision"]["message"]
            .as_str()
            .unwrap()
            .chars()
            .filter(|c| *c == 'ä')
            .count(),
        4_000
    );
    // Half a request may ask for something else: nothing is done where that is set.
    let service = Serving::start(serve().env("ADJUTANT_AGENT_LONG_MESSAGE", "refuse"));
    let refused = service.chat(service.token(), &json!({ "message": "ä".repeat(4_321) }));
    let of = |member: &str| refused.body[member].clone();
    assert_eq!(
        (of("status"), of("code")),
        (json!(413), json!("message_too_long"))
    );
    assert_eq!(
        (of("length"), of("limit"), of("setting")),
        (json!(4_321), json!(4_000), json!("agent.message_chars_max"))
    );
}
