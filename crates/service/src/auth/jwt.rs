//! Verification of JSON Web Tokens. The user is the claim `sub`, or another that was configured.

use std::fmt;
use std::path::PathBuf;

use adjutant_core::port::{TokenScope, TokenScopes};
use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::crypto::{self, ALGORITHMS};
use super::jwks::{KeySet, KeysError};
use super::rules::RoleRules;
use crate::problem::Problem;

/// Shortest secret for HS256, in bytes: the size of the hash (RFC 7518, 3.2).
const SECRET_MIN: usize = 32;
/// Tolerated difference between clocks, in seconds.
const LEEWAY: u64 = 60;

/// Begins the names of this service's scopes, among those of other services in the same claim.
const SCOPE_PREFIX: &str = "adjutant:";

/// Verifier of JSON Web Tokens of an external issuer.
///
/// A token must be signed with HS256 (a shared secret), or with RS256, ES256 or EdDSA (the issuer's
/// keys), must have an expiry in the future, and must name the configured issuer and audience.
/// Clocks may differ by a minute.
///
/// # Examples
///
/// ```
/// use adjutant_service::Jwt;
///
/// let secret = b"at-least-32-bytes-of-shared-secret";
/// let jwt = Jwt::with_secret(secret, Some("https://id.example".to_owned()), Vec::new())?;
/// # Ok::<(), adjutant_service::InvalidJwt>(())
/// ```
pub struct Jwt {
    keys: Keys,
    issuer: Option<String>,
    audience: Vec<String>,
}

enum Keys {
    Secret(DecodingKey),
    Set(KeySet),
}

/// An error for JWT settings that cannot be used, or would be unsafe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidJwt {
    /// The shared secret is short enough to be guessed.
    #[error("a secret for HS256 has at least {SECRET_MIN} bytes")]
    ShortSecret,
    /// The issuer or the audience is missing. An issuer signs tokens for other services too, which
    /// must not open this one.
    #[error("an issuer's keys need the issuer and the audience that its tokens have to name")]
    AnyIssuerOrAudience,
    /// The issuer's keys cannot be used.
    #[error(transparent)]
    Keys(#[from] KeysError),
}

/// The claims of a JSON Web Token.
#[derive(Deserialize)]
pub(super) struct Claims {
    pub(super) sub: String,
    /// At most one (RFC 7519, 4.1.1): deserialization fails for a list, which the library would
    /// accept if it contains the configured issuer.
    #[serde(rename = "iss")]
    _issuer: Option<String>,
    #[serde(flatten)]
    pub(super) others: Map<String, Value>,
}

impl Claims {
    /// Returns the expiry, if it is a valid time.
    pub(super) fn expires_at(&self) -> Option<Timestamp> {
        // Seconds since 1970, possibly with a fraction (RFC 7519, 2).
        let seconds = self.others.get("exp")?.as_f64()?;
        SignedDuration::try_from_secs_f64(seconds)
            .ok()
            .and_then(|since| Timestamp::from_duration(since).ok())
    }

    /// Returns the strings of a claim: one, or those of a list. The name may be a path into an
    /// object, such as `realm_access.roles`.
    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        let whole = self.others.get(name);
        let found = whole.or_else(|| {
            let (first, rest) = name.split_once('.')?;
            rest.split('.')
                .try_fold(self.others.get(first)?, |value, part| value.get(part))
        });
        match found {
            Some(Value::String(text)) => vec![text.clone()],
            Some(Value::Array(all)) => all
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the scopes of this service in the claim `scope`, whose values are separated by spaces
    /// (RFC 8693, 4.2). A token without any of them has every scope: its issuer does not use them.
    pub(super) fn scopes(&self) -> TokenScopes {
        let claim = self.texts("scope");
        let named: Vec<TokenScope> = claim
            .iter()
            .flat_map(|text| text.split_whitespace())
            .filter_map(|name| name.strip_prefix(SCOPE_PREFIX)?.parse().ok())
            .collect();
        match named.is_empty() {
            true => TokenScopes::ALL,
            false => named.into_iter().collect(),
        }
    }

    /// Returns the roles or groups in the claim that the rules name.
    pub(super) fn roles(&self, rules: &RoleRules) -> Vec<String> {
        rules
            .claim
            .as_deref()
            .map(|claim| self.texts(claim))
            .unwrap_or_default()
    }
}

impl fmt::Debug for Jwt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jwt")
            .field("issuer", &self.issuer)
            .field("audience", &self.audience)
            .finish_non_exhaustive()
    }
}

impl Jwt {
    /// Creates a verifier for tokens signed with a shared secret (HS256). `issuer` and `audience`
    /// are checked if given.
    ///
    /// # Errors
    /// [`InvalidJwt::ShortSecret`] if the secret has fewer than 32 bytes.
    pub fn with_secret(
        secret: &[u8],
        issuer: Option<String>,
        audience: Vec<String>,
    ) -> Result<Self, InvalidJwt> {
        if secret.len() < SECRET_MIN {
            return Err(InvalidJwt::ShortSecret);
        }
        Ok(Self::new(
            Keys::Secret(DecodingKey::from_secret(secret)),
            issuer,
            audience,
        ))
    }

    /// Creates a verifier with a JSON Web Key Set in a file. The file is read again when a token
    /// names a key that is not in it, at most every 30 seconds.
    ///
    /// # Errors
    /// [`InvalidJwt::AnyIssuerOrAudience`] if the issuer or the audience is missing. The file is
    /// not read yet; see [`Jwt::load`].
    pub fn with_key_file(
        path: PathBuf,
        issuer: Option<String>,
        audience: Vec<String>,
    ) -> Result<Self, InvalidJwt> {
        Self::with_keys(KeySet::in_file(path), issuer, audience)
    }

    /// Creates a verifier with a JSON Web Key Set at an https address (http on this machine). The
    /// keys are fetched again when they are older than 15 minutes and when a token names an unknown
    /// key, at most every 30 seconds. While the issuer does not answer, the last keys are used for
    /// a day.
    ///
    /// # Errors
    /// [`InvalidJwt`] if the address is not trustworthy, or the issuer or the audience is missing.
    /// Nothing is fetched yet; see [`Jwt::load`].
    pub fn with_key_url(
        url: &str,
        issuer: Option<String>,
        audience: Vec<String>,
    ) -> Result<Self, InvalidJwt> {
        Self::with_keys(KeySet::at_url(url)?, issuer, audience)
    }

    fn with_keys(
        keys: KeySet,
        issuer: Option<String>,
        audience: Vec<String>,
    ) -> Result<Self, InvalidJwt> {
        if issuer.is_none() || audience.is_empty() {
            return Err(InvalidJwt::AnyIssuerOrAudience);
        }
        Ok(Self::new(Keys::Set(keys), issuer, audience))
    }

    fn new(keys: Keys, issuer: Option<String>, audience: Vec<String>) -> Self {
        crypto::install();
        Self {
            keys,
            issuer,
            audience,
        }
    }

    /// Fetches the issuer's keys, to find errors before the first request. Does nothing with a
    /// shared secret.
    ///
    /// # Errors
    /// [`KeysError`] if the keys cannot be fetched; the next token causes another attempt.
    pub async fn load(&self) -> Result<(), KeysError> {
        match &self.keys {
            Keys::Secret(_) => Ok(()),
            Keys::Set(set) => set.load().await,
        }
    }

    /// Returns true if tokens can be verified at the moment.
    pub(crate) fn is_usable(&self) -> bool {
        match &self.keys {
            Keys::Secret(_) => true,
            Keys::Set(set) => set.is_usable(),
        }
    }

    /// Verifies a token and returns its claims.
    pub(super) async fn claims(&self, token: &str) -> Result<Claims, Problem> {
        let header = decode_header(token).map_err(|error| refused(error.kind()))?;
        // `crit` names extensions that must be understood (RFC 7515, 4.1.11); none is supported.
        if !ALGORITHMS.contains(&header.alg) || header.crit.is_some() {
            return Err(refused(&ErrorKind::InvalidAlgorithm));
        }
        let validation = self.validation(header.alg);
        let check = |key: &DecodingKey| {
            let token = decode::<Claims>(token, key, &validation);
            token
                .map(|token| token.claims)
                .map_err(|error| error.into_kind())
        };
        let checked = match &self.keys {
            Keys::Secret(key) if header.alg == Algorithm::HS256 => check(key),
            Keys::Secret(_) => Err(ErrorKind::InvalidAlgorithm),
            // An attacker could use a public key as the secret of an HMAC (RFC 8725, 2.1).
            Keys::Set(_) if header.alg == Algorithm::HS256 => Err(ErrorKind::InvalidAlgorithm),
            Keys::Set(set) => {
                let found = set.find(header.kid.as_deref(), header.alg).await;
                let found = found.map_err(|error| {
                    tracing::error!(%error, "tokens cannot be checked");
                    Problem::no_keys()
                })?;
                let unknown: Result<Claims, ErrorKind> = Err(ErrorKind::InvalidSignature);
                // A token without a key id may be signed with any of them.
                found.iter().fold(unknown, |checked, key| match checked {
                    Err(ErrorKind::InvalidSignature) => check(&key.key),
                    settled => settled,
                })
            }
        };
        checked.map_err(|error| refused(&error))
    }

    fn validation(&self, algorithm: Algorithm) -> Validation {
        let mut validation = Validation::new(algorithm);
        validation.leeway = LEEWAY;
        // Off by default in the library.
        validation.validate_nbf = true;
        let mut required = vec!["exp", "sub"];
        if let Some(issuer) = &self.issuer {
            validation.set_issuer(&[issuer]);
            required.push("iss");
        }
        // With validation on and no audience configured, the library would refuse every token that
        // has one.
        validation.validate_aud = !self.audience.is_empty();
        if validation.validate_aud {
            validation.set_audience(&self.audience);
            required.push("aud");
        }
        validation.set_required_spec_claims(&required);
        validation
    }
}

/// Converts a verification error. Only errors that a client can act on have texts of their own.
fn refused(error: &ErrorKind) -> Problem {
    Problem::unauthorized(match error {
        ErrorKind::ExpiredSignature => "the token has expired",
        ErrorKind::ImmatureSignature => "the token is not valid yet",
        ErrorKind::InvalidIssuer => "the token is not from the issuer this service trusts",
        ErrorKind::InvalidAudience => "the token is not for this service",
        ErrorKind::MissingRequiredClaim(_) => {
            "the token lacks one of the claims this service needs"
        }
        ErrorKind::InvalidAlgorithm | ErrorKind::UnsupportedAlgorithm => {
            "the token is not signed in a way this service takes"
        }
        _ => "the token cannot be read, or its signature is not the issuer's",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
    use jsonwebtoken::get_current_timestamp as now;
    use ring::hmac;
    use serde_json::json;

    const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

    fn token(header: &Value, claims: &Value) -> String {
        let message = format!(
            "{}.{}",
            BASE64.encode(header.to_string()),
            BASE64.encode(claims.to_string())
        );
        let signature = hmac::sign(
            &hmac::Key::new(hmac::HMAC_SHA256, SECRET),
            message.as_bytes(),
        );
        format!("{message}.{}", BASE64.encode(signature.as_ref()))
    }

    fn jwt() -> Jwt {
        Jwt::with_secret(
            SECRET,
            Some("issuer".to_owned()),
            vec!["adjutant".to_owned()],
        )
        .unwrap()
    }

    async fn user(header: Value, claims: Value) -> Option<String> {
        user_of(&jwt(), &token(&header, &claims)).await
    }

    async fn user_of(jwt: &Jwt, token: &str) -> Option<String> {
        jwt.claims(token).await.ok().map(|claims| claims.sub)
    }

    fn claims(change: Value) -> Value {
        let mut claims =
            json!({"sub": "ana", "iss": "issuer", "aud": ["adjutant", "x"], "exp": now() + 600});
        for (name, value) in change.as_object().unwrap() {
            if value.is_null() {
                claims.as_object_mut().unwrap().shift_remove(name);
            } else {
                claims[name] = value.clone();
            }
        }
        claims
    }

    #[tokio::test]
    async fn only_a_valid_token_names_a_user() {
        let header = json!({"alg": "HS256"});
        assert_eq!(
            user(header.clone(), claims(json!({}))).await.as_deref(),
            Some("ana")
        );
        assert_eq!(
            user(header.clone(), claims(json!({"aud": "adjutant"})))
                .await
                .as_deref(),
            Some("ana")
        );
        for change in [
            json!({"exp": now() - 600}),
            json!({"exp": null}),
            json!({"exp": "soon"}),
            json!({"nbf": now() + 600}),
            json!({"iss": "another"}),
            json!({"iss": null}),
            json!({"aud": "another"}),
            json!({"aud": null}),
            json!({"sub": null}),
            json!({"sub": 7}),
        ] {
            assert_eq!(
                user(header.clone(), claims(change.clone())).await,
                None,
                "{change}"
            );
        }
        for header in [
            json!({"alg": "none"}),
            json!({"alg": "HS512"}),
            json!({"alg": "RS256"}),
            json!({"alg": "HS256", "crit": ["exp"]}),
            json!({}),
        ] {
            assert_eq!(
                user(header.clone(), claims(json!({}))).await,
                None,
                "{header}"
            );
        }
    }

    #[tokio::test]
    async fn claims_are_read_from_lists_paths_and_dotted_names() {
        let said = json!({"groups": ["a", 7, "b"], "role": "c", "realm_access": {"roles": ["d"]}, "x.y": "e"});
        let claims = jwt()
            .claims(&token(&json!({"alg": "HS256"}), &claims(said)))
            .await
            .unwrap();
        for (name, texts) in [
            ("groups", &["a", "b"][..]),
            ("role", &["c"]),
            ("realm_access.roles", &["d"]),
            ("x.y", &["e"]),
            ("realm_access", &[]),
            ("realm_access.none.roles", &[]),
            ("none", &[]),
            ("", &[]),
        ] {
            assert_eq!(claims.texts(name), texts, "{name}");
        }
    }

    #[tokio::test]
    async fn a_token_with_several_issuers_is_refused() {
        let any = Jwt::with_secret(SECRET, None, Vec::new()).unwrap();
        for issuers in [
            json!(["issuer"]),
            json!(["issuer", "another"]),
            json!({"issuer": 1}),
        ] {
            let token = token(&json!({"alg": "HS256"}), &claims(json!({ "iss": issuers })));
            assert!(
                user_of(&jwt(), &token).await.is_none() && user_of(&any, &token).await.is_none(),
                "{issuers}"
            );
        }
    }

    #[tokio::test]
    async fn an_invalid_token_is_refused() {
        let whole = token(&json!({"alg": "HS256"}), &claims(json!({})));
        let (message, _) = whole.rsplit_once('.').unwrap();
        for bad in [
            "",
            "a.b.c",
            "..",
            message,
            &format!("{message}."),
            &format!("{whole}A"),
            &format!("{whole}.x"),
        ] {
            assert!(jwt().claims(bad).await.is_err(), "{bad}");
        }
    }

    #[test]
    fn insecure_jwt_settings_are_refused() {
        assert_eq!(
            Jwt::with_secret(&SECRET[1..], None, Vec::new()).unwrap_err(),
            InvalidJwt::ShortSecret
        );
        let issuer = || Some("issuer".to_owned());
        let audience = || vec!["adjutant".to_owned()];
        for (issuer, audience) in [
            (None, audience()),
            (issuer(), Vec::new()),
            (None, Vec::new()),
        ] {
            let refused =
                Jwt::with_key_file(PathBuf::from("keys.json"), issuer, audience).unwrap_err();
            assert_eq!(refused, InvalidJwt::AnyIssuerOrAudience);
        }
    }

    #[tokio::test]
    async fn scopes_are_those_of_this_service_in_the_claim() {
        let scopes = async |claim: Value| {
            let token = token(&json!({"alg": "HS256"}), &claims(json!({"scope": claim})));
            let claims = jwt().claims(&token).await.ok();
            claims.unwrap().scopes().to_string()
        };
        for (claim, expected) in [
            (json!("adjutant:read adjutant:write"), "read write"),
            (json!("openid adjutant:answer\temail"), "answer"),
            (json!(["adjutant:read", "openid"]), "read"),
            // Names of a later version are not ours; the others count.
            (json!("adjutant:read adjutant:fly"), "read"),
            (json!("openid read write"), "read write answer"),
            (json!(""), "read write answer"),
            (Value::Null, "read write answer"),
        ] {
            assert_eq!(scopes(claim.clone()).await, expected, "{claim}");
        }
    }
}
