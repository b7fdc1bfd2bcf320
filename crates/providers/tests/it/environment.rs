//! Tests of the environment variables that the transport reads. They are read once per process, so
//! each test starts one.

use std::process::Command;

use adjutant_core::{GenerateRequest, LanguageModel, Message};
use adjutant_providers::{Connection, Transport, gemini};

use crate::server::{Answer, Server};

const ADDRESS: &str = "ADJUTANT_TEST_ADDRESS";
const FINE: &str =
    r#"{"candidates": [{"content": {"parts": [{"text": "Fine."}]}, "finishReason": "STOP"}]}"#;

/// The other process.
#[tokio::test]
#[ignore = "the tests below run it, in a process with another environment"]
#[expect(
    clippy::disallowed_methods,
    reason = "this test is told by its environment what to do"
)]
async fn asks() {
    let Ok(address) = std::env::var(ADDRESS) else {
        return;
    };
    let connection = Connection::new(Transport::new().unwrap()).with_key("key".to_owned().into());
    let connection = Connection {
        base_url: Some(address.parse().unwrap()),
        retries: 0,
        ..connection
    };
    let model = gemini::model("gemini-x", connection).unwrap();
    let answer = model
        .generate(&GenerateRequest::new(vec![Message::user("?").unwrap()]))
        .await;
    println!(
        "{}",
        answer.map_or_else(
            |error| format!("{}: {error}", error.code()),
            |answer| answer.text()
        )
    );
}

/// Starts a process that sends a request to this address, with these variables in its environment and
/// no others that matter; returns its output.
async fn asked_with(address: &str, environment: Vec<(&'static str, String)>) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "--nocapture", "environment::asks"]);
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    command.env(ADDRESS, address).envs(environment);
    let output = tokio::task::spawn_blocking(move || command.output())
        .await
        .unwrap()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_is_used() {
    let proxy = Server::start(vec![Answer::new(200, FINE)]).await;
    let said = asked_with(
        "http://vendor.invalid",
        vec![("http_proxy", proxy.url.to_string())],
    )
    .await;
    assert!(said.contains("Fine."), "{said}");
    assert_eq!(
        proxy.received()[0].head.lines().next(),
        Some(
            "POST http://vendor.invalid/v1beta/models/gemini-x:streamGenerateContent?alt=sse HTTP/1.1"
        )
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn some_hosts_may_be_without_the_proxy() {
    let proxy = Server::start(Vec::new()).await;
    let environment = vec![
        ("http_proxy", proxy.url.to_string()),
        ("no_proxy", "vendor.invalid".to_owned()),
    ];
    let said = asked_with("http://vendor.invalid", environment).await;
    assert!(said.contains("network: "), "{said}");
    assert_eq!(proxy.received().len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn this_machine_is_never_asked_through_a_proxy() {
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy"] {
        let (proxy, vendor) = (
            Server::start(Vec::new()).await,
            Server::start(vec![Answer::new(200, FINE)]).await,
        );
        let said = asked_with(vendor.url.as_str(), vec![(name, proxy.url.to_string())]).await;
        assert!(said.contains("Fine."), "{name}: {said}");
        assert_eq!(
            (proxy.received().len(), vendor.received().len()),
            (0, 1),
            "{name}"
        );
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_the_ones_named() {
    // A file without any: nothing can be trusted, and the message says what to do.
    let none = vec![
        ("SSL_CERT_FILE", "/dev/null".to_owned()),
        ("SSL_CERT_DIR", String::new()),
    ];
    let said = asked_with("https://127.0.0.1:9", none).await;
    assert!(
        said.contains("network: ") && said.contains("set SSL_CERT_FILE"),
        "{said}"
    );
}
