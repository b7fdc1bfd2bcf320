//! Last-used times of tokens, written to the store at most once a minute per token.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use adjutant_core::port::{TokenKind, TokenRecord};
use jiff::{SignedDuration, Timestamp};

use crate::auth::AccessRules;

/// Shortest time between two writes for one token.
const NOTED: SignedDuration = SignedDuration::from_secs(60);
/// Number of tokens kept in memory before old entries are removed.
const REMEMBERED: usize = 1024;

/// Times at which this process last wrote a token's use, by the token's id.
#[derive(Debug, Default)]
pub(crate) struct TokenUses(Mutex<HashMap<String, Timestamp>>);

impl TokenUses {
    /// Returns true if a use now should be written to the store; it then counts as written.
    pub(crate) fn is_due(&self, record: &TokenRecord, now: Timestamp) -> bool {
        let is_old = |at: Timestamp| now.duration_since(at) >= NOTED;
        if !record.used_at.is_none_or(is_old) {
            return false;
        }
        // Concurrent requests all find the old time in the store; the first one writes.
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !noted.get(&record.id).copied().is_none_or(is_old) {
            return false;
        }
        if noted.len() >= REMEMBERED {
            noted.retain(|_, at| !is_old(*at));
        }
        noted.insert(record.id.clone(), now);
        true
    }
}

/// Returns the time at which a token expires if it is used now. Sessions are extended by each use.
pub(crate) fn expires_at(
    record: &TokenRecord,
    now: Timestamp,
    rules: &AccessRules,
) -> Option<Timestamp> {
    match (record.grant.kind, record.grant.ends_at) {
        (TokenKind::Session, Some(end)) => {
            Some(end.min(now.saturating_add(rules.session_idle).unwrap_or(end)))
        }
        _ => record.grant.expires_at,
    }
}

#[cfg(test)]
mod tests {
    use adjutant_core::UserId;
    use adjutant_core::port::TokenGrant;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn record() -> TokenRecord {
        let grant = TokenGrant::token(UserId::local(), "");
        TokenRecord {
            id: "a".to_owned(),
            grant,
            created_at: at(0),
            used_at: None,
            revoked_at: None,
        }
    }

    #[test]
    fn a_use_is_noted_once_a_minute() {
        let uses = TokenUses::default();
        let due = |used_at: Option<i64>, now| {
            uses.is_due(
                &TokenRecord {
                    used_at: used_at.map(at),
                    ..record()
                },
                at(now),
            )
        };
        assert!(due(None, 100));
        assert!(!due(None, 100) && !due(None, 159) && !due(Some(100), 159));
        assert!(due(None, 160) && !due(Some(100), 161));
        // Another process wrote it.
        assert!(!due(Some(300), 301) && due(Some(300), 360));
    }

    #[test]
    fn a_session_is_not_extended_beyond_its_longest_lifetime() {
        let rules = AccessRules::default();
        let day = |days: i64| at(days * 86_400);
        let mut session = record();
        session.grant.kind = TokenKind::Session;
        session.grant.ends_at = Some(day(180));
        assert_eq!(expires_at(&session, day(1), &rules), Some(day(31)));
        assert_eq!(expires_at(&session, day(170), &rules), Some(day(180)));
        let mut token = record();
        token.grant.expires_at = Some(day(7));
        assert_eq!(expires_at(&token, day(1), &rules), Some(day(7)));
        assert_eq!(expires_at(&record(), day(1), &rules), None);
    }
}
