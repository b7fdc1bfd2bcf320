//! The wait that response headers ask for. Pure.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// Returns the wait an error answer asks for: `retry-after-ms` (OpenAI, Azure), `Retry-After`, else
/// the time after which a used-up rate limit is reset.
pub(crate) fn from_headers(headers: &HeaderMap) -> Option<Duration> {
    milliseconds(headers)
        .or_else(|| retry_after(headers))
        .or_else(|| limit_reset(headers))
}

fn milliseconds(headers: &HeaderMap) -> Option<Duration> {
    let milliseconds: f64 = header_text(headers, "retry-after-ms")?.parse().ok()?;
    Duration::try_from_secs_f64(milliseconds / 1000.0).ok()
}

/// Parses `Retry-After`: seconds, or a date. A date is compared with the server's own `Date`,
/// because our clock may be wrong.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = header_text(headers, RETRY_AFTER.as_str())?;
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let (at, now) = (
        http_date(value)?,
        http_date(header_text(headers, DATE.as_str())?)?,
    );
    Some(at.duration_since(now).try_into().unwrap_or(Duration::ZERO))
}

/// Returns the longest wait of the rate limits that are used up. Source: OpenAI's guide "Rate
/// limits", table of headers (checked 2026-11-22).
fn limit_reset(headers: &HeaderMap) -> Option<Duration> {
    let reset = |limit: &str| {
        let used_up = header_text(headers, &format!("x-ratelimit-remaining-{limit}")) == Some("0");
        parse_duration(
            header_text(headers, &format!("x-ratelimit-reset-{limit}")).filter(|_| used_up)?,
        )
    };
    // A request needs both limits, so the later reset counts.
    reset("requests").max(reset("tokens"))
}

/// Returns the text of a header, if it has one of that name and in ASCII.
pub(crate) fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

fn http_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::parse(text)
        .ok()
        .map(|date| date.timestamp())
}

/// Parses a duration as Go writes it (`6m0s`, `59.7s`, `20ms`), or seconds without a unit (Azure).
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let unit_at = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, behind) = rest.split_at(unit_at);
        let next = behind
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(next);
        let scale = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" | "" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" | "μs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * scale;
        rest = behind;
    }
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|_| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn check(sent: &[(&'static str, &str)], milliseconds: Option<u64>) {
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            headers.insert(
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            );
        }
        assert_eq!(
            from_headers(&headers),
            milliseconds.map(Duration::from_millis),
            "{sent:?}"
        );
    }

    #[test]
    fn a_wait_is_seconds_or_a_date() {
        for (value, expected) in [
            ("7", Some(7_000)),
            ("0.5", Some(500)),
            ("Wed, 21 Oct 2026 07:28:30 GMT", Some(30_000)),
            ("Wed, 21 Oct 2026 07:27:00 GMT", Some(0)),
            ("-3", None),
            ("NaN", None),
            ("soon", None),
        ] {
            check(
                &[
                    ("retry-after", value),
                    ("date", "Wed, 21 Oct 2026 07:28:00 GMT"),
                ],
                expected,
            );
        }
        check(&[("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")], None);
        check(&[], None);
    }

    #[test]
    fn the_more_exact_header_comes_first() {
        check(
            &[("retry-after", "2"), ("retry-after-ms", "1250")],
            Some(1_250),
        );
        check(
            &[("retry-after", "2"), ("retry-after-ms", "soon")],
            Some(2_000),
        );
    }

    #[test]
    fn a_used_up_limit_says_when_it_is_open_again() {
        let limits = |requests: &str, tokens: &str, expected| {
            check(
                &[
                    ("x-ratelimit-remaining-requests", requests),
                    ("x-ratelimit-reset-requests", "1m0.5s"),
                    ("x-ratelimit-remaining-tokens", tokens),
                    ("x-ratelimit-reset-tokens", "6h0m20ms"),
                ],
                expected,
            );
        };
        limits("0", "100", Some(60_500));
        limits("5", "0", Some(21_600_020));
        limits("0", "0", Some(21_600_020));
        limits("5", "100", None);
        limits("-1", "-1", None);
        check(
            &[
                ("x-ratelimit-remaining-tokens", "0"),
                ("x-ratelimit-reset-tokens", "42"),
            ],
            Some(42_000),
        );
        check(&[("x-ratelimit-remaining-tokens", "0")], None);
        for nonsense in ["", "s", "1 s", "1.2.3s", "-5s", "2d"] {
            check(
                &[
                    ("x-ratelimit-remaining-tokens", "0"),
                    ("x-ratelimit-reset-tokens", nonsense),
                ],
                None,
            );
        }
    }
}
