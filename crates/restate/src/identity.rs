//! Restate's request identity: calls are signed, and a worker with keys accepts only signed ones.
//!
//! A call carries a JSON Web Token whose audience is its path. The body is not signed: on an
//! untrusted network, put TLS in front of the worker. Source:
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

/// The header with the signature scheme.
const SCHEME: HeaderName = HeaderName::from_static("x-restate-signature-scheme");
/// The only signature scheme.
const V1: &str = "v1";
/// The header with the token of that scheme.
const TOKEN: HeaderName = HeaderName::from_static("x-restate-jwt-v1");
/// The beginning of a public key; the rest is base58.
const PREFIX: &str = "publickeyv1_";

/// A public key, as Restate shows it in its log: `publickeyv1_` and 32 bytes in base58.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PublicKey([u8; ED25519_PUBLIC_KEY_LEN]);

/// A text that is not a public key of Restate.
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

/// The reason why a call is refused.
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

/// Checks that a call has a valid signature by one of these keys. Without keys, every call passes.
///
/// # Errors
/// [`Refused`] with the reason.
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
    if headers.get(SCHEME).is_none_or(|scheme| scheme != V1) {
        return Err(Refused::Unsigned);
    }
    let token = headers.get(TOKEN).ok_or(Refused::Unsigned)?;
    // Causes are not reported: a caller that forges a signature learns nothing from the answer.
    let token = token.to_str().map_err(|_| Refused::Unreadable)?;
    let (signed, signature) = token.rsplit_once('.').ok_or(Refused::Unreadable)?;
    let (header, claims) = signed.split_once('.').ok_or(Refused::Unreadable)?;
    let Header { alg } = decode_json(header)?;
    if alg != "EdDSA" {
        return Err(Refused::Unreadable);
    }
    let signature = decode_base64(signature)?;
    let is_by = |key: &PublicKey| {
        UnparsedPublicKey::new(&ED25519, key.0)
            .verify(signed.as_bytes(), &signature)
            .is_ok()
    };
    if !keys.iter().any(is_by) {
        return Err(Refused::OtherKey);
    }
    let Claims { aud, exp, nbf } = decode_json(claims)?;
    if aud != signed_path(path) {
        return Err(Refused::OtherPath);
    }
    if now < nbf || exp <= now {
        Err(Refused::OtherTime)
    } else {
        Ok(())
    }
}

/// Returns the part of a path that Restate signs: without the path of the worker's own address.
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

fn decode_json<T: DeserializeOwned>(part: &str) -> Result<T, Refused> {
    serde_json::from_slice(&decode_base64(part)?).map_err(|_| Refused::Unreadable)
}

fn decode_base64(part: &str) -> Result<Vec<u8>, Refused> {
    BASE64_URL_SAFE_NO_PAD
        .decode(part)
        .map_err(|_| Refused::Unreadable)
}

#[cfg(test)]
mod tests;
