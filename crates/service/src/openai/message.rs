//! The messages of a request, as this API's clients write them, and the places that errors name.

use adjutant_core::Message;
use serde::Deserialize;
use utoipa::ToSchema;

/// The messages of a request.
#[derive(Debug, Default)]
pub(super) struct Messages {
    pub(super) list: Vec<ChatMessage>,
    /// The place of each in what the client sent, such as `messages[0]`.
    pub(super) places: Vec<String>,
    /// Messages before them that the journal has. The client did not send them again.
    pub(super) earlier: Vec<Message>,
    /// The member of the request that holds them.
    pub(super) member: &'static str,
}

impl Messages {
    /// Returns the messages of a request to `/v1/chat/completions`.
    pub(super) fn of_chat(list: Vec<ChatMessage>) -> Self {
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

    /// Adds a message that stands at `place` in the request.
    pub(super) fn push(&mut self, place: String, message: ChatMessage) {
        self.places.push(place);
        self.list.push(message);
    }

    /// Returns the place of a message, for errors.
    pub(super) fn place(&self, at: usize) -> &str {
        self.places.get(at).map_or(self.member, String::as_str)
    }

    /// Returns the place of what a message says, for errors. A whole input that is a string is its
    /// own content.
    pub(super) fn content(&self, at: usize) -> String {
        match self.place(at) {
            whole if whole == self.member => whole.to_owned(),
            place => format!("{place}.content"),
        }
    }
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    /// The application.
    System,
    /// The application, in newer clients.
    Developer,
    /// The person.
    User,
    /// The agent.
    Assistant,
    /// A tool that ran elsewhere.
    Tool,
    /// The same, in older clients.
    Function,
}

impl Role {
    /// Returns whether the application speaks, and not one of those who talk.
    pub(super) fn is_instruction(self) -> bool {
        matches!(self, Self::System | Self::Developer)
    }
}

/// One message.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(super) struct ChatMessage {
    /// Its author.
    pub(super) role: Role,
    /// Its words.
    #[serde(default)]
    pub(super) content: Option<MessageContent>,
    /// Of a `function` message: which.
    #[serde(default)]
    pub(super) name: Option<String>,
    /// Calls the agent is said to have made.
    #[serde(default)]
    pub(super) tool_calls: Option<Vec<CallMade>>,
    /// The same in older clients.
    #[serde(default)]
    pub(super) function_call: Option<FunctionCalled>,
    /// Of a `tool` message: which call it answers.
    #[serde(default)]
    pub(super) tool_call_id: Option<String>,
}

/// The content of a message: words, or pieces.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(untagged)]
pub(super) enum MessageContent {
    Words(String),
    Pieces(Vec<Piece>),
}

/// A piece of what is said.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(super) struct Piece {
    /// `text` and `refusal` are read; of others there is none this agent takes.
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

impl Piece {
    /// `None`: it holds no words.
    fn words(&self) -> Option<&str> {
        match self.kind.as_str() {
            "text" | "input_text" | "output_text" => Some(self.text.as_deref().unwrap_or_default()),
            "refusal" => Some(self.refusal.as_deref().unwrap_or_default()),
            _ => None,
        }
    }
}

/// A call the agent is said to have made.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(super) struct CallMade {
    /// The id that its result names.
    #[serde(default)]
    pub(super) id: Option<String>,
    /// The function that was called.
    #[serde(default)]
    pub(super) function: Option<FunctionCalled>,
}

/// The function of a call.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(super) struct FunctionCalled {
    /// The tool.
    pub(super) name: String,
    /// JSON as text.
    #[serde(default)]
    pub(super) arguments: Option<String>,
}

impl ChatMessage {
    /// Returns a message that says something and is nothing else.
    pub(super) fn saying(role: Role, content: MessageContent) -> Self {
        Self {
            role,
            content: Some(content),
            name: None,
            tool_calls: None,
            function_call: None,
            tool_call_id: None,
        }
    }

    /// Returns a message of the agent's that makes calls and says nothing.
    pub(super) fn calling(calls: Vec<CallMade>) -> Self {
        let silent = MessageContent::Words(String::new());
        Self {
            tool_calls: Some(calls),
            ..Self::saying(Role::Assistant, silent)
        }
    }

    /// Returns the result of a call.
    pub(super) fn answering(call: String, result: MessageContent) -> Self {
        Self {
            tool_call_id: Some(call),
            ..Self::saying(Role::Tool, result)
        }
    }

    /// All its words.
    pub(super) fn text(&self) -> String {
        match &self.content {
            None => String::new(),
            Some(MessageContent::Words(words)) => words.clone(),
            Some(MessageContent::Pieces(pieces)) => pieces
                .iter()
                .filter_map(Piece::words)
                .collect::<Vec<_>>()
                .join("\n"),
        }
    }

    /// The first piece that is no words: its place and kind.
    pub(super) fn not_words(&self) -> Option<(usize, &str)> {
        let Some(MessageContent::Pieces(pieces)) = &self.content else {
            return None;
        };
        let place = pieces.iter().position(|piece| piece.words().is_none())?;
        Some((place, pieces.get(place)?.kind.as_str()))
    }
}
