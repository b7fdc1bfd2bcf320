//! Configuration of an MCP server: its address, and rules for its tools.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use adjutant_core::{ToolContext, fingerprint};
use secrecy::SecretString;
use serde_json::json;

use super::Backoff;

/// Default time without a sign of life after which a server that is being started is not waited
/// for.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Default limit for the bytes of a result. The model's context window is not considered here.
pub(super) const RESULT_BYTES_MAX: usize = 1024 * 1024;

/// A server's configured name: 1 to 32 letters, digits, `_` and `-`. It is the first half of its
/// tools' names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(String);

/// The error for a text that cannot be a server's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} cannot be the name of an MCP server: 1 to 32 letters, digits, _ and -")]
pub struct InvalidServerName(pub String);

impl ServerName {
    /// Checks and wraps a name.
    ///
    /// # Errors
    /// [`InvalidServerName`] if it is empty, too long, or has other characters.
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

    /// Returns the name as text.
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

/// The configuration of one server, as a `[mcp.servers.NAME]` table has it.
///
/// # Examples
/// ```
/// use adjutant_mcp::client::{Remote, ServerConfig, ServerName, Transport};
///
/// let name = ServerName::new("github")?;
/// let remote = Remote {
///     url: "https://mcp.example.com".to_owned(),
///     bearer: None,
///     headers: Default::default(),
/// };
/// let mut config = ServerConfig::new(name, Transport::Remote(remote));
/// config.rules.confirm = vec!["create_issue".to_owned()];
/// config.required = true;
/// # Ok::<(), adjutant_mcp::client::InvalidServerName>(())
/// ```
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The server's name, and the first half of its tools' names.
    pub name: ServerName,
    /// The transport: a child process, or HTTP.
    pub via: Transport,
    /// The tools to register, and overrides for the server's annotations.
    pub rules: ToolRules,
    /// Timeout of one call, counted from its last report of progress. `None`: the turn's
    /// `tool_timeout`.
    pub timeout: Option<Duration>,
    /// Timeout of one call with all its progress. `None`: ten times the other.
    pub timeout_max: Option<Duration>,
    /// Time without a sign of life after which the start is not waited for: no answer, no output
    /// and, on Linux, no use of the processor. Default 30 s. The server goes on starting for up to
    /// ten times as long, and it is told what came of it.
    pub start_timeout: Duration,
    /// Most bytes of a result; a longer one is cut, and says so. Default 1 MiB.
    pub result_bytes_max: usize,
    /// True if the agent must not start without this server. Default false: its tools are missing
    /// then, and the report says so.
    pub required: bool,
    /// True if the server is not started.
    pub disabled: bool,
    /// The policy for reconnecting after the connection was lost.
    pub backoff: Backoff,
    /// The reason for which the server cannot even be started, such as a variable that is not set.
    /// It is reported as failed then.
    pub unusable: Option<String>,
}

impl ServerConfig {
    /// Creates a configuration with the defaults.
    #[must_use]
    pub fn new(name: ServerName, via: Transport) -> Self {
        Self {
            name,
            via,
            rules: ToolRules::default(),
            timeout: None,
            timeout_max: None,
            start_timeout: START_TIMEOUT,
            result_bytes_max: RESULT_BYTES_MAX,
            required: false,
            disabled: false,
            backoff: Backoff::default(),
            unusable: None,
        }
    }

    /// Returns the SHA-256, in hexadecimal, of program and arguments or of the URL. Accepted tools
    /// are valid for this place only: elsewhere it is another server.
    #[must_use]
    pub fn place(&self) -> String {
        fingerprint(&match &self.via {
            Transport::Child(child) => json!([child.program, child.arguments]),
            Transport::Remote(remote) => json!(remote.url),
        })
    }
}

/// The transport to a server.
#[derive(Debug, Clone)]
pub enum Transport {
    /// A child process, over its standard input and output.
    Child(Child),
    /// A remote server over HTTP ("streamable HTTP").
    Remote(Remote),
}

impl Transport {
    /// Returns the program, or the URL without user, password and query.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Child(child) => child.program.display().to_string(),
            Self::Remote(remote) => match reqwest::Url::parse(&remote.url) {
                Ok(mut url) => {
                    // Both fail only for a URL that can have neither, such as `data:`.
                    let _ = url.set_username("");
                    let _ = url.set_password(None);
                    url.set_query(None);
                    url.set_fragment(None);
                    url.to_string()
                }
                Err(_) => "not an address".to_owned(),
            },
        }
    }
}

/// A server that runs as a child process.
#[derive(Debug, Clone)]
pub struct Child {
    /// The program: a path, or a name that is looked up in its `PATH`.
    pub program: PathBuf,
    /// Command-line arguments, without the program itself.
    pub arguments: Vec<String>,
    /// The complete environment. No variable is inherited, because those of this process may
    /// contain other services' keys.
    pub variables: BTreeMap<String, SecretString>,
    /// Working directory. `None`: that of this process.
    pub directory: Option<PathBuf>,
}

/// A server that is reached over HTTP.
#[derive(Debug, Clone)]
pub struct Remote {
    /// URL of the endpoint, `http` or `https`.
    pub url: String,
    /// The token for `Authorization: Bearer …`.
    pub bearer: Option<SecretString>,
    /// Further headers of every request.
    pub headers: BTreeMap<String, SecretString>,
}

/// Rules for a server's tools. Names are the server's own; `*` in one stands for any characters
/// ([`matches_name`]).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolRules {
    /// Tools to register. `None`: all.
    pub allow: Option<Vec<String>>,
    /// Tools not to register, even if `allow` has them.
    pub deny: Vec<String>,
    /// Tools that need confirmation, besides destructive ones.
    pub confirm: Vec<String>,
    /// Tools that change nothing, whatever the server's annotations say.
    pub read_only: Vec<String>,
    /// Tools that are destructive and never repeated, whatever the server's annotations say. Takes
    /// precedence over `read_only`.
    pub destructive: Vec<String>,
    /// Tools for which a repeated call has no further effect.
    pub idempotent: Vec<String>,
    /// Arguments that are hidden from the model and filled in here.
    pub inject: BTreeMap<Injected, String>,
}

/// A value that can be injected into an argument, because it is known without the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Injected {
    /// The authenticated user for whom the tool is called.
    UserId,
    /// The conversation in which the tool is called.
    ConversationId,
    /// A key that is the same for every repeat of a call. A tool that takes one absorbs repeats.
    IdempotencyKey,
}

impl Injected {
    /// All values that can be injected.
    pub const ALL: [Self; 3] = [Self::UserId, Self::ConversationId, Self::IdempotencyKey];

    /// Returns the name in a configuration.
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

/// Returns true if a name or a pattern in `names` matches `name`.
pub(super) fn is_listed(names: &[String], name: &str) -> bool {
    names.iter().any(|pattern| matches_name(pattern, name))
}

/// Returns true if a name of a rule matches the name of a tool: `*` stands for any characters.
///
/// # Examples
/// ```
/// use adjutant_mcp::client::matches_name;
///
/// assert!(matches_name("get_*", "get_task"));
/// assert!(!matches_name("get_*", "forget_task"));
/// ```
#[must_use]
pub fn matches_name(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(start) else {
        return false;
    };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        match name.find(part) {
            Some(at) => name = &name[at + part.len()..],
            None => return false,
        }
    }
    name.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name, is_match) in [
            ("*", "anything", true),
            ("get", "get", true),
            ("get", "get_x", false),
            ("get_*", "get_", true),
            ("*_list", "task_list", true),
            ("*_list", "task_lists", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "acb", false),
            ("one*neon", "oneon", false),
            ("**", "", true),
        ] {
            assert_eq!(matches_name(pattern, name), is_match, "{pattern} {name}");
        }
    }
}
