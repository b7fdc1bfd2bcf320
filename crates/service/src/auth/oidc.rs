//! Sign-in at an OpenID Connect provider: the authorization code flow with PKCE (OpenID Connect
//! Core 1.0; RFC 7636, RFC 9207).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use adjutant_core::UserId;
use adjutant_core::port::{Role, TokenStore};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use reqwest::{Client, Url};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;
use url::form_urlencoded;

use super::jwt::{Claims, Jwt};
use super::rules::RoleRules;
use super::{http, name};
use crate::problem::Problem;
use crate::token::random_text;

/// Age after which the provider's discovery document is fetched again.
const FRESH: Duration = Duration::from_secs(60 * 60);
/// Shortest time between two attempts if the provider does not answer.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Concurrent code exchanges. Any client can cause one, so they are bounded.
const EXCHANGES: usize = 16;

/// Settings of an OpenID Connect provider.
///
/// # Examples
///
/// ```
/// use adjutant_service::OidcConfig;
///
/// let mut config = OidcConfig::new("https://id.example/realm", "adjutant");
/// config.scopes = vec!["email".to_owned()];
/// config.user_claim = Some("email".to_owned());
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct OidcConfig {
    /// Address of the issuer, exactly as in the claim `iss` of its tokens.
    pub issuer: String,
    /// Client ID of this service at the provider.
    pub client_id: String,
    /// Client secret. `None`: a public client, for which PKCE alone protects the code.
    pub client_secret: Option<String>,
    /// Scopes that are requested in addition to `openid`.
    pub scopes: Vec<String>,
    /// Redirect URI. `None`: `/signin/callback` at the host that the browser used.
    pub redirect: Option<String>,
    /// Claim that is the user's name in this service. `None`: `sub`.
    pub user_claim: Option<String>,
    /// Audience of access tokens that programs may send. Empty: access tokens are refused.
    pub audience: Vec<String>,
}

/// Returns true if an ID token was issued to this client. One for several audiences has to name
/// the client that it was issued to (OpenID Connect Core 1.0, 3.1.3.7).
fn is_issued_to(claims: &Claims, client_id: &str) -> bool {
    let has_several = claims.texts("aud").len() > 1;
    if has_several || claims.others.contains_key("azp") {
        return claims.texts("azp") == [client_id];
    }
    true
}

impl OidcConfig {
    /// Creates the settings of a public client with the scope `openid`.
    #[must_use]
    pub fn new(issuer: impl Into<String>, client_id: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            client_id: client_id.into(),
            client_secret: None,
            scopes: Vec::new(),
            redirect: None,
            user_claim: None,
            audience: Vec::new(),
        }
    }
}

/// An error for an OpenID Connect provider that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidOidc {
    /// The issuer's address is not https, and not on this machine.
    #[error("{0} is not an https:// address (http:// is for this machine only)")]
    Address(String),
    /// The HTTP client cannot be created, for example because there are no root certificates.
    #[error("the provider cannot be asked: {0}")]
    Client(String),
    /// The provider does not answer, or not as the standard demands.
    #[error("the provider {issuer} cannot be used: {reason}")]
    Unavailable {
        /// The issuer whose discovery document was requested.
        issuer: String,
        /// Explanation for an operator.
        reason: String,
    },
}

/// Client of an OpenID Connect provider, with the store of the sessions it starts.
pub struct Oidc {
    config: OidcConfig,
    client: Client,
    tokens: Arc<dyn TokenStore>,
    provider: Mutex<Option<Discovery>>,
    /// True if the last attempt to fetch the discovery document succeeded.
    is_usable: AtomicBool,
    exchanges: Semaphore,
}

/// Result of the last attempt to fetch the discovery document.
struct Discovery {
    at: Instant,
    failed: Option<String>,
    /// The last provider that was usable, also if this attempt failed.
    provider: Option<Arc<Provider>>,
}

impl Discovery {
    /// Returns true if it is too early for another attempt.
    fn is_current(&self) -> bool {
        self.at.elapsed()
            < if self.failed.is_none() {
                FRESH
            } else {
                RETRY_INTERVAL
            }
    }
}

/// The discovery document (OpenID Connect Discovery 1.0, 3).
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Document {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    end_session_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

/// A provider whose discovery document is valid.
struct Provider {
    document: Document,
    authorization: Url,
    token: Url,
    end_session: Option<Url>,
    id_tokens: Jwt,
    access_tokens: Option<Arc<Jwt>>,
}

/// A sign-in in progress: the random values that the browser keeps in a cookie meanwhile.
pub(crate) struct PendingSignIn {
    state: String,
    nonce: String,
    verifier: String,
}

/// Query parameters of the authorization response, with which the provider redirects back.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct AuthorizationResponse {
    code: Option<String>,
    state: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
    iss: Option<String>,
}

/// An error that ends a sign-in.
#[derive(Debug)]
pub(crate) enum SignInFailed {
    /// The user or the provider denied it; the provider's message.
    Denied(String),
    /// The sign-in was started in another browser, or too long ago.
    Stale,
    /// The provider does not answer, or not as the standard demands.
    Provider(String),
    /// The provider's answer is valid, but names no user of this service.
    Refused(Problem),
}

/// Response of the token endpoint.
#[derive(Deserialize)]
struct Tokens {
    id_token: Option<String>,
}

#[derive(Default, Deserialize)]
struct TokenError {
    error: Option<String>,
    error_description: Option<String>,
}

impl fmt::Debug for Oidc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Oidc")
            .field("issuer", &self.config.issuer)
            .field("client_id", &self.config.client_id)
            .finish_non_exhaustive()
    }
}

impl PendingSignIn {
    fn new() -> Result<Self, Problem> {
        let new = || random_text().map_err(|error| Problem::internal_error(&error));
        Ok(Self {
            state: new()?,
            nonce: new()?,
            verifier: new()?,
        })
    }

    /// Returns the value of the cookie.
    pub(crate) fn to_cookie(&self) -> String {
        format!("{}.{}.{}", self.state, self.nonce, self.verifier)
    }

    /// Parses the value of the cookie.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(str::to_owned);
        let pending = Self {
            state: parts.next()?,
            nonce: parts.next()?,
            verifier: parts.next()?,
        };
        let is_whole = [&pending.state, &pending.nonce, &pending.verifier]
            .iter()
            // 43 characters of base64url are the 256 random bits of each part.
            .all(|part| part.len() >= 43);
        (is_whole && parts.next().is_none()).then_some(pending)
    }
}

impl Oidc {
    /// Creates a client for a provider. Sessions are stored in `tokens`.
    ///
    /// # Errors
    /// [`InvalidOidc`] if the issuer's address is not trustworthy or no HTTP client can be created.
    /// Nothing is fetched yet; see [`Oidc::load`].
    pub fn new(config: OidcConfig, tokens: Arc<dyn TokenStore>) -> Result<Self, InvalidOidc> {
        if http::trusted_url(&config.issuer).is_none() {
            return Err(InvalidOidc::Address(config.issuer));
        }
        let client = http::client().map_err(InvalidOidc::Client)?;
        let (provider, is_usable) = (Mutex::default(), AtomicBool::new(false));
        Ok(Self {
            config,
            client,
            tokens,
            provider,
            is_usable,
            exchanges: Semaphore::new(EXCHANGES),
        })
    }

    /// Fetches the discovery document, to find errors before the first sign-in.
    ///
    /// # Errors
    /// [`InvalidOidc::Unavailable`]; the next sign-in causes another attempt.
    pub async fn load(&self) -> Result<(), InvalidOidc> {
        let unavailable = |reason| InvalidOidc::Unavailable {
            issuer: self.config.issuer.clone(),
            reason,
        };
        self.provider().await.map(|_| ()).map_err(unavailable)
    }

    /// Returns true if the last attempt to fetch the discovery document succeeded. Sends nothing.
    pub(crate) fn is_usable(&self) -> bool {
        self.is_usable.load(Ordering::Relaxed)
    }

    /// Returns true if the discovery document should be fetched again, and is not being fetched.
    pub(crate) fn is_due(&self) -> bool {
        self.provider
            .try_lock()
            // A locked mutex means that the document is being fetched.
            .is_ok_and(|last| last.as_ref().is_none_or(|last| !last.is_current()))
    }

    pub(crate) fn tokens(&self) -> &Arc<dyn TokenStore> {
        &self.tokens
    }

    /// Returns the configured claim that names the user, if it is not `sub`.
    pub(crate) fn user_claim(&self) -> Option<&str> {
        self.config.user_claim.as_deref()
    }

    /// Returns the provider's host, to be shown to users.
    pub(crate) fn host(&self) -> String {
        let issuer = http::trusted_url(&self.config.issuer);
        issuer
            .and_then(|url| url.host_str().map(str::to_owned))
            .unwrap_or_default()
    }

    /// Returns the verifier of the provider's access tokens.
    pub(crate) async fn access_tokens(&self) -> Result<Arc<Jwt>, Problem> {
        let unknown = || Problem::unauthorized("the token is unknown");
        if self.config.audience.is_empty() {
            return Err(unknown());
        }
        let provider = self.provider().await.map_err(|error| {
            tracing::error!(%error, "tokens cannot be checked");
            Problem::no_keys()
        })?;
        provider.access_tokens.clone().ok_or_else(unknown)
    }

    /// Starts a sign-in. Returns the provider's address to redirect to, and the values that the
    /// browser keeps meanwhile.
    ///
    /// # Errors
    /// [`SignInFailed::Provider`]; [`SignInFailed::Refused`] without random numbers.
    pub(crate) async fn begin(&self, redirect: &str) -> Result<(Url, PendingSignIn), SignInFailed> {
        let provider = self.provider().await.map_err(SignInFailed::Provider)?;
        let pending = PendingSignIn::new().map_err(SignInFailed::Refused)?;
        // The provider compares it with the verifier when the code is exchanged (RFC 7636).
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(pending.verifier.as_bytes()));
        let mut scope = "openid".to_owned();
        for more in self.config.scopes.iter().filter(|more| *more != "openid") {
            scope = format!("{scope} {more}");
        }
        let mut address = provider.authorization.clone();
        address.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", &self.config.client_id),
            ("redirect_uri", self.redirect_uri(redirect)),
            ("scope", &scope),
            ("state", &pending.state),
            ("nonce", &pending.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ]);
        Ok((address, pending))
    }

    /// Finishes a sign-in: exchanges the authorization code and verifies the ID token.
    ///
    /// # Errors
    /// [`SignInFailed`] if the user is not signed in.
    pub(crate) async fn finish(
        &self,
        pending: Option<PendingSignIn>,
        returned: AuthorizationResponse,
        redirect: &str,
        roles: &RoleRules,
    ) -> Result<(UserId, Role), SignInFailed> {
        // The state binds the redirect to this browser, against forged ones (RFC 6749, 10.12).
        let pending = pending.filter(|pending| returned.state.as_ref() == Some(&pending.state));
        let Some(pending) = pending else {
            return Err(SignInFailed::Stale);
        };
        let provider = self.provider().await.map_err(SignInFailed::Provider)?;
        // Against mix-up attacks, in which the response of another provider is presented (RFC
        // 9207).
        let document = &provider.document;
        let is_theirs = match &returned.iss {
            Some(issuer) => *issuer == document.issuer,
            None => !document.authorization_response_iss_parameter_supported,
        };
        if !is_theirs {
            let reason = "another provider answered".to_owned();
            return Err(SignInFailed::Provider(reason));
        }
        if let Some(error) = returned.error {
            return Err(SignInFailed::Denied(error_message(
                &error,
                returned.error_description.as_deref(),
            )));
        }
        let code = returned.code.ok_or(SignInFailed::Stale)?;
        let token = self
            .exchange(&provider, &code, &pending.verifier, redirect)
            .await?;
        let claims = provider
            .id_tokens
            .claims(&token)
            .await
            .map_err(SignInFailed::Refused)?;
        let refused = |detail| Err(SignInFailed::Refused(Problem::unauthorized(detail)));
        // The nonce binds the ID token to the request of this browser, against replayed tokens.
        if claims.texts("nonce") != [pending.nonce] {
            return refused("the provider's token is for another sign-in");
        }
        if !is_issued_to(&claims, &self.config.client_id) {
            return refused("the provider's token is for another service");
        }
        let user = name::user_of(&claims, self.user_claim()).map_err(SignInFailed::Refused)?;
        let roles_named = claims.roles(roles);
        let role = roles.role(&user, &roles_named);
        Ok((user, role))
    }

    /// Returns the provider's address for signing out there too, if it has one. It redirects back
    /// to `back`.
    pub(crate) async fn sign_out(&self, back: &str) -> Option<Url> {
        // Without the provider, the session of this service has ended all the same.
        let mut address = self.provider().await.ok()?.end_session.clone()?;
        address
            .query_pairs_mut()
            .append_pair("client_id", &self.config.client_id)
            .append_pair("post_logout_redirect_uri", back);
        Some(address)
    }

    fn redirect_uri<'a>(&'a self, default: &'a str) -> &'a str {
        self.config.redirect.as_deref().unwrap_or(default)
    }

    /// Exchanges an authorization code for an ID token.
    async fn exchange(
        &self,
        provider: &Provider,
        code: &str,
        verifier: &str,
        redirect: &str,
    ) -> Result<String, SignInFailed> {
        let failed = |reason: String| SignInFailed::Provider(reason);
        // Waits for its turn instead of failing, so that many simultaneous sign-ins are only slowed
        // down.
        let _permit = self
            .exchanges
            .acquire()
            .await
            .map_err(|error| failed(error.to_string()))?;
        let client_id = &self.config.client_id;
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            // The same address as when the code was requested (RFC 6749, 4.1.3).
            ("redirect_uri", self.redirect_uri(redirect)),
            // Together with the challenge it proves that this client started the sign-in (RFC
            // 7636).
            ("code_verifier", verifier),
        ];
        let mut request = self.client.post(provider.token.clone());
        match &self.config.client_secret {
            // Both are encoded before they are joined (RFC 6749, 2.3.1).
            Some(secret) if provider.document.takes_basic() => {
                let [client_id, secret] = [client_id, secret].map(|text| {
                    form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>()
                });
                let pair = format!("{client_id}:{secret}");
                request =
                    request.header("authorization", format!("Basic {}", STANDARD.encode(pair)));
            }
            Some(secret) => {
                form.extend([("client_id", client_id.as_str()), ("client_secret", secret)])
            }
            None => form.push(("client_id", client_id)),
        }
        let request = request
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form_encoded(&form));
        let (status, body) = http::send(request).await.map_err(failed)?;
        if status != 200 {
            let refusal: TokenError = serde_json::from_str(&body).unwrap_or_default();
            let description = refusal.error_description.as_deref();
            let message = refusal
                .error
                .map(|error| error_message(&error, description))
                .unwrap_or_default();
            // The code was used, has expired, or is for another client or address (RFC 6749, 5.2).
            return Err(if message.starts_with("invalid_grant") {
                SignInFailed::Stale
            } else {
                failed(format!("it answered with status {status} {message}"))
            });
        }
        let tokens: Tokens =
            serde_json::from_str(&body).map_err(|error| failed(error.to_string()))?;
        tokens
            .id_token
            .ok_or_else(|| failed("it gave no ID token".to_owned()))
    }

    /// Returns the provider, fetching its discovery document if that is due.
    ///
    /// # Errors
    /// The reason for which it cannot be used, for an operator.
    async fn provider(&self) -> Result<Arc<Provider>, String> {
        let mut last = self.provider.lock().await;
        if let Some(known) = last.as_ref().filter(|last| last.is_current()) {
            // If the last attempt failed, the document before it is still used.
            return known
                .provider
                .clone()
                .ok_or_else(|| known.failed.clone().unwrap_or_default());
        }
        // Not taken out: this future may be dropped while it fetches.
        let before = last.as_ref().and_then(|last| last.provider.clone());
        let found = self.discover(before.as_ref()).await;
        let failed = found.as_ref().err().cloned();
        self.is_usable.store(failed.is_none(), Ordering::Relaxed);
        let provider = found.as_ref().ok().cloned().or(before);
        *last = Some(Discovery {
            at: Instant::now(),
            failed,
            provider: provider.clone(),
        });
        match (found, provider) {
            (Err(reason), None) => Err(reason),
            (Ok(provider), _) | (Err(_), Some(provider)) => Ok(provider),
        }
    }

    async fn discover(&self, before: Option<&Arc<Provider>>) -> Result<Arc<Provider>, String> {
        // The path is appended without a second slash (OpenID Connect Discovery 1.0, 4).
        let issuer = self.config.issuer.trim_end_matches('/');
        let place = format!("{issuer}/.well-known/openid-configuration");
        let text = http::fetch(self.client.get(place.as_str())).await?;
        let document: Document = serde_json::from_str(&text)
            .map_err(|error| format!("{place} is not a valid discovery document: {error}"))?;
        match before {
            Some(known) if known.document == document => Ok(known.clone()),
            _ => Ok(Arc::new(Provider::from_document(document, &self.config)?)),
        }
    }
}

impl Document {
    /// Returns true if the client authenticates with HTTP Basic, which is the default.
    fn takes_basic(&self) -> bool {
        let methods = self.token_endpoint_auth_methods_supported.as_ref();
        methods.is_none_or(|methods| methods.iter().any(|method| method == "client_secret_basic"))
    }
}

impl Provider {
    fn from_document(document: Document, config: &OidcConfig) -> Result<Self, String> {
        // Both have to be identical (OpenID Connect Discovery 1.0, 4.3).
        if document.issuer != config.issuer {
            return Err(format!(
                "it calls itself {}: oidc_issuer has to be exactly that",
                document.issuer
            ));
        }
        let address = |text: &str| {
            http::trusted_url(text).ok_or_else(|| format!("{text} is not an https:// address"))
        };
        // ID tokens are for this client, access tokens for an API: each verifier has its own
        // audience.
        let keys = |audience: Vec<String>| {
            Jwt::with_key_url(&document.jwks_uri, Some(document.issuer.clone()), audience)
                .map_err(|error| error.to_string())
        };
        let access_tokens = match config.audience.as_slice() {
            [] => None,
            audience => Some(Arc::new(keys(audience.to_vec())?)),
        };
        Ok(Self {
            authorization: address(&document.authorization_endpoint)?,
            token: address(&document.token_endpoint)?,
            end_session: document
                .end_session_endpoint
                .as_deref()
                .map(address)
                .transpose()?,
            id_tokens: keys(vec![config.client_id.clone()])?,
            access_tokens,
            document,
        })
    }
}

/// Formats an error of the provider, shortened and without control characters: it goes to the log,
/// and may contain text from the request.
fn error_message(error: &str, description: Option<&str>) -> String {
    let message = description.map_or_else(
        || error.to_owned(),
        |description| format!("{error}: {description}"),
    );
    message
        .chars()
        .filter(|letter| !letter.is_control())
        .take(300)
        .collect()
}

/// Encodes fields as `application/x-www-form-urlencoded`.
fn form_encoded(fields: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_url_encoded() {
        let form = [("a b", "c&d=é"), ("x", "~*-._")];
        assert_eq!(form_encoded(&form), "a+b=c%26d%3D%C3%A9&x=%7E*-._");
    }

    #[test]
    fn a_token_for_several_audiences_names_its_client() {
        for (others, expected) in [
            (r#""aud": "us""#, true),
            (r#""aud": ["us"]"#, true),
            (r#""aud": ["us"], "azp": "us""#, true),
            (r#""aud": ["us", "them"], "azp": "us""#, true),
            (r#""aud": ["us", "them"]"#, false),
            (r#""aud": ["us", "them"], "azp": "them""#, false),
            (r#""aud": "us", "azp": "them""#, false),
            (r#""aud": ["us", "them"], "azp": 7"#, false),
        ] {
            let claims = serde_json::from_str(&format!("{{\"sub\": \"ana\", {others}}}")).unwrap();
            assert_eq!(is_issued_to(&claims, "us"), expected, "{others}");
        }
    }

    #[test]
    fn the_sign_in_cookie_is_parsed_completely_or_refused() {
        let pending = PendingSignIn::new().unwrap();
        let parsed = PendingSignIn::parse(&pending.to_cookie()).unwrap();
        assert_eq!(
            (parsed.state, parsed.nonce, parsed.verifier),
            (
                pending.state.clone(),
                pending.nonce.clone(),
                pending.verifier.clone()
            )
        );
        for bad in [
            "",
            "..",
            &format!("{}.{}", pending.state, pending.nonce),
            &format!("{}.x", pending.to_cookie()),
        ] {
            assert!(PendingSignIn::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_provider_must_be_the_configured_issuer_with_https_addresses() {
        let config = OidcConfig::new("https://id.example/realm", "adjutant");
        let document = |change: (&str, &str)| {
            let mut document = serde_json::json!({
                "issuer": "https://id.example/realm", "authorization_endpoint": "https://id.example/auth",
                "token_endpoint": "https://id.example/token", "jwks_uri": "https://id.example/keys",
            });
            document[change.0] = change.1.into();
            Provider::from_document(serde_json::from_value(document).unwrap(), &config).is_ok()
        };
        assert!(document(("end_session_endpoint", "https://id.example/out")));
        for change in [
            ("issuer", "https://id.example/realm/"),
            ("issuer", "https://evil.example"),
            ("authorization_endpoint", "http://id.example/auth"),
            ("authorization_endpoint", "javascript:alert(1)"),
            ("token_endpoint", "http://id.example/token"),
            ("jwks_uri", "http://id.example/keys"),
            ("end_session_endpoint", "http://id.example/out"),
        ] {
            assert!(!document(change), "{change:?}");
        }
    }
}
