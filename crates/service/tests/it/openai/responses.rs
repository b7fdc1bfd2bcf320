//! The same agent in the words of the Responses API.

mod chains;
mod streams;

use super::*;

pub(super) const RESPONSES: &str = "/v1/responses";

/// A request that says something.
pub(super) fn input(input: impl Into<Value>) -> Value {
    json!({"model": "adjutant", "input": input.into()})
}

impl Answer {
    /// The items of one type.
    pub(super) fn items(&self, kind: &str) -> Vec<Value> {
        let body = self.json();
        let output = body["output"].as_array().cloned().unwrap_or_default();
        output
            .into_iter()
            .filter(|item| item["type"] == kind)
            .collect()
    }

    /// All words, as the official clients put them together.
    pub(super) fn words(&self) -> String {
        let messages = self.items("message");
        messages
            .iter()
            .filter_map(|message| message["content"][0]["text"].as_str())
            .collect()
    }
}

impl Replica {
    pub(super) async fn respond(&self, token: &str, body: &Value) -> Answer {
        self.call("POST", RESPONSES, token, body).await
    }

    pub(super) async fn call(&self, method: &str, path: &str, token: &str, body: &Value) -> Answer {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        self.send(
            method,
            path,
            &[("Authorization", &format!("Bearer {token}"))],
            &body,
        )
        .await
    }
}

pub(super) fn weather() -> Value {
    let parameters =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    json!([{"type": "function", "name": "getWeather", "description": "The weather.", "parameters": parameters, "strict": true}])
}

pub(super) const OSLO: &str = r#"
{"text": "Let me look.", "calls": [{"name": "getWeather", "args": {"city": "Oslo"}}]}
{"text": "It is sunny.", "usage": {"input": 9, "output": 3}}
"#;

/// The result of a call, as an item.
pub(super) fn result(call: &Value, output: &str) -> Value {
    json!({"type": "function_call_output", "call_id": call["call_id"], "output": output})
}

#[tokio::test]
async fn messages_are_answered_and_tools_run_in_the_service() {
    let world = World::new().await;
    let script = r#"
{"text": "One moment.", "calls": [{"name": "add_task", "args": {"description": "buy milk"}}], "usage": {"input": 100, "output": 7}}
{"text": "Added.", "usage": {"input": 120, "output": 3}}
"#;
    let replica = world.replica(script).await;
    let token = world.token("anna").await;
    let mut body = input("add buy milk");
    body["metadata"] = json!({"topic": "milk"});
    body["instructions"] = json!("Answer in French.");
    let answer = replica.respond(&token, &body).await;
    let response = answer.json();
    assert_eq!(answer.status, 200, "{answer:?}");
    for (member, value) in [
        ("object", json!("response")),
        ("status", json!("completed")),
        ("created_at", json!(1_800_000_000)),
        ("model", json!("adjutant")),
        ("error", Value::Null),
        ("incomplete_details", Value::Null),
        ("instructions", json!("Answer in French.")),
        ("metadata", json!({"topic": "milk"})),
        ("parallel_tool_calls", json!(true)),
        ("previous_response_id", Value::Null),
        ("tool_choice", json!("auto")),
        ("tools", json!([])),
        ("text", json!({"format": {"type": "text"}})),
    ] {
        assert_eq!(response[member], value, "{member}: {answer:?}");
    }
    assert_eq!(answer.words(), "One moment.\n\nAdded.");
    let [first, thought, last] = response["output"].as_array().unwrap().as_slice() else {
        panic!("{answer:?}")
    };
    assert_eq!(
        (&first["type"], &thought["type"], &last["role"]),
        (&json!("message"), &json!("reasoning"), &json!("assistant"))
    );
    let told = thought["summary"][0]["text"].as_str().unwrap();
    assert!(
        told.starts_with("⚙ add_task {\"description\":\"buy milk\"}\n✓ add_task "),
        "{told}"
    );
    let usage = &response["usage"];
    assert_eq!(
        (
            &usage["input_tokens"],
            &usage["output_tokens"],
            &usage["total_tokens"]
        ),
        (&json!(220), &json!(10), &json!(230))
    );
    assert_eq!(response["adjutant"]["outcome"], "SUCCESS:TASK_COMPLETED");
    assert_eq!(world.tasks("anna").await, ["buy milk"]);
    assert_eq!(
        (world.decisions("anna").await, world.threads("anna").await),
        (1, 0)
    );
    // The application's words are no instruction of the agent's.
    let shown = transcript(&replica.last_request());
    assert_eq!(shown[0], (Role::System, "Be brief.".to_owned()));
    assert!(
        shown
            .iter()
            .any(|(role, text)| *role == Role::User && text.contains("Answer in French.")),
        "{shown:?}"
    );
    replica.stop().await;
}

#[tokio::test]
async fn items_are_the_history() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let replica = world
        .replica(r#"{"text": "Sunny, then.", "repeat": true}"#)
        .await;
    let items = json!([
        {"role": "developer", "content": "You help Anna."},
        {"role": "user", "content": [{"type": "input_text", "text": "weather in"}, {"type": "input_text", "text": "Oslo"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": null},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}]},
        {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "getWeather", "arguments": "{\"city\": \"Oslo\"}"},
        {"type": "function_call_output", "call_id": "a", "output": "sunny"},
        {"type": "function_call", "call_id": "b", "name": "getWeather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "rain"}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"role": "assistant", "content": "Sunny."},
        {"role": "user", "content": "and now?"},
    ]);
    let answer = replica.respond(&token, &input(items)).await;
    assert_eq!(answer.words(), "Sunny, then.", "{answer:?}");
    let request = replica.last_request();
    let results: Vec<&Value> = request
        .messages
        .iter()
        .filter_map(|message| message.tool_result()?.2.data.as_deref())
        .collect();
    assert_eq!(results, [&json!("sunny"), &json!("rain")]);
    let shown = transcript(&request);
    assert!(
        shown[1].1.contains("You help Anna.") && shown[1].1.contains("weather in\nOslo"),
        "{shown:?}"
    );
    assert!(
        shown
            .iter()
            .any(|said| *said == (Role::Assistant, "Sunny.".to_owned())),
        "{shown:?}"
    );
    assert_eq!(shown.last().unwrap(), &(Role::User, "and now?".to_owned()));
    assert!(
        answer.json()["adjutant"]["notices"]
            .to_string()
            .contains("web_search_call"),
        "{answer:?}"
    );
    replica.stop().await;
}

#[tokio::test]
async fn the_clients_tools_are_called_and_the_turn_goes_on_from_what_the_client_sends() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let first = world.replica(OSLO).await;
    let mut body = with(input("weather?"), "tools", weather());
    body["tool_choice"] = json!({"type": "function", "name": "getWeather"});
    let asked = first.respond(&token, &body).await;
    assert_eq!(asked.json()["status"], "completed", "{asked:?}");
    assert_eq!(asked.words(), "Let me look.");
    let [call] = asked
        .items("function_call")
        .try_into()
        .unwrap_or_else(|_| panic!("{asked:?}"));
    assert_eq!(
        (&call["name"], &call["arguments"]),
        (&json!("getWeather"), &json!(r#"{"city":"Oslo"}"#))
    );
    assert_eq!(
        asked.json()["adjutant"]["pending"][0]["kind"],
        "awaits_result"
    );
    first.stop().await;

    // All of it is sent again, with the result behind it, to another process.
    let second = world.replica(OSLO).await;
    let mut items = vec![json!({"role": "user", "content": "weather?"})];
    items.extend(asked.json()["output"].as_array().unwrap().clone());
    items.push(result(&call, "sunny"));
    let next = with(input(items.clone()), "tools", weather());
    let eve = world.token("eve").await;
    let other = second.respond(&eve, &next).await;
    assert_ne!(
        other.json()["adjutant"]["run_id"],
        asked.json()["adjutant"]["run_id"]
    );
    let done = second.respond(&token, &next).await;
    assert_eq!(done.words(), "It is sunny.", "{done:?}");
    assert_eq!(
        done.json()["adjutant"]["run_id"],
        asked.json()["adjutant"]["run_id"]
    );
    let calls = second.model.calls_made();
    assert_eq!(
        second.respond(&token, &next).await.words(),
        "It is sunny.",
        "the same again is the same"
    );
    items.pop();
    items.push(result(&call, "rain"));
    let other = second
        .respond(&token, &with(input(items), "tools", weather()))
        .await;
    check_error(
        &other,
        409,
        "invalid_request_error",
        "answered_before",
        Some("input"),
    );
    assert_eq!(second.model.calls_made(), calls);
    second.stop().await;
}

#[tokio::test]
async fn the_output_schema_applies_and_a_cut_response_is_incomplete() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let script = "{\"text\": \"no JSON\"}\n{\"text\": \"{\\\"city\\\": \\\"Oslo\\\"}\"}\n{\"text\": \"A b\", \"finish\": \"max_tokens\"}";
    let replica = world.replica(script).await;
    let schema =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let format = json!({"format": {"type": "json_schema", "name": "place", "schema": schema, "strict": true}});
    let answer = replica
        .respond(&token, &with(input("where?"), "text", format.clone()))
        .await;
    assert_eq!(
        (answer.words(), answer.json()["text"].clone()),
        ("{\"city\": \"Oslo\"}".to_owned(), format)
    );
    let mut body = with(input("tell me"), "max_output_tokens", json!(5));
    body["temperature"] = json!(0.5);
    body["reasoning"] = json!({"effort": "high"});
    body["store"] = json!(false);
    let cut = replica.respond(&token, &body).await;
    assert_eq!(
        (
            &cut.json()["status"],
            &cut.json()["incomplete_details"]["reason"]
        ),
        (&json!("incomplete"), &json!("max_output_tokens")),
        "{cut:?}"
    );
    // What it ends with is the note that says so.
    assert_eq!(
        cut.json()["output"].as_array().unwrap().last().unwrap()["status"],
        "incomplete",
        "{cut:?}"
    );
    assert_eq!(
        replica
            .last_request()
            .config
            .max_tokens
            .map(|max| max.get()),
        Some(5)
    );
    let notices = cut.json()["adjutant"]["notices"].to_string();
    for member in ["temperature", "reasoning", "store"] {
        assert!(
            notices.contains(&format!("{member} was not used")),
            "{member}: {notices}"
        );
    }
    replica.stop().await;
}

#[tokio::test]
async fn unsupported_options_are_refused_by_name() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let replica = world.replica(r#"{"text": "Hello."}"#).await;
    let image =
        json!([{"role": "user", "content": [{"type": "input_image", "image_url": "data:x"}]}]);
    for (key, value, param) in [
        ("background", json!(true), "background"),
        ("conversation", json!("conv_1"), "conversation"),
        ("prompt", json!({"id": "pmpt_1"}), "prompt"),
        ("top_logprobs", json!(3), "top_logprobs"),
        ("temperature", json!(3), "temperature"),
        ("max_output_tokens", json!(0), "max_output_tokens"),
        ("stream", json!("yes"), "stream"),
        (
            "text",
            json!({"format": {"type": "json_schema", "name": "x", "schema": {"type": 5}}}),
            "text.format",
        ),
        ("tools", json!([{"type": "web_search"}]), "tools[0].type"),
        ("tools", json!([{"type": "function"}]), "tools[0]"),
        ("tools", json!([{"name": "x"}]), "tools[0].type"),
        (
            "tools",
            json!([{"type": "function", "name": "add_task"}]),
            "tools",
        ),
        ("tool_choice", json!("required"), "tool_choice"),
        ("tool_choice", json!({"type": "web_search"}), "tool_choice"),
        ("tool_choice", json!(5), "tool_choice"),
        ("input", json!(5), "input"),
        ("input", json!([]), "input"),
        ("input", json!("  "), "input"),
        ("input", json!(["hi"]), "input[0]"),
        (
            "input",
            json!([{"role": "wizard", "content": "x"}]),
            "input[0].role",
        ),
        ("input", json!([{"content": "x"}]), "input[0].role"),
        (
            "input",
            json!([{"role": "user", "content": 5}]),
            "input[0].content",
        ),
        (
            "input",
            json!([{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]),
            "input[1].role",
        ),
        (
            "input",
            json!([{"type": "function_call_output", "output": "x"}]),
            "input[0].call_id",
        ),
        (
            "input",
            json!([{"type": "mcp_approval_response", "approve": true}]),
            "input[0].type",
        ),
        (
            "input",
            json!([{"type": "item_reference", "id": "msg_123"}]),
            "input[0].id",
        ),
        ("input", image, "input[0].content[0]"),
        ("instructions", json!("x".repeat(70_000)), "instructions"),
    ] {
        let answer = replica
            .respond(&token, &with(input("hi"), key, value.clone()))
            .await;
        assert_eq!(answer.status, 400, "{key}: {value} {answer:?}");
        check_error(
            &answer,
            400,
            "invalid_request_error",
            "invalid_request",
            Some(param),
        );
    }
    let answer = replica.respond(&token, &json!({"model": "adjutant"})).await;
    check_error(
        &answer,
        400,
        "invalid_request_error",
        "invalid_request",
        Some("input"),
    );
    let answer = replica
        .respond(&token, &with(input("hi"), "model", json!("gpt-5")))
        .await;
    check_error(
        &answer,
        404,
        "invalid_request_error",
        "model_not_found",
        Some("model"),
    );
    let answer = replica
        .respond(
            &token,
            &with(input("hi"), "previous_response_id", json!("resp_1")),
        )
        .await;
    check_error(
        &answer,
        400,
        "invalid_request_error",
        "previous_response_not_found",
        Some("previous_response_id"),
    );
    assert_eq!(
        replica.model.calls_made(),
        0,
        "none of them reached a model"
    );
    let mut body = input("hi");
    for key in [
        "background",
        "conversation",
        "include",
        "instructions",
        "max_output_tokens",
        "metadata",
        "previous_response_id",
        "prompt",
        "reasoning",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_p",
        "truncation",
        "user",
    ] {
        body[key] = Value::Null;
    }
    assert_eq!(
        replica.respond(&token, &body).await.words(),
        "Hello.",
        "null is not set"
    );
    replica.stop().await;
}

#[tokio::test]
async fn other_openai_routes_are_404_and_name_the_available_ones() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let replica = world.replica(r#"{"text": "Hello."}"#).await;
    for (method, path) in [
        ("POST", "/v1/embeddings"),
        ("POST", "/v1/completions"),
        ("POST", "/v1/audio/speech"),
        ("POST", "/v1/images/generations"),
        ("GET", "/v1/responses/resp_1/input_items"),
        ("GET", "/v1/files"),
    ] {
        let answer = replica.call(method, path, &token, &Value::Null).await;
        check_error(&answer, 404, "invalid_request_error", "unknown", None);
        let words = answer.json()["error"]["message"].to_string();
        assert!(
            words.contains("/v1/responses") && words.contains("/v1/chat/completions"),
            "{words}"
        );
    }
    let other = replica
        .call("GET", "/v1/imagesque", &token, &Value::Null)
        .await;
    assert_eq!(
        (other.status, &other.json()["code"]),
        (404, &json!("unknown")),
        "{other:?}"
    );
    replica.stop().await;
}

#[tokio::test]
async fn background_prompts_have_no_tools_in_the_responses_api() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let script = r#"{"calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}
{"text": "Milk", "repeat": true}"#;
    let title = "### Task:\nGenerate a concise, 3-5 word title\n<chat_history>\nUSER: add buy milk\n</chat_history>";
    let order =
        "You write a short title from the user's first message. Do not use quotes or colons.";
    for body in [
        input(title),
        with(input("add buy milk"), "instructions", json!(order)),
        with(input("add buy milk"), "model", json!("adjutant-plain")),
    ] {
        let replica = world.replica(script).await;
        let answer = replica.respond(&token, &body).await;
        assert_eq!(answer.words(), "Milk", "{answer:?}");
        assert!(replica.last_request().tools.is_empty());
        replica.stop().await;
    }
    assert!(world.tasks("anna").await.is_empty());
}
