//! Tokens that stand for one shown call: a client that cannot ask the person itself gets one with the preview, and sends it
//! back with the same call when the person has agreed.
//!
//! A token is signed, not stored: the id minted for the call, when it expires, and a MAC over these, the user and the
//! digest of the call (its id, its tool and its arguments, references resolved). So it fits one user's one call, and what is
//! deleted is what was shown. It is good once: within a process by the list of used ones here, and otherwise by the
//! tool-invocation log, in which a call that ran stands under the same id (`Agent::call_tool`).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use adjutant_core::{CallId, PendingCall, TurnId, UserId};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use subtle::ConstantTimeEq as _;
use uuid::Uuid;

/// Says what the MAC is about, so that it can be taken for nothing else under the same secret.
const ABOUT: &[u8] = b"adjutant mcp confirmation 1";
/// Bytes of the MAC in a token: half of what HMAC-SHA-256 gives, because a model has to copy it.
const MAC: usize = 16;

/// What tokens are signed with: 256 random bits.
#[derive(Clone)]
pub struct Secret([u8; 32]);

/// The system gave no randomness.
#[derive(Debug, thiserror::Error)]
#[error("the system gives no random numbers, so nothing can be signed")]
pub struct NoRandomness;

impl Secret {
    /// These bits. They have to be random, and nobody's but the servers'.
    #[must_use]
    pub fn new(bits: [u8; 32]) -> Self {
        Self(bits)
    }

    /// A new one.
    ///
    /// # Errors
    /// [`NoRandomness`].
    pub fn random() -> Result<Self, NoRandomness> {
        let mut bits = [0; 32];
        SystemRandom::new().fill(&mut bits).map_err(|_| NoRandomness)?;
        Ok(Self(bits))
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Makes tokens, and knows those it made.
pub(super) struct Confirmations {
    key: hmac::Key,
    expiry: SignedDuration,
    /// Calls whose token was used, until it would have expired.
    used: Mutex<HashMap<TurnId, Timestamp>>,
}

/// A token as it came, read and not believed yet.
pub(super) struct Token {
    turn: TurnId,
    expires_ms: i64,
    mac: [u8; MAC],
}

/// Why a token does not confirm a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotConfirmed {
    /// It was not made for this call of this user, or not here.
    Unknown,
    /// It came too late.
    Expired,
    /// It confirmed the call before.
    Used,
}

impl Confirmations {
    pub(super) fn new(secret: &Secret, expiry: Duration) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, &secret.0),
            expiry: SignedDuration::try_from(expiry).unwrap_or(SignedDuration::MAX),
            used: Mutex::new(HashMap::new()),
        }
    }

    /// The same call, with the time a client has to confirm it.
    pub(super) fn shown(&self, pending: PendingCall) -> PendingCall {
        let expires_at = pending.requested_at.checked_add(self.expiry).unwrap_or(Timestamp::MAX);
        PendingCall { expires_at: expires_at.min(pending.expires_at), ..pending }
    }

    /// How long a person can be asked.
    pub(super) fn expiry(&self) -> Duration {
        Duration::try_from(self.expiry).unwrap_or_default()
    }

    /// The token of a shown call.
    pub(super) fn token(&self, user: &UserId, pending: &PendingCall) -> String {
        // A call that no human made cannot be here; it would get a token that confirms nothing.
        let turn = pending.call_id.human_turn().unwrap_or(TurnId(Uuid::nil()));
        let expires_ms = pending.expires_at.as_millisecond();
        let mut bytes = Vec::with_capacity(24 + MAC);
        bytes.extend(turn.0.as_bytes());
        bytes.extend(expires_ms.to_be_bytes());
        bytes.extend(self.mac(user, &pending.digest, expires_ms));
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Whether the token was made for this call, which is the one it names, and is good now; after that it is not any more.
    /// What comes back can be executed.
    pub(super) fn confirm(
        &self,
        token: &Token,
        user: &UserId,
        pending: PendingCall,
    ) -> Result<PendingCall, NotConfirmed> {
        let expected = self.mac(user, &pending.digest, token.expires_ms);
        if !bool::from(expected.ct_eq(&token.mac)) {
            return Err(NotConfirmed::Unknown);
        }
        let now = pending.requested_at;
        let expires_at = Timestamp::from_millisecond(token.expires_ms).map_err(|_| NotConfirmed::Unknown)?;
        if expires_at <= now {
            return Err(NotConfirmed::Expired);
        }
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|_, expires_at| *expires_at > now);
        if used.insert(token.turn, expires_at).is_some() {
            return Err(NotConfirmed::Used);
        }
        Ok(PendingCall { expires_at, ..pending })
    }

    fn mac(&self, user: &UserId, digest: &str, expires_ms: i64) -> [u8; MAC] {
        let mut context = hmac::Context::with_key(&self.key);
        for part in [ABOUT, user.as_str().as_bytes(), digest.as_bytes()] {
            context.update(&part.len().to_be_bytes());
            context.update(part);
        }
        context.update(&expires_ms.to_be_bytes());
        let mut mac = [0; MAC];
        mac.iter_mut().zip(context.sign().as_ref()).for_each(|(to, from)| *to = *from);
        mac
    }
}

impl Token {
    /// Reads a token. `None`: it is none.
    pub(super) fn read(text: &str) -> Option<Self> {
        let bytes: [u8; 24 + MAC] = URL_SAFE_NO_PAD.decode(text.trim()).ok()?.try_into().ok()?;
        let (turn, rest) = bytes.split_first_chunk::<16>()?;
        let (expires_ms, mac) = rest.split_first_chunk::<8>()?;
        Some(Self {
            turn: TurnId(Uuid::from_bytes(*turn)),
            expires_ms: i64::from_be_bytes(*expires_ms),
            mac: mac.try_into().ok()?,
        })
    }

    /// The call it names, with nothing in it that would let it run: asked about it, the gate says what it is.
    pub(super) fn named(&self, tool: &str) -> PendingCall {
        PendingCall {
            call_id: CallId::human(self.turn),
            tool: tool.to_owned(),
            arguments: Default::default(),
            preview: String::new(),
            digest: String::new(),
            requested_at: Timestamp::MIN,
            expires_at: Timestamp::MIN,
            doubt: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(at: &str) -> PendingCall {
        let turn = TurnId(Uuid::from_u128(7));
        let requested_at: Timestamp = at.parse().unwrap();
        PendingCall {
            digest: "d1".to_owned(),
            requested_at,
            expires_at: requested_at + SignedDuration::from_hours(1),
            ..Token { turn, expires_ms: 0, mac: [0; MAC] }.named("delete_task")
        }
    }

    fn user(name: &str) -> UserId {
        UserId::new(name).unwrap()
    }

    const AT: &str = "2026-11-22T10:00:00Z";

    /// The token of a call shown at [`AT`], as it comes back.
    fn sent(confirmations: &Confirmations) -> (String, Token) {
        let text = confirmations.token(&user("ana"), &confirmations.shown(pending(AT)));
        let token = Token::read(&text).unwrap();
        (text, token)
    }

    fn confirmations() -> Confirmations {
        Confirmations::new(&Secret::new([1; 32]), Duration::from_secs(120))
    }

    #[test]
    fn it_confirms_what_was_shown_once() {
        let confirmations = confirmations();
        let (text, token) = sent(&confirmations);
        assert_eq!(text.len(), 54, "short enough to be copied by a model");
        let confirmed = confirmations.confirm(&token, &user("ana"), pending("2026-11-22T10:01:59Z")).unwrap();
        assert_eq!(confirmed.expires_at, "2026-11-22T10:02:00Z".parse().unwrap());
        let again = confirmations.confirm(&token, &user("ana"), pending("2026-11-22T10:01:59Z"));
        assert_eq!(again, Err(NotConfirmed::Used));
    }

    #[test]
    fn not_late_not_for_others_not_for_other_calls() {
        let confirmations = confirmations();
        let (text, token) = sent(&confirmations);
        let other = PendingCall { digest: "d2".to_owned(), ..pending(AT) };
        let late = pending("2026-11-22T10:02:00Z");
        assert_eq!(confirmations.confirm(&token, &user("ana"), late), Err(NotConfirmed::Expired));
        assert_eq!(confirmations.confirm(&token, &user("ben"), pending(AT)), Err(NotConfirmed::Unknown));
        assert_eq!(confirmations.confirm(&token, &user("ana"), other), Err(NotConfirmed::Unknown));
        let elsewhere = Confirmations::new(&Secret::new([2; 32]), Duration::from_secs(120));
        assert_eq!(elsewhere.confirm(&token, &user("ana"), pending(AT)), Err(NotConfirmed::Unknown));
        // No bit of it can be changed, the expiry's neither; the call's own bits are in its digest.
        let bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
        for bit in (16 * 8)..(bytes.len() * 8) {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let changed = Token::read(&URL_SAFE_NO_PAD.encode(changed)).unwrap();
            assert_eq!(
                confirmations.confirm(&changed, &user("ana"), pending(AT)),
                Err(NotConfirmed::Unknown),
                "bit {bit}"
            );
        }
        assert!(confirmations.confirm(&token, &user("ana"), pending(AT)).is_ok(), "none of that used it up");
    }

    #[test]
    fn another_replica_with_the_same_secret_takes_it() {
        let (_, token) = sent(&confirmations());
        assert!(confirmations().confirm(&token, &user("ana"), pending(AT)).is_ok());
    }

    #[test]
    fn what_is_no_token_is_none() {
        for text in ["", "yes", "AAAA", &"A".repeat(53), &"A".repeat(55), "ä"] {
            assert!(Token::read(text).is_none(), "{text}");
        }
        assert!(Token::read(&"A".repeat(54)).is_some());
    }
}
