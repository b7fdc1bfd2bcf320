//! Internal errors are logged for operators and not shown to clients.

use std::net::SocketAddr;
use std::sync::Arc;

use adjutant_core::{Allowance, Budgets, CancellationToken};
use adjutant_providers::scripted::ScriptedModel;
use adjutant_runtime::Agent;
use adjutant_service::{Auth, Service, ServiceConfig};
use adjutant_store::sqlite::Store;
use adjutant_store::worker_id;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tracing::Level;

use crate::harness::Running;
use crate::logged::Logged;

/// A service on a loopback address, with its log.
struct Reporting {
    address: SocketAddr,
    stop: CancellationToken,
    logged: Logged,
    running: JoinHandle<()>,
}

impl Reporting {
    async fn start(store: &Arc<Store>, model: Arc<ScriptedModel>) -> Self {
        let agent = Agent::builder("adjutant")
            .instruction("Be brief.")
            .journal(store.clone(), worker_id())
            .model(model)
            .report_failed_calls(true)
            .build()
            .unwrap();
        let config = ServiceConfig::new("127.0.0.1:0".parse().unwrap(), Auth::None);
        let service = Service::bind(agent, config).await.unwrap();
        let (address, stop) = (service.address(), CancellationToken::new());
        let (logged, stopping) = (Logged::begin(Level::WARN), stop.clone());
        let running = tokio::spawn(async move { service.run(stopping).await.unwrap() });
        Self {
            address,
            stop,
            logged,
            running,
        }
    }

    /// Asks, and returns the whole answer.
    async fn ask(&self, method: &str, path: &str, body: &str) -> String {
        let mut connection = TcpStream::connect(self.address).await.unwrap();
        let (address, length) = (self.address, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        answer
    }

    /// Stops it, and returns what it logged.
    async fn stop(self) -> Vec<String> {
        self.stop.cancel();
        self.running.await.unwrap();
        self.logged.lines()
    }
}

#[tokio::test]
async fn a_store_that_is_gone_is_logged() {
    let store = Arc::new(Store::in_memory().await.unwrap());
    let service = Reporting::start(&store, Arc::new(ScriptedModel::new([]))).await;
    store.close().await;
    let answer = service
        .ask("POST", "/v1/chat", r#"{"message": "hi"}"#)
        .await;
    assert!(
        answer.starts_with("HTTP/1.1 50") && !answer.contains("database"),
        "{answer}"
    );
    assert!(
        service
            .ask("GET", "/readyz", "")
            .await
            .starts_with("HTTP/1.1 503")
    );
    assert!(
        service
            .ask("GET", "/healthz", "")
            .await
            .starts_with("HTTP/1.1 200")
    );
    let told = service.stop().await;
    // Once by the request, and once at least by the look for work that was left behind.
    assert!(
        told.iter().any(|words| words.contains("request_id=")),
        "{told:?}"
    );
    assert!(
        told.len() >= 2
            && told
                .iter()
                .all(|words| words.contains("database in memory")),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_stop_that_does_not_wait_for_the_end_of_a_turn_is_logged() {
    let store = Arc::new(Store::in_memory().await.unwrap());
    let script = r#"{"text": "Late.", "delay_ms": 3600000}"#;
    let model = Arc::new(ScriptedModel::from_jsonl(script).unwrap().with_retries(0));
    let service = Reporting::start(&store, model.clone()).await;
    let begun = async {
        while model.requests().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        answer = service.ask("POST", "/v1/chat", r#"{"message": "hi"}"#) => panic!("answered: {answer}"),
        () = begun => {}
    }
    // What is waited for from here on is the end of time only.
    tokio::time::pause();
    let told = service.stop().await;
    assert!(
        told.len() == 1 && told[0].contains("not all that ran had ended 30 s after the stop"),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_call_of_a_tool_that_there_is_not_is_a_warning_for_the_operator() {
    let store = Arc::new(Store::in_memory().await.unwrap());
    let script = "{\"calls\": [{\"name\": \"send_email\\u001b\", \"args\": {\"to\": \"all\"}}]}\n{\"text\": \"Done.\"}";
    let service =
        Reporting::start(&store, Arc::new(ScriptedModel::from_jsonl(script).unwrap())).await;
    let answer = service
        .ask("POST", "/v1/chat", r#"{"message": "mail everybody"}"#)
        .await;
    assert!(answer.contains("ERROR:TOOL_FAILURE"), "{answer}");
    let decisions = service.ask("GET", "/v1/decisions", "").await;
    let body: serde_json::Value =
        serde_json::from_str(decisions.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let id = body["decisions"][0]["id"].as_str().unwrap();
    let shown = service.ask("GET", &format!("/v1/decisions/{id}"), "").await;
    assert!(shown.contains(r#""code":"unknown_tool""#), "{shown}");
    let told = service.stop().await;
    assert_eq!(told.len(), 1, "{told:?}");
    let called = r#"the model called "send_email\u{1b}", a tool that it does not have"#;
    assert!(
        told[0].contains(&format!("turn={id}")) && told[0].contains(called),
        "{told:?}"
    );
}

#[tokio::test]
async fn the_shared_budget_left_is_a_metric() {
    let all = 1_000_000;
    let everyone_per_day = Allowance {
        tokens: Some(all),
        ..Allowance::default()
    };
    let budgets = Budgets {
        everyone_per_day,
        ..Budgets::default()
    };
    let service = Running::start_within(
        r#"{"text": "Hello.", "usage": {"input": 12, "output": 3}}"#,
        budgets,
    )
    .await;
    let operator = service.token("local").await;
    let left = async || {
        let bearer = [("Authorization", format!("Bearer {operator}"))];
        let figures = service.ask("GET", "/metrics", &bearer, "").await.text;
        let line = figures
            .lines()
            .find_map(|line| line.strip_prefix("adjutant_budget_left_tokens "));
        assert!(!figures.contains("adjutant_budget_left_usd "), "{figures}");
        line.unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(left().await, all);
    assert_eq!(
        service
            .chat(&operator, &json!({ "message": "hi" }))
            .await
            .status,
        200
    );
    assert_eq!(left().await, all - 15);
    service.stop().await;
}
