//! Decodes answers. Pure; a streamed answer ends with a whole one, so both are decoded here.

use adjutant_core::{Counters, FinishReason, GenerateResponse, ModelError, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::item;
use super::wire::{self, Reply};
use crate::assembly::Assembly;
use crate::decode::check_content;
use crate::error::Vendor;
use crate::openai::common::cost_of_ticks;
use crate::openai::error;

/// Decodes a whole answer.
pub(super) fn decode(
    body: &str,
    vendor: &Vendor,
    losses: Vec<String>,
) -> Result<GenerateResponse, ModelError> {
    let body: Value = serde_json::from_str(body).map_err(|error| vendor.not_json(error, body))?;
    let reply = parse_reply(&body, vendor)?;
    let status = match (&reply.status, &reply.output) {
        (Some(status), _) => status.clone(),
        // Some servers with this API omit the status.
        (None, Some(output)) if !output.is_empty() => "completed".to_owned(),
        (None, _) => {
            return Err(vendor.invalid("neither a status nor an output", &body.to_string()));
        }
    };
    to_response(reply, &status, vendor, losses)
}

/// Parses an answer, or returns the error that was sent in its place.
pub(super) fn parse_reply(body: &Value, vendor: &Vendor) -> Result<Reply, ModelError> {
    if let Some(error) = body.get("error").filter(|error| is_set(error)) {
        // Some errors have their HTTP status beside them.
        let has_status = body.get("status").is_some_and(Value::is_number);
        return Err(error::in_answer(
            vendor,
            if has_status { body } else { error },
        ));
    }
    let has_any = |fields: &[&str]| fields.iter().any(|field| body.get(field).is_some());
    if has_any(&["detail", "message"]) && !has_any(&["status", "output", "object"]) {
        return Err(error::in_answer(vendor, body));
    }
    Reply::deserialize(body)
        .map_err(|error: serde_json::Error| vendor.invalid(error, &body.to_string()))
}

/// Converts an answer. `status` is how it ended.
pub(super) fn to_response(
    reply: Reply,
    status: &str,
    vendor: &Vendor,
    losses: Vec<String>,
) -> Result<GenerateResponse, ModelError> {
    let mut assembly = Assembly::default();
    for item in reply.output.unwrap_or_default() {
        item::add_to(&mut assembly, item);
    }
    let reason = reply.incomplete_details.and_then(|details| details.reason);
    let finish = match (status, reason.as_deref()) {
        // Some proxies write `complete`.
        ("completed" | "complete", _) => assembly.natural_end(),
        ("incomplete", Some("max_output_tokens" | "max_tokens" | "length")) => {
            FinishReason::MaxTokens
        }
        ("incomplete", Some("content_filter")) => FinishReason::ContentFilter,
        ("incomplete", None) => return Err(vendor.truncated("it is incomplete, without a reason")),
        ("incomplete", Some(reason)) => {
            let reason =
                format!("incomplete because of {reason}, which is no end of an answer we know");
            return Err(vendor.invalid(reason, ""));
        }
        ("failed", _) => {
            return Err(vendor.failed("it failed without saying why"));
        }
        ("in_progress" | "queued" | "cancelled" | "canceled", _) => {
            return Err(vendor.truncated(format!("its status is {status}")));
        }
        (other, _) => {
            return Err(vendor.invalid(
                format!("status {other}, which is no end of an answer we know"),
                "",
            ));
        }
    };
    let sent = reply.usage.unwrap_or_default();
    let cost = sent.cost_in_usd_ticks.as_ref().and_then(cost_of_ticks);
    let (counters, usage) = usage(sent);
    let response = GenerateResponse {
        parts: assembly.finish(&vendor.model),
        finish,
        usage,
        counters,
        cost,
        model: vendor.answered_by(reply.model),
        losses,
        certainty: None,
    };
    check_content(response, vendor)
}

/// Returns the token counts, as sent and in our meaning. Both include the same tokens.
fn usage(sent: wire::Usage) -> (Counters, Usage) {
    let input = sent.input_tokens_details.unwrap_or_default();
    let usage = Usage {
        input_tokens: sent.input_tokens,
        output_tokens: sent.output_tokens,
        cached_tokens: input.cached_tokens,
        cache_written_tokens: input.cache_write_tokens,
        thinking_tokens: sent
            .output_tokens_details
            .and_then(|details| details.reasoning_tokens),
    };
    (
        Counters {
            input: sent.input_tokens,
            output: sent.output_tokens,
        },
        usage,
    )
}

/// Returns true unless the error is empty, as some servers send it if there is none.
fn is_set(error: &Value) -> bool {
    match error {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}
