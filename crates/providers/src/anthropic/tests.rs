//! `fixtures/everything.json` is made from the vendor's published schema of an answer, with a block
//! nobody knows yet.

mod requests; // tests of encoding

use adjutant_core::{
    Content, Delta, FinishReason, GenerateResponse, ImageSource, MaxTokens, Message, Part,
    ProviderState, Role, Temperature, ToolCall, ToolDefinition, ToolResult, TopK, TopP,
};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::*;
use crate::chunked_streams::decode_in_chunks;
use crate::connection::model_id;
use crate::decode::{SseDecoder, StreamDecoder};
use crate::http::Transport;

const EVERYTHING: &str = include_str!("fixtures/everything.json");
/// Takes temperatures, does not think.
const OLD: &str = "claude-sonnet-4-5";

fn vendor(model: &str) -> Arc<Vendor> {
    Arc::new(PROVIDERS[0].vendor(model, error::parse).unwrap())
}

fn decoder() -> Box<dyn StreamDecoder> {
    let answer = PartialAnswer::new(vendor(DEFAULT_MODEL), Vec::new());
    Box::new(SseDecoder::new(Box::new(answer)))
}

fn decoded(body: &str) -> Result<GenerateResponse, ModelError> {
    PartialAnswer::new(vendor(DEFAULT_MODEL), Vec::new()).whole(body)
}

fn streamed(events: &[Value], size: usize) -> (Vec<Delta>, Result<GenerateResponse, ModelError>) {
    let frame = |event: &Value| {
        format!(
            "event: {}\r\ndata: {event}\r\n\r\n",
            event["type"].as_str().unwrap_or("x")
        )
    };
    let stream: String = events.iter().map(frame).collect();
    streamed_bytes(stream.as_bytes(), size)
}

fn streamed_bytes(bytes: &[u8], size: usize) -> (Vec<Delta>, Result<GenerateResponse, ModelError>) {
    decode_in_chunks(decoder(), bytes, size)
}

/// The same answer as the vendor streams it: blocks begin empty and grow.
fn events(body: &str) -> Vec<Value> {
    let mut message: Value = serde_json::from_str(body).unwrap();
    let content = message["content"].as_array().unwrap().clone();
    let stop_reason = message["stop_reason"].take();
    let mut usage = message["usage"].clone();
    message["content"] = json!([]);
    message["usage"]["output_tokens"] = json!(1);
    usage["input_tokens"] = json!(2000);
    let mut events = vec![
        json!({"type": "message_start", "message": message}),
        json!({"type": "ping"}),
    ];
    for (index, block) in content.into_iter().enumerate() {
        let (begun, deltas) = grown(block);
        events.push(json!({"type": "content_block_start", "index": index, "content_block": begun}));
        let delta = |delta| json!({"type": "content_block_delta", "index": index, "delta": delta});
        events.extend(deltas.into_iter().map(delta));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": null}, "usage": usage}));
    events.extend([
        json!({"type": "to_be_invented", "x": 1}),
        json!({"type": "message_stop"}),
    ]);
    events
}

fn grown(mut block: Value) -> (Value, Vec<Value>) {
    let mut deltas = Vec::new();
    let halves = |text: &str| {
        let middle = text
            .char_indices()
            .nth(text.chars().count() / 2)
            .map_or(0, |(at, _)| at);
        [text[..middle].to_owned(), text[middle..].to_owned()]
    };
    for (kind, from, to) in [
        ("text_delta", "text", "text"),
        ("thinking_delta", "thinking", "thinking"),
    ] {
        if let Some(text) = block[from].as_str().map(str::to_owned) {
            block[from] = json!("");
            deltas.extend(halves(&text).map(|half| json!({"type": kind, to: half})));
        }
    }
    if let Some(signature) = block.get_mut("signature").map(Value::take) {
        block["signature"] = json!("");
        deltas.push(json!({"type": "signature_delta", "signature": signature}));
    }
    if let Some(Value::Array(citations)) = block.get_mut("citations").map(Value::take) {
        deltas.extend(
            citations
                .into_iter()
                .map(|citation| json!({"type": "citations_delta", "citation": citation})),
        );
    }
    if block["input"]
        .as_object()
        .is_some_and(|input| !input.is_empty())
    {
        let pieces = halves(&block["input"].take().to_string());
        block["input"] = json!({});
        deltas
            .extend(pieces.map(|piece| json!({"type": "input_json_delta", "partial_json": piece})));
    }
    (block, deltas)
}

fn line(answer: &Result<GenerateResponse, ModelError>) -> String {
    match answer {
        Err(error) => format!("{}: {error}", error.code()),
        Ok(response) => format!("{:?}: {}", response.finish, json!(response.parts)),
    }
}

fn encoded(request: &GenerateRequest, model: &str) -> (Value, Vec<String>) {
    let model = model_id("anthropic", model).unwrap();
    let encoded = request::encode(request, &model, &family::for_model(&model.name), false).unwrap();
    (
        serde_json::from_slice(&encoded.body).unwrap(),
        encoded.losses,
    )
}

fn betas(request: &GenerateRequest, model: &str) -> String {
    let wire = Anthropic {
        may_think_in_text: false,
        family: family::for_model(model),
        vendor: vendor(model),
    };
    wire.request_headers(request)
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.expose_secret()))
        .collect()
}

#[test]
fn everything_of_an_answer_is_kept() {
    let whole = decoded(EVERYTHING);
    expect![[r#"ToolCalls: [{"type":"thinking","text":"The user wants the weather. Ä秋","state":{"origin":{"provider":"anthropic","name":"claude-sonnet-5-5"},"data":{"signature":"c2lnbmF0dXJl"}}},{"type":"thinking","text":"","state":{"origin":{"provider":"anthropic","name":"claude-sonnet-5-5"},"data":{"data":"cmVkYWN0ZWQ="}}},{"type":"text","text":"Let me look."},{"type":"opaque","kind":"server_tool_use","state":{"origin":{"provider":"anthropic","name":"claude-sonnet-5-5"},"data":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"weather in Oslo"},"caller":{"type":"direct"}}}},{"type":"opaque","kind":"web_search_tool_result","state":{"origin":{"provider":"anthropic","name":"claude-sonnet-5-5"},"data":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","title":"Oslo","url":"https://example.com/oslo","encrypted_content":"ZW5j","page_age":null}]}}},{"type":"text","text":"It rains.","state":{"origin":{"provider":"anthropic","name":"claude-sonnet-5-5"},"data":{"citations":[{"type":"web_search_result_location","cited_text":"Rain.","encrypted_index":"aW5k","title":null,"url":"https://example.com/oslo"}]}}},{"type":"opaque","kind":"to_be_invented","state":{"origin":{"provider":"anthropic","name":"claude-sonnet-5-5"},"data":{"type":"to_be_invented","secret":[1,null,"x"]}}},{"type":"tool_call","id":"provisional_0","provider_id":"toolu_1","name":"weather","arguments":{"city":"Oslo","days":2},"state":{"origin":{"provider":"anthropic","name":"claude-sonnet-5-5"},"data":{"caller":{"type":"direct"}}}},{"type":"tool_call","id":"provisional_1","provider_id":"toolu_2","name":"time","arguments":{},"state":{"origin":{"provider":"anthropic","name":"claude-sonnet-5-5"},"data":{}}}]"#]].assert_eq(&line(&whole));
    let response = whole.unwrap();
    assert_eq!(response.model.name, "claude-sonnet-5-5-20260928");
    expect!["Usage { input_tokens: Some(4320), output_tokens: Some(70), cached_tokens: Some(4000), cache_written_tokens: Some(300), thinking_tokens: Some(30) } Counters { input: Some(20), output: Some(70) }"].assert_eq(&format!("{:?} {:?}", response.usage, response.counters));
}

#[test]
fn a_stream_is_the_same_answer() {
    let whole = decoded(EVERYTHING).unwrap();
    let (deltas, end) = streamed(&events(EVERYTHING), 1);
    let end = end.unwrap();
    assert_eq!(end.parts, whole.parts);
    // What the vendor's own tools read on the way is counted at the end; its first counter stays as
    // it was sent.
    assert_eq!(
        (end.usage.input_tokens, end.counters.input),
        (Some(6300), Some(20))
    );
    for size in [2, 7, 100_000] {
        assert_eq!(
            streamed(&events(EVERYTHING), size),
            (deltas.clone(), Ok(end.clone()))
        );
    }
    expect![[r#"
        Thinking("The user wants ")
        Thinking("the weather. Ä秋")
        Text("Let me")
        Text(" look.")
        Text("It r")
        Text("ains.")
        ToolCall { index: 0, name: "weather", arguments: "" }
        ToolCall { index: 0, name: "weather", arguments: "{\"city\":\"Osl" }
        ToolCall { index: 0, name: "weather", arguments: "o\",\"days\":2}" }
        ToolCall { index: 1, name: "time", arguments: "" }
    "#]]
    .assert_eq(
        &deltas
            .iter()
            .map(|delta| format!("{delta:?}\n"))
            .collect::<String>(),
    );
}

#[test]
fn an_answer_goes_back_to_its_model_as_it_came() {
    let answer: Value = serde_json::from_str(EVERYTHING).unwrap();
    let request = follow_up(decoded(EVERYTHING).unwrap());
    let (body, losses) = encoded(&request, DEFAULT_MODEL);
    let mut expected = answer["content"].as_array().unwrap().clone();
    // Nulls say nothing, and what a request cannot carry is reported.
    expected[2].as_object_mut().unwrap().remove("citations");
    expected[8].as_object_mut().unwrap().remove("toolset_name");
    expected.remove(6);
    assert_eq!(body["messages"][1]["content"], json!(expected));
    assert_eq!(
        losses[0],
        "to_be_invented was left out: a request cannot carry it"
    );
    // Thinking is bound to its transcript, which may be cut; what no longer fits may be dropped.
    assert_eq!(
        body["thinking"],
        json!({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}})
    );
    assert_eq!(
        betas(&request, DEFAULT_MODEL),
        "anthropic-beta: thinking-binding-controls-2026-08-01"
    );
}

#[test]
fn another_models_state_is_left_out_and_reported() {
    let request = follow_up(decoded(EVERYTHING).unwrap());
    let (body, losses) = encoded(&request, OLD);
    expect![[r#"
        {"role":"assistant","content":[{"type":"text","text":"Let me look."},{"type":"text","text":"It rains."},{"type":"tool_use","id":"toolu_1","name":"weather","input":{"city":"Oslo","days":2}},{"type":"tool_use","id":"toolu_2","name":"time","input":{}}]}
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"{\"success\":true,\"data\":[\"seen\"]}"},{"type":"tool_result","tool_use_id":"toolu_2","content":"{\"success\":true,\"data\":[\"seen\"]}"}]}
        state of anthropic/claude-sonnet-5-5 on thinking was left out
        thinking of another model was left out
        state of anthropic/claude-sonnet-5-5 on a trace of its own tools was left out
        server_tool_use of another model was left out
        web_search_tool_result of another model was left out
        state of anthropic/claude-sonnet-5-5 on text was left out
        to_be_invented of another model was left out
        state of anthropic/claude-sonnet-5-5 on a tool call was left out"#]].assert_eq(&format!("{}\n{}\n{}", body["messages"][1], body["messages"][2], losses.join("\n")));
    assert_eq!(
        (body.get("thinking"), betas(&request, OLD).as_str()),
        (None, "")
    );
}

/// Returns the request that follows an answer with calls.
fn follow_up(answer: GenerateResponse) -> GenerateRequest {
    let calls: Vec<ToolCall> = answer.tool_calls().cloned().collect();
    let mut messages = vec![
        Message::user("?").unwrap(),
        Message::assistant(answer.parts).unwrap(),
    ];
    for call in calls {
        messages.push(Message::tool(call.id, call.name, ToolResult::ok(json!(["seen"]))).unwrap());
    }
    GenerateRequest::new(messages)
}

#[test]
fn traces_that_need_a_beta_bring_its_header() {
    let own = |data: Value| {
        let kind = data["type"].as_str().unwrap().to_owned();
        let state = ProviderState {
            origin: vendor(OLD).model.clone(),
            data,
        };
        Part::from_provider(Content::Opaque { kind }, Some(state))
    };
    let parts = vec![
        own(
            json!({"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "a", "server_name": "s", "input": {}}),
        ),
        own(
            json!({"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "content": [], "is_error": false}),
        ),
        own(json!({"type": "compaction", "content": "So far."})),
        own(json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "advisor", "input": {}})),
        own(
            json!({"type": "advisor_tool_result", "tool_use_id": "srvtoolu_1", "content": {"type": "advisor_result", "text": "x"}}),
        ),
    ];
    let request = GenerateRequest::new(vec![
        Message::assistant(parts).unwrap(),
        Message::user("?").unwrap(),
    ]);
    let (body, losses) = encoded(&request, OLD);
    assert_eq!(
        betas(&request, OLD),
        "anthropic-beta: advisor-tool-2026-03-01,compact-2026-01-12,mcp-client-2025-11-20"
    );
    expect![[r#"
        [{"type":"mcp_tool_use","id":"mcptoolu_1","name":"a","server_name":"s","input":{}},{"type":"mcp_tool_result","tool_use_id":"mcptoolu_1","content":[],"is_error":false},{"type":"compaction","content":"So far."},{"type":"server_tool_use","id":"srvtoolu_1","name":"advisor","input":{}},{"type":"advisor_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"advisor_result","text":"x"}}]
    "#]].assert_eq(&format!("{}\n{}", body["messages"][0]["content"], losses.join("\n")));
    assert_eq!(betas(&request, DEFAULT_MODEL), "");
}

#[test]
fn no_answer_ends_with_thinking() {
    let think = |index: usize| {
        let state = ProviderState {
            origin: vendor(OLD).model.clone(),
            data: json!({"signature": "c2ln"}),
        };
        Part::from_provider(
            Content::Thinking {
                text: format!("{index}."),
            },
            Some(state),
        )
    };
    let words = Part::ours(Content::Text { text: "Hm.".into() });
    let request = GenerateRequest::new(vec![
        Message::user("?").unwrap(),
        Message::assistant(vec![think(0), words, think(1), think(2)]).unwrap(),
        Message::user("And?").unwrap(),
        Message::assistant(vec![think(3)]).unwrap(),
        Message::user("Go on.").unwrap(),
    ]);
    let (body, losses) = encoded(&request, OLD);
    expect![[r#"
        [{"role":"user","content":[{"type":"text","text":"?"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"0.","signature":"c2ln"},{"type":"text","text":"Hm."}]},{"role":"user","content":[{"type":"text","text":"And?"},{"type":"text","text":"Go on."}]}]
        ["thinking that led to nothing was left out"]"#]].assert_eq(&format!("{}\n{losses:?}", body["messages"]));
}

#[test]
fn reasons_to_stop() {
    let with = |reason: Value| {
        json!({"content": [{"type": "text", "text": "x"}], "stop_reason": reason}).to_string()
    };
    for (reason, finish) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("max_tokens", FinishReason::MaxTokens),
        ("model_context_window_exceeded", FinishReason::MaxTokens),
        ("refusal", FinishReason::ContentFilter),
    ] {
        let response = decoded(&with(json!(reason))).unwrap();
        assert_eq!(
            (response.finish, response.losses.len()),
            (finish, 0),
            "{reason}"
        );
    }
    assert_eq!(
        line(&decoded(&with(json!("tool_use")))),
        "truncated: the answer of anthropic ended early: it ended in order to call tools, and has no call"
    );
    let paused = decoded(&with(json!("pause_turn"))).unwrap();
    assert_eq!(paused.finish, FinishReason::Stop);
    assert_eq!(
        paused.losses,
        ["the vendor paused (pause_turn): the answer may not be whole"]
    );
    expect!["truncated: the answer of anthropic ended early: it ended without a stop_reason"]
        .assert_eq(&line(&decoded(&with(json!(null)))));
    expect!["invalid_response: anthropic sent a response we cannot read: stop_reason to_be_invented, which is no end of an answer we know"].assert_eq(&line(&decoded(&with(json!("to_be_invented")))));
}

#[test]
fn a_refusal_has_the_vendors_words() {
    let refused = |details: Value| {
        let body =
            json!({"content": [], "stop_reason": "refusal", "stop_details": details}).to_string();
        let (whole, streamed) = (line(&decoded(&body)), line(&streamed(&events(&body), 9).1));
        assert_eq!(whole, streamed);
        whole
    };
    expect![[r#"ContentFilter: [{"type":"refusal","text":"No.","state":{"origin":{"provider":"anthropic","name":"claude-sonnet-5-5"},"data":{"explanation":true}}}]"#]]
        .assert_eq(&refused(json!({"type": "refusal", "category": "bio", "explanation": "No."})));
    expect![[r#"ContentFilter: [{"type":"refusal","text":"refused (bio)","state":{"origin":{"provider":"anthropic","name":"claude-sonnet-5-5"},"data":{"explanation":true}}}]"#]]
        .assert_eq(&refused(json!({"type": "refusal", "category": "bio", "explanation": null})));
    expect![[r#"ContentFilter: [{"type":"refusal","text":""}]"#]].assert_eq(&refused(json!(null)));
}

#[test]
fn what_is_no_answer_is_an_error() {
    let check = |body: &str, expected: Expect| expected.assert_eq(&line(&decoded(body)));
    check(
        "{}",
        expect!["invalid_response: anthropic sent a response we cannot read: no content"],
    );
    check(
        "<html>",
        expect![
            "invalid_response: anthropic sent a response we cannot read: expected value at line 1 column 1"
        ],
    );
    check(
        r#"{"content": [{"type": "te"#,
        expect![
            "truncated: the answer of anthropic ended early: its JSON is cut off: EOF while parsing a string at line 1 column 25"
        ],
    );
    check(
        r#"{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}"#,
        expect!["server: anthropic answered with a failure: overloaded_error: Overloaded"],
    );
    check(
        r#"{"error": {"message": "Slow down.", "code": 429}}"#,
        expect!["rate_limit: rate limited by anthropic: Slow down."],
    );
    check(
        r#"{"content": "Plain.", "stop_reason": "end_turn", "usage": null, "model": null}"#,
        expect![[r#"Stop: [{"type":"text","text":"Plain."}]"#]],
    );
}

#[test]
fn a_stream_that_breaks_is_never_a_success() {
    let all = events(EVERYTHING);
    for count in 0..all.len() - 1 {
        let (_, end) = streamed(&all[..count], 50);
        assert_eq!(end.unwrap_err().code(), "truncated", "{count}");
    }
    let failed = |bytes: String| line(&streamed_bytes(bytes.as_bytes(), 5).1);
    let begun = format!("data: {}\n\n", all[0]);
    expect!["server: anthropic answered with a failure: api_error: Oh."].assert_eq(&failed(format!(
        "{begun}{{\"type\": \"error\", \"error\": {{\"type\": \"api_error\", \"message\": \"Oh.\"}}}}\n"
    )));
    expect!["rate_limit: rate limited by anthropic: Slow down."].assert_eq(&failed(format!(
        "{begun}event: error\ndata: {}\n\n",
        r#"{"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down."}}"#
    )));
    expect!["truncated: the answer of anthropic ended early: its JSON is cut off: EOF while parsing a string at line 1 column 15"].assert_eq(&failed(format!("{begun}data: {{\"type\": \"conte")));
}

#[test]
fn odd_streams() {
    // With calls, it means the same as `tool_use`.
    let end = [
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ];
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    let call =
        |id: &str, input: Value| json!({"type": "tool_use", "id": id, "name": "t", "input": input});
    let piece = |text: &str| json!({"type": "input_json_delta", "partial_json": text});
    let begin =
        json!({"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 1}}});
    let check = |middle: &[Value], expected: Expect| {
        let all: Vec<Value> = [std::slice::from_ref(&begin), middle, &end[..]].concat();
        let (deltas, answer) = streamed(&all, 11);
        expected.assert_eq(&format!("{}\n{deltas:?}", line(&answer)));
    };
    // Gaps and interleaving of indices, an input that comes with the announcement, none at all, one
    // block never closed.
    check(
        &[
            start(0, call("a", json!({"n": 1}))),
            start(3, call("b", json!({}))),
            delta(3, piece("")),
            delta(3, piece("{\"n\":")),
            stop(0),
            start(7, call("c", json!({}))),
            delta(3, piece(" 2}")),
            stop(3),
        ],
        expect![[r#"
            ToolCalls: [{"type":"tool_call","id":"provisional_0","provider_id":"a","name":"t","arguments":{"n":1},"state":{"origin":{"provider":"anthropic","name":"claude-sonnet-5-5"},"data":{}}},{"type":"tool_call","id":"provisional_1","provider_id":"b","name":"t","arguments":{"n":2},"state":{"origin":{"provider":"anthropic","name":"claude-sonnet-5-5"},"data":{}}},{"type":"tool_call","id":"provisional_2","provider_id":"c","name":"t","arguments":{},"state":{"origin":{"provider":"anthropic","name":"claude-sonnet-5-5"},"data":{}}}]
            [ToolCall { index: 0, name: "t", arguments: "" }, ToolCall { index: 1, name: "t", arguments: "" }, ToolCall { index: 1, name: "t", arguments: "{\"n\":" }, ToolCall { index: 0, name: "t", arguments: "{\"n\":1}" }, ToolCall { index: 2, name: "t", arguments: "" }, ToolCall { index: 1, name: "t", arguments: " 2}" }]"#]],
    );
    // A server in between begins again: the call that was not finished was not made.
    check(
        &[
            start(0, json!({"type": "text", "text": "So: "})),
            stop(0),
            start(1, call("a", json!({}))),
            delta(1, piece("{\"n\": \"Spar")),
            begin.clone(),
            start(0, call("b", json!({}))),
            delta(0, piece("{\"n\": 1}")),
            stop(0),
        ],
        expect![[r#"
            ToolCalls: [{"type":"text","text":"So: "},{"type":"tool_call","id":"provisional_0","provider_id":"b","name":"t","arguments":{"n":1},"state":{"origin":{"provider":"anthropic","name":"claude-sonnet-5-5"},"data":{}}}]
            [Text("So: "), ToolCall { index: 0, name: "t", arguments: "" }, ToolCall { index: 0, name: "t", arguments: "{\"n\": \"Spar" }, ToolCall { index: 0, name: "t", arguments: "" }, ToolCall { index: 0, name: "t", arguments: "{\"n\": 1}" }]"#]],
    );
    // Deltas nobody announced, a kind of block and a kind of delta nobody knows, a compaction.
    check(
        &[
            delta(0, json!({"type": "text_delta", "text": "Hi"})),
            start(1, json!({"type": "to_be_invented", "list": []})),
            delta(
                1,
                json!({"type": "invented_delta", "words": "a", "list": [1], "nothing": null}),
            ),
            delta(1, json!({"type": "invented_delta", "words": "b"})),
            stop(1),
            start(2, json!({"type": "compaction", "content": null})),
            delta(
                2,
                json!({"type": "compaction_delta", "content": "So far.", "encrypted_content": "ZQ=="}),
            ),
            stop(2),
            stop(99),
        ],
        expect![[r#"
            Stop: [{"type":"text","text":"Hi"},{"type":"opaque","kind":"to_be_invented","state":{"origin":{"provider":"anthropic","name":"claude-sonnet-5-5"},"data":{"type":"to_be_invented","list":[1],"words":"ab"}}},{"type":"opaque","kind":"compaction","state":{"origin":{"provider":"anthropic","name":"claude-sonnet-5-5"},"data":{"type":"compaction","content":"So far.","encrypted_content":"ZQ=="}}}]
            [Text("Hi")]"#]],
    );
}

#[test]
fn what_a_server_in_between_charges_is_the_cost() {
    let body = json!({"content": [], "stop_reason": "end_turn", "usage": {"input_tokens": 32, "output_tokens": 1, "cost": 0.000_112}});
    assert_eq!(
        decoded(&body.to_string()).unwrap().cost.unwrap().nano_usd(),
        112_000
    );
    let dropped = json!({"content": [], "stop_reason": "end_turn", "input_transformations": [{"type": "x"}, {"type": "x"}]});
    assert_eq!(
        decoded(&dropped.to_string()).unwrap().losses,
        ["2 thinking block(s) were left out by the vendor: what they followed is another by now"]
    );
}

#[test]
fn errors_say_what_to_do() {
    let check = |status: u16, kind: &str, words: &str, expected: Expect| {
        let vendor = vendor("claude-x");
        let body = json!({"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_1"});
        let error = vendor.error(
            status,
            None,
            None,
            (vendor.parse_error)(status, &body.to_string()),
        );
        expected.assert_eq(&format!("{}: {error}", error.code()));
    };
    let invalid = "invalid_request_error";
    check(
        400,
        invalid,
        "max_tokens: Field required",
        expect!["bad_request: anthropic rejected the request: max_tokens: Field required"],
    );
    check(
        400,
        invalid,
        "prompt is too long: 210000 tokens > 200000 maximum",
        expect![
            "context_too_long: too long for anthropic: prompt is too long: 210000 tokens > 200000 maximum"
        ],
    );
    check(
        400,
        invalid,
        "Your credit balance is too low to access the Anthropic API.",
        expect![
            "quota: anthropic: quota exhausted: Your credit balance is too low to access the Anthropic API."
        ],
    );
    check(
        401,
        "authentication_error",
        "invalid x-api-key",
        expect![
            "auth: anthropic refused the credentials: invalid x-api-key Set ANTHROPIC_API_KEY to a key from https://platform.claude.com/settings/keys."
        ],
    );
    check(
        402,
        "billing_error",
        "Pay.",
        expect!["quota: anthropic: quota exhausted: Pay."],
    );
    check(
        403,
        "permission_error",
        "Not yours.",
        expect![
            "auth: anthropic refused the credentials: Not yours. Set ANTHROPIC_API_KEY to a key from https://platform.claude.com/settings/keys."
        ],
    );
    check(
        404,
        "not_found_error",
        "model: claude-x",
        expect![[r#"not_found: anthropic has no model "claude-x": model: claude-x"#]],
    );
    check(
        413,
        "request_too_large",
        "Request exceeds the maximum size",
        expect!["context_too_long: too long for anthropic: Request exceeds the maximum size"],
    );
    check(
        429,
        "rate_limit_error",
        "Slow down.",
        expect!["rate_limit: rate limited by anthropic: Slow down."],
    );
    check(
        500,
        "api_error",
        "Internal server error",
        expect!["server: anthropic failed (HTTP 500): Internal server error"],
    );
    check(
        529,
        "overloaded_error",
        "Overloaded",
        expect!["server: anthropic failed (HTTP 529): Overloaded"],
    );
    assert_eq!(error::parse(502, "<html>Bad gateway</html>").message, "");
    assert_eq!(error::parse(502, "upstream down").message, "upstream down");
    assert_eq!(error::parse(422, r#"{"detail": "no"}"#).message, "no");
    assert_eq!(error::parse(422, r#"{"error": "no"}"#).message, "no");
}

#[test]
fn thinking_in_tags_is_thinking_on_servers_of_others() {
    let body = json!({"model": "m", "content": [{"type": "text", "text": "<think>Hm.</think>\nHello."}],
        "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}});
    let contents = |may_think_in_text| -> Vec<Content> {
        let wire = Anthropic {
            vendor: vendor("m"),
            family: family::for_model("m"),
            may_think_in_text,
        };
        let answer = wire
            .answer(&RequestContext::default(), Vec::new())
            .whole(&body.to_string())
            .unwrap();
        answer.parts.into_iter().map(|part| part.content).collect()
    };
    let text = |text: &str| Content::Text {
        text: text.to_owned(),
    };
    let thinking = Content::Thinking {
        text: "Hm.".to_owned(),
    };
    assert_eq!(contents(true), [thinking, text("Hello.")]);
    assert_eq!(contents(false), [text("<think>Hm.</think>\nHello.")]);
}
