//! What is wrong on our side is told to whoever runs the service, and to nobody else.

use std::sync::{Arc, Mutex};

use adjutant_core::CancellationToken;
use adjutant_providers::scripted::ScriptedModel;
use adjutant_runtime::Agent;
use adjutant_service::{Auth, Service, ServiceConfig};
use adjutant_store::sqlite::Store;
use adjutant_store::worker_id;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[tokio::test]
async fn a_store_that_is_gone_is_told_to_the_operator() {
    let store = Arc::new(Store::in_memory().await.unwrap());
    let agent = Agent::builder("adjutant")
        .instruction("Be brief.")
        .journal(store.clone(), worker_id())
        .model(ScriptedModel::new([]))
        .build()
        .unwrap();
    let config = ServiceConfig::new("127.0.0.1:0".parse().unwrap(), Auth::None);
    let service = Service::bind(agent, config).await.unwrap();
    let (address, stop) = (service.address(), CancellationToken::new());
    store.close().await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let (telling, stopping) = (told.clone(), stop.clone());
    let running = tokio::spawn(async move {
        let report = |error: &_| telling.lock().unwrap().push(ToString::to_string(error));
        service.run(stopping, report).await.unwrap();
    });
    let ask = async |request: String| {
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let head = format!("HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    let body = r#"{"message": "hi"}"#;
    let length = body.len();
    let answer = ask(format!(
        "POST /v1/chat {head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
    let answer = answer.await;
    assert!(answer.starts_with("HTTP/1.1 50") && !answer.contains("database"), "{answer}");
    assert!(ask(format!("GET /readyz {head}\r\n")).await.starts_with("HTTP/1.1 503"));
    assert!(ask(format!("GET /healthz {head}\r\n")).await.starts_with("HTTP/1.1 200"));
    stop.cancel();
    running.await.unwrap();
    let told = told.lock().unwrap();
    // Once by the request, and once at least by the look for work that was left behind.
    assert!(told.len() >= 2 && told.iter().all(|words| words.contains("database in memory")), "{told:?}");
}
