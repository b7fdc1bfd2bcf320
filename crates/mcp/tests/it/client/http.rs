//! Servers elsewhere: who is let in, what happens when a session or a connection is lost.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use adjutant_core::ToolError;
use adjutant_mcp::client::{Health, Remote, ServerConfig, Servers, Transport};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::place::{LONG, call, name, options, report, start, started};

/// A server with one tool, `add`, that counts.
#[derive(Clone, Default)]
struct Counter(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    sessions: BTreeSet<String>,
    greetings: usize,
    added: usize,
    /// The answer to the next call, after it was carried out.
    breaks: Option<StatusCode>,
    /// The refusal of the next calls, and how many of them.
    refuses: Option<(Refusal, usize)>,
    /// The refusal of requests in a session that is lost. `None`: 404 without words.
    lost: Option<Refusal>,
    redirects: bool,
    /// Times that the newer handshake is answered with an empty result.
    empty_handshakes: usize,
    seen: Vec<(String, String)>,
}

/// An answer that refuses a request.
#[derive(Clone, Copy)]
struct Refusal {
    status: u16,
    content_type: &'static str,
    /// `ID` stands for the id of the request.
    body: &'static str,
}

impl Refusal {
    const fn json(status: u16, body: &'static str) -> Self {
        let content_type = "application/json";
        Self {
            status,
            content_type,
            body,
        }
    }

    const fn text(status: u16, body: &'static str) -> Self {
        let content_type = "text/plain";
        Self {
            status,
            content_type,
            body,
        }
    }

    fn answer(self, id: &Value) -> Response {
        let body = self.body.replace("ID", &id.to_string());
        let content_type = [(header::CONTENT_TYPE, self.content_type)];
        let status = StatusCode::from_u16(self.status).unwrap();
        (status, content_type, body).into_response()
    }
}

impl Counter {
    async fn serve(&self) -> (SocketAddr, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(answer).with_state(self.clone());
        (
            address,
            tokio::spawn(async move { axum::serve(listener, router).await.unwrap() }),
        )
    }

    fn with<T>(&self, look: impl FnOnce(&mut Inner) -> T) -> T {
        look(&mut self.0.lock().unwrap())
    }
}

async fn answer(
    State(counter): State<Counter>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let text = |name: &str| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap().to_owned())
            .unwrap_or_default()
    };
    counter.with(|inner| {
        for (name, value) in &headers {
            inner.seen.push((
                name.to_string(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            ));
        }
        if inner.redirects {
            return (
                StatusCode::TEMPORARY_REDIRECT,
                [(header::LOCATION, "http://127.0.0.1:9/")],
            )
                .into_response();
        }
        if text("authorization") != "Bearer t0ken-9" || text("x-team") != "red" {
            return (
                StatusCode::UNAUTHORIZED,
                [(header::WWW_AUTHENTICATE, "Bearer")],
            )
                .into_response();
        }
        if method != Method::POST {
            return StatusCode::METHOD_NOT_ALLOWED.into_response();
        }
        let message: Value = serde_json::from_slice(&body).unwrap();
        let reply = |result: Value| {
            axum::Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
        };
        if message["method"] == "server/discover" && inner.empty_handshakes > 0 {
            inner.empty_handshakes -= 1;
            return reply(json!({})).into_response();
        }
        if message["method"] == "initialize" {
            inner.greetings += 1;
            let session = format!("session-{}", inner.greetings);
            inner.sessions.insert(session.clone());
            let result = json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}}, "serverInfo": {"name": "counter", "version": "1"}
            });
            return ([("mcp-session-id", session)], reply(result)).into_response();
        }
        if !inner.sessions.contains(&text("mcp-session-id")) {
            return match inner.lost {
                Some(refusal) => refusal.answer(&message["id"]),
                None => StatusCode::NOT_FOUND.into_response(),
            };
        }
        match message["method"].as_str() {
            Some("tools/list") => {
                reply(json!({"tools": [{"name": "add", "inputSchema": {}}]})).into_response()
            }
            Some("tools/call") => {
                if let Some((refusal, times)) = inner.refuses.take() {
                    inner.refuses = Some((refusal, times - 1)).filter(|(_, times)| *times > 0);
                    return refusal.answer(&message["id"]);
                }
                inner.added += 1;
                if let Some(status) = inner.breaks.take() {
                    return status.into_response();
                }
                reply(json!({"content": [{"type": "text", "text": inner.added.to_string()}]}))
                    .into_response()
            }
            _ => StatusCode::ACCEPTED.into_response(),
        }
    })
}

fn remote(address: SocketAddr, token: &str) -> ServerConfig {
    let mut config = ServerConfig::new(
        name("counter"),
        Transport::Remote(Remote {
            url: format!("http://{address}/mcp?key=hidden"),
            bearer: Some(token.to_owned().into()),
            headers: [("X-Team".to_owned(), "red".to_owned().into())].into(),
        }),
    );
    config.start_timeout = LONG;
    config
}

async fn failure(servers: Servers) -> String {
    match report(&servers).health {
        Health::Failed { reason } => reason,
        other => panic!("it is {other}"),
    }
}

#[tokio::test]
async fn a_token_and_headers_open_the_door_and_are_never_shown() {
    let counter = Counter::default();
    let (address, serving) = counter.serve().await;
    let servers = started(remote(address, "t0ken-9")).await;
    assert_eq!(call(&servers, "counter__add").await, Ok(json!("1")));
    let told = format!("{servers:?} {:?}", remote(address, "t0ken-9"));
    assert!(
        !told.contains("t0ken-9") && !told.contains("\"red\""),
        "{told}"
    );
    assert_eq!(report(&servers).place, format!("http://{address}/mcp"));
    servers.stop().await;

    let reason = failure(start(remote(address, "bad-token")).await.unwrap()).await;
    assert!(
        reason.contains("HTTP 401") && !reason.contains("bad-token"),
        "{reason}"
    );
    serving.abort();
}

#[tokio::test]
async fn a_lost_session_is_opened_again_and_the_call_sent_once() {
    let counter = Counter::default();
    let (address, serving) = counter.serve().await;
    let servers = started(remote(address, "t0ken-9")).await;
    counter.with(|inner| inner.sessions.clear());
    assert_eq!(call(&servers, "counter__add").await, Ok(json!("1")));
    assert_eq!(counter.with(|inner| (inner.greetings, inner.added)), (2, 1));
    serving.abort();
}

#[tokio::test]
async fn a_session_that_is_lost_in_other_words_is_opened_again() {
    for lost in [
        Refusal::json(
            404,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#,
        ),
        Refusal::json(
            404,
            r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32001,"message":"Session not found"}}"#,
        ),
        Refusal::text(404, "no such session"),
        Refusal::json(
            400,
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#,
        ),
        Refusal::json(
            400,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#,
        ),
        Refusal::json(
            400,
            r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request"}}"#,
        ),
        Refusal::json(
            400,
            r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"unknown session"}}"#,
        ),
        Refusal::text(400, "Bad Request"),
    ] {
        let counter = Counter::default();
        let (address, serving) = counter.serve().await;
        let servers = started(remote(address, "t0ken-9")).await;
        counter.with(|inner| {
            inner.sessions.clear();
            inner.lost = Some(lost);
        });
        let body = lost.body;
        assert_eq!(
            call(&servers, "counter__add").await,
            Ok(json!("1")),
            "{body}"
        );
        assert_eq!(counter.with(|inner| (inner.greetings, inner.added)), (2, 1));
        serving.abort();
    }
}

#[tokio::test]
async fn a_refusal_answers_its_request_whatever_id_it_has() {
    const WORDS: &str = "try it on Monday";
    let counter = Counter::default();
    let (address, serving) = counter.serve().await;
    let servers = started(remote(address, "t0ken-9")).await;
    for refusal in [
        Refusal::json(
            200,
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"try it on Monday"}}"#,
        ),
        Refusal::json(
            200,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"try it on Monday"}}"#,
        ),
        Refusal::json(
            200,
            r#"{"jsonrpc":"2.0","id":"other","error":{"code":-32000,"message":"try it on Monday"}}"#,
        ),
        Refusal {
            content_type: "text/event-stream",
            ..Refusal::json(
                200,
                "data: {\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,\"message\":\"try it on Monday\"}}\n\n",
            )
        },
        Refusal::json(
            400,
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"try it on Monday"}}"#,
        ),
        Refusal::json(
            400,
            r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"try it on Monday"}}"#,
        ),
        Refusal::text(403, "try it on Monday"),
        Refusal::json(404, r#"{"message":"try it on Monday"}"#),
        Refusal::text(429, "try it on Monday"),
        Refusal::json(
            500,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"try it on Monday"}}"#,
        ),
        Refusal::json(
            500,
            r#"{"jsonrpc":"2.0","id":"other","error":{"code":-32603,"message":"try it on Monday"}}"#,
        ),
        Refusal::text(500, "try it on Monday"),
        Refusal::json(
            502,
            r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"try it on Monday"}}"#,
        ),
        Refusal::text(503, "try it on Monday"),
    ] {
        // A session is made anew once, not again and again.
        counter.with(|inner| inner.refuses = Some((refusal, 2)));
        let refused = call(&servers, "counter__add").await.unwrap_err();
        counter.with(|inner| inner.refuses = None);
        let (status, body) = (refusal.status, refusal.body);
        assert!(
            matches!(&refused, ToolError::Failed { message } | ToolError::Invalid { message } if message.contains(WORDS)),
            "{status} {body}: {refused:?}"
        );
    }
    assert_eq!(counter.with(|inner| inner.added), 0);
    assert_eq!(call(&servers, "counter__add").await, Ok(json!("1")));
    serving.abort();
}

#[tokio::test]
async fn a_call_without_an_answer_is_in_doubt_unless_it_was_not_sent() {
    let counter = Counter::default();
    let (address, serving) = counter.serve().await;
    let servers = started(remote(address, "t0ken-9")).await;
    counter.with(|inner| inner.refuses = Some((Refusal::text(429, ""), 1)));
    let refused = call(&servers, "counter__add").await.unwrap_err();
    assert!(
        matches!(&refused, ToolError::Failed { message } if message.contains("429")),
        "{refused}"
    );
    assert_eq!(counter.with(|inner| inner.added), 0);
    counter.with(|inner| inner.breaks = Some(StatusCode::BAD_GATEWAY));
    let lost = call(&servers, "counter__add").await.unwrap_err();
    assert!(matches!(&lost, ToolError::Unknown { .. }), "{lost}");
    assert_eq!(counter.with(|inner| inner.added), 1);
    // It is still there.
    assert_eq!(call(&servers, "counter__add").await, Ok(json!("2")));
    serving.abort();
    let _ = serving.await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_the_cause() {
    // Taken by a socket that does not listen: a port that is only free would be another test's a
    // moment later.
    let nobody = tokio::net::TcpSocket::new_v4().unwrap();
    nobody.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = nobody.local_addr().unwrap();
    let reason = failure(start(remote(address, "t0ken-9")).await.unwrap()).await;
    assert!(
        reason.to_lowercase().contains("connection refused"),
        "{reason}"
    );
}

#[tokio::test]
async fn a_server_of_the_older_transport_is_named_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().fallback(async |method: Method| match method {
        Method::GET => {
            let content_type = [(header::CONTENT_TYPE, "text/event-stream")];
            (content_type, "event: endpoint\ndata: /messages\n\n").into_response()
        }
        _ => (StatusCode::NOT_FOUND, "<!DOCTYPE html><html></html>").into_response(),
    });
    let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let reason = failure(start(remote(address, "t0ken-9")).await.unwrap()).await;
    assert!(
        reason.contains("older HTTP+SSE") && !reason.contains("html"),
        "{reason}"
    );
    serving.abort();
}

#[tokio::test]
async fn a_server_that_answers_the_newer_handshake_with_nothing_is_greeted_in_the_older_way() {
    let counter = Counter::default();
    counter.with(|inner| inner.empty_handshakes = 1);
    let (address, serving) = counter.serve().await;
    let servers = started(remote(address, "t0ken-9")).await;
    assert_eq!(call(&servers, "counter__add").await, Ok(json!("1")));
    counter.with(|inner| assert_eq!((inner.empty_handshakes, inner.greetings), (0, 1)));
    servers.stop().await;
    serving.abort();
}

#[tokio::test]
async fn nothing_is_sent_after_a_redirect() {
    let counter = Counter::default();
    counter.with(|inner| inner.redirects = true);
    let (address, serving) = counter.serve().await;
    let reason = failure(start(remote(address, "t0ken-9")).await.unwrap()).await;
    assert!(reason.contains("307"), "{reason}");
    serving.abort();
}

#[tokio::test]
async fn a_token_for_this_machine_is_not_warned_of_and_a_disabled_server_is_left_alone() {
    let counter = Counter::default();
    let (address, serving) = counter.serve().await;
    let servers = started(remote(address, "t0ken-9")).await;
    // This machine alone can read it.
    assert!(report(&servers).warnings.is_empty());
    serving.abort();
    let mut elsewhere = remote(address, "t0ken-9");
    elsewhere.disabled = true;
    let servers = Servers::start(vec![elsewhere], options().0).await.unwrap();
    assert_eq!(report(&servers).health, Health::Disabled);
}
