//! The messages of a request, with their paths for errors.

use adjutant_core::Message;
use serde::Deserialize;
use utoipa::ToSchema;

/// The messages of a request, and those before them.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// The messages that the client sent.
    pub(super) list: Vec<ChatMessage>,
    /// Path of each message in the request, such as `messages[0]`.
    pub(super) places: Vec<String>,
    /// Earlier messages from the journal, which the client did not send again.
    pub(super) earlier: Vec<Message>,
    /// Name of the request's member with the messages.
    pub(super) member: &'static str,
}

impl Messages {
    /// Collects the messages of a request to `/v1/chat/completions`.
    pub(super) fn from_chat(list: Vec<ChatMessage>) -> Self {
        let places = (0..list.len())
            .map(|at| format!("messages[{at}]"))
            .collect();
        Self {
            list,
            places,
            earlier: Vec::new(),
            member: "messages",
        }
    }

    /// Adds a message whose path in the request is `place`.
    pub(super) fn push(&mut self, place: String, message: ChatMessage) {
        self.places.push(place);
        self.list.push(message);
    }

    /// Returns the path of a message, for errors.
    pub(super) fn place(&self, at: usize) -> &str {
        self.places.get(at).map_or(self.member, String::as_str)
    }

    /// Returns the path of a message's content, for errors. An input that is a string has no
    /// members.
    pub(super) fn content(&self, at: usize) -> String {
        match self.place(at) {
            whole if whole == self.member => whole.to_owned(),
            place => format!("{place}.content"),
        }
    }
}

/// Role of a message's author.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    /// The application. Instructions of the client application.
    System,
    /// Instructions of the client application, in newer clients.
    Developer,
    /// A message of the user.
    User,
    /// A message of the agent.
    Assistant,
    /// Result of a tool that the client executed.
    Tool,
    /// Result of a function that the client executed, in older clients.
    Function,
}

impl Role {
    /// Returns true for instructions of the client application.
    pub(super) fn is_instruction(self) -> bool {
        matches!(self, Self::System | Self::Developer)
    }
}

/// A message of a conversation.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(super) struct ChatMessage {
    /// Role of the author.
    pub(super) role: Role,
    /// Text or parts of the message.
    pub(super) content: Option<MessageContent>,
    /// For the role `function`: name of the function.
    pub(super) name: Option<String>,
    /// Tool calls of an assistant's message.
    pub(super) tool_calls: Option<Vec<CallMade>>,
    /// Function call of an assistant's message, in older clients.
    pub(super) function_call: Option<FunctionCalled>,
    /// For the role `tool`: id of the call.
    pub(super) tool_call_id: Option<String>,
}

/// Content of a message: a string or a list of parts.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(untagged)]
pub(super) enum MessageContent {
    /// The text.
    Text(String),
    /// The parts, of which only texts are used.
    Parts(Vec<ContentPart>),
}

/// A part of a message's content.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(super) struct ContentPart {
    /// `text` or `refusal`; other types are refused in the last message and ignored in earlier
    /// ones.
    #[serde(rename = "type")]
    kind: String,
    /// The text, for the type `text`.
    text: Option<String>,
    /// The text, for the type `refusal`.
    refusal: Option<String>,
}

impl ContentPart {
    /// Returns the text; `None` for other types.
    fn text(&self) -> Option<&str> {
        match self.kind.as_str() {
            // The names of both APIs: clients send answers back as they received them.
            "text" | "input_text" | "output_text" => Some(self.text.as_deref().unwrap_or_default()),
            "refusal" => Some(self.refusal.as_deref().unwrap_or_default()),
            _ => None,
        }
    }
}

/// A tool call in an assistant's message.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(super) struct CallMade {
    /// Id, which the result names.
    pub(super) id: Option<String>,
    /// Function that was called.
    pub(super) function: Option<FunctionCalled>,
}

/// Name and arguments of a called function.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(super) struct FunctionCalled {
    /// Name of the function.
    pub(super) name: String,
    /// Arguments as JSON text.
    pub(super) arguments: Option<String>,
}

impl ChatMessage {
    /// Creates a message with only a role and content.
    pub(super) fn new(role: Role, content: MessageContent) -> Self {
        Self {
            role,
            content: Some(content),
            name: None,
            tool_calls: None,
            function_call: None,
            tool_call_id: None,
        }
    }

    /// Creates an assistant's message with tool calls and no text.
    pub(super) fn from_calls(calls: Vec<CallMade>) -> Self {
        let empty = MessageContent::Text(String::new());
        Self {
            tool_calls: Some(calls),
            ..Self::new(Role::Assistant, empty)
        }
    }

    /// Creates the message with the result of a call.
    pub(super) fn from_result(call: String, result: MessageContent) -> Self {
        Self {
            tool_call_id: Some(call),
            ..Self::new(Role::Tool, result)
        }
    }

    /// Returns the text of all parts, joined by newlines.
    pub(super) fn text(&self) -> String {
        match &self.content {
            None => String::new(),
            Some(MessageContent::Text(text)) => text.clone(),
            Some(MessageContent::Parts(parts)) => parts
                .iter()
                .filter_map(ContentPart::text)
                .collect::<Vec<_>>()
                .join("\n"),
        }
    }

    /// Returns index and type of the first part that is not text.
    pub(super) fn first_non_text(&self) -> Option<(usize, &str)> {
        let Some(MessageContent::Parts(parts)) = &self.content else {
            return None;
        };
        let index = parts.iter().position(|part| part.text().is_none())?;
        Some((index, parts.get(index)?.kind.as_str()))
    }
}
