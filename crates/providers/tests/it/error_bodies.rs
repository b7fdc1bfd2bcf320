//! Error bodies in the vendors' words, and the kind that each is read as.

use std::path::Path;

use adjutant_core::{GenerateRequest, LanguageModel as _, Message};
use adjutant_providers::{Connection, Provider, Transport};
use futures::StreamExt as _;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cassette::Framing;
use crate::server::{Answer, Server};

/// An error body, and the code of the error that it is.
#[derive(Deserialize)]
struct Row {
    vendor: String,
    status: u16,
    kind: String,
    /// JSON, or a text that is sent as it is.
    body: Value,
}

impl Row {
    fn answer(&self) -> Answer {
        let body = match &self.body {
            Value::String(text) => text.clone(),
            body => body.to_string(),
        };
        Answer::new(self.status, body)
    }
}

/// A failed call: the code of its error, its words, and the number of requests that the vendor got.
struct Failed {
    code: &'static str,
    words: String,
    asked: usize,
}

/// Asks a vendor that answers with this and nothing else.
async fn fail(provider: &str, answer: Answer, streamed: bool, retries: u32) -> Failed {
    let server = Server::start(vec![answer]).await;
    let connection = Connection {
        base_url: Some(server.url.clone()),
        retries,
        ..Connection::new(Transport::new().unwrap()).with_key("sk-1234567890".to_owned().into())
    };
    let model = Provider::find(provider)
        .unwrap_or_else(|| panic!("{provider}"))
        .model("m", connection)
        .unwrap();
    let mut request = GenerateRequest::new(vec![Message::user("Hello").unwrap()]);
    request.config.verbatim = !streamed;
    let error = if streamed {
        let failed = async {
            let mut deltas = model.stream(&request).await?;
            while let Some(delta) = deltas.next().await {
                delta?;
            }
            Ok(())
        };
        failed.await.unwrap_err()
    } else {
        model.generate(&request).await.unwrap_err()
    };
    Failed {
        code: error.code(),
        words: error.to_string(),
        asked: server.received().len(),
    }
}

#[tokio::test]
async fn error_bodies_are_read_by_their_words() {
    for file in ["first", "second", "third"] {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/error_bodies/{file}.jsonl"));
        let text = std::fs::read_to_string(&path).unwrap();
        let rows: Vec<Row> = text
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))
            })
            .collect();
        let mut wrong = Vec::new();
        for row in &rows {
            let Failed { code, words, .. } = fail(&row.vendor, row.answer(), false, 0).await;
            if code != row.kind {
                let Row {
                    vendor,
                    status,
                    kind,
                    body,
                } = row;
                wrong.push(format!(
                    "{vendor} {status} {body}\n  is {kind}, was read as {code}: {words}"
                ));
            }
        }
        assert!(
            wrong.is_empty(),
            "{file}: {} of {}:\n{}",
            wrong.len(),
            rows.len(),
            wrong.join("\n")
        );
    }
}

#[tokio::test]
async fn a_rate_limit_keeps_the_words_of_the_vendor() {
    let body = r#"{"error":{"message":"Slow down: 20 requests per minute.","type":"requests","code":"rate_limit_exceeded"}}"#;
    let Failed { code, words, .. } =
        fail("openai-compatible", Answer::new(429, body), false, 0).await;
    assert_eq!(code, "rate_limit");
    assert!(
        words.contains("Slow down: 20 requests per minute."),
        "{words}"
    );
}

/// A stream that OpenAI ends with this code.
fn failed_stream(code: &str) -> Answer {
    let failed = json!({
        "type": "response.failed",
        "response": {"id": "r", "object": "response", "status": "failed", "output": [],
                     "error": {"code": code, "message": "This cannot go on."}}
    });
    Answer::events(Framing::Events, &[&failed.to_string()])
}

#[tokio::test]
async fn a_verdict_inside_a_stream_is_final_and_not_paid_for_twice() {
    for (code, expected) in [
        ("bio_policy", "refused"),
        ("cyber_policy", "refused"),
        ("misalignment_policy_violation", "refused"),
        ("potentially_unintended_action", "refused"),
        ("image_content_policy_violation", "refused"),
        ("new_kind_of_policy", "refused"),
        ("content_filter", "refused"),
        ("data_residency_mismatch", "not_permitted"),
        ("insufficient_quota", "quota"),
    ] {
        let failed = fail("openai", failed_stream(code), true, 1).await;
        assert_eq!(
            (failed.code, failed.asked),
            (expected, 1),
            "{code}: {}",
            failed.words
        );
    }
}

#[tokio::test]
async fn a_failure_of_the_server_inside_a_stream_is_no_verdict() {
    for code in ["server_error", "network_policy_unreachable"] {
        let failed = fail("openai", failed_stream(code), true, 0).await;
        assert_eq!(failed.code, "server", "{code}: {}", failed.words);
    }
}
