//! Names of things: who, where, which.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A string that must not be empty was empty (or only white space).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} must not be empty")]
pub struct Empty {
    /// What was empty, as a person would call it.
    pub what: &'static str,
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes the text as it is.
            ///
            /// # Errors
            /// [`Empty`] if nothing but white space is in it.
            pub fn new(text: impl Into<String>) -> Result<Self, Empty> {
                let text = text.into();
                if text.trim().is_empty() { Err(Empty { what: $what }) } else { Ok(Self(text.into())) }
            }

            /// The text.
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
    /// Whoever a turn runs for. Comes from authentication, never from a model.
    UserId, "a user id"
);
text_id!(
    /// One tool call, unique in its conversation. Minted by the turn machine, never by a provider.
    CallId, "a call id"
);
text_id!(
    /// What an outside system is given so that a repeated call has one effect: conversation, turn
    /// and call, never the arguments.
    IdempotencyKey, "an idempotency key"
);
text_id!(
    /// The name of a vendor's adapter, such as `gemini` or `embedded`. Core has no list of them.
    ProviderId, "a provider name"
);
text_id!(
    /// The name of an agent: part of the key of each of its conversations, so that another agent on
    /// the same store leaves them alone. Changing it gives up the conversations; what people read
    /// is the display name.
    AgentName, "an agent name"
);
text_id!(
    /// One accepted message, answer or cancellation. The same id twice is one input.
    InputId, "an input id"
);

impl CallId {
    /// The id of the `index`th call of a response, before the turn machine mints the final one.
    #[must_use]
    pub(crate) fn provisional(index: usize) -> Self {
        Self(format!("provisional_{index}").into())
    }

    /// The `number`th call of a turn.
    #[must_use]
    pub(crate) fn minted(turn: TurnId, number: u32) -> Self {
        // The tail of a version 7 UUID is its random part; 40 characters is the strictest wire's
        // limit.
        let hex = turn.0.simple().to_string();
        Self(format!("call_{}_{number}", hex.get(16..).unwrap_or(&hex)).into())
    }
}

impl From<uuid::Uuid> for InputId {
    /// Names an input by a UUID, for whoever has no name of their own for it.
    fn from(id: uuid::Uuid) -> Self {
        Self(id.to_string().into())
    }
}

impl IdempotencyKey {
    /// The key of one call: conversation, turn and call, never the arguments.
    #[must_use]
    pub fn of(conversation: ConversationId, turn: TurnId, call: &CallId) -> Self {
        Self(format!("{conversation}/{turn}/{call}").into())
    }
}

impl UserId {
    /// The one user of a machine without authentication: `local`.
    #[must_use]
    pub fn local() -> Self {
        Self("local".into())
    }
}

impl AgentName {
    /// Returns `adjutant`: the agent of the product, and of conversations from before names were
    /// recorded.
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
    /// One conversation: an ordered sequence of turns of one user.
    ConversationId
);
uuid_id!(
    /// One turn: from an accepted message to its outcome. Also the id of its decision in the log.
    TurnId
);

impl ConversationId {
    /// Returns the id of a single request, made from these bytes but for the bits of the version.
    #[must_use]
    pub fn of_request(bytes: [u8; 16]) -> Self {
        Self(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }

    /// Whether it is a single request of a client that keeps the conversation itself: a UUID of
    /// version 8. Lists of conversations leave it out; its decision is in the log like any other.
    #[must_use]
    pub fn is_of_a_request(self) -> bool {
        self.0.get_version_num() == 8
    }
}

/// A conversation together with its agent and its owner. Every store looks things up by all three,
/// so that an id never opens a conversation of another user or of another agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationKey {
    /// The agent it is held with.
    pub agent: AgentName,
    /// The owner.
    pub user: UserId,
    /// The conversation.
    pub conversation: ConversationId,
}

/// Hashes the conversation's id, which is different for nearly every key.
impl Hash for ConversationKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.conversation.hash(state);
    }
}

/// Which model of which provider.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ModelId {
    /// The adapter's name.
    pub provider: ProviderId,
    /// The vendor's name of the model, passed on as it is.
    pub name: String,
}

impl ModelId {
    /// Returns the id that stands where no model is asked: `none/none`.
    #[must_use]
    pub fn none() -> Self {
        Self {
            provider: ProviderId("none".into()),
            name: "none".to_owned(),
        }
    }

    /// # Errors
    /// [`Empty`] if either name is.
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
/// Identifies an open store in this process. One transaction can write to all that has the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreId(usize);

impl StoreId {
    /// Returns the id of a store that is this value, which must not move as long as the id is used.
    #[must_use]
    pub fn of<T>(store: &T) -> Self {
        Self(std::ptr::from_ref(store).addr())
    }
}
