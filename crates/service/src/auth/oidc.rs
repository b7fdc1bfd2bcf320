//! People sign in at an OpenID provider: the authorization code flow with PKCE (OpenID Connect Core 1.0;
//! RFC 7636, RFC 9207).

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

use super::jwt::Jwt;
use super::rules::RoleRules;
use super::{http, name};
use crate::problem::Problem;
use crate::token::random;

/// Age at which the provider's discovery document is fetched again.
const FRESH: Duration = Duration::from_secs(60 * 60);
/// A provider that did not answer is asked again no sooner.
const PAUSE: Duration = Duration::from_secs(5);
/// Codes that are exchanged at the same time: strangers can have that begun.
const EXCHANGES: usize = 16;

/// The settings of an OpenID provider.
#[derive(Clone)]
#[non_exhaustive]
pub struct OidcConfig {
    /// Its address, exactly as it stands in `iss` of its tokens.
    pub issuer: String,
    /// The client ID of this service at the provider.
    pub client_id: String,
    /// The client secret. `None`: the client is a public one, and PKCE alone protects the code.
    pub client_secret: Option<String>,
    /// The scopes that are requested beside `openid`.
    pub scopes: Vec<String>,
    /// The redirect URI. `None`: `/signin/callback` at the address that the browser used.
    pub redirect: Option<String>,
    /// The claim that is the user's name here. `None`: `sub`.
    pub user_claim: Option<String>,
    /// The audience of access tokens that programs may send. Empty: none are taken.
    pub audience: Vec<String>,
}

impl OidcConfig {
    /// A public client that asks for `openid` alone.
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

/// The reason an OpenID provider cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidOidc {
    /// Not an address that can be trusted.
    #[error("{0} is no https:// address (http:// is for this machine only)")]
    Address(String),
    /// This machine cannot ask.
    #[error("the provider cannot be asked: {0}")]
    Client(String),
    /// The provider does not answer, or not as one.
    #[error("the provider {issuer} cannot be used: {reason}")]
    Unavailable {
        /// The issuer, as it was configured.
        issuer: String,
        /// The reason, in words for an operator.
        reason: String,
    },
}

/// People sign in at a provider.
pub struct Oidc {
    config: OidcConfig,
    client: Client,
    tokens: Arc<dyn TokenStore>,
    provider: Mutex<Option<Asked>>,
    /// True if the last attempt to read its document succeeded.
    is_usable: AtomicBool,
    exchanges: Semaphore,
}

/// The last attempt to read the provider's discovery document, and its result.
struct Asked {
    at: Instant,
    failed: Option<String>,
    provider: Option<Arc<Provider>>,
}

impl Asked {
    /// Returns whether the provider is not asked again yet.
    fn holds(&self) -> bool {
        self.at.elapsed() < if self.failed.is_none() { FRESH } else { PAUSE }
    }
}

/// The provider's discovery document (OpenID Connect Discovery 1.0, 3).
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

/// A provider that can be used.
struct Provider {
    document: Document,
    authorization: Url,
    token: Url,
    end_session: Option<Url>,
    id_tokens: Jwt,
    access_tokens: Option<Arc<Jwt>>,
}

/// A sign-in that was begun, as the browser keeps it until it comes back.
pub(crate) struct Begun {
    state: String,
    nonce: String,
    verifier: String,
}

/// The authorization response: the parameters with which the provider sends the browser back.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Returned {
    code: Option<String>,
    state: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
    iss: Option<String>,
}

/// The reason nobody was signed in.
#[derive(Debug)]
pub(crate) enum SignInFailed {
    /// The person or the provider did not want it, in its words.
    Denied(String),
    /// It was not begun in this browser, or too long ago.
    Stale,
    /// The provider does not answer, or not as it should.
    Provider(String),
    /// The provider's answer names nobody whom this service accepts.
    Refused(Problem),
}

/// The answer of the token endpoint.
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

impl Begun {
    fn new() -> Result<Self, Problem> {
        let new = || random().map_err(|_| Problem::internal());
        Ok(Self {
            state: new()?,
            nonce: new()?,
            verifier: new()?,
        })
    }

    /// Returns it as the text of a cookie.
    pub(crate) fn written(&self) -> String {
        format!("{}.{}.{}", self.state, self.nonce, self.verifier)
    }

    /// Reads the text of a cookie.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(str::to_owned);
        let begun = Self {
            state: parts.next()?,
            nonce: parts.next()?,
            verifier: parts.next()?,
        };
        let is_whole = [&begun.state, &begun.nonce, &begun.verifier]
            .iter()
            .all(|part| part.len() >= 43);
        (is_whole && parts.next().is_none()).then_some(begun)
    }
}

impl Oidc {
    /// The provider of these settings; the sessions that begin there, and the tokens of programs,
    /// are kept in `tokens`.
    ///
    /// # Errors
    /// [`InvalidOidc`]; nothing is asked yet.
    pub fn new(config: OidcConfig, tokens: Arc<dyn TokenStore>) -> Result<Self, InvalidOidc> {
        if http::trusted(&config.issuer).is_none() {
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

    /// Asks the provider about itself now, so that what is wrong is known before anybody signs in.
    ///
    /// # Errors
    /// [`InvalidOidc::Unavailable`]; it is asked again when somebody signs in.
    pub async fn load(&self) -> Result<(), InvalidOidc> {
        let unavailable = |reason| InvalidOidc::Unavailable {
            issuer: self.config.issuer.clone(),
            reason,
        };
        self.provider().await.map(|_| ()).map_err(unavailable)
    }

    /// Returns whether people could sign in when the provider answered last, or did not. Does not
    /// ask it.
    pub(crate) fn is_usable(&self) -> bool {
        self.is_usable.load(Ordering::Relaxed)
    }

    /// Returns whether the provider may be asked again, because the last answer is old or was none.
    /// While it is being asked, it is not.
    pub(crate) fn is_due(&self) -> bool {
        self.provider
            .try_lock()
            .is_ok_and(|asked| asked.as_ref().is_none_or(|asked| !asked.holds()))
    }

    pub(crate) fn tokens(&self) -> &Arc<dyn TokenStore> {
        &self.tokens
    }

    /// Returns the claim that is the user's name, if it is not `sub`.
    pub(crate) fn user_claim(&self) -> Option<&str> {
        self.config.user_claim.as_deref()
    }

    /// Returns where the provider is, for people.
    pub(crate) fn host(&self) -> String {
        let issuer = http::trusted(&self.config.issuer);
        issuer
            .and_then(|url| url.host_str().map(str::to_owned))
            .unwrap_or_default()
    }

    /// Returns the check of the provider's access tokens.
    pub(crate) async fn access_tokens(&self) -> Result<Arc<Jwt>, Problem> {
        let unknown = || Problem::unauthorized("the token is unknown");
        if self.config.audience.is_empty() {
            return Err(unknown());
        }
        let provider = self.provider().await.map_err(|_| Problem::no_keys())?;
        provider.access_tokens.clone().ok_or_else(unknown)
    }

    /// Begins to sign somebody in. Returns the provider's address for it, and what the browser
    /// keeps meanwhile.
    ///
    /// # Errors
    /// [`SignInFailed::Provider`]; [`SignInFailed::Refused`] if the system gives no random bytes.
    pub(crate) async fn begin(&self, redirect: &str) -> Result<(Url, Begun), SignInFailed> {
        let provider = self.provider().await.map_err(SignInFailed::Provider)?;
        let begun = Begun::new().map_err(SignInFailed::Refused)?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(begun.verifier.as_bytes()));
        let mut scope = "openid".to_owned();
        for more in self.config.scopes.iter().filter(|more| *more != "openid") {
            scope = format!("{scope} {more}");
        }
        let mut address = provider.authorization.clone();
        address
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.config.client_id)
            .append_pair(
                "redirect_uri",
                self.config.redirect.as_deref().unwrap_or(redirect),
            )
            .append_pair("scope", &scope)
            .append_pair("state", &begun.state)
            .append_pair("nonce", &begun.nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        Ok((address, begun))
    }

    /// Exchanges the code that somebody came back with, and checks who they are.
    ///
    /// # Errors
    /// [`SignInFailed`]; nobody is signed in.
    pub(crate) async fn finish(
        &self,
        begun: Option<Begun>,
        returned: Returned,
        redirect: &str,
        roles: &RoleRules,
    ) -> Result<(UserId, Role), SignInFailed> {
        let begun = begun.filter(|begun| returned.state.as_ref() == Some(&begun.state));
        let Some(begun) = begun else {
            return Err(SignInFailed::Stale);
        };
        let provider = self.provider().await.map_err(SignInFailed::Provider)?;
        // Else the answer of one provider could be taken for another's (RFC 9207).
        let named = returned.iss.as_ref();
        if named.is_some_and(|iss| *iss != provider.document.issuer)
            || (named.is_none()
                && provider
                    .document
                    .authorization_response_iss_parameter_supported)
        {
            return Err(SignInFailed::Provider(
                "another provider answered".to_owned(),
            ));
        }
        if let Some(error) = returned.error {
            return Err(SignInFailed::Denied(said(
                &error,
                returned.error_description.as_deref(),
            )));
        }
        let code = returned.code.ok_or(SignInFailed::Stale)?;
        let token = self
            .exchange(&provider, &code, &begun.verifier, redirect)
            .await?;
        let claims = provider
            .id_tokens
            .claims(&token)
            .await
            .map_err(SignInFailed::Refused)?;
        let refused = |detail| Err(SignInFailed::Refused(Problem::unauthorized(detail)));
        if claims.texts("nonce") != [begun.nonce] {
            return refused("the provider's token is for another sign-in");
        }
        if claims.others.contains_key("azp")
            && claims.texts("azp") != [self.config.client_id.clone()]
        {
            return refused("the provider's token is for another service");
        }
        let user = name::user_of(&claims, self.user_claim()).map_err(SignInFailed::Refused)?;
        let said = roles
            .claim
            .as_deref()
            .map(|claim| claims.texts(claim))
            .unwrap_or_default();
        let role = roles.role(&user, &said);
        Ok((user, role))
    }

    /// Returns the provider's address at which people sign out there too, if it has one; it sends
    /// them back to `back`.
    pub(crate) async fn sign_out(&self, back: &str) -> Option<Url> {
        let mut address = self.provider().await.ok()?.end_session.clone()?;
        address
            .query_pairs_mut()
            .append_pair("client_id", &self.config.client_id)
            .append_pair("post_logout_redirect_uri", back);
        Some(address)
    }

    /// Returns the ID token for a code.
    async fn exchange(
        &self,
        provider: &Provider,
        code: &str,
        verifier: &str,
        redirect: &str,
    ) -> Result<String, SignInFailed> {
        let failed = |reason: String| SignInFailed::Provider(reason);
        let _one_of_few = self
            .exchanges
            .acquire()
            .await
            .map_err(|error| failed(error.to_string()))?;
        let OidcConfig {
            client_id,
            client_secret,
            ..
        } = &self.config;
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            (
                "redirect_uri",
                self.config.redirect.as_deref().unwrap_or(redirect),
            ),
            ("code_verifier", verifier),
        ];
        let mut request = self.client.post(provider.token.clone());
        match client_secret {
            // Both are encoded before they are put together (RFC 6749, 2.3.1).
            Some(secret) if provider.document.takes_basic() => {
                let pair = format!("{}:{}", encoded(client_id), encoded(secret));
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
        let (status, body) = http::ask(request).await.map_err(failed)?;
        if status != 200 {
            let TokenError {
                error,
                error_description,
            } = serde_json::from_str(&body).unwrap_or_default();
            let words = error
                .map(|error| said(&error, error_description.as_deref()))
                .unwrap_or_default();
            // A code that was used, or has expired, or is for another client or address (RFC 6749, 5.2).
            return Err(match words.starts_with("invalid_grant") {
                true => SignInFailed::Stale,
                false => failed(format!("it answered with status {status} {words}")),
            });
        }
        let tokens: Tokens =
            serde_json::from_str(&body).map_err(|error| failed(error.to_string()))?;
        tokens
            .id_token
            .ok_or_else(|| failed("it gave no ID token".to_owned()))
    }

    /// Returns the provider as it describes itself, asked no more often than it has to be.
    ///
    /// # Errors
    /// The reason it cannot be used, in words for an operator.
    async fn provider(&self) -> Result<Arc<Provider>, String> {
        let mut asked = self.provider.lock().await;
        if let Some(known) = asked.as_ref().filter(|asked| asked.holds()) {
            // Of one that fails now, what it said before still holds.
            return known
                .provider
                .clone()
                .ok_or_else(|| known.failed.clone().unwrap_or_default());
        }
        // It stays there meanwhile: whoever waits for this may go away.
        let before = asked.as_ref().and_then(|asked| asked.provider.clone());
        let found = self.discover(before.as_ref()).await;
        let failed = found.as_ref().err().cloned();
        self.is_usable.store(failed.is_none(), Ordering::Relaxed);
        let provider = found.as_ref().ok().cloned().or(before);
        *asked = Some(Asked {
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
        let issuer = self.config.issuer.trim_end_matches('/');
        let place = format!("{issuer}/.well-known/openid-configuration");
        let text = http::read(self.client.get(place.as_str())).await?;
        let document: Document = serde_json::from_str(&text)
            .map_err(|error| format!("{place} says not what it has to: {error}"))?;
        match before {
            Some(known) if known.document == document => Ok(known.clone()),
            _ => Ok(Arc::new(Provider::of(document, &self.config)?)),
        }
    }
}

impl Document {
    /// Returns whether the client proves itself in a header, which is what holds if nothing is
    /// said.
    fn takes_basic(&self) -> bool {
        let methods = self.token_endpoint_auth_methods_supported.as_ref();
        methods.is_none_or(|methods| methods.iter().any(|method| method == "client_secret_basic"))
    }
}

impl Provider {
    fn of(document: Document, config: &OidcConfig) -> Result<Self, String> {
        if document.issuer != config.issuer {
            return Err(format!(
                "it calls itself {}: that has to be oidc_issuer, to the letter",
                document.issuer
            ));
        }
        let address = |text: &str| {
            http::trusted(text).ok_or_else(|| format!("{text} is no https:// address"))
        };
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

/// Returns an error of the provider's, shortened: it may hold what somebody typed.
fn said(error: &str, description: Option<&str>) -> String {
    let words = description.map_or_else(
        || error.to_owned(),
        |description| format!("{error}: {description}"),
    );
    words
        .chars()
        .filter(|letter| !letter.is_control())
        .take(300)
        .collect()
}

fn form_encoded(pairs: &[(&str, &str)]) -> String {
    let pair = |(name, value): &(&str, &str)| format!("{}={}", encoded(name), encoded(value));
    pairs.iter().map(pair).collect::<Vec<_>>().join("&")
}

/// Returns a text as `application/x-www-form-urlencoded` has it.
fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut whole, byte| {
        match byte {
            b' ' => whole.push('+'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => {
                whole.push(byte.into())
            }
            _ => whole += &format!("%{byte:02X}"),
        }
        whole
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_encoded_as_forms_are() {
        let form = [("a b", "c&d=é"), ("x", "~*-._")];
        assert_eq!(form_encoded(&form), "a+b=c%26d%3D%C3%A9&x=%7E*-._");
    }

    #[test]
    fn what_a_browser_keeps_comes_back_whole_or_not_at_all() {
        let begun = Begun::new().unwrap();
        let read = Begun::read(&begun.written()).unwrap();
        assert_eq!(
            (read.state, read.nonce, read.verifier),
            (
                begun.state.clone(),
                begun.nonce.clone(),
                begun.verifier.clone()
            )
        );
        for bad in [
            "",
            "..",
            &format!("{}.{}", begun.state, begun.nonce),
            &format!("{}.x", begun.written()),
        ] {
            assert!(Begun::read(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_provider_is_what_was_said_and_nothing_that_could_be_read_on_the_way() {
        let config = OidcConfig::new("https://id.example/realm", "adjutant");
        let document = |change: (&str, &str)| {
            let mut document = serde_json::json!({
                "issuer": "https://id.example/realm", "authorization_endpoint": "https://id.example/auth",
                "token_endpoint": "https://id.example/token", "jwks_uri": "https://id.example/keys",
            });
            document[change.0] = change.1.into();
            Provider::of(serde_json::from_value(document).unwrap(), &config).is_ok()
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
