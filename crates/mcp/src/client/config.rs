//! What is known about a server before it is asked: where it is, and what it may.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use adjutant_core::{ToolContext, fingerprint};
use secrecy::SecretString;
use serde_json::json;

use super::Backoff;

/// How long a server may take to start, shake hands and list its tools, if nothing else is said.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of one result that are kept, if nothing else is said. What of it fits the model's window
/// is not decided here.
pub(super) const RESULT_BYTES_MAX: usize = 1024 * 1024;

/// What a person calls a server: 1 to 32 letters, digits, `_` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(String);

/// Text that cannot be a server's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} cannot be the name of an MCP server: 1 to 32 letters, digits, _ and -")]
pub struct InvalidServerName(pub String);

impl ServerName {
    /// # Errors
    /// [`InvalidServerName`].
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidServerName> {
        let name = name.into();
        let fits = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        if fits && (1..=32).contains(&name.len()) {
            Ok(Self(name))
        } else {
            Err(InvalidServerName(name))
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One server: where it is, and what its tools may.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// What it is called; the first half of its tools' names.
    pub name: ServerName,
    /// How it is reached.
    pub via: Via,
    /// Which of its tools join, and what is believed about them.
    pub rules: ToolRules,
    /// Bound of one call. `None`: the turn's `tool_timeout`.
    pub timeout: Option<Duration>,
    /// Bound of starting it, the handshake and the first list of tools together. Default 10 s.
    pub start_timeout: Duration,
    /// Bytes of one result that are handed on; what is over is cut, and the cut is told. Default 1
    /// MiB.
    pub result_bytes_max: usize,
    /// Whether nothing starts without it. Default: its tools are missing, and that is told.
    pub required: bool,
    /// Whether it is left alone.
    pub disabled: bool,
    /// How it is brought back when it is lost.
    pub backoff: Backoff,
    /// Why it cannot even be tried, such as a variable that is not set. It counts as one that
    /// failed to start.
    pub unusable: Option<String>,
}

impl ServerConfig {
    /// A server with every default.
    #[must_use]
    pub fn new(name: ServerName, via: Via) -> Self {
        Self {
            name,
            via,
            rules: ToolRules::default(),
            timeout: None,
            start_timeout: START_TIMEOUT,
            result_bytes_max: RESULT_BYTES_MAX,
            required: false,
            disabled: false,
            backoff: Backoff::default(),
            unusable: None,
        }
    }

    /// Returns the SHA-256, in hex, of its program and arguments, or of its address: at another
    /// place it is another server.
    #[must_use]
    pub fn place(&self) -> String {
        fingerprint(&match &self.via {
            Via::Child(child) => json!([child.program, child.arguments]),
            Via::Remote(remote) => json!(remote.url),
        })
    }
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum Via {
    /// It is started here, and spoken to over its standard input and output.
    Child(Child),
    /// It runs elsewhere, and is spoken to over HTTP ("streamable HTTP").
    Remote(Remote),
}

/// A server that is started here.
#[derive(Debug, Clone)]
pub struct Child {
    /// The program: a path, or a name that is looked for in its `PATH`.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// All variables it gets. Nothing is inherited beside them: keys of others are none of its
    /// business.
    pub variables: BTreeMap<String, SecretString>,
    /// Where it starts. `None`: where this process is.
    pub directory: Option<PathBuf>,
}

/// A server that runs elsewhere.
#[derive(Debug, Clone)]
pub struct Remote {
    /// Its address, `http` or `https`.
    pub url: String,
    /// What stands in `Authorization: Bearer …`.
    pub bearer: Option<SecretString>,
    /// Further headers of every request.
    pub headers: BTreeMap<String, SecretString>,
}

/// Which tools of a server join, and what is believed about them. Names are the server's own; `*`
/// is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolRules {
    /// Only these join. `None`: all.
    pub allow: Option<Vec<String>>,
    /// These do not, whatever `allow` says.
    pub deny: Vec<String>,
    /// A person confirms these, besides those that destroy something.
    pub confirm: Vec<String>,
    /// These change nothing, whatever the server says or leaves out.
    pub read_only: Vec<String>,
    /// These destroy something and are not repeated, whatever the server says. Wins over
    /// `read_only`.
    pub destructive: Vec<String>,
    /// For these, twice is the same as once.
    pub idempotent: Vec<String>,
    /// Arguments that are taken away from the model and filled in here.
    pub inject: BTreeMap<Injected, String>,
}

/// What can be filled into an argument, because it is known without the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Injected {
    /// The authenticated user.
    UserId,
    /// The conversation.
    ConversationId,
    /// The same for every repeat of a call. A tool that takes one absorbs repeats.
    IdempotencyKey,
}

impl Injected {
    /// Every one of them.
    pub const ALL: [Self; 3] = [Self::UserId, Self::ConversationId, Self::IdempotencyKey];

    /// Its name in a configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::UserId => "user_id",
            Self::ConversationId => "conversation_id",
            Self::IdempotencyKey => "idempotency_key",
        }
    }

    pub(super) fn value(self, context: &ToolContext) -> String {
        match self {
            Self::UserId => context.user.to_string(),
            Self::ConversationId => context.conversation.to_string(),
            Self::IdempotencyKey => context.key.to_string(),
        }
    }
}

/// Whether `names` holds `name`, or `*`.
pub(super) fn listed(names: &[String], name: &str) -> bool {
    names.iter().any(|listed| listed == "*" || listed == name)
}
