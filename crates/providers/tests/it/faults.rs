//! What a vendor may do to us, in its own form, as bytes over a socket; blocking and streaming come out the same.

use std::time::Duration;

use adjutant_core::{Delta, GenerateRequest, GenerateResponse, LanguageModel, Message, ModelError};
use adjutant_providers::Transport;
use adjutant_providers::gemini::{Gemini, GeminiConfig};
use expect_test::{Expect, expect};
use futures::StreamExt;

use crate::server::{Answer, Server};

const KEY: &str = "key-that-nobody-may-see";
const FINE: &str = r#"{"candidates": [{"content": {"parts": [{"text": "Fine."}]}, "finishReason": "STOP"}]}"#;
const BEGUN: &str = r#"{"candidates": [{"content": {"parts": [{"text": "Half "}]}}]}"#;

/// How an answer is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Blocking,
    Streaming,
}

const MODES: [Mode; 2] = [Mode::Blocking, Mode::Streaming];

impl Mode {
    /// One vendor answer with this content.
    fn answer(self, content: &str) -> Answer {
        match self {
            Self::Blocking => Answer::new(200, content),
            Self::Streaming => Answer::events(&[content]),
        }
    }
}

/// What the caller of the adapter saw.
struct Seen {
    deltas: Vec<String>,
    end: Result<GenerateResponse, ModelError>,
    /// How often the vendor was asked.
    asked: usize,
}

impl Seen {
    fn line(&self) -> String {
        let end = match &self.end {
            Ok(response) => {
                let calls = response.tool_calls().map(|call| match &call.malformed {
                    None => format!(" {}({})", call.name, serde_json::json!(call.arguments)),
                    Some(malformed) => format!(" {}(malformed: {})", call.name, malformed.reason),
                });
                format!("{:?} {:?}{}", response.finish, response.text(), calls.collect::<String>())
            }
            Err(error) => format!("{}: {error}", error.code()),
        };
        format!("asked {}: {end}", self.asked)
    }
}

fn config(server: &Server) -> GeminiConfig {
    let transport = Transport::new().unwrap();
    GeminiConfig { base_url: Some(server.url.clone()), ..GeminiConfig::new(KEY.to_owned().into(), transport) }
}

fn question() -> GenerateRequest {
    GenerateRequest::new(vec![Message::user("How are you?").unwrap()])
}

async fn ask(
    mode: Mode,
    answers: Vec<Answer>,
    request: &GenerateRequest,
    adjust: impl FnOnce(&mut GeminiConfig),
) -> Seen {
    let server = Server::start(answers).await;
    let mut config = config(&server);
    adjust(&mut config);
    let model = Gemini::new(config).unwrap();
    let (deltas, end) = match mode {
        Mode::Blocking => (Vec::new(), model.generate(request).await),
        Mode::Streaming => drained(&model, request).await,
    };
    for text in [format!("{end:?}"), end.as_ref().err().map(ToString::to_string).unwrap_or_default()] {
        assert!(!text.contains(KEY), "{text}");
    }
    Seen { deltas, end, asked: server.asked().len() }
}

async fn drained(
    model: &Gemini,
    request: &GenerateRequest,
) -> (Vec<String>, Result<GenerateResponse, ModelError>) {
    let mut stream = match model.stream(request).await {
        Ok(stream) => stream,
        Err(error) => return (Vec::new(), Err(error)),
    };
    let mut deltas = Vec::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(Delta::Finished(response)) => return (deltas, Ok(response)),
            Ok(Delta::Retrying { attempt, .. }) => deltas.push(format!("retrying after {attempt}")),
            Ok(delta) => deltas.push(format!("{delta:?}")),
            Err(error) => return (deltas, Err(error)),
        }
    }
    panic!("a stream ends with Finished or an error");
}

/// The same fault in both modes comes out the same.
async fn check(answers: impl Fn(Mode) -> Vec<Answer>, expected: Expect) {
    let mut lines = Vec::new();
    for mode in MODES {
        lines.push(ask(mode, answers(mode), &question(), |_| {}).await.line());
    }
    assert_eq!(lines[0], lines[1]);
    expected.assert_eq(&lines[0]);
}

#[tokio::test]
async fn a_fine_answer() {
    check(|mode| vec![mode.answer(FINE)], expect![[r#"asked 1: Stop "Fine.""#]]).await;
}

#[tokio::test]
async fn truncated_arguments_are_marked_and_kept_apart() {
    let content = r#"{"candidates": [{"content": {"parts": [{"functionCall": {"name": "weather", "args": "{\"city\": \"Os"}}]}, "finishReason": "STOP"}]}"#;
    check(
        |mode| vec![mode.answer(content)],
        expect![[
            r#"asked 1: ToolCalls "" weather(malformed: EOF while parsing a string at line 1 column 12)"#
        ]],
    )
    .await;
}

#[tokio::test]
async fn max_tokens_inside_a_call_is_told() {
    let content = r#"{"candidates": [{"content": {"parts": [{"functionCall": {"name": "weather", "args": {"city": "Os"}}}]}, "finishReason": "MAX_TOKENS"}]}"#;
    check(|mode| vec![mode.answer(content)], expect![[r#"asked 1: MaxTokens "" weather({"city":"Os"})"#]])
        .await;
}

#[tokio::test]
async fn a_server_that_fails_is_asked_again() {
    for status in [500, 503] {
        check(
            |mode| vec![Answer::new(status, "{}"), mode.answer(FINE)],
            expect![[r#"asked 2: Stop "Fine.""#]],
        )
        .await;
    }
}

#[tokio::test]
async fn a_connection_that_breaks_before_anything_is_asked_again() {
    check(|mode| vec![Answer::reset(), mode.answer(FINE)], expect![[r#"asked 2: Stop "Fine.""#]]).await;
    check(
        |mode| vec![Answer::new(200, "").then_break(), mode.answer(FINE)],
        expect![[r#"asked 2: Stop "Fine.""#]],
    )
    .await;
}

#[tokio::test]
async fn a_retry_is_announced_on_a_stream() {
    let answers = vec![Answer::new(503, "{}"), Answer::events(&[FINE])];
    let seen = ask(Mode::Streaming, answers, &question(), |_| {}).await;
    assert_eq!(seen.deltas, ["retrying after 1", "Text(\"Fine.\")"]);
}

#[tokio::test]
async fn retries_are_counted() {
    let failing = || {
        (0..4)
            .map(|_| Answer::new(500, r#"{"error": {"code": 500, "message": "Oops."}}"#))
            .collect::<Vec<_>>()
    };
    check(|_| failing(), expect!["asked 2: server: gemini failed (HTTP 500): Oops."]).await;
    for mode in MODES {
        assert_eq!(ask(mode, failing(), &question(), |config| config.retries = 0).await.asked, 1);
    }
}

#[tokio::test]
async fn a_rate_limit_is_waited_for_or_returned() {
    let limited = |wait: &str| {
        Answer::new(429, r#"{"error": {"code": 429, "message": "Slow down."}}"#).header("Retry-After", wait)
    };
    check(|mode| vec![limited("0"), mode.answer(FINE)], expect![[r#"asked 2: Stop "Fine.""#]]).await;
    check(
        |mode| vec![limited("3600"), mode.answer(FINE)],
        expect!["asked 1: rate_limit: rate limited by gemini; asks to wait 3600 s"],
    )
    .await;
    let dated = || limited("Wed, 21 Oct 2026 08:28:00 GMT").header("Date", "Wed, 21 Oct 2026 07:28:00 GMT");
    check(
        |mode| vec![dated(), mode.answer(FINE)],
        expect!["asked 1: rate_limit: rate limited by gemini; asks to wait 3600 s"],
    )
    .await;
    let in_body = || {
        Answer::new(
            429,
            r#"{"error": {"code": 429, "message": "Slow.", "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "20s"}]}}"#,
        )
    };
    for mode in MODES {
        let mut request = question();
        request.time_left = Some(Duration::from_secs(10));
        let seen = ask(mode, vec![in_body(), mode.answer(FINE)], &request, |_| {}).await;
        assert_eq!((seen.asked, seen.end.unwrap_err().retry_after()), (1, Some(Duration::from_secs(20))));
    }
}

#[tokio::test]
async fn what_waiting_cannot_help_is_not_asked_again() {
    let refused = |status: u16, message: &str| {
        let body = serde_json::json!({"error": {"code": status, "message": message}}).to_string();
        move |mode: Mode| vec![Answer::new(status, body.clone()), mode.answer(FINE)]
    };
    check(
        refused(400, "Bad field."),
        expect!["asked 1: bad_request: gemini rejected the request: Bad field."],
    )
    .await;
    check(refused(401, "Who are you?"), expect!["asked 1: auth: gemini refused the credentials: Who are you? Set GEMINI_API_KEY to a key from https://aistudio.google.com/apikey."]).await;
    check(refused(403, "Not you."), expect!["asked 1: auth: gemini refused the credentials: Not you. Set GEMINI_API_KEY to a key from https://aistudio.google.com/apikey."]).await;
    check(
        refused(404, "No such model."),
        expect![[r#"asked 1: not_found: gemini has no model "gemini-3.8-flash": No such model."#]],
    )
    .await;
    check(
        refused(429, "Your prepaid credits are depleted."),
        expect!["asked 1: quota: gemini: quota exhausted: Your prepaid credits are depleted."],
    )
    .await;
}

#[tokio::test]
async fn redirects_do_not_get_the_key() {
    let elsewhere = Server::start(vec![Answer::new(200, FINE)]).await;
    let address = elsewhere.url.to_string();
    check(
        |mode| vec![Answer::new(307, "").header("Location", address.clone()), mode.answer(FINE)],
        expect!["asked 1: bad_request: gemini rejected the request: HTTP 307: the address redirects elsewhere, which is not followed; check the base URL"],
    )
    .await;
    assert_eq!(elsewhere.asked().len(), 0);
}

#[tokio::test]
async fn silence_is_a_timeout() {
    let impatient = |config: &mut GeminiConfig| {
        config.timeout = Duration::from_millis(100);
        config.retries = 0;
    };
    for mode in MODES {
        let seen = ask(mode, vec![Answer::new(200, "").then_stall()], &question(), impatient).await;
        assert_eq!(seen.line(), "asked 1: timeout: gemini did not answer within 100 ms");
    }
    let seen =
        ask(Mode::Streaming, vec![Answer::events(&[BEGUN]).then_stall()], &question(), impatient).await;
    assert_eq!((seen.deltas.len(), seen.end.unwrap_err().code()), (1, "timeout"));
}

#[tokio::test]
async fn the_callers_time_bounds_everything() {
    let mut request = question();
    request.time_left = Some(Duration::from_millis(100));
    for mode in MODES {
        let seen =
            ask(mode, vec![Answer::new(200, "").then_stall(), mode.answer(FINE)], &request, |_| {}).await;
        assert_eq!((seen.asked, seen.end.unwrap_err().code()), (1, "timeout"));
    }
    let seen = ask(Mode::Streaming, vec![Answer::events(&[BEGUN]).then_stall()], &request, |_| {}).await;
    assert_eq!(seen.end.unwrap_err().code(), "timeout");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_never_a_success() {
    let no_finish = r#"{"candidates": [{"content": {"parts": [{"text": "Half "}]}}]}"#;
    for mode in MODES {
        let seen = ask(mode, vec![mode.answer(no_finish)], &question(), |config| config.retries = 0).await;
        assert_eq!(
            seen.line(),
            "asked 1: truncated: the answer of gemini ended early: it ended without a finishReason"
        );
    }
    let broken = vec![Answer::events(&[BEGUN]).then_break(), Answer::events(&[FINE])];
    let seen = ask(Mode::Streaming, broken, &question(), |_| {}).await;
    assert_eq!((seen.asked, seen.deltas.len(), seen.end.unwrap_err().code()), (1, 1, "truncated"));
    let cut = vec![Answer::new(200, &FINE[..40])];
    let seen = ask(Mode::Blocking, cut, &question(), |config| config.retries = 0).await;
    assert_eq!(seen.end.unwrap_err().code(), "truncated");
}

#[tokio::test]
async fn an_error_inside_a_200_is_an_error() {
    let error = r#"{"error": {"code": 400, "message": "Bad field.", "status": "INVALID_ARGUMENT"}}"#;
    check(
        |mode| vec![mode.answer(error), mode.answer(FINE)],
        expect!["asked 1: bad_request: gemini rejected the request: Bad field."],
    )
    .await;
    let late = r#"{"error": {"code": 503, "message": "Overloaded.", "status": "UNAVAILABLE"}}"#;
    let seen = ask(
        Mode::Streaming,
        vec![Answer::events(&[BEGUN, late]), Answer::events(&[FINE])],
        &question(),
        |_| {},
    )
    .await;
    assert_eq!(seen.line(), "asked 1: server: gemini failed (HTTP 200): 503 UNAVAILABLE: Overloaded.");
    // Before anything was said, it is asked again.
    check(|mode| vec![mode.answer(late), mode.answer(FINE)], expect![[r#"asked 2: Stop "Fine.""#]]).await;
}

#[tokio::test]
async fn refusals_and_empty_answers_are_named() {
    check(
        |mode| vec![mode.answer(r#"{"candidates": []}"#)],
        expect!["asked 1: invalid_response: gemini sent a response we cannot read: no candidates"],
    )
    .await;
    check(
        |mode| vec![mode.answer(r#"{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}"#)],
        expect!["asked 1: refused: gemini refused to answer: the prompt was blocked: PROHIBITED_CONTENT"],
    )
    .await;
    check(
        |mode| vec![mode.answer(r#"{"candidates": [{"finishReason": "SAFETY"}]}"#)],
        expect![[r#"asked 1: ContentFilter """#]],
    )
    .await;
    check(
        |mode| vec![mode.answer(r#"{"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}"#)],
        expect![[r#"asked 1: MalformedCall """#]],
    )
    .await;
    check(
        |mode| {
            vec![mode.answer(r#"{"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]}"#)]
        },
        expect![[r#"asked 1: Stop """#]],
    )
    .await;
    check(|mode| vec![mode.answer(r#"{"candidates": [{"content": {"parts": [{"text": "Hm.", "thought": true}]}, "finishReason": "STOP"}]}"#)], expect![[r#"asked 1: Stop """#]]).await;
}

#[tokio::test]
async fn nobody_there() {
    let server = Server::start(Vec::new()).await;
    let config = GeminiConfig { retries: 0, ..config(&server) };
    drop(server);
    // The listener closes with its task; until then connections are closed unanswered, which is the same to the caller.
    let error = Gemini::new(config).unwrap().generate(&question()).await.unwrap_err();
    assert_eq!(error.code(), "network");
}

#[tokio::test]
async fn the_key_travels_in_a_header_only() {
    for mode in MODES {
        let server = Server::start(vec![mode.answer(FINE)]).await;
        let model = Gemini::new(config(&server)).unwrap();
        let path = match mode {
            Mode::Blocking => {
                model.generate(&question()).await.unwrap();
                "POST /v1beta/models/gemini-3.8-flash:generateContent HTTP/1.1"
            }
            Mode::Streaming => {
                drained(&model, &question()).await.1.unwrap();
                "POST /v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse HTTP/1.1"
            }
        };
        let asked = server.asked().remove(0);
        assert_eq!(asked.head.lines().next(), Some(path));
        assert!(asked.head.contains(&format!("x-goog-api-key: {KEY}")), "{}", asked.head);
        assert!(!asked.body.contains(KEY));
    }
}
