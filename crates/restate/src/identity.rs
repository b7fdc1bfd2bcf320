//! Restate's request identity: who calls the worker signs each call, and nobody else's is taken.
//!
//! A call brings a JSON Web Token of which the audience is its path. Its content is not signed:
//! over a network where somebody could change it, TLS belongs before the worker. Source:
//! restatedev/restate pull request 1349, and restate-sdk-shared-core, request identity (checked
//! 2026-11-26).

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hyper::HeaderMap;
use hyper::header::HeaderName;
use jiff::Timestamp;
use ring::signature::{ED25519, ED25519_PUBLIC_KEY_LEN, UnparsedPublicKey};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The header that says how the call is signed.
const SCHEME: HeaderName = HeaderName::from_static("x-restate-signature-scheme");
/// The only scheme there is.
const SIGNED: &str = "v1";
/// The header with the token of that scheme.
const TOKEN: HeaderName = HeaderName::from_static("x-restate-jwt-v1");
/// The beginning of a public key; the rest is base58.
const PREFIX: &str = "publickeyv1_";

/// A public key, as Restate shows it in its log: `publickeyv1_` and 32 bytes in base58.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PublicKey([u8; ED25519_PUBLIC_KEY_LEN]);

/// Not a public key of Restate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("key= takes a public key of Restate, publickeyv1_... (its log shows it)")]
pub(crate) struct InvalidKey;

impl FromStr for PublicKey {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        let mut key = [0; ED25519_PUBLIC_KEY_LEN];
        let digits = text.strip_prefix(PREFIX).ok_or(InvalidKey)?;
        match bs58::decode(digits).onto(&mut key) {
            Ok(ED25519_PUBLIC_KEY_LEN) => Ok(Self(key)),
            _ => Err(InvalidKey),
        }
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", bs58::encode(self.0).into_string())
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The reason why a call is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("it is not signed")]
    Unsigned,
    #[error("its signature cannot be read")]
    Unreadable,
    #[error("it is signed with another key")]
    OtherKey,
    #[error("its signature is for another path")]
    OtherPath,
    #[error("its signature is for another time; the clocks may differ")]
    OtherTime,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
}

#[derive(Deserialize)]
struct Claims {
    aud: String,
    /// Seconds since 1970, as the rest.
    exp: i64,
    nbf: i64,
}

/// Checks that a call is signed now with one of these keys, or that there are none and nothing is
/// checked.
///
/// # Errors
/// [`Refused`].
pub(crate) fn check(keys: &[PublicKey], path: &str, headers: &HeaderMap) -> Result<(), Refused> {
    if keys.is_empty() || path.rsplit('/').next() == Some("health") {
        return Ok(());
    }
    check_at(keys, path, headers, now())
}

#[expect(clippy::disallowed_methods, reason = "a signature holds for a minute")]
fn now() -> i64 {
    Timestamp::now().as_second()
}

fn check_at(keys: &[PublicKey], path: &str, headers: &HeaderMap, now: i64) -> Result<(), Refused> {
    if headers.get(SCHEME).is_none_or(|scheme| scheme != SIGNED) {
        return Err(Refused::Unsigned);
    }
    let token = headers.get(TOKEN).ok_or(Refused::Unsigned)?;
    let token = token.to_str().map_err(|_| Refused::Unreadable)?;
    let (signed, signature) = token.rsplit_once('.').ok_or(Refused::Unreadable)?;
    let (header, claims) = signed.split_once('.').ok_or(Refused::Unreadable)?;
    let Header { alg } = read(header)?;
    if alg != "EdDSA" {
        return Err(Refused::Unreadable);
    }
    let signature = decoded(signature)?;
    let is_by = |key: &PublicKey| {
        UnparsedPublicKey::new(&ED25519, key.0)
            .verify(signed.as_bytes(), &signature)
            .is_ok()
    };
    if !keys.iter().any(is_by) {
        return Err(Refused::OtherKey);
    }
    let Claims { aud, exp, nbf } = read(claims)?;
    if aud != signed_path(path) {
        return Err(Refused::OtherPath);
    }
    if now < nbf || exp <= now {
        Err(Refused::OtherTime)
    } else {
        Ok(())
    }
}

/// Returns the part of a path that Restate signs: without that of the worker's own address.
fn signed_path(path: &str) -> &str {
    let mut slashes = path.rmatch_indices('/').map(|(at, _)| at);
    let (Some(last), second, third) = (slashes.next(), slashes.next(), slashes.next()) else {
        return path;
    };
    match (second, third) {
        _ if &path[last..] == "/discover" => &path[last..],
        (Some(second), Some(third)) if &path[third..second] == "/invoke" => &path[third..],
        _ => path,
    }
}

fn read<T: DeserializeOwned>(part: &str) -> Result<T, Refused> {
    serde_json::from_slice(&decoded(part)?).map_err(|_| Refused::Unreadable)
}

fn decoded(part: &str) -> Result<Vec<u8>, Refused> {
    BASE64_URL_SAFE_NO_PAD
        .decode(part)
        .map_err(|_| Refused::Unreadable)
}

#[cfg(test)]
mod tests;
