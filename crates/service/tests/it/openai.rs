//! `/v1/chat/completions`, `/v1/responses` and `/v1/models`, as clients of OpenAI's APIs use them.

mod answers;
mod background;
mod confirmations;
mod errors;
mod history;
mod responses;
mod tools;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use adjutant_core::port::{
    ConversationFilter, ConversationStore, LogStore as _, TokenGrant, TokenStore as _,
};
use adjutant_core::{
    AgentName, CancellationToken, Content, DecisionFilter, GenerateRequest, Role, UserId,
};
use adjutant_providers::scripted::ScriptedModel;
use adjutant_runtime::Agent;
use adjutant_service::{Auth, Service, ServiceConfig, new_token};
use adjutant_store::sqlite::Store;
use adjutant_tools::task_tools;
use adjutant_tools::{TaskFilter, TaskStore};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

const COMPLETIONS: &str = "/v1/chat/completions";
const DELETE_MILK: &str = r#"
{"calls": [{"name": "delete_task", "args": {"task_id": "milk"}}]}
{"text": "Gone."}
"#;

/// One replica of a service.
struct Replica {
    address: SocketAddr,
    model: Arc<ScriptedModel>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// The store and the clock that several replicas share.
#[derive(Clone)]
struct World {
    store: Arc<Store>,
    /// Seconds that the clock is ahead.
    ahead: Arc<AtomicI64>,
}

/// An answer as it came.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    text: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }

    fn content(&self) -> String {
        let body = self.json();
        let content = body["choices"][0]["message"]["content"].as_str();
        content.unwrap_or(&self.text).to_owned()
    }

    /// The chunks of a stream, which has to end as the API says.
    fn chunks(&self) -> Vec<Value> {
        let mut data: Vec<&str> = self
            .text
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .collect();
        assert_eq!(data.pop(), Some("[DONE]"), "{}", self.text);
        data.into_iter()
            .map(|chunk| serde_json::from_str(chunk).unwrap())
            .collect()
    }

    /// One field of all deltas, put together.
    fn streamed(&self, field: &str) -> String {
        let chunks = self.chunks();
        chunks
            .iter()
            .filter_map(|chunk| chunk["choices"][0]["delta"][field].as_str())
            .collect()
    }
}

impl World {
    async fn new() -> Self {
        Self {
            store: Arc::new(Store::in_memory().await.unwrap()),
            ahead: Arc::default(),
        }
    }

    async fn replica(&self, script: &str) -> Replica {
        let model = Arc::new(ScriptedModel::from_jsonl(script).unwrap().with_retries(0));
        let ahead = self.ahead.clone();
        let agent = Agent::builder("adjutant")
            .instruction("Be brief.")
            .tools(task_tools(self.store.clone()))
            .journal(self.store.clone(), "replica")
            .model(model.clone())
            .clock(move || {
                Timestamp::from_second(1_800_000_000).unwrap()
                    + SignedDuration::from_secs(ahead.load(Ordering::SeqCst))
            })
            .build()
            .unwrap();
        let config = ServiceConfig::new(
            "127.0.0.1:0".parse().unwrap(),
            Auth::Token(self.store.clone()),
        );
        let service = Service::bind(agent, config).await.unwrap();
        let (address, stop) = (service.address(), CancellationToken::new());
        let stopping = stop.clone();
        let task = tokio::spawn(async move { service.run(stopping).await.unwrap() });
        Replica {
            address,
            model,
            stop,
            task,
        }
    }

    async fn token(&self, user: &str) -> String {
        let token = new_token().unwrap();
        let grant = TokenGrant::token(UserId::new(user).unwrap(), "test");
        self.store
            .create_token(&grant, &token.digest)
            .await
            .unwrap();
        token.secret
    }

    async fn tasks(&self, user: &str) -> Vec<String> {
        let user = UserId::new(user).unwrap();
        let tasks = TaskStore::list(&*self.store, &user, TaskFilter::All)
            .await
            .unwrap();
        tasks
            .into_iter()
            .map(|task| task.description.to_string())
            .collect()
    }

    async fn add(&self, user: &str, description: &str) {
        let script = format!(
            "{{\"calls\": [{{\"name\": \"add_task\", \"args\": {{\"description\": \"{description}\"}}}}]}}\n{{\"text\": \"Added.\"}}"
        );
        let replica = self.replica(&script).await;
        let token = self.token(user).await;
        assert_eq!(
            replica.ask(&token, &said(&["add it"])).await.content(),
            "Added."
        );
        replica.stop().await;
    }

    async fn decisions(&self, user: &str) -> usize {
        let user = UserId::new(user).unwrap();
        self.store
            .decisions(&user, &DecisionFilter::default())
            .await
            .unwrap()
            .len()
    }

    async fn threads(&self, user: &str) -> usize {
        let user = UserId::new(user).unwrap();
        ConversationStore::list(
            &*self.store,
            &AgentName::adjutant(),
            &user,
            &ConversationFilter::newest(100),
        )
        .await
        .unwrap()
        .len()
    }
}

/// Messages of person and agent in turn, the person first.
fn said(texts: &[&str]) -> Value {
    let role = |at| if at % 2 == 0 { "user" } else { "assistant" };
    let messages = texts
        .iter()
        .enumerate()
        .map(|(at, text)| json!({"role": role(at), "content": text}));
    json!({"model": "adjutant", "messages": messages.collect::<Vec<_>>()})
}

fn with(mut body: Value, key: &str, value: Value) -> Value {
    body[key] = value;
    body
}

impl Replica {
    async fn ask(&self, token: &str, body: &Value) -> Answer {
        self.send(
            "POST",
            COMPLETIONS,
            &[("Authorization", &format!("Bearer {token}"))],
            &body.to_string(),
        )
        .await
    }

    async fn stream(&self, token: &str, body: &Value) -> Answer {
        self.ask(token, &with(body.clone(), "stream", json!(true)))
            .await
    }

    /// In HTTP/1.0, which knows no chunks of its own.
    async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut connection = TcpStream::connect(self.address).await.unwrap();
        connection
            .write_all(self.request(method, path, headers, body).as_bytes())
            .await
            .unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        let (head, text) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer {
            status,
            head: head.to_lowercase(),
            text: text.to_owned(),
        }
    }

    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
        let mut request = format!(
            "{method} {path} HTTP/1.0\r\nHost: {}\r\nContent-Length: {}\r\n",
            self.address,
            body.len()
        );
        if !headers.iter().any(|(name, _)| *name == "Content-Type") {
            request += "Content-Type: application/json\r\n";
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        format!("{request}\r\n{body}")
    }

    /// Returns the last request to the model.
    fn last_request(&self) -> GenerateRequest {
        self.model.requests().pop().unwrap()
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

/// Returns role and text of each message in a request to the model.
fn transcript(request: &GenerateRequest) -> Vec<(Role, String)> {
    request
        .messages
        .iter()
        .map(|message| (message.role(), message.text()))
        .collect()
}

fn check_error(answer: &Answer, status: u16, kind: &str, code: &str, param: Option<&str>) {
    let body = answer.json();
    let error = &body["error"];
    assert_eq!(answer.status, status, "{answer:?}");
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|message| !message.is_empty()),
        "{answer:?}"
    );
    assert_eq!(
        (&error["type"], &error["code"], &error["param"]),
        (&json!(kind), &json!(code), &json!(param)),
        "{answer:?}"
    );
    assert_eq!(body.as_object().unwrap().len(), 1);
    assert!(
        answer.head.contains("content-type: application/json"),
        "{}",
        answer.head
    );
    assert!(answer.head.contains("x-request-id: "), "{}", answer.head);
}
