//! `[serve]`: how the service is reached, by whom, and how often.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use adjutant_core::ModelId;
use adjutant_core::limits::MESSAGES_QUEUED_MAX;
use adjutant_service::{BackgroundPrompts, ConnectionLimits, MetricsAccess, UserLimits};
use secrecy::SecretString;

use super::access::{self, Access};
use super::key::{Key, Kind, Value, key};
use super::{DATABASE, Values};
use crate::logging::LogFormat;

/// How clients say who they are, as `serve.auth` and `--auth` say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Authentication {
    /// By a token; on this machine's own address, one is made for you
    Token,
    /// By a JSON Web Token that somebody else issues (serve.jwt_…)
    Jwt,
    /// People sign in at an OpenID provider (serve.oidc_…); programs have tokens
    Oidc,
    /// By a proxy in front, which knows them (serve.proxy_…)
    Proxy,
    /// Not at all: everybody on this machine is you
    None,
}

/// The source of the titles of conversations: `serve.titles`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Titles {
    /// The model, unless it is the one in this process, whose seconds are the person's, or a
    /// script.
    Auto,
    /// The model, whichever it is.
    Model,
    /// Nobody: they are the first words that were said.
    Words,
}

impl Titles {
    /// Returns whether this model finds them.
    pub(crate) fn by_model(self, model: &ModelId) -> bool {
        match self {
            Self::Auto => !matches!(model.provider.as_str(), "embedded" | "scripted"),
            Self::Model => true,
            Self::Words => false,
        }
    }
}

/// The section.
#[derive(Debug, Clone)]
pub(crate) struct Serve {
    pub(crate) bind: SocketAddr,
    pub(crate) auth: Authentication,
    pub(crate) hosts: Vec<String>,
    /// Says who answers the requests that chat interfaces make on their own.
    pub(crate) background_prompts: BackgroundPrompts,
    /// Origins of pages that may ask.
    pub(crate) origins: Vec<String>,
    pub(crate) access: Access,
    pub(crate) jwt: Jwt,
    pub(crate) proxy_header: Option<String>,
    pub(crate) proxy_peers: Vec<String>,
    pub(crate) limits: UserLimits,
    /// Messages that may wait in one conversation, whoever accepts them.
    pub(crate) messages_queued: NonZeroU32,
    pub(crate) connections: ConnectionLimits,
    pub(crate) metrics: MetricsAccess,
    pub(crate) metrics_bind: Option<SocketAddr>,
    pub(crate) titles: Titles,
    /// True if `/v1/admin` shows what was said in turns of others. Default: false.
    pub(crate) operator_sees_words: bool,
    /// Time between SIGTERM and the end of taking requests.
    pub(crate) drain_delay: Duration,
    /// The address of a Restate server that has conversations go on.
    pub(crate) dispatch: Option<String>,
    /// The filter of the log, such as `info,adjutant_store=debug`. `None`: `info` without the
    /// requests, or as `-v` and `-q` say.
    pub(crate) log: Option<String>,
    pub(crate) log_format: LogFormat,
    /// True if models and MCP servers get the trace of a request handed on. Default: true.
    pub(crate) trace_propagation: bool,
    /// True if MCP clients can ask the agent itself, as a tool. Default: true.
    pub(crate) mcp_ask: bool,
}

/// `serve.jwt_…`: what signed tokens have to be.
#[derive(Debug, Clone)]
pub(crate) struct Jwt {
    pub(crate) secret: Option<SecretString>,
    pub(crate) jwks_url: Option<String>,
    pub(crate) jwks_file: Option<PathBuf>,
    pub(crate) issuer: Option<String>,
    pub(crate) audience: Vec<String>,
}

const WORDS: [(&str, Authentication); 5] = [
    ("token", Authentication::Token),
    ("jwt", Authentication::Jwt),
    ("oidc", Authentication::Oidc),
    ("proxy", Authentication::Proxy),
    ("none", Authentication::None),
];

const READERS: [(&str, MetricsAccess); 3] = [
    ("operator", MetricsAccess::Operator),
    ("users", MetricsAccess::Users),
    ("off", MetricsAccess::Off),
];

/// How long a client may be waited for.
const PATIENCE: Kind = Kind::Duration {
    min: Duration::from_secs(1),
    max: Duration::from_secs(3_600),
};

/// A balancer that asks every two seconds whether the service is ready, and believes the third no,
/// has noticed by then.
const DRAIN_DELAY: Duration = Duration::from_secs(10);

/// The settings of the section. None of them may stand in a project's file: they say who may ask.
pub(super) fn keys() -> Vec<Key> {
    let mut keys = vec![
        Key {
            default: |_| Some(Value::Text("127.0.0.1:8080".to_owned())),
            ..key("serve.bind", Kind::Address)
        },
        Key {
            default: |_| Some(Value::Text("token".to_owned())),
            ..key(
                "serve.auth",
                Kind::Word(&["token", "jwt", "oidc", "proxy", "none"]),
            )
        },
        Key {
            unset: "localhost and addresses of numbers",
            ..key("serve.hosts", Kind::List)
        },
        Key {
            unset: "its own alone",
            ..key("serve.origins", Kind::List)
        },
        Key {
            default: |_| Some(Value::Text("plain".to_owned())),
            ..key("serve.background_prompts", Kind::Word(&["plain", "agent"]))
        },
        Key {
            quiet: true,
            ..key("serve.jwt_secret", Kind::Secret)
        },
        Key {
            quiet: true,
            ..key("serve.jwt_jwks_url", Kind::Text)
        },
        Key {
            quiet: true,
            ..key("serve.jwt_jwks_file", Kind::Path)
        },
        Key {
            quiet: true,
            unset: "any",
            ..key("serve.jwt_issuer", Kind::Text)
        },
        Key {
            quiet: true,
            unset: "any",
            ..key("serve.jwt_audience", Kind::List)
        },
        Key {
            quiet: true,
            ..key("serve.proxy_header", Kind::Text)
        },
        Key {
            quiet: true,
            ..key("serve.proxy_peers", Kind::List)
        },
        Key {
            default: |_| Some(number(UserLimits::default().requests_per_minute)),
            ..key(
                "serve.requests_per_minute",
                Kind::Integer {
                    min: 1,
                    max: 1_000_000,
                },
            )
        },
        Key {
            default: |_| Some(number(UserLimits::default().turns_at_once)),
            ..key(
                "serve.turns_at_once",
                Kind::Integer {
                    min: 1,
                    max: 10_000,
                },
            )
        },
        Key {
            default: |_| Some(number(UserLimits::default().turns_in_all)),
            ..key(
                "serve.turns_in_all",
                Kind::Integer {
                    min: 1,
                    max: 1_000_000,
                },
            )
        },
        Key {
            default: |_| Some(number(MESSAGES_QUEUED_MAX)),
            ..key(
                "serve.messages_queued",
                Kind::Integer {
                    min: 1,
                    max: 1_000_000,
                },
            )
        },
        Key {
            default: |_| Some(number(ConnectionLimits::default().connections)),
            ..key(
                "serve.connections",
                Kind::Integer {
                    min: 1,
                    max: 1_000_000,
                },
            )
        },
        Key {
            default: |_| Some(number(ConnectionLimits::default().per_address)),
            ..key(
                "serve.connections_per_address",
                Kind::Integer {
                    min: 1,
                    max: 1_000_000,
                },
            )
        },
        Key {
            default: |_| Some(Value::Duration(ConnectionLimits::default().header_timeout)),
            ..key("serve.header_timeout", PATIENCE)
        },
        Key {
            default: |_| Some(Value::Duration(ConnectionLimits::default().body_silence)),
            ..key("serve.body_silence", PATIENCE)
        },
        Key {
            default: |_| Some(Value::Duration(ConnectionLimits::default().body_timeout)),
            ..key("serve.body_timeout", PATIENCE)
        },
        Key {
            default: |_| Some(Value::Duration(ConnectionLimits::default().idle_timeout)),
            ..key("serve.idle_timeout", PATIENCE)
        },
        Key {
            default: |_| Some(Value::Text("operator".to_owned())),
            ..key("serve.metrics", Kind::Word(&["operator", "users", "off"]))
        },
        Key {
            default: |_| Some(Value::Text("auto".to_owned())),
            ..key("serve.titles", Kind::Word(&["auto", "model", "words"]))
        },
        Key {
            unset: "/metrics beside the rest",
            ..key("serve.metrics_bind", Kind::Address)
        },
        Key {
            default: |_| Some(Value::Truth(false)),
            ..key("serve.operator_sees_words", Kind::Truth)
        },
        Key {
            default: |_| Some(Value::Duration(DRAIN_DELAY)),
            ..key(
                "serve.drain_delay",
                Kind::Duration {
                    min: Duration::ZERO,
                    max: Duration::from_secs(3_600),
                },
            )
        },
        Key {
            unset: "this process and its replicas",
            ..key("serve.dispatch", Kind::Text)
        },
        Key {
            variable: Some("ADJUTANT_LOG"),
            unset: "info, without the requests",
            ..key("serve.log", Kind::Text)
        },
        Key {
            default: |_| Some(Value::Text("text".to_owned())),
            ..key("serve.log_format", Kind::Word(&["text", "json"]))
        },
        Key {
            default: |_| Some(Value::Truth(true)),
            ..key("serve.trace_propagation", Kind::Truth)
        },
        Key {
            default: |_| Some(Value::Truth(true)),
            ..key("serve.mcp_ask", Kind::Truth)
        },
        Key {
            variable: Some("DATABASE_URL"),
            unset: "the file of store.path",
            ..key(DATABASE, Kind::Database)
        },
    ];
    keys.extend(access::keys());
    keys
}

fn number(number: NonZeroU32) -> Value {
    Value::Integer(number.get().into())
}

/// What the section says.
pub(super) fn serve(values: &Values) -> Serve {
    let usual = UserLimits::default();
    let door = ConnectionLimits::default();
    let time = |name: &str, usual: Duration| values.time(name).unwrap_or(usual);
    let readers = values.text("serve.metrics").unwrap_or_default();
    let readers = READERS
        .iter()
        .find(|(known, _)| *known == readers)
        .map(|(_, readers)| *readers);
    let address = |name: &str| values.text(name).and_then(|bind| bind.parse().ok());
    let bound = |name: &str| values.integer(name).and_then(NonZeroU32::new);
    let word = values.text("serve.auth").unwrap_or_default();
    let auth = WORDS
        .iter()
        .find(|(known, _)| *known == word)
        .map(|(_, auth)| *auth);
    Serve {
        bind: address("serve.bind").unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8080))),
        auth: auth.unwrap_or(Authentication::Token),
        hosts: values.list("serve.hosts"),
        origins: values.list("serve.origins"),
        background_prompts: match values.text("serve.background_prompts").as_deref() {
            Some("agent") => BackgroundPrompts::Agent,
            _ => BackgroundPrompts::Plain,
        },
        access: access::access(values),
        jwt: Jwt {
            secret: values.secret("serve.jwt_secret"),
            jwks_url: values.text("serve.jwt_jwks_url"),
            jwks_file: values.path("serve.jwt_jwks_file"),
            issuer: values.text("serve.jwt_issuer"),
            audience: values.list("serve.jwt_audience"),
        },
        proxy_header: values.text("serve.proxy_header"),
        proxy_peers: values.list("serve.proxy_peers"),
        limits: UserLimits {
            requests_per_minute: bound("serve.requests_per_minute")
                .unwrap_or(usual.requests_per_minute),
            turns_at_once: bound("serve.turns_at_once").unwrap_or(usual.turns_at_once),
            turns_in_all: bound("serve.turns_in_all").unwrap_or(usual.turns_in_all),
        },
        messages_queued: bound("serve.messages_queued").unwrap_or(MESSAGES_QUEUED_MAX),
        connections: ConnectionLimits {
            connections: bound("serve.connections").unwrap_or(door.connections),
            per_address: bound("serve.connections_per_address").unwrap_or(door.per_address),
            header_timeout: time("serve.header_timeout", door.header_timeout),
            body_silence: time("serve.body_silence", door.body_silence),
            body_timeout: time("serve.body_timeout", door.body_timeout),
            idle_timeout: time("serve.idle_timeout", door.idle_timeout),
        },
        metrics: readers.unwrap_or(MetricsAccess::Operator),
        metrics_bind: address("serve.metrics_bind"),
        titles: match values.text("serve.titles").as_deref() {
            Some("model") => Titles::Model,
            Some("words") => Titles::Words,
            _ => Titles::Auto,
        },
        operator_sees_words: values.truth("serve.operator_sees_words"),
        drain_delay: time("serve.drain_delay", DRAIN_DELAY),
        dispatch: values.text("serve.dispatch"),
        log: values.text("serve.log"),
        log_format: match values.text("serve.log_format").as_deref() {
            Some("json") => LogFormat::Json,
            Some(_) | None => LogFormat::Text,
        },
        trace_propagation: values.truth("serve.trace_propagation"),
        mcp_ask: values.truth("serve.mcp_ask"),
    }
}
