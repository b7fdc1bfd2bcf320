//! Error bodies of Google's APIs: `google.rpc.Status`.

use std::time::Duration;

use adjutant_core::ModelError;

use super::wire::{ErrorAnswer, Status};
use crate::error::{ErrorBody, Vendor};
use crate::error_kind::ErrorKind;

/// Parses the body of an answer that is not 2xx.
pub(super) fn parse(status: u16, body: &str) -> ErrorBody {
    serde_json::from_str(body).map_or_else(
        |_| ErrorBody::from_text(status, body),
        |body| classify(status, &innermost(body)),
    )
}

/// Returns the error for an error object inside a 200.
pub(super) fn in_answer(vendor: &Vendor, status: &Status) -> ModelError {
    match status.code {
        // Other codes, such as 499 or 503, are failures of the server in the middle of an answer.
        code @ (400..=404 | 413 | 429) => vendor.error(code, None, None, classify(code, status)),
        code => ModelError::Server {
            provider: vendor.model.provider.clone(),
            status: 200,
            retry_after: classify(code, status).retry_after,
            message: format!("{code} {}: {}", status.status, status.message),
        },
    }
}

/// Finds an error object among lines of a stream that were no events.
pub(super) fn parse_stray(lines: &str) -> Option<Status> {
    let start = lines.find(['{', '['])?;
    serde_json::from_str(&lines[start..]).ok().map(innermost)
}

fn innermost(body: ErrorAnswer) -> Status {
    match body {
        ErrorAnswer::One { error } => error,
        ErrorAnswer::Many(bodies) => bodies.into_iter().next().map(innermost).unwrap_or_default(),
    }
}

fn classify(code: u16, status: &Status) -> ErrorBody {
    let retry_after = status
        .details
        .iter()
        .find_map(|detail| parse_seconds(detail.get("retryDelay")?.as_str()?));
    let message = status.message.to_lowercase();
    let mut codes = vec![status.status.clone()];
    let reasons = status
        .details
        .iter()
        .filter_map(|detail| detail.get("reason")?.as_str());
    codes.extend(reasons.map(str::to_owned));
    let is_daily = || {
        let violations = status
            .details
            .iter()
            .filter_map(|detail| detail.get("violations")?.as_array())
            .flatten();
        violations
            .filter_map(|violation| violation.get("quotaId")?.as_str())
            .any(|id| id.contains("PerDay"))
    };
    let mut body = ErrorBody::read(code, &codes, status.message.clone());
    body.retry_after = retry_after;
    match code {
        // A wrong key is a 400 here (recorded), with or without a reason among the details.
        400 if message.contains("api key") => body.kind = Some(ErrorKind::Authentication),
        // The status and the message are the same for a busy minute and for an empty account, but
        // waiting helps only the first. A limit of 0 is a plan that does not include the model.
        429 if is_daily() || message.contains("limit: 0") => body.kind = Some(ErrorKind::Quota),
        // A wait is asked for only where it helps.
        429 if retry_after.is_some() => body.kind = Some(ErrorKind::RateLimited),
        _ => {}
    }
    body
}

/// Parses a protobuf duration in JSON: `34.074824224s`.
fn parse_seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.strip_suffix('s')?.parse().ok()?).ok()
}
