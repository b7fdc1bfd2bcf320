//! Checks of the HTTP service: its port and its users.

use std::net::TcpListener;

use adjutant_core::port::{TokenKind, TokenRecord};

use super::{Check, Group, Status};
use crate::clock::now;
use crate::config::{Authentication, Settings, Sources};
use crate::store::Store;

const GROUP: Group = Group("service");

/// Checks port and users of `adjutant serve`.
pub(super) async fn checks(
    sources: &Sources,
    settings: &Settings,
    store: Option<&dyn Store>,
) -> Vec<Check> {
    vec![port(sources, settings), users(settings, store).await]
}

/// Checks the port. A default port in use by another program is a warning only, because not every
/// user runs the service.
fn port(sources: &Sources, settings: &Settings) -> Check {
    let bind = settings.serve.bind;
    let name = "serve.bind";
    match TcpListener::bind(bind) {
        Ok(_) => GROUP.ok(name, format!("{bind} is free")),
        // A service removes this file when it ends, so the port is most likely its own.
        Err(_) if sources.dirs.state.join("serve.json").exists() => {
            GROUP.ok(name, format!("{bind} is in use; adjutant serve runs"))
        }
        Err(error) => {
            let is_set = settings
                .shown
                .iter()
                .any(|shown| shown.name == name && shown.origin != "default");
            let status = if is_set { Status::Fail } else { Status::Warn };
            // Port 0 has the system choose a free one.
            let free = TcpListener::bind((bind.ip(), 0)).and_then(|free| free.local_addr());
            let free = free.map_or_else(|_| "127.0.0.1:8081".to_owned(), |free| free.to_string());
            GROUP
                .check(
                    status,
                    name,
                    format!("adjutant serve cannot listen at {bind}"),
                )
                .because(error)
                .with_remedy(format!("adjutant config set serve.bind {free}"))
        }
    }
}

async fn users(settings: &Settings, store: Option<&dyn Store>) -> Check {
    let serve = &settings.serve;
    // On a loopback address only users of this machine can connect.
    let (name, open) = ("serve.auth", !serve.bind.ip().is_loopback());
    match serve.auth {
        Authentication::None if open => GROUP
            .fail(name, format!("everyone could use it at {}", serve.bind))
            .because("serve.auth is none, and serve.bind is no address of this machine alone")
            .with_remedy(format!(
                "adjutant config set serve.bind 127.0.0.1:{}",
                serve.bind.port()
            )),
        Authentication::None => GROUP.ok(name, "none: every user of this machine counts as you"),
        Authentication::Token => {
            let tokens = match store {
                Some(store) => store.tokens(None).await.unwrap_or_default(),
                None => Vec::new(),
            };
            let holds = |token: &&TokenRecord| {
                token.grant.kind == TokenKind::Token && token.refused(now()).is_none()
            };
            let usable = tokens.iter().filter(holds).count();
            if open && usable == 0 {
                return GROUP
                    .fail(name, format!("no one could sign in at {}", serve.bind))
                    .because("there is no token yet")
                    .with_remedy(format!(
                        "adjutant token create --user {}",
                        settings.user_name
                    ));
            }
            GROUP.ok(name, format!("token: {usable} issued"))
        }
        Authentication::Jwt => {
            let ways = [
                serve.jwt.secret.is_some(),
                serve.jwt.jwks_url.is_some(),
                serve.jwt.jwks_file.is_some(),
            ];
            match ways.iter().filter(|way| **way).count() {
                1 => GROUP.ok(name, "jwt"),
                0 => GROUP.fail(name, "serve.auth is jwt, and nothing says what tokens are signed with")
                    .with_remedy("adjutant config set serve.jwt_jwks_url https://…"),
                _ => GROUP.fail(name, "tokens can be signed in one way only")
                    .because("more than one of serve.jwt_secret, serve.jwt_jwks_url and serve.jwt_jwks_file is set")
                    .with_remedy("adjutant config show --origin"),
            }
        }
        Authentication::Oidc if serve.oidc_config().is_none() => GROUP
            .fail(
                name,
                "serve.auth is oidc, and nothing says which provider people sign in at",
            )
            .with_remedy(
                "adjutant config set serve.oidc_issuer https://…    (and serve.oidc_client_id)",
            ),
        Authentication::Oidc => GROUP.ok(name, "oidc"),
        Authentication::Proxy if serve.proxy_header.is_none() => GROUP
            .fail(
                name,
                "serve.auth is proxy, and nothing says in which header it names the user",
            )
            .with_remedy("adjutant config set serve.proxy_header X-Forwarded-User"),
        Authentication::Proxy if serve.proxy_peers.is_empty() => GROUP
            .fail(
                name,
                "serve.auth is proxy, and nothing says where the proxy is",
            )
            .with_remedy("adjutant config set serve.proxy_peers 127.0.0.1"),
        Authentication::Proxy => GROUP.ok(name, "proxy"),
    }
}
