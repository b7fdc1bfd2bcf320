//! A vendor's failure as one of ours: by HTTP status, refined by what the vendor's body says.

use std::time::Duration;

use adjutant_core::{ModelError, ModelId, TimeBound};

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
    pub(crate) key_advice: String,
    /// What to do about a model that is not there, as a sentence; may be empty.
    pub(crate) model_advice: String,
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
    /// The model is not there.
    NoSuchModel,
    /// The vendor's safety system does not answer this.
    Refused,
    /// It failed on its side, whatever the status says.
    Server,
    /// Too many requests, whatever the status says.
    RateLimited,
    /// It cannot be done, and asking again does not help, whatever the status says.
    Impossible,
}

impl Vendor {
    /// The error behind a status inside an answer. `retry_after` is the header's.
    pub(crate) fn refused(
        &self,
        status: u16,
        retry_after: Option<Duration>,
        complaint: Complaint,
    ) -> ModelError {
        self.answered(status, retry_after, None, complaint)
    }

    /// The error behind an answer's status. `retry_after` and `request`, the vendor's name of the
    /// request, are the headers'.
    pub(crate) fn answered(
        &self,
        status: u16,
        retry_after: Option<Duration>,
        request: Option<&str>,
        complaint: Complaint,
    ) -> ModelError {
        let provider = self.model.provider.clone();
        let mut message = match cut(complaint.message.trim(), WORDS_MAX) {
            "" => format!("HTTP {status} without an explanation"),
            words => words.to_owned(),
        };
        if let Some(request) = request {
            message = format!("{message} (request {request})");
        }
        let wait = complaint.retry_after.or(retry_after);
        match (
            complaint
                .kind
                .or_else(|| by_words(status, &complaint.message)),
            status,
        ) {
            (Some(Kind::Quota), _) => ModelError::Quota { provider, message },
            (Some(Kind::Authentication), _) | (None, 401 | 403) => ModelError::Authentication {
                provider,
                message: format!("{message} {}", self.key_advice)
                    .trim_end()
                    .to_owned(),
            },
            (Some(Kind::ContextTooLong), _) => ModelError::ContextTooLong { provider, message },
            (Some(Kind::NoSuchModel), _) | (None, 404) => ModelError::NotFound {
                provider,
                model: self.model.name.clone(),
                message: format!("{message} {}", self.model_advice)
                    .trim_end()
                    .to_owned(),
            },
            (Some(Kind::Refused), _) => ModelError::Refused { provider, message },
            (Some(Kind::Server), _) => ModelError::Server {
                provider,
                status,
                message,
                retry_after: wait,
            },
            (Some(Kind::RateLimited), _) | (None, 429) => ModelError::RateLimited {
                provider,
                retry_after: wait,
            },
            // A time-out in between, a conflict that passes, too early: the vendors' own SDKs send
            // the first two again.
            (None, 408 | 409 | 425) => ModelError::Server {
                provider,
                status,
                message,
                retry_after: wait,
            },
            (Some(Kind::Impossible), _) | (None, 400..=499) => {
                ModelError::BadRequest { provider, message }
            }
            (None, 300..=399) => ModelError::BadRequest {
                provider,
                message: format!(
                    "HTTP {status}: the address redirects elsewhere, which is not followed; check the base URL"
                ),
            },
            (None, _) => ModelError::Server {
                provider,
                status,
                message,
                retry_after: wait,
            },
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
        ModelError::Truncated {
            provider: self.model.provider.clone(),
            reason: reason.into(),
        }
    }

    /// A body that is no JSON: cut off, or nonsense.
    pub(crate) fn not_json(&self, error: &serde_json::Error, raw: &str) -> ModelError {
        if error.is_eof() {
            self.truncated(format!("its JSON is cut off: {error}"))
        } else {
            self.unreadable(error, raw)
        }
    }

    /// The vendor's safety system refused.
    pub(crate) fn blocked(&self, message: impl Into<String>) -> ModelError {
        ModelError::Refused {
            provider: self.model.provider.clone(),
            message: message.into(),
        }
    }

    /// The model that answered: the one the answer names, else the one asked for.
    pub(crate) fn answered_by(&self, name: Option<String>) -> ModelId {
        let asked = &self.model;
        let name = name
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| asked.name.clone());
        ModelId {
            provider: asked.provider.clone(),
            name,
        }
    }

    /// No answer within a bound.
    pub(crate) fn timeout(&self, waited: Duration, bound: TimeBound) -> ModelError {
        ModelError::Timeout {
            provider: self.model.provider.clone(),
            waited,
            bound,
        }
    }

    /// No connection, or a broken one.
    pub(crate) fn network(&self, message: impl Into<String>) -> ModelError {
        ModelError::Network {
            provider: self.model.provider.clone(),
            message: message.into(),
        }
    }
}

/// Two statuses mean something of ours only if there are words that say so: any server in between
/// sends them too.
fn by_words(status: u16, words: &str) -> Option<Kind> {
    let words = words.to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
    match status {
        402 if says(&[
            "balance", "billing", "credit", "fund", "paid", "payment", "quota",
        ]) =>
        {
            Some(Kind::Quota)
        }
        413 if says(&["context", "maximum size", "token", "too large", "too long"]) => {
            Some(Kind::ContextTooLong)
        }
        _ => None,
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
            key_advice: "Set ACME_KEY.".into(),
            model_advice: "Look at acme models.".into(),
            complaint: |_, body| Complaint {
                message: body.to_owned(),
                ..Complaint::default()
            },
        }
    }

    fn check(status: u16, kind: Option<Kind>, expected: Expect) {
        let complaint = Complaint {
            message: "Its words.".into(),
            retry_after: None,
            kind,
        };
        let error = vendor().refused(status, Some(Duration::from_secs(3)), complaint);
        expected.assert_eq(&format!("{}: {error}", error.code()));
    }

    #[test]
    fn each_status_is_what_the_caller_does_next() {
        check(
            400,
            None,
            expect!["bad_request: acme rejected the request: Its words."],
        );
        check(
            400,
            Some(Kind::Authentication),
            expect!["auth: acme refused the credentials: Its words. Set ACME_KEY."],
        );
        check(
            400,
            Some(Kind::ContextTooLong),
            expect!["context_too_long: too long for acme: Its words."],
        );
        check(
            401,
            None,
            expect!["auth: acme refused the credentials: Its words. Set ACME_KEY."],
        );
        check(
            402,
            None,
            expect!["bad_request: acme rejected the request: Its words."],
        );
        check(
            402,
            Some(Kind::Quota),
            expect!["quota: acme: quota exhausted: Its words."],
        );
        check(
            403,
            None,
            expect!["auth: acme refused the credentials: Its words. Set ACME_KEY."],
        );
        check(
            404,
            None,
            expect![[r#"not_found: acme has no model "m1": Its words. Look at acme models."#]],
        );
        check(
            408,
            None,
            expect!["server: acme failed (HTTP 408): Its words."],
        );
        check(
            409,
            None,
            expect!["server: acme failed (HTTP 409): Its words."],
        );
        check(
            413,
            None,
            expect!["bad_request: acme rejected the request: Its words."],
        );
        check(
            425,
            None,
            expect!["server: acme failed (HTTP 425): Its words."],
        );
        check(
            422,
            None,
            expect!["bad_request: acme rejected the request: Its words."],
        );
        check(
            429,
            None,
            expect!["rate_limit: rate limited by acme; asks to wait 3 s"],
        );
        check(
            429,
            Some(Kind::Quota),
            expect!["quota: acme: quota exhausted: Its words."],
        );
        check(
            503,
            None,
            expect!["server: acme failed (HTTP 503): Its words."],
        );
        check(
            307,
            None,
            expect![
                "bad_request: acme rejected the request: HTTP 307: the address redirects elsewhere, which is not followed; check the base URL"
            ],
        );
    }

    #[test]
    fn words_may_say_more_than_a_status() {
        let code = |status: u16, words: &str| {
            let complaint = Complaint {
                message: words.into(),
                ..Complaint::default()
            };
            vendor().answered(status, None, None, complaint).code()
        };
        assert_eq!(code(402, "Insufficient Balance"), "quota");
        assert_eq!(code(402, "This request requires more credits."), "quota");
        assert_eq!(
            code(413, "Request too large for model x on tokens per minute"),
            "context_too_long"
        );
        assert_eq!(code(400, "This field is too long."), "bad_request");
    }

    #[test]
    fn a_request_has_a_name_to_ask_about() {
        let complaint = Complaint {
            message: "Oops. ".into(),
            ..Complaint::default()
        };
        let error = vendor()
            .answered(500, None, Some("req_7"), complaint)
            .to_string();
        assert_eq!(error, "acme failed (HTTP 500): Oops. (request req_7)");
        let error = vendor()
            .answered(502, None, Some("req_7"), Complaint::default())
            .to_string();
        assert_eq!(
            error,
            "acme failed (HTTP 502): HTTP 502 without an explanation (request req_7)"
        );
    }

    #[test]
    fn cutting_keeps_characters_whole() {
        assert_eq!(
            (cut("aé", 2), cut("aé", 3), cut("aé", 9)),
            ("a", "aé", "aé")
        );
    }
}
