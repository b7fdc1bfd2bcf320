//! The events of AG-UI that are sent, field for field.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

/// Supported version of the protocol.
pub(crate) const PROTOCOL_VERSION: &str = "1.0";

/// An AG-UI event. Absent fields are omitted, because the protocol does not allow `null`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(
    // `runs::replay` reads the type of a serialized event, which has to be its first member.
    tag = "type",
    rename_all = "SCREAMING_SNAKE_CASE",
    rename_all_fields = "camelCase"
)]
pub(crate) enum Event {
    RunStarted {
        thread_id: String,
        run_id: String,
        protocol_version: &'static str,
    },
    StepStarted {
        step_name: String,
    },
    StepFinished {
        step_name: String,
    },
    ReasoningStart {
        message_id: String,
    },
    ReasoningMessageStart {
        message_id: String,
        role: &'static str,
    },
    ReasoningMessageContent {
        message_id: String,
        delta: String,
    },
    ReasoningMessageEnd {
        message_id: String,
    },
    ReasoningEnd {
        message_id: String,
    },
    TextMessageStart {
        message_id: String,
        role: &'static str,
    },
    TextMessageContent {
        message_id: String,
        delta: String,
    },
    TextMessageEnd {
        message_id: String,
    },
    ToolCallStart {
        tool_call_id: String,
        tool_call_name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<String>,
    },
    ToolCallArgs {
        tool_call_id: String,
        delta: String,
    },
    ToolCallEnd {
        tool_call_id: String,
    },
    ToolCallResult {
        message_id: String,
        tool_call_id: String,
        content: String,
        role: &'static str,
        metadata: Value,
    },
    StateSnapshot {
        snapshot: Value,
    },
    StateDelta {
        delta: Vec<Value>,
    },
    MessagesSnapshot {
        messages: Vec<Message>,
    },
    Custom {
        name: &'static str,
        value: Value,
    },
    RunFinished {
        thread_id: String,
        run_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        outcome: Outcome,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage>,
    },
    RunError {
        message: String,
        code: String,
        #[serde(skip_serializing_if = "Map::is_empty")]
        metadata: Map<String, Value>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage>,
    },
}

impl Event {
    /// Returns an event that is not part of the protocol.
    pub(crate) fn custom(name: &'static str, value: Value) -> Self {
        Self::Custom { name, value }
    }

    /// Returns the events of a message of the assistant whose text is complete.
    pub(crate) fn text_message(message_id: String, delta: String) -> [Self; 3] {
        [
            Self::TextMessageStart {
                message_id: message_id.clone(),
                role: "assistant",
            },
            Self::TextMessageContent {
                message_id: message_id.clone(),
                delta,
            },
            Self::TextMessageEnd { message_id },
        ]
    }

    /// Returns true if no event of the run follows it.
    pub(crate) fn is_last(&self) -> bool {
        matches!(self, Self::RunFinished { .. } | Self::RunError { .. })
    }

    /// Returns true if the stream is valid without it, and a later snapshot contains its content.
    pub(crate) fn is_delta(&self) -> bool {
        matches!(
            self,
            Self::TextMessageContent { .. }
                | Self::ReasoningMessageContent { .. }
                | Self::ToolCallArgs { .. }
                | Self::ToolCallResult { .. }
        )
    }
}

/// Outcome of a run that did not fail.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum Outcome {
    /// The run ended. The client has to continue it with the results of the calls that it names, if
    /// any.
    Success {
        #[serde(rename = "pendingToolCallIds", skip_serializing_if = "Vec::is_empty")]
        pending_tool_call_ids: Vec<String>,
    },
    Interrupt {
        interrupts: Vec<Interrupt>,
    },
    Cancelled,
}

impl Outcome {
    /// Returns the outcome of a run that needs nothing from the client.
    pub(crate) fn success() -> Self {
        Self::Success {
            pending_tool_call_ids: Vec::new(),
        }
    }
}

/// A call that waits for the user.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Interrupt {
    pub(crate) id: String,
    /// `confirmation` or `in_doubt`.
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) tool_call_id: String,
    /// JSON Schema of the answer's `payload`.
    pub(crate) response_schema: Value,
    pub(crate) expires_at: Timestamp,
    pub(crate) metadata: Value,
}

/// Token counts of the model calls of one run. Unknown ones are omitted.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TokenUsage {
    pub(crate) provider: String,
    pub(crate) model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cached_input_tokens: Option<u64>,
}

/// A message of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(
    tag = "role",
    rename_all = "lowercase",
    rename_all_fields = "camelCase"
)]
pub(crate) enum Message {
    User {
        id: String,
        content: String,
    },
    Assistant {
        id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
    },
    Tool {
        id: String,
        content: String,
        tool_call_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
}

impl Message {
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::User { id, .. } | Self::Assistant { id, .. } | Self::Tool { id, .. } => id,
        }
    }

    pub(crate) fn set_id(&mut self, new: String) {
        match self {
            Self::User { id, .. } | Self::Assistant { id, .. } | Self::Tool { id, .. } => *id = new,
        }
    }
}

/// A tool call in an assistant's message.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) function: FunctionCall,
}

impl ToolCall {
    /// Returns a call of a tool with its arguments as JSON text.
    pub(crate) fn new(id: String, name: String, arguments: String) -> Self {
        Self {
            id,
            kind: "function",
            function: FunctionCall { name, arguments },
        }
    }
}

/// Name and arguments of a call; the arguments are JSON text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct FunctionCall {
    pub(crate) name: String,
    pub(crate) arguments: String,
}
