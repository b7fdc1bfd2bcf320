use adjutant_core::{
    Content, Delta, GenerateRequest, GenerateResponse, GenerationConfig, ImageSource,
    LanguageModel, MaxTokens, Message, ModelError, ModelId, Part, ProviderState, Role, Temperature,
    ToolCall, ToolDefinition, ToolResult, TopK,
};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::chunked_streams::decode_in_chunks;
use crate::decode::{LineDecoder, PromptLength};
use crate::http::Transport;

const MODEL: &str = "qwen3:8b";

fn id() -> ModelId {
    ModelId::new("ollama", MODEL).unwrap()
}

fn tool() -> ToolDefinition {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": true}, "required": ["a"]});
    ToolDefinition::new("add", "Adds.", schema).unwrap()
}

fn info(capabilities: &[&str]) -> ModelInfo {
    ModelInfo {
        capabilities: Some(
            capabilities
                .iter()
                .map(|capability| (*capability).to_owned())
                .collect(),
        ),
        context_length: Some(40_960),
    }
}

fn encoded(
    request: &GenerateRequest,
    options: &OllamaOptions,
    model: Option<&ModelInfo>,
) -> Result<(Value, Vec<String>), ModelError> {
    let encoded = request::encode(
        request,
        &id(),
        &Family::new(options, model),
        options,
        model.map(|_| 4096),
        true,
    )?;
    Ok((
        serde_json::from_slice(&encoded.body).unwrap(),
        encoded.losses,
    ))
}

fn check_request(
    request: &GenerateRequest,
    options: &OllamaOptions,
    model: Option<&ModelInfo>,
    expected: Expect,
) {
    let (body, losses) = encoded(request, options, model).unwrap();
    let losses: String = losses.iter().map(|loss| format!("\n{loss}")).collect();
    expected.assert_eq(&format!("{body}{losses}"));
}

fn question() -> GenerateRequest {
    GenerateRequest::new(vec![Message::user("How are you?").unwrap()])
}

/// A part as this model sent it.
fn own(content: Content) -> Part {
    Part::from_provider(
        content,
        Some(ProviderState {
            origin: id(),
            data: json!({}),
        }),
    )
}

fn conversation() -> GenerateRequest {
    let call = |index, provider_id: Option<&str>, n: i64| {
        let arguments = json!({ "a": n }).to_string();
        ToolCall::from_json_text(
            index,
            provider_id.map(str::to_owned),
            "add".into(),
            &arguments,
        )
    };
    let (first, second) = (call(0, Some("call_1"), 1), call(1, None, 2));
    let answers = |call: &ToolCall, words: &str| {
        Message::tool(call.id.clone(), "add", ToolResult::verbatim(json!(words))).unwrap()
    };
    let results = [answers(&first, "2"), answers(&second, "3")];
    GenerateRequest {
        tools: vec![tool()].into(),
        ..GenerateRequest::new(Vec::from_iter(
            [
                Message::system("Be brief.").unwrap(),
                Message::new(
                    Role::User,
                    vec![
                        Part::ours(Content::Text {
                            text: "What is this?".into(),
                        }),
                        Part::ours(Content::Image {
                            source: ImageSource::Base64 {
                                media_type: "image/png".into(),
                                data: "AAAA".into(),
                            },
                        }),
                    ],
                )
                .unwrap(),
                Message::assistant(vec![
                    own(Content::Thinking { text: "Hm.".into() }),
                    own(Content::Text {
                        text: "I count.".into(),
                    }),
                    own(Content::ToolCall(first)),
                    own(Content::ToolCall(second)),
                ])
                .unwrap(),
            ]
            .into_iter()
            .chain(results),
        ))
    }
}

#[test]
fn a_conversation_in_the_vendors_form() {
    check_request(
        &conversation(),
        &OllamaOptions::default(),
        None,
        expect![[
            r#"{"model":"qwen3:8b","tools":[{"type":"function","function":{"name":"add","description":"Adds.","parameters":{"type":"object","properties":{"a":{"type":"integer"},"b":{}},"required":["a"]}}}],"stream":true,"options":{"num_ctx":32768,"num_predict":1024,"temperature":0.0},"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"What is this?","images":["AAAA"]},{"role":"assistant","content":"I count.","thinking":"Hm.","tool_calls":[{"id":"call_1","function":{"name":"add","arguments":{"a":1}}},{"function":{"name":"add","arguments":{"a":2}}}]},{"role":"tool","content":"2","tool_name":"add","tool_call_id":"call_1"},{"role":"tool","content":"3","tool_name":"add"}]}"#
        ]],
    );
}

#[test]
fn what_the_person_set_goes_out() {
    let config = GenerationConfig {
        temperature: Some(Temperature::new(0.5).unwrap()),
        top_k: Some(TopK::new(20).unwrap()),
        max_tokens: Some(MaxTokens::new(50).unwrap()),
        ..GenerationConfig::default()
    };
    let options = OllamaOptions {
        num_ctx: 4096,
        keep_alive: Some("10m".into()),
        think: Some(Think::High),
        ..OllamaOptions::default()
    };
    check_request(
        &GenerateRequest {
            config,
            ..question()
        },
        &options,
        None,
        expect![[
            r#"{"model":"qwen3:8b","stream":true,"think":"high","keep_alive":"10m","options":{"num_ctx":4096,"num_predict":50,"temperature":0.5,"top_k":20},"messages":[{"role":"user","content":"How are you?"}]}"#
        ]],
    );
    let options = OllamaOptions {
        keep_alive: Some("-1".into()),
        think: Some(Think::Off),
        ..OllamaOptions::default()
    };
    // As given, and the window all the same.
    let verbatim = GenerationConfig {
        verbatim: true,
        ..GenerationConfig::default()
    };
    check_request(
        &GenerateRequest {
            config: verbatim,
            ..question()
        },
        &options,
        None,
        expect![[
            r#"{"model":"qwen3:8b","stream":true,"think":false,"keep_alive":-1,"options":{"num_ctx":32768},"messages":[{"role":"user","content":"How are you?"}]}"#
        ]],
    );
}

#[test]
fn a_prompt_that_may_be_over_the_window_is_not_to_be_cut() {
    let plain = info(&["completion"]);
    let truncate = |length: usize, model: Option<&ModelInfo>| {
        let request = GenerateRequest::new(vec![Message::user("é".repeat(length)).unwrap()]);
        encoded(&request, &OllamaOptions::default(), model)
            .unwrap()
            .0
            .get("truncate")
            .cloned()
    };
    // Two bytes each, and something around the message.
    assert_eq!(truncate(2030, Some(&plain)), None);
    assert_eq!(truncate(2048, Some(&plain)), Some(json!(false)));
    // Nobody knows what server it is.
    assert_eq!(truncate(9000, None), None);
}

#[test]
fn nothing_to_answer_is_an_error() {
    let error = encoded(
        &GenerateRequest::new(Vec::new()),
        &OllamaOptions::default(),
        None,
    )
    .unwrap_err();
    assert!(error.to_string().contains("nothing to answer"), "{error}");
}

#[test]
fn an_answer_that_outgrew_the_window_says_so() {
    let body = |read: u64| json!({"message": {"content": "Fine."}, "done": true, "prompt_eval_count": read, "eval_count": 800});
    let losses = |read| decoded(&body(read).to_string()).unwrap().losses;
    assert_eq!(losses(31_000), Vec::<String>::new());
    assert!(
        losses(32_000)[0].contains("beyond the window of 32768 tokens"),
        "{:?}",
        losses(32_000)
    );
}

#[test]
fn how_to_think_has_words() {
    let words = ["off", "on", "low", "medium", "high", "max"];
    let sent = words.map(|word| Think::of_word(word).unwrap().to_json());
    assert_eq!(
        sent.map(|sent| sent.to_string()),
        [
            "false",
            "true",
            r#""low""#,
            r#""medium""#,
            r#""high""#,
            r#""max""#
        ]
    );
    assert_eq!(Think::of_word("hard"), None);
}

#[test]
fn a_model_that_thinks_gets_room_and_its_own_temperature() {
    check_request(
        &question(),
        &OllamaOptions::default(),
        Some(&info(&["completion", "tools", "thinking"])),
        expect![[
            r#"{"model":"qwen3:8b","stream":true,"options":{"num_ctx":32768,"num_predict":9216},"messages":[{"role":"user","content":"How are you?"}]}"#
        ]],
    );
}

#[test]
fn what_the_model_cannot_do_is_an_error_or_a_loss() {
    let plain = info(&["completion"]);
    let with_tools = GenerateRequest {
        tools: vec![tool()].into(),
        ..question()
    };
    let error = encoded(&with_tools, &OllamaOptions::default(), Some(&plain)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ollama rejected the request: ollama/qwen3:8b does not take tools; choose a model that lists `tools` under \
         `ollama show MODEL`, such as qwen3:8b (ollama pull qwen3:8b), or set GenerationConfig::drop_unsupported to have \
         it left out"
    );
    let config = GenerationConfig {
        drop_unsupported: true,
        ..GenerationConfig::default()
    };
    let (body, losses) = encoded(
        &GenerateRequest {
            config,
            ..with_tools
        },
        &OllamaOptions::default(),
        Some(&plain),
    )
    .unwrap();
    assert_eq!(
        (body.get("tools"), losses[0].as_str()),
        (None, "tools was left out: ollama/qwen3:8b does not take it")
    );
    let error = encoded(
        &conversation(),
        &OllamaOptions::default(),
        Some(&info(&["tools"])),
    )
    .unwrap_err();
    assert!(
        error.to_string().contains("does not take images"),
        "{error}"
    );
    let both = GenerateRequest {
        tools: vec![tool()].into(),
        response_schema: Some(json!({"type": "object"})),
        ..question()
    };
    assert_eq!(
        encoded(&both, &OllamaOptions::default(), None)
            .unwrap_err()
            .code(),
        "bad_request"
    );
    let schema = GenerateRequest {
        tools: Vec::new().into(),
        ..both
    };
    assert_eq!(
        encoded(&schema, &OllamaOptions::default(), None).unwrap().0["format"],
        json!({"type": "object"})
    );
}

#[test]
fn what_another_model_left_is_reported() {
    let other = ProviderState {
        origin: ModelId::new("acme", "m").unwrap(),
        data: json!({}),
    };
    let request = GenerateRequest::new(vec![
        Message::user("?").unwrap(),
        Message::assistant(vec![Part::from_provider(
            Content::Thinking { text: "Hm.".into() },
            Some(other),
        )])
        .unwrap(),
        Message::user("And?").unwrap(),
    ]);
    let (body, losses) = encoded(&request, &OllamaOptions::default(), None).unwrap();
    assert_eq!(body["messages"].as_array().unwrap().len(), 2);
    assert_eq!(
        losses,
        ["thinking was left out: Ollama has no place for it"]
    );
}

fn answer(prompt: PromptLength, tools: Vec<ToolDefinition>) -> PartialAnswer {
    let vendor = Arc::new(vendor::vendor(MODEL).unwrap());
    let window = Window {
        tokens: 32_768,
        counts_all: true,
    };
    PartialAnswer::new(
        vendor,
        &RequestContext {
            tools: tools.into(),
            prompt,
        },
        window,
        Vec::new(),
    )
}

fn decoded(body: &str) -> Result<GenerateResponse, ModelError> {
    answer(PromptLength::default(), vec![tool()]).whole(body)
}

fn streamed(body: &[u8], size: usize) -> (String, Result<GenerateResponse, ModelError>) {
    let stream = Box::new(LineDecoder::new(Box::new(answer(
        PromptLength::default(),
        vec![tool()],
    ))));
    let (deltas, result) = decode_in_chunks(stream, body, size);
    let said = deltas.into_iter().map(|delta| match delta {
        Delta::Text(words) => words,
        Delta::Thinking(_) => String::new(),
        other => format!("{other:?}"),
    });
    (said.collect(), result)
}

fn check_answer(body: &str, expected: Expect) {
    let whole = decoded(body);
    let line = match &whole {
        Ok(response) => {
            let parts = response.parts.iter().map(|part| match &part.content {
                Content::Text { text } => format!("text {text:?}"),
                Content::Thinking { text } => format!("thinking {text:?}"),
                Content::ToolCall(call) => format!(
                    "call {} {} {:?}{}",
                    call.name,
                    json!(call.arguments),
                    call.provider_id,
                    call.malformed
                        .as_ref()
                        .map(|malformed| format!(" {}", malformed.reason))
                        .unwrap_or_default()
                ),
                other => format!("{other:?}"),
            });
            let parts: Vec<String> = parts.collect();
            format!(
                "{:?}: {} {:?}",
                response.finish,
                parts.join(", "),
                response.losses
            )
        }
        Err(error) => format!("{}: {error}", error.code()),
    };
    expected.assert_eq(&line);
    for size in [1, 5, usize::MAX] {
        assert_eq!(streamed(body.as_bytes(), size).1, whole);
    }
}

#[test]
fn answers_in_the_vendors_form() {
    check_answer(
        r#"{"message": {"role": "assistant", "content": "", "thinking": "Hm.", "tool_calls": [{"id": "call_1", "function": {"index": 0, "name": "add", "arguments": {"a": 1}}}, {"function": {"name": "add", "arguments": "{\"a\": 2}"}}, {"function": {"name": "add", "arguments": null}}]}, "done": true, "done_reason": "stop"}"#,
        expect![[
            r#"ToolCalls: thinking "Hm.", call add {"a":1} Some("call_1"), call add {"a":2} None, call add {} None []"#
        ]],
    );
    // No reason (older servers), nulls, a field nobody knows.
    check_answer(
        r#"{"message": {"content": "Fine.", "thinking": null, "tool_calls": null, "mood": 1}, "done": true, "done_reason": null, "eval_count": null}"#,
        expect![[r#"Stop: text "Fine." []"#]],
    );
    check_answer(
        r#"{"message": {"content": "Fi"}, "done": true, "done_reason": "length"}"#,
        expect![[r#"MaxTokens: text "Fi" []"#]],
    );
    check_answer(
        r#"{"message": {"content": ""}, "done": true, "done_reason": "load"}"#,
        expect!["Stop:  []"],
    );
    check_answer(
        r#"{"message": {"content": "", "images": ["AAAA"]}, "done": true}"#,
        expect![[r#"Stop: Opaque { kind: "images" } []"#]],
    );
    check_answer(
        r#"{"message": {"content": "x"}, "done": true, "done_reason": "bored"}"#,
        expect![
            "invalid_response: ollama sent a response we cannot read: done_reason bored, which is no end of an answer we know"
        ],
    );
    check_answer(
        r#"{"message": {"content": "x"}, "done": false}"#,
        expect![[r#"truncated: the answer of ollama ended early: it ended without "done": true"#]],
    );
    check_answer(
        "",
        expect!["truncated: the answer of ollama ended early: it ended before it began"],
    );
    check_answer(
        "[]",
        expect![[
            r#"invalid_response: ollama sent a response we cannot read: invalid length 0, expected struct Reply with 7 elements at line 1 column 2"#
        ]],
    );
}

#[test]
fn calls_and_thinking_that_come_as_text_are_read() {
    check_answer(
        r#"{"message": {"content": "<think>Hm.</think>\n<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}}</tool_call>"}, "done": true, "done_reason": "stop"}"#,
        expect![[
            r#"ToolCalls: thinking "Hm.", call add {"a":1} None ["a call of add came as text and was taken out of it"]"#
        ]],
    );
    check_answer(
        r#"{"message": {"content": "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\""}, "done": true, "done_reason": "length"}"#,
        expect![[
            r#"MaxTokens: call add {} None EOF while parsing an object at line 1 column 33 ["a call of add came as text and was taken out of it"]"#
        ]],
    );
    let line = |words: &str, done: bool| {
        format!("{}\n", json!({"message": {"content": words}, "done": done}))
    };
    let body: String = [
        "Well",
        ".\n<tool",
        "_call>{\"name\": \"add\"",
        ", \"arguments\": {}}",
        "</tool_call>",
    ]
    .iter()
    .map(|words| line(words, false))
    .collect();
    let (said, answer) = streamed((body + &line("", true)).as_bytes(), 3);
    assert_eq!(
        said,
        "Well.\nToolCall { index: 0, name: \"add\", arguments: \"{}\" }"
    );
    assert_eq!(
        answer.unwrap().finish,
        adjutant_core::FinishReason::ToolCalls
    );
}

#[test]
fn an_error_inside_a_200_is_an_error() {
    for (error, expected) in [
        (
            json!("Oops."),
            "server: ollama answered with a failure: Oops.",
        ),
        (
            json!("model \"x\" not found, try pulling it first"),
            "not_found: ollama has no model \"qwen3:8b\": model \"x\" not found, try pulling it first To install it: ollama pull qwen3:8b",
        ),
    ] {
        let begun = r#"{"message": {"content": "Fi"}, "done": false}"#;
        let failed = decoded(&format!("{begun}\n{}", json!({ "error": error }))).unwrap_err();
        assert_eq!(format!("{}: {failed}", failed.code()), expected);
    }
}

#[test]
fn failures_are_named() {
    let check = |status: u16, body: &str, expected: &str| {
        let failed =
            vendor::vendor(MODEL)
                .unwrap()
                .error(status, None, None, error::parse(status, body));
        assert_eq!(format!("{}: {failed}", failed.code()), expected);
    };
    check(
        404,
        r#"{"error": "model 'x' not found"}"#,
        "not_found: ollama has no model \"qwen3:8b\": model 'x' not found To install it: ollama pull qwen3:8b",
    );
    check(
        400,
        r#"{"error": "registry.ollama.ai/library/gemma3:4b does not support tools"}"#,
        "bad_request: ollama rejected the request: registry.ollama.ai/library/gemma3:4b does not support tools. Choose a \
         model that lists `tools` under `ollama show MODEL`.",
    );
    // As reported: the error of the engine behind the server, as text.
    check(
        400,
        r#"{"error": "{\"error\":{\"code\":400,\"message\":\"request (42947 tokens) exceeds the available context size (8192 tokens), try increasing it\",\"type\":\"exceed_context_size_error\",\"n_prompt_tokens\":42947,\"n_ctx\":8192}}"}"#,
        "context_too_long: too long for ollama: request (42947 tokens) exceeds the available context size (8192 tokens), \
         try increasing it (exceed_context_size_error). Raise OllamaOptions::num_ctx (ollama.context_size), or send less.",
    );
    check(
        429,
        r#"{"error": "you've reached your weekly usage limit"}"#,
        "quota: ollama: quota exhausted: you've reached your weekly usage limit",
    );
    check(
        500,
        r#"{"error": "model requires more system memory (12.3 GiB) than is available (4.5 GiB)"}"#,
        "bad_request: ollama rejected the request: model requires more system memory (12.3 GiB) than is available (4.5 GiB). \
         Choose a smaller model, or a smaller OllamaOptions::num_ctx (ollama.context_size).",
    );
    // A 404 of Ollama's is text under `error`; llama.cpp's own server and a router's have other
    // forms.
    for body in [
        r#"{"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}}"#,
        r#"{"detail": "File Not Found"}"#,
        "File Not Found",
    ] {
        let failed = vendor::vendor(MODEL)
            .unwrap()
            .error(404, None, None, error::parse(404, body));
        assert_eq!(failed.code(), "bad_request");
        let words = failed.to_string();
        assert!(
            words.contains("does not answer as an Ollama server does")
                && words.contains("File Not Found"),
            "{words}"
        );
    }
    check(429, "{}", "rate_limit: rate limited by ollama");
    check(
        500,
        "<html>",
        "server: ollama failed (HTTP 500): HTTP 500 without an explanation",
    );
}

#[test]
fn a_prompt_that_was_cut_is_an_error() {
    let prompt = PromptLength {
        chars: 200_000,
        tokens_min: 38_000,
    };
    let body = r#"{"message": {"content": "Fine."}, "done": true, "prompt_eval_count": 16386}"#;
    let error = answer(prompt, Vec::new()).whole(body).unwrap_err();
    assert_eq!(error.code(), "context_too_long");
    assert!(
        error
            .to_string()
            .contains("read 16386 tokens of a prompt of about 50000")
            && error.to_string().contains("num_ctx is 32768"),
        "{error}"
    );
    let whole = r#"{"message": {"content": "Fine."}, "done": true}"#;
    assert!(answer(prompt, Vec::new()).whole(whole).is_ok());
}

#[test]
fn what_leaves_the_machine_is_not_local() {
    let local = |name: &str, base: Option<&str>| {
        let base_url = base.map(|url| url.parse().unwrap());
        let connection = Connection {
            base_url,
            ..Connection::new(Transport::new().unwrap())
        };
        let capabilities = model(name, connection).unwrap().capabilities().clone();
        assert_eq!(capabilities.context_window, 32_768);
        (capabilities.local, capabilities.self_hosted)
    };
    assert_eq!(local("qwen3:8b", None), (true, true));
    assert_eq!(local("gpt-oss:120b-cloud", None), (false, false));
    assert_eq!(
        local("qwen3:8b", Some("http://192.168.1.5:11434")),
        (false, true)
    );
    assert_eq!(
        local("qwen3:8b", Some("https://ollama.com")),
        (false, false)
    );
    let zero = OllamaOptions {
        num_ctx: 0,
        ..OllamaOptions::default()
    };
    let error = model_with("m", Connection::new(Transport::new().unwrap()), zero).unwrap_err();
    assert!(
        error.to_string().contains("OllamaOptions::num_ctx"),
        "{error}"
    );
}

#[test]
fn the_api_has_one_address() {
    let provider = id().provider;
    for (base, expected) in [
        ("http://localhost:11434", "http://localhost:11434/api/chat"),
        (
            "http://localhost:11434/v1/",
            "http://localhost:11434/api/chat",
        ),
        (
            "http://localhost:11434/api",
            "http://localhost:11434/api/chat",
        ),
        ("https://a.example/x", "https://a.example/x/api/chat"),
    ] {
        let url = server::endpoint(&provider, &base.parse().unwrap(), "chat").unwrap();
        assert_eq!(url.as_str(), expected);
    }
}

proptest! {
    /// Whatever comes, cut wherever: an answer or an error, and the same one.
    #[test]
    fn nothing_makes_it_panic(
        lines in proptest::collection::vec(
            prop_oneof![
                "[ -~]{0,40}",
                Just(r#"{"message": {"content": "<tool_call>{\"name\": \"add\""}, "done": false}"#.to_owned()),
                Just(r#"{"message": {"content": "</tool_call>", "thinking": "ä"}}"#.to_owned()),
                Just(r#"{"message": {"tool_calls": [{}, {"function": null}]}, "done": true}"#.to_owned()),
                Just(r#"{"done": true, "prompt_eval_count": 3}"#.to_owned()),
            ],
            0..6,
        ),
        noise in proptest::collection::vec(any::<u8>(), 0..20),
        size in 1usize..9,
    ) {
        let mut body = lines.join("\n").into_bytes();
        body.extend(noise);
        prop_assert_eq!(streamed(&body, size), streamed(&body, usize::MAX));
    }
}
