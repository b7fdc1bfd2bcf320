//! A vendor's failure as one of ours: by HTTP status, refined by what the vendor's body says.

use std::time::Duration;

use adjutant_core::{ModelError, ModelId};

/// Bytes of an unreadable answer that are kept.
const RAW_MAX: usize = 64 * 1024;
/// Bytes of a vendor's words that are kept.
const WORDS_MAX: usize = 2048;

/// Whom a request goes to, as far as its failures are concerned.
#[derive(Debug, Clone)]
pub(crate) struct Vendor {
    /// The model asked for.
    pub(crate) model: ModelId,
    /// What to do about a refused key, as a sentence.
    pub(crate) key_advice: &'static str,
    /// Reads the body of an error answer.
    pub(crate) complaint: fn(status: u16, body: &str) -> Complaint,
}

/// What a vendor's error body says.
#[derive(Debug, Default)]
pub(crate) struct Complaint {
    /// The vendor's words; empty if there were none.
    pub(crate) message: String,
    /// How long to wait, if the body says.
    pub(crate) retry_after: Option<Duration>,
    /// What it is, where the status alone says something else.
    pub(crate) kind: Option<Kind>,
}

/// What a failure is beyond its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Out of credit or over the plan.
    Quota,
    /// The key is missing or wrong.
    Authentication,
    /// The request does not fit the window.
    ContextTooLong,
}

impl Vendor {
    /// The error behind a status. `retry_after` is the header's.
    pub(crate) fn refused(
        &self,
        status: u16,
        retry_after: Option<Duration>,
        complaint: Complaint,
    ) -> ModelError {
        let provider = self.model.provider.clone();
        let message = match cut(complaint.message.trim(), WORDS_MAX) {
            "" => format!("HTTP {status} without an explanation"),
            words => words.to_owned(),
        };
        match (complaint.kind, status) {
            (Some(Kind::Quota), _) | (None, 402) => ModelError::Quota { provider, message },
            (Some(Kind::Authentication), _) | (None, 401 | 403) => {
                ModelError::Authentication { provider, message: format!("{message} {}", self.key_advice) }
            }
            (Some(Kind::ContextTooLong), _) | (None, 413) => ModelError::ContextTooLong { provider, message },
            (None, 404) => ModelError::NotFound { provider, model: self.model.name.clone(), message },
            (None, 429) => {
                ModelError::RateLimited { provider, retry_after: complaint.retry_after.or(retry_after) }
            }
            (None, 408) => ModelError::Server { provider, status, message },
            (None, 400..=499) => ModelError::BadRequest { provider, message },
            (None, 300..=399) => ModelError::BadRequest {
                provider,
                message: format!(
                    "HTTP {status}: the address redirects elsewhere, which is not followed; check the base URL"
                ),
            },
            (None, _) => ModelError::Server { provider, status, message },
        }
    }

    /// The answer is not what the vendor documents.
    pub(crate) fn unreadable(&self, reason: impl ToString, raw: &str) -> ModelError {
        ModelError::InvalidResponse {
            provider: self.model.provider.clone(),
            reason: reason.to_string(),
            raw: cut(raw, RAW_MAX).to_owned(),
        }
    }

    /// The answer stopped before its end.
    pub(crate) fn truncated(&self, reason: impl Into<String>) -> ModelError {
        ModelError::Truncated { provider: self.model.provider.clone(), reason: reason.into() }
    }

    /// A body that is no JSON: cut off, or nonsense.
    pub(crate) fn not_json(&self, error: &serde_json::Error, raw: &str) -> ModelError {
        if error.is_eof() {
            self.truncated(format!("its JSON is cut off: {error}"))
        } else {
            self.unreadable(error, raw)
        }
    }

    /// No answer within a bound.
    pub(crate) fn timeout(&self, waited: Duration) -> ModelError {
        ModelError::Timeout { provider: self.model.provider.clone(), waited }
    }

    /// No connection, or a broken one.
    pub(crate) fn network(&self, message: impl Into<String>) -> ModelError {
        ModelError::Network { provider: self.model.provider.clone(), message: message.into() }
    }
}

/// At most `max` bytes of a text, whole characters only.
fn cut(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn vendor() -> Vendor {
        Vendor {
            model: ModelId::new("acme", "m1").unwrap(),
            key_advice: "Set ACME_KEY.",
            complaint: |_, body| Complaint { message: body.to_owned(), ..Complaint::default() },
        }
    }

    fn check(status: u16, kind: Option<Kind>, expected: Expect) {
        let complaint = Complaint { message: "Its words.".into(), retry_after: None, kind };
        let error = vendor().refused(status, Some(Duration::from_secs(3)), complaint);
        expected.assert_eq(&format!("{}: {error}", error.code()));
    }

    #[test]
    fn each_status_is_what_the_caller_does_next() {
        check(400, None, expect!["bad_request: acme rejected the request: Its words."]);
        check(
            400,
            Some(Kind::Authentication),
            expect!["auth: acme refused the credentials: Its words. Set ACME_KEY."],
        );
        check(400, Some(Kind::ContextTooLong), expect!["context_too_long: too long for acme: Its words."]);
        check(401, None, expect!["auth: acme refused the credentials: Its words. Set ACME_KEY."]);
        check(402, None, expect!["quota: acme: quota exhausted: Its words."]);
        check(403, None, expect!["auth: acme refused the credentials: Its words. Set ACME_KEY."]);
        check(404, None, expect![[r#"not_found: acme has no model "m1": Its words."#]]);
        check(422, None, expect!["bad_request: acme rejected the request: Its words."]);
        check(429, None, expect!["rate_limit: rate limited by acme; asks to wait 3 s"]);
        check(429, Some(Kind::Quota), expect!["quota: acme: quota exhausted: Its words."]);
        check(503, None, expect!["server: acme failed (HTTP 503): Its words."]);
        check(
            307,
            None,
            expect![
                "bad_request: acme rejected the request: HTTP 307: the address redirects elsewhere, which is not followed; check the base URL"
            ],
        );
    }

    #[test]
    fn cutting_keeps_characters_whole() {
        assert_eq!((cut("aé", 2), cut("aé", 3), cut("aé", 9)), ("a", "aé", "aé"));
    }
}
