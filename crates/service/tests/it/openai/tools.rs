//! Tools that the client brings, and models without tools.

use super::*;

fn weather() -> Value {
    let parameters =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    json!([{"type": "function", "function": {"name": "getWeather", "description": "The weather.", "parameters": parameters}}])
}

const OSLO: &str = r#"
{"text": "Let me look.", "calls": [{"name": "getWeather", "args": {"city": "Oslo"}}]}
{"text": "It is sunny.", "usage": {"input": 9, "output": 3}}
"#;

fn with_weather(body: Value) -> Value {
    with(body, "tools", weather())
}

/// The next request, with the calls of an answer and their results.
fn answered(mut body: Value, answer: &Answer, result: &str) -> Value {
    let message = answer.json()["choices"][0]["message"].clone();
    let messages = body["messages"].as_array_mut().unwrap();
    for call in message["tool_calls"].as_array().unwrap().clone() {
        if !messages
            .iter()
            .any(|known| known["tool_calls"] == message["tool_calls"])
        {
            messages.push(json!({"role": "assistant", "content": message["content"], "tool_calls": message["tool_calls"]}));
        }
        messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": result}));
    }
    body
}

#[tokio::test]
async fn a_model_without_tools_changes_nothing_whatever_it_calls() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let script = r#"{"calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}
{"text": "Milk", "repeat": true}"#;
    let title = "### Task:\nGenerate a concise, 3-5 word title\n<chat_history>\nUSER: add buy milk\n</chat_history>";
    for body in [
        with(said(&["add buy milk"]), "model", json!("adjutant-plain")),
        said(&[title]),
    ] {
        let replica = world.replica(script).await;
        let answer = replica.ask(&token, &body).await;
        assert_eq!(answer.content(), "Milk", "{answer:?}");
        assert!(
            answer.json()["choices"][0]["message"]
                .get("reasoning_content")
                .is_none(),
            "{answer:?}"
        );
        replica.stop().await;
    }
    assert!(world.tasks("anna").await.is_empty());
}

#[tokio::test]
async fn the_client_executes_its_tool_and_the_turn_goes_on_anywhere() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let first = world.replica(OSLO).await;
    let body = with_weather(said(&["what is the weather in Oslo?"]));
    let asked = first.ask(&token, &body).await;
    let choice = &asked.json()["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{asked:?}");
    assert_eq!(choice["message"]["content"], "Let me look.");
    let [call] = choice["message"]["tool_calls"]
        .as_array()
        .unwrap()
        .as_slice()
    else {
        panic!("{asked:?}")
    };
    assert_eq!(
        (&call["type"], &call["function"]["name"]),
        (&json!("function"), &json!("getWeather"))
    );
    assert_eq!(call["function"]["arguments"], r#"{"city":"Oslo"}"#);
    let info = &asked.json()["adjutant"];
    assert_eq!(
        (&info["outcome"], &info["pending"][0]["kind"]),
        (&json!("PENDING:RESULT"), &json!("awaits_result"))
    );
    let offered = first.last_request().tools;
    assert_eq!(
        offered
            .iter()
            .filter(|tool| tool.name.as_str() == "getWeather")
            .count(),
        1
    );
    first.stop().await;

    let second = world.replica(OSLO).await;
    let next = answered(body, &asked, "sunny");
    // It is nobody else's to answer.
    let eve = world.token("eve").await;
    let other = second.ask(&eve, &next).await;
    assert_ne!(other.json()["adjutant"]["run_id"], info["run_id"]);
    let done = second.ask(&token, &next).await;
    assert_eq!(
        (done.content(), done.json()["adjutant"]["run_id"].clone()),
        ("It is sunny.".to_owned(), info["run_id"].clone())
    );
    let calls = second.model.calls_made();
    // The same answer again is the same answer; another one is refused.
    let again = second.ask(&token, &next).await;
    assert_eq!(again.content(), "It is sunny.");
    let mut other = next.clone();
    other["messages"][2]["content"] = json!("rain");
    check_error(
        &second.ask(&token, &other).await,
        409,
        "invalid_request_error",
        "answered_before",
        Some("messages"),
    );
    assert_eq!(second.model.calls_made(), calls, "no model was asked again");
    // And the conversation goes on with all of it as history.
    let mut on = next;
    on["messages"].as_array_mut().unwrap().extend([
        json!({"role": "assistant", "content": "It is sunny."}),
        json!({"role": "user", "content": "thanks"}),
    ]);
    second.ask(&token, &on).await;
    let said = transcript(&second.last_request());
    assert!(said.iter().any(|(role, _)| *role == Role::Tool), "{said:?}");
    second.stop().await;
}

#[tokio::test]
async fn calls_are_streamed_as_clients_put_them_together() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let script = r#"{"calls": [{"name": "getWeather", "args": {"city": "Oslo"}}, {"name": "getWeather", "args": {"city": "Rome"}}]}"#;
    let replica = world.replica(script).await;
    let streamed = replica
        .stream(&token, &with_weather(said(&["weather?"])))
        .await;
    let mut calls: Vec<(String, String, String)> = Vec::new();
    for chunk in streamed.chunks() {
        let Some(piece) = chunk["choices"][0]["delta"]["tool_calls"].get(0).cloned() else {
            continue;
        };
        let at = usize::try_from(piece["index"].as_u64().unwrap()).unwrap();
        if let Some(id) = piece["id"].as_str() {
            assert_eq!((at, &piece["type"]), (calls.len(), &json!("function")));
            calls.push((
                id.to_owned(),
                piece["function"]["name"].as_str().unwrap().to_owned(),
                String::new(),
            ));
        }
        calls[at].2 += piece["function"]["arguments"].as_str().unwrap();
    }
    let arguments: Vec<&str> = calls.iter().map(|call| call.2.as_str()).collect();
    assert_eq!(
        arguments,
        [r#"{"city":"Oslo"}"#, r#"{"city":"Rome"}"#],
        "{}",
        streamed.text
    );
    assert_eq!(
        streamed.chunks().last().unwrap()["choices"][0]["finish_reason"],
        "tool_calls"
    );
    assert_eq!(streamed.streamed("content"), "");
    replica.stop().await;
}

#[tokio::test]
async fn results_that_nothing_waits_for_begin_a_turn_with_the_history_as_it_is() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let mut body = with_weather(said(&["weather?"]));
    body["messages"].as_array_mut().unwrap().extend([
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": "call_x", "type": "function",
            "function": {"name": "getWeather", "arguments": "{\"city\": \"Oslo\"}"}}]}),
        json!({"role": "tool", "tool_call_id": "call_x", "content": "sunny"}),
    ]);
    let replica = world
        .replica(r#"{"text": "Sunny, then.", "repeat": true}"#)
        .await;
    assert_eq!(replica.ask(&token, &body).await.content(), "Sunny, then.");
    let shown = transcript(&replica.last_request());
    let roles: Vec<Role> = shown.iter().map(|(role, _)| *role).collect();
    assert_eq!(
        roles,
        [
            Role::System,
            Role::User,
            Role::Assistant,
            Role::Tool,
            Role::User
        ],
        "{shown:?}"
    );
    replica.stop().await;

    // The client changed what was said: the turn that waits is another's.
    let replica = world.replica(OSLO).await;
    let body = with_weather(said(&["weather?"]));
    let asked = replica.ask(&token, &body).await;
    let mut edited = answered(body.clone(), &asked, "sunny");
    edited["messages"][1]["tool_calls"][0]["function"]["arguments"] = json!("{\"city\":\"Rome\"}");
    let fresh = replica.ask(&token, &edited).await;
    assert_ne!(
        fresh.json()["adjutant"]["run_id"],
        asked.json()["adjutant"]["run_id"],
        "{fresh:?}"
    );
    replica.stop().await;

    // Ten minutes later nothing waits any more.
    let replica = world
        .replica(&format!("{OSLO}{}", r#"{"text": "Late.", "repeat": true}"#))
        .await;
    let asked = replica.ask(&token, &body).await;
    world.ahead.fetch_add(601, Ordering::SeqCst);
    let late = replica.ask(&token, &answered(body, &asked, "sunny")).await;
    assert_ne!(
        late.json()["adjutant"]["run_id"],
        asked.json()["adjutant"]["run_id"],
        "{late:?}"
    );
    assert_eq!(late.json()["choices"][0]["finish_reason"], "stop");
    replica.stop().await;
}

#[tokio::test]
async fn tool_choice_is_obeyed_or_refused() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let choose = |choice: Value| with(with_weather(said(&["go"])), "tool_choice", choice);
    let named = json!({"type": "function", "function": {"name": "getWeather"}});
    let script = r#"{"text": "Sunny?"}
{"calls": [{"name": "getWeather", "args": {"city": "Oslo"}}]}"#;
    for choice in [json!("required"), named] {
        let replica = world.replica(script).await;
        let answer = replica.ask(&token, &choose(choice.clone())).await;
        assert_eq!(
            answer.json()["choices"][0]["finish_reason"],
            "tool_calls",
            "{choice}: {answer:?}"
        );
        replica.stop().await;
    }
    let replica = world
        .replica(&format!(
            "{}\n{}",
            r#"{"calls": [{"name": "add_task", "args": {"description": "x"}}]}"#,
            r#"{"text": "Words."}"#
        ))
        .await;
    assert_eq!(
        replica.ask(&token, &choose(json!("none"))).await.content(),
        "Words."
    );
    assert!(
        world.tasks("anna").await.is_empty(),
        "none is none of the agent's either"
    );

    let object = json!({"type": "object"});
    let tools = |name: &str, parameters: &Value| json!([{"type": "function", "function": {"name": name, "parameters": parameters}}]);
    let before = replica.model.calls_made();
    for (key, value, param) in [
        ("tool_choice", json!("any"), "tool_choice"),
        (
            "tool_choice",
            json!({"type": "allowed_tools"}),
            "tool_choice",
        ),
        (
            "tool_choice",
            json!({"type": "function", "function": {"name": "other"}}),
            "tool_choice",
        ),
        ("tools", tools("get weather", &object), "tools[0].function"),
        ("tools", tools("ask_user", &object), "tools[0].function"),
        ("tools", tools("add_task", &object), "tools"),
        (
            "tools",
            tools("a", &json!({"type": "array"})),
            "tools[0].function",
        ),
        (
            "tools",
            json!([{"type": "custom", "custom": {"name": "a"}}]),
            "tools[0].type",
        ),
        ("tools", json!([{"type": "function"}]), "tools[0].function"),
        ("model", json!("adjutant-plain"), "tools"),
    ] {
        let answer = replica
            .ask(&token, &with(choose(json!("auto")), key, value.clone()))
            .await;
        check_error(
            &answer,
            400,
            "invalid_request_error",
            "invalid_request",
            Some(param),
        );
    }
    let without = with(said(&["go"]), "tool_choice", json!("required"));
    check_error(
        &replica.ask(&token, &without).await,
        400,
        "invalid_request_error",
        "invalid_request",
        Some("tool_choice"),
    );
    assert_eq!(replica.model.calls_made(), before);
    replica.stop().await;
}

#[tokio::test]
async fn the_clients_calls_and_the_agents_question_go_together() {
    let world = World::new().await;
    world.add("anna", "buy milk").await;
    let token = world.token("anna").await;
    let script = r#"{"calls": [{"name": "delete_task", "args": {"task_id": "milk"}}, {"name": "getWeather", "args": {"city": "Oslo"}}]}
{"text": "Both done."}"#;
    let replica = world.replica(script).await;
    let body = with_weather(said(&["delete milk, and the weather"]));
    let asked = replica.ask(&token, &body).await;
    assert_eq!(asked.json()["choices"][0]["finish_reason"], "tool_calls");
    assert!(asked.content().contains("yes or no"), "{asked:?}");
    let next = answered(body, &asked, "sunny");
    let still = replica.ask(&token, &next).await;
    assert_eq!(
        (
            still.json()["choices"][0]["finish_reason"].clone(),
            still.content()
        ),
        (json!("stop"), asked.content())
    );
    let mut yes = next;
    yes["messages"].as_array_mut().unwrap().extend([
        json!({"role": "assistant", "content": still.content()}),
        json!({"role": "user", "content": "yes"}),
    ]);
    assert_eq!(replica.ask(&token, &yes).await.content(), "Both done.");
    assert!(world.tasks("anna").await.is_empty());
    replica.stop().await;
}

#[tokio::test]
async fn structured_output_may_follow_the_clients_calls() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let script = r#"{"calls": [{"name": "getWeather", "args": {"city": "Oslo"}}]}
{"text": "{\"sunny\": true}"}"#;
    let replica = world.replica(script).await;
    let schema = json!({"type": "object", "properties": {"sunny": {"type": "boolean"}}, "required": ["sunny"]});
    let format = json!({"type": "json_schema", "json_schema": {"name": "w", "schema": schema}});
    let body = with(with_weather(said(&["weather?"])), "response_format", format);
    let asked = replica.ask(&token, &body).await;
    let done = replica.ask(&token, &answered(body, &asked, "sunny")).await;
    assert_eq!(done.content(), "{\"sunny\": true}", "{done:?}");
    replica.stop().await;
}
