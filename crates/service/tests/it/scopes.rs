//! Tokens that may only read, only write, or not answer for the person.

use serde_json::{Value, json};

use super::harness::{Answer, Running};

/// Adds a task, then deletes it; anything else is answered in words.
const SCRIPT: &str = r#"
{"match": "buy ", "calls": [{"name": "add_task", "args": {"description": "milk"}}], "repeat": true}
{"match": "drop ", "calls": [{"name": "delete_task", "args": {"task_id": "milk"}}], "repeat": true}
{"text": "Said.", "repeat": true}
"#;

fn bearer(token: &str) -> [(&'static str, String); 1] {
    [("Authorization", format!("Bearer {token}"))]
}

async fn send(service: &Running, token: &str, method: &str, path: &str, body: &Value) -> Answer {
    service
        .ask(method, path, &bearer(token), &body.to_string())
        .await
}

fn assert_lacks(answer: &Answer, scope: &str) {
    assert_eq!(answer.status, 403, "{answer:?}");
    // `/mcp` refuses in JSON-RPC, with the problem as its data.
    let problem = match &answer.body["error"]["data"] {
        Value::Null => &answer.body,
        data => data,
    };
    assert_eq!(problem["code"], "scope_missing", "{answer:?}");
    assert_eq!(problem["scope"], scope, "{answer:?}");
}

/// Routes without a caller: they are open, or end the caller's own session.
const OPEN: [&str; 7] = [
    "/healthz",
    "/readyz",
    "/v1/session",
    "/signin",
    "/signin/callback",
    "/openapi.json",
    "/docs",
];

#[tokio::test]
async fn every_route_needs_the_scope_of_what_it_does() {
    let service = Running::start(SCRIPT).await;
    let reads = service.token_for("anna", "read").await;
    let writes = service.token_for("anna", "write").await;
    let described = send(&service, &reads, "GET", "/openapi.json", &Value::Null).await;
    let paths = described.body["paths"].as_object().unwrap().clone();
    let mut tried = 0;
    for (path, methods) in paths
        .iter()
        .filter(|(path, _)| !OPEN.contains(&path.as_str()))
    {
        let place: Vec<&str> = path
            .split('/')
            .map(|part| if part.starts_with('{') { "x" } else { part })
            .collect();
        for method in methods.as_object().unwrap().keys() {
            let method = method.to_uppercase();
            let is_reading = method == "GET" || path.ends_with("/preview");
            let (refused, scope) = match is_reading {
                true => (&writes, "read"),
                false => (&reads, "write"),
            };
            let answer = send(&service, refused, &method, &place.join("/"), &json!({})).await;
            assert_eq!(answer.status, 403, "{method} {path}: {answer:?}");
            assert!(
                answer.text.contains("scope_missing") && answer.text.contains(scope),
                "{method} {path}: {answer:?}"
            );
            tried += 1;
        }
    }
    assert!(tried > 30, "{tried}");
    for method in ["POST", "DELETE"] {
        let answer = send(&service, &reads, method, "/mcp", &json!({})).await;
        assert_lacks(&answer, "write");
    }
    assert_lacks(
        &send(&service, &writes, "GET", "/mcp", &Value::Null).await,
        "read",
    );
    // A model is told the facts in every conversation.
    for (method, path) in [
        ("POST", "/v1/memory"),
        ("PATCH", "/v1/memory/x"),
        ("DELETE", "/v1/memory/x"),
        ("POST", "/v1/memory/undo"),
    ] {
        let answer = send(&service, &writes, method, path, &json!({})).await;
        assert_lacks(&answer, "answer");
    }
    let added = send(
        &service,
        &writes,
        "POST",
        "/v1/tools/add_task/invoke",
        &json!({"args": {"description": "milk"}}),
    )
    .await;
    assert_eq!(added.status, 200, "{added:?}");
    let tasks = send(&service, &reads, "GET", "/v1/tasks", &Value::Null).await;
    assert_eq!(tasks.body["tasks"][0]["from_others"], true, "{tasks:?}");
}

#[tokio::test]
async fn a_token_without_answer_leaves_every_question_to_the_person() {
    let service = Running::start(SCRIPT).await;
    let anna = service.token("anna").await;
    let program = service.token_for("anna", "read write").await;
    let say = async |token: &str, words: &str| {
        service
            .chat(token, &json!({"thread_id": "t", "message": words}))
            .await
    };
    say(&program, "buy milk").await;
    // Nothing waits, so a plain yes is a message like any other.
    assert_eq!(say(&program, "yes").await.status, 200);
    let asked = say(&program, "drop milk").await;
    let id = asked.body["pending"][0]["interrupt_id"].clone();
    assert!(id.is_string(), "{asked:?}");

    for words in ["yes", "Yes.", "no"] {
        assert_lacks(&say(&program, words).await, "answer");
    }
    for approved in [true, false] {
        let resume =
            json!({"thread_id": "t", "resume": [{"interrupt_id": id, "approved": approved}]});
        assert_lacks(&service.chat(&program, &resume).await, "answer");
        let run = json!({"threadId": "t", "runId": format!("r{approved}"), "messages": [],
            "resume": [{"interruptId": id, "status": "resolved", "payload": {"approved": approved}}]});
        assert_lacks(
            &send(&service, &program, "POST", "/v1/runs", &run).await,
            "answer",
        );
    }
    let cancelled = json!({"threadId": "t", "runId": "rc", "messages": [],
        "resume": [{"interruptId": id, "status": "cancelled"}]});
    assert_lacks(
        &send(&service, &program, "POST", "/v1/runs", &cancelled).await,
        "answer",
    );

    let invoke = json!({"args": {"task_id": "milk"}});
    let path = "/v1/tools/delete_task/invoke";
    let called = send(&service, &program, "POST", path, &invoke).await;
    assert_eq!(called.body["code"], "pending_confirmation", "{called:?}");
    let confirm = json!({"args": {"task_id": "milk"}, "confirm": called.body["confirm"]});
    assert_lacks(
        &send(&service, &program, "POST", path, &confirm).await,
        "answer",
    );

    let pending = send(&service, &program, "GET", "/v1/pending", &Value::Null).await;
    assert_eq!(
        pending.body["pending"].as_array().unwrap().len(),
        2,
        "{pending:?}"
    );
    let done = say(&anna, "yes").await;
    assert_eq!(
        done.body["tools_used"][0]["tool"], "delete_task",
        "{done:?}"
    );
}

#[tokio::test]
async fn a_message_of_the_openai_routes_answers_only_with_the_scope() {
    let service = Running::start(SCRIPT).await;
    let anna = service.token("anna").await;
    let program = service.token_for("anna", "read write").await;
    let user = |words: &str| json!({"role": "user", "content": words});
    let complete = async |token: &str, messages: Value| {
        let body = json!({"model": "adjutant", "messages": messages});
        send(&service, token, "POST", "/v1/chat/completions", &body).await
    };
    complete(&program, json!([user("buy milk")])).await;
    let asked = complete(&program, json!([user("drop milk")])).await;
    let question = &asked.body["choices"][0]["message"];
    let yes = json!([user("drop milk"), question, user("yes")]);
    let refused = complete(&program, yes.clone()).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    assert!(refused.text.contains("scope_missing"), "{refused:?}");

    let respond = async |token: &str, body: Value| {
        send(&service, token, "POST", "/v1/responses", &body).await
    };
    let first = respond(&program, json!({"model": "adjutant", "input": "drop milk"})).await;
    let answer =
        json!({"model": "adjutant", "input": "yes", "previous_response_id": first.body["id"]});
    let refused = respond(&program, answer).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    assert!(refused.text.contains("scope_missing"), "{refused:?}");

    let tasks = send(&service, &anna, "GET", "/v1/tasks", &Value::Null).await;
    assert_eq!(
        tasks.body["tasks"].as_array().unwrap().len(),
        1,
        "{tasks:?}"
    );
    let done = complete(&anna, yes).await;
    assert_eq!(done.status, 200, "{done:?}");
    let tasks = send(&service, &anna, "GET", "/v1/tasks", &Value::Null).await;
    assert_eq!(tasks.body["tasks"], json!([]), "{tasks:?}");
}

#[tokio::test]
async fn an_mcp_client_without_the_scope_is_not_asked_and_cannot_answer() {
    let service = Running::start(SCRIPT).await;
    let anna = service.token("anna").await;
    let program = service.token_for("anna", "read write").await;
    let call = async |token: &str, tool: &str, arguments: Value, more: Value| {
        let mut params = json!({"name": tool, "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        }});
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        let headers = [
            ("Authorization", format!("Bearer {token}")),
            ("Accept", "application/json, text/event-stream".to_owned()),
            ("MCP-Protocol-Version", "2026-07-28".to_owned()),
            ("Mcp-Method", "tools/call".to_owned()),
            ("Mcp-Name", tool.to_owned()),
        ];
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let answer = service
            .ask("POST", "/mcp", &headers, &body.to_string())
            .await;
        let lines = answer.text.lines();
        let data = lines.filter_map(|line| line.strip_prefix("data:").or(Some(line)));
        let mut read = data.filter_map(|data| serde_json::from_str::<Value>(data.trim()).ok());
        let found = read.find(|read| read.get("result").is_some());
        found.unwrap_or_else(|| panic!("{answer:?}"))["result"].take()
    };
    let none = json!({});
    call(
        &program,
        "add_task",
        json!({"description": "milk"}),
        none.clone(),
    )
    .await;
    let milk = json!({"task_id": "milk"});
    let left = call(&program, "delete_task", milk.clone(), none.clone()).await;
    assert_eq!(
        left["structuredContent"]["status"], "confirmation_required",
        "{left}"
    );

    // Whoever may answer is asked; an answer with the other token changes nothing.
    let asked = call(&anna, "delete_task", milk.clone(), none.clone()).await;
    let state = &asked["requestState"];
    assert!(state.is_string(), "{asked}");
    let yes = json!({"requestState": state,
        "inputResponses": {"confirm": {"action": "accept", "content": {"confirm": true}}}});
    let refused = call(&program, "delete_task", milk.clone(), yes.clone()).await;
    assert_ne!(
        refused["structuredContent"]["success"],
        json!(true),
        "{refused}"
    );
    let tasks = send(&service, &anna, "GET", "/v1/tasks", &Value::Null).await;
    assert_eq!(
        tasks.body["tasks"].as_array().unwrap().len(),
        1,
        "{tasks:?}"
    );

    // A question that the client closes waits on the page.
    let closed =
        json!({"requestState": state, "inputResponses": {"confirm": {"action": "cancel"}}});
    let closed = call(&anna, "delete_task", milk.clone(), closed).await;
    assert_eq!(
        closed["structuredContent"]["confirmation_id"], *state,
        "{closed}"
    );
    let waits = send(&service, &anna, "GET", "/v1/pending", &Value::Null).await;
    let threads: Vec<_> = waits.body["pending"].as_array().unwrap().iter().collect();
    assert!(
        threads.iter().any(|waits| waits["thread_id"] == *state),
        "{waits:?}"
    );
    let done = call(&anna, "delete_task", milk, yes).await;
    assert_eq!(done["structuredContent"]["success"], json!(true), "{done}");
}

#[tokio::test]
async fn tokens_and_sessions_made_with_a_token_have_at_most_its_scopes() {
    let service = Running::start(SCRIPT).await;
    let program = service.token_for("anna", "read write").await;
    let make = async |scopes: Value| {
        let mut body = json!({"name": "child"});
        if !scopes.is_null() {
            body["scopes"] = scopes;
        }
        send(&service, &program, "POST", "/v1/tokens", &body).await
    };
    let inherited = make(Value::Null).await;
    assert_eq!(
        inherited.body["scopes"],
        json!(["read", "write"]),
        "{inherited:?}"
    );
    let narrower = make(json!(["read"])).await;
    assert_eq!(narrower.body["scopes"], json!(["read"]), "{narrower:?}");
    for (scopes, status) in [
        (json!(["read", "write", "answer"]), 403),
        (json!([]), 422),
        (json!(["answer"]), 422),
        (json!(["fly"]), 422),
    ] {
        let refused = make(scopes.clone()).await;
        assert_eq!(refused.status, status, "{scopes}: {refused:?}");
    }

    let reads = service.token_for("anna", "read").await;
    let exchanged = service
        .ask(
            "POST",
            "/v1/session",
            &[],
            &json!({"token": reads}).to_string(),
        )
        .await;
    assert_eq!(exchanged.status, 204, "{exchanged:?}");
    let sessions = send(&service, &reads, "GET", "/v1/tokens", &Value::Null).await;
    let listed = sessions.body["tokens"].as_array().unwrap();
    let session = listed.iter().find(|token| token["kind"] == "session");
    assert_eq!(session.unwrap()["scopes"], json!(["read"]), "{sessions:?}");
}
