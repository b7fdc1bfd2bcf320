//! What can be called: definitions, calls, results, and the [`Tool`] port behind them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::BoxFuture;
use crate::fingerprint::fingerprint;
use crate::id::{
    AgentName, CallId, ConversationId, ConversationKey, Empty, IdempotencyKey, StoreId, TurnId,
    UserId,
};
use crate::task::{TaskChange, TaskChanged};
use crate::tool_progress::ProgressListener;
use crate::trace_context::TraceContext;

/// Arguments of a call: always a JSON object.
pub type Arguments = Map<String, Value>;

/// A tool's name: `^[a-z_][a-z0-9_]*$`, at most 64 bytes.
///
/// The length is the providers' common limit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolName(String);

/// Text that cannot be a tool's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a tool name: lower-case letters, digits and _ only, not starting with a digit, 1 to 64 characters"
)]
pub struct InvalidToolName(pub String);

impl ToolName {
    /// # Errors
    /// [`InvalidToolName`] unless it matches `^[a-z_][a-z0-9_]*$` and has at most 64 bytes.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidToolName> {
        let name = name.into();
        let first = name
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let rest = name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if first && rest && name.len() <= 64 {
            Ok(Self(name))
        } else {
            Err(InvalidToolName(name))
        }
    }

    /// A name as somebody else chose it, for a request that is passed on as it is; no tool can be
    /// registered under one that [`ToolName::new`] refuses.
    ///
    /// # Errors
    /// [`InvalidToolName`] unless it is 1 to 128 bytes of letters, digits, `_`, `-`, `.` and `:`,
    /// as the most lenient provider has it.
    pub fn foreign(name: impl Into<String>) -> Result<Self, InvalidToolName> {
        let name = name.into();
        let fits = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte));
        if fits && (1..=128).contains(&name.len()) {
            Ok(Self(name))
        } else {
            Err(InvalidToolName(name))
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<ToolName> for String {
    fn from(name: ToolName) -> Self {
        name.0
    }
}

impl TryFrom<String> for ToolName {
    type Error = InvalidToolName;
    fn try_from(name: String) -> Result<Self, InvalidToolName> {
        Self::new(name)
    }
}

/// What a tool does to the world, in MCP's words. All false says nothing: the most careful reading
/// applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Annotations {
    /// Changes nothing: may run concurrently and again.
    pub read_only: bool,
    /// Destroys something: a human confirms it unless the policy says otherwise.
    pub destructive: bool,
    /// Twice is the same as once.
    pub idempotent: bool,
    /// Absorbs a repeat with the same [`IdempotencyKey`], though it is not idempotent by nature.
    pub keyed: bool,
    /// May run beside other calls although it changes something.
    pub parallel: bool,
    /// Touches nothing but what this agent keeps: no network, no other program.
    pub closed_world: bool,
}

/// What a repeat of a call after a crash may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// No effect outside: a model call, a read-only tool. May run again.
    None,
    /// The receiver absorbs a repeat with the same key, or the operation is idempotent.
    Keyed,
    /// Must not be started twice. The default of a tool that says nothing.
    Once,
}

impl Annotations {
    /// The effect class that follows.
    #[must_use]
    pub fn effect(self) -> Effect {
        if self.read_only {
            Effect::None
        } else if self.idempotent || self.keyed {
            Effect::Keyed
        } else {
            Effect::Once
        }
    }
}

/// An argument that names one of the user's things, such as a task by its words or id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceArgument {
    /// The argument's name, such as `task_id`.
    pub argument: String,
    /// The kind of thing, such as `task`.
    pub kind: String,
}

/// What a model is told about a tool, and what its arguments are checked against.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name the model calls.
    pub name: ToolName,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its arguments, always an object schema. Draft by `$schema`, default 2020-12.
    pub parameters: Value,
    /// What it does to the world.
    #[serde(default)]
    pub annotations: Annotations,
    /// Arguments that name the user's things; see [`Tool::references`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<ReferenceArgument>,
    /// JSON Schema of what a successful call gives back, for clients that want to know. Models are
    /// not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

impl ToolDefinition {
    /// Returns arguments in the order in which the schema names them, and behind them those that it
    /// does not name, by name.
    #[must_use]
    pub fn in_order(&self, mut arguments: Arguments) -> Arguments {
        let named = self.parameters.get("properties").and_then(Value::as_object);
        let mut ordered = Arguments::new();
        for name in named.into_iter().flat_map(|named| named.keys()) {
            if let Some(value) = arguments.shift_remove(name) {
                ordered.insert(name.clone(), value);
            }
        }
        let mut rest: Vec<(String, Value)> = arguments.into_iter().collect();
        rest.sort_by(|one, other| one.0.cmp(&other.0));
        ordered.extend(rest);
        ordered
    }

    /// A definition without annotations: the tool counts as changing, not repeatable, not
    /// destructive.
    ///
    /// # Errors
    /// [`InvalidTool`] for a bad name or a blank description. The schema is compiled when the tool
    /// is registered.
    pub fn new(name: &str, description: &str, parameters: Value) -> Result<Self, InvalidTool> {
        if description.trim().is_empty() {
            return Err(InvalidTool::Description {
                name: name.to_owned(),
            });
        }
        Ok(Self {
            name: ToolName::new(name)?,
            description: description.trim().to_owned(),
            parameters,
            annotations: Annotations::default(),
            references: Vec::new(),
            output_schema: None,
        })
    }

    /// Returns the SHA-256, in hex, of what a person or a model knows the tool by: name,
    /// description, parameters with sorted keys, annotations.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let Self {
            name,
            description,
            parameters,
            annotations,
            ..
        } = self;
        fingerprint(&serde_json::json!([
            name,
            description,
            parameters,
            annotations
        ]))
    }

    /// The same with a JSON Schema of what a successful call gives back.
    #[must_use]
    pub fn returning(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }

    /// The same with annotations.
    #[must_use]
    pub fn annotated(mut self, annotations: Annotations) -> Self {
        self.annotations = annotations;
        self
    }
}

/// Why a tool cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTool {
    /// The name is not one.
    #[error(transparent)]
    Name(#[from] InvalidToolName),
    /// The description is blank.
    #[error("tool {name} needs a description: the model chooses by it")]
    Description {
        /// The tool.
        name: String,
    },
    /// The parameters are not a JSON Schema of an object.
    #[error("the parameters of tool {name} are not a usable JSON Schema: {reason}")]
    Schema {
        /// The tool.
        name: String,
        /// What the validator says.
        reason: String,
    },
    /// Two tools of one name.
    #[error("a tool named {name} is already registered")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// The name of a control function of the turn.
    #[error("{name} is reserved: the turn uses it itself")]
    Reserved {
        /// The name.
        name: String,
    },
}

/// The model asks for a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Ours, unique in the conversation.
    pub id: CallId,
    /// The provider's own id of the call, sent back where its wire has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The tool's name as the model wrote it; it may not exist.
    pub name: String,
    /// The arguments; empty if the model sent none or what it sent is not a JSON object.
    pub arguments: Arguments,
    /// Set if what the model sent is not a JSON object: such a call is told back and never
    /// executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malformed: Option<MalformedArguments>,
}

/// Arguments that are not a JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MalformedArguments {
    /// What the model sent.
    pub text: String,
    /// What the parser said, with the place.
    pub reason: String,
}

impl ToolCall {
    /// A call as an adapter reads it, arguments as JSON text. Empty text and `null` mean no
    /// arguments.
    ///
    /// The id is provisional, unique in its response only: the turn machine mints the final one.
    #[must_use]
    pub fn from_json_text(
        index: usize,
        provider_id: Option<String>,
        name: String,
        arguments: &str,
    ) -> Self {
        let text = arguments.trim();
        let (arguments, malformed) = if text.is_empty() {
            (Arguments::new(), None)
        } else {
            match serde_json::from_str::<Value>(text) {
                Ok(Value::Object(map)) => (map, None),
                Ok(Value::Null) => (Arguments::new(), None),
                Ok(other) => (
                    Arguments::new(),
                    Some(format!("expected a JSON object, got {other}")),
                ),
                Err(error) => (Arguments::new(), Some(error.to_string())),
            }
        };
        Self {
            id: CallId::provisional(index),
            provider_id: provider_id.filter(|id| !id.is_empty()),
            name,
            arguments,
            malformed: malformed.map(|reason| MalformedArguments {
                text: text.to_owned(),
                reason,
            }),
        }
    }

    /// A call whose arguments are already an object; see [`ToolCall::from_json_text`].
    #[must_use]
    pub fn from_object(
        index: usize,
        provider_id: Option<String>,
        name: String,
        arguments: Arguments,
    ) -> Self {
        Self {
            id: CallId::provisional(index),
            provider_id: provider_id.filter(|id| !id.is_empty()),
            name,
            arguments,
            malformed: None,
        }
    }
}

/// What the model, the log and the API see of an executed call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Whether it worked.
    pub success: bool,
    /// The output, if it worked. Never changed, so that copies share it: it may be large.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "null_is_data"
    )]
    pub data: Option<Arc<Value>>,
    /// What went wrong, in words a model can act on and a person may read, if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The model reads `data` alone, as it stands, without `success` around it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verbatim: bool,
}

/// A tool may answer `null`, and that is not the same as no answer.
fn null_is_data<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Arc<Value>>, D::Error> {
    Value::deserialize(deserializer).map(|data| Some(data.into()))
}

impl ToolResult {
    /// It worked.
    #[must_use]
    pub fn ok(data: Value) -> Self {
        Self {
            success: true,
            data: Some(data.into()),
            error: None,
            verbatim: false,
        }
    }

    /// It did not.
    #[must_use]
    pub fn failed(error: impl Into<String>) -> Self {
        Self {
            success: false,
            data: None,
            error: Some(error.into()),
            verbatim: false,
        }
    }

    /// Words or data that the model reads exactly as they are.
    #[must_use]
    pub fn verbatim(data: Value) -> Self {
        Self {
            success: true,
            data: Some(data.into()),
            error: None,
            verbatim: true,
        }
    }

    /// It was interrupted, and the person says that it was done.
    #[must_use]
    pub fn taken_as_done() -> Self {
        Self::ok(serde_json::json!({ "status": "done", "note": "confirmed by the person" }))
    }

    /// It was interrupted, and nobody knows more.
    #[must_use]
    pub fn left_open() -> Self {
        let note = "interrupted; may or may not have been carried out; not repeated";
        Self {
            data: Some(serde_json::json!({ "status": "unknown", "note": note }).into()),
            ..Self::failed(format!("unknown: {note}"))
        }
    }

    /// It broke off, and may have taken effect: the model is told, and does not make the same call
    /// again in this turn.
    #[must_use]
    pub fn broke_off(error: impl fmt::Display) -> Self {
        let note = "may or may not have been carried out; not repeated";
        Self {
            data: Some(serde_json::json!({ "status": "unknown", "note": note }).into()),
            ..Self::failed(format!("{error}; it {note}"))
        }
    }

    /// Returns about how many bytes a model reads of it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.to_text().len()
    }

    /// Whether nobody knows if it was done.
    pub(crate) fn is_unknown(&self) -> bool {
        !self.success
            && self
                .data
                .as_ref()
                .is_some_and(|data| data["status"] == "unknown")
    }

    /// The same for the model that had called the tool with other arguments.
    #[must_use]
    pub(crate) fn of_edited(self, arguments: &Arguments) -> Self {
        let note = "the person changed the arguments before it ran";
        Self {
            data: Some(
                serde_json::json!({ "note": note, "arguments": arguments, "result": self.data })
                    .into(),
            ),
            verbatim: false,
            ..self
        }
    }

    /// What the model reads, as text: the words of a verbatim answer, else JSON.
    #[must_use]
    pub fn to_text(&self) -> String {
        /// Makes the JSON of [`ToolResult::to_json`] from its parts.
        #[derive(Serialize)]
        struct Read<'a> {
            success: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            data: Option<&'a Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            error: Option<&'a str>,
        }
        if let Some(words) = self.words() {
            return words.to_owned();
        }
        match &self.data {
            Some(data) if self.verbatim => data.to_string(),
            data => {
                let read = Read {
                    success: self.success,
                    data: data.as_deref(),
                    error: self.error.as_deref(),
                };
                serde_json::to_string(&read).unwrap_or_default()
            }
        }
    }

    /// The words of a verbatim answer that is words.
    pub(crate) fn words(&self) -> Option<&str> {
        self.data.as_ref().filter(|_| self.verbatim)?.as_str()
    }

    /// What the model reads, as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        if let (true, Some(data)) = (self.verbatim, &self.data) {
            return Value::clone(data);
        }
        let mut map = Map::new();
        map.insert("success".to_owned(), Value::Bool(self.success));
        if let Some(data) = &self.data {
            map.insert("data".to_owned(), Value::clone(data));
        }
        if let Some(error) = &self.error {
            map.insert("error".to_owned(), Value::String(error.clone()));
        }
        Value::Object(map)
    }
}

/// A call of a known tool whose arguments fitted: run, failed or denied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolInvocation {
    /// The tool.
    pub tool: String,
    /// What it was called with, references resolved to ids.
    pub arguments: Arguments,
    /// What came of it. Serialised as `{success, data?, error?}`.
    pub result: ToolResult,
}

impl ToolInvocation {
    /// The data, or the failure.
    ///
    /// # Errors
    /// The failure of the call, as the model saw it.
    pub fn outcome(&self) -> Result<&Value, &str> {
        if self.result.success {
            Ok(self.result.data.as_deref().unwrap_or(&Value::Null))
        } else {
            Err(self.result.error.as_deref().unwrap_or_default())
        }
    }
}

/// Why a tool did not do it. `Display` is for the model and the log; what the tool itself said in
/// it is safe to show to the person, who reads [`words::broke_off`](crate::words::broke_off) of the
/// rest.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolError {
    /// There is no such thing; look again before trying again.
    #[error("there is no {what} {id}")]
    NotFound {
        /// The kind of thing.
        what: String,
        /// What was looked for.
        id: String,
    },
    /// The arguments fit the schema but not the world.
    #[error("{message}")]
    Invalid {
        /// What is wrong and what would be right.
        message: String,
    },
    /// It certainly did not happen, or the tool itself said no.
    #[error("{message}")]
    Failed {
        /// What happened, in words without internals.
        message: String,
    },
    /// It may have happened: no answer after the request was sent.
    #[error("{message}")]
    Unknown {
        /// What is known, in words without internals.
        message: String,
    },
    /// It broke down in the middle: a bug in the tool.
    #[error("the tool broke down; this is a bug in the tool")]
    BrokeDown,
    /// It took longer than it may.
    #[error("the tool did not finish within {} s (tool_timeout)", .limit.as_secs_f64())]
    TimedOut {
        /// The bound.
        limit: Duration,
    },
}

impl ToolError {
    /// It did not work, and trying the same again may.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed {
            message: message.into(),
        }
    }

    /// The arguments make no sense.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid {
            message: message.into(),
        }
    }
}

impl From<Empty> for ToolError {
    fn from(error: Empty) -> Self {
        Self::invalid(error.to_string())
    }
}

/// What a running tool knows. The user comes from authentication; no argument can change it.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// By which agent.
    pub agent: AgentName,
    /// For whom.
    pub user: UserId,
    /// In which conversation.
    pub conversation: ConversationId,
    /// In which turn.
    pub turn: TurnId,
    /// Which call.
    pub call: CallId,
    /// The words of the person that the turn answers. Empty: there are none.
    pub message: Arc<str>,
    /// The same for every repeat of this call: hand it to whatever absorbs repeats.
    pub key: IdempotencyKey,
    /// Fires when nobody waits for the answer any more.
    pub cancelled: CancellationToken,
    /// The trace that the call belongs to, for whatever the tool asks. `None`: no trace.
    pub trace: Option<TraceContext>,
    /// Whom to tell how far the call is while it runs.
    pub progress: ProgressListener,
}

impl ToolContext {
    /// Returns the key of the conversation the call belongs to.
    #[must_use]
    pub fn conversation_key(&self) -> ConversationKey {
        ConversationKey {
            agent: self.agent.clone(),
            user: self.user.clone(),
            conversation: self.conversation,
        }
    }
}

/// One of the user's things that an argument may name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The kind, as in [`ReferenceArgument::kind`].
    pub kind: String,
    /// Its id.
    pub id: String,
    /// Its own words.
    pub label: String,
    /// Finished things can be looked at and removed, not finished again.
    pub done: bool,
}

/// What [`Tool::prepare`] found out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Prepared {
    /// The call can go on, with these arguments.
    Ready {
        /// References replaced by ids.
        arguments: Arguments,
        /// What will be touched, in the person's words: shown when it has to be confirmed.
        preview: Option<String>,
    },
    /// It is not clear what is meant: ask the person instead of guessing.
    Ask {
        /// The question.
        question: String,
    },
}

/// What [`Tool::probe`] found out about a call that was interrupted.
#[derive(Debug, Clone, PartialEq)]
pub enum Probe {
    /// It was carried out, and this came out of it.
    Done(Value),
    /// It certainly was not, and cannot be any more: it may run.
    NotDone,
    /// It cannot be known: the person is asked.
    Unknown,
}

/// Something an agent can do. The only way it touches the world.
///
/// An implementor gives a definition and [`Tool::call`]; everything else has a default.
pub trait Tool: Send + Sync + 'static {
    /// What the model is told.
    fn definition(&self) -> &ToolDefinition;

    /// A few words that name it to a person, such as “Read a file”. Default: none, and its name is
    /// shown.
    fn title(&self) -> Option<&str> {
        None
    }

    /// Does it. `arguments` fit the schema and came through [`Tool::prepare`].
    ///
    /// # Errors
    /// [`ToolError`]; its words go to the model and may be shown to the person.
    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>>;

    /// Resolves references and describes what a call would touch, without touching it.
    ///
    /// # Errors
    /// [`ToolError`] if it cannot be found out.
    fn prepare<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Prepared, ToolError>> {
        let _ = context;
        Box::pin(std::future::ready(Ok(Prepared::Ready {
            arguments,
            preview: None,
        })))
    }

    /// The user's things that this tool's reference arguments may name.
    ///
    /// # Errors
    /// [`ToolError`] if they cannot be read.
    fn references<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<Vec<Reference>, ToolError>> {
        let _ = user;
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// What a successful call did, in one sentence or list for the person. Used where the model's
    /// own prose about results cannot be trusted. Default: none, and the data is shown.
    fn describe(&self, arguments: &Arguments, data: &Value) -> Option<String> {
        let _ = (arguments, data);
        None
    }

    /// Looks whether a call that was begun was carried out, after a crash or a time-out left it
    /// open; `context` holds the same key as the call did. Only asked of tools that must not run
    /// twice. Default: it cannot be known.
    ///
    /// Bounded in time like the call itself; a probe that fails knows nothing.
    fn probe<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: &'a Arguments,
    ) -> BoxFuture<'a, Probe> {
        let _ = (context, arguments);
        Box::pin(std::future::ready(Probe::Unknown))
    }

    /// Returns whether its results hold words of others: a web page, a mail, another server's
    /// answer. They may try to act through the model, so a change that is proposed after them in
    /// the same turn is confirmed by the person, unless the policy allows the tool by name.
    /// Default: no.
    fn reads_from_others(&self) -> bool {
        false
    }

    /// Bound of one execution. Default: the turn's `tool_timeout`.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Returns the tool as one whose calls are changes of tasks. Default: it is none.
    fn as_task_tool(&self) -> Option<&dyn TaskTool> {
        None
    }
}

/// A tool each call of which is one change of the user's tasks.
///
/// Where the tasks are in the same store as the journal, [`Tool::call`] is not used: the change is
/// written in one transaction with the intent and the result of the call, which costs one commit
/// instead of three and leaves nothing in doubt after a crash.
pub trait TaskTool: Tool {
    /// Returns the place in which the tasks are kept, as their store says.
    fn store_id(&self) -> Option<StoreId>;

    /// Returns the change that a call makes. `arguments` fit the schema and came through
    /// [`Tool::prepare`].
    ///
    /// # Errors
    /// [`ToolError`], as [`Tool::call`] returns it.
    fn change(&self, arguments: &Arguments) -> Result<TaskChange, ToolError>;

    /// Returns the result of a call that led to this.
    ///
    /// # Errors
    /// [`ToolError`], as [`Tool::call`] returns it.
    fn result(&self, changed: &TaskChanged) -> Result<Value, ToolError>;
}
