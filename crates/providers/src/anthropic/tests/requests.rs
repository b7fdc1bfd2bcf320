//! Tests of requests: encoding, and configurations that are refused.

use super::*;

fn conversation(turns: usize) -> GenerateRequest {
    let mut messages = vec![
        Message::system("Be brief.").unwrap(),
        Message::user("Look at everything.").unwrap(),
    ];
    for turn in 0..turns {
        let calls = ["a", "b"].map(|name| {
            let mut call = ToolCall::from_json_text(
                0,
                Some(format!("toolu_{turn}{name}")),
                "look".into(),
                "{\"at\": 1}",
            );
            call.id = adjutant_core::CallId::new(format!("call_{turn}{name}")).unwrap();
            call
        });
        let state = || {
            Some(ProviderState {
                origin: vendor(OLD).model.clone(),
                data: json!({}),
            })
        };
        let parts = calls
            .clone()
            .map(|call| Part::from_provider(Content::ToolCall(call), state()));
        messages.push(Message::assistant(parts.to_vec()).unwrap());
        let [first, second] = calls;
        messages
            .push(Message::tool(first.id, first.name, ToolResult::ok(json!(["seen"]))).unwrap());
        messages.push(Message::tool(second.id, second.name, ToolResult::failed("Dark.")).unwrap());
        messages.push(Message::user(format!("And {turn}?")).unwrap());
    }
    let parameters = json!({"type": "object", "properties": {"at": {"type": "integer"}}, "additionalProperties": false});
    let mut request = GenerateRequest::new(messages);
    request.tools = vec![
        ToolDefinition::new("look", "Looks.", parameters).unwrap(),
        ToolDefinition::new(
            "nothing",
            "Does nothing.",
            json!({"type": "object", "properties": {}}),
        )
        .unwrap(),
    ]
    .into();
    request
}

#[test]
fn a_whole_conversation() {
    let (body, losses) = encoded(&conversation(1), OLD);
    expect![[r#"
        {
          "model": "claude-sonnet-4-5",
          "max_tokens": 1024,
          "temperature": 0.0,
          "cache_control": {
            "type": "ephemeral"
          },
          "tools": [
            {
              "name": "look",
              "description": "Looks.",
              "input_schema": {
                "type": "object",
                "properties": {
                  "at": {
                    "type": "integer"
                  }
                },
                "additionalProperties": false
              }
            },
            {
              "name": "nothing",
              "description": "Does nothing.",
              "input_schema": {
                "type": "object",
                "properties": {}
              },
              "cache_control": {
                "type": "ephemeral"
              }
            }
          ],
          "system": [
            {
              "type": "text",
              "text": "Be brief.",
              "cache_control": {
                "type": "ephemeral"
              }
            }
          ],
          "messages": [
            {
              "role": "user",
              "content": [
                {
                  "type": "text",
                  "text": "Look at everything."
                }
              ]
            },
            {
              "role": "assistant",
              "content": [
                {
                  "type": "tool_use",
                  "id": "toolu_0a",
                  "name": "look",
                  "input": {
                    "at": 1
                  }
                },
                {
                  "type": "tool_use",
                  "id": "toolu_0b",
                  "name": "look",
                  "input": {
                    "at": 1
                  }
                }
              ]
            },
            {
              "role": "user",
              "content": [
                {
                  "type": "tool_result",
                  "tool_use_id": "toolu_0a",
                  "content": "{\"success\":true,\"data\":[\"seen\"]}"
                },
                {
                  "type": "tool_result",
                  "tool_use_id": "toolu_0b",
                  "content": "{\"success\":false,\"error\":\"Dark.\"}",
                  "is_error": true
                },
                {
                  "type": "text",
                  "text": "And 0?"
                }
              ]
            }
          ]
        }
    "#]]
    .assert_eq(&format!("{body:#}\n{}", losses.join("\n")));
}

#[test]
fn requests_of_a_conversation_begin_with_the_same_bytes() {
    let bytes = |turns: usize| {
        let model = model_id("anthropic", OLD).unwrap();
        let encoded =
            request::encode(&conversation(turns), &model, &family::for_model(OLD), true).unwrap();
        String::from_utf8(encoded.body.to_vec()).unwrap()
    };
    for turns in 0..4 {
        let (before, after) = (bytes(turns), bytes(turns + 1));
        // All but the brackets that close the last message, the list of messages, and the request.
        let common = before.strip_suffix("]}]}").unwrap();
        assert!(after.starts_with(common), "{before}\n{after}");
    }
    // Tools, instruction and the end of the history, of the four the vendor allows; none where
    // nothing is to be added.
    assert_eq!(bytes(2).matches("cache_control").count(), 3);
    let mut verbatim = conversation(2);
    verbatim.config.verbatim = true;
    let (body, losses) = encoded(&verbatim, OLD);
    assert!(!body.to_string().contains("cache_control"));
    assert_eq!(
        (
            body["max_tokens"].as_u64(),
            body.get("temperature"),
            losses.len()
        ),
        (Some(1024), None, 0)
    );
}

#[test]
fn settings() {
    let mut request = GenerateRequest::new(vec![Message::user("?").unwrap()]);
    let settings = |request: &GenerateRequest, model: &str| {
        let (mut body, losses) = encoded(request, model);
        for name in ["model", "messages", "cache_control"] {
            body.as_object_mut().unwrap().shift_remove(name);
        }
        format!("{body} {losses:?}")
    };
    let refused = |request: &GenerateRequest, model: &str| {
        let model = model_id("anthropic", model).unwrap();
        request::encode(request, &model, &family::for_model(&model.name), false)
            .unwrap_err()
            .to_string()
    };
    expect![[r#"{"max_tokens":1024,"temperature":0.0} []"#]].assert_eq(&settings(&request, OLD));
    expect![[r#"{"max_tokens":17408} []"#]].assert_eq(&settings(&request, DEFAULT_MODEL));
    request.config.top_p = Some(TopP::new(0.9).unwrap());
    request.config.top_k = Some(TopK::new(40).unwrap());
    request.config.max_tokens = Some(MaxTokens::new(5_000).unwrap());
    expect![[r#"{"max_tokens":5000,"top_p":0.9,"top_k":40} []"#]]
        .assert_eq(&settings(&request, OLD));
    expect!["anthropic rejected the request: anthropic/claude-sonnet-5-5 does not take top_p; leave GenerationConfig::top_p (llm.top_p) unset, or set GenerationConfig::drop_unsupported to have it left out"].assert_eq(&refused(&request, DEFAULT_MODEL));
    request.config.temperature = Some(Temperature::new(1.5).unwrap());
    expect!["anthropic rejected the request: anthropic/claude-sonnet-4-5 does not take a temperature above 1; set GenerationConfig::temperature (llm.temperature) to 1 or less, or set GenerationConfig::drop_unsupported to have it left out"].assert_eq(&refused(&request, OLD));
    request.config.drop_unsupported = true;
    expect![[r#"{"max_tokens":5000,"top_p":0.9,"top_k":40} ["a temperature above 1 was left out: anthropic/claude-sonnet-4-5 does not take it"]"#]].assert_eq(&settings(&request, OLD));
    request.config.verbatim = true;
    expect![[r#"{"max_tokens":5000,"temperature":1.5,"top_p":0.9,"top_k":40} []"#]]
        .assert_eq(&settings(&request, DEFAULT_MODEL));
}

#[test]
fn a_response_schema_is_enforced_where_it_can_be() {
    let mut request = conversation(0);
    request.response_schema = Some(
        json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}, "required": ["a"]}),
    );
    let (body, losses) = encoded(&request, DEFAULT_MODEL);
    expect![[r#"{"format":{"type":"json_schema","schema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}}} Some("the response schema was sent without minLength")"#]].assert_eq(&format!("{} {:?}", body["output_config"], losses.first()));
    let refused = |request: &GenerateRequest, model: &str| {
        let model = model_id("anthropic", model).unwrap();
        request::encode(request, &model, &family::for_model(&model.name), false)
            .unwrap_err()
            .to_string()
    };
    expect!["anthropic rejected the request: anthropic/claude-3-5-haiku-latest does not take a response schema; ask for the form in words, or set GenerationConfig::drop_unsupported to have it left out"].assert_eq(&refused(&request, "claude-3-5-haiku-latest"));
    request.response_schema = Some(json!({"type": "array", "items": {"$ref": "#"}}));
    let (body, losses) = encoded(&request, DEFAULT_MODEL);
    expect![[r##"null [{"type":"text","text":"Be brief."},{"type":"text","text":"Answer with one JSON value that fits this JSON Schema, and nothing else:\n{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}","cache_control":{"type":"ephemeral"}}] Some("the response schema was asked for in words: it refers to itself")"##]].assert_eq(&format!("{} {} {:?}", body["output_config"], body["system"], losses.first()));
}

#[test]
fn images() {
    let image = |source| Part::ours(Content::Image { source });
    let parts = vec![
        image(ImageSource::Base64 {
            media_type: "image/png".into(),
            data: "AAAA".into(),
        }),
        image(ImageSource::Url("https://example.com/a.jpg".into())),
        image(ImageSource::Url("data:image/gif;base64,BBBB".into())),
    ];
    let (body, _) = encoded(
        &GenerateRequest::new(vec![Message::new(Role::User, parts).unwrap()]),
        OLD,
    );
    expect![[r#"[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"image","source":{"type":"url","url":"https://example.com/a.jpg"}},{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"BBBB"}}]"#]].assert_eq(&body["messages"][0]["content"].to_string());
    let bitmap = vec![image(ImageSource::Base64 {
        media_type: "image/bmp".into(),
        data: "AAAA".into(),
    })];
    let request = GenerateRequest::new(vec![Message::new(Role::User, bitmap).unwrap()]);
    let error =
        request::encode(&request, &vendor(OLD).model, &family::for_model(OLD), false).unwrap_err();
    expect!["anthropic rejected the request: anthropic/claude-sonnet-4-5 does not take image/bmp images; make it a JPEG, PNG, GIF or WebP, or set GenerationConfig::drop_unsupported to have it left out"].assert_eq(&error.to_string());
}

#[test]
fn what_the_vendor_would_refuse_is_not_sent() {
    let text = |text: &str| Part::ours(Content::Text { text: text.into() });
    let call = |id: &str, provider_id: Option<&str>, name: &str| {
        let mut call = ToolCall::from_json_text(0, provider_id.map(str::to_owned), name.into(), "");
        call.id = adjutant_core::CallId::new(id).unwrap();
        Part::ours(Content::ToolCall(call))
    };
    let result = |id: &str| {
        Message::tool(
            adjutant_core::CallId::new(id).unwrap(),
            "x",
            ToolResult::verbatim(json!("")),
        )
        .unwrap()
    };
    let request = GenerateRequest::new(vec![
        Message::user("One.").unwrap(),
        Message::user("Two.").unwrap(),
        Message::system("Late.").unwrap(),
        // Ids of others: one that fits, the same again, one that does not; a name that does not.
        Message::assistant(vec![
            text(" \n"),
            call("call_1", Some("call_0"), "a"),
            call("call_2", Some("call_0"), "a.b"),
            call("call_3", Some("fc:ä"), ""),
        ])
        .unwrap(),
        result("call_2"),
        result("call_1"),
        result("call_3"),
        Message::assistant(vec![text("Begun \n")]).unwrap(),
    ]);
    let (body, losses) = encoded(&request, OLD);
    expect![[r#"
        [{"type":"text","text":"Late.","cache_control":{"type":"ephemeral"}}]
        [
          {
            "role": "user",
            "content": [
              {
                "type": "text",
                "text": "One."
              },
              {
                "type": "text",
                "text": "Two."
              }
            ]
          },
          {
            "role": "assistant",
            "content": [
              {
                "type": "tool_use",
                "id": "call_0",
                "name": "a",
                "input": {}
              },
              {
                "type": "tool_use",
                "id": "call_2",
                "name": "a_b",
                "input": {}
              },
              {
                "type": "tool_use",
                "id": "call_3",
                "name": "_",
                "input": {}
              }
            ]
          },
          {
            "role": "user",
            "content": [
              {
                "type": "tool_result",
                "tool_use_id": "call_2"
              },
              {
                "type": "tool_result",
                "tool_use_id": "call_0"
              },
              {
                "type": "tool_result",
                "tool_use_id": "call_3"
              }
            ]
          },
          {
            "role": "assistant",
            "content": [
              {
                "type": "text",
                "text": "Begun"
              }
            ]
          }
        ]
        [
            "a system message in the middle was moved to the instruction at the beginning",
            "a call of \"a.b\" was sent as a_b: the vendor refuses such a name",
            "a call of \"\" was sent as _: the vendor refuses such a name",
        ]"#]]
    .assert_eq(&format!(
        "{}\n{:#}\n{losses:#?}",
        body["system"], body["messages"]
    ));
    let only_system = GenerateRequest::new(vec![Message::system("x").unwrap()]);
    let error = request::encode(
        &only_system,
        &vendor(OLD).model,
        &family::for_model(OLD),
        false,
    )
    .unwrap_err();
    assert_eq!(error.code(), "bad_request");
}

#[test]
fn a_system_message_in_the_middle_stays_where_a_model_takes_it() {
    let system = |text: &str| Message::system(text).unwrap();
    let user = |text: &str| Message::user(text).unwrap();
    let assistant = |text: &str| {
        Message::assistant(vec![Part::ours(Content::Text { text: text.into() })]).unwrap()
    };
    // The roles of the messages, the texts of each, and the instruction.
    let sent = |messages: Vec<Message>, model: &str| {
        let (body, losses) = encoded(&GenerateRequest::new(messages), model);
        let texts = |blocks: &Value| {
            let texts = blocks.as_array().unwrap().iter();
            let texts: Vec<&str> = texts.map(|block| block["text"].as_str().unwrap()).collect();
            texts.join("+")
        };
        let turns = body["messages"].as_array().unwrap().iter();
        let turns: Vec<String> = turns
            .map(|turn| {
                format!(
                    "{}:{}",
                    turn["role"].as_str().unwrap(),
                    texts(&turn["content"])
                )
            })
            .collect();
        (texts(&body["system"]), turns.join(" "), losses.len())
    };
    let middle = || {
        vec![
            system("I"),
            user("1"),
            system("S"),
            assistant("2"),
            user("3"),
            system("T"),
        ]
    };
    let stays = |system: &str, turns: &str, losses| (system.to_owned(), turns.to_owned(), losses);
    assert_eq!(
        sent(middle(), DEFAULT_MODEL),
        stays("I", "user:1 system:S assistant:2 user:3 system:T", 0)
    );
    // Older models, and those at clouds without it.
    for model in [OLD, "us.anthropic.claude-opus-5-v1:0"] {
        assert_eq!(
            sent(middle(), model),
            stays("I+S+T", "user:1 assistant:2 user:3", 1)
        );
    }
    // The vendor wants it behind a user's turn: the nearest such place is behind the next message.
    let between = vec![
        system("I"),
        user("1"),
        assistant("2"),
        system("S"),
        user("3"),
    ];
    assert_eq!(
        sent(between, DEFAULT_MODEL),
        stays("I", "user:1 assistant:2 user:3 system:S", 1)
    );
    let last = vec![system("I"), user("1"), assistant("2"), system("S")];
    assert_eq!(
        sent(last, DEFAULT_MODEL),
        stays("I+S", "user:1 assistant:2", 1)
    );
}

#[test]
fn a_configuration_that_cannot_work_is_refused() {
    let transport = Transport::new().unwrap();
    let connection = || Connection::new(transport.clone()).with_key("secret-key".to_owned().into());
    assert_eq!(
        model("m", Connection::new(transport.clone()))
            .unwrap_err()
            .code(),
        "auth"
    );
    assert_eq!(model(" ", connection()).unwrap_err().code(), "bad_request");
    let file = Connection {
        base_url: Some("file:///x".parse().unwrap()),
        ..connection()
    };
    assert_eq!(model("m", file).unwrap_err().code(), "bad_request");
    let model = model(DEFAULT_MODEL, connection()).unwrap();
    assert!(!format!("{model:?}").contains("secret-key"));
}

proptest! {
    /// Whatever comes, cut anywhere: an answer or an error, and the cuts make no difference.
    #[test]
    fn no_bytes_break_the_decoder(
        noise in proptest::collection::vec(any::<u8>(), 0..40),
        order in proptest::collection::vec(0usize..40, 0..40),
        size in 1usize..50,
    ) {
        let all = events(EVERYTHING);
        let mut stream = Vec::new();
        for at in order {
            match all.get(at) {
                Some(event) => stream.extend_from_slice(format!("data: {event}\n\n").as_bytes()),
                None => stream.extend_from_slice(&noise),
            }
        }
        prop_assert_eq!(streamed_bytes(&stream, size), streamed_bytes(&stream, usize::MAX));
        drop(decoded(&String::from_utf8_lossy(&noise)));
    }
}
