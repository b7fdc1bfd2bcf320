//! Gemini: recordings and faults.

use std::time::Duration;

use adjutant_core::{FinishReason, GenerateRequest, LanguageModel, Message};
use adjutant_providers::{Connection, Provider, Transport};
use serde_json::json;

use crate::cassette::{Exchange, Framing, test_name};
use crate::faults::{self, Faults, Mode, ask, check};
use crate::recordings::{self, Recordings};
use crate::server::{Answer, Server};

pub(crate) const RECORDED: Recordings = Recordings {
    folder: "gemini",
    provider: "gemini",
    model: "gemini-3.8-flash",
    schemas: &["gemini.generateContent"],
    finish: |expected| match (expected.finish.as_deref()?, expected.tool_calls.is_empty()) {
        ("STOP", true) => Some(FinishReason::Stop),
        ("STOP", false) => Some(FinishReason::ToolCalls),
        ("MAX_TOKENS", _) => Some(FinishReason::MaxTokens),
        ("SAFETY", _) => Some(FinishReason::ContentFilter),
        _ => None,
    },
    failure: |exchange| match exchange.status {
        200 if exchange.expected.blocked.is_some() => "refused",
        // An error inside a stream.
        200 => "server",
        // The vendor's 400 for a wrong key.
        400 if String::from_utf8_lossy(&exchange.body).contains("API key not valid") => "auth",
        _ => recordings::by_status(exchange),
    },
    state_recorded: |events| {
        let parts = events
            .iter()
            .filter_map(|event| event["candidates"][0]["content"]["parts"].as_array());
        recordings::strings(
            &parts.flatten().cloned().collect::<Vec<_>>(),
            "thoughtSignature",
        )
    },
    state_sent: |request| {
        recordings::strings(
            &request["contents"].as_array().unwrap()[1..2],
            "thoughtSignature",
        )
    },
    results_sent: |request| {
        let parts = request["contents"][2]["parts"].as_array().unwrap();
        parts
            .iter()
            .filter(|part| part.get("functionResponse").is_some())
            .count()
    },
    differences: &[],
};

const FAULTS: Faults = Faults {
    provider: "gemini",
    model: "gemini-3.8-flash",
    framing: Framing::Events,
    whole: r#"{"candidates": [{"content": {"parts": [{"text": "Fine."}]}, "finishReason": "STOP"}]}"#,
    events: &[
        r#"{"candidates": [{"content": {"parts": [{"text": "Fine."}]}}]}"#,
        r#"{"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}]}"#,
    ],
    begun: 1,
    end: "",
    key_header: "x-goog-api-key: ",
    paths: [
        "/v1beta/models/gemini-3.8-flash:generateContent",
        "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse",
    ],
    body: |status, words| json!({"error": {"code": status, "message": words}}).to_string(),
};

/// Vertex AI says the same things elsewhere.
const VERTEX: Faults = Faults {
    provider: "vertex",
    model: "projects/p/locations/eu/publishers/google/models/gemini-2.5-pro",
    key_header: "authorization: Bearer ",
    paths: [
        "/v1/projects/p/locations/eu/publishers/google/models/gemini-2.5-pro:generateContent",
        "/v1/projects/p/locations/eu/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
    ],
    ..FAULTS
};

/// The same recordings as if they came from there.
const VERTEX_RECORDED: Recordings = Recordings {
    provider: "vertex",
    schemas: &["gemini.vertex"],
    ..RECORDED
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_answers_are_understood_as_the_vendor_does() {
    recordings::decode_all(&test_name!(), &[&RECORDED]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_back_fits_the_published_schema() {
    recordings::follow_up_all(&test_name!(), &[&RECORDED]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_back_to_vertex_ai_fits_its_schema() {
    // Traces of the vendor's own tools are the Gemini API's alone.
    let has_traces =
        |exchange: &Exchange| String::from_utf8_lossy(&exchange.body).contains("toolCall");
    recordings::follow_up_where(&test_name!(), &[&VERTEX_RECORDED], |exchange| {
        !has_traces(exchange)
    })
    .await;
}

#[tokio::test]
async fn what_any_vendor_may_do() {
    faults::all(&FAULTS).await;
}

#[tokio::test]
async fn what_vertex_ai_may_do() {
    faults::all(&VERTEX).await;
}

#[tokio::test]
async fn addresses() {
    for (provider, base, model, expected) in [
        ("gemini", "", "gemini-x", "/v1beta/models/gemini-x"),
        (
            "gemini",
            "a/",
            "models/gemini-x",
            "/a/v1beta/models/gemini-x",
        ),
        (
            "google",
            "a/v1beta",
            "gemini-x",
            "/a/v1beta/models/gemini-x",
        ),
        (
            "gemini",
            "v1beta/",
            "tunedModels/mine",
            "/v1beta/tunedModels/mine",
        ),
        (
            "vertex",
            "",
            "gemini-x",
            "/v1/publishers/google/models/gemini-x",
        ),
        (
            "vertex",
            "v1/projects/p/locations/eu",
            "gemini-x",
            "/v1/projects/p/locations/eu/publishers/google/models/gemini-x",
        ),
        (
            "vertex",
            "v1beta1",
            "projects/p/locations/eu/endpoints/7",
            "/v1beta1/projects/p/locations/eu/endpoints/7",
        ),
    ] {
        let server = Server::start(vec![Answer::new(200, FAULTS.whole)]).await;
        let connection =
            Connection::new(Transport::new().unwrap()).with_key("key".to_owned().into());
        let connection = Connection {
            base_url: Some(server.url.join(base).unwrap()),
            ..connection
        };
        let model = Provider::find(provider)
            .unwrap()
            .model(model, connection)
            .unwrap();
        model
            .generate(&GenerateRequest::new(vec![Message::user("?").unwrap()]))
            .await
            .unwrap();
        let head = server.received().remove(0).head;
        assert_eq!(
            head.lines().next(),
            Some(format!("POST {expected}:streamGenerateContent?alt=sse HTTP/1.1").as_str())
        );
        // Express mode, which has no project, takes an API key.
        assert_eq!(
            head.contains("authorization: Bearer key"),
            expected.contains("/projects/"),
            "{head}"
        );
        assert_eq!(
            head.contains("x-goog-api-key: key"),
            !expected.contains("/projects/"),
            "{head}"
        );
    }
}

/// One vendor answer with this content.
fn answer(mode: Mode, content: &str) -> Answer {
    match mode {
        Mode::Blocking => Answer::new(200, content),
        Mode::Drained | Mode::Streaming => Answer::events(Framing::Events, &[content]),
    }
}

async fn check_content(content: &str, expected: &str) {
    check(
        &FAULTS,
        |mode| vec![answer(mode, content), FAULTS.fine(mode)],
        expected,
    )
    .await;
}

#[tokio::test]
async fn broken_calls_are_told() {
    check_content(
        r#"{"candidates": [{"content": {"parts": [{"functionCall": {"name": "weather", "args": "{\"city\": \"Os"}}]}, "finishReason": "STOP"}]}"#,
        r#"asked 1: ToolCalls "" weather(malformed: EOF while parsing a string at line 1 column 12)"#,
    )
    .await;
    check_content(
        r#"{"candidates": [{"content": {"parts": [{"functionCall": {"name": "weather", "args": {"city": "Os"}}}]}, "finishReason": "MAX_TOKENS"}]}"#,
        r#"asked 1: MaxTokens "" weather({"city":"Os"})"#,
    )
    .await;
    check_content(
        r#"{"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}"#,
        r#"asked 1: MalformedCall """#,
    )
    .await;
}

#[tokio::test]
async fn refusals_and_empty_answers_are_named() {
    for (content, expected) in [
        (
            r#"{"candidates": []}"#,
            "asked 1: invalid_response: gemini sent a response we cannot read: no candidates",
        ),
        (
            r#"{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}"#,
            "asked 1: refused: gemini refused to answer: the prompt was blocked: PROHIBITED_CONTENT",
        ),
        (
            r#"{"candidates": [{"finishReason": "SAFETY"}]}"#,
            r#"asked 1: ContentFilter """#,
        ),
        (
            r#"{"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]}"#,
            r#"asked 1: Stop """#,
        ),
        (
            r#"{"candidates": [{"content": {"parts": [{"text": "Hm.", "thought": true}]}, "finishReason": "STOP"}]}"#,
            r#"asked 1: Stop """#,
        ),
    ] {
        check_content(content, expected).await;
    }
}

#[tokio::test]
async fn an_error_inside_a_200_is_an_error() {
    check_content(
        r#"{"error": {"code": 400, "message": "Bad field.", "status": "INVALID_ARGUMENT"}}"#,
        "asked 1: bad_request: gemini rejected the request: Bad field.",
    )
    .await;
    let late = r#"{"error": {"code": 503, "message": "Overloaded.", "status": "UNAVAILABLE"}}"#;
    // Before anything was said, it is asked again.
    check_content(late, r#"asked 2: Stop "Fine.""#).await;
    for reason in ["OTHER", "MALFORMED_RESPONSE"] {
        let failed = format!(r#"{{"candidates": [{{"finishReason": "{reason}"}}]}}"#);
        check_content(&failed, r#"asked 2: Stop "Fine.""#).await;
    }
    let answers = vec![
        Answer::events(Framing::Events, &[FAULTS.events[0], late]),
        FAULTS.fine(Mode::Streaming),
    ];
    let seen = ask(&FAULTS, Mode::Streaming, answers, None, |_| {}).await;
    assert_eq!(
        seen.line(),
        "asked 1: server: gemini answered with a failure: 503 UNAVAILABLE: Overloaded."
    );
}

#[tokio::test]
async fn a_wait_in_the_body_counts() {
    let limited = || {
        Answer::new(
            429,
            r#"{"error": {"code": 429, "message": "Slow.", "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "20s"}]}}"#,
        )
    };
    for mode in [Mode::Blocking, Mode::Drained, Mode::Streaming] {
        let answers = vec![limited(), FAULTS.fine(mode)];
        let seen = ask(
            &FAULTS,
            mode,
            answers,
            Some(Duration::from_secs(10)),
            |_| {},
        )
        .await;
        assert_eq!(
            (seen.asked, seen.end.unwrap_err().retry_after()),
            (1, Some(Duration::from_secs(20)))
        );
    }
    let depleted = r#"{"error": {"code": 429, "message": "Your prepaid credits are depleted."}}"#;
    check(
        &FAULTS,
        |mode| vec![Answer::new(429, depleted), FAULTS.fine(mode)],
        "asked 1: quota: gemini: quota exhausted: Your prepaid credits are depleted.",
    )
    .await;
}
