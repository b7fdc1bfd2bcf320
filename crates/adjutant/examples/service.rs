//! An agent over HTTP, in one line, and a client that asks it.

use std::net::TcpListener;

use adjutant::prelude::*;
use adjutant::scripted::{ScriptedModel, text};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// `curl -H 'Content-Type: application/json' -d '{"message": "hi"}' http://ADDRESS/v1/chat`, in a
/// few lines.
async fn ask(address: &str) -> std::io::Result<String> {
    let mut connection = loop {
        match TcpStream::connect(address).await {
            Ok(connection) => break connection,
            // It does not listen yet.
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let body = r#"{"message": "hi"}"#;
    let head = format!(
        "POST /v1/chat HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    connection
        .write_all(format!("{head}{body}").as_bytes())
        .await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[tokio::main]
async fn main() -> adjutant::Result<()> {
    let agent = Agent::builder("helper")
        .model(ScriptedModel::new([text("Hello over HTTP.")]))
        .instruction("Be brief.")
        .build()?;
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address = free.map_or_else(
        |_| "127.0.0.1:8080".to_owned(),
        |address| address.to_string(),
    );

    tokio::select! {
        served = agent.serve(&address) => served?,
        answer = ask(&address) => {
            let answer = answer.unwrap_or_else(|error| error.to_string());
            assert!(answer.contains("Hello over HTTP."), "{answer}");
            println!("{answer}");
        }
    }
    Ok(())
}
