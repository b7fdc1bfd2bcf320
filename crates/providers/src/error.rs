//! A vendor's failure as a [`ModelError`]: chosen by HTTP status, refined by the error body.

use std::time::Duration;

use adjutant_core::{ModelError, ModelId, TimeBound};

use crate::delay::Delay;
use crate::error_kind::{self, ErrorKind};

/// Bytes of an unreadable answer that are kept.
const RAW_MAX: usize = 64 * 1024;
/// Bytes of a vendor's error message that are kept.
const MESSAGE_MAX: usize = 2048;

/// The vendor and model of a request, as far as errors need them.
#[derive(Debug, Clone)]
pub(crate) struct Vendor {
    /// The model asked for.
    pub(crate) model: ModelId,
    /// A sentence on where to get a key, for errors about a refused one.
    pub(crate) key_advice: &'static str,
    /// A sentence on how to find models, for errors about an unknown one; may be empty.
    pub(crate) model_advice: String,
    /// Parses the body of an answer that is not 2xx.
    pub(crate) parse_error: fn(status: u16, body: &str) -> ErrorBody,
}

/// The content of a vendor's error body.
#[derive(Debug, Default)]
pub(crate) struct ErrorBody {
    /// The vendor's message; empty if there is none.
    pub(crate) message: String,
    /// The wait that the body asks for.
    pub(crate) retry_after: Option<Duration>,
    /// The kind of error, if the body is more specific than the status.
    pub(crate) kind: Option<ErrorKind>,
}

impl ErrorBody {
    /// Reads a body by its message and its codes. The kind is what they tell, if it is more than
    /// the status tells.
    pub(crate) fn read(status: u16, codes: &[String], message: String) -> Self {
        let kind = error_kind::read(status, codes, &message);
        // The retries know an overload by the words.
        let code = codes.iter().find(|code| error_kind::delay(code).is_some());
        let message = match code {
            Some(code) if error_kind::delay(&message).is_none() => format!("{code}: {message}"),
            _ => message,
        };
        Self {
            message,
            retry_after: None,
            kind,
        }
    }

    /// Reads a body that is not the vendor's JSON. A proxy's web page explains nothing; a line of
    /// text may.
    pub(crate) fn from_text(status: u16, body: &str) -> Self {
        if !body.trim_start().starts_with('<') {
            return Self::read(status, &[], body.to_owned());
        }
        // The vendors' own refusals of a key are JSON.
        if status == 403 {
            return Self {
                message: "HTTP 403 with a web page, as a firewall or proxy on the way sends it"
                    .to_owned(),
                kind: Some(ErrorKind::NotPermitted),
                retry_after: None,
            };
        }
        Self::default()
    }
}

impl Vendor {
    /// Returns the error for an HTTP answer. `retry_after` and `request`, the vendor's id of the
    /// request, are from the headers.
    pub(crate) fn error(
        &self,
        status: u16,
        retry_after: Option<Duration>,
        request: Option<&str>,
        body: ErrorBody,
    ) -> ModelError {
        let provider = self.model.provider.clone();
        let words = shown(&body.message);
        let with_request = |message: String| match request {
            Some(request) => format!("{message} (request {request})")
                .trim_start()
                .to_owned(),
            None => message,
        };
        let message = with_request(if words.is_empty() {
            format!("HTTP {status} without an explanation")
        } else {
            words.clone()
        });
        let advised = |advice: &str| format!("{message} {advice}").trim_end().to_owned();
        let retry_after = body.retry_after.or(retry_after);
        let server_error = |message| ModelError::Server {
            provider: self.model.provider.clone(),
            status,
            message,
            retry_after,
        };
        match (body.kind, status) {
            (Some(ErrorKind::Quota), _) => ModelError::Quota { provider, message },
            (Some(ErrorKind::NotPermitted), _) => ModelError::NotPermitted { provider, message },
            (Some(ErrorKind::Authentication), _) | (None, 401 | 403) => {
                ModelError::Authentication {
                    provider,
                    message: advised(self.key_advice),
                }
            }
            (Some(ErrorKind::ContextTooLong), _) => {
                ModelError::ContextTooLong { provider, message }
            }
            (Some(ErrorKind::NoSuchModel), _) | (None, 404) => ModelError::NotFound {
                provider,
                model: self.model.name.clone(),
                message: advised(&self.model_advice),
            },
            (Some(ErrorKind::Refused), _) => ModelError::Refused { provider, message },
            (Some(ErrorKind::RateLimited), _) | (None, 429) => ModelError::RateLimited {
                provider,
                // The kind says it all if there are no words.
                message: with_request(words),
                retry_after,
            },
            (None, 300..=399) => ModelError::BadRequest {
                provider,
                message: format!(
                    "HTTP {status}: the address redirects elsewhere, which is not followed; check the base URL"
                ),
            },
            // A time-out of a proxy, a conflict that passes, too early: the vendors' own SDKs retry
            // the first two, so they count as failures of the server.
            (None, 408 | 409 | 425) | (Some(ErrorKind::Server), _) => server_error(message),
            (None, 400..=499) | (Some(ErrorKind::Impossible), _) => {
                ModelError::BadRequest { provider, message }
            }
            (None, _) => server_error(message),
        }
    }

    /// Returns the error for an answer that is not what the vendor documents.
    pub(crate) fn invalid(&self, reason: impl ToString, raw: &str) -> ModelError {
        ModelError::InvalidResponse {
            provider: self.model.provider.clone(),
            reason: reason.to_string(),
            raw: truncate(raw, RAW_MAX).to_owned(),
            source: None,
        }
    }

    /// Returns the error for an answer that stopped before its end.
    pub(crate) fn truncated(&self, reason: impl Into<String>) -> ModelError {
        ModelError::Truncated {
            provider: self.model.provider.clone(),
            reason: reason.into(),
            source: None,
        }
    }

    /// Returns the error for a body that is not JSON: cut off, or malformed.
    pub(crate) fn not_json(&self, error: serde_json::Error, raw: &str) -> ModelError {
        let failure = if error.is_eof() {
            self.truncated(format!("its JSON is cut off: {error}"))
        } else {
            self.invalid(&error, raw)
        };
        failure.with_source(error)
    }

    /// Returns an error for a failure of the server that came within an answer, with status 200.
    pub(crate) fn failed(&self, message: impl Into<String>) -> ModelError {
        ModelError::Server {
            provider: self.model.provider.clone(),
            status: 200,
            retry_after: None,
            message: message.into(),
        }
    }

    /// Returns the error for a request that the vendor's safety system refused.
    pub(crate) fn blocked(&self, message: impl Into<String>) -> ModelError {
        ModelError::Refused {
            provider: self.model.provider.clone(),
            message: message.into(),
        }
    }

    /// Returns the model that answered: the one the answer names, else the requested one.
    pub(crate) fn answered_by(&self, name: Option<String>) -> ModelId {
        let requested = &self.model;
        let name = name
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| requested.name.clone());
        ModelId {
            provider: requested.provider.clone(),
            name,
        }
    }

    /// Returns the error for an answer that did not come within a bound.
    pub(crate) fn timeout(&self, waited: Duration, bound: TimeBound) -> ModelError {
        ModelError::Timeout {
            provider: self.model.provider.clone(),
            waited,
            bound,
        }
    }

    /// Returns the error for a connection that could not be opened, or broke.
    pub(crate) fn network(&self, message: impl Into<String>) -> ModelError {
        ModelError::Network {
            provider: self.model.provider.clone(),
            message: message.into(),
            source: None,
        }
    }
}

/// Returns the delay that an error tells of, if it tells of one.
pub(crate) fn delay(error: &ModelError) -> Option<Delay> {
    match error {
        // Anthropic's status of an overload, and Groq's.
        ModelError::Server {
            status: 498 | 529, ..
        } => Some(Delay::Overload),
        // The server knows when it will be back.
        ModelError::Server {
            status: 503,
            message,
            retry_after: Some(_),
            ..
        } => error_kind::delay(message).or(Some(Delay::Overload)),
        ModelError::Server { message, .. } | ModelError::RateLimited { message, .. } => {
            error_kind::delay(message)
        }
        _ => None,
    }
}

/// Returns a vendor's message as logs and terminals show it: one bounded line without control
/// characters.
fn shown(message: &str) -> String {
    let visible = |c: &char| c.is_whitespace() || !c.is_control();
    let visible: String = message.chars().filter(visible).collect();
    let line = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    truncate(&line, MESSAGE_MAX).to_owned()
}

/// Returns at most `max` bytes of a text, cut between characters.
fn truncate(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    // Cutting inside a character would panic.
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
            model_advice: "Look at acme models.".into(),
            parse_error: |_, body| ErrorBody {
                message: body.to_owned(),
                ..ErrorBody::default()
            },
        }
    }

    fn check(status: u16, kind: Option<ErrorKind>, expected: Expect) {
        let body = ErrorBody {
            message: "Its words.".into(),
            retry_after: None,
            kind,
        };
        let error = vendor().error(status, Some(Duration::from_secs(3)), None, body);
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
            Some(ErrorKind::Authentication),
            expect!["auth: acme refused the credentials: Its words. Set ACME_KEY."],
        );
        check(
            400,
            Some(ErrorKind::ContextTooLong),
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
            Some(ErrorKind::Quota),
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
            expect!["rate_limit: rate limited by acme; asks to wait 3 s: Its words."],
        );
        check(
            429,
            Some(ErrorKind::Quota),
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
    fn a_message_is_one_line_without_control_characters() {
        let body = ErrorBody {
            message: "\u{1b}[31mNo\r\n  credit\u{7} left.\n".into(),
            kind: Some(ErrorKind::Quota),
            ..ErrorBody::default()
        };
        let error = vendor().error(429, None, None, body).to_string();
        assert_eq!(error, "acme: quota exhausted: [31mNo credit left.");
    }

    #[test]
    fn a_request_has_a_name_to_ask_about() {
        let body = ErrorBody {
            message: "Oops. ".into(),
            ..ErrorBody::default()
        };
        let error = vendor().error(500, None, Some("req_7"), body).to_string();
        assert_eq!(error, "acme failed (HTTP 500): Oops. (request req_7)");
        let error = vendor()
            .error(502, None, Some("req_7"), ErrorBody::default())
            .to_string();
        assert_eq!(
            error,
            "acme failed (HTTP 502): HTTP 502 without an explanation (request req_7)"
        );
    }

    #[test]
    fn an_overload_is_known_by_its_status_its_words_or_its_end() {
        let server = |status, message: &str, wait: Option<u64>| ModelError::Server {
            provider: vendor().model.provider,
            status,
            message: message.into(),
            retry_after: wait.map(Duration::from_secs),
        };
        let in_stream = ErrorBody::read(200, &["server_is_overloaded".into()], "Sorry.".into());
        let limited = ErrorBody::read(429, &[], "We are experiencing high traffic.".into());
        for (error, expected) in [
            (server(529, "HTTP 529", None), Some(Delay::Overload)),
            (server(503, "HTTP 503", Some(3)), Some(Delay::Overload)),
            (server(503, "Loading model", Some(3)), Some(Delay::Loading)),
            (
                server(503, "Model m is currently loading", None),
                Some(Delay::Loading),
            ),
            (
                server(500, "The server is overloaded.", None),
                Some(Delay::Overload),
            ),
            (vendor().failed(in_stream.message), Some(Delay::Overload)),
            (
                vendor().error(429, None, None, limited),
                Some(Delay::Overload),
            ),
            (server(503, "HTTP 503", None), None),
            (
                server(500, "An internal error. Please try again later.", None),
                None,
            ),
            (vendor().network("overloaded"), None),
        ] {
            assert_eq!(delay(&error), expected, "{error}");
        }
    }

    #[test]
    fn cutting_keeps_characters_whole() {
        assert_eq!(
            (truncate("aé", 2), truncate("aé", 3), truncate("aé", 9)),
            ("a", "aé", "aé")
        );
    }
}
