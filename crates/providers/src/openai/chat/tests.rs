mod odd_answers; // tests of what servers do differently
mod requests; // tests of encoding

use std::collections::VecDeque;

use adjutant_core::{
    CallId, Content, Delta, GenerateResponse, GenerationConfig, ImageSource, LanguageModel as _,
    MaxTokens, Message, ModelId, Part, ProviderState, Temperature, ToolCall, ToolDefinition,
    ToolResult, TopK, Usage,
};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::vendors::ROWS;
use super::*;
use crate::chunked_streams::decode_in_chunks;
use crate::decode::SseDecoder;
use requests::{conversation, tool};

const WHOLE: &str = include_str!("fixtures/everything.json");
const EVENTS: &str = include_str!("fixtures/everything.events.jsonl");

/// A model of a row, as the row's function `open` puts it together.
fn chat(row: &str, model: &str) -> Chat {
    let row = ROWS
        .iter()
        .find(|known| known.provider.name == row)
        .unwrap();
    Chat {
        stores_unless_told: row.provider.stores_unless_told,
        vendor: Arc::new(row.provider.vendor(model, error::parse).unwrap()),
        dialect: &row.dialect,
        family: (row.dialect.family)(model),
        tools: request::Tools::default(),
    }
}

/// Folds chunks into an answer; with `without_templates`, each is parsed as JSON.
fn fold_chunks(
    events: &[String],
    without_templates: bool,
) -> (Vec<Delta>, Result<GenerateResponse, ModelError>) {
    let chat = chat("openai-chat", "gpt-4.1");
    let mut answer = PartialAnswer::new(
        chat.vendor.clone(),
        chat.dialect,
        &vec![tool()].into(),
        Vec::new(),
    );
    let mut deltas = VecDeque::new();
    for event in events {
        if without_templates {
            answer.forget_template();
        }
        if let Err(error) = answer.event(event, &mut deltas) {
            return (deltas.into(), Err(error));
        }
    }
    let end = answer.finish("", &mut deltas);
    (deltas.into(), end)
}

#[test]
fn a_piece_like_the_last_is_read_as_any_other() {
    let around = |delta: &str, padding: &str| {
        format!(
            r#"{{"id":"c","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}],"usage":null{padding}}}"#
        )
    };
    let texts = [
        "",
        "a",
        "two words",
        r#"\n\""#,
        r"\u00e4",
        r"\ud83e\udd80",
        "ä秋🦀",
        r"\",
        "\u{1}",
        r"\x",
        "\"",
        r"\ud83e",
    ];
    let places = [
        r#"{"content":"@"}"#,
        r#"{"reasoning_content":"@"}"#,
        r#"{"reasoning":"@","content":null}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":"@"}}]}"#,
        r#"{"tool_calls":[{"function":{"arguments":"@"}}]}"#,
        r#"{"tool_calls":[{"index":0,"id":"x","function":{"name":"@","arguments":"@"}}]}"#,
        r#"{"content":"@","refusal":"no"}"#,
        r#"{"content":"@","role":"assistant"}"#,
    ];
    let paddings = [
        "",
        r#","obfuscation":"x""#,
        r#","obfuscation":"yz\"""#,
        r#","obfuscation":"""#,
        r#","error":"@""#,
    ];
    proptest!(|(picks in proptest::collection::vec((0..texts.len(), 0..places.len(), 0..paddings.len(), 0..4_usize), 1..12))| {
        let (mut events, mut last) = (Vec::new(), (0, 0));
        for (text, place, padding, changes) in picks {
            // Most pieces are like the one before.
            if changes == 0 {
                last = (place, padding);
            }
            let text = if changes == 1 { texts[text] } else { texts[text % 7] };
            let event = around(places[last.0], paddings[last.1]).replace('@', text);
            events.push(event);
        }
        events.push(around("{}", "").replace("null}]", r#""stop"}]"#));
        prop_assert_eq!(fold_chunks(&events, false), fold_chunks(&events, true));
    });
}

#[test]
fn what_leaves_the_machine_is_not_local() {
    let transport = crate::http::Transport::new().unwrap();
    for (name, base, local) in [
        ("vllm", None, true),
        ("vllm", Some("http://localhost:1"), true),
        ("vllm", Some("https://gpu.example"), false),
        ("openai-compatible", Some("http://127.0.0.1:1"), true),
        ("openai-compatible", Some("https://gpu.example"), false),
        // A proxy: the vendor's models do not run here.
        ("groq", Some("http://127.0.0.1:1"), false),
    ] {
        let base_url = base.map(|base| base.parse().unwrap());
        let connection = Connection {
            base_url,
            api_key: Some("k".to_owned().into()),
            ..Connection::new(transport.clone())
        };
        let row = ROWS
            .iter()
            .find(|known| known.provider.name == name)
            .unwrap();
        assert_eq!(
            row.provider
                .model("m", connection)
                .unwrap()
                .capabilities()
                .local,
            local,
            "{name} {base:?}"
        );
    }
}

type Outcome = Result<GenerateResponse, ModelError>;

fn answer(row: &str) -> Box<dyn AnswerFold> {
    chat(row, "m").answer(&RequestContext::default(), Vec::new())
}

fn decoded(row: &str, body: &str) -> Outcome {
    answer(row).whole(body)
}

fn streamed_bytes(row: &str, bytes: &[u8], size: usize) -> (Vec<Delta>, Outcome) {
    decode_in_chunks(Box::new(SseDecoder::new(answer(row))), bytes, size)
}

fn streamed(row: &str, events: &[&str]) -> Outcome {
    let stream: String = events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    streamed_bytes(row, stream.as_bytes(), usize::MAX).1
}

fn line(outcome: &Outcome) -> String {
    match outcome {
        Err(error) => format!("{}: {error}", error.code()),
        Ok(response) => {
            let parts = response.parts.iter().map(|part| match &part.content {
                Content::Text { text } => format!(" {text:?}"),
                Content::Thinking { text } => format!(" thinks {text:?}"),
                Content::Refusal { text } => format!(" refuses {text:?}"),
                Content::Opaque { kind } => format!(" {kind}"),
                Content::ToolCall(call) => {
                    let id = call.provider_id.as_deref().unwrap_or("-");
                    format!(" {id}={}({})", call.name, json!(call.arguments))
                }
                other => panic!("{other:?}"),
            });
            format!("{:?}:{}", response.finish, parts.collect::<String>())
        }
    }
}

fn message(message: Value, finish: Value) -> String {
    json!({ "choices": [{ "message": message, "finish_reason": finish }] }).to_string()
}

fn check_message(said: Value, finish: Value, expected: Expect) {
    expected.assert_eq(&line(&decoded("openai-compatible", &message(said, finish))));
}

fn check_chunks(deltas: &[Value], finish: Value, expected: Expect) {
    let mut events: Vec<String> = deltas
        .iter()
        .map(|delta| json!({ "choices": [{ "index": 0, "delta": delta }] }).to_string())
        .collect();
    events.push(
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] }).to_string(),
    );
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    expected.assert_eq(&line(&streamed("openai-compatible", &events)));
}

#[test]
fn a_streamed_answer_is_the_whole_one_and_its_deltas_add_up_to_it() {
    let whole = decoded("openai-chat", WHOLE).unwrap();
    expect![[r#"ToolCalls: "Let me look." call_a=weather({"city":"Oslo"}) call_b=now({})"#]]
        .assert_eq(&line(&Ok(whole.clone())));
    assert_eq!(whole.model.to_string(), "openai-chat/gpt-5.6-2026-09-01");
    let usage = Usage {
        input_tokens: Some(100),
        output_tokens: Some(60),
        cached_tokens: Some(64),
        thinking_tokens: Some(32),
        ..Usage::default()
    };
    assert_eq!((whole.usage, whole.cost), (usage, None));
    let events: String = EVENTS
        .lines()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    for (stream, size) in [
        (events.clone(), 1),
        (events.clone(), 5),
        (format!("{events}data: [DONE]\n\n"), 4096),
    ] {
        let (deltas, end) = streamed_bytes("openai-chat", stream.as_bytes(), size);
        assert_eq!(end.unwrap(), whole);
        let text: String = deltas
            .iter()
            .filter_map(|delta| {
                if let Delta::Text(text) = delta {
                    Some(text.as_str())
                } else {
                    None
                }
            })
            .collect();
        assert_eq!(text, "Let me look.");
    }
}

#[test]
fn calls_come_in_many_forms() {
    let call = |function: Value| json!({ "tool_calls": [function] });
    let piece = |index: Value, id: Value, name: Value, arguments: Value| json!({ "tool_calls": [{ "index": index, "id": id, "function": { "name": name, "arguments": arguments } }] });
    // Arguments as an object; the name in every piece; no number; no id; what calls were before.
    check_message(
        json!({"content": null, "tool_calls": [{"id": "", "function": {"name": "a", "arguments": {"n": 1}}}, {"id": null, "function": {"name": "a", "arguments": null}}]}),
        json!("tool_calls"),
        expect![[r#"ToolCalls: -=a({"n":1}) -=a({})"#]],
    );
    check_chunks(
        &[
            piece(json!(0), json!("x"), json!("a"), json!("{\"n\"")),
            piece(json!(0), json!("x"), json!("a"), json!(": 1}")),
        ],
        json!("stop"),
        expect![[r#"ToolCalls: x=a({"n":1})"#]],
    );
    check_chunks(
        &[
            piece(json!(null), json!("x"), json!("a"), json!("{\"n\"")),
            piece(json!(null), json!(""), json!(null), json!(": 1}")),
            piece(json!(null), json!("y"), json!("b"), json!("{}")),
        ],
        json!("tool_calls"),
        expect![[r#"ToolCalls: x=a({"n":1}) y=b({})"#]],
    );
    check_chunks(
        &[
            piece(json!(0), json!(""), json!("a"), json!("{}")),
            piece(json!(0), json!(""), json!("b"), json!("{\"n\":2}")),
        ],
        json!("stop"),
        expect![[r#"ToolCalls: -=a({}) -=b({"n":2})"#]],
    );
    check_message(
        json!({"content": null, "function_call": {"name": "a", "arguments": "{}"}}),
        json!("function_call"),
        expect!["ToolCalls: -=a({})"],
    );
    check_chunks(
        &[
            json!({"function_call": {"name": "a", "arguments": "{\"n\":"}}),
            json!({"function_call": {"arguments": "3}"}}),
        ],
        json!("function_call"),
        expect![[r#"ToolCalls: -=a({"n":3})"#]],
    );
    check_message(
        call(json!({"id": "c", "type": "custom", "custom": {"name": "shell", "input": "ls"}})),
        json!("tool_calls"),
        expect!["ToolCalls: c=shell({})"],
    );
    // A place for a call in which there is none.
    check_chunks(
        &[
            json!({"content": "a"}),
            piece(json!(0), json!(""), json!(""), json!("")),
        ],
        json!("stop"),
        expect![[r#"Stop: "a""#]],
    );
    // A call that was cut is no call to be made.
    check_message(
        call(json!({"id": "c", "function": {"name": "a", "arguments": "{\"n\""}})),
        json!("length"),
        expect!["MaxTokens: c=a({})"],
    );
}

#[test]
fn content_comes_in_many_forms() {
    check_message(json!({"content": null}), json!("stop"), expect!["Stop:"]);
    check_message(json!({}), json!("stop"), expect!["Stop:"]);
    check_message(
        json!({"content": [{"type": "text", "text": "a"}, "b", {"type": "reference", "reference_ids": [1]}, {"type": "text", "text": "c"}, {"type": "odd", "x": 1}]}),
        json!("stop"),
        expect![[r#"Stop: "abc" odd"#]],
    );
    check_message(
        json!({"content": null, "refusal": "I cannot."}),
        json!("stop"),
        expect![[r#"Stop: refuses "I cannot.""#]],
    );
    check_message(
        json!({"content": "Here.", "images": [{"type": "image_url", "image_url": {"url": "data:,"}}], "audio": {"id": "x"}, "executed_tools": [{"type": "search"}]}),
        json!("stop"),
        expect![[r#"Stop: "Here." images executed_tools"#]],
    );
    check_chunks(
        &[
            json!({"role": "assistant"}),
            json!({"refusal": "I "}),
            json!({"refusal": "cannot."}),
        ],
        json!("stop"),
        expect![[r#"Stop: refuses "I cannot.""#]],
    );
}

/// Seen with llama.cpp's server and a small model: it does not know the model's way of writing
/// calls.
#[test]
fn calls_left_in_the_text_are_found_where_servers_leave_them() {
    let said = json!({ "content": "{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}" });
    let body = message(said, json!("stop"));
    let mut request = GenerateRequest::new(conversation());
    let check = |row: &str, request: &GenerateRequest, expected: Expect| {
        let chat = chat(row, "m");
        let outcome = chat
            .answer(&chat.request_context(request), Vec::new())
            .whole(&body);
        let losses = outcome.as_ref().unwrap().losses.join(" ");
        expected.assert_eq(format!("{} {losses}", line(&outcome)).trim_end());
    };
    let words =
        || expect![[r#"Stop: "{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}""#]];
    check("llama-cpp", &request, words());
    request.tools = vec![tool()].into();
    check("openai-compatible", &request, words());
    check(
        "llama-cpp",
        &request,
        expect![[
            r#"ToolCalls: -=weather({"city":"Oslo"}) a call of weather came as text and was taken out of it"#
        ]],
    );
    request.config.verbatim = true;
    check("llama-cpp", &request, words());
}

#[test]
fn thinking_comes_in_many_forms() {
    check_message(
        json!({"reasoning_content": "Hm.", "reasoning": "Hm.", "content": "Yes."}),
        json!("stop"),
        expect![[r#"Stop: thinks "Hm." "Yes.""#]],
    );
    check_chunks(
        &[
            json!({"reasoning": "H"}),
            json!({"reasoning": "m."}),
            json!({"reasoning": null, "content": "Yes."}),
        ],
        json!("stop"),
        expect![[r#"Stop: thinks "Hm." "Yes.""#]],
    );
    check_message(
        json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "Yes."}]}),
        json!("stop"),
        expect![[r#"Stop: thinks "Hm." "Yes.""#]],
    );
    check_message(
        json!({"content": "Yes.", "reasoning_details": [{"type": "reasoning.summary", "summary": "Hm."}]}),
        json!("stop"),
        expect![[r#"Stop: thinks "Hm." "Yes.""#]],
    );
    check_message(
        json!({"content": "Yes.", "reasoning_details": [{"type": "reasoning.encrypted", "data": "xyz"}]}),
        json!("stop"),
        expect![[r#"Stop: thinks "" "Yes.""#]],
    );
}

/// One answer is asked for: pieces of another are left out, also those that differ from the piece
/// before in one word only.
#[test]
fn another_choice_says_nothing() {
    let piece = |index: u32, text: &str| {
        format!(
            r#"{{"choices":[{{"index":{index},"delta":{{"content":"{text}"}},"finish_reason":null}}]}}"#
        )
    };
    let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#.to_owned();
    let events = [
        piece(0, "a"),
        piece(1, "x"),
        piece(1, "y"),
        piece(1, "z"),
        piece(0, "b"),
        end,
    ];
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    expect![[r#"Stop: "ab""#]].assert_eq(&line(&streamed("openai-compatible", &events)));
}

/// The assistant message a recorded message becomes when it goes back.
fn back(row: &str, events: &[Value]) -> Value {
    let events: Vec<String> = events
        .iter()
        .map(|delta| {
            json!({ "choices": [{ "delta": delta, "finish_reason": "stop" }] }).to_string()
        })
        .collect();
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let answer = streamed(row, &events).unwrap();
    let request = GenerateRequest::new(vec![
        Message::user("?").unwrap(),
        Message::assistant(answer.parts).unwrap(),
    ]);
    body(row, "m", &request)["messages"][1].clone()
}

fn encoded(row: &str, model: &str, request: &GenerateRequest) -> (Value, Vec<String>) {
    let Encoded { body, losses } = chat(row, model).encode(request, false).unwrap();
    (serde_json::from_slice(&body).unwrap(), losses)
}

fn body(row: &str, model: &str, request: &GenerateRequest) -> Value {
    encoded(row, model, request).0
}

#[test]
fn thinking_goes_back_in_the_form_it_came_in() {
    let call = json!([{"index": 0, "id": "c", "function": {"name": "a", "arguments": "{}"}, "extra_content": {"google": {"thought_signature": "c2ln"}}}]);
    expect![[r#"{"role":"assistant","content":null,"reasoning_content":"Hm.","tool_calls":[{"id":"c","type":"function","function":{"name":"a","arguments":"{}"},"extra_content":{"google":{"thought_signature":"c2ln"}}}]}"#]]
        .assert_eq(&back("deepseek", &[json!({"reasoning_content": "H"}), json!({"reasoning_content": "m."}), json!({"tool_calls": call})]).to_string());
    expect![[r#"{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]},{"type":"text","text":"Yes."}]}"#]]
        .assert_eq(&back("mistral", &[json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]}), json!({"content": "Yes."})]).to_string());
    // OpenRouter's details as they would have come in one piece.
    let details = [
        json!({"reasoning": "H", "reasoning_details": [{"type": "reasoning.text", "text": "H", "format": "anthropic-claude-v1", "index": 0}]}),
        json!({"reasoning": "m.", "reasoning_details": [{"type": "reasoning.text", "text": "m.", "format": "anthropic-claude-v1", "index": 0}]}),
        json!({"reasoning_details": [{"type": "reasoning.text", "signature": "c2ln", "text": null, "index": 0}, {"type": "reasoning.encrypted", "data": "xyz", "id": "r1", "index": 1}]}),
        json!({"content": "Yes."}),
    ];
    expect![[r#"{"role":"assistant","content":"Yes.","reasoning_details":[{"type":"reasoning.text","text":"Hm.","format":"anthropic-claude-v1","index":0,"signature":"c2ln"},{"type":"reasoning.encrypted","data":"xyz","id":"r1","index":1}]}"#]]
        .assert_eq(&back("openrouter", &details).to_string());
    // A server that has no place for it does not get it.
    expect![[r#"{"role":"assistant","content":"Yes."}"#]].assert_eq(
        &back(
            "groq",
            &[json!({"reasoning": "Hm."}), json!({"content": "Yes."})],
        )
        .to_string(),
    );
}

#[test]
fn a_model_that_insists_on_thinking_gets_a_blank_of_others() {
    let request = GenerateRequest::new(conversation());
    let thoughts = |row: &str, model: &str| {
        let (body, losses) = encoded(row, model, &request);
        let messages = body["messages"].as_array().unwrap().clone();
        let thoughts: Vec<Value> = messages
            .iter()
            .filter_map(|message| message.get("reasoning_content").cloned())
            .collect();
        (
            thoughts,
            losses.iter().any(|loss| loss.contains("blank thinking")),
        )
    };
    assert_eq!(
        thoughts("deepseek", "deepseek-v4-pro"),
        (vec![json!(" "), json!(" ")], true)
    );
    assert_eq!(
        thoughts("moonshot", "kimi-k2.6"),
        (vec![json!(" "), json!(" ")], true)
    );
    assert_eq!(thoughts("deepseek", "deepseek-chat"), (vec![], false));
    assert_eq!(thoughts("openai-chat", "gpt-5.6"), (vec![], false));
}

#[test]
fn how_an_answer_ended() {
    for (finish, expected) in [
        (json!("stop"), r#"Stop: "a""#),
        (json!("eos"), r#"Stop: "a""#),
        (json!("length"), r#"MaxTokens: "a""#),
        (json!("model_length"), r#"MaxTokens: "a""#),
        (json!("content_filter"), r#"ContentFilter: "a""#),
        // A whole body without a reason is whole.
        (json!(null), r#"Stop: "a""#),
        (json!(""), r#"Stop: "a""#),
        (
            json!("insufficient_system_resource"),
            "server: openai-compatible answered with a failure: finish_reason insufficient_system_resource: the server ran out of resources",
        ),
        (
            json!("error"),
            "server: openai-compatible answered with a failure: finish_reason error: the server could not go on",
        ),
        (
            json!("abort"),
            "truncated: the answer of openai-compatible ended early: finish_reason abort",
        ),
        (
            json!("vibes"),
            "invalid_response: openai-compatible sent a response we cannot read: finish_reason vibes, which is no end of an answer we know",
        ),
    ] {
        assert_eq!(
            line(&decoded(
                "openai-compatible",
                &message(json!({"content": "a"}), finish)
            )),
            expected
        );
    }
    let (piece, end) = (
        r#"{"choices":[{"delta":{"content":"a"}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
    );
    let truncated = "truncated: the answer of vllm ended early: it ended without a finish_reason";
    for (events, expected) in [
        (vec![piece, end], r#"Stop: "a""#),
        (vec![piece, end, "[DONE]"], r#"Stop: "a""#),
        // The documented last event, if not the last word on why.
        (vec![piece, "[DONE]"], r#"Stop: "a""#),
        (vec![piece], truncated),
        (vec![], truncated),
        (vec!["[DONE]"], truncated),
        (
            vec![r#"{"choices":[],"usage":{"prompt_tokens":1}}"#],
            truncated,
        ),
    ] {
        assert_eq!(line(&streamed("vllm", &events)), expected, "{events:?}");
    }
}

#[test]
fn what_is_no_answer_is_an_error() {
    for (body, expected) in [
        (
            r#"{"choices":[]}"#,
            "invalid_response: groq sent a response we cannot read: no choices",
        ),
        (
            r#"{"id":"x"}"#,
            "invalid_response: groq sent a response we cannot read: no choices",
        ),
        (r#"{"choices":[{"message":{"con"#, "truncated"),
        ("<html>", "invalid_response"),
        (
            r#"{"error":"Model is loading"}"#,
            "server: groq answered with a failure: Model is loading",
        ),
        (
            r#"{"error":{"message":"Slow down","code":429}}"#,
            "rate_limit",
        ),
        (r#"{"error":{"message":"No credits","code":402}}"#, "quota"),
        (
            r#"{"error":{"message":"Flagged","code":403,"metadata":{"reasons":["violence"]}},"choices":[]}"#,
            "refused",
        ),
        (
            r#"{"object":"error","message":"Bad","type":"BadRequestError","code":400}"#,
            "bad_request: groq rejected the request: Bad",
        ),
        (
            r#"{"detail":"Not Found"}"#,
            "server: groq answered with a failure: Not Found",
        ),
        (
            r#"{"choices":[{"message":{"content":"a"},"error":{"code":502,"message":"Upstream"},"finish_reason":"error"}]}"#,
            "server: groq failed (HTTP 502): Upstream",
        ),
        (
            r#"{"error":{"type":"server_error","message":"Oops"},"choices":null}"#,
            "server: groq answered with a failure: Oops",
        ),
    ] {
        let (whole, stream) = (
            line(&decoded("groq", body)),
            line(&streamed("groq", &[body])),
        );
        assert!(whole.starts_with(expected), "{body}: {whole}");
        // A stream without an answer may have been cut; an error is one in both.
        assert!(
            stream.starts_with(expected) || stream.starts_with("truncated"),
            "{body}: {stream}"
        );
        assert!(
            streamed_bytes("groq", body.as_bytes(), 3).1.is_err(),
            "{body}"
        );
    }
    let piece = r#"{"choices":[{"delta":{"content":"a"}}]}"#;
    let late = line(&streamed(
        "groq",
        &[
            piece,
            r#"{"error":{"message":"Over capacity","type":"internal_server_error"}}"#,
        ],
    ));
    assert_eq!(late, "server: groq answered with a failure: Over capacity");
    // In the middle of a stream without a frame, and as a stream's only content.
    let stream =
        format!("data: {piece}\n\n{{\"error\": {{\"message\": \"Broken\", \"code\": 500}}}}\n");
    assert_eq!(
        line(&streamed_bytes("groq", stream.as_bytes(), 9).1),
        "server: groq failed (HTTP 500): Broken"
    );
    let unstreamed = message(json!({"content": "a"}), json!("stop"));
    assert_eq!(
        line(&streamed_bytes("groq", unstreamed.as_bytes(), 9).1),
        r#"Stop: "a""#
    );
}

#[test]
fn counts_come_in_many_places() {
    let count = |row: &str, events: &[&str]| {
        let response = streamed(row, events).unwrap();
        (
            response.counters.input,
            response.counters.output,
            response.cost,
        )
    };
    let end = r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
    assert_eq!(
        count(
            "groq",
            &[
                end,
                r#"{"choices":[],"x_groq":{"id":"r","usage":{"prompt_tokens":5,"completion_tokens":2}}}"#
            ]
        ),
        (Some(5), Some(2), None)
    );
    assert_eq!(
        count(
            "moonshot",
            &[
                r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop","usage":{"prompt_tokens":5,"completion_tokens":2}}]}"#
            ]
        ),
        (Some(5), Some(2), None)
    );
    assert_eq!(
        count(
            "openrouter",
            &[
                end,
                r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"cost":0.0025}}"#
            ]
        ),
        (Some(5), Some(2), adjutant_core::Cost::from_usd(0.0025))
    );
    // Nobody says that another server's number is in dollars.
    let other = count(
        "together",
        &[
            end,
            r#"{"choices":[],"usage":{"prompt_tokens":5,"cost":0.0025}}"#,
        ],
    );
    assert_eq!(other, (Some(5), None, None));
    assert_eq!(count("vllm", &[end]), (None, None, None));
}
