//! Tools of every effect class, executed by another process.

use std::net::SocketAddr;
use std::time::Duration;

use adjutant_core::{
    Annotations, Arguments, BoxFuture, CallId, ConversationId, Effect, IdempotencyKey, InvalidTool,
    Probe, Tool, ToolContext, ToolDefinition, ToolError,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// Default time to wait for an answer: longer than any test runs.
const PATIENCE: Duration = Duration::from_secs(3600);

/// A tool call as one line of JSON to the tool process, which answers with one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Called {
    /// The conversation that made the call.
    pub conversation: ConversationId,
    /// Id of the tool call within the turn.
    pub call: CallId,
    /// The idempotency key, by which a repeat is recognised.
    pub key: IdempotencyKey,
    /// The effect class, which names the tool.
    pub effect: Effect,
    /// The tool's only argument, a number.
    pub n: i64,
    /// True if this is a probe: the answer is the result of the earlier call, or null.
    pub probe: bool,
}

/// The way in which a tool is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Concurrently with other calls of the round.
    Beside,
    /// Alone: no other call of the round runs meanwhile.
    InOrder,
    /// Concurrently, after a person approved it.
    Careful,
}

impl Style {
    /// All variants, in the order of the tests.
    pub const ALL: [Self; 3] = [Self::Beside, Self::InOrder, Self::Careful];
}

/// Returns the name of the tool with this effect class and style.
#[must_use]
pub fn tool_name(effect: Effect, style: Style) -> String {
    let effect = match effect {
        Effect::None => "none",
        Effect::Keyed => "keyed",
        Effect::Once => "once",
    };
    let style = match style {
        Style::Beside => "work",
        Style::InOrder => "ordered",
        Style::Careful => "careful",
    };
    format!("{style}_{effect}")
}

/// A tool that is executed by another process.
#[derive(Debug)]
pub struct Remote {
    definition: ToolDefinition,
    effect: Effect,
    server: SocketAddr,
    probe: bool,
    /// Time to wait for the tool process.
    patience: Duration,
}

impl Remote {
    /// Creates the tool with this effect class and style. `server`: address of the tool process.
    ///
    /// # Errors
    /// [`InvalidTool`] if the name or the schema is invalid, which no combination leads to.
    pub fn new(effect: Effect, style: Style, server: SocketAddr) -> Result<Self, InvalidTool> {
        let parameters =
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let definition = ToolDefinition::new(&tool_name(effect, style), "Works.", parameters)?;
        let annotations = Annotations {
            read_only: effect == Effect::None,
            destructive: style == Style::Careful,
            idempotent: false,
            keyed: effect == Effect::Keyed,
            parallel: style != Style::InOrder,
            closed_world: true,
        };
        let definition = definition.annotated(annotations);
        Ok(Self {
            definition,
            effect,
            server,
            probe: false,
            patience: PATIENCE,
        })
    }

    /// Returns the same tool with another time to wait for an answer, and, if `probe`, one that can
    /// be probed. By default it waits an hour and cannot be probed.
    #[must_use]
    pub fn that_waits(self, patience: Duration, probe: bool) -> Self {
        Self {
            patience,
            probe,
            ..self
        }
    }

    fn called(&self, context: &ToolContext, arguments: &Arguments, probe: bool) -> Called {
        Called {
            conversation: context.conversation,
            call: context.call.clone(),
            key: context.key.clone(),
            effect: self.effect,
            n: arguments
                .get("n")
                .and_then(Value::as_i64)
                .unwrap_or_default(),
            probe,
        }
    }

    async fn ask(&self, called: &Called) -> Result<Value, ToolError> {
        let refused =
            |error: std::io::Error| ToolError::failed(format!("cannot be reached: {error}"));
        let mut connection = TcpStream::connect(self.server).await.map_err(refused)?;
        // From here on the call may have taken effect.
        let unknown = |why: String| ToolError::Unknown {
            message: format!("no answer: {why}"),
        };
        let mut line = serde_json::to_vec(called).map_err(|error| unknown(error.to_string()))?;
        line.push(b'\n');
        connection
            .write_all(&line)
            .await
            .map_err(|error| unknown(error.to_string()))?;
        let mut answer = String::new();
        let mut reader = BufReader::new(connection);
        tokio::time::timeout(self.patience, reader.read_line(&mut answer))
            .await
            .map_err(|_| unknown("it took too long".to_owned()))?
            .map_err(|error| unknown(error.to_string()))?;
        serde_json::from_str(&answer).map_err(|error| unknown(error.to_string()))
    }
}

impl Tool for Remote {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move { self.ask(&self.called(context, &arguments, false)).await })
    }

    fn probe<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: &'a Arguments,
    ) -> BoxFuture<'a, Probe> {
        Box::pin(async move {
            if !self.probe {
                return Probe::Unknown;
            }
            match self.ask(&self.called(context, arguments, true)).await {
                Ok(Value::Null) => Probe::NotDone,
                Ok(said) => Probe::Done(said),
                Err(_) => Probe::Unknown,
            }
        })
    }
}
