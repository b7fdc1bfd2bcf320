//! Messages: a role and ordered parts. A message that exists keeps the rules of its role.

pub(crate) mod json;

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::id::{CallId, ModelId};
use crate::tool::{ToolCall, ToolResult};

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The instruction that the agent was built with.
    System,
    /// The person who talks to the agent.
    User,
    /// The model that answers the person.
    Assistant,
    /// A tool's result for a call. Also read from the older name `function`.
    #[serde(alias = "function")]
    Tool,
}

/// Opaque state of a provider that belongs to one part: a thought signature, an encrypted reasoning
/// item, a call id.
///
/// Sent back verbatim to the model it came from; dropped, with a notice, for any other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderState {
    /// Model that produced the state.
    pub origin: ModelId,
    /// The provider's own JSON, unchanged.
    pub data: Value,
}

/// Marks, in the state of a refusal, that the text is the provider's explanation.
const EXPLANATION: &str = "explanation";

/// One piece of a message, with the provider state that belongs to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Text, call, result or other content.
    #[serde(flatten)]
    pub content: Content,
    /// State to send back to the provider with this part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ProviderState>,
}

/// The content of a [`Part`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Content {
    /// Text for the person or the model.
    Text {
        /// The text, never empty in a valid message.
        text: String,
    },
    /// The model's reasoning. Never shown as an answer. Empty text with state is redacted
    /// reasoning.
    Thinking {
        /// Reasoning as far as the provider discloses it.
        text: String,
    },
    /// The model declined, in the provider's form for that.
    Refusal {
        /// The refusal as the provider sent it.
        text: String,
    },
    /// An image that the person sent.
    Image {
        /// Location of the image's bytes.
        source: ImageSource,
    },
    /// A call of a tool by the model.
    ToolCall(ToolCall),
    /// The outcome of a call, as the model reads it.
    ToolResult {
        /// Id of the call that the result belongs to.
        call_id: CallId,
        /// Name of the tool, as called.
        name: String,
        /// Success with data, or an error.
        result: ToolResult,
    },
    /// An item of a tool that the provider ran itself. Stored and sent back, never interpreted.
    Opaque {
        /// The provider's name for the item.
        kind: String,
    },
}

/// The location of the bytes of an image in a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageSource {
    /// The bytes are in the message itself.
    Base64 {
        /// Media type of the image, such as `image/png`.
        media_type: String,
        /// The bytes of the image, encoded in Base64.
        data: String,
    },
    /// An address from which the provider fetches the image.
    Url(String),
}

impl Part {
    /// Creates a part without provider state, for content from a person, a tool or this program.
    /// Adapters use [`Part::from_provider`].
    #[must_use]
    pub fn ours(content: Content) -> Self {
        Self {
            content,
            state: None,
        }
    }

    /// Creates a part of a provider's response. `state` is a parameter so that an adapter has to
    /// state that there is none.
    #[must_use]
    pub fn from_provider(content: Content, state: Option<ProviderState>) -> Self {
        Self { content, state }
    }

    /// Creates a part for a provider's explanation of a refused response. It is shown and logged,
    /// and never sent back as the assistant's text.
    #[must_use]
    pub fn explanation(text: String, origin: ModelId) -> Self {
        let data = serde_json::json!({ EXPLANATION: true });
        Self {
            content: Content::Refusal { text },
            state: Some(ProviderState { origin, data }),
        }
    }

    /// Returns true if the part was made by [`Part::explanation`].
    #[must_use]
    pub fn is_explanation(&self) -> bool {
        matches!(self.content, Content::Refusal { .. })
            && self
                .state
                .as_ref()
                .is_some_and(|state| state.data.get(EXPLANATION) == Some(&Value::Bool(true)))
    }
}

/// A message that is valid for its role. Clones share the parts.
///
/// # Examples
///
/// ```
/// use adjutant_core::{Content, Message, Part, Role};
///
/// let question = Message::user("Is it raining?")?;
/// let answer = Message::assistant(vec![Part::ours(Content::Text { text: "No.".to_owned() })])?;
/// assert_eq!(question.role(), Role::User);
/// assert_eq!(answer.text(), "No.");
/// assert!(Message::user("  ").is_err());
/// # Ok::<(), adjutant_core::InvalidMessage>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
// Through `Message::new`, so that a message from JSON keeps the rules, too.
#[serde(try_from = "json::RawMessage")]
pub struct Message {
    role: Role,
    #[serde(serialize_with = "shared")]
    parts: Arc<Parts>,
}

/// The parts of a message, shared by its clones because they never change.
struct Parts {
    list: Vec<Part>,
    /// Cached results of [`Message::json_text`] by part; empty until the first is needed.
    texts: OnceLock<Box<[OnceLock<Box<str>>]>>,
}

impl PartialEq for Parts {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.list.fmt(f)
    }
}

impl Serialize for Parts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.list.serialize(serializer)
    }
}

fn shared<S: Serializer>(parts: &Arc<Parts>, serializer: S) -> Result<S::Ok, S::Error> {
    parts.as_ref().serialize(serializer)
}

/// The reason why parts are not a valid message of a role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidMessage {
    /// A user or system message has no text and no image.
    #[error("a {role:?} message needs content")]
    NoContent {
        /// Role that the parts are not valid for.
        role: Role,
    },
    /// An assistant message has no text, reasoning, refusal or call, or only blank ones.
    #[error("an assistant message needs text or a tool call")]
    EmptyAssistant,
    /// A tool message is not exactly one result with a call id and a tool name.
    #[error("a tool message needs exactly one result, with its call id and tool name")]
    NotOneResult,
    /// A part that messages of this role cannot have.
    #[error("a {role:?} message cannot hold {part}")]
    WrongPart {
        /// Role that the parts are not valid for.
        role: Role,
        /// Kind of the part that is not allowed.
        part: &'static str,
    },
}

impl Message {
    /// Creates a message if its parts keep the rules of the role.
    ///
    /// # Errors
    ///
    /// [`InvalidMessage`], named after the rule: user and system messages need text or an image, an
    /// assistant message needs content or a call, only assistants call tools, and a tool message is
    /// one result.
    pub fn new(role: Role, parts: Vec<Part>) -> Result<Self, InvalidMessage> {
        for part in &parts {
            let allowed = matches!(
                (&part.content, role),
                (
                    Content::Text { .. },
                    Role::System | Role::User | Role::Assistant
                ) | (
                    Content::Thinking { .. }
                        | Content::Refusal { .. }
                        | Content::ToolCall(_)
                        | Content::Opaque { .. },
                    Role::Assistant,
                ) | (Content::Image { .. }, Role::User)
                    | (Content::ToolResult { .. }, Role::Tool)
            );
            if !allowed {
                return Err(InvalidMessage::WrongPart {
                    role,
                    part: part.content.kind(),
                });
            }
        }
        let has_content = parts.iter().any(|part| match &part.content {
            Content::Text { text } => !text.trim().is_empty(),
            content => matches!(content, Content::Image { .. }),
        });
        match role {
            Role::System | Role::User if !has_content => Err(InvalidMessage::NoContent { role }),
            Role::Assistant if parts.iter().all(is_blank) => Err(InvalidMessage::EmptyAssistant),
            Role::Tool
                if parts.len() != 1
                    || parts.iter().any(
                        |part| matches!(&part.content, Content::ToolResult { name, .. } if name.trim().is_empty()),
                    ) =>
            {
                Err(InvalidMessage::NotOneResult)
            }
            Role::System | Role::User | Role::Assistant | Role::Tool => {
                Ok(Self { role, parts: Arc::new(Parts { list: parts, texts: OnceLock::new() }) })
            }
        }
    }

    /// Creates the instruction of a conversation.
    ///
    /// # Errors
    ///
    /// [`InvalidMessage::NoContent`] if `text` is blank.
    pub fn system(text: impl Into<String>) -> Result<Self, InvalidMessage> {
        Self::new(
            Role::System,
            vec![Part::ours(Content::Text { text: text.into() })],
        )
    }

    /// Creates a message of the person.
    ///
    /// # Errors
    ///
    /// [`InvalidMessage::NoContent`] if `text` is blank.
    pub fn user(text: impl Into<String>) -> Result<Self, InvalidMessage> {
        Self::new(
            Role::User,
            vec![Part::ours(Content::Text { text: text.into() })],
        )
    }

    /// Creates a message of the model.
    ///
    /// # Errors
    ///
    /// [`InvalidMessage::EmptyAssistant`] without parts or with blank ones only,
    /// [`InvalidMessage::WrongPart`] for a result.
    pub fn assistant(parts: Vec<Part>) -> Result<Self, InvalidMessage> {
        Self::new(Role::Assistant, parts)
    }

    /// Creates the message with the result of one call.
    ///
    /// # Errors
    ///
    /// [`InvalidMessage::NotOneResult`] if `name` is blank.
    pub fn tool(
        call_id: CallId,
        name: impl Into<String>,
        result: ToolResult,
    ) -> Result<Self, InvalidMessage> {
        Self::new(
            Role::Tool,
            vec![Part::ours(Content::ToolResult {
                call_id,
                name: name.into(),
                result,
            })],
        )
    }

    /// Returns the author of the message.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns the message's content in order.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts.list
    }

    /// Returns the JSON text of the part at index `at`, as requests contain it: the arguments of a
    /// call, or the result as the model reads it ([`ToolResult::to_text`]). Computed once for a
    /// message and its clones. Empty for other parts.
    #[must_use]
    pub fn json_text(&self, at: usize) -> &str {
        let list = &self.parts.list;
        let Some(part) = list.get(at) else { return "" };
        if let Content::ToolResult { result, .. } = &part.content
            && let Some(words) = result.words()
        {
            return words;
        }
        // Estimates of a request's size and its encoding both need these texts, in every request of
        // a turn. Most messages have none, so the list is made when one is asked for.
        let texts = self
            .parts
            .texts
            .get_or_init(|| list.iter().map(|_| OnceLock::new()).collect());
        let make = || match &part.content {
            Content::ToolCall(call) => serde_json::to_string(&call.arguments).unwrap_or_default(),
            Content::ToolResult { result, .. } => result.to_text(),
            _ => String::new(),
        };
        texts
            .get(at)
            .map_or("", |text| text.get_or_init(|| make().into()))
    }

    /// Returns all text parts, concatenated. Reasoning and refusals are not text.
    #[must_use]
    pub fn text(&self) -> String {
        text_of(self.parts())
    }

    /// Returns the calls that the message contains, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        calls_of(self.parts())
    }

    /// Returns the call id, tool name and result of a tool message.
    #[must_use]
    pub fn tool_result(&self) -> Option<(&CallId, &str, &ToolResult)> {
        self.parts().iter().find_map(|part| match &part.content {
            Content::ToolResult {
                call_id,
                name,
                result,
            } => Some((call_id, name.as_str(), result)),
            _ => None,
        })
    }
}

impl Content {
    fn kind(&self) -> &'static str {
        match self {
            Self::Text { .. } => "text",
            Self::Thinking { .. } => "thinking",
            Self::Refusal { .. } => "a refusal",
            Self::Image { .. } => "an image",
            Self::ToolCall(_) => "a tool call",
            Self::ToolResult { .. } => "a tool result",
            Self::Opaque { .. } => "a provider's trace",
        }
    }
}

/// Returns true for text and reasoning without content. Blank text with provider state is not
/// blank: the provider wants its state back.
fn is_blank(part: &Part) -> bool {
    match &part.content {
        Content::Text { text } | Content::Thinking { text } => {
            text.trim().is_empty() && part.state.is_none()
        }
        _ => false,
    }
}

/// Concatenates all text parts.
pub(crate) fn text_of(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match &part.content {
        Content::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// Returns the tool calls among parts in order.
pub(crate) fn calls_of(parts: &[Part]) -> impl Iterator<Item = &ToolCall> {
    parts.iter().filter_map(|part| match &part.content {
        Content::ToolCall(call) => Some(call),
        _ => None,
    })
}

/// The error for a transcript that no provider accepts, such as one with a call without a result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the transcript is broken at message {at}: {reason}")]
pub struct InvalidTranscript {
    /// Index of the invalid message in the transcript.
    pub at: usize,
    /// Description of the violated rule.
    pub reason: String,
}

/// Checks a history from elsewhere before it is sent to a model: it begins with a message of the
/// person, no message is an instruction, and [`check_pairing`] holds.
///
/// # Errors
///
/// [`InvalidTranscript`] at the first message that breaks a rule.
pub fn check_history(messages: &[Message]) -> Result<(), InvalidTranscript> {
    for (at, message) in messages.iter().enumerate() {
        match message.role() {
            Role::System => {
                return invalid(at, "instructions are the agent's, and no part of a history");
            }
            Role::Assistant if at == 0 => {
                return invalid(at, "a history begins with words of the person");
            }
            Role::Assistant | Role::User | Role::Tool => {}
        }
    }
    check_pairing(messages)
}

/// Checks that every call is directly followed by exactly one result, and every result belongs to a
/// call.
///
/// # Errors
///
/// [`InvalidTranscript`] at the first violation.
pub fn check_pairing(messages: &[Message]) -> Result<(), InvalidTranscript> {
    let mut open: Vec<&CallId> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if let Some((call_id, _, _)) = message.tool_result() {
            match open.iter().position(|id| *id == call_id) {
                Some(position) => drop(open.remove(position)),
                None => return invalid(at, format!("result for {call_id} without an open call")),
            }
            continue;
        }
        if let Some(id) = open.first() {
            return invalid(at, format!("call {id} has no result"));
        }
        // Results name their call by its id alone.
        for call in message.tool_calls() {
            if open.contains(&&call.id) {
                return invalid(at, format!("call {} appears twice", call.id));
            }
            open.push(&call.id);
        }
    }
    match open.first() {
        Some(id) => invalid(messages.len(), format!("call {id} has no result")),
        None => Ok(()),
    }
}

fn invalid(at: usize, reason: impl Into<String>) -> Result<(), InvalidTranscript> {
    let reason = reason.into();
    Err(InvalidTranscript { at, reason })
}
