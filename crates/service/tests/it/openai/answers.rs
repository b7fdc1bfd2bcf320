//! Answers, whole and in pieces, and the models.

use super::*;

#[tokio::test]
async fn a_message_is_answered_and_its_tools_run_here() {
    let world = World::new().await;
    let replica = world
        .replica(
            r#"
{"calls": [{"name": "add_task", "args": {"description": "buy milk"}}], "usage": {"input": 100, "output": 7}}
{"text": "Added.", "usage": {"input": 120, "output": 3}}
"#,
        )
        .await;
    let token = world.token("anna").await;
    let body = with(said(&["add buy milk"]), "user", json!("eve"));
    let answer = replica.ask(&token, &body).await;
    let body = answer.json();
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(
        (&body["object"], &body["model"], &body["created"]),
        (
            &json!("chat.completion"),
            &json!("adjutant"),
            &json!(1_800_000_000)
        )
    );
    let choice = &body["choices"][0];
    assert_eq!(
        (&choice["index"], &choice["finish_reason"]),
        (&json!(0), &json!("stop"))
    );
    let message = &choice["message"];
    assert_eq!(
        (&message["role"], &message["content"]),
        (&json!("assistant"), &json!("Added."))
    );
    let reasoning = message["reasoning_content"].as_str().unwrap();
    assert!(
        reasoning.starts_with("⚙ add_task {\"description\":\"buy milk\"}\n✓ add_task "),
        "the tools are told: {reasoning}"
    );
    let usage = &body["usage"];
    assert_eq!(
        (
            &usage["prompt_tokens"],
            &usage["completion_tokens"],
            &usage["total_tokens"]
        ),
        (&json!(220), &json!(10), &json!(230))
    );
    assert_eq!(body["adjutant"]["outcome"], "SUCCESS:TASK_COMPLETED");
    assert_eq!(
        world.tasks("anna").await,
        ["buy milk"],
        "the user is the token's"
    );
    assert_eq!(world.tasks("eve").await, Vec::<String>::new());
    assert_eq!(
        (world.decisions("anna").await, world.threads("anna").await),
        (1, 0)
    );
    replica.stop().await;
}

#[tokio::test]
async fn a_stream_and_a_complete_answer_have_the_same_text() {
    let script = r#"
{"thinking": "Let me see.", "text": "I will add it.", "calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}
{"text": "Added: buy milk.", "usage": {"input": 5, "output": 2}}
"#;
    let world = World::new().await;
    let token = world.token("anna").await;
    let whole = world.replica(script).await;
    let answer = whole.ask(&token, &said(&["add buy milk"])).await;
    whole.stop().await;
    let replica = world.replica(script).await;
    let body = with(
        said(&["add buy milk"]),
        "stream_options",
        json!({"include_usage": true}),
    );
    let streamed = replica.stream(&token, &body).await;
    assert!(
        streamed.head.contains("content-type: text/event-stream"),
        "{}",
        streamed.head
    );
    assert!(
        streamed.head.contains("x-accel-buffering: no"),
        "{}",
        streamed.head
    );
    assert_eq!(
        streamed.streamed("content"),
        "I will add it.\n\nAdded: buy milk."
    );
    assert_eq!(streamed.streamed("content"), answer.content());
    let milliseconds = |text: String| {
        text.split(" ms")
            .next()
            .unwrap()
            .rsplit_once(' ')
            .unwrap()
            .0
            .to_owned()
    };
    let reasoning = answer.json()["choices"][0]["message"]["reasoning_content"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        milliseconds(streamed.streamed("reasoning_content")),
        milliseconds(reasoning)
    );

    let chunks = streamed.chunks();
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    assert!(
        chunks
            .iter()
            .all(|chunk| chunk["object"] == "chat.completion.chunk"
                && chunk["id"] == chunks[0]["id"])
    );
    let [.., last, usage] = chunks.as_slice() else {
        panic!("{chunks:?}")
    };
    assert_eq!(
        (&last["choices"][0]["finish_reason"], &last["usage"]),
        (&json!("stop"), &Value::Null)
    );
    assert_eq!(
        (&usage["choices"], &usage["usage"]["total_tokens"]),
        (&json!([]), &json!(7))
    );
    let finishes = chunks
        .iter()
        .filter(|chunk| chunk["choices"][0]["finish_reason"].is_string())
        .count();
    assert_eq!(finishes, 1);
    replica.stop().await;

    // Without being asked for, nothing says tokens.
    let replica = world
        .replica(r#"{"text": "Hello.", "usage": {"input": 5, "output": 2}}"#)
        .await;
    let plain = replica.stream(&token, &said(&["hi"])).await;
    assert!(
        plain
            .chunks()
            .iter()
            .all(|chunk| chunk.get("usage").is_none()),
        "{}",
        plain.text
    );
    replica.stop().await;
}

#[tokio::test]
async fn the_same_request_twice_is_two_turns_unless_it_has_a_name() {
    let add = r#"{"calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}
{"text": "Added."}
"#;
    let world = World::new().await;
    let token = world.token("anna").await;
    let replica = world.replica(&add.repeat(3)).await;
    for _ in 0..2 {
        assert_eq!(
            replica
                .ask(&token, &said(&["add buy milk"]))
                .await
                .content(),
            "Added."
        );
    }
    assert_eq!(world.tasks("anna").await.len(), 2);
    let authorization = format!("Bearer {token}");
    let headers = [
        ("Authorization", authorization.as_str()),
        ("Idempotency-Key", "key-1"),
    ];
    for _ in 0..2 {
        let body = said(&["add buy milk"]).to_string();
        assert_eq!(
            replica
                .send("POST", COMPLETIONS, &headers, &body)
                .await
                .content(),
            "Added."
        );
    }
    assert_eq!(world.tasks("anna").await.len(), 3);
    // The same name for something else is a mistake, also where the words are the same.
    let mut plain = said(&["add buy milk"]);
    plain["model"] = json!("adjutant-plain");
    for other in [
        said(&["add buy bread"]),
        said(&["hello", "Hello.", "add buy milk"]),
        plain,
    ] {
        let refused = replica
            .send("POST", COMPLETIONS, &headers, &other.to_string())
            .await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        assert_eq!(refused.json()["error"]["code"], "idempotency_key_reused");
    }
    assert_eq!(world.tasks("anna").await.len(), 3);
    replica.stop().await;
}

#[tokio::test]
async fn the_output_schema_applies_and_the_smaller_token_limit_counts() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let replica = world.replica("{\"text\": \"no JSON\"}\n{\"text\": \"{\\\"city\\\": \\\"Oslo\\\"}\"}\n{\"text\": \"A b\", \"finish\": \"max_tokens\"}").await;
    let schema =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let format = json!({"type": "json_schema", "json_schema": {"name": "place", "schema": schema}});
    let answer = replica
        .stream(&token, &with(said(&["where?"]), "response_format", format))
        .await;
    assert_eq!(
        answer.streamed("content"),
        "{\"city\": \"Oslo\"}",
        "only what fits is said"
    );
    let mut body = with(said(&["tell me"]), "max_completion_tokens", json!(5.0));
    for (key, value) in [
        ("max_tokens", json!(9)),
        ("temperature", json!(1)),
        ("stop", json!(["x"])),
        ("seed", json!(7)),
    ] {
        body = with(body, key, value);
    }
    let cut = replica.ask(&token, &body).await;
    assert_eq!(cut.json()["choices"][0]["finish_reason"], "length");
    assert_eq!(
        replica
            .last_request()
            .config
            .max_tokens
            .map(|max| max.get()),
        Some(5)
    );
    let notices = cut.json()["adjutant"]["notices"].to_string();
    assert!(
        notices.contains("temperature was not used") && notices.contains("stop was not used"),
        "{notices}"
    );
    let body = with(said(&["tell me"]), "max_tokens", json!(1_000_000));
    replica.ask(&token, &body).await;
    assert_eq!(
        replica.last_request().config.max_tokens,
        None,
        "never more than the service's own"
    );
    replica.stop().await;
}

#[tokio::test]
async fn the_models_are_the_agent_with_and_without_tools() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let replica = world.replica(r#"{"text": "Hello."}"#).await;
    let bearer = format!("Bearer {token}");
    // As Open WebUI asks, with the headers of ENABLE_FORWARD_USER_INFO_HEADERS.
    let headers = [
        ("Authorization", bearer.as_str()),
        ("X-OpenWebUI-User-Name", "Eve"),
        ("X-OpenWebUI-User-Id", "eve"),
        ("X-OpenWebUI-User-Role", "admin"),
    ];
    let list = replica.send("GET", "/v1/models", &headers, "").await;
    let body = list.json();
    assert_eq!(
        (list.status, &body["object"]),
        (200, &json!("list")),
        "{list:?}"
    );
    let ids: Vec<&Value> = body["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| &model["id"])
        .collect();
    assert_eq!(ids, ["adjutant", "adjutant-plain"]);
    assert!(body["data"][0]["created"].is_i64() && body["data"][0]["object"] == "model");
    let one = replica
        .send("GET", "/v1/models/adjutant-plain", &headers, "")
        .await;
    assert_eq!(
        (one.status, &one.json()["id"]),
        (200, &json!("adjutant-plain"))
    );
    let none = replica.send("GET", "/v1/models/gpt-4o", &headers, "").await;
    check_error(
        &none,
        404,
        "invalid_request_error",
        "model_not_found",
        Some("model"),
    );
    replica.stop().await;
}

#[tokio::test]
async fn a_refusal_of_the_provider_is_an_answer() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let replica = world.replica(r#"{"fault": "refused"}"#).await;
    let answer = replica.ask(&token, &said(&["something bad"])).await;
    assert_eq!(
        answer.json()["choices"][0]["finish_reason"],
        "content_filter",
        "{answer:?}"
    );
    replica.stop().await;
}

#[tokio::test]
async fn a_turn_goes_on_when_its_client_goes_away() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let replica = world
        .replica(
            r#"
{"text": "One moment.", "calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}
{"text": "Added."}
"#,
        )
        .await;
    let body = with(said(&["add buy milk"]), "stream", json!(true)).to_string();
    let mut connection = TcpStream::connect(replica.address).await.unwrap();
    let authorization = format!("Bearer {token}");
    let request = replica.request(
        "POST",
        COMPLETIONS,
        &[("Authorization", &authorization)],
        &body,
    );
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut first = [0; 1];
    connection.read_exact(&mut first).await.unwrap();
    drop(connection);
    // Stopping waits for what runs.
    replica.stop().await;
    assert_eq!(world.tasks("anna").await, ["buy milk"]);
    let outcomes = world
        .store
        .decisions(&UserId::new("anna").unwrap(), &DecisionFilter::default())
        .await
        .unwrap();
    assert_eq!(outcomes[0].content.as_deref(), Some("Added."));
}

#[tokio::test]
async fn a_person_of_a_chat_interface_adds_and_deletes() {
    // What Open WebUI sends for a chat with a system prompt, and the answers as it keeps them.
    let world = World::new().await;
    let token = world.token("anna").await;
    let replica = world
        .replica(&format!(
            "{}\n{}\n{DELETE_MILK}",
            r#"{"calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}"#,
            r#"{"text": "Added."}"#
        ))
        .await;
    let shown = Mutex::new(vec![
        json!({"role": "system", "content": "User Context: Anna"}),
    ]);
    let turn = async |text: &str| {
        let messages = {
            let mut shown = shown.lock().unwrap();
            shown.push(json!({"role": "user", "content": text}));
            shown.clone()
        };
        let body = json!({"model": "adjutant", "stream": true, "stream_options": {"include_usage": true},
            "params": {}, "messages": messages, "metadata": {"chat_id": "c1"}});
        let answer = replica.stream(&token, &body).await.streamed("content");
        shown
            .lock()
            .unwrap()
            .push(json!({"role": "assistant", "content": answer}));
        answer
    };
    assert_eq!(turn("add buy milk").await, "Added.");
    assert!(turn("delete milk").await.contains("yes or no"));
    assert_eq!(turn("yes").await, "Gone.");
    assert_eq!(world.tasks("anna").await, Vec::<String>::new());
    replica.stop().await;
}
