//! Cache of an issuer's public keys (JSON Web Key Set). Keys are fetched when a token needs them.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse,
};
use jsonwebtoken::{Algorithm, DecodingKey};
use reqwest::{Client, Url};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::http;

/// Age after which the keys are fetched again before use.
const FRESH: Duration = Duration::from_secs(15 * 60);
/// Age after which keys are no longer used if the issuer does not answer.
const USABLE: Duration = Duration::from_secs(24 * 60 * 60);
/// Shortest time between two fetches, however many tokens with unknown keys clients send.
const FETCH_INTERVAL: Duration = Duration::from_secs(30);

/// An error that leaves the service without keys to verify tokens.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// The address of the keys is not https, and not on this machine.
    #[error("{0} is not an https:// address (http:// is for this machine only)")]
    Address(String),
    /// The keys cannot be read or fetched.
    #[error("the keys at {place} are not available: {reason}")]
    Unavailable {
        /// Path or address of the keys.
        place: String,
        /// Explanation with its causes.
        reason: String,
    },
    /// The key set has no key for an accepted algorithm.
    #[error("{place} holds no public key for RS256, ES256 or EdDSA (JSON Web Key Set, RFC 7517)")]
    None {
        /// Path or address of the keys.
        place: String,
    },
}

/// A public key with its id and algorithm.
#[derive(Clone)]
pub(super) struct Key {
    id: Option<String>,
    pub(super) algorithm: Algorithm,
    pub(super) key: DecodingKey,
}

/// A key set in a file or at an address, with its cached content.
pub(super) struct KeySet {
    source: Source,
    cached: RwLock<Option<Cached>>,
    /// Time of the last attempt to fetch. Locked during an attempt, so that concurrent requests
    /// share one.
    tried: Mutex<Option<Instant>>,
}

#[derive(Clone)]
struct Cached {
    keys: Arc<[Key]>,
    since: Instant,
}

enum Source {
    File(PathBuf),
    Address { url: Url, client: Client },
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeySet")
            .field(&self.source.to_string())
            .finish()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Address { url, .. } => write!(f, "{url}"),
        }
    }
}

impl KeySet {
    pub(super) fn in_file(path: PathBuf) -> Self {
        Self::new(Source::File(path))
    }

    pub(super) fn at_url(url: &str) -> Result<Self, KeysError> {
        let bad = || KeysError::Address(url.to_owned());
        let parsed = http::trusted_url(url).ok_or_else(bad)?;
        let client = http::client().map_err(|reason| KeysError::Unavailable {
            place: parsed.to_string(),
            reason,
        })?;
        Ok(Self::new(Source::Address {
            url: parsed,
            client,
        }))
    }

    fn new(source: Source) -> Self {
        Self {
            source,
            cached: RwLock::new(None),
            tried: Mutex::new(None),
        }
    }

    /// Returns the keys that may have signed a token with this key id and algorithm; empty if the
    /// issuer has no such key.
    ///
    /// # Errors
    /// [`KeysError`] if no keys are available at the moment.
    pub(super) async fn find(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Vec<Key>, KeysError> {
        let cached = self.cached();
        if let Some(cached) = cached.filter(|cached| cached.since.elapsed() < FRESH) {
            let found = fitting(&cached.keys, id, algorithm);
            // An unknown key id may be that of a key which the issuer has added since.
            if !found.is_empty() {
                return Ok(found);
            }
        }
        let loaded = self.load().await;
        // An issuer that does not answer locks no user out: its last keys are used meanwhile.
        match self.usable_keys() {
            Some(cached) => Ok(fitting(&cached.keys, id, algorithm)),
            None => Err(loaded.err().unwrap_or_else(|| {
                let reason = "it was tried just now".to_owned();
                self.unavailable(reason)
            })),
        }
    }

    /// Fetches the keys, unless that was tried less than [`FETCH_INTERVAL`] ago.
    ///
    /// # Errors
    /// [`KeysError`]; the cached keys stay.
    pub(super) async fn load(&self) -> Result<(), KeysError> {
        let mut tried = self.tried.lock().await;
        if tried.is_some_and(|at| at.elapsed() < FETCH_INTERVAL) {
            return Ok(());
        }
        // Set before the attempt, so that one whose request is dropped counts too.
        *tried = Some(Instant::now());
        let text = self
            .source
            .fetch()
            .await
            .map_err(|reason| self.unavailable(reason))?;
        let keys = parse(&text);
        if keys.is_empty() {
            return Err(KeysError::None {
                place: self.source.to_string(),
            });
        }
        let cached = Cached {
            keys: keys.into(),
            since: Instant::now(),
        };
        *self.cached.write().unwrap_or_else(PoisonError::into_inner) = Some(cached);
        Ok(())
    }

    /// Returns true if tokens can be verified at the moment.
    pub(super) fn is_usable(&self) -> bool {
        self.usable_keys().is_some()
    }

    fn usable_keys(&self) -> Option<Cached> {
        self.cached()
            .filter(|cached| cached.since.elapsed() < USABLE)
    }

    fn cached(&self) -> Option<Cached> {
        self.cached
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn unavailable(&self, reason: String) -> KeysError {
        KeysError::Unavailable {
            place: self.source.to_string(),
            reason,
        }
    }
}

impl Source {
    async fn fetch(&self) -> Result<String, String> {
        match self {
            Self::File(path) => tokio::fs::read_to_string(path)
                .await
                .map_err(|error| error.to_string()),
            Self::Address { url, client } => http::fetch(client.get(url.clone())).await,
        }
    }
}

fn fitting(keys: &[Key], id: Option<&str>, algorithm: Algorithm) -> Vec<Key> {
    let fits = |key: &&Key| key.algorithm == algorithm && (id.is_none() || key.id.as_deref() == id);
    keys.iter().filter(fits).cloned().collect()
}

/// Returns the usable keys of a JSON Web Key Set. Others, for other purposes, are skipped.
fn parse(text: &str) -> Vec<Key> {
    let Ok(Value::Object(mut set)) = serde_json::from_str(text) else {
        return Vec::new();
    };
    let Some(Value::Array(keys)) = set.get_mut("keys").map(Value::take) else {
        return Vec::new();
    };
    keys.into_iter()
        // Each key by itself: one of an unknown type must not make the others unusable.
        .filter_map(|key| usable(&serde_json::from_value(key).ok()?))
        .collect()
}

fn usable(jwk: &Jwk) -> Option<Key> {
    let algorithm = match &jwk.algorithm {
        // A key for RS384 or RS512 names its algorithm, and is left out below.
        AlgorithmParameters::RSA(_) => Algorithm::RS256,
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
            Algorithm::ES256
        }
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            Algorithm::EdDSA
        }
        // A symmetric key in a public key set is no secret.
        _ => return None,
    };
    let common = &jwk.common;
    // A key for encryption, or for another algorithm, must not verify signatures.
    let signs = matches!(common.public_key_use, None | Some(PublicKeyUse::Signature))
        && common
            .key_operations
            .as_ref()
            .is_none_or(|all| all.contains(&KeyOperations::Verify))
        && common
            .key_algorithm
            .is_none_or(|named| named == KeyAlgorithm::from(algorithm));
    // A key that the library cannot use is left out, like one of another type.
    let key = DecodingKey::from_jwk(jwk).ok().filter(|_| signs)?;
    Some(Key {
        id: common.key_id.clone(),
        algorithm,
        key,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7515, A.3.1.
    const EC: &str = r#""kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0""#;

    fn count(key: &str) -> usize {
        parse(&format!(r#"{{"keys":[{key}]}}"#)).len()
    }

    #[test]
    fn keys_for_other_purposes_are_left_alone() {
        for more in [
            "",
            r#","use":"sig""#,
            r#","alg":"ES256""#,
            r#","key_ops":["verify"]"#,
        ] {
            assert_eq!(count(&format!("{{{EC}{more}}}")), 1, "{more}");
        }
        for more in [
            r#","use":"enc""#,
            r#","alg":"ES384""#,
            r#","key_ops":["sign"]"#,
        ] {
            assert_eq!(count(&format!("{{{EC}{more}}}")), 0, "{more}");
        }
        for other in [
            r#"{"kty":"oct","k":"c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"}"#,
            r#"{"kty":"EC","crv":"P-384","x":"AA","y":"AA"}"#,
            r#"{"kty":"new","a":1}"#,
            "7",
        ] {
            assert_eq!(count(other), 0, "{other}");
            assert_eq!(count(&format!("{other},{{{EC}}}")), 1, "{other}");
        }
        assert!(
            parse("").is_empty() && parse("[]").is_empty() && parse(r#"{"keys":{}}"#).is_empty()
        );
    }

    #[test]
    fn plain_http_is_accepted_on_this_machine_only() {
        for good in [
            "https://id.example/keys",
            "http://127.0.0.1:1/keys",
            "http://localhost/k",
            "http://[::1]/k",
        ] {
            assert!(KeySet::at_url(good).is_ok(), "{good}");
        }
        for bad in [
            "http://id.example/keys",
            "file:///keys",
            "keys.json",
            "",
            "http://localhost.evil.example/",
        ] {
            assert_eq!(
                KeySet::at_url(bad).unwrap_err(),
                KeysError::Address(bad.to_owned())
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn unknown_keys_cause_a_fetch_at_a_limited_rate() {
        let folder = std::env::temp_dir().join(format!("jwks-{}", uuid::Uuid::now_v7()));
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("keys.json");
        let set = KeySet::in_file(file.clone());
        assert!(set.find(Some("a"), Algorithm::ES256).await.is_err() && !set.is_usable());
        let write = |id: &str| {
            std::fs::write(&file, format!(r#"{{"keys":[{{"kid":"{id}",{EC}}}]}}"#)).unwrap()
        };
        let has = async |id: &str| {
            set.find(Some(id), Algorithm::ES256)
                .await
                .is_ok_and(|found| !found.is_empty())
        };
        write("a");
        assert!(!has("a").await, "it was tried a moment ago");
        tokio::time::advance(FETCH_INTERVAL).await;
        assert!(has("a").await && set.is_usable());
        assert!(
            set.find(Some("a"), Algorithm::RS256)
                .await
                .unwrap()
                .is_empty()
        );
        write("b");
        tokio::time::advance(FETCH_INTERVAL).await;
        assert!(has("b").await && !has("a").await);
        // While the issuer does not answer, its last keys are used for a day.
        std::fs::remove_file(&file).unwrap();
        tokio::time::advance(FRESH).await;
        assert!(has("b").await);
        tokio::time::advance(USABLE).await;
        assert!(set.find(Some("b"), Algorithm::ES256).await.is_err());
        std::fs::remove_dir(&folder).unwrap();
    }
}
