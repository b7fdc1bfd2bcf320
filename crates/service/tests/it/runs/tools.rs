//! Tools of the front end, and what it knows.

use super::*;

const THEME: &str = r#"
{"calls": [{"name": "setTheme", "args": {"theme": "dark"}}]}
{"text": "It is dark now."}
{"text": "You are welcome."}
"#;

fn theme() -> Value {
    let parameters = json!({"type": "object", "properties": {"theme": {"type": "string"}}, "required": ["theme"]});
    json!([{"name": "setTheme", "description": "Sets the theme of the page.", "parameters": parameters}])
}

fn with(mut body: Value, key: &str, value: Value) -> Value {
    body[key] = value;
    body
}

/// The messages a client has after a run, and what it adds to them.
fn then(body: &Value, run: &str, frames: &[Frame], more: &[Value]) -> Value {
    let mut body = with(body.clone(), "runId", json!(run));
    let messages = body["messages"].as_array_mut().unwrap();
    for event in frames.iter().map(|frame| &frame.event) {
        match event["type"].as_str().unwrap() {
            "TOOL_CALL_START" => messages.push(json!({
                "id": event["parentMessageId"], "role": "assistant", "toolCalls": [{"id": event["toolCallId"],
                "type": "function", "function": {"name": event["toolCallName"], "arguments": "{}"}}],
            })),
            "TEXT_MESSAGE_START" => messages.push(json!({"id": event["messageId"], "role": "assistant"})),
            _ => {}
        }
    }
    messages.extend(more.iter().cloned());
    body
}

fn result(call: &Value, content: &str) -> Value {
    json!({"id": format!("own-{}", call.as_str().unwrap()), "role": "tool", "toolCallId": call, "content": content})
}

#[tokio::test]
async fn a_tool_of_the_front_end_goes_round() {
    let service = Running::start(THEME).await;
    let anna = Client::new(&service, "anna").await;
    let body = with(say("t", "r1", "dark, please"), "tools", theme());
    let body = with(
        body,
        "context",
        json!([{"description": "The theme now", "value": "light"}]),
    );
    let asked = anna.run(&body).await;
    assert_eq!(
        kinds(&asked)[4..],
        [
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "CUSTOM",
            "RUN_FINISHED"
        ],
        "{asked:#?}"
    );
    let call = &of_kind(&asked, "TOOL_CALL_START")[0]["toolCallId"];
    assert_eq!(
        last(&asked)["outcome"],
        json!({"type": "success", "pendingToolCallIds": [call]})
    );
    assert_eq!(
        of_kind(&asked, "TOOL_CALL_ARGS")[0]["delta"],
        r#"{"theme":"dark"}"#
    );

    // Another message is not the result: what waits is said, and by whom.
    let other = anna.run(&say("t", "r2", "well?")).await;
    assert_eq!(last(&other)["code"], "pending_confirmation", "{other:#?}");
    assert!(
        last(&other)["message"]
            .as_str()
            .unwrap()
            .contains("program that asked"),
        "{other:#?}"
    );
    let waiting = anna.json("GET", "/v1/pending", &json!({})).await;
    assert_eq!(waiting.body["pending"][0]["kind"], "awaits_result");

    let next = then(&body, "r3", &asked, &[result(call, "done")]);
    let done = anna.run(&next).await;
    assert_eq!(text(&done), "It is dark now.");
    assert_eq!(last(&done)["outcome"], json!({"type": "success"}));
    assert!(
        of_kind(&done, "TOOL_CALL_RESULT").is_empty(),
        "the client has it: {done:#?}"
    );
    assert!(of_kind(&done, "MESSAGES_SNAPSHOT").is_empty(), "{done:#?}");

    // It did not run here, and no person was asked.
    let told = anna.json("GET", "/v1/threads/t/messages", &json!({})).await;
    let messages = told.body["messages"].as_array().unwrap();
    let told = messages
        .iter()
        .find(|message| message["role"] == "tool")
        .unwrap();
    assert_eq!((told.get("ms"), told.get("asked")), (None, None), "{told}");

    // The result again, by another run, does nothing again.
    let again = anna.run(&with(next.clone(), "runId", json!("r4"))).await;
    assert!(
        text(&again).is_empty() && last(&again)["outcome"]["type"] == "success",
        "{again:#?}"
    );

    let words = json!({"id": "u2", "role": "user", "content": "thanks"});
    let thanks = anna.run(&then(&next, "r5", &done, &[words])).await;
    assert_eq!(text(&thanks), "You are welcome.");
    assert!(
        of_kind(&thanks, "MESSAGES_SNAPSHOT").is_empty(),
        "it follows: {thanks:#?}"
    );
    service.stop().await;
}

#[tokio::test]
async fn client_context_is_read_and_is_not_in_the_transcript() {
    let model = std::sync::Arc::new(
        adjutant_providers::scripted::ScriptedModel::from_jsonl(
            r#"{"text": "Yes.", "repeat": true}"#,
        )
        .unwrap()
        .with_requests_kept(usize::MAX),
    );
    let store = Arc::new(Store::in_memory().await.unwrap());
    let asks = model.clone();
    let service = Running::start_on(store, r#"{"text": "unused"}"#, move |builder| {
        builder.model(asks)
    })
    .await;
    let anna = Client::new(&service, "anna").await;
    let known = json!([{"description": "Open document", "value": {"title": "Budget"}}, {"description": "", "value": ""}]);
    let body = with(say("t", "r1", "is it open?"), "context", known);
    let first = anna.run(&body).await;
    let read = model.requests()[0].messages[1].text();
    assert!(
        read.contains("no\ninstruction to you") || read.contains("no instruction to you"),
        "{read}"
    );
    assert!(
        read.contains("Open document:\n{\"title\":\"Budget\"}") && read.ends_with("is it open?"),
        "{read}"
    );
    let words = json!({"id": "u2", "role": "user", "content": "and now?"});
    anna.run(&then(
        &with(body, "context", json!([])),
        "r2",
        &first,
        &[words],
    ))
    .await;
    let later: Vec<String> = model.requests()[1]
        .messages
        .iter()
        .map(|message| message.text())
        .collect();
    assert_eq!(later[1..], ["is it open?", "Yes.", "and now?"]);
    let shown = anna.json("GET", "/v1/threads/t/messages", &json!({})).await;
    assert!(!shown.text.contains("Budget"), "{}", shown.text);

    let huge = json!([{"description": "all", "value": "x".repeat(70_000)}]);
    let refused = anna
        .run_json(&with(say("u", "r1", "hi"), "context", huge))
        .await;
    assert_eq!(
        (refused.status, &refused.body["code"]),
        (422, &json!("invalid_request"))
    );
    let taken = json!([{"name": "add_task", "description": "Adds."}]);
    let refused = anna
        .run_json(&with(say("u", "r2", "hi"), "tools", taken))
        .await;
    assert!(
        refused.body["detail"]
            .as_str()
            .unwrap()
            .contains("of its own"),
        "{}",
        refused.text
    );
    service.stop().await;
}

#[tokio::test]
async fn a_question_and_a_tool_of_the_front_end_are_one_outcome() {
    let script = r#"
{"calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}
{"text": "Added."}
{"calls": [{"name": "delete_task", "args": {"task_id": "milk"}}, {"name": "setTheme", "args": {"theme": "dark"}}]}
{"text": "Both done."}
"#;
    let service = Running::start(script).await;
    let anna = Client::new(&service, "anna").await;
    anna.run(&say("t", "r1", "add buy milk")).await;
    let body = with(say("t", "r2", "delete it, and dark"), "tools", theme());
    let asked = anna.run(&body).await;
    let [interrupt] = &interrupts(&asked)[..] else {
        panic!("{asked:#?}")
    };
    assert_eq!(interrupt["metadata"]["tool"], "delete_task");
    let calls = of_kind(&asked, "TOOL_CALL_START");
    let call = &calls
        .iter()
        .find(|event| event["toolCallName"] == "setTheme")
        .unwrap()["toolCallId"];
    let next = then(&body, "r3", &asked, &[result(call, "done")]);
    let yes = json!([{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": true}}]);
    let done = anna.run(&with(next, "resume", yes)).await;
    assert_eq!(
        (text(&done).as_str(), anna.tasks("anna").await),
        ("Both done.", 0),
        "{done:#?}"
    );
    service.stop().await;
}

#[tokio::test]
async fn invalid_tools_are_refused_with_a_run_that_is_known_too() {
    let service = Running::start(r#"{"text": "Hello.", "repeat": true}"#).await;
    let anna = Client::new(&service, "anna").await;
    let first = anna.run_json(&say("t", "r1", "hi")).await;
    assert_eq!(first.status, 200, "{first:?}");
    let invalid = [
        json!({"name": "setTheme", "parameters": [null, null]}),
        json!({"name": "setTheme", "parameters": true}),
        json!({"name": "setTheme", "parameters": {"type": "array"}}),
        json!({"name": "set theme"}),
    ];
    for tools in invalid.map(|tool| json!([tool])) {
        let again = with(say("t", "r1", "hi"), "tools", tools.clone());
        let refused = anna.run_json(&again).await;
        assert_eq!(refused.status, 422, "{refused:?}");
        let answers = json!([{"interruptId": "none", "status": "cancelled"}]);
        let refused = anna
            .run_json(&with(
                with(say("t", "r2", "hi"), "tools", tools),
                "resume",
                answers,
            ))
            .await;
        assert_eq!(refused.status, 422, "{refused:?}");
    }
    service.stop().await;
}
