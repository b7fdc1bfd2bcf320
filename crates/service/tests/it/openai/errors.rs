//! Errors as these clients read them.

use super::*;

#[tokio::test]
async fn every_error_has_the_form_these_clients_read() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let replica = world.replica(r#"{"text": "Hello."}"#).await;
    let bearer = format!("Bearer {token}");
    let good = said(&["hi"]).to_string();
    let invalid = "invalid_request_error";
    let send = async |method, path, headers: &[(&str, &str)], body: &str| {
        replica.send(method, path, headers, body).await
    };

    for headers in [&[][..], &[("Authorization", "Bearer wrong")]] {
        for (method, path) in [
            ("POST", COMPLETIONS),
            ("GET", "/v1/models"),
            ("GET", "/v1/models/adjutant"),
        ] {
            let answer = send(method, path, headers, &good).await;
            check_error(&answer, 401, "authentication_error", "unauthorized", None);
            assert!(
                answer.head.contains("www-authenticate: bearer"),
                "{}",
                answer.head
            );
        }
    }
    let auth = ("Authorization", bearer.as_str());
    let answer = send(
        "POST",
        COMPLETIONS,
        &[auth, ("Origin", "https://evil.example")],
        &good,
    )
    .await;
    check_error(&answer, 403, "permission_error", "forbidden", None);
    let answer = send("GET", COMPLETIONS, &[auth], "").await;
    check_error(&answer, 405, invalid, "invalid_request", None);
    let answer = send(
        "POST",
        COMPLETIONS,
        &[auth, ("Content-Type", "text/plain")],
        &good,
    )
    .await;
    check_error(&answer, 415, invalid, "invalid_request", None);
    for broken in ["", "{", "[]", "null"] {
        let answer = send("POST", COMPLETIONS, &[auth], broken).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (400, &json!("invalid_request")),
            "{broken:?} {answer:?}"
        );
    }
    let answer = send(
        "POST",
        COMPLETIONS,
        &[auth],
        &with(said(&["hi"]), "model", json!("gpt-4o")).to_string(),
    )
    .await;
    check_error(&answer, 404, invalid, "model_not_found", Some("model"));

    let image = json!([{"role": "user", "content": [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": "data:x"}}]}]);
    let cases = [
        ("n", json!(2), "n"),
        ("n", json!(0), "n"),
        ("temperature", json!(3), "temperature"),
        ("temperature", json!("hot"), "temperature"),
        ("top_p", json!(-1), "top_p"),
        ("max_tokens", json!(0), "max_tokens"),
        ("max_completion_tokens", json!(-5), "max_completion_tokens"),
        ("max_tokens", json!(1.5), "max_tokens"),
        ("stream", json!("yes"), "stream"),
        ("logprobs", json!(true), "logprobs"),
        ("modalities", json!(["audio"]), "modalities"),
        ("tool_choice", json!("required"), "tool_choice"),
        (
            "tool_choice",
            json!({"type": "function", "function": {"name": "x"}}),
            "tool_choice",
        ),
        (
            "response_format",
            json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": 5}}}),
            "response_format",
        ),
        ("messages", json!([]), "messages"),
        (
            "messages",
            json!([{"role": "system", "content": "x"}]),
            "messages",
        ),
        (
            "messages",
            json!([{"role": "user", "content": " "}]),
            "messages[0].content",
        ),
        (
            "messages",
            json!([{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]),
            "messages[1].role",
        ),
        (
            "messages",
            json!([{"role": "wizard", "content": "x"}]),
            "messages[0].role",
        ),
        (
            "messages",
            json!([{"role": "user", "content": 5}]),
            "messages[0].content",
        ),
        ("messages", image, "messages[0].content[1]"),
        ("messages", json!("hi"), "messages"),
    ];
    for (key, value, param) in cases {
        let answer = send(
            "POST",
            COMPLETIONS,
            &[auth],
            &with(said(&["hi"]), key, value.clone()).to_string(),
        )
        .await;
        assert_eq!(answer.status, 400, "{key}: {value} {answer:?}");
        check_error(&answer, 400, invalid, "invalid_request", Some(param));
    }
    let answer = send("POST", COMPLETIONS, &[auth], r#"{"model": "adjutant"}"#).await;
    check_error(&answer, 400, invalid, "invalid_request", Some("messages"));
    assert_eq!(
        replica.model.calls_made(),
        0,
        "none of them reached a model"
    );

    // Null is what clients send for what they do not set, and unknown keys are theirs.
    let mut body = with(said(&["hi"]), "frequency_penalty", json!(0.5));
    for key in [
        "n",
        "stop",
        "tools",
        "temperature",
        "max_tokens",
        "stream",
        "response_format",
        "user",
        "stream_options",
    ] {
        body = with(body, key, Value::Null);
    }
    assert_eq!(replica.ask(&token, &body).await.content(), "Hello.");
    replica.stop().await;
}

#[tokio::test]
async fn a_model_that_fails_is_an_error_of_its_own_status_also_in_a_stream() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let limited = r#"{"fault": "rate_limit", "retry_after_s": 7, "repeat": true}"#;
    let replica = world.replica(limited).await;
    for stream in [false, true] {
        let answer = replica
            .ask(&token, &with(said(&["hi"]), "stream", json!(stream)))
            .await;
        check_error(&answer, 429, "rate_limit_error", "rate_limit", None);
        assert!(answer.head.contains("retry-after: 7"), "{}", answer.head);
        assert!(
            !answer.head.contains("x-should-retry"),
            "nothing ran: it may be sent again"
        );
    }
    replica.stop().await;
    for (fault, status, kind, code) in [
        ("timeout", 504, "server_error", "timeout"),
        ("quota", 429, "insufficient_quota", "quota"),
        ("auth", 502, "server_error", "auth"),
    ] {
        let replica = world.replica(&format!("{{\"fault\": \"{fault}\"}}")).await;
        check_error(
            &replica.stream(&token, &said(&["hi"])).await,
            status,
            kind,
            code,
            None,
        );
        replica.stop().await;
    }

    // Once something was said, the status is gone; the error comes in the stream, and the stream
    // ends.
    let broken = r#"{"calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}
{"fault": "server"}
{"calls": [{"name": "add_task", "args": {"description": "buy bread"}}]}
{"fault": "server"}"#;
    let replica = world.replica(broken).await;
    let answer = replica.stream(&token, &said(&["add buy milk"])).await;
    assert_eq!(answer.status, 200);
    let chunks = answer.chunks();
    let error = &chunks.last().unwrap()["error"];
    assert_eq!(
        (&error["code"], &error["type"]),
        (&json!("server"), &json!("server_error")),
        "{chunks:?}"
    );
    assert!(
        chunks
            .iter()
            .all(|chunk| !chunk["choices"][0]["finish_reason"].is_string())
    );
    // In one piece there is a status, and the client is told not to send again what was half done.
    let answer = replica.ask(&token, &said(&["add buy bread"])).await;
    check_error(&answer, 503, "server_error", "server", None);
    assert!(
        answer.head.contains("x-should-retry: false"),
        "{}",
        answer.head
    );
    assert!(
        answer.text.contains("buy bread"),
        "what was done is said: {}",
        answer.text
    );
    assert_eq!(world.tasks("anna").await, ["buy milk", "buy bread"]);
    replica.stop().await;
}
