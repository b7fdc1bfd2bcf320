//! A running service, and a client of few words.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use adjutant_core::port::{TokenGrant, TokenStore as _};
use adjutant_core::{Budgets, CancellationToken, ToolError, UserId};
use adjutant_providers::scripted::ScriptedModel;
use adjutant_runtime::{Agent, AgentBuilder};
use adjutant_service::{Auth, Service, ServiceConfig, new_token};
use adjutant_store::sqlite::Store;
use adjutant_store::worker_id;
use adjutant_tools::{FunctionTool, task_tools};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::logged::Logged;

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) store: Arc<Store>,
    stop: CancellationToken,
    task: JoinHandle<()>,
    logged: Logged,
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    /// As JSON, if it is that.
    pub(crate) body: Value,
    /// As it came.
    pub(crate) text: String,
}

/// A tool that sends letters. The first call is in doubt.
fn letters() -> FunctionTool {
    let sent = AtomicUsize::new(0);
    let schema = json!({"type": "object", "properties": {"to": {"type": "string"}}});
    let tool = FunctionTool::new("send_letter", "Sends a letter.", schema, move |_, _| {
        let number = sent.fetch_add(1, Ordering::SeqCst) + 1;
        let lost = || ToolError::Unknown {
            message: "the connection was lost".to_owned(),
        };
        std::future::ready(if number == 1 {
            Err(lost())
        } else {
            Ok(json!({ "letter": number }))
        })
    });
    tool.unwrap()
}

impl Running {
    /// A service whose model follows the script.
    pub(crate) async fn start(script: &str) -> Self {
        Self::start_within(script, Budgets::default()).await
    }

    /// The same within budgets.
    pub(crate) async fn start_within(script: &str, budgets: Budgets) -> Self {
        let store = Arc::new(Store::in_memory().await.unwrap());
        Self::start_on(store.clone(), script, |builder| {
            builder.budgets(budgets, store)
        })
        .await
    }

    /// A service over a store that others may use too, with an agent that is built as `with` says.
    pub(crate) async fn start_on(
        store: Arc<Store>,
        script: &str,
        with: impl FnOnce(AgentBuilder) -> AgentBuilder,
    ) -> Self {
        Self::start_as(store, script, with, |_| {}).await
    }

    /// One of several replicas behind a load balancer.
    pub(crate) async fn start_replica(store: Arc<Store>) -> Self {
        let script = r#"{"text": "Done.", "repeat": true}"#;
        Self::start_as(
            store,
            script,
            |builder| builder,
            |config| config.mcp_sessions = false,
        )
        .await
    }

    /// A service of other settings.
    pub(crate) async fn start_set(script: &str, set: impl FnOnce(&mut ServiceConfig)) -> Self {
        let store = Arc::new(Store::in_memory().await.unwrap());
        Self::start_as(store, script, |builder| builder, set).await
    }

    async fn start_as(
        store: Arc<Store>,
        script: &str,
        with: impl FnOnce(AgentBuilder) -> AgentBuilder,
        set: impl FnOnce(&mut ServiceConfig),
    ) -> Self {
        let builder = Agent::builder("adjutant")
            .instruction("Be brief.")
            .tools(task_tools(store.clone()))
            .tool(letters())
            .journal(store.clone(), worker_id())
            .model(ScriptedModel::from_jsonl(script).unwrap().with_retries(0));
        let agent = with(builder).build().unwrap();
        let mut config =
            ServiceConfig::new("127.0.0.1:0".parse().unwrap(), Auth::Token(store.clone()));
        config.hosts = vec!["tasks.example".to_owned()];
        set(&mut config);
        let service = Service::bind(agent, config)
            .await
            .unwrap()
            .with_tasks(store.clone());
        #[cfg(feature = "memory")]
        let service = service.with_conversation_search(store.clone());
        let (address, stop) = (service.address(), CancellationToken::new());
        let stopping = stop.clone();
        let logged = Logged::begin(tracing::Level::INFO);
        let task = tokio::spawn(async move { service.run(stopping).await.unwrap() });
        Self {
            address,
            store,
            stop,
            task,
            logged,
        }
    }

    /// A token of a user, with every scope.
    pub(crate) async fn token(&self, user: &str) -> String {
        self.token_for(user, "read write answer").await
    }

    /// A token of a user with these scopes.
    pub(crate) async fn token_for(&self, user: &str, scopes: &str) -> String {
        let token = new_token().unwrap();
        let grant = TokenGrant {
            scopes: scopes.parse().unwrap(),
            ..TokenGrant::token(UserId::new(user).unwrap(), "test")
        };
        self.store
            .create_token(&grant, &token.digest)
            .await
            .unwrap();
        token.secret
    }

    /// `POST /v1/chat` with a token.
    pub(crate) async fn chat(&self, token: &str, body: &Value) -> Answer {
        let headers = [("Authorization", format!("Bearer {token}"))];
        self.ask("POST", "/v1/chat", &headers, &body.to_string())
            .await
    }

    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: &str,
    ) -> Answer {
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n",
            body.len()
        );
        let mut given = headers.to_vec();
        for (name, value) in [
            ("Host", self.address.to_string()),
            ("Content-Type", "application/json".to_owned()),
        ] {
            if !headers.iter().any(|(known, _)| *known == name) {
                given.push((name, value));
            }
        }
        for (name, value) in given {
            head += &format!("{name}: {value}\r\n");
        }
        let mut connection = TcpStream::connect(self.address).await.unwrap();
        connection
            .write_all(format!("{head}\r\n{body}").as_bytes())
            .await
            .unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let (head, text) = (head.to_lowercase(), body.to_owned());
        Answer {
            status,
            head,
            body: serde_json::from_str(body).unwrap_or(Value::Null),
            text,
        }
    }

    /// Ends the service in order, and gives what it told whoever runs it.
    pub(crate) async fn stop(self) -> Vec<String> {
        self.stop.cancel();
        self.task.await.unwrap();
        self.logged.lines()
    }
}
