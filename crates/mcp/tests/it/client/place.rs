//! A server for tests, and whoever calls its tools.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjutant_core::{
    AgentName, Arguments, CallId, CancellationToken, ConversationId, IdempotencyKey,
    ProgressListener, Tool, ToolContext, ToolError, TurnId, UserId,
};
use adjutant_mcp::client::{
    Backoff, Child, ClientOptions, Health, Log, ServerConfig, ServerName, ServerReport, Servers,
    StartError, Transport,
};
use serde_json::Value;
use uuid::Uuid;

/// Log lines of the servers.
pub(crate) type Said = Arc<Mutex<Vec<String>>>;

/// Long enough for a busy machine. No test waits for it unless it fails.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// The program of `odd_server.rs`, which is built with the tests.
pub(crate) fn odd_server() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("examples")
        .join("odd_server");
    assert!(
        program.exists(),
        "{} is not built: cargo build -p adjutant-mcp --examples",
        program.display()
    );
    program
}

pub(crate) fn name(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

/// The odd server in this mode, called `odd`.
pub(crate) fn odd(mode: &str) -> ServerConfig {
    let child = Child {
        program: odd_server(),
        arguments: vec![mode.to_owned()],
        variables: [("TOKEN".to_owned(), "t-123".to_owned().into())].into(),
        directory: None,
    };
    let mut config = ServerConfig::new(name("odd"), Transport::Child(child));
    config.start_timeout = LONG;
    config.backoff = Backoff {
        first: Duration::ZERO,
        ..Backoff::default()
    };
    config
}

pub(crate) fn options() -> (ClientOptions, Said) {
    let said = Said::default();
    let heard = said.clone();
    let log: Log =
        Arc::new(move |server, words| heard.lock().unwrap().push(format!("{server}: {words}")));
    // Plain HTTP to this machine only: without the system's certificates and proxies.
    let http = reqwest::Client::builder()
        .no_proxy()
        .tls_backend_preconfigured(
            rustls::ClientConfig::builder_with_provider(Arc::new(
                rustls::crypto::ring::default_provider(),
            ))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth(),
        )
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    (
        ClientOptions {
            http: Some(http),
            log,
            pins: None,
        },
        said,
    )
}

pub(crate) async fn start(config: ServerConfig) -> Result<Servers, StartError> {
    Servers::start(vec![config], options().0).await
}

pub(crate) async fn started(config: ServerConfig) -> Servers {
    let servers = start(config).await.unwrap();
    assert_eq!(report(&servers).health, Health::Connected);
    servers
}

/// Of the only server.
pub(crate) fn report(servers: &Servers) -> ServerReport {
    let [report] = <[ServerReport; 1]>::try_from(servers.report()).unwrap();
    report
}

pub(crate) fn tool(servers: &Servers, name: &str) -> Arc<dyn Tool> {
    let tools = servers.tools();
    tools
        .into_iter()
        .find(|tool| tool.definition().name.as_str() == name)
        .unwrap_or_else(|| panic!("no tool {name}"))
}

/// As a turn of Ana's would call it.
pub(crate) fn context() -> ToolContext {
    let (conversation, turn) = (ConversationId(Uuid::now_v7()), TurnId(Uuid::now_v7()));
    let call = CallId::new("call_1").unwrap();
    ToolContext {
        agent: AgentName::adjutant(),
        user: UserId::new("ana").unwrap(),
        conversation,
        turn,
        key: IdempotencyKey::for_call(conversation, turn, &call),
        call,
        message: "".into(),
        from_others: false,
        cancelled: CancellationToken::new(),
        trace: None,
        progress: ProgressListener::default(),
    }
}

pub(crate) async fn call(servers: &Servers, name: &str) -> Result<Value, ToolError> {
    call_with(servers, name, Value::Object(Arguments::new())).await
}

pub(crate) async fn call_with(
    servers: &Servers,
    name: &str,
    arguments: Value,
) -> Result<Value, ToolError> {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object")
    };
    let (tool, context) = (tool(servers, name), context());
    tokio::time::timeout(LONG, tool.call(&context, arguments))
        .await
        .expect("the call ends")
}
