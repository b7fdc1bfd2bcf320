//! Chat Completions, OpenAI's and everybody else's: recordings, faults, addresses.

use adjutant_core::{FinishReason, GenerateRequest, LanguageModel, Message};
use adjutant_providers::{Connection, Provider, Transport};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::cassette::{Framing, test_name};
use crate::faults::{self, Faults, Mode, ask, check};
use crate::recordings::{self, Recordings};
use crate::server::{Answer, Server, read_request};

pub(crate) const RECORDED: Recordings = Recordings {
    folder: "openai_chat",
    provider: "openai-chat",
    model: "gpt-5.6",
    schemas: &["openai_chat"],
    finish: |expected| match (expected.finish.as_deref()?, expected.tool_calls.is_empty()) {
        ("stop", true) => Some(FinishReason::Stop),
        ("stop" | "tool_calls", false) | ("function_call", _) => Some(FinishReason::ToolCalls),
        ("length", _) => Some(FinishReason::MaxTokens),
        ("content_filter", _) => Some(FinishReason::ContentFilter),
        _ => None,
    },
    failure: |exchange| {
        let body = String::from_utf8_lossy(&exchange.body);
        if body.contains("max context length") {
            "context_too_long"
        } else {
            recordings::by_status(exchange)
        }
    },
    // OpenAI hands out no state here.
    state_recorded: |_| Vec::new(),
    state_sent: |_| Vec::new(),
    results_sent: |request| {
        let messages = request["messages"].as_array().unwrap();
        messages
            .iter()
            .filter(|message| message["role"] == "tool")
            .count()
    },
    differences: &[
        (
            "openllmetry/openai__traces__test_functions__test_open_ai_function_calls_with_events_with_content.yaml#0",
            "calls",
            FUNCTION_CALL,
        ),
        (
            "openllmetry/openai__traces__test_functions__test_open_ai_function_calls_with_events_with_content.yaml#1",
            "calls",
            FUNCTION_CALL,
        ),
        (
            "openllmetry/openai__traces__test_functions__test_open_ai_function_calls_with_events_with_content.yaml#2",
            "calls",
            FUNCTION_CALL,
        ),
        (
            "openllmetry/openai__traces__test_functions__test_open_ai_function_calls_with_events_with_content.yaml#3",
            "calls",
            FUNCTION_CALL,
        ),
    ],
};

const FUNCTION_CALL: &str = "the SDK leaves the old form of a call in a field of its own; to us it is a call, or it would be lost";

/// The same recordings, and those of Ollama's imitation, as if they came from any server.
pub(crate) const COMPATIBLE: Recordings = Recordings {
    provider: "openai-compatible",
    // A server that thinks gets its thinking back in the field it came in.
    state_recorded: thinking,
    state_sent: |request| thinking(std::slice::from_ref(&request["messages"][2])),
    ..RECORDED
};

pub(crate) const OLLAMA: Recordings = Recordings {
    folder: "ollama_compat",
    differences: &[],
    ..COMPATIBLE
};

fn thinking(values: &[Value]) -> Vec<String> {
    let mut found = recordings::strings(values, "reasoning");
    found.extend(recordings::strings(values, "reasoning_content"));
    let joined = found.concat();
    if joined.is_empty() {
        Vec::new()
    } else {
        vec![joined]
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_answers_are_understood_as_the_vendor_does() {
    recordings::decode_all(&test_name!(), &[&RECORDED, &OLLAMA]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_back_fits_the_published_schema() {
    recordings::follow_up_all(&test_name!(), &[&RECORDED, &COMPATIBLE, &OLLAMA]).await;
}

const FAULTS: Faults = Faults {
    provider: "openai-chat",
    model: "gpt-5.6",
    framing: Framing::Events,
    whole: r#"{"choices": [{"index": 0, "message": {"role": "assistant", "content": "Fine."}, "finish_reason": "stop"}]}"#,
    events: &[
        r#"{"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Fine."}, "finish_reason": null}]}"#,
        r#"{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}"#,
        r#"{"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}"#,
    ],
    begun: 1,
    end: "[DONE]",
    key_header: "authorization: Bearer ",
    paths: ["/v1/chat/completions", "/v1/chat/completions"],
    body: |status, words| {
        json!({"error": {"message": words, "type": "some_error", "param": null, "code": status.to_string()}})
            .to_string()
    },
};

/// The same things are said by a server of any row.
const ROWS: [Faults; 3] = [
    Faults {
        provider: "openai-compatible",
        ..FAULTS
    },
    Faults {
        provider: "mistral",
        ..FAULTS
    },
    Faults {
        provider: "azure",
        key_header: "api-key: ",
        paths: ["/openai/v1/chat/completions", "/openai/v1/chat/completions"],
        ..FAULTS
    },
];

#[tokio::test]
async fn what_any_vendor_may_do() {
    faults::all(&FAULTS).await;
}

#[tokio::test]
async fn what_the_others_may_do() {
    for row in &ROWS {
        faults::all(row).await;
    }
}

#[tokio::test]
async fn addresses() {
    for (provider, base, expected) in [
        ("openai-chat", "", "/v1/chat/completions"),
        ("openai-chat", "v1/", "/v1/chat/completions"),
        ("openai-compatible", "c/x/v1", "/c/x/v1/chat/completions"),
        ("groq", "", "/v1/chat/completions"),
        ("groq", "openai/v1", "/openai/v1/chat/completions"),
        ("zai", "api/paas/v4", "/api/paas/v4/chat/completions"),
        ("zai", "", "/v4/chat/completions"),
        ("llama-cpp", "", "/v1/chat/completions"),
        ("azure", "", "/openai/v1/chat/completions"),
        ("azure", "openai/v1/", "/openai/v1/chat/completions"),
        (
            "azure",
            "?api-version=2024-10-21",
            "/openai/deployments/m/chat/completions?api-version=2024-10-21",
        ),
        (
            "azure",
            "openai/deployments/mine?api-version=2024-10-21",
            "/openai/deployments/mine/chat/completions?api-version=2024-10-21",
        ),
        (
            "azure",
            "openai/deployments/mine/chat/completions?api-version=2024-10-21",
            "/openai/deployments/mine/chat/completions?api-version=2024-10-21",
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
            .model("m", connection)
            .unwrap();
        model
            .generate(&GenerateRequest::new(vec![Message::user("?").unwrap()]))
            .await
            .unwrap();
        let head = server.received().remove(0).head;
        assert_eq!(
            head.lines().next(),
            Some(format!("POST {expected} HTTP/1.1").as_str()),
            "{provider} {base}"
        );
        assert_eq!(head.contains("api-key: key"), provider == "azure", "{head}");
        assert_eq!(
            head.contains("authorization: Bearer key"),
            provider != "azure",
            "{head}"
        );
    }
}

#[tokio::test]
async fn a_key_and_an_address_are_asked_for_where_they_are_needed() {
    let open = |provider: &str, key: bool| {
        let connection = Connection::new(Transport::new().unwrap());
        let connection = if key {
            connection.with_key("key".to_owned().into())
        } else {
            connection
        };
        Provider::find(provider)
            .unwrap()
            .model("m", connection)
            .map(|_| "fine")
            .map_err(|error| error.code())
    };
    assert_eq!(open("groq", false), Err("auth"));
    assert_eq!(open("groq", true), Ok("fine"));
    assert_eq!(open("vllm", false), Ok("fine"));
    assert_eq!(open("openai-compatible", false), Err("bad_request"));
    assert_eq!(open("azure", true), Err("bad_request"));
}

/// One answer with this message and reason.
fn answer(mode: Mode, message: &Value, finish: &str) -> Answer {
    match mode {
        Mode::Blocking => Answer::new(
            200,
            json!({"choices": [{"message": message, "finish_reason": finish}]}).to_string(),
        ),
        Mode::Drained | Mode::Streaming => {
            let piece = json!({"choices": [{"index": 0, "delta": message}]}).to_string();
            let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
                .to_string();
            Answer::events(Framing::Events, &[&piece, &end, "[DONE]"])
        }
    }
}

#[tokio::test]
async fn odd_answers_are_named() {
    let call = |arguments: &str| json!({"tool_calls": [{"id": "c", "function": {"name": "weather", "arguments": arguments}}]});
    for (message, finish, expected) in [
        (
            call("{\"city\": \"Os"),
            "tool_calls",
            r#"asked 1: ToolCalls "" weather(malformed: EOF while parsing a string at line 1 column 12)"#,
        ),
        (
            call("{\"city\": \"Os\"}"),
            "length",
            r#"asked 1: MaxTokens "" weather({"city":"Os"})"#,
        ),
        (json!({"content": ""}), "stop", r#"asked 1: Stop """#),
        (
            json!({"reasoning_content": "Hm."}),
            "stop",
            r#"asked 1: Stop """#,
        ),
        (json!({"refusal": "No."}), "stop", r#"asked 1: Stop """#),
        (
            json!({"content": ""}),
            "content_filter",
            r#"asked 1: ContentFilter """#,
        ),
    ] {
        check(
            &FAULTS,
            |mode| vec![answer(mode, &message, finish), FAULTS.fine(mode)],
            expected,
        )
        .await;
    }
}

#[tokio::test]
async fn an_error_inside_a_200_is_an_error() {
    let error = |code: &str| json!({"error": {"message": "Sorry.", "code": code}}).to_string();
    for (code, expected) in [
        // What may pass is asked again.
        ("server_error", r#"asked 2: Stop "Fine.""#),
        (
            "insufficient_quota",
            "asked 1: quota: openai-chat: quota exhausted: Sorry.",
        ),
        (
            "context_length_exceeded",
            "asked 1: context_too_long: too long for openai-chat: Sorry.",
        ),
    ] {
        let answers = |mode| match mode {
            Mode::Blocking => vec![Answer::new(200, error(code)), FAULTS.fine(mode)],
            Mode::Drained | Mode::Streaming => {
                vec![
                    Answer::events(Framing::Events, &[&error(code)]),
                    FAULTS.fine(mode),
                ]
            }
        };
        check(&FAULTS, answers, expected).await;
    }
    let answers = vec![
        Answer::events(Framing::Events, &[FAULTS.events[0], &error("server_error")]),
        FAULTS.fine(Mode::Streaming),
    ];
    let seen = ask(&FAULTS, Mode::Streaming, answers, None, |_| {}).await;
    assert_eq!(
        seen.line(),
        "asked 1: server: openai-chat answered with a failure: Sorry."
    );
}

/// Answers up to the mark of the end, behind which the end of the body is still to come.
async fn answer_but_its_end(connection: &mut TcpStream, header: &str) -> std::io::Result<()> {
    read_request(connection).await?;
    let events = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{header}\r\n");
    connection
        .write_all(format!("{head}{:x}\r\n{events}\r\n", events.len()).as_bytes())
        .await
}

const END: &[u8] = b"0\r\n\r\n";

#[tokio::test]
async fn a_connection_whose_answer_ends_late_is_used_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let (understood, late) = oneshot::channel::<()>();
    let (first_done, mut was_used_again) = oneshot::channel();
    let server = tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        answer_but_its_end(&mut first, "").await.unwrap();
        tokio::spawn(async move {
            late.await.unwrap();
            let ended = first.write_all(END).await;
            let again = ended.is_ok() && answer_but_its_end(&mut first, "").await.is_ok();
            first_done.send(again).unwrap();
            let _ = first.write_all(END).await;
        });
        // Requests that come before the client has seen the end have connections of their own.
        loop {
            let (mut other, _) = listener.accept().await.unwrap();
            answer_but_its_end(&mut other, "Connection: close\r\n")
                .await
                .unwrap();
            other.write_all(END).await.unwrap();
        }
    });
    let connection = Connection {
        base_url: Some(base_url),
        ..Connection::new(Transport::new().unwrap())
    };
    let model = adjutant_providers::openai::compatible("m", connection).unwrap();
    let request = GenerateRequest::new(vec![Message::user("?").unwrap()]);
    assert_eq!(model.generate(&request).await.unwrap().text(), "Hi.");
    understood.send(()).unwrap();
    let again = loop {
        tokio::select! {
            biased;
            again = &mut was_used_again => break again.unwrap(),
            answer = model.generate(&request) => assert_eq!(answer.unwrap().text(), "Hi."),
        }
    };
    server.abort();
    assert!(
        again,
        "the connection was closed in the middle of its answer"
    );
}
