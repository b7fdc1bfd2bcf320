//! Command-line arguments of `adjutant serve`, `mcp`, `token` and `turns`.

use std::net::SocketAddr;
use std::time::Duration;

use adjutant_core::port::{NoSuchRole, NoSuchScope, Role, TokenScope};
use clap::{Args, Subcommand};

use crate::config::{Authentication, FOREVER, parse_duration};
use crate::logging::LogFormat;

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The address to listen on; port 0 takes a free one [default: serve.bind, 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) bind: Option<SocketAddr>,
    /// Authentication of clients [default: serve.auth, token]
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) auth: Option<Authentication>,
    /// A host name it answers to, beside those of serve.hosts; may be given again
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,
    /// Open the page in the browser
    #[arg(long, conflicts_with = "no_ui")]
    pub(crate) open: bool,
    /// Without the page: the interfaces for programs only
    #[arg(long)]
    pub(crate) no_ui: bool,
    /// Let a Restate server drive conversations instead of this process: a Restate server, over TLS
    /// with restates://. Options behind `?`: admin=, token_file=, listen=, advertise= and key=
    /// (docs/restate.md) [default: serve.dispatch]
    #[arg(long, value_name = "restate://HOST:PORT")]
    pub(crate) dispatch: Option<String>,
    /// Time it still answers after SIGTERM, so that a load balancer notices; such as 30s [default:
    /// serve.drain_delay, 10s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) drain_delay: Option<Duration>,
    /// The format of the log on standard error [default: serve.log_format, text]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
}

/// Time until a token expires; `None` for a token without expiry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Holds(pub(crate) Option<Duration>);

fn holds(text: &str) -> Result<Holds, String> {
    if text == FOREVER {
        return Ok(Holds(None));
    }
    match parse_duration(text) {
        Ok(time) if !time.is_zero() => Ok(Holds(Some(time))),
        _ => Err(format!(
            "a time with its unit is needed, such as 90d, or {FOREVER}"
        )),
    }
}

fn role(text: &str) -> Result<Role, String> {
    text.parse().map_err(|error: NoSuchRole| error.to_string())
}

fn scope(text: &str) -> Result<TokenScope, String> {
    text.parse().map_err(|error: NoSuchScope| error.to_string())
}

#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Make one, and show it this once
    Create {
        /// The user it signs in; it opens this user's tasks and conversations, and no others
        #[arg(long, value_name = "USER")]
        user: String,
        /// A name for it
        #[arg(long, value_name = "NAME", default_value = "")]
        name: String,
        /// Time until it expires, such as 90d, or `forever` [default: serve.token_expiry, forever]
        #[arg(long, value_name = "TIME", value_parser = holds)]
        expires: Option<Holds>,
        /// The rights it gives: user, operator (also the administration of the service) or metrics
        /// (/metrics and nothing else)
        #[arg(long, value_name = "ROLE", default_value = "user", value_parser = role)]
        grant: Role,
        /// Uses that it permits: read, write (send messages, change tasks and settings) or answer
        /// (answer the agent's questions for the person; needs write). Several are named one by one
        /// [default: all three]
        #[arg(long = "scope", value_name = "SCOPE", value_parser = scope)]
        scopes: Vec<TokenScope>,
    },
    /// List tokens and the browsers that are signed in, without their secrets: what they open, when
    /// they expire, when they were used last
    List,
    /// Revoke a token and what was made with it, or all tokens and sessions of a user
    Revoke {
        /// Its id, or enough of its beginning or end to be unique
        #[arg(required_unless_present = "user")]
        id: Option<String>,
        /// Revoke everything that opens the service for this user
        #[arg(long, value_name = "USER", conflicts_with = "id")]
        user: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Turns {
    /// Those that wait for a person, and those that were interrupted: when they began, and with
    /// which model
    List,
    /// The steps of one, without what was said
    Show {
        /// Its id, or enough of its beginning or end to be unique
        id: String,
    },
    /// End one: what has not begun is not done; asks first, or needs -y
    Drop {
        /// Its id, or enough of its beginning or end to be unique
        id: String,
    },
}
