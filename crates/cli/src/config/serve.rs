//! `[serve]`: the service's addresses, sign-in, roles, limits and logs.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use adjutant_core::ModelId;
use adjutant_core::limits::MESSAGES_QUEUED_MAX;
use adjutant_service::{
    AccessRules, BackgroundPrompts, ConnectionLimits, MetricsAccess, OidcConfig, RoleRules,
    UserLimits,
};
use secrecy::{ExposeSecret as _, SecretString};

use super::database::Database;
use super::section::settings;
use super::value::{FOREVER, Kind, SECOND, choices};
use crate::logging::LogFormat;

/// The way clients identify themselves: `serve.auth` and `--auth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Authentication {
    /// By a token; on this machine's own address, one is made for you
    Token,
    /// By a JSON Web Token of an issuer that you name (serve.jwt_…)
    Jwt,
    /// People sign in at an OpenID provider (serve.oidc_…); programs have tokens
    Oidc,
    /// By a proxy in front, which knows them (serve.proxy_…)
    Proxy,
    /// Not at all: every client on this machine is you
    None,
}

/// The source of the titles of conversations: `serve.titles`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Titles {
    /// The model, unless it is embedded, where a title takes seconds of the user's processor, or
    /// scripted.
    Auto,
    /// The model, whichever it is.
    Model,
    /// The beginning of the first message.
    Words,
}

impl Titles {
    /// Returns true if the model is asked for titles.
    pub(crate) fn by_model(self, model: &ModelId) -> bool {
        match self {
            Self::Auto => !matches!(model.provider.as_str(), "embedded" | "scripted"),
            Self::Model => true,
            Self::Words => false,
        }
    }
}

choices! {
    Authentication {
        "token" => Token, "jwt" => Jwt, "oidc" => Oidc, "proxy" => Proxy, "none" => None
    }
    BackgroundPrompts { "plain" => Plain, "agent" => Agent }
    LogFormat { "text" => Text, "json" => Json }
    MetricsAccess { "operator" => Operator, "users" => Users, "off" => Off }
    Titles { "auto" => Auto, "model" => Model, "words" => Words }
}

/// Range of the time that the service waits for a client.
const CLIENT_WAIT: std::ops::RangeInclusive<Duration> = SECOND..=Duration::from_secs(3_600);

/// Range of the time that sessions and tokens are valid.
const VALIDITY: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(60)..=Duration::from_secs(3_650 * 86_400);

// No setting here may stand in a project's file that is not trusted: they say who is let in.
settings! {
    /// `[serve]`.
    #[derive(Debug, Clone)]
    pub(crate) struct Serve {
        /// The address that the service listens on.
        #[setting("serve.bind", default = "127.0.0.1:8080")]
        pub(crate) bind: SocketAddr,
        /// The way clients identify themselves.
        #[setting("serve.auth", default = "token")]
        pub(crate) auth: Authentication,
        /// Host names that requests may be sent to.
        #[setting("serve.hosts", unset = "localhost and IP addresses")]
        pub(crate) hosts: Vec<String>,
        /// Origins of other web pages that may call the service.
        #[setting("serve.origins", unset = "only the service's own")]
        pub(crate) origins: Vec<String>,
        /// Name of the service, on its sign-in page and above the conversations.
        #[setting("serve.name", unset = "Adjutant")]
        pub(crate) name: Option<String>,
        /// The people who run the service: their mail address, a page of theirs, or a name. Its
        /// sign-in page says whom to ask.
        #[setting("serve.contact", unset = "nobody is named")]
        pub(crate) contact: Option<String>,
        /// The answerer of requests that chat interfaces send on their own, such as for a title:
        /// the plain model, or the agent.
        #[setting("serve.background_prompts", default = "plain")]
        pub(crate) background_prompts: BackgroundPrompts,
        #[setting(section)]
        pub(crate) jwt: Jwt,
        /// The header in which a proxy in front names the user.
        #[setting("serve.proxy_header", quiet)]
        pub(crate) proxy_header: Option<String>,
        /// Addresses of proxies whose header is believed.
        #[setting("serve.proxy_peers", quiet)]
        pub(crate) proxy_peers: Vec<String>,
        #[setting(section)]
        pub(crate) user_limits: UserLimits,
        /// Accepted messages that wait in one conversation, at most.
        #[setting("serve.messages_queued", default = MESSAGES_QUEUED_MAX)]
        pub(crate) messages_queued: NonZeroU32,
        #[setting(section)]
        pub(crate) connection_limits: ConnectionLimits,
        /// The readers of `/metrics`: operators, all users, or nobody.
        #[setting("serve.metrics", default = "operator")]
        pub(crate) metrics: MetricsAccess,
        /// The source of titles of conversations: the model, after the second message, or the beginning of the first message.
        #[setting("serve.titles", default = "auto")]
        pub(crate) titles: Titles,
        /// Another address for `/metrics`, for everybody who reaches it.
        #[setting("serve.metrics_bind", unset = "/metrics at serve.bind")]
        pub(crate) metrics_bind: Option<SocketAddr>,
        /// True if operators see messages and answers of other users' turns.
        #[setting("serve.operator_sees_words", default = false)]
        pub(crate) operator_sees_words: bool,
        /// Time after SIGTERM in which requests are still accepted.
        ///
        /// A load balancer that asks every two seconds whether the service is ready, and believes
        /// the third no, has noticed within the default.
        #[setting("serve.drain_delay", range = Duration::ZERO..=Duration::from_secs(3_600),
            default = 10 * SECOND)]
        pub(crate) drain_delay: Duration,
        /// The address of a Restate server that has conversations go on.
        #[setting("serve.dispatch", unset = "this process and its replicas")]
        pub(crate) dispatch: Option<String>,
        /// The filter of the log, such as `info,adjutant_store=debug`.
        #[setting("serve.log", variable = "ADJUTANT_LOG", unset = "info, without the requests")]
        pub(crate) log: Option<String>,
        /// The format of the log: text for people, JSON for programs.
        #[setting("serve.log_format", default = "text")]
        pub(crate) log_format: LogFormat,
        /// True if the trace of a request is sent on to models and MCP servers.
        #[setting("serve.trace_propagation", default = true)]
        pub(crate) trace_propagation: bool,
        /// True if MCP clients can ask the agent itself, as a tool.
        #[setting("serve.mcp_ask", default = true)]
        pub(crate) mcp_ask: bool,
        /// The database with all data, in the place of the file of `store.path`.
        #[setting("serve.database_url", variable = "DATABASE_URL",
            unset = "the file of store.path")]
        #[expect(dead_code, reason = "it is read into `Settings::database`")]
        pub(crate) database_url: Option<Database>,
        #[setting(section)]
        pub(crate) oidc: Oidc,
        #[setting(section)]
        pub(crate) roles: RoleRules,
        /// Time without use after which a browser's session ends.
        #[setting("serve.session_idle", range = VALIDITY,
            default = AccessRules::default().session_idle)]
        pub(crate) session_idle: Duration,
        /// Time after which a browser's session ends, however much it is used.
        #[setting("serve.session_max", range = VALIDITY,
            default = AccessRules::default().session_max)]
        pub(crate) session_max: Duration,
        /// Time until a token expires that `adjutant token` makes.
        #[setting("serve.token_expiry", kind = Kind::DurationOrForever, default = FOREVER)]
        pub(crate) token_expiry: Option<Duration>,
        /// Time until a token expires that a user makes, at most.
        #[setting("serve.token_max", range = VALIDITY, default = AccessRules::default().token_max)]
        pub(crate) token_max: Duration,
    }
}

settings! {
    /// `serve.jwt_…`: requirements of signed tokens.
    #[derive(Debug, Clone)]
    pub(crate) struct Jwt {
        /// The secret that tokens are signed with (HS256).
        #[setting("serve.jwt_secret", quiet)]
        pub(crate) secret: Option<SecretString>,
        /// The address of the issuer's keys (JWKS).
        #[setting("serve.jwt_jwks_url", quiet)]
        pub(crate) jwks_url: Option<String>,
        /// A file with the issuer's keys (JWKS).
        #[setting("serve.jwt_jwks_file", quiet)]
        pub(crate) jwks_file: Option<PathBuf>,
        /// The issuer (`iss`) that a token has to name.
        #[setting("serve.jwt_issuer", quiet, unset = "any")]
        pub(crate) issuer: Option<String>,
        /// Audiences (`aud`) of which a token has to name one.
        #[setting("serve.jwt_audience", quiet, unset = "any")]
        pub(crate) audience: Vec<String>,
    }
}

settings! {
    /// `serve.oidc_…`: the OpenID provider that people sign in at.
    #[derive(Debug, Clone)]
    pub(crate) struct Oidc {
        /// The address of the OpenID provider, exactly as it stands in `iss` of its tokens.
        #[setting("serve.oidc_issuer", quiet)]
        pub(crate) issuer: Option<String>,
        /// The client ID of this service at the provider.
        #[setting("serve.oidc_client_id", quiet)]
        pub(crate) client_id: Option<String>,
        /// The client secret of this service at the provider.
        #[setting("serve.oidc_client_secret", quiet, unset = "none: a public client")]
        pub(crate) client_secret: Option<SecretString>,
        /// Scopes that are requested beside `openid`.
        #[setting("serve.oidc_scopes", quiet, unset = "only openid")]
        pub(crate) scopes: Vec<String>,
        /// The redirect URI.
        #[setting("serve.oidc_redirect", quiet,
            unset = "/signin/callback at the address that the browser used")]
        pub(crate) redirect: Option<String>,
        /// The claim that is the user's name here.
        #[setting("serve.oidc_user_claim", quiet, unset = "sub")]
        pub(crate) user_claim: Option<String>,
    }
}

settings! {
    impl UserLimits {
        /// Requests of one user a minute, at most.
        #[setting("serve.requests_per_minute", default = Self::default().requests_per_minute)]
        requests_per_minute: NonZeroU32,
        /// Turns of one user that run or wait at the same time, at most.
        #[setting("serve.turns_at_once", range = 1..=10_000, default = Self::default().turns_at_once)]
        turns_at_once: NonZeroU32,
        /// Turns of all users that run at the same time, at most.
        #[setting("serve.turns_in_all", default = Self::default().turns_in_all)]
        turns_in_all: NonZeroU32,
    }
}

settings! {
    impl ConnectionLimits {
        /// Open connections of all clients, at most.
        #[setting("serve.connections", default = Self::default().connections)]
        connections: NonZeroU32,
        /// Open connections of one client address, at most.
        #[setting("serve.connections_per_address", default = Self::default().per_address)]
        per_address: NonZeroU32,
        /// Time in which the head of a request has to arrive.
        #[setting("serve.header_timeout", range = CLIENT_WAIT, default = Self::default().header_timeout)]
        header_timeout: Duration,
        /// Time that the body of a request may pause.
        #[setting("serve.body_silence", range = CLIENT_WAIT, default = Self::default().body_silence)]
        body_silence: Duration,
        /// Time in which the body of a request has to arrive.
        #[setting("serve.body_timeout", range = CLIENT_WAIT, default = Self::default().body_timeout)]
        body_timeout: Duration,
        /// Time that a connection may be idle.
        #[setting("serve.idle_timeout", range = CLIENT_WAIT, default = Self::default().idle_timeout)]
        idle_timeout: Duration,
    }
}

settings! {
    impl RoleRules {
        /// Users who are operators, by the name they sign in with.
        #[setting("serve.operators", quiet, unset = "only the user local")]
        operators: Vec<String>,
        /// The claim of a signed token that has roles or groups.
        #[setting("serve.roles_claim", quiet)]
        claim: Option<String>,
        /// The header in which a proxy has roles or groups, with commas between them.
        #[setting("serve.roles_header", quiet)]
        header: Option<String>,
        /// Roles or groups whose members are operators.
        #[setting("serve.operator_roles", quiet)]
        operator_roles: Vec<String>,
        /// Roles or groups whose members read the metrics and nothing else.
        #[setting("serve.metrics_roles", quiet)]
        metrics_roles: Vec<String>,
    }
}

impl Serve {
    /// Returns the rules of sessions, tokens and roles.
    pub(crate) fn access_rules(&self) -> AccessRules {
        AccessRules {
            session_idle: self.session_idle,
            session_max: self.session_max,
            token_max: self.token_max,
            roles: self.roles.clone(),
            // `recheck` is no setting: it bounds the time that a stream outlives its revoked token.
            ..AccessRules::default()
        }
    }

    /// Returns the OpenID provider's configuration. `None`: issuer or client ID are not set.
    pub(crate) fn oidc_config(&self) -> Option<OidcConfig> {
        let oidc = self.oidc.clone();
        let mut config = OidcConfig::new(oidc.issuer?, oidc.client_id?);
        config.client_secret = oidc.client_secret.map(|key| key.expose_secret().to_owned());
        config.scopes = oidc.scopes;
        config.redirect = oidc.redirect;
        config.user_claim = oidc.user_claim;
        // Access tokens that programs send are signed tokens too.
        config.audience.clone_from(&self.jwt.audience);
        Some(config)
    }
}
