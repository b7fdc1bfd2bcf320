//! What is said: messages of ordered parts, as the seeds' rules allow them.

mod json;

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::id::{CallId, ModelId};
use crate::tool::{ToolCall, ToolResult};

/// Who says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The instruction.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A tool's answer to a call of the model. Read from `function` too.
    #[serde(alias = "function")]
    Tool,
}

/// Opaque state of a provider that belongs to one part: a thought signature, an encrypted reasoning
/// item, a call id.
///
/// Sent back verbatim to the model it came from, dropped and reported for another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderState {
    /// The model that produced it.
    pub origin: ModelId,
    /// The vendor's own JSON, untouched.
    pub data: Value,
}

/// Marks, in the state of a refusal, that a provider explains it.
const EXPLANATION: &str = "explanation";

/// One piece of a message, with the provider state that rides on exactly this piece.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// What it is.
    #[serde(flatten)]
    pub content: Content,
    /// What the provider wants back with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ProviderState>,
}

/// The content of a [`Part`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Content {
    /// Words for the other side.
    Text {
        /// The words.
        text: String,
    },
    /// The model's thinking. Never shown as an answer. Empty text with state is redacted thinking.
    Thinking {
        /// What the provider lets us see of it.
        text: String,
    },
    /// The model declined in the provider's own form.
    Refusal {
        /// Its words.
        text: String,
    },
    /// A picture from the person.
    Image {
        /// Where its bytes are.
        source: ImageSource,
    },
    /// The model asks for a tool.
    ToolCall(ToolCall),
    /// What a tool answered.
    ToolResult {
        /// The call it answers.
        call_id: CallId,
        /// The tool's name, as called.
        name: String,
        /// The answer.
        result: ToolResult,
    },
    /// A trace of a tool the provider ran itself. We keep it, send it back, and never read it.
    Opaque {
        /// The vendor's name of the item.
        kind: String,
    },
}

/// Where the bytes of an image are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageSource {
    /// In the message.
    Base64 {
        /// Such as `image/png`.
        media_type: String,
        /// Base64 of the bytes.
        data: String,
    },
    /// At an address the provider fetches.
    Url(String),
}

impl Part {
    /// A part without provider state: something a person, a tool or we said. Adapters use
    /// [`Part::from_provider`].
    #[must_use]
    pub fn ours(content: Content) -> Self {
        Self {
            content,
            state: None,
        }
    }

    /// A part a provider sent. `state` is asked for on purpose: an adapter has to say that there
    /// was none.
    #[must_use]
    pub fn from_provider(content: Content, state: Option<ProviderState>) -> Self {
        Self { content, state }
    }

    /// Makes a part of what a provider says about an answer it refused. The model said nothing of
    /// it: people are told and it is logged, but it never goes back as the assistant's words.
    #[must_use]
    pub fn explanation(text: String, origin: ModelId) -> Self {
        let data = Value::Object(
            [(EXPLANATION.to_owned(), Value::Bool(true))]
                .into_iter()
                .collect(),
        );
        Self {
            content: Content::Refusal { text },
            state: Some(ProviderState { origin, data }),
        }
    }

    /// Whether it was made by [`Part::explanation`].
    #[must_use]
    pub fn is_explanation(&self) -> bool {
        matches!(self.content, Content::Refusal { .. })
            && self
                .state
                .as_ref()
                .is_some_and(|state| state.data.get(EXPLANATION) == Some(&Value::Bool(true)))
    }
}

/// One message. A value that exists keeps the rules of its role. A clone shares the parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "json::RawMessage")]
pub struct Message {
    role: Role,
    #[serde(serialize_with = "shared")]
    parts: Arc<Parts>,
}

/// The pieces of a message: never changed, so that copies of a message share them.
struct Parts {
    list: Vec<Part>,
    /// The JSON texts of [`Message::json_text`], by part; empty until one is asked for.
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

/// Why parts cannot be a message of that role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidMessage {
    /// User and system messages need something said.
    #[error("a {role:?} message needs content")]
    NoContent {
        /// The message's role.
        role: Role,
    },
    /// An assistant message needs text, thinking, a refusal or a call.
    #[error("an assistant message needs text or a tool call")]
    EmptyAssistant,
    /// A tool message answers exactly one call, with its id and tool name.
    #[error("a tool message needs exactly one result, with its call id and tool name")]
    NotOneResult,
    /// A part that this role cannot have.
    #[error("a {role:?} message cannot hold {part}")]
    WrongPart {
        /// The message's role.
        role: Role,
        /// The part's kind.
        part: &'static str,
    },
}

impl Message {
    /// Checks the rules of the role.
    ///
    /// # Errors
    /// [`InvalidMessage`], named after the rule: user and system need text (or an image), an
    /// assistant needs text or a call, only an assistant calls tools, a tool message is one result.
    pub fn new(role: Role, parts: Vec<Part>) -> Result<Self, InvalidMessage> {
        for part in &parts {
            let allowed = match (&part.content, role) {
                (Content::Text { .. }, Role::System | Role::User | Role::Assistant)
                | (
                    Content::Thinking { .. }
                    | Content::Refusal { .. }
                    | Content::ToolCall(_)
                    | Content::Opaque { .. },
                    Role::Assistant,
                )
                | (Content::Image { .. }, Role::User)
                | (Content::ToolResult { .. }, Role::Tool) => true,
                (
                    Content::Text { .. }
                    | Content::Thinking { .. }
                    | Content::Refusal { .. }
                    | Content::ToolCall(_)
                    | Content::Opaque { .. }
                    | Content::Image { .. }
                    | Content::ToolResult { .. },
                    _,
                ) => false,
            };
            if !allowed {
                return Err(InvalidMessage::WrongPart {
                    role,
                    part: part.content.kind(),
                });
            }
        }
        let said = parts.iter().any(|part| match &part.content {
            Content::Text { text } => !text.trim().is_empty(),
            Content::Image { .. } => true,
            Content::Thinking { .. }
            | Content::Refusal { .. }
            | Content::ToolCall(_)
            | Content::ToolResult { .. }
            | Content::Opaque { .. } => false,
        });
        match role {
            Role::System | Role::User if !said => Err(InvalidMessage::NoContent { role }),
            Role::Assistant if parts.is_empty() => Err(InvalidMessage::EmptyAssistant),
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

    /// The instruction.
    ///
    /// # Errors
    /// [`InvalidMessage::NoContent`] if `text` is blank.
    pub fn system(text: impl Into<String>) -> Result<Self, InvalidMessage> {
        Self::new(
            Role::System,
            vec![Part::ours(Content::Text { text: text.into() })],
        )
    }

    /// What the person says.
    ///
    /// # Errors
    /// [`InvalidMessage::NoContent`] if `text` is blank.
    pub fn user(text: impl Into<String>) -> Result<Self, InvalidMessage> {
        Self::new(
            Role::User,
            vec![Part::ours(Content::Text { text: text.into() })],
        )
    }

    /// What the model says.
    ///
    /// # Errors
    /// [`InvalidMessage::EmptyAssistant`] if there are no parts, [`InvalidMessage::WrongPart`] for
    /// a result.
    pub fn assistant(parts: Vec<Part>) -> Result<Self, InvalidMessage> {
        Self::new(Role::Assistant, parts)
    }

    /// A tool's answer to one call.
    ///
    /// # Errors
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

    /// Who says it.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// The pieces, in order.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts.list
    }

    /// Returns what requests hold of a call or of a result, by its place among the parts: the
    /// arguments as JSON text, or what the model reads of the result ([`ToolResult::to_text`]). It
    /// is made once for a message and its clones. Empty for any other part.
    #[must_use]
    pub fn json_text(&self, at: usize) -> &str {
        let list = &self.parts.list;
        let Some(part) = list.get(at) else { return "" };
        if let Content::ToolResult { result, .. } = &part.content
            && let Some(words) = result.words()
        {
            return words;
        }
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

    /// All text parts, joined as they stand. Thinking and refusals are not text.
    #[must_use]
    pub fn text(&self) -> String {
        text_of(self.parts())
    }

    /// The calls in it, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        calls_of(self.parts())
    }

    /// The result in it, if it is a tool message.
    #[must_use]
    pub fn tool_result(&self) -> Option<(&CallId, &str, &ToolResult)> {
        self.parts().iter().find_map(|part| match &part.content {
            Content::ToolResult {
                call_id,
                name,
                result,
            } => Some((call_id, name.as_str(), result)),
            Content::Text { .. }
            | Content::Thinking { .. }
            | Content::Refusal { .. }
            | Content::Image { .. }
            | Content::ToolCall(_)
            | Content::Opaque { .. } => None,
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

/// All text parts, joined as they stand.
pub(crate) fn text_of(parts: &[Part]) -> String {
    parts
        .iter()
        .filter_map(|part| {
            if let Content::Text { text } = &part.content {
                Some(text.as_str())
            } else {
                None
            }
        })
        .collect()
}

/// The calls among parts, in order.
pub(crate) fn calls_of(parts: &[Part]) -> impl Iterator<Item = &ToolCall> {
    parts.iter().filter_map(|part| {
        if let Content::ToolCall(call) = &part.content {
            Some(call)
        } else {
            None
        }
    })
}

/// A transcript that no provider takes, such as one with a call that has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the transcript is broken at message {at}: {reason}")]
pub struct InvalidTranscript {
    /// Index of the message.
    pub at: usize,
    /// What is wrong there.
    pub reason: String,
}

/// Checks a history that comes from elsewhere, before a model is sent it: it begins with the
/// person's words, every message of the assistant says or calls something, none is an instruction,
/// and [`check_pairing`] holds.
///
/// # Errors
/// [`InvalidTranscript`] at the first message of which that does not hold.
pub fn check_history(messages: &[Message]) -> Result<(), InvalidTranscript> {
    for (at, message) in messages.iter().enumerate() {
        let invalid = |reason: &str| {
            Err(InvalidTranscript {
                at,
                reason: reason.to_owned(),
            })
        };
        match message.role() {
            Role::System => {
                return invalid("instructions are the agent's, and no part of a history");
            }
            Role::Assistant if at == 0 => {
                return invalid("a history begins with words of the person");
            }
            Role::Assistant => {
                let is_blank = |part: &Part| match &part.content {
                    Content::Text { text } | Content::Thinking { text } => {
                        text.trim().is_empty() && part.state.is_none()
                    }
                    _ => false,
                };
                if message.parts().iter().all(is_blank) {
                    return invalid("the assistant neither says nor calls anything");
                }
            }
            Role::User | Role::Tool => {}
        }
    }
    check_pairing(messages)
}

/// Checks that every call of a transcript has exactly one result, right behind it, and every result
/// its call.
///
/// # Errors
/// [`InvalidTranscript`] at the first place where that does not hold.
pub fn check_pairing(messages: &[Message]) -> Result<(), InvalidTranscript> {
    let mut open: Vec<&CallId> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if let Some((call_id, _, _)) = message.tool_result() {
            match open.iter().position(|id| *id == call_id) {
                Some(position) => drop(open.remove(position)),
                None => {
                    return Err(InvalidTranscript {
                        at,
                        reason: format!("result for {call_id} without an open call"),
                    });
                }
            }
            continue;
        }
        if let Some(id) = open.first() {
            return Err(InvalidTranscript {
                at,
                reason: format!("call {id} has no result"),
            });
        }
        for call in message.tool_calls() {
            if open.contains(&&call.id) {
                return Err(InvalidTranscript {
                    at,
                    reason: format!("call {} appears twice", call.id),
                });
            }
            open.push(&call.id);
        }
    }
    match open.first() {
        Some(id) => Err(InvalidTranscript {
            at: messages.len(),
            reason: format!("call {id} has no result"),
        }),
        None => Ok(()),
    }
}
