mod requests; // tests of encoding

use std::collections::VecDeque;

use adjutant_core::{Content, Delta, GenerateResponse};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::chunked_streams::{check_damaged, decode_in_chunks};
use crate::decode::{SseDecoder, StreamDecoder};
use requests::sent_back;

const MODEL: &str = "gpt-5.6";
/// Made from the vendor's published schema; whole, as an answer and as the last event of a stream
/// has it.
const EVERYTHING: &str = include_str!("fixtures/everything.json");
/// The events before the last one.
const EVENTS: &str = include_str!("fixtures/everything.events.jsonl");

fn answerer() -> Arc<Vendor> {
    Arc::new(PROVIDER.vendor(MODEL, error::parse).unwrap())
}

fn decoded(body: &str) -> Result<GenerateResponse, ModelError> {
    response::decode(body, &answerer(), Vec::new())
}

fn decoder() -> Box<dyn StreamDecoder> {
    let answer = PartialAnswer::new(answerer(), Vec::new());
    Box::new(SseDecoder::new(Box::new(answer)))
}

/// Events in pieces of `size` bytes.
fn streamed(events: &[String], size: usize) -> (Vec<Delta>, Result<GenerateResponse, ModelError>) {
    let stream: String = events
        .iter()
        .map(|event| format!("event: x\ndata: {event}\n\n"))
        .collect();
    streamed_bytes(stream.as_bytes(), size)
}

fn streamed_bytes(bytes: &[u8], size: usize) -> (Vec<Delta>, Result<GenerateResponse, ModelError>) {
    decode_in_chunks(decoder(), bytes, size)
}

fn last_event(response: &Value) -> String {
    let kind = match response["status"].as_str() {
        Some("incomplete" | "failed") => {
            format!("response.{}", response["status"].as_str().unwrap())
        }
        _ => "response.completed".to_owned(),
    };
    json!({"type": kind, "response": response}).to_string()
}

fn everything_streamed() -> Vec<String> {
    let last = last_event(&serde_json::from_str(EVERYTHING).unwrap());
    EVENTS.lines().map(str::to_owned).chain([last]).collect()
}

fn line(answer: &Result<GenerateResponse, ModelError>) -> String {
    match answer {
        Err(error) => format!("{}: {error}", error.code()),
        Ok(response) => {
            let parts = response.parts.iter().map(|part| match &part.content {
                Content::Text { text } => format!(" {text:?}"),
                Content::Thinking { text } => format!(" thinks {text:?}"),
                Content::Refusal { text } => format!(" refuses {text:?}"),
                Content::Opaque { kind } => format!(" {kind}"),
                Content::ToolCall(call) => format!(" {}({})", call.name, json!(call.arguments)),
                other => panic!("{other:?}"),
            });
            format!("{:?}:{}", response.finish, parts.collect::<String>())
        }
    }
}

fn check(response: &Value, expected: Expect) {
    let whole = decoded(&response.to_string());
    assert_eq!(line(&whole), line(&streamed(&[last_event(response)], 7).1));
    expected.assert_eq(&line(&whole));
}

/// Deltas as one text each.
fn said(deltas: &[Delta]) -> (String, String, Vec<(String, String)>) {
    let (mut text, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
    for delta in deltas {
        match delta {
            Delta::Text(words) => text += words,
            Delta::Thinking(words) => thinking += words,
            Delta::ToolCall {
                index,
                name,
                arguments,
            } => {
                calls.resize(calls.len().max(index + 1), (String::new(), String::new()));
                calls[*index].0.clone_from(name);
                calls[*index].1 += arguments;
            }
            other => panic!("{other:?}"),
        }
    }
    (text, thinking, calls)
}

#[test]
fn everything_of_an_answer_is_kept() {
    let whole = decoded(EVERYTHING);
    expect![[r#"ToolCalls: thinks "**Looking**\n\nWhere is Oslo?\n\n**Calling**\n\nTwo tools." web_search_call thinks "" "Oslo is in Norway. " "Let me look." weather({"city":"Oslo","days":2}) time({})"#]].assert_eq(&line(&whole));
    let response = whole.unwrap();
    assert_eq!(response.model.name, "gpt-5.6-2026-07-09");
    let usage = response.usage;
    assert_eq!(
        [
            usage.input_tokens,
            usage.output_tokens,
            usage.cached_tokens,
            usage.cache_written_tokens,
            usage.thinking_tokens
        ],
        [Some(1200), Some(300), Some(1024), Some(100), Some(250)]
    );
    assert_eq!(
        (response.counters.input, response.counters.output),
        (Some(1200), Some(300))
    );
    // xAI, which speaks the same language, says what it charges.
    let mut billed: Value = serde_json::from_str(EVERYTHING).unwrap();
    billed["usage"]["cost_in_usd_ticks"] = json!(37_756_000);
    let billed = decoded(&billed.to_string()).unwrap();
    assert_eq!(
        (response.cost, billed.cost.map(|cost| cost.nano_usd())),
        (None, Some(3_775_600))
    );
}

#[test]
fn a_streamed_answer_is_the_whole_one_and_its_deltas_add_up_to_it() {
    let whole = decoded(EVERYTHING).unwrap();
    for size in [1, 3, 64, usize::MAX] {
        let (deltas, end) = streamed(&everything_streamed(), size);
        assert_eq!(end.as_ref(), Ok(&whole));
        let (text, thinking, calls) = said(&deltas);
        assert_eq!(text, whole.text());
        assert_eq!(
            thinking,
            "**Looking**\n\nWhere is Oslo?\n\n**Calling**\n\nTwo tools."
        );
        let expected = [("weather", r#"{"city":"Oslo","days":2}"#), ("time", "{}")];
        assert_eq!(
            calls,
            expected.map(|(name, arguments)| (name.to_owned(), arguments.to_owned()))
        );
    }
}

#[test]
fn where_the_last_event_holds_no_output_the_items_before_it_count() {
    let whole = decoded(EVERYTHING).unwrap();
    let mut events = everything_streamed();
    let mut last: Value = serde_json::from_str(&events.pop().unwrap()).unwrap();
    for output in [json!([]), Value::Null] {
        last["response"]["output"] = output;
        let events: Vec<String> = events.iter().cloned().chain([last.to_string()]).collect();
        assert_eq!(streamed(&events, 11).1.as_ref(), Ok(&whole));
    }
}

#[test]
fn arguments_come_in_deltas_or_at_once_or_late() {
    let call = |arguments: &str| json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": arguments});
    let added = json!({"type": "response.output_item.added", "output_index": 0, "item": call("")});
    let delta = |part: &str| json!({"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc_1", "delta": part});
    let all = json!({"type": "response.function_call_arguments.done", "output_index": 0, "item_id": "fc_1", "arguments": "{\"a\":1}"});
    let done =
        json!({"type": "response.output_item.done", "output_index": 0, "item": call("{\"a\":1}")});
    let full = json!({"type": "response.completed", "response": {"status": "completed", "output": [call("{\"a\":1}")]}});
    let empty =
        json!({"type": "response.completed", "response": {"status": "completed", "output": []}});
    // All there is of a call, without its id of either kind.
    let named = json!({"type": "response.function_call_arguments.done", "name": "weather", "arguments": "{\"a\":1}"});
    for events in [
        vec![&added, &delta("{\"a\""), &delta(":1}"), &all, &done, &full],
        vec![&added, &delta("{\"a\""), &delta(":1}"), &empty],
        vec![&added, &all, &empty],
        vec![&added, &done, &empty],
        vec![&done, &empty],
        vec![&added, &full],
        vec![&full],
        vec![&added, &delta("{\"a\""), &full],
        vec![&named, &empty],
    ] {
        let events: Vec<String> = events.iter().map(ToString::to_string).collect();
        let (deltas, end) = streamed(&events, 5);
        assert_eq!(line(&end), r#"ToolCalls: weather({"a":1})"#, "{events:?}");
        assert_eq!(
            said(&deltas).2,
            [("weather".to_owned(), "{\"a\":1}".to_owned())],
            "{events:?}"
        );
        let parts = end.unwrap().parts;
        let Content::ToolCall(call) = &parts[0].content else {
            panic!("{parts:?}")
        };
        let known = !events[0].starts_with(&named.to_string());
        assert_eq!(call.provider_id.as_deref(), known.then_some("call_1"));
    }
}

#[test]
fn calls_may_be_interleaved_and_items_without_ids() {
    let added = |at: u64, name: &str| json!({"type": "response.output_item.added", "output_index": at, "item": {"type": "function_call", "call_id": format!("c{at}"), "name": name, "arguments": ""}});
    let delta = |at: u64, part: &str| json!({"type": "response.function_call_arguments.delta", "output_index": at, "delta": part});
    let events = [
        added(0, "a"),
        added(1, "b"),
        delta(1, "{\"y\":"),
        delta(0, "{\"x\":"),
        delta(1, "2}"),
        delta(0, "1}"),
        json!({"type": "response.completed", "response": {"status": "completed"}}),
    ];
    let (deltas, end) = streamed(&events.map(|event| event.to_string()), 9);
    assert_eq!(line(&end), r#"ToolCalls: a({"x":1}) b({"y":2})"#);
    let expected =
        [("a", "{\"x\":1}"), ("b", "{\"y\":2}")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(said(&deltas).2, expected);
    // Nothing says where it belongs: what comes belongs to what came last.
    let events = [
        json!({"type": "response.output_item.added", "item": {"type": "message", "role": "assistant", "content": []}}),
        json!({"type": "response.output_text.delta", "delta": "Hal"}),
        json!({"type": "response.output_text.delta", "delta": "lo"}),
        json!({"type": "response.output_item.done", "item": {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hallo"}]}}),
        json!({"type": "response.output_item.added", "item": {"type": "function_call", "call_id": "c", "name": "a", "arguments": ""}}),
        json!({"type": "response.function_call_arguments.done", "arguments": "{}"}),
        json!({"type": "response.completed", "response": {"status": "completed", "output": []}}),
    ];
    let (deltas, end) = streamed(&events.map(|event| event.to_string()), 9);
    assert_eq!(line(&end), r#"ToolCalls: "Hallo" a({})"#);
    assert_eq!(said(&deltas).0, "Hallo");
}

#[test]
fn a_refusal_is_not_text() {
    let refusal = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [
        {"type": "output_text", "text": "Well. ", "annotations": []},
        {"type": "refusal", "refusal": "I cannot."},
    ]});
    let response = json!({"status": "completed", "output": [refusal]});
    check(
        &response,
        expect![[r#"Stop: "Well. " refuses "I cannot.""#]],
    );
    assert_eq!(sent_back(&response["output"]).0, [refusal]);
    let events = [
        json!({"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": "I can"}),
        json!({"type": "response.refusal.done", "output_index": 0, "content_index": 0, "refusal": "I cannot."}),
        json!({"type": "response.completed", "response": {"status": "completed", "output": []}}),
    ];
    let (deltas, end) = streamed(&events.map(|event| event.to_string()), 9);
    assert_eq!(
        (line(&end).as_str(), deltas.len()),
        (r#"Stop: refuses "I cannot.""#, 0)
    );
}

#[test]
fn how_an_answer_ended() {
    let text = json!([{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hal"}]}]);
    let incomplete = |reason: Value| json!({"status": "incomplete", "incomplete_details": reason, "output": text});
    check(
        &json!({"status": "completed", "output": text}),
        expect![[r#"Stop: "Hal""#]],
    );
    check(
        &json!({"status": null, "output": text}),
        expect![[r#"Stop: "Hal""#]],
    );
    check(
        &json!({"status": "completed", "output": []}),
        expect!["Stop:"],
    );
    check(
        &incomplete(json!({"reason": "max_output_tokens"})),
        expect![[r#"MaxTokens: "Hal""#]],
    );
    check(
        &incomplete(json!({"reason": "content_filter"})),
        expect![[r#"ContentFilter: "Hal""#]],
    );
    check(
        &incomplete(Value::Null),
        expect!["truncated: the answer of openai ended early: it is incomplete, without a reason"],
    );
    check(
        &incomplete(json!({"reason": "full_moon"})),
        expect![
            "invalid_response: openai sent a response we cannot read: incomplete because of full_moon, which is no end of an answer we know"
        ],
    );
    for (code, kind) in [
        ("server_error", "server"),
        ("rate_limit_exceeded", "rate_limit"),
        ("invalid_prompt", "refused"),
        ("insufficient_quota", "quota"),
        ("to_be_invented", "server"),
    ] {
        let failed =
            json!({"status": "failed", "error": {"code": code, "message": "Sorry."}, "output": []});
        assert_eq!(
            decoded(&failed.to_string()).unwrap_err().code(),
            kind,
            "{code}"
        );
        assert_eq!(
            streamed(&[last_event(&failed)], 9).1.unwrap_err().code(),
            kind,
            "{code}"
        );
    }
    check(
        &json!({"status": "failed", "error": null, "output": []}),
        expect!["server: openai answered with a failure: it failed without saying why"],
    );
    for status in ["in_progress", "queued", "cancelled"] {
        let error = decoded(&json!({"status": status, "output": []}).to_string()).unwrap_err();
        assert_eq!(error.code(), "truncated", "{status}");
    }
    let error = decoded(&json!({"status": "dreaming", "output": []}).to_string()).unwrap_err();
    assert_eq!(error.code(), "invalid_response");
}

#[test]
fn what_is_no_answer_is_an_error() {
    for (body, code) in [
        ("{}", "invalid_response"),
        ("[]", "invalid_response"),
        (r#"{"choices": []}"#, "invalid_response"),
        (r#"{"status": "completed", "output": "#, "truncated"),
        (
            r#"{"error": {"code": "server_error", "message": "Sorry."}}"#,
            "server",
        ),
        (
            r#"{"error": {"code": null, "message": "Incorrect API key provided.", "type": "invalid_request_error"}, "status": 401}"#,
            "auth",
        ),
        (r#"{"detail": "Sorry."}"#, "server"),
    ] {
        assert_eq!(decoded(body).unwrap_err().code(), code, "{body}");
    }
    let begun: Vec<String> = EVENTS.lines().map(str::to_owned).collect();
    for (events, code) in [
        (&begun[..], "truncated"),
        (&[], "truncated"),
        (&[r#"{"type": "error", "code": "rate_limit_exceeded", "message": "Slow.", "param": null}"#.to_owned()], "rate_limit"),
        (&[r#"{"type": "error", "error": {"type": "tokens", "code": "rate_limit_exceeded", "message": "Slow."}}"#.to_owned()], "rate_limit"),
        (&[r#"{"error": {"message": "Sorry.", "code": 500}}"#.to_owned()], "server"),
        (&["[1]".to_owned()], "invalid_response"),
        (&["{\"type\": ".to_owned()], "truncated"),
    ] {
        assert_eq!(streamed(events, 9).1.unwrap_err().code(), code, "{events:?}");
    }
    // RequestContext for a stream, a server may answer whole or with a bare error.
    let whole = serde_json::from_str::<Value>(EVERYTHING).unwrap();
    assert_eq!(
        streamed_bytes(EVERYTHING.as_bytes(), 9).1,
        decoded(&whole.to_string())
    );
    let error = streamed_bytes(
        b"{\"error\": {\"message\": \"No.\", \"code\": \"insufficient_quota\"}}\n",
        9,
    )
    .1;
    assert_eq!(error.unwrap_err().code(), "quota");
}

#[test]
fn what_is_not_known_is_kept_or_let_pass() {
    let output = json!([
        {"type": "to_be_invented", "id": "x_1", "secret": [1, null]},
        {"type": "message", "role": "assistant", "content": [{"type": "song", "notes": "do re"}, {"type": "output_text", "text": null}]},
        {"type": "message", "role": "assistant", "content": "Plain."},
        {"role": "assistant", "content": [{"type": "text", "text": " Untyped."}]},
        null,
    ]);
    check(
        &json!({"status": "completed", "output": output, "usage": {"input_tokens": null, "input_tokens_details": null}, "model": ""}),
        expect![[r#"Stop: to_be_invented song "" "Plain." " Untyped.""#]],
    );
    let (items, losses) = sent_back(&output);
    expect![[r#"
        [{"type":"message","role":"assistant","content":[{"type":"output_text","text":"","annotations":[]}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Plain.","annotations":[]}]},{"role":"assistant","content":[{"type":"output_text","text":" Untyped.","annotations":[]}],"type":"message"}]
        [
            "to_be_invented was left out: a request does not take it",
            "song was left out: a request does not take it",
        ]"#]].assert_eq(&format!("{}\n{losses:#?}", json!(items)));
    let events = ["response.queued", "response.to_be_invented", "keepalive"]
        .map(|kind| json!({"type": kind, "delta": {"x": 1}, "output_index": "?"}).to_string());
    let last = last_event(&json!({"status": "completed", "output": [], "model": null}));
    let events: Vec<String> = events.into_iter().chain([last]).collect();
    assert_eq!(line(&streamed(&events, 9).1), "Stop:");
}

#[test]
fn damage_is_survived() {
    let stream: String = everything_streamed()
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    check_damaged(stream.as_bytes(), decoder);
}

/// Something like an event: known and unknown types, fields of every kind, missing, out of order.
fn any_event() -> impl Strategy<Value = String> {
    let kinds = [
        "response.created",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.output_text.done",
        "response.refusal.delta",
        "response.reasoning_summary_text.delta",
        "response.reasoning_text.done",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.completed",
        "response.incomplete",
        "x",
        "",
    ];
    let item = prop_oneof![
        Just(Value::Null),
        Just(
            json!({"type": "function_call", "call_id": "c", "name": "a", "arguments": "{\"ä\":1}"})
        ),
        Just(
            json!({"type": "message", "id": "m", "content": [{"type": "output_text", "text": "äö"}, 7]})
        ),
        Just(json!({"type": "reasoning", "summary": [{"text": "秋"}], "content": [{"text": 1}]})),
        Just(json!([1])),
        Just(json!({"type": 5})),
    ];
    (proptest::sample::select(kinds.to_vec()), proptest::option::of(0u64..4), item, "[a-zä\"{}]{0,4}")
        .prop_map(|(kind, at, item, words)| {
            json!({"type": kind, "output_index": at, "content_index": at, "item_id": "m", "item": item,
                "delta": words, "text": words, "arguments": words, "refusal": words,
                "response": {"status": "completed", "output": [item]}})
            .to_string()
        })
}

proptest! {
    #[test]
    fn no_bytes_break_it(bytes in proptest::collection::vec(any::<u8>(), 0..200), size in 1usize..9) {
        let _ = streamed_bytes(&bytes, size);
        let _ = decoded(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_events_break_it_and_the_cuts_do_not_matter(
        events in proptest::collection::vec(any_event(), 0..12),
        size in 1usize..40,
    ) {
        prop_assert_eq!(streamed(&events, size), streamed(&events, usize::MAX));
    }
}

#[test]
fn thinking_in_tags_is_thinking_on_servers_of_others() {
    let said = "<think>\nHm. `a < b`\n</think>\n\nSay `<think>x</think>`.";
    let response = json!({
        "id": "r", "object": "response", "status": "completed", "model": MODEL,
        "output": [{"type": "message", "id": "m", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": said, "annotations": []}]}],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    });
    let wire = |may_think_in_text| Responses {
        vendor: answerer(),
        family: family::for_model(MODEL),
        tools: request::Tools::default(),
        may_think_in_text,
    };
    let fold = |elsewhere| wire(elsewhere).answer(&RequestContext::default(), Vec::new());
    let texts = |response: &GenerateResponse| -> Vec<(bool, String)> {
        let part = |content: &Content| match content {
            Content::Text { text } => (false, text.clone()),
            Content::Thinking { text } => (true, text.clone()),
            other => panic!("{other:?}"),
        };
        response.parts.iter().map(|it| part(&it.content)).collect()
    };
    let divided = [
        (true, "Hm. `a < b`\n".to_owned()),
        (false, "Say `<think>x</think>`.".to_owned()),
    ];
    let whole = fold(true).whole(&response.to_string()).unwrap();
    assert_eq!(texts(&whole), divided);
    let own = fold(false).whole(&response.to_string()).unwrap();
    assert_eq!(texts(&own), [(false, said.to_owned())]);
    let mut events: Vec<String> = said
        .chars()
        .map(|c| json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": c.to_string()}))
        .map(|event| event.to_string())
        .collect();
    events.push(last_event(&response));
    let (mut deltas, mut answer) = (VecDeque::new(), fold(true));
    for event in &events {
        answer.event(event, &mut deltas).unwrap();
    }
    let streamed = answer.finish("", &mut deltas).unwrap();
    assert_eq!(texts(&streamed), divided);
    let shown = |thinks: bool| -> String {
        let piece = |delta: &Delta| match delta {
            Delta::Text(text) if !thinks => Some(text.clone()),
            Delta::Thinking(text) if thinks => Some(text.clone()),
            _ => None,
        };
        deltas.iter().filter_map(piece).collect()
    };
    assert_eq!(
        (shown(true), shown(false)),
        (divided[0].1.clone(), divided[1].1.clone())
    );
    let local = "http://127.0.0.1:1".parse().unwrap();
    assert!(PROVIDER.is_elsewhere(&local) && !PROVIDER.is_elsewhere(&BASE_URL.parse().unwrap()));
}
