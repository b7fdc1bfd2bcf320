//! Requests over all that a user has, while they occupy as many threads as they may.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use adjutant_core::port::{StoreError, TokenGrant, TokenStore as _};
use adjutant_core::{BoxFuture, CancellationToken, IdempotencyKey, UserId};
use adjutant_providers::scripted::ScriptedModel;
use adjutant_runtime::Agent;
use adjutant_service::{Auth, Service, ServiceConfig, new_token};
use adjutant_store::sqlite::Store;
use adjutant_store::worker_id;
use adjutant_tools::{Task, TaskChange, TaskChanged, TaskFilter, TaskId, TaskStore};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Time after which the test fails instead of waiting for ever.
const PATIENCE: Duration = Duration::from_secs(30);
/// Requests of one user that are taken: the one that is served, and those that wait.
const TAKEN: usize = 9;

/// A list of tasks that occupies the thread on which it is read.
struct Occupying {
    entered: mpsc::Sender<()>,
    released: Mutex<mpsc::Receiver<()>>,
}

impl TaskStore for Occupying {
    fn apply<'a>(
        &'a self,
        _: &'a UserId,
        _: &'a TaskChange,
        _: Option<&'a IdempotencyKey>,
    ) -> BoxFuture<'a, Result<TaskChanged, StoreError>> {
        Box::pin(async { Err(StoreError::Conflict) })
    }

    fn list<'a>(
        &'a self,
        _: &'a UserId,
        _: TaskFilter,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>> {
        Box::pin(async {
            self.entered.send(()).unwrap();
            // Returns when the sender is dropped.
            let _ = self.released.lock().unwrap().recv();
            Ok(Vec::new())
        })
    }

    fn list_last<'a>(
        &'a self,
        _: &'a UserId,
        _: TaskFilter,
        _: Option<TaskId>,
        _: u32,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn get<'a>(
        &'a self,
        _: &'a UserId,
        _: TaskId,
    ) -> BoxFuture<'a, Result<Option<Task>, StoreError>> {
        Box::pin(async { Ok(None) })
    }
}

async fn send(address: SocketAddr, token: &str, request: &str) -> TcpStream {
    let mut connection = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "{request} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    connection
}

async fn read(mut connection: TcpStream) -> String {
    let mut answer = String::new();
    let read = connection.read_to_string(&mut answer);
    tokio::time::timeout(PATIENCE, read).await.unwrap().unwrap();
    answer
}

async fn ask(address: SocketAddr, token: &str, request: &str) -> String {
    read(send(address, token, request).await).await
}

#[track_caller]
fn assert_refused(answer: &str) {
    assert!(
        answer.starts_with("HTTP/1.1 409 ") && answer.contains(r#""code":"busy_with_your_data""#),
        "{answer}"
    );
}

async fn token(store: &Store, user: &str) -> String {
    let token = new_token().unwrap();
    let grant = TokenGrant::token(UserId::new(user).unwrap(), "test");
    store.create_token(&grant, &token.digest).await.unwrap();
    token.secret
}

// One thread for all that is shared: if it were occupied, nothing else would be answered.
#[tokio::test]
async fn whole_data_of_one_user_is_served_in_turn_and_holds_nobody_else_up() {
    let store = Arc::new(Store::in_memory().await.unwrap());
    let agent = Agent::builder("adjutant")
        .instruction("Be brief.")
        .model(ScriptedModel::demo().unwrap())
        .journal(store.clone(), worker_id())
        .build()
        .unwrap();
    let config = ServiceConfig::new("127.0.0.1:0".parse().unwrap(), Auth::Token(store.clone()));
    let (entered, entries) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let tasks = Arc::new(Occupying {
        entered,
        released: Mutex::new(released),
    });
    let service = Service::bind(agent, config)
        .await
        .unwrap()
        .with_tasks(tasks);
    #[cfg(feature = "memory")]
    let service = service.with_conversation_search(store.clone());
    let (address, stop) = (service.address(), CancellationToken::new());
    let running = tokio::spawn(service.run(stop.clone()));
    let (anna, ben) = (token(&store, "anna").await, token(&store, "ben").await);

    let mut answers = FuturesUnordered::new();
    for _ in 0..=TAKEN {
        answers.push(read(send(address, &anna, "GET /v1/tasks").await));
    }
    // One of them is refused, and none of the others can be answered yet.
    assert_refused(&answers.next().await.unwrap());
    let waits = tokio::task::spawn_blocking(move || {
        entries.recv_timeout(PATIENCE).unwrap();
        entries
    });
    let _entries = waits.await.unwrap();
    for request in [
        "GET /v1/threads?q=tea",
        "GET /v1/decisions/export",
        "DELETE /v1/threads/00000000-0000-7000-8000-000000000001",
        #[cfg(feature = "memory")]
        "GET /v1/search?q=tea",
    ] {
        assert_refused(&ask(address, &anna, request).await);
    }
    // Everything else is answered meanwhile, also to the same user.
    for token in [&anna, &ben] {
        for path in [
            "/v1/me",
            "/v1/threads",
            "/v1/tasks?limit=5",
            "/v1/decisions",
        ] {
            let answer = ask(address, token, &format!("GET {path}")).await;
            assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
        }
    }
    drop(release);
    while let Some(answer) = answers.next().await {
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    stop.cancel();
    running.await.unwrap().unwrap();
}
