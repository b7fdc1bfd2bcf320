//! Calls of tools, as models ask for them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::id::CallId;

/// Arguments of a call: always a JSON object.
pub type Arguments = Map<String, Value>;

/// A call that a model asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id that the turn gave the call, unique in the conversation.
    pub id: CallId,
    /// The id that the provider gave the call, sent back where its API has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The tool's name as the model wrote it; it may not exist.
    pub name: String,
    /// The arguments; empty if the model sent none or what it sent is not a JSON object.
    pub arguments: Arguments,
    /// Set if the model sent something else than a JSON object. Such a call is reported back to the
    /// model and never executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malformed: Option<MalformedArguments>,
}

/// Arguments that are no JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MalformedArguments {
    /// The text that the model sent.
    pub text: String,
    /// The parser's message, with the position.
    pub reason: String,
}

impl ToolCall {
    /// Creates a call from arguments as JSON text, as adapters read it. Empty text and `null` mean
    /// no arguments.
    ///
    /// The id is provisional, unique in its response only: the turn mints the final one.
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

    /// Creates a call whose arguments are already an object; see [`ToolCall::from_json_text`].
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
