//! Liveness probes while handlers occupy all threads of the runtime.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use adjutant_core::CancellationToken;
use adjutant_providers::scripted::ScriptedModel;
use adjutant_runtime::Agent;
use adjutant_service::{Auth, Service, ServiceConfig};

/// Time after which the test fails instead of waiting for ever.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends a request and returns the connection.
fn send(address: SocketAddr, request: &str) -> TcpStream {
    let mut connection = TcpStream::connect(address).unwrap();
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!("{request} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    connection.write_all(head.as_bytes()).unwrap();
    connection
}

#[test]
fn liveness_is_answered_while_handlers_block_all_threads() {
    const THREADS: usize = 2;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .unwrap();
    let agent = Agent::builder("adjutant")
        .instruction("Be brief.")
        .model(ScriptedModel::demo().unwrap())
        .build()
        .unwrap();
    let config = ServiceConfig::new("127.0.0.1:0".parse().unwrap(), Auth::None);
    let (entered, entries) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let blocks = Arc::new(move || {
        entered.send(()).unwrap();
        // Returns when the sender is dropped.
        let _ = released.lock().unwrap().recv();
        None
    });
    let service = runtime
        .block_on(Service::bind(agent, config))
        .unwrap()
        .with_readiness(blocks);
    let (address, stop) = (service.address(), CancellationToken::new());
    let running = runtime.spawn(service.run(stop.clone()));
    let blocked: Vec<TcpStream> = (0..THREADS)
        .map(|_| {
            let connection = send(address, "GET /readyz");
            entries.recv_timeout(PATIENCE).unwrap();
            connection
        })
        .collect();
    for method in ["GET", "HEAD"] {
        let mut answer = String::new();
        // To the end: the connection is closed, so that it serves nothing else there.
        send(address, &format!("{method} /healthz"))
            .read_to_string(&mut answer)
            .unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\n")
                && answer.ends_with(r#"{"status":"ok"}"#) == (method == "GET"),
            "{answer}"
        );
    }
    drop(release);
    for mut connection in blocked {
        let mut first = [0; 12];
        connection.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
    }
    stop.cancel();
    runtime.block_on(running).unwrap().unwrap();
}
