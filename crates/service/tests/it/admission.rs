//! Limits and timeouts of connections. Timeouts are short where a test waits for them, and long
//! where they must not occur.

use std::num::NonZeroU32;
use std::time::Duration;

use adjutant_service::{ConnectionLimits, MetricsAccess};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::harness::Running;

const HELLO: &str = r#"{"text": "Hello.", "repeat": true}"#;
const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(3_600);

/// Limits with timeouts of an hour, so that none occurs in a test.
fn patient(connections: u32) -> ConnectionLimits {
    ConnectionLimits {
        connections: NonZeroU32::new(connections).unwrap(),
        header_timeout: LONG,
        body_silence: LONG,
        body_timeout: LONG,
        idle_timeout: LONG,
        ..ConnectionLimits::default()
    }
}

async fn serving(limits: ConnectionLimits) -> Running {
    Running::start_set(HELLO, |config| config.connections = limits).await
}

/// Opens a connection and sends this text.
async fn connect_and_send(service: &Running, words: &str) -> TcpStream {
    let mut connection = TcpStream::connect(service.address).await.unwrap();
    connection.write_all(words.as_bytes()).await.unwrap();
    connection
}

/// Reads until the service closes or resets the connection.
async fn rest(mut connection: TcpStream) -> String {
    let mut words = Vec::new();
    let _ = connection.read_to_end(&mut words).await;
    String::from_utf8(words).unwrap()
}

fn get(service: &Running, path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", service.address)
}

fn post(service: &Running, length: usize, body: &str) -> String {
    format!(
        "POST /v1/session HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}",
        service.address
    )
}

/// Asks on new connections until one is answered.
async fn let_in(service: &Running) {
    let last = get(service, "/healthz").replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    let mut often = tokio::time::interval(Duration::from_millis(20));
    while !rest(connect_and_send(service, &last).await)
        .await
        .starts_with("HTTP/1.1 200 ")
    {
        often.tick().await;
    }
}

/// One answer on a connection that stays open.
async fn answer(connection: &mut TcpStream) -> String {
    let mut words = String::new();
    while !words.ends_with('}') {
        let mut some = [0; 4_096];
        let read = connection.read(&mut some).await.unwrap();
        assert!(read > 0, "{words}");
        words += std::str::from_utf8(&some[..read]).unwrap();
    }
    words
}

#[tokio::test]
async fn silent_connections_and_half_heads_are_closed_for_new_connections() {
    for words in ["", "GET /healthz HTTP/1.1\r\nHost: local"] {
        let service = serving(patient(8)).await;
        let mut held = Vec::new();
        for _ in 0..40 {
            held.push(connect_and_send(&service, words).await);
        }
        assert_eq!(
            service.ask("GET", "/healthz", &[], "").await.body,
            json!({"status": "ok"}),
            "{words:?}"
        );
        assert_eq!(rest(held.swap_remove(0)).await, "", "{words:?}");
        drop(held);
        service.stop().await;
    }
}

#[tokio::test]
async fn a_head_has_to_come_in_time() {
    let service = serving(ConnectionLimits {
        header_timeout: SHORT,
        ..patient(8)
    })
    .await;
    for words in ["", "GET /healthz HTTP/1.1\r\nHost: local"] {
        assert_eq!(
            rest(connect_and_send(&service, words).await).await,
            "",
            "{words:?}"
        );
    }
    service.stop().await;
}

#[tokio::test]
async fn a_slow_body_times_out_and_blocks_no_other_request() {
    let service = serving(ConnectionLimits {
        body_silence: SHORT,
        ..patient(4)
    })
    .await;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(connect_and_send(&service, &post(&service, 100, "{")).await);
    }
    for connection in held {
        let refused = rest(connection).await;
        assert!(
            refused.starts_with("HTTP/1.1 408 ") && refused.contains(r#""code":"too_slow""#),
            "{refused}"
        );
        assert!(
            refused.to_lowercase().contains("connection: close"),
            "{refused}"
        );
    }
    assert_eq!(service.ask("GET", "/healthz", &[], "").await.status, 200);
    service.stop().await;
}

#[tokio::test]
async fn a_body_that_trickles_is_bounded_in_all() {
    let service = serving(ConnectionLimits {
        body_timeout: SHORT,
        ..patient(4)
    })
    .await;
    let connection = connect_and_send(&service, &post(&service, 1_000_000, "{")).await;
    let (reading, mut writing) = connection.into_split();
    let trickling = tokio::spawn(async move {
        let mut often = tokio::time::interval(Duration::from_millis(5));
        while writing.write_all(b" ").await.is_ok() {
            often.tick().await;
        }
    });
    let mut words = [0; 12];
    let mut reading = reading;
    reading.read_exact(&mut words).await.unwrap();
    assert_eq!(&words, b"HTTP/1.1 408");
    drop(reading);
    trickling.await.unwrap();
    service.stop().await;
}

#[tokio::test]
async fn stalled_bodies_are_closed_for_new_connections_before_their_timeout() {
    let service = serving(patient(4)).await;
    let mut held = Vec::new();
    for _ in 0..12 {
        held.push(connect_and_send(&service, &post(&service, 100, "{")).await);
    }
    let_in(&service).await;
    drop(held);
    service.stop().await;
}

/// More answers than all that lies between can hold, asked for without a pause and read by nobody.
fn unread(service: &Running) -> String {
    get(service, "/openapi.json").repeat(400)
}

#[tokio::test]
async fn responses_that_are_not_read_are_closed_for_new_connections() {
    let service = serving(patient(4)).await;
    let mut held = Vec::new();
    for _ in 0..12 {
        held.push(connect_and_send(&service, &unread(&service)).await);
    }
    let_in(&service).await;
    drop(held);
    service.stop().await;
}

#[tokio::test]
async fn an_answer_has_to_be_taken_in_time() {
    let service = serving(ConnectionLimits {
        idle_timeout: SHORT,
        ..patient(4)
    })
    .await;
    let mut connection = connect_and_send(&service, &unread(&service)).await;
    let mut often = tokio::time::interval(Duration::from_millis(20));
    while connection.write_all(b" ").await.is_ok() {
        often.tick().await;
    }
    service.stop().await;
}

#[tokio::test]
async fn a_request_in_progress_is_never_cut_and_a_new_connection_is_refused() {
    let service = serving(patient(2)).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let expecting =
            post(&service, 14, "").replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n");
        let mut connection = connect_and_send(&service, &expecting).await;
        // Said when somebody begins to read the body.
        let mut go_on = [0; 25];
        connection.read_exact(&mut go_on).await.unwrap();
        assert!(go_on.starts_with(b"HTTP/1.1 100 "));
        held.push(connection);
    }
    assert_eq!(
        rest(connect_and_send(&service, &get(&service, "/healthz")).await).await,
        ""
    );
    for mut connection in held {
        connection.write_all(br#"{"token": "x"}"#).await.unwrap();
        assert!(answer(&mut connection).await.starts_with("HTTP/1.1 401 "));
    }
    let told = service.stop().await;
    assert!(
        told.iter().any(|words| words.contains("serve.connections")),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_connection_between_two_requests_is_kept_for_a_while() {
    let service = serving(ConnectionLimits {
        idle_timeout: SHORT,
        ..patient(4)
    })
    .await;
    let mut connection = connect_and_send(&service, &get(&service, "/healthz")).await;
    assert!(
        answer(&mut connection)
            .await
            .ends_with(r#"{"status":"ok"}"#)
    );
    assert_eq!(rest(connection).await, "");
    service.stop().await;
}

#[tokio::test]
async fn a_stream_lasts_as_long_as_its_turn() {
    let script = r#"{"text": "Hello, at last.", "delay_ms": 800}"#;
    let limits = ConnectionLimits {
        idle_timeout: SHORT,
        header_timeout: SHORT,
        ..patient(4)
    };
    let service = Running::start_set(script, |config| config.connections = limits).await;
    let token = service.token("anna").await;
    let headers = [
        ("Authorization", format!("Bearer {token}")),
        ("Accept", "text/event-stream".to_owned()),
    ];
    let run = json!({"threadId": "t", "runId": "r", "state": {}, "tools": [], "context": [], "forwardedProps": {},
        "messages": [{"id": "1", "role": "user", "content": "hi"}]});
    let streamed = service
        .ask("POST", "/v1/runs", &headers, &run.to_string())
        .await;
    assert!(
        streamed.status == 200 && streamed.text.contains("RUN_FINISHED"),
        "{streamed:?}"
    );
    service.stop().await;
}

#[tokio::test]
async fn a_silent_connection_does_not_delay_the_shutdown() {
    let service = serving(patient(8)).await;
    let silent = connect_and_send(&service, "").await;
    let mut idle = connect_and_send(&service, &get(&service, "/healthz")).await;
    answer(&mut idle).await;
    let told = service.stop().await;
    assert!(
        !told.iter().any(|words| words.contains("not all that ran")),
        "{told:?}"
    );
    drop((silent, idle));
}

#[tokio::test]
async fn a_request_names_one_host() {
    let service = serving(patient(8)).await;
    let own = service.address.to_string();
    for (target, hosts) in [
        ("/healthz", &[own.as_str(), own.as_str()][..]),
        ("/healthz", &["localhost", "evil.example"]),
        ("http://evil.example/healthz", &[&own]),
        ("http://localhost/healthz", &[&own]),
    ] {
        let headers: Vec<_> = hosts
            .iter()
            .map(|host| ("Host", (*host).to_owned()))
            .collect();
        let refused = service.ask("GET", target, &headers, "").await;
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (400, &json!("invalid_request")),
            "{target} {hosts:?}"
        );
    }
    let evil = [("Host", "evil.example".to_owned())];
    assert_eq!(
        service
            .ask("GET", "http://evil.example/healthz", &evil, "")
            .await
            .status,
        403
    );
    assert_eq!(
        service
            .ask("GET", &format!("http://{own}/healthz"), &[], "")
            .await
            .status,
        200
    );
    service.stop().await;
}

#[tokio::test]
async fn metrics_are_for_operators_by_default() {
    for (access, of_users, of_operator) in [
        (None, 403, 200),
        (Some(MetricsAccess::Operator), 403, 200),
        (Some(MetricsAccess::Users), 200, 200),
        (Some(MetricsAccess::Off), 404, 404),
    ] {
        let service = Running::start_set(HELLO, |config| {
            config.metrics = access.unwrap_or(config.metrics)
        })
        .await;
        for (user, status) in [("anna", of_users), ("local", of_operator)] {
            let headers = [(
                "Authorization",
                format!("Bearer {}", service.token(user).await),
            )];
            let figures = service.ask("GET", "/metrics", &headers, "").await;
            assert_eq!(figures.status, status, "{access:?} {user}");
            assert_eq!(
                figures.text.contains("\nadjutant_connections 1\n"),
                status == 200,
                "{}",
                figures.text
            );
        }
        assert_eq!(
            service.ask("GET", "/metrics", &[], "").await.status,
            if of_users == 404 { 404 } else { 401 }
        );
        service.stop().await;
    }
}

#[tokio::test]
async fn every_response_has_security_headers() {
    let service = serving(patient(8)).await;
    for path in ["/healthz", "/", "/nowhere", "/docs", "/v1/me"] {
        let head = service.ask("GET", path, &[], "").await.head;
        for header in [
            "cross-origin-opener-policy: same-origin",
            "cross-origin-resource-policy: same-origin",
            "x-content-type-options: nosniff",
        ] {
            assert!(head.contains(header), "{path}: {head}");
        }
        assert!(
            head.contains("permissions-policy: ") && head.contains("camera=()"),
            "{path}: {head}"
        );
    }
    service.stop().await;
}
