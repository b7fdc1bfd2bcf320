//! Anthropic: recordings and faults.

use adjutant_core::{FinishReason, GenerateRequest, LanguageModel, Message};
use adjutant_providers::{Connection, Provider, Transport};
use serde_json::{Value, json};

use crate::cassette::{Framing, test_name};
use crate::faults::{self, Faults, Mode, ask, check};
use crate::recordings::{self, Recordings};
use crate::server::{Answer, Server};

pub(crate) const RECORDED: Recordings = Recordings {
    folder: "anthropic",
    provider: "anthropic",
    model: "claude-sonnet-5-5",
    schemas: &["anthropic.messages", "anthropic.messages.beta"],
    finish: |expected| match (expected.finish.as_deref()?, expected.tool_calls.is_empty()) {
        ("end_turn" | "stop_sequence" | "pause_turn", true) => Some(FinishReason::Stop),
        ("end_turn" | "stop_sequence" | "pause_turn", false) | ("tool_use", _) => {
            Some(FinishReason::ToolCalls)
        }
        ("max_tokens" | "model_context_window_exceeded", _) => Some(FinishReason::MaxTokens),
        ("refusal", _) => Some(FinishReason::ContentFilter),
        _ => None,
    },
    failure: recordings::by_status,
    state_recorded: state,
    state_sent: |request| state(&request["messages"].as_array().unwrap()[1..2]),
    results_sent: |request| {
        let content = request["messages"][2]["content"].as_array().unwrap();
        content
            .iter()
            .filter(|block| block["type"] == "tool_result")
            .count()
    },
    differences: &[(
        "rig/anthropic__streaming__gateway_message_delta_metadata.yaml#0",
        "outcome",
        "a server in between ends the vendor's stream with [DONE], on which the vendor's SDK chokes; the answer is whole",
    )],
};

/// Everything that only the vendor can read.
fn state(values: &[Value]) -> Vec<String> {
    let names = [
        "signature",
        "data",
        "encrypted_content",
        "encrypted_index",
        "encrypted_stdout",
    ];
    let found = names
        .iter()
        .flat_map(|name| recordings::strings(values, name));
    // A signature is announced empty and then sent.
    found.filter(|text| !text.is_empty()).collect()
}

const FAULTS: Faults = Faults {
    provider: "anthropic",
    model: "claude-sonnet-5-5",
    framing: Framing::Events,
    whole: r#"{"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Fine."}], "stop_reason": "end_turn"}"#,
    events: &[
        r#"{"type": "message_start", "message": {"content": [], "stop_reason": null, "usage": {"input_tokens": 9, "output_tokens": 1}}}"#,
        r#"{"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}"#,
        r#"{"type": "ping"}"#,
        r#"{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Fine."}}"#,
        r#"{"type": "content_block_stop", "index": 0}"#,
        r#"{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}"#,
        r#"{"type": "message_stop"}"#,
    ],
    begun: 6,
    end: "",
    key_header: "x-api-key: ",
    paths: ["/v1/messages", "/v1/messages"],
    body: |_, words| {
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": words}, "request_id": "req_1"}).to_string()
    },
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_answers_are_understood_as_the_vendor_does() {
    recordings::decode_all(&test_name!(), &[&RECORDED]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_back_fits_the_published_schema() {
    recordings::follow_up_all(&test_name!(), &[&RECORDED]).await;
}

#[tokio::test]
async fn what_any_vendor_may_do() {
    faults::all(&FAULTS).await;
}

/// One answer with these blocks.
async fn check_content(stop_reason: &str, content: &[Value], expected: &str) {
    let whole =
        json!({"type": "message", "content": content, "stop_reason": stop_reason}).to_string();
    let mut events = vec![r#"{"type": "message_start", "message": {"content": []}}"#.to_owned()];
    for (index, block) in content.iter().enumerate() {
        events.push(
            json!({"type": "content_block_start", "index": index, "content_block": block})
                .to_string(),
        );
        events.push(json!({"type": "content_block_stop", "index": index}).to_string());
    }
    events
        .push(json!({"type": "message_delta", "delta": {"stop_reason": stop_reason}}).to_string());
    events.push(r#"{"type": "message_stop"}"#.to_owned());
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let answer = |mode| match mode {
        Mode::Blocking => Answer::new(200, whole.as_str()),
        Mode::Drained | Mode::Streaming => Answer::events(Framing::Events, &events),
    };
    check(
        &FAULTS,
        |mode| vec![answer(mode), FAULTS.fine(mode)],
        expected,
    )
    .await;
}

#[tokio::test]
async fn broken_calls_are_told() {
    let call = |input: Value| {
        [json!({"type": "tool_use", "id": "toolu_1", "name": "weather", "input": input})]
    };
    check_content(
        "tool_use",
        &call(json!("{\"city\": \"Os")),
        r#"asked 1: ToolCalls "" weather(malformed: EOF while parsing a string at line 1 column 12)"#,
    )
    .await;
    check_content(
        "max_tokens",
        &call(json!({"city": "Os"})),
        r#"asked 1: MaxTokens "" weather({"city":"Os"})"#,
    )
    .await;
    check_content(
        "end_turn",
        &call(Value::Null),
        r#"asked 1: ToolCalls "" weather({})"#,
    )
    .await;
}

#[tokio::test]
async fn refusals_and_empty_answers_are_named() {
    let thinking = json!({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"});
    check_content("end_turn", &[], r#"asked 1: Stop """#).await;
    check_content("end_turn", &[thinking], r#"asked 1: Stop """#).await;
    check_content("refusal", &[], r#"asked 1: ContentFilter """#).await;
    check_content(
        "model_context_window_exceeded",
        &[],
        r#"asked 1: MaxTokens """#,
    )
    .await;
    check_content(
        "to_be_invented",
        &[],
        "asked 1: invalid_response: anthropic sent a response we cannot read: stop_reason to_be_invented, which is no end of an answer we know",
    )
    .await;
}

#[tokio::test]
async fn the_vendors_explanation_of_a_refusal_is_not_sent_back() {
    let refusal = json!({
        "content": [{"type": "text", "text": "Well"}],
        "stop_reason": "refusal",
        "stop_details": {"type": "refusal", "explanation": "This request triggered restrictions."}
    });
    let server = Server::start(vec![
        Answer::new(200, refusal.to_string()),
        FAULTS.fine(Mode::Drained),
    ])
    .await;
    let connection = Connection::new(Transport::new().unwrap()).with_key("key".to_owned().into());
    let connection = Connection {
        base_url: Some(server.url.clone()),
        ..connection
    };
    let model = Provider::find(FAULTS.provider)
        .unwrap()
        .model(FAULTS.model, connection)
        .unwrap();
    let ask = || Message::user("?").unwrap();
    let refused = model
        .generate(&GenerateRequest::new(vec![ask()]))
        .await
        .unwrap();
    let said = Message::assistant(refused.parts).unwrap();
    model
        .generate(&GenerateRequest::new(vec![ask(), said, ask()]))
        .await
        .unwrap();
    let body = server.received().remove(1).body;
    assert!(
        body.contains("Well") && !body.contains("triggered"),
        "{body}"
    );
}

#[tokio::test]
async fn an_error_inside_a_200_is_an_error() {
    let error = |kind: &str, words: &str| {
        json!({"type": "error", "error": {"type": kind, "message": words}}).to_string()
    };
    let inside = async |event: &str, expected: &str| {
        let answer = |mode| match mode {
            Mode::Blocking => Answer::new(200, event),
            Mode::Drained | Mode::Streaming => Answer::events(Framing::Events, &[event]),
        };
        check(
            &FAULTS,
            |mode| vec![answer(mode), FAULTS.fine(mode)],
            expected,
        )
        .await;
    };
    inside(
        &error("invalid_request_error", "Bad field."),
        "asked 1: bad_request: anthropic rejected the request: Bad field.",
    )
    .await;
    // Before anything was said, it is asked again.
    let overloaded = error("overloaded_error", "Overloaded");
    inside(&overloaded, r#"asked 2: Stop "Fine.""#).await;
    let mut events = FAULTS.events[..5].to_vec();
    events.push(&overloaded);
    let answers = vec![
        Answer::events(Framing::Events, &events),
        FAULTS.fine(Mode::Streaming),
    ];
    let seen = ask(&FAULTS, Mode::Streaming, answers, None, |_| {}).await;
    assert_eq!(
        seen.line(),
        "asked 1: server: anthropic answered with a failure: overloaded_error: Overloaded"
    );
}
