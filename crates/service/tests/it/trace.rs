//! The steps of a turn with their durations, whatever the turn's outcome.

use serde_json::{Value, json};

use crate::harness::Running;
use crate::resources::ask;

/// The decision of a turn, after its steps were found to cover its time.
async fn traced(service: &Running, token: &str, run: &Value) -> Value {
    let path = format!("/v1/decisions/{}", run.as_str().unwrap());
    let answer = ask(service, token, "GET", &path, &Value::Null).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let steps = answer.body["steps"].as_array().unwrap();
    assert_eq!(steps[0]["kind"], "queue", "{steps:?}");
    let mut until = 0;
    for step in steps {
        let offset = step["offset_ms"].as_u64().unwrap();
        assert!(
            offset <= until,
            "nothing accounts for {until} to {offset} ms: {steps:?}"
        );
        until = until.max(offset + step["ms"].as_u64().unwrap_or(0));
    }
    if !answer.body["ended_at"].is_null() {
        // The queue comes before the turn.
        let total =
            answer.body["timing_ms"]["total"].as_u64().unwrap() + steps[0]["ms"].as_u64().unwrap();
        assert!(
            until.abs_diff(total) <= 1 + total / 20,
            "{until} of {total} ms: {steps:?}"
        );
    }
    answer.body
}

fn kinds(decision: &Value) -> Vec<(&str, &str)> {
    let steps = decision["steps"].as_array().unwrap().iter();
    // The engine takes a millisecond here and there, or does not.
    steps
        .map(|step| {
            (
                step["kind"].as_str().unwrap(),
                step["name"].as_str().unwrap(),
            )
        })
        .filter(|(kind, _)| !matches!(*kind, "engine" | "queue" | "load"))
        .collect()
}

const MODEL: (&str, &str) = ("model", "scripted/script");

#[tokio::test]
async fn a_text_answer_is_one_model_call() {
    let script =
        r#"{"text": "Hello.", "thinking": "A greeting.", "usage": {"input": 12, "output": 3}}"#;
    let service = Running::start(script).await;
    let anna = service.token("anna").await;
    let said = service.chat(&anna, &json!({"message": "hi"})).await;
    let decision = traced(&service, &anna, &said.body["run_id"]).await;
    assert_eq!(kinds(&decision), [MODEL], "{decision}");
    let model = decision["steps"]
        .as_array()
        .unwrap()
        .iter()
        .find(|step| step["kind"] == "model")
        .unwrap();
    assert_eq!(
        model["request"]["messages"],
        json!([{"role": "user", "content": "hi"}])
    );
    assert_eq!(model["response"]["content"], "Hello.");
    assert_eq!(model["response"]["thinking"], "A greeting.");
    assert_eq!(
        (&model["finish_reason"], &model["attempt"]),
        (&json!("stop"), &json!(1))
    );
    assert_eq!(
        (
            &model["usage"]["input_tokens"],
            &model["usage"]["output_tokens"]
        ),
        (&json!(12), &json!(3))
    );
    service.stop().await;
}

#[tokio::test]
async fn a_tool_call_is_a_step_and_earlier_messages_are_counted() {
    let script = r#"
        {"calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}
        {"text": "Added."}
        {"calls": [{"name": "ad_task", "args": {}}, {"name": "list_tasks", "args": {}}]}
        {"text": "One."}
    "#;
    let service = Running::start(script).await;
    let anna = service.token("anna").await;
    let added = service
        .chat(&anna, &json!({"message": "add buy milk", "thread_id": "t"}))
        .await;
    let decision = traced(&service, &anna, &added.body["run_id"]).await;
    assert_eq!(
        kinds(&decision),
        [MODEL, ("tool", "add_task"), MODEL],
        "{decision}"
    );
    let step = |decision: &Value, kind: &str, at: usize| -> Value {
        let steps = decision["steps"].as_array().unwrap().iter();
        steps
            .filter(|step| step["kind"] == kind)
            .nth(at)
            .unwrap()
            .clone()
    };
    let tool = step(&decision, "tool", 0);
    assert_eq!(
        (
            &tool["request"]["args"]["description"],
            &tool["response"]["success"]
        ),
        (&json!("buy milk"), &json!(true))
    );
    let second = step(&decision, "model", 1);
    assert_eq!(second["request"]["repeated"], 1);
    let sent = second["request"]["messages"].as_array().unwrap();
    assert_eq!(
        (&sent[0]["tool_calls"][0]["tool"], &sent[1]["role"]),
        (&json!("add_task"), &json!("tool"))
    );

    let listed = service
        .chat(&anna, &json!({"message": "list", "thread_id": "t"}))
        .await;
    let decision = traced(&service, &anna, &listed.body["run_id"]).await;
    assert_eq!(
        kinds(&decision),
        [MODEL, ("tool", "ad_task"), ("tool", "list_tasks"), MODEL],
        "{decision}"
    );
    assert_eq!(step(&decision, "tool", 0)["error"]["code"], "unknown_tool");
    let first = step(&decision, "model", 0);
    assert_eq!(
        first["request"]["messages"].as_array().unwrap().len(),
        5,
        "four of the turn before: {first}"
    );
    service.stop().await;
}

#[tokio::test]
async fn a_pending_call_is_a_step_until_it_is_answered() {
    let script = r#"
        {"calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}
        {"text": "Added."}
        {"calls": [{"name": "delete_task", "args": {"task_id": "1"}}]}
        {"text": "Kept."}
        {"calls": [{"name": "delete_task", "args": {"task_id": "1"}}]}
        {"text": "Gone."}
    "#;
    let service = Running::start(script).await;
    let anna = service.token("anna").await;
    service
        .chat(&anna, &json!({"message": "add buy milk", "thread_id": "t"}))
        .await;
    for (approved, outcome, after) in [
        (
            false,
            "REFUSAL:CONFIRMATION_DENIED",
            vec![("wait", "confirmation"), MODEL],
        ),
        (
            true,
            "SUCCESS:TASK_COMPLETED",
            vec![("wait", "confirmation"), ("tool", "delete_task"), MODEL],
        ),
    ] {
        let asked = service
            .chat(&anna, &json!({"message": "delete it", "thread_id": "t"}))
            .await;
        let waiting = traced(&service, &anna, &asked.body["run_id"]).await;
        assert_eq!(
            kinds(&waiting),
            [MODEL, ("wait", "confirmation")],
            "{waiting}"
        );
        let wait = waiting["steps"].as_array().unwrap().last().unwrap();
        assert_eq!(wait["ms"], Value::Null);
        assert_eq!(
            wait["request"]["pending"][0]["args"],
            json!({"task_id": "1"})
        );
        let interrupt = &asked.body["pending"][0]["interrupt_id"];
        let answer = json!({"thread_id": "t", "resume": [{"interrupt_id": interrupt, "approved": approved}]});
        let done = service.chat(&anna, &answer).await;
        assert_eq!(done.body["outcome"], outcome, "{done:?}");
        let decision = traced(&service, &anna, &asked.body["run_id"]).await;
        let mut expected = vec![MODEL];
        expected.extend(after);
        assert_eq!(kinds(&decision), expected, "{decision}");
        let wait = decision["steps"]
            .as_array()
            .unwrap()
            .iter()
            .find(|step| step["kind"] == "wait")
            .unwrap();
        assert!(wait["ms"].is_u64(), "{wait}");
        let verdict = if approved { "approved" } else { "denied" };
        assert_eq!(wait["response"]["answers"][0]["verdict"], verdict);
    }
    service.stop().await;
}

#[tokio::test]
async fn a_model_that_fails_is_a_step_with_an_error() {
    let service = Running::start(r#"{"fault": "invalid_response", "raw": "<html>oops"}"#).await;
    let anna = service.token("anna").await;
    let failed = service.chat(&anna, &json!({"message": "hi"})).await;
    assert_eq!(failed.status, 502, "{failed:?}");
    let decision = traced(&service, &anna, &failed.body["run_id"]).await;
    assert_eq!(kinds(&decision), [MODEL], "{decision}");
    assert_eq!(decision["error_code"], "invalid_response");
    assert_eq!(decision["raw_response"], "<html>oops");
    let model = decision["steps"]
        .as_array()
        .unwrap()
        .iter()
        .find(|step| step["kind"] == "model")
        .unwrap();
    assert_eq!(
        (&model["error"]["code"], &model["error"]["raw"]),
        (&json!("invalid_response"), &json!("<html>oops"))
    );
    service.stop().await;
}

#[tokio::test]
async fn a_turn_that_was_cancelled_while_it_waited_has_its_steps() {
    let script = r#"
        {"calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}
        {"text": "Added."}
        {"calls": [{"name": "delete_task", "args": {"task_id": "1"}}]}
    "#;
    let service = Running::start(script).await;
    let anna = service.token("anna").await;
    service
        .chat(&anna, &json!({"message": "add buy milk", "thread_id": "t"}))
        .await;
    let asked = service
        .chat(&anna, &json!({"message": "delete it", "thread_id": "t"}))
        .await;
    let run = asked.body["run_id"].as_str().unwrap();
    let stopped = ask(
        &service,
        &anna,
        "POST",
        &format!("/v1/runs/{run}/cancel"),
        &Value::Null,
    )
    .await;
    assert_eq!(stopped.status, 202, "{stopped:?}");
    let decision = loop {
        let decision = traced(&service, &anna, &asked.body["run_id"]).await;
        if !decision["ended_at"].is_null() {
            break decision;
        }
    };
    assert_eq!(decision["outcome"], "CANCELLED:BY_USER", "{decision}");
    assert_eq!(
        kinds(&decision),
        [MODEL, ("wait", "confirmation")],
        "{decision}"
    );
    service.stop().await;
}
