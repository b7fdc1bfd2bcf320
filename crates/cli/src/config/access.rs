//! The part of `[serve]` that says who is let in for how long, who is more than a user, and where
//! people sign in.

use std::time::Duration;

use adjutant_service::{AccessRules, OidcConfig, RoleRules};
use secrecy::{ExposeSecret as _, SecretString};

use super::Values;
use super::key::{FOREVER, Key, Kind, Value, key};

/// Bounds of the settings for how long sessions and tokens hold: a minute to 3650 days.
const HOLDS: Kind = Kind::Duration {
    min: Duration::from_secs(60),
    max: Duration::from_secs(3_650 * 86_400),
};

/// The settings of access to the service: rules of sessions, tokens and roles, and the sign-in
/// provider.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    pub(crate) rules: AccessRules,
    /// Time until a token that is made by command expires. `None`: it does not.
    pub(crate) token_expiry: Option<Duration>,
    pub(crate) oidc: Oidc,
}

/// `serve.oidc_…`: the provider that people sign in at.
#[derive(Debug, Clone)]
pub(crate) struct Oidc {
    issuer: Option<String>,
    client_id: Option<String>,
    client_secret: Option<SecretString>,
    scopes: Vec<String>,
    redirect: Option<String>,
    user_claim: Option<String>,
}

impl Oidc {
    /// Returns what is said about the provider, if enough is. `audience`: of access tokens that
    /// programs may send.
    pub(crate) fn config(&self, audience: Vec<String>) -> Option<OidcConfig> {
        let mut config = OidcConfig::new(self.issuer.clone()?, self.client_id.clone()?);
        config.client_secret = self
            .client_secret
            .as_ref()
            .map(|secret| secret.expose_secret().to_owned());
        config.scopes.clone_from(&self.scopes);
        config.redirect.clone_from(&self.redirect);
        config.user_claim.clone_from(&self.user_claim);
        config.audience = audience;
        Some(config)
    }
}

pub(super) fn keys() -> Vec<Key> {
    vec![
        Key {
            quiet: true,
            ..key("serve.oidc_issuer", Kind::Text)
        },
        Key {
            quiet: true,
            ..key("serve.oidc_client_id", Kind::Text)
        },
        Key {
            quiet: true,
            unset: "none: a public client",
            ..key("serve.oidc_client_secret", Kind::Secret)
        },
        Key {
            quiet: true,
            unset: "openid alone",
            ..key("serve.oidc_scopes", Kind::List)
        },
        Key {
            quiet: true,
            unset: "/signin/callback of the address people ask by",
            ..key("serve.oidc_redirect", Kind::Text)
        },
        Key {
            quiet: true,
            unset: "sub",
            ..key("serve.oidc_user_claim", Kind::Text)
        },
        Key {
            quiet: true,
            unset: "nobody but local",
            ..key("serve.operators", Kind::List)
        },
        Key {
            quiet: true,
            unset: "none",
            ..key("serve.roles_claim", Kind::Text)
        },
        Key {
            quiet: true,
            unset: "none",
            ..key("serve.roles_header", Kind::Text)
        },
        Key {
            quiet: true,
            unset: "none",
            ..key("serve.operator_roles", Kind::List)
        },
        Key {
            quiet: true,
            unset: "none",
            ..key("serve.metrics_roles", Kind::List)
        },
        Key {
            default: |_| Some(Value::Duration(AccessRules::default().session_idle)),
            ..key("serve.session_idle", HOLDS)
        },
        Key {
            default: |_| Some(Value::Duration(AccessRules::default().session_max)),
            ..key("serve.session_max", HOLDS)
        },
        Key {
            default: |_| Some(Value::Text(FOREVER.to_owned())),
            ..key("serve.token_expiry", Kind::Keep)
        },
        Key {
            default: |_| Some(Value::Duration(AccessRules::default().token_max)),
            ..key("serve.token_max", HOLDS)
        },
    ]
}

pub(super) fn access(values: &Values) -> Access {
    let usual = AccessRules::default();
    let time = |name: &str, usual: Duration| values.time(name).unwrap_or(usual);
    Access {
        rules: AccessRules {
            session_idle: time("serve.session_idle", usual.session_idle),
            session_max: time("serve.session_max", usual.session_max),
            token_max: time("serve.token_max", usual.token_max),
            recheck: usual.recheck,
            roles: RoleRules {
                operators: values.list("serve.operators"),
                claim: values.text("serve.roles_claim"),
                header: values.text("serve.roles_header"),
                operator_roles: values.list("serve.operator_roles"),
                metrics_roles: values.list("serve.metrics_roles"),
            },
        },
        token_expiry: values.time("serve.token_expiry"),
        oidc: Oidc {
            issuer: values.text("serve.oidc_issuer"),
            client_id: values.text("serve.oidc_client_id"),
            client_secret: values.secret("serve.oidc_client_secret"),
            scopes: values.list("serve.oidc_scopes"),
            redirect: values.text("serve.oidc_redirect"),
            user_claim: values.text("serve.oidc_user_claim"),
        },
    }
}
