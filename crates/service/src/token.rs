//! Creation of bearer tokens: random secrets, of which only a digest is stored.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use sha2::{Digest as _, Sha256};

/// Prefix of every secret, so that secret scanners can recognise it.
pub(crate) const SECRET_PREFIX: &str = "adj_";

/// A newly created token. The secret is shown once; only the digest is stored.
#[derive(Debug)]
pub struct NewToken {
    /// The secret that a client sends as its bearer token.
    pub secret: String,
    /// SHA-256 of the secret, to be stored.
    pub digest: [u8; 32],
}

/// The operating system's random number generator failed.
#[derive(Debug, thiserror::Error)]
#[error("the system gives no random numbers, so no token can be made")]
pub struct NoRandomness;

/// Creates a bearer token of 256 random bits.
///
/// # Errors
/// [`NoRandomness`] if the operating system's random number generator fails.
///
/// # Examples
///
/// ```
/// let token = adjutant_service::new_token()?;
/// assert!(token.secret.starts_with("adj_"));
/// // Store `token.digest`, and show `token.secret` to its owner.
/// # Ok::<(), adjutant_service::NoRandomness>(())
/// ```
pub fn new_token() -> Result<NewToken, NoRandomness> {
    let secret = format!("{SECRET_PREFIX}{}", random_text()?);
    let digest = digest(&secret);
    Ok(NewToken { secret, digest })
}

/// Returns 256 random bits in base64url (letters, digits, `-` and `_`).
pub(crate) fn random_text() -> Result<String, NoRandomness> {
    let mut bytes = [0; 32];
    SystemRandom::new()
        .fill(&mut bytes)
        // `ring`'s error has no details.
        .map_err(|_| NoRandomness)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Returns the SHA-256 digest that is stored for a secret. A fast hash suffices, because secrets
/// have 256 random bits and cannot be guessed.
pub(crate) fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_and_differ() {
        let (a, b) = (new_token().unwrap(), new_token().unwrap());
        assert_ne!((&a.secret, a.digest), (&b.secret, b.digest));
        assert!(
            a.secret.starts_with("adj_") && a.secret.len() == 4 + 43,
            "{}",
            a.secret.len()
        );
        assert_eq!(digest(&a.secret), a.digest);
    }
}
