//! An agent with the task tools as an MCP server, and a client at the other end of a pipe.
#![expect(
    deprecated,
    reason = "logging is deprecated from 2026-07-28 on, and the versions before have it"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjutant_core::port::Journal as _;
use adjutant_core::{AgentName, Policy, Schema, Tool, UserId, Verdict};
use adjutant_mcp::server::{McpServer, McpServerBuilder};
use adjutant_providers::scripted::ScriptedModel;
use adjutant_runtime::{Agent, InMemory};
use adjutant_tools::task_tools;
use jiff::{SignedDuration, Timestamp};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, Implementation,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RequestContext,
    RunningService, serve_server,
};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Versions of the protocol: the last with sessions, and the first without.
pub(super) const SESSIONS: ProtocolVersion = ProtocolVersion::V_2025_11_25;
pub(super) const SESSIONLESS: ProtocolVersion = ProtocolVersion::V_2026_07_28;

/// A store, a clock that the test sets, and servers over them.
pub(super) struct World {
    pub(super) store: Arc<InMemory>,
    now: Arc<Mutex<Timestamp>>,
    script: &'static str,
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            store: Arc::new(InMemory::default()),
            now: Arc::new(Mutex::new("2026-11-22T10:00:00Z".parse().unwrap())),
            script: "",
        }
    }

    /// The same with a model that answers.
    pub(super) fn with_script(script: &'static str) -> Self {
        Self {
            script,
            ..Self::new()
        }
    }

    /// A server that offers the agent itself too.
    pub(super) fn asked(&self) -> McpServer {
        self.asked_with(Vec::new(), Policy::default())
    }

    /// The same with more tools.
    pub(super) fn asked_with(&self, tools: Vec<Arc<dyn Tool>>, policy: Policy) -> McpServer {
        self.builder(tools, policy)
            .offer_agent(Box::new(|_| Ok(Box::new(|_, _| {}))))
            .build()
    }

    /// Lets time pass.
    pub(super) fn wait(&self, time: Duration) {
        let mut now = self.now.lock().unwrap();
        *now += SignedDuration::try_from(time).unwrap();
    }

    pub(super) fn server(&self) -> McpServer {
        self.builder(Vec::new(), Policy::default()).build()
    }

    /// A server with more tools than those for tasks.
    pub(super) fn builder(&self, tools: Vec<Arc<dyn Tool>>, policy: Policy) -> McpServerBuilder {
        McpServer::builder(self.agent(tools, policy))
    }

    /// Answers a pending call where the user sees it, outside of the client.
    pub(super) async fn answer(&self, user_id: &str, verdict: Verdict) {
        let agent = self.agent(Vec::new(), Policy::default());
        for (key, _) in self
            .store
            .parked(&AgentName::adjutant(), Some(&user(user_id)))
            .await
            .unwrap()
        {
            let mut context = agent.context(&key).await.unwrap();
            let answers = context
                .pending
                .iter()
                .map(|call| call.answer(verdict))
                .collect();
            agent.answer(&mut context, answers).await.unwrap();
        }
    }

    fn agent(&self, tools: Vec<Arc<dyn Tool>>, policy: Policy) -> Agent {
        let now = self.now.clone();
        Agent::builder("adjutant")
            .description("Manages a person's tasks.")
            .instruction("Be brief.")
            .tools(task_tools(self.store.clone()))
            .tools(tools)
            .policy(policy)
            .journal(self.store.clone(), "test")
            .clock(move || *now.lock().unwrap())
            .model(match self.script {
                "" => ScriptedModel::new([]),
                script => ScriptedModel::from_jsonl(script).unwrap(),
            })
            .build()
            .unwrap()
    }
}

pub(super) fn user(name: &str) -> UserId {
    UserId::new(name).unwrap()
}

/// The answer of the user at the client.
pub(super) type Person = Arc<dyn Fn(&str) -> Result<ElicitResult, ErrorData> + Send + Sync>;

/// One that answers with this action and content.
pub(super) fn person(action: ElicitationAction, content: Option<Value>) -> Option<Person> {
    Some(Arc::new(move |_| {
        let mut result = ElicitResult::new(action.clone());
        result.content = content.clone();
        Ok(result)
    }))
}

/// The notifications that a client received.
#[derive(Debug, PartialEq)]
pub(super) enum Notified {
    Progress(f64, String),
    Log(String, Value),
}

pub(super) struct Handler {
    person: Option<Person>,
    notifications: UnboundedSender<Notified>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = self.person.is_some().then(ElicitationCapability::new);
        ClientConfig::new(capabilities, Implementation::new("test", "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else {
            panic!("{request:?}")
        };
        self.person.as_ref().unwrap()(&message)
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let _ = self.notifications.send(Notified::Progress(
            params.progress,
            params.message.unwrap_or_default(),
        ));
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let level = serde_json::to_value(params.level).unwrap();
        let _ = self.notifications.send(Notified::Log(
            level.as_str().unwrap().to_owned(),
            params.data,
        ));
    }
}

/// A client of a server.
pub(super) struct Client {
    pub(super) peer: RunningService<RoleClient, Handler>,
    pub(super) notifications: UnboundedReceiver<Notified>,
    schemas: BTreeMap<String, Schema>,
}

impl Client {
    pub(super) async fn connect(
        server: &McpServer,
        user_id: &str,
        version: &ProtocolVersion,
        person: Option<Person>,
    ) -> Self {
        let (here, there) = tokio::io::duplex(64 * 1024);
        let session = server.session(user(user_id));
        tokio::spawn(async move {
            serve_server(session, there)
                .await
                .unwrap()
                .waiting()
                .await
                .unwrap()
        });
        let lifecycle = match version.has_initialize() {
            true => ClientLifecycleMode::Initialize,
            false => ClientLifecycleMode::Discover {
                preferred_versions: vec![version.clone()],
            },
        };
        let (sender, notifications) = unbounded_channel();
        let peer = Handler {
            person,
            notifications: sender,
        }
        .serve_with_lifecycle(here, lifecycle)
        .await
        .unwrap();
        let mut client = Self {
            peer,
            notifications,
            schemas: BTreeMap::new(),
        };
        for tool in client.peer.list_all_tools().await.unwrap() {
            let schema = Value::Object((*tool.output_schema.unwrap()).clone());
            client
                .schemas
                .insert(tool.name.to_string(), Schema::compile(&schema).unwrap());
        }
        client
    }

    /// Without a way to ask its person.
    pub(super) async fn plain(server: &McpServer, user: &str) -> Self {
        Self::connect(server, user, &SESSIONS, None).await
    }

    /// The result of a call: whether it is an error, and its structured content, which fits the
    /// tool's output schema and is also its text.
    pub(super) async fn call(&self, tool: &str, arguments: Value) -> (bool, Value) {
        let result = self.peer.call_tool(params(tool, arguments)).await.unwrap();
        self.checked(tool, result)
    }

    /// One round of a call, whatever it ends with.
    pub(super) async fn once(&self, params: CallToolRequestParams) -> CallToolResponse {
        self.peer.call_tool_once(params).await.unwrap()
    }

    pub(super) fn checked(&self, tool: &str, result: CallToolResult) -> (bool, Value) {
        let content = result.structured_content.unwrap();
        assert_eq!(self.schemas[tool].check(&content), Ok(()), "{content}");
        let text = result.content[0].as_text().unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text.text).unwrap(), content);
        (result.is_error.unwrap_or_default(), content)
    }

    /// The words of all tasks.
    pub(super) async fn tasks(&self) -> Vec<String> {
        let (_, listed) = self.call("list_tasks", json!({})).await;
        let tasks = listed["data"]["tasks"].as_array().unwrap();
        tasks
            .iter()
            .map(|task| task["description"].as_str().unwrap().to_owned())
            .collect()
    }

    pub(super) async fn add(&self, words: &[&str]) {
        for words in words {
            let (failed, _) = self.call("add_task", json!({ "description": words })).await;
            assert!(!failed);
        }
    }
}

pub(super) fn params(tool: &str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else {
        panic!("{arguments}")
    };
    CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments)
}
