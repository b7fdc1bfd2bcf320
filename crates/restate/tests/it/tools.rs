//! Tools whose work is done in the process of the test.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use adjutant_core::{
    Annotations, Arguments, BoxFuture, CallId, ConversationId, Effect, Tool, ToolContext, ToolDefinition,
    ToolError,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// A call as it reaches the world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Called {
    pub(crate) conversation: ConversationId,
    pub(crate) call: CallId,
    pub(crate) key: String,
    pub(crate) effect: Effect,
}

pub(crate) const EFFECTS: [Effect; 3] = [Effect::None, Effect::Keyed, Effect::Once];

/// The name of the tool with this effect, `careful` if it asks first.
pub(crate) fn tool_name(effect: Effect, careful: bool) -> String {
    format!("{}_{}", if careful { "careful" } else { "work" }, format!("{effect:?}").to_lowercase())
}

/// In the worker: a tool that works elsewhere.
pub(crate) struct Remote {
    definition: ToolDefinition,
    effect: Effect,
    world: SocketAddr,
}

impl Remote {
    pub(crate) fn new(effect: Effect, careful: bool, world: SocketAddr) -> Self {
        let parameters = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        let annotations = Annotations {
            read_only: effect == Effect::None,
            destructive: careful,
            keyed: effect == Effect::Keyed,
            parallel: true,
            ..Annotations::default()
        };
        let definition = ToolDefinition::new(&tool_name(effect, careful), "Works.", parameters).unwrap();
        Self { definition: definition.annotated(annotations), effect, world }
    }
}

impl Tool for Remote {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn call<'a>(&'a self, context: &'a ToolContext, _: Arguments) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let called = Called {
                conversation: context.conversation,
                call: context.call.clone(),
                key: context.key.to_string(),
                effect: self.effect,
            };
            let unknown = |error: std::io::Error| ToolError::Unknown { message: error.to_string() };
            let mut connection = TcpStream::connect(self.world).await.map_err(unknown)?;
            let line = serde_json::to_string(&called).unwrap() + "\n";
            connection.write_all(line.as_bytes()).await.map_err(unknown)?;
            let mut answer = String::new();
            BufReader::new(connection).read_line(&mut answer).await.map_err(unknown)?;
            serde_json::from_str(&answer).map_err(|error| unknown(error.into()))
        })
    }
}

/// In the test: where the work is done, and logged before it is answered.
pub(crate) struct World {
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<Vec<Called>>>,
    /// As many calls as it has permits are answered.
    pub(crate) answers: Arc<Semaphore>,
    /// Gets a permit for each call that arrives.
    pub(crate) arrivals: Arc<Semaphore>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let (answers, arrivals) =
            (Arc::new(Semaphore::new(Semaphore::MAX_PERMITS / 2)), Arc::new(Semaphore::new(0)));
        let world = Self { address, log: log.clone(), answers: answers.clone(), arrivals: arrivals.clone() };
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let (log, answers, arrivals) = (log.clone(), answers.clone(), arrivals.clone());
                tokio::spawn(async move {
                    let mut connection = BufReader::new(connection);
                    let mut line = String::new();
                    // Whoever calls may be killed at any time.
                    let Ok(1..) = connection.read_line(&mut line).await else { return };
                    let Ok(called) = serde_json::from_str(&line) else { return };
                    log.lock().unwrap().push(called);
                    arrivals.add_permits(1);
                    answers.acquire().await.unwrap().forget();
                    let _ = connection.write_all(b"\"done\"\n").await;
                });
            }
        });
        world
    }

    /// What arrived from a conversation.
    pub(crate) fn seen(&self, conversation: ConversationId) -> Vec<Called> {
        let log = self.log.lock().unwrap();
        log.iter().filter(|called| called.conversation == conversation).cloned().collect()
    }

    /// From now on calls are logged and not answered.
    pub(crate) fn hold(&self) {
        self.answers.forget_permits(Semaphore::MAX_PERMITS);
    }

    /// From now on calls are answered again.
    pub(crate) fn release(&self) {
        self.answers.add_permits(Semaphore::MAX_PERMITS / 2);
    }
}
