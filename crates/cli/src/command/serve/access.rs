//! Authentication of the service, from the settings.

use std::net::SocketAddr;
use std::sync::Arc;

use adjutant_core::port::{TokenKind, TokenRecord, TokenStore};
use adjutant_service::{
    Auth, InvalidJwt, InvalidOrigin, InvalidProxy, IpNet, Jwt, KeysError, Oidc, Origin, ServeError,
    TrustedProxy, networks, new_token,
};
use secrecy::ExposeSecret as _;

use super::process_token::ProcessTokenStore;
use crate::clock::now;
use crate::config::{Authentication, Serve};
use crate::error::CliError;
use crate::terminal::screen::Screen;

/// The authentication, and the token of the user who starts the service, if one was created for
/// them.
#[derive(Debug)]
pub(super) struct Access {
    pub(super) auth: Auth,
    pub(super) secret: Option<String>,
}

impl Access {
    fn with_auth(auth: Auth) -> Self {
        Self { auth, secret: None }
    }

    /// Creates the authentication and verifies that it is safe: at least one person can sign in,
    /// and the service is not open to everyone.
    ///
    /// # Errors
    /// A setting is missing or invalid (the error names it), everyone could use the service, or no
    /// one could.
    pub(super) async fn from_settings(
        how: Authentication,
        bind: SocketAddr,
        settings: &Serve,
        tokens: Arc<dyn TokenStore>,
        screen: &Screen,
    ) -> Result<Self, CliError> {
        match how {
            // Checked before a model is loaded, which takes a while.
            Authentication::None if bind.ip().is_loopback() => Ok(Self::with_auth(Auth::None)),
            Authentication::None => Err(ServeError::Open(bind).into()),
            Authentication::Token => by_token(bind, tokens).await,
            Authentication::Proxy => Ok(Self::with_auth(Auth::Proxy(proxy(settings)?))),
            Authentication::Oidc => {
                let oidc = oidc(settings, tokens)?;
                // The provider may be temporarily unavailable; it is loaded again at the next
                // sign-in.
                if let Err(error) = oidc.load().await {
                    screen.note(&format!("no one can sign in yet: {error}"));
                }
                Ok(Self::with_auth(Auth::Oidc(Arc::new(oidc))))
            }
            Authentication::Jwt => {
                let jwt = jwt(settings)?;
                match jwt.load().await {
                    Ok(()) => {}
                    // The issuer may be temporarily unavailable; its keys are loaded again later.
                    Err(error @ KeysError::Unavailable { .. })
                        if settings.jwt.jwks_url.is_some() =>
                    {
                        screen.note(&format!("no one can sign in yet: {error}"));
                    }
                    Err(error) => return Err(unusable_jwt(settings, &InvalidJwt::Keys(error))),
                }
                Ok(Self::with_auth(Auth::Jwt(Arc::new(jwt))))
            }
        }
    }
}

/// Sets up tokens. On a loopback address a token is created for the user who starts the service; on
/// others, only existing tokens are valid.
async fn by_token(bind: SocketAddr, tokens: Arc<dyn TokenStore>) -> Result<Access, CliError> {
    // Only this machine can connect, and its user should not have to create a token first.
    if bind.ip().is_loopback() {
        let token = new_token().map_err(|error| CliError::failed(error.to_string()))?;
        let session = ProcessTokenStore::new(token.digest, tokens, now());
        return Ok(Access {
            auth: Auth::Token(Arc::new(session)),
            secret: Some(token.secret),
        });
    }
    let now = now();
    let holds =
        |token: &TokenRecord| token.grant.kind == TokenKind::Token && token.refused(now).is_none();
    let usable = tokens.tokens(None).await?.iter().any(holds);
    if !usable {
        return Err(CliError::configuration(format!(
            "no one could sign in at {bind}: there is no token yet"
        ))
        .or_try("adjutant token create --user NAME")
        .or_try("--auth jwt, with serve.jwt_jwks_url, serve.jwt_issuer and serve.jwt_audience")
        .or_try("--auth oidc, with serve.oidc_issuer and serve.oidc_client_id")
        .or_try("--auth proxy, with serve.proxy_header and serve.proxy_peers")
        .or_try("adjutant serve --bind 127.0.0.1:8080    for this machine alone"));
    }
    Ok(Access::with_auth(Auth::Token(tokens)))
}

fn oidc(settings: &Serve, tokens: Arc<dyn TokenStore>) -> Result<Oidc, CliError> {
    let config = settings.oidc_config().ok_or_else(|| {
        CliError::configuration("serve.auth is oidc, and nothing says which provider people sign in at")
            .or_try(
                "serve.oidc_issuer = \"https://…\", the provider's address as it stands in iss of its tokens",
            )
            .or_try("serve.oidc_client_id, what this service is called there")
            .or_try("the variable ADJUTANT_SERVE_OIDC_CLIENT_SECRET, if the provider gave you a secret")
    })?;
    Oidc::new(config, tokens)
        .map_err(|error| CliError::configuration(error.to_string()).because("serve.oidc_issuer"))
}

fn jwt(settings: &Serve) -> Result<Jwt, CliError> {
    let jwt_settings = &settings.jwt;
    let (issuer, audience) = (jwt_settings.issuer.clone(), jwt_settings.audience.clone());
    let jwt = match (
        &jwt_settings.secret,
        &jwt_settings.jwks_url,
        &jwt_settings.jwks_file,
    ) {
        (Some(secret), None, None) => {
            Jwt::with_secret(secret.expose_secret().as_bytes(), issuer, audience)
        }
        (None, Some(url), None) => Jwt::with_key_url(url, issuer, audience),
        (None, None, Some(file)) => Jwt::with_key_file(file.clone(), issuer, audience),
        (None, None, None) => {
            return Err(CliError::configuration(
                "serve.auth is jwt, and nothing says what tokens are signed with",
            )
            .or_try("serve.jwt_jwks_url = \"https://…\", the address of the issuer's keys")
            .or_try("serve.jwt_jwks_file, a file with them")
            .or_try(
                "serve.jwt_secret (better the variable ADJUTANT_SERVE_JWT_SECRET), for HS256",
            ));
        }
        _ => {
            return Err(CliError::configuration("tokens can be signed in one way only")
                .because(
                    "more than one of serve.jwt_secret, serve.jwt_jwks_url and serve.jwt_jwks_file is set",
                )
                .or_try("adjutant config show --origin"));
        }
    };
    jwt.map_err(|error| unusable_jwt(settings, &error))
}

fn unusable_jwt(settings: &Serve, error: &InvalidJwt) -> CliError {
    let shown = CliError::configuration(error.to_string());
    match error {
        InvalidJwt::ShortSecret => shown
            .because("serve.jwt_secret, or the variable ADJUTANT_SERVE_JWT_SECRET")
            .or_try("openssl rand -base64 48"),
        InvalidJwt::AnyIssuerOrAudience => shown.or_try(
            "serve.jwt_issuer and serve.jwt_audience, as the tokens have them in iss and aud",
        ),
        _ if settings.jwt.jwks_file.is_some() => shown.because("serve.jwt_jwks_file"),
        _ => shown.because("serve.jwt_jwks_url"),
    }
}

fn proxy(settings: &Serve) -> Result<TrustedProxy, CliError> {
    let header = settings.proxy_header.as_deref().ok_or_else(|| {
        CliError::configuration(
            "serve.auth is proxy, and nothing says in which header it names the user",
        )
        .or_try("serve.proxy_header = \"X-Forwarded-User\", if that is the one your proxy sets")
    })?;
    TrustedProxy::new(header, &settings.proxy_peers).map_err(unusable_proxy)
}

/// Parses the addresses of proxies, for any kind of authentication.
///
/// # Errors
/// One of them is no address and no network.
pub(super) fn proxies(settings: &Serve) -> Result<Vec<IpNet>, CliError> {
    networks(&settings.proxy_peers).map_err(unusable_proxy)
}

/// Parses the origins of other pages that may call the service.
///
/// # Errors
/// One of them is no origin, or a pattern.
pub(super) fn origins(settings: &Serve) -> Result<Vec<Origin>, CliError> {
    let read = |origin: &String| {
        origin.parse::<Origin>().map_err(|error: InvalidOrigin| {
            CliError::configuration(error.to_string()).because("serve.origins")
        })
    };
    settings.origins.iter().map(read).collect()
}

fn unusable_proxy(error: InvalidProxy) -> CliError {
    let shown = CliError::configuration(error.to_string());
    match error {
        InvalidProxy::Header(_) => shown.because("serve.proxy_header"),
        InvalidProxy::NoPeers => {
            shown.or_try("serve.proxy_peers = [\"127.0.0.1\"], where your proxy is")
        }
        _ => shown.because("serve.proxy_peers"),
    }
}
