//! Tests of requests, and of answers that are sent back in them.

use adjutant_core::{
    CallId, GenerationConfig, ImageSource, MaxTokens, Message, ModelId, Part, ProviderState, Role,
    Temperature, ToolCall, ToolDefinition, ToolResult, TopK,
};

use super::*;

fn encoded(request: &GenerateRequest, model: &str) -> (Value, Vec<String>) {
    let (body, losses) = bytes(request, model).unwrap();
    (serde_json::from_str(&body).unwrap(), losses)
}

fn bytes(request: &GenerateRequest, model: &str) -> Result<(String, Vec<String>), ModelError> {
    let id = PROVIDER.vendor(model, error::parse).unwrap().model;
    let Encoded { body, losses } = request::encode(
        request,
        &id,
        &family::for_model(model),
        &request::Tools::default(),
        false,
    )?;
    Ok((String::from_utf8(body.to_vec()).unwrap(), losses))
}

fn user(text: &str) -> Message {
    Message::user(text).unwrap()
}

/// The answer in a transcript that goes on.
fn going_on(parts: Vec<Part>) -> GenerateRequest {
    let mut messages = vec![user("?")];
    let calls: Vec<ToolCall> = parts
        .iter()
        .filter_map(|part| match &part.content {
            Content::ToolCall(call) => Some(call.clone()),
            _ => None,
        })
        .collect();
    messages.push(Message::assistant(parts).unwrap());
    for call in calls {
        messages.push(Message::tool(call.id, call.name, ToolResult::ok(json!(1))).unwrap());
    }
    messages.push(user("Go on."));
    GenerateRequest::new(messages)
}

/// Decodes an answer, and returns the items in which it is sent back, with the losses.
pub(super) fn sent_back(output: &Value) -> (Vec<Value>, Vec<String>) {
    let response = decoded(&json!({"status": "completed", "output": output}).to_string()).unwrap();
    let (body, losses) = encoded(&going_on(response.parts), MODEL);
    let input = body["input"].as_array().unwrap();
    let answer = input[1..input.len() - 1]
        .iter()
        .filter(|item| item["type"] != "function_call_output");
    let losses = losses
        .into_iter()
        .filter(|loss| !loss.starts_with("temperature") && !loss.starts_with("max_tokens"));
    (answer.cloned().collect(), losses.collect())
}

fn part_of(model: &str, content: Content, data: Value) -> Part {
    let origin = ModelId::new("openai", model).unwrap();
    Part::from_provider(content, Some(ProviderState { origin, data }))
}

#[test]
fn an_answer_goes_back_to_its_model_as_it_came() {
    let answer: Value = serde_json::from_str(EVERYTHING).unwrap();
    let (items, losses) = sent_back(&answer["output"]);
    let mut expected = answer["output"].as_array().unwrap().clone();
    // Null is no value of a reasoning item's content in a request, and an answer's own arguments
    // keep their spelling.
    expected[0].as_object_mut().unwrap().shift_remove("content");
    assert_eq!(items, expected);
    assert!(losses.is_empty(), "{losses:?}");
}

#[test]
fn reasoning_goes_back_only_where_the_vendor_can_take_it() {
    let reasoning = |id: &str, encrypted: Value| json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": encrypted});
    let message = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Hi.", "annotations": []}]});
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "a", "arguments": "{}", "status": "completed"});
    // Nothing the vendor could go on from; what followed may not look as if there was.
    let (items, losses) = sent_back(&json!([reasoning("rs_1", Value::Null), message, call]));
    let mut expected = [message.clone(), call.clone()];
    expected
        .iter_mut()
        .for_each(|item| drop(item.as_object_mut().unwrap().shift_remove("id")));
    assert_eq!(json!(items), json!(expected));
    assert_eq!(
        losses,
        ["reasoning without its encrypted content was left out"]
    );
    // Thought in the open, as other servers do.
    let open = json!({"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]});
    assert_eq!(sent_back(&json!([open, call])).0, [open, call.clone()]);
    // Nothing follows: the answer was cut while it thought, or what followed cannot go back.
    let own = reasoning("rs_1", json!("gAAA"));
    let patch = json!({"type": "apply_patch_call", "id": "ap_1", "call_id": "call_9", "status": "completed", "operation": {"type": "delete_file", "path": "x"}});
    for output in [json!([message, own]), json!([message, own, patch])] {
        let (items, losses) = sent_back(&output);
        assert_eq!(items.len(), 1, "{items:?}");
        assert_eq!(
            losses[0],
            "reasoning that nothing of its model follows was left out"
        );
    }
    // A tool of the vendor's with its answer beside it is whole.
    let answer = json!({"type": "apply_patch_call_output", "id": "apo_1", "call_id": "call_9", "status": "completed", "output": "Done", "created_by": "x"});
    let (items, losses) = sent_back(&json!([own, patch, answer]));
    assert_eq!((items.len(), losses.len()), (3, 0));
    assert_eq!(items[2].get("created_by"), None);
}

#[test]
fn what_a_request_takes_less_of_is_trimmed() {
    let cited = |annotations: Value| json!({"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "x", "annotations": annotations}]});
    let search = |action: Value| json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": action});
    let good = json!({"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 1});
    let (items, losses) = sent_back(&json!([
        search(
            json!({"type": "search", "query": "x", "sources": [{"type": "url", "url": "https://a.example"}, {"type": "api", "name": "w"}]})
        ),
        search(json!(null)),
        cited(json!([good, {"type": "url_citation", "url": "https://a.example"}])),
    ]));
    let known = json!({"type": "search", "query": "x", "sources": [{"type": "url", "url": "https://a.example"}]});
    assert_eq!(items, [search(known), cited(json!([good]))]);
    assert_eq!(
        losses,
        [
            "sources of a search that a request does not take were left out",
            "web_search_call was left out: a request does not take it",
            "annotations that a request does not take were left out",
        ]
    );
}

#[test]
fn what_another_model_said_becomes_plain() {
    let thought = part_of(
        "o3",
        Content::Thinking { text: "Hm.".into() },
        json!({"type": "reasoning", "encrypted_content": "gAAA"}),
    );
    let text = part_of(
        "o3",
        Content::Text { text: "Hi".into() },
        json!({"type": "message", "id": "msg_1", "content": [{"type": "output_text"}]}),
    );
    let more = Part::ours(Content::Text {
        text: " there.".into(),
    });
    let search = part_of(
        "o3",
        Content::Opaque {
            kind: "web_search_call".into(),
        },
        json!({"type": "web_search_call", "id": "ws_1"}),
    );
    let call = ToolCall::from_json_text(0, Some("toolu_1".into()), "a".into(), "{\"x\": 1}");
    let call = part_of(
        "o3",
        Content::ToolCall(call),
        json!({"type": "function_call", "id": "fc_1"}),
    );
    let (body, losses) = encoded(&going_on(vec![thought, text, more, search, call]), MODEL);
    expect![[r#"
        [{"type":"message","role":"user","content":[{"type":"input_text","text":"?"}]},{"type":"message","role":"assistant","content":"Hi there."},{"type":"function_call","call_id":"provisional_0","name":"a","arguments":"{\"x\":1}"},{"type":"function_call_output","call_id":"provisional_0","output":"{\"success\":true,\"data\":1}"},{"type":"message","role":"user","content":[{"type":"input_text","text":"Go on."}]}]
        [
            "state of openai/o3 on thinking was left out",
            "thinking of another model was left out",
            "state of openai/o3 on text was left out",
            "state of openai/o3 on a trace of its own tools was left out",
            "web_search_call of another model was left out",
            "state of openai/o3 on a tool call was left out",
        ]"#]].assert_eq(&format!("{}\n{losses:#?}", body["input"]));
}

#[test]
fn ids_of_calls_fit_and_are_told_apart() {
    let call = |number: usize, provider_id: &str| {
        let call = ToolCall::from_json_text(number, Some(provider_id.into()), "a".into(), "{}");
        vec![
            Message::assistant(vec![Part::ours(Content::ToolCall(call.clone()))]).unwrap(),
            Message::tool(call.id, "a", ToolResult::ok(json!(number))).unwrap(),
        ]
    };
    let messages = [
        vec![user("?")],
        call(0, "call_a"),
        call(1, "call_a"),
        call(2, &"x".repeat(65)),
    ]
    .concat();
    let (body, _) = encoded(&GenerateRequest::new(messages), MODEL);
    let ids: Vec<&str> = body["input"].as_array().unwrap()[1..]
        .iter()
        .map(|item| item["call_id"].as_str().unwrap())
        .collect();
    assert_eq!(
        ids,
        [
            "call_a",
            "call_a",
            "provisional_1",
            "provisional_1",
            "provisional_2",
            "provisional_2"
        ]
    );
    let long = CallId::new("y".repeat(65)).unwrap();
    let mut call = ToolCall::from_json_text(0, None, "a".into(), "{}");
    call.id = long.clone();
    let messages = vec![
        user("?"),
        Message::assistant(vec![Part::ours(Content::ToolCall(call))]).unwrap(),
        Message::tool(long, "a", ToolResult::ok(json!(1))).unwrap(),
    ];
    let (body, _) = encoded(&GenerateRequest::new(messages), MODEL);
    assert_eq!(
        (&body["input"][1]["call_id"], &body["input"][2]["call_id"]),
        (&json!("call_0"), &json!("call_0"))
    );
}

#[test]
fn broken_arguments_go_back_as_the_model_wrote_them() {
    let (items, losses) = sent_back(
        &json!([{"type": "function_call", "call_id": "c", "name": "a", "arguments": "{\"x\": \"Os"}]),
    );
    assert_eq!(
        (items[0]["arguments"].as_str(), losses.len()),
        (Some("{\"x\": \"Os"), 0)
    );
    // Spelling is the model's own as long as it means the same.
    let (items, _) = sent_back(
        &json!([{"type": "function_call", "call_id": "c", "name": "a", "arguments": "{ \"x\": 1.0 }"}]),
    );
    assert_eq!(items[0]["arguments"], "{ \"x\": 1.0 }");
}

fn everything_asked() -> GenerateRequest {
    let tool = ToolDefinition::new("weather", "Tells the weather.", json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": false})).unwrap();
    let picture = |source| Part::ours(Content::Image { source });
    let look = Message::new(
        Role::User,
        vec![
            Part::ours(Content::Text {
                text: "Look.".into(),
            }),
            picture(ImageSource::Base64 {
                media_type: "image/png".into(),
                data: "AAAA".into(),
            }),
            picture(ImageSource::Url("https://a.example/cat.png".into())),
        ],
    )
    .unwrap();
    let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": false});
    GenerateRequest {
        tools: vec![tool].into(),
        response_schema: Some(schema),
        ..GenerateRequest::new(vec![
            Message::system("Be brief.").unwrap(),
            Message::system("Be kind.").unwrap(),
            look,
            Message::system("It is late.").unwrap(),
            user("Well?"),
        ])
    }
}

#[test]
fn a_request_with_everything() {
    let (body, losses) = bytes(&everything_asked(), MODEL).unwrap();
    expect![[r#"
        {"model":"gpt-5.6","store":false,"include":["reasoning.encrypted_content"],"max_output_tokens":26024,"text":{"format":{"type":"json_schema","name":"answer","schema":{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"],"additionalProperties":false},"strict":true}},"tools":[{"type":"function","name":"weather","description":"Tells the weather.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"additionalProperties":false,"required":["city"]},"strict":false}],"instructions":"Be brief.\n\nBe kind.","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Look."},{"type":"input_image","image_url":"data:image/png;base64,AAAA","detail":"auto"},{"type":"input_image","image_url":"https://a.example/cat.png","detail":"auto"}]},{"type":"message","role":"system","content":[{"type":"input_text","text":"It is late."}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"Well?"}]}]}
        []"#]].assert_eq(&format!("{body}\n{losses:#?}"));
    let (body, losses) = encoded(&everything_asked(), "gpt-4o");
    assert_eq!(
        (
            body.get("include"),
            &body["temperature"],
            &body["max_output_tokens"]
        ),
        (None, &json!(0.0), &json!(1024))
    );
    assert!(losses.is_empty(), "{losses:?}");
}

#[test]
fn what_is_left_of_a_message_is_sent_or_nothing() {
    let picture = ImageSource::Base64 {
        media_type: "image/png".into(),
        data: "AAAA".into(),
    };
    let only = Message::new(
        Role::User,
        vec![Part::ours(Content::Image { source: picture })],
    )
    .unwrap();
    let mut request = GenerateRequest::new(vec![only, user("?")]);
    assert!(
        bytes(&request, "o3-mini")
            .unwrap_err()
            .to_string()
            .contains("images")
    );
    request.config.drop_unsupported = true;
    let (body, losses) = encoded(&request, "o3-mini");
    assert_eq!(body["input"].as_array().unwrap().len(), 1);
    assert_eq!(
        losses[0],
        "images was left out: openai/o3-mini does not take it"
    );
    // State that is not an item of ours leaves the words.
    let odd = part_of(MODEL, Content::Text { text: "Hi".into() }, json!({}));
    let (body, _) = encoded(&going_on(vec![odd]), MODEL);
    assert_eq!(
        body["input"][1]["content"],
        json!([{"type": "output_text", "text": "Hi", "annotations": []}])
    );
}

#[test]
fn settings_are_sent_or_are_the_error() {
    let with = |config| GenerateRequest {
        config,
        ..GenerateRequest::new(vec![user("?")])
    };
    let few = GenerationConfig {
        max_tokens: Some(MaxTokens::new(5).unwrap()),
        ..GenerationConfig::default()
    };
    let (body, losses) = encoded(&with(few.clone()), "gpt-4o");
    assert_eq!(body["max_output_tokens"], 16);
    assert_eq!(
        losses,
        ["max_tokens 5 was sent as 16, the least the vendor takes"]
    );
    let (body, losses) = encoded(
        &with(GenerationConfig {
            verbatim: true,
            ..few
        }),
        MODEL,
    );
    assert_eq!(
        (
            &body["max_output_tokens"],
            body.get("temperature"),
            losses.len()
        ),
        (&json!(5), None, 0)
    );
    for (config, setter) in [
        (
            GenerationConfig {
                temperature: Some(Temperature::new(0.5).unwrap()),
                ..GenerationConfig::default()
            },
            "llm.temperature",
        ),
        (
            GenerationConfig {
                top_k: Some(TopK::new(5).unwrap()),
                ..GenerationConfig::default()
            },
            "llm.top_k",
        ),
    ] {
        let error = bytes(&with(config), MODEL).unwrap_err().to_string();
        assert!(error.contains(setter), "{error}");
    }
}

#[test]
fn what_the_vendor_would_refuse_is_not_sent() {
    let only_instruction = GenerateRequest::new(vec![Message::system("Be brief.").unwrap()]);
    assert_eq!(
        bytes(&only_instruction, MODEL).unwrap_err().code(),
        "bad_request"
    );
    let list = GenerateRequest {
        response_schema: Some(json!({"type": "array"})),
        ..GenerateRequest::new(vec![user("?")])
    };
    assert!(
        bytes(&list, MODEL)
            .unwrap_err()
            .to_string()
            .contains("inside an object")
    );
    let schema = GenerateRequest {
        response_schema: Some(json!({"type": "object"})),
        ..GenerateRequest::new(vec![user("?")])
    };
    assert_eq!(bytes(&schema, "gpt-4").unwrap_err().code(), "bad_request");
}

#[test]
fn a_longer_transcript_begins_like_the_shorter_one() {
    let parts = decoded(EVERYTHING).unwrap().parts;
    let longest = GenerateRequest {
        messages: [everything_asked().messages, going_on(parts).messages].concat(),
        ..everything_asked()
    };
    let sent = |count: usize| {
        let request = GenerateRequest {
            messages: longest.messages[..count].to_vec(),
            ..longest.clone()
        };
        bytes(&request, MODEL).unwrap().0
    };
    for count in 3..longest.messages.len() {
        let (shorter, longer) = (sent(count), sent(count + 1));
        assert!(
            longer.starts_with(shorter.strip_suffix("]}").unwrap()),
            "{shorter}\n{longer}"
        );
    }
}

#[test]
fn addresses() {
    let connection = |base: &str| Connection {
        base_url: Some(base.parse().unwrap()),
        ..Connection::new(crate::Transport::new().unwrap()).with_key("k".to_owned().into())
    };
    for base in ["http://a.example", "http://a.example/v1"] {
        assert!(open(&PROVIDER, MODEL, connection(base)).is_ok());
        let url = endpoint(
            &answerer().model.provider,
            &base.parse().unwrap(),
            VERSION,
            &["responses"],
        )
        .unwrap();
        assert_eq!(url.as_str(), "http://a.example/v1/responses");
    }
    let error = open(
        &PROVIDER,
        MODEL,
        Connection::new(crate::Transport::new().unwrap()),
    )
    .unwrap_err();
    assert!(error.to_string().contains("OPENAI_API_KEY"), "{error}");
}
