//! Identifiers of users, agents, conversations, turns, calls, models and stores.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The error for an identifier without a visible character.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} must not be empty")]
pub struct Empty {
    /// Description of the identifier, such as "a user id".
    pub what: &'static str,
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        // Shared: ids are in every key, event and context, and a copy costs a counter.
        pub struct $name(Arc<str>);

        impl $name {
            /// Creates the identifier from a text, which is kept unchanged.
            ///
            /// # Errors
            ///
            /// [`Empty`] if the text is blank.
            pub fn new(text: impl Into<String>) -> Result<Self, Empty> {
                let text = text.into();
                if text.trim().is_empty() { Err(Empty { what: $what }) } else { Ok(Self(text.into())) }
            }

            /// Returns the identifier's text as given.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0.as_ref().to_owned()
            }
        }

        impl TryFrom<String> for $name {
            type Error = Empty;
            fn try_from(text: String) -> Result<Self, Empty> {
                Self::new(text)
            }
        }
    };
}

text_id!(
    /// The user that a turn runs for. Comes from authentication, never from a model.
    UserId, "a user id"
);
text_id!(
    /// A tool call, unique in its conversation. Assigned by the turn, never by a provider.
    CallId, "a call id"
);
text_id!(
    /// The key under which an external system executes a repeated call once: conversation, turn and
    /// call, never the arguments.
    IdempotencyKey, "an idempotency key"
);
text_id!(
    /// The name of a provider's adapter, such as `gemini` or `embedded`. This crate has no list of
    /// them.
    ProviderId, "a provider name"
);
text_id!(
    /// The name of an agent, part of the key of each of its conversations, so that another agent on
    /// the same store does not touch them. Renaming an agent gives up its conversations; the name
    /// that people see is the display name.
    AgentName, "an agent name"
);
text_id!(
    /// An accepted input. Submitting the same id twice is one input.
    InputId, "an input id"
);

impl CallId {
    /// Returns the id of a response's call at `index` before the turn assigns the final one.
    #[must_use]
    pub(crate) fn provisional(index: usize) -> Self {
        Self(format!("provisional_{index}").into())
    }

    /// Returns the id of a turn's call by its number.
    #[must_use]
    pub(crate) fn minted(turn: TurnId, number: u32) -> Self {
        // The tail of a version 7 UUID is its random part; 40 characters is the strictest wire's
        // limit.
        let hex = turn.0.simple().to_string();
        Self(format!("call_{}_{number}", hex.get(16..).unwrap_or(&hex)).into())
    }
}

impl From<uuid::Uuid> for InputId {
    /// Creates an input id from a UUID, for clients that have no id of their own.
    fn from(id: uuid::Uuid) -> Self {
        Self(id.to_string().into())
    }
}

impl IdempotencyKey {
    /// Returns the idempotency key of a call, made of conversation, turn and call, never the
    /// arguments.
    #[must_use]
    pub fn for_call(conversation: ConversationId, turn: TurnId, call: &CallId) -> Self {
        Self(format!("{conversation}/{turn}/{call}").into())
    }
}

impl UserId {
    /// Returns `local`, the only user of a machine without authentication.
    #[must_use]
    pub fn local() -> Self {
        Self("local".into())
    }
}

impl AgentName {
    /// Returns `adjutant`, the name of the product's agent and of conversations from before names
    /// were recorded.
    #[must_use]
    pub fn adjutant() -> Self {
        Self("adjutant".into())
    }
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub uuid::Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, uuid::Error> {
                text.parse().map(Self)
            }
        }
    };
}

uuid_id!(
    /// A conversation: an ordered sequence of turns of one user with one agent.
    ConversationId
);
uuid_id!(
    /// A turn, from an accepted input to its outcome. Also the id of its decision in the log.
    TurnId
);

impl ConversationId {
    /// Returns the id of a single request, a UUID of version 8 with these bytes.
    #[must_use]
    pub fn of_request(bytes: [u8; 16]) -> Self {
        Self(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }

    /// Returns true for the id of a single request of a client that keeps the conversation itself
    /// (a UUID of version 8). Lists of conversations leave it out; its decision is logged like any
    /// other.
    #[must_use]
    pub fn is_of_a_request(self) -> bool {
        // Version 8 is for ids of one's own making (RFC 9562); random and time-ordered ones have
        // others.
        self.0.get_version_num() == 8
    }
}

/// A conversation with its agent and owner. Stores look up by all three, so that an id never opens
/// a conversation of another user or agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationKey {
    /// Agent that the conversation belongs to.
    pub agent: AgentName,
    /// User who owns the conversation.
    pub user: UserId,
    /// Id of the conversation, a UUID.
    pub conversation: ConversationId,
}

/// Hashes the conversation's id, which is different for nearly every key.
impl Hash for ConversationKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.conversation.hash(state);
    }
}

/// A model of a provider.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ModelId {
    /// Name of the adapter, such as `openai`.
    pub provider: ProviderId,
    /// The provider's name of the model, sent unchanged.
    pub name: String,
}

impl ModelId {
    /// Returns `none/none`, the placeholder where no model is involved.
    #[must_use]
    pub fn none() -> Self {
        Self {
            provider: ProviderId("none".into()),
            name: "none".to_owned(),
        }
    }

    /// Creates the id of a model.
    ///
    /// # Errors
    ///
    /// [`Empty`] if one of the names is blank.
    pub fn new(provider: impl Into<String>, name: impl Into<String>) -> Result<Self, Empty> {
        let (provider, name) = (ProviderId::new(provider)?, name.into());
        if name.trim().is_empty() {
            Err(Empty {
                what: "a model name",
            })
        } else {
            Ok(Self { provider, name })
        }
    }
}

impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.name)
    }
}

/// Identifies an open store in this process. Ports with the same id can share a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreId(usize);

impl StoreId {
    /// Returns the id of a store that is this value, which must not move while the id is used.
    #[must_use]
    pub fn of<T>(store: &T) -> Self {
        // Two stores cannot be at one address at the same time, and nothing else is asked of it.
        Self(std::ptr::from_ref(store).addr())
    }
}
