//! Reads a message from JSON: in our own form, and in the forms in which the specification of this
//! project and OpenAI's API write it. We write one form only, with `parts`.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Content, InvalidMessage, Message, Part, Role};
use crate::id::CallId;
use crate::tool::{Arguments, ToolCall, ToolResult};

/// Reads the messages of a stored turn, without blank ones of the assistant, which earlier versions
/// stored after a filtered answer.
pub(crate) fn stored_messages<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Message>, D::Error> {
    let stored = Vec::<RawMessage>::deserialize(deserializer)?;
    let valid = stored.into_iter().map(Message::try_from);
    valid
        .filter(|message| !matches!(message, Err(InvalidMessage::EmptyAssistant)))
        .collect::<Result<_, _>>()
        .map_err(D::Error::custom)
}

/// A message in any of the forms.
#[derive(Deserialize)]
pub(crate) struct RawMessage {
    role: Role,
    parts: Option<Vec<Part>>,
    content: Option<String>,
    #[serde(default, alias = "toolCalls")]
    tool_calls: Vec<RawCall>,
    #[serde(alias = "toolCallId")]
    tool_call_id: Option<CallId>,
    name: Option<String>,
    function_call: Option<RawFunction>,
    function_response: Option<RawResponse>,
}

/// `{"id": "call_1", "type": "function", "function": {"name": "...", "arguments": "{...}"}}`.
#[derive(Deserialize)]
struct RawCall {
    id: CallId,
    function: RawFunction,
}

#[derive(Deserialize)]
struct RawFunction {
    name: String,
    arguments: RawArguments,
}

/// Arguments as an object, or as the text of one.
#[derive(Deserialize)]
// OpenAI writes the arguments as text, others as an object.
#[serde(untagged)]
enum RawArguments {
    Object(Arguments),
    Text(String),
}

/// `{"name": "...", "response": {...}}`.
#[derive(Deserialize)]
struct RawResponse {
    name: String,
    response: Value,
}

impl RawFunction {
    fn with_id(self, id: CallId) -> Content {
        let call = match self.arguments {
            RawArguments::Object(arguments) => ToolCall::from_object(0, None, self.name, arguments),
            RawArguments::Text(text) => ToolCall::from_json_text(0, None, self.name, &text),
        };
        Content::ToolCall(ToolCall { id, ..call })
    }
}

impl TryFrom<RawMessage> for Message {
    type Error = InvalidMessage;

    /// A call and its result that have no id are paired by the tool's name.
    fn try_from(raw: RawMessage) -> Result<Self, InvalidMessage> {
        let RawMessage {
            role,
            parts,
            content,
            tool_calls,
            tool_call_id,
            name,
            function_call,
            function_response,
        } = raw;
        // Our own form has everything else in its parts.
        if let Some(parts) = parts {
            return Self::new(role, parts);
        }
        if role == Role::Tool {
            let (name, id, response) = match function_response {
                Some(RawResponse { name, response }) => (Some(name), None, response),
                None => {
                    let text = content.unwrap_or_default();
                    (
                        name,
                        tool_call_id,
                        serde_json::from_str(&text).unwrap_or(Value::String(text)),
                    )
                }
            };
            let name = name.ok_or(InvalidMessage::NotOneResult)?;
            let id = match id {
                Some(id) => id,
                // The only cause is a blank name.
                None => CallId::new(name.clone()).map_err(|_| InvalidMessage::NotOneResult)?,
            };
            return Self::tool(id, name, result(response));
        }
        let text = content
            .filter(|text| !text.is_empty())
            .map(|text| Content::Text { text });
        let named = |function: RawFunction| {
            CallId::new(function.name.clone())
                .map(|id| function.with_id(id))
                // The only cause is a blank name.
                .map_err(|_| InvalidMessage::EmptyAssistant)
        };
        let called = function_call.map(named).transpose()?;
        let calls = tool_calls
            .into_iter()
            .map(|call| call.function.with_id(call.id));
        Self::new(
            role,
            text.into_iter()
                .chain(called)
                .chain(calls)
                .map(Part::ours)
                .collect(),
        )
    }
}

/// A result as we write it (`success`, `data`, `error`), or anything else as the data of a success.
fn result(response: Value) -> ToolResult {
    let is_ours = response.get("success").is_some_and(Value::is_boolean)
        && ["data", "error"]
            .iter()
            .any(|field| response.get(field).is_some());
    match is_ours.then(|| serde_json::from_value(response.clone())) {
        Some(Ok(result)) => result,
        Some(Err(_)) | None => ToolResult::ok(response),
    }
}
