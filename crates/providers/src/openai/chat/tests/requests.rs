//! Tests of requests: encoding, and the differences between servers.

use super::*;

pub(super) fn tool() -> ToolDefinition {
    let parameters = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    });
    ToolDefinition::new("weather", "The weather of a city.", parameters).unwrap()
}

fn call(index: usize, id: Option<&str>) -> ToolCall {
    let arguments = json!({"city": "Oslo"}).as_object().unwrap().clone();
    ToolCall::from_object(index, id.map(str::to_owned), "weather".into(), arguments)
}

pub(super) fn conversation() -> Vec<Message> {
    let first = call(0, Some("call_a"));
    let second = call(1, None);
    let (first_id, second_id) = (first.id.clone(), second.id.clone());
    vec![
        Message::system("Be short.").unwrap(),
        Message::user("Weather?").unwrap(),
        Message::assistant(vec![
            Part::ours(Content::Text {
                text: "Let me look.".into(),
            }),
            Part::ours(Content::ToolCall(first)),
            Part::ours(Content::ToolCall(second)),
        ])
        .unwrap(),
        Message::tool(first_id, "weather", ToolResult::verbatim(json!("rain"))).unwrap(),
        Message::tool(second_id, "weather", ToolResult::failed("No such city.")).unwrap(),
        Message::assistant(vec![Part::ours(Content::Text {
            text: "Rain.".into(),
        })])
        .unwrap(),
        Message::user("Thanks.").unwrap(),
    ]
}

#[test]
fn a_request_with_everything() {
    let request = GenerateRequest {
        tools: vec![tool()].into(),
        ..GenerateRequest::new(conversation())
    };
    let (body, losses) = encoded("openai-chat", "gpt-4.1", &request);
    expect![[r#"{"model":"gpt-4.1","max_completion_tokens":1024,"temperature":0.0,"store":false,"tools":[{"type":"function","function":{"name":"weather","description":"The weather of a city.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}],"messages":[{"role":"system","content":"Be short."},{"role":"user","content":"Weather?"},{"role":"assistant","content":"Let me look.","tool_calls":[{"id":"call_a","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}},{"id":"provisional_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}}]},{"role":"tool","content":"rain","tool_call_id":"call_a"},{"role":"tool","content":"{\"success\":false,\"error\":\"No such city.\"}","tool_call_id":"provisional_1"},{"role":"assistant","content":"Rain."},{"role":"user","content":"Thanks."}]}"#]]
        .assert_eq(&body.to_string());
    assert!(losses.is_empty(), "{losses:?}");
    let streamed = chat("openai-chat", "gpt-4.1")
        .encode(&request, true)
        .unwrap();
    let streamed: Value = serde_json::from_slice(&streamed.body).unwrap();
    assert_eq!(
        (&streamed["stream"], &streamed["stream_options"]),
        (&json!(true), &json!({"include_usage": true}))
    );
}

#[test]
fn a_longer_transcript_begins_like_the_shorter_one() {
    let bytes = |count: usize| {
        let messages = conversation().into_iter().take(count).collect();
        let request = GenerateRequest {
            tools: vec![tool()].into(),
            ..GenerateRequest::new(messages)
        };
        chat("openai-chat", "gpt-4.1")
            .encode(&request, true)
            .unwrap()
            .body
    };
    for count in 1..conversation().len() {
        // All but the brackets that close it.
        let shorter = bytes(count);
        assert!(
            bytes(count + 1).starts_with(&shorter[..shorter.len() - 2]),
            "{count}"
        );
        assert_eq!(shorter, bytes(count));
    }
}

#[test]
fn settings_go_out_under_each_servers_names() {
    let config = GenerationConfig {
        max_tokens: Some(MaxTokens::new(50).unwrap()),
        ..GenerationConfig::default()
    };
    let request = GenerateRequest {
        config,
        ..GenerateRequest::new(vec![Message::user("?").unwrap()])
    };
    let settings = |row: &str, model: &str| {
        let (body, losses) = encoded(row, model, &request);
        let body: Vec<String> = body
            .as_object()
            .unwrap()
            .iter()
            .filter(|(name, _)| !["model", "messages"].contains(&name.as_str()))
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        format!("{} {losses:?}", body.join(" "))
    };
    expect![[r#"max_completion_tokens=25050 store=false ["max_tokens 50 was sent as 25050: the vendor counts thinking inside it"]"#]].assert_eq(&settings("openai-chat", "gpt-5.6"));
    expect!["max_tokens=50 []"].assert_eq(&settings("together", "meta-llama/Llama-4"));
    expect![[r#"max_tokens=16434 temperature=0.0 ["max_tokens 50 was sent as 16434: the vendor counts thinking inside it"]"#]].assert_eq(&settings("vllm", "Qwen/Qwen3-8B"));
    expect![[r#"max_completion_tokens=16434 ["max_tokens 50 was sent as 16434: the vendor counts thinking inside it"]"#]].assert_eq(&settings("moonshot", "kimi-k2.6"));
    let explicit = |row: &str, model: &str, top_k: bool| {
        let config = GenerationConfig {
            temperature: Some(Temperature::new(0.5).unwrap()),
            top_k: top_k.then(|| TopK::new(3).unwrap()),
            ..GenerationConfig::default()
        };
        line(
            &chat(row, model)
                .encode(
                    &GenerateRequest {
                        config,
                        ..request.clone()
                    },
                    false,
                )
                .map(|_| decoded(row, WHOLE).unwrap()),
        )
    };
    assert!(explicit("openai-chat", "o3", false).starts_with("bad_request: openai-chat rejected the request: openai-chat/o3 does not take temperature; leave GenerationConfig::temperature (llm.temperature) unset"));
    assert!(explicit("openai-chat", "gpt-4.1", true).contains("GenerationConfig::top_k"));
    assert!(explicit("llama-cpp", "any", true).starts_with("ToolCalls"));
}

#[test]
fn a_model_nobody_knows_gets_room_and_no_temperature_behind_a_gateway() {
    let request = GenerateRequest::new(vec![Message::user("?").unwrap()]);
    let sent = |row: &str, model: &str| {
        let body = body(row, model, &request);
        let tokens = ["max_tokens", "max_completion_tokens"]
            .iter()
            .find_map(|name| body[*name].as_u64());
        (tokens.unwrap(), body["temperature"].as_f64())
    };
    for (row, model) in [
        ("openrouter", "google/gemini-3.8-flash"),
        ("azure", "prod-chat"),
        ("together", "meta-llama/Llama-4"),
        ("mistral", "mistral-large-latest"),
        ("xai", "grok-4.7"),
        ("nvidia", "nemotron"),
        ("openai-compatible", "any"),
    ] {
        assert_eq!(sent(row, model), (16_384, None), "{row}/{model}");
    }
    // What is known stays as it is, and so does what is at home or counts the bound against a
    // minute's tokens.
    for (row, model, expected) in [
        ("openrouter", "qwen/qwen3-32b", 1_024 + 16_384),
        ("azure", "gpt-4.1", 1_024),
        ("deepseek", "deepseek-chat", 1_024),
        ("vllm", "any", 1_024),
        ("groq", "llama-3.3-70b-versatile", 1_024),
    ] {
        assert_eq!(sent(row, model), (expected, Some(0.0)), "{row}/{model}");
    }
}

#[test]
fn the_newest_models_take_functions_without_thinking_only() {
    let request = GenerateRequest {
        tools: vec![tool()].into(),
        ..GenerateRequest::new(conversation())
    };
    let (body, losses) = encoded("openai-chat", "gpt-5.6", &request);
    assert_eq!(body["reasoning_effort"], "none");
    assert!(
        losses
            .iter()
            .any(|loss| loss.starts_with("thinking was switched off")),
        "{losses:?}"
    );
    assert_eq!(
        self::body("openai-chat", "gpt-5.4", &request).get("reasoning_effort"),
        None
    );
    for (row, words) in [
        ("openai-chat", "use the Responses API: openai/gpt-6-astra"),
        (
            "azure",
            "with OPENAI_BASE_URL=https://RESOURCE.openai.azure.com/openai/v1",
        ),
    ] {
        let error = chat(row, "gpt-6-astra")
            .encode(&request, false)
            .unwrap_err();
        assert!(
            error.code() == "bad_request" && error.to_string().contains(words),
            "{error}"
        );
        let talk = GenerateRequest {
            tools: Vec::new().into(),
            ..request.clone()
        };
        assert_eq!(
            self::body(row, "gpt-6-astra", &talk).get("reasoning_effort"),
            None
        );
    }
    let verbatim = GenerationConfig {
        verbatim: true,
        ..GenerationConfig::default()
    };
    let (body, losses) = encoded(
        "openai-chat",
        "gpt-5.6",
        &GenerateRequest {
            config: verbatim,
            ..request
        },
    );
    assert_eq!(
        (
            body.get("reasoning_effort"),
            body.get("max_completion_tokens"),
            losses.len()
        ),
        (None, None, 0)
    );
}

#[test]
fn a_response_schema_goes_out_where_it_is_kept_to() {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let request = |schema: Value, tools: Vec<ToolDefinition>| GenerateRequest {
        response_schema: Some(schema),
        tools: tools.into(),
        ..GenerateRequest::new(vec![Message::user("?").unwrap()])
    };
    let format = body(
        "openai-chat",
        "gpt-4.1",
        &request(schema.clone(), vec![tool()]),
    )["response_format"]
        .clone();
    expect![[r#"{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}}}"#]].assert_eq(&format.to_string());
    for (row, schema, tools) in [
        ("groq", schema.clone(), vec![]),
        ("llama-cpp", schema, vec![tool()]),
        ("openai-chat", json!({"type": "array"}), vec![]),
    ] {
        let error = chat(row, "m")
            .encode(&request(schema, tools), false)
            .unwrap_err();
        assert_eq!(error.code(), "bad_request", "{row}");
    }
}

#[test]
fn pictures_go_out_as_addresses() {
    let png = ImageSource::Base64 {
        media_type: "image/png".into(),
        data: "AAAA".into(),
    };
    let parts = vec![
        Part::ours(Content::Text {
            text: "What?".into(),
        }),
        Part::ours(Content::Image { source: png }),
        Part::ours(Content::Image {
            source: ImageSource::Url("https://a.example/cat.png".into()),
        }),
    ];
    let request = GenerateRequest::new(vec![
        Message::new(adjutant_core::Role::User, parts).unwrap(),
    ]);
    expect![[r#"[{"type":"text","text":"What?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"image_url","image_url":{"url":"https://a.example/cat.png"}}]"#]]
        .assert_eq(&body("openai-chat", "gpt-4o", &request)["messages"][0]["content"].to_string());
    let error = chat("deepseek", "deepseek-v4-pro")
        .encode(&request, false)
        .unwrap_err();
    assert!(
        error.to_string().contains("does not take images"),
        "{error}"
    );
}

#[test]
fn what_another_model_said_becomes_plain_and_ids_fit() {
    let state = |data: Value| {
        Some(ProviderState {
            origin: ModelId::new("anthropic", "claude").unwrap(),
            data,
        })
    };
    let foreign = call(0, Some("toolu_01A09q90qw90lq917835lq9aaaaaaaaaaaaaaaaaa"));
    let id: CallId = foreign.id.clone();
    let broken = ToolCall::from_json_text(1, None, "weather".into(), "{\"city");
    let broken_id = broken.id.clone();
    let messages = vec![
        Message::user("?").unwrap(),
        Message::assistant(vec![
            Part::from_provider(
                Content::Thinking { text: "Hm.".into() },
                state(json!({"signature": "s"})),
            ),
            Part::from_provider(
                Content::Opaque {
                    kind: "web_search".into(),
                },
                state(json!({"x": 1})),
            ),
            Part::from_provider(Content::Refusal { text: "No.".into() }, None),
            Part::from_provider(Content::ToolCall(foreign), state(json!({}))),
            Part::from_provider(Content::ToolCall(broken), state(json!({}))),
        ])
        .unwrap(),
        Message::tool(id, "weather", ToolResult::ok(json!({"seen": true}))).unwrap(),
        Message::tool(broken_id, "weather", ToolResult::failed("Not JSON.")).unwrap(),
    ];
    let request = GenerateRequest::new(messages);
    let (body, losses) = encoded("mistral", "mistral-large-latest", &request);
    let ids = |body: &Value| {
        let calls = body["messages"][1]["tool_calls"]
            .as_array()
            .unwrap()
            .clone();
        let results = [&body["messages"][2], &body["messages"][3]];
        let sent: Vec<String> = calls
            .iter()
            .map(|call| call["id"].as_str().unwrap().to_owned())
            .collect();
        let answered: Vec<String> = results
            .map(|result| result["tool_call_id"].as_str().unwrap().to_owned())
            .into();
        assert_eq!(sent, answered);
        sent
    };
    assert!(ids(&body).iter().all(|id| id.len() == 9), "{body}");
    assert_eq!(body["messages"][1]["content"], "No.");
    assert_eq!(
        body["messages"][1]["tool_calls"][1]["function"]["arguments"],
        "{}"
    );
    expect![[r#"["state of anthropic/claude on thinking was left out", "thinking of another model was left out", "web_search was left out: Chat Completions does not take it back", "arguments that are no JSON object were sent as an empty one"]"#]]
        .assert_eq(&format!("{losses:?}"));
    let openai = self::body("openai-chat", "gpt-4.1", &request);
    assert_eq!(openai["messages"][1]["refusal"], "No.");
    assert_eq!(ids(&openai), ["provisional_0", "provisional_1"]);
    // A message of which nothing can be said again is not said.
    let silent = vec![Part::from_provider(
        Content::Thinking { text: "Hm.".into() },
        state(json!({})),
    )];
    let request = GenerateRequest::new(vec![
        Message::user("?").unwrap(),
        Message::assistant(silent).unwrap(),
    ]);
    assert_eq!(
        self::body("openai-chat", "gpt-4.1", &request)["messages"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

proptest! {
    #[test]
    fn no_bytes_break_it(bytes in proptest::collection::vec(any::<u8>(), 0..300), size in 1usize..9) {
        let _ = streamed_bytes("openrouter", &bytes, size);
    }

    #[test]
    fn no_events_break_it_and_the_cuts_do_not_matter(
        events in proptest::collection::vec(event(), 0..8),
        size in 1usize..40,
    ) {
        let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        let whole = streamed_bytes("openrouter", stream.as_bytes(), usize::MAX);
        prop_assert_eq!(streamed_bytes("openrouter", stream.as_bytes(), size), whole);
    }
}

/// Chunks with any value where this language has one.
fn event() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0u64..3).prop_map(Value::from),
        "[a-z{}\":\\[\\]]{0,4}".prop_map(Value::from),
        Just(json!("stop")),
        Just(json!("tool_calls")),
        Just(json!([{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Yes."}])),
        Just(json!([{"type": "reasoning.text", "text": "Hm.", "index": 0}])),
    ];
    let call = proptest::collection::vec(leaf.clone(), 5).prop_map(|mut values| {
        let mut next = || values.pop().unwrap();
        json!({"index": next(), "id": next(), "function": {"name": next(), "arguments": next()}, "extra_content": next()})
    });
    let calls = proptest::collection::vec(call, 0..3);
    (proptest::collection::vec(leaf, 9), calls).prop_map(|(mut values, calls)| {
        let mut next = || values.pop().unwrap();
        let delta = json!({"content": next(), "refusal": next(), "reasoning": next(), "reasoning_details": next(), "tool_calls": calls});
        json!({"choices": [{"index": next(), "delta": delta, "finish_reason": next()}], "usage": next(), "model": next(), "error": next()})
    })
}
