//! Tokens: long random words that stand for a user. Only their digest is kept.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use sha2::{Digest as _, Sha256};

/// Prefix of the secrets that are made here.
pub(crate) const OURS: &str = "adj_";

/// A token that was just made. Its secret is shown once and kept nowhere.
#[derive(Debug)]
pub struct NewToken {
    /// What the client sends.
    pub secret: String,
    /// What is kept: SHA-256 of the secret.
    pub digest: [u8; 32],
}

/// The system gave no randomness.
#[derive(Debug, thiserror::Error)]
#[error("the system gives no random numbers, so no token can be made")]
pub struct NoRandomness;

/// Makes a token of 256 random bits.
///
/// # Errors
/// [`NoRandomness`].
pub fn new_token() -> Result<NewToken, NoRandomness> {
    let secret = format!("{OURS}{}", random()?);
    let digest = digest(&secret);
    Ok(NewToken { secret, digest })
}

/// Returns 256 random bits as a text of letters, digits, `-` and `_`.
pub(crate) fn random() -> Result<String, NoRandomness> {
    let mut bytes = [0; 32];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| NoRandomness)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// What is kept of a secret.
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
