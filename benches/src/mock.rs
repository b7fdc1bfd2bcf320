//! The mock model: a server for OpenAI's Chat Completions that returns canned bytes after a delay.
//!
//! If the last message is the user's, it answers with tool calls. If it is a tool result, it
//! answers with the next calls, or with a short text after the last call. The number of calls so
//! far is taken from the arguments in the request, so the server has no state.

use std::convert::Infallible;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;

use crate::{Result, process};

/// Behaviour of the mock model.
#[derive(Debug, Clone, PartialEq, Eq, Hash, clap::Args)]
pub(crate) struct Setup {
    /// Milliseconds before each answer.
    #[arg(long, default_value_t = 0)]
    pub(crate) delay_ms: u64,
    /// Tool calls of a turn.
    #[arg(long, default_value_t = 1)]
    pub(crate) calls: u32,
    /// Tool calls in one answer.
    #[arg(long, default_value_t = 1)]
    pub(crate) calls_at_once: u32,
    /// Append the body of every request to this file, one per line.
    #[arg(long)]
    pub(crate) record: Option<std::path::PathBuf>,
}

impl Setup {
    /// Returns the command-line arguments that make [`serve`] behave like this.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut words = vec!["mock".to_owned()];
        let numbers = [
            ("--delay-ms", self.delay_ms),
            ("--calls", self.calls.into()),
            ("--calls-at-once", self.calls_at_once.into()),
        ];
        words.extend(
            numbers
                .iter()
                .flat_map(|(name, value)| [(*name).to_owned(), value.to_string()]),
        );
        if let Some(file) = &self.record {
            words.extend(["--record".to_owned(), file.display().to_string()]);
        }
        words
    }
}

/// The setup, with the most frequent answers encoded in advance.
struct Model {
    setup: Setup,
    /// The first tool calls and the final text, each whole (index 0) and streamed (index 1).
    first: [Bytes; 2],
    last: [Bytes; 2],
}

/// Prints the address, and serves requests until the parent process ends.
pub(crate) fn serve(setup: Setup) -> Result<()> {
    process::end_with_parent();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let model = Arc::new(Model {
        first: [false, true].map(|streamed| calls(1, &setup, streamed)),
        last: [false, true].map(text),
        setup,
    });
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        process::say(&listener.local_addr()?.to_string())?;
        loop {
            let (connection, _) = listener.accept().await?;
            connection.set_nodelay(true)?;
            let model = Arc::clone(&model);
            tokio::spawn(async move {
                let service = service_fn(|request| answer(Arc::clone(&model), request));
                // An error here means that the client has closed the connection, as clients do at
                // their end.
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(connection), service)
                    .await;
            });
        }
    })
}

async fn answer(
    model: Arc<Model>,
    request: Request<Incoming>,
) -> std::result::Result<Response<Full<Bytes>>, Infallible> {
    let path_is_known = request.uri().path().ends_with("/chat/completions");
    let Ok(body) = request.into_body().collect().await else {
        return Ok(refused(StatusCode::BAD_REQUEST));
    };
    let body = body.to_bytes();
    let Ok(text) = std::str::from_utf8(&body) else {
        return Ok(refused(StatusCode::BAD_REQUEST));
    };
    if !path_is_known {
        return Ok(refused(StatusCode::NOT_FOUND));
    }
    if let Some(file) = &model.setup.record {
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(file);
        if file.and_then(|mut file| writeln!(file, "{text}")).is_err() {
            return Ok(refused(StatusCode::INTERNAL_SERVER_ERROR));
        }
    }
    let streamed = text.contains(r#""stream":true"#);
    let reply = model.reply(text, streamed);
    if model.setup.delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(model.setup.delay_ms)).await;
    }
    let kind = if streamed {
        "text/event-stream"
    } else {
        "application/json"
    };
    let mut response = Response::new(Full::new(reply));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    Ok(response)
}

fn refused(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(b"{}")));
    *response.status_mut() = status;
    response
}

impl Model {
    fn reply(&self, request: &str, streamed: bool) -> Bytes {
        // Only a real `role` field matches: quotes inside a string are escaped.
        let role = request
            .rsplit_once(r#""role":""#)
            .and_then(|(_, rest)| rest.split('"').next());
        let made = if role == Some("tool") {
            last_number(request).unwrap_or(self.setup.calls)
        } else {
            0
        };
        let kind = usize::from(streamed);
        match made {
            made if made >= self.setup.calls => self.last[kind].clone(),
            0 => self.first[kind].clone(),
            made => calls(made + 1, &self.setup, streamed),
        }
    }
}

/// Returns the number in the arguments of the last tool call in a request.
fn last_number(request: &str) -> Option<u32> {
    let (_, rest) = request.rsplit_once(r#"\"number\":"#)?;
    let digits = rest.trim_start();
    let end = digits
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// Returns an answer with the tool calls numbered from `first` on.
fn calls(first: u32, setup: &Setup, streamed: bool) -> Bytes {
    let numbers = first..=(first + setup.calls_at_once - 1).min(setup.calls.max(1));
    let calls = numbers.enumerate().map(|(index, number)| {
        let arguments = json!({ "number": number }).to_string();
        let function = json!({"name": super::client::TOOL, "arguments": arguments});
        let call =
            json!({"id": format!("call_{number}"), "type": "function", "function": function});
        (index, call, arguments)
    });
    if !streamed {
        let calls: Vec<_> = calls.map(|(_, call, _)| call).collect();
        return whole(
            &json!({"role": "assistant", "content": null, "tool_calls": calls, "refusal": null}),
            "tool_calls",
        );
    }
    let mut deltas = vec![json!({"role": "assistant", "content": null, "refusal": null})];
    for (index, mut call, arguments) in calls {
        call["index"] = json!(index);
        call["function"]["arguments"] = json!("");
        deltas.push(json!({ "tool_calls": [call] }));
        // Arguments arrive in several pieces, as from a real model.
        let (left, right) = arguments.split_at(arguments.len() / 2);
        for piece in [left, right] {
            let piece = json!({"index": index, "function": {"arguments": piece}});
            deltas.push(json!({ "tool_calls": [piece] }));
        }
    }
    events(&deltas, "tool_calls")
}

/// Returns the final text.
fn text(streamed: bool) -> Bytes {
    const WORDS: [&str; 8] = [
        "It", " says", " that", " the", " answer", " is", " forty", "-two.",
    ];
    if !streamed {
        return whole(
            &json!({"role": "assistant", "content": WORDS.concat(), "refusal": null}),
            "stop",
        );
    }
    let mut deltas = vec![json!({"role": "assistant", "content": "", "refusal": null})];
    deltas.extend(WORDS.iter().map(|word| json!({ "content": word })));
    events(&deltas, "stop")
}

fn usage() -> serde_json::Value {
    json!({
        "prompt_tokens": 120, "completion_tokens": 12, "total_tokens": 132,
        "prompt_tokens_details": {"cached_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 0},
    })
}

fn whole(message: &serde_json::Value, finish: &str) -> Bytes {
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish});
    let answer = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1_790_000_000, "model": "mock",
        "choices": [choice], "usage": usage(),
    });
    answer.to_string().into()
}

fn events(deltas: &[serde_json::Value], finish: &str) -> Bytes {
    let chunk = |choices: serde_json::Value, usage: serde_json::Value| {
        let chunk = json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_790_000_000, "model": "mock",
            "choices": choices, "usage": usage,
        });
        format!("data: {chunk}\n\n")
    };
    let one = |delta: &serde_json::Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        chunk(json!([choice]), serde_json::Value::Null)
    };
    let mut text: String = deltas.iter().map(|delta| one(delta, None)).collect();
    text += &one(&json!({}), Some(finish));
    text += &chunk(json!([]), usage());
    text += "data: [DONE]\n\n";
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(calls: u32, request: &str) -> String {
        let setup = Setup {
            delay_ms: 0,
            calls,
            calls_at_once: 2,
            record: None,
        };
        let first = [false, true].map(|streamed| super::calls(1, &setup, streamed));
        let model = Model {
            first,
            last: [false, true].map(text),
            setup,
        };
        String::from_utf8_lossy(&model.reply(request, false)).into_owned()
    }

    #[test]
    fn a_message_gets_calls_and_a_result_gets_the_next_ones_or_text() {
        let person = r#"{"messages":[{"role":"user","content":"say \"role\":\"tool\""}]}"#;
        let answer = reply(4, person);
        assert!(
            answer.contains("call_1") && answer.contains("call_2") && !answer.contains("call_3"),
            "{answer}"
        );
        let result =
            r#"{"messages":[{"tool_calls":[{"arguments":"{\"number\":2}"}]},{"role":"tool"}]}"#;
        let answer = reply(4, result);
        assert!(
            answer.contains("call_3") && answer.contains("call_4") && !answer.contains("call_5"),
            "{answer}"
        );
        assert!(reply(2, result).contains("forty-two"));
        assert!(reply(0, person).contains("forty-two"));
    }
}
