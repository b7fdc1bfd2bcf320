//! What Gemini says about a failure.

use std::time::Duration;

use adjutant_core::ModelError;

use super::wire::{ErrorBody, Status};
use crate::error::{Complaint, Kind, Vendor};

/// Reads the body of an answer that is not 2xx.
pub(super) fn complaint(status: u16, body: &str) -> Complaint {
    match serde_json::from_str(body) {
        Ok(body) => of(status, &innermost(body)),
        // A page of a proxy in between explains nothing; a line of text may.
        Err(_) if body.trim_start().starts_with('<') => Complaint::default(),
        Err(_) => Complaint {
            message: body.to_owned(),
            ..Complaint::default()
        },
    }
}

/// An error that came inside a 200.
pub(super) fn inside(vendor: &Vendor, status: &Status) -> ModelError {
    match status.code {
        code @ (400..=404 | 413 | 429) => vendor.refused(code, None, of(code, status)),
        code => ModelError::Server {
            provider: vendor.model.provider.clone(),
            status: 200,
            retry_after: of(code, status).retry_after,
            message: format!("{code} {}: {}", status.status, status.message),
        },
    }
}

/// An error object among what is no event of a stream, if there is one.
pub(super) fn stray(lines: &str) -> Option<Status> {
    let start = lines.find(['{', '['])?;
    serde_json::from_str(&lines[start..]).ok().map(innermost)
}

fn innermost(body: ErrorBody) -> Status {
    match body {
        ErrorBody::One { error } => error,
        ErrorBody::Many(bodies) => bodies.into_iter().next().map(innermost).unwrap_or_default(),
    }
}

fn of(code: u16, status: &Status) -> Complaint {
    let retry_after = status
        .details
        .iter()
        .find_map(|detail| seconds(detail.get("retryDelay")?.as_str()?));
    let words = status.message.to_lowercase();
    let about = |reason: &str| {
        status
            .details
            .iter()
            .any(|detail| detail.get("reason") == Some(&reason.into()))
    };
    let daily = || {
        let violations = status
            .details
            .iter()
            .filter_map(|detail| detail.get("violations")?.as_array())
            .flatten();
        violations
            .filter_map(|violation| violation.get("quotaId")?.as_str())
            .any(|id| id.contains("PerDay"))
    };
    let kind = match code {
        // A wrong key is a 400 here (recorded), with this reason where there are details.
        400 if about("API_KEY_INVALID") || words.contains("api key") => Some(Kind::Authentication),
        400 if words.contains("token count") && words.contains("exceed") => {
            Some(Kind::ContextTooLong)
        }
        // The same status and the same words are used for a busy minute and for an empty account;
        // waiting helps only the first. A limit of 0 is a plan that does not include the model.
        429 if daily() || words.contains("limit: 0") || words.contains("depleted") => {
            Some(Kind::Quota)
        }
        _ => None,
    };
    Complaint {
        message: status.message.clone(),
        retry_after,
        kind,
    }
}

/// A protobuf duration in JSON: `34.074824224s`.
fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.strip_suffix('s')?.parse().ok()?).ok()
}
