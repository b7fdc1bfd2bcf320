//! Wire to core. Pure; a streamed answer ends in a whole one, so both are read here.

use adjutant_core::{Counters, FinishReason, GenerateResponse, ModelError, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::item;
use super::wire::{self, Reply};
use crate::assembly::Assembly;
use crate::error::Vendor;
use crate::openai::{cost_of_ticks, error};

/// Reads a whole answer.
pub(super) fn decode(
    body: &str,
    vendor: &Vendor,
    losses: Vec<String>,
) -> Result<GenerateResponse, ModelError> {
    let body: Value = serde_json::from_str(body).map_err(|error| vendor.not_json(&error, body))?;
    let reply = reply(&body, vendor)?;
    let status = match (&reply.status, &reply.output) {
        (Some(status), _) => status.clone(),
        // Servers that take the schema lightly.
        (None, Some(output)) if !output.is_empty() => "completed".to_owned(),
        (None, _) => {
            return Err(vendor.unreadable("neither a status nor an output", &body.to_string()));
        }
    };
    conclude(reply, &status, vendor, losses)
}

/// An answer, unless it is an error in the place of one.
pub(super) fn reply(body: &Value, vendor: &Vendor) -> Result<Reply, ModelError> {
    if let Some(error) = body.get("error").filter(|error| says_something(error)) {
        // Beside some errors stands their HTTP status.
        let whole = body.get("status").is_some_and(Value::is_number);
        return Err(error::inside(vendor, if whole { body } else { error }));
    }
    let answers = ["status", "output", "object"]
        .iter()
        .any(|field| body.get(field).is_some());
    let complains = ["detail", "message"]
        .iter()
        .any(|field| body.get(field).is_some());
    if complains && !answers {
        return Err(error::inside(vendor, body));
    }
    Reply::deserialize(body)
        .map_err(|error: serde_json::Error| vendor.unreadable(error, &body.to_string()))
}

/// What came of it. `status` is how it ended.
pub(super) fn conclude(
    reply: Reply,
    status: &str,
    vendor: &Vendor,
    losses: Vec<String>,
) -> Result<GenerateResponse, ModelError> {
    let mut assembly = Assembly::default();
    (0..)
        .zip(reply.output.unwrap_or_default())
        .for_each(|(at, item)| item::read(item, at, &mut assembly));
    let reason = reply.incomplete_details.and_then(|details| details.reason);
    let finish = match (status, reason.as_deref()) {
        // The second word is that of some servers in front of others.
        ("completed" | "complete", _) if assembly.has_calls() => FinishReason::ToolCalls,
        ("completed" | "complete", _) => FinishReason::Stop,
        ("incomplete", Some("max_output_tokens" | "max_tokens" | "length")) => {
            FinishReason::MaxTokens
        }
        ("incomplete", Some("content_filter")) => FinishReason::ContentFilter,
        ("incomplete", None) => return Err(vendor.truncated("it is incomplete, without a reason")),
        ("incomplete", Some(reason)) => {
            let words =
                format!("incomplete because of {reason}, which is no end of an answer we know");
            return Err(vendor.unreadable(words, ""));
        }
        ("failed", _) => {
            return Err(ModelError::Server {
                provider: vendor.model.provider.clone(),
                status: 200,
                retry_after: None,
                message: "it failed without saying why".to_owned(),
            });
        }
        ("in_progress" | "queued" | "cancelled" | "canceled", _) => {
            return Err(vendor.truncated(format!("its status is {status}")));
        }
        (other, _) => {
            return Err(vendor.unreadable(
                format!("status {other}, which is no end of an answer we know"),
                "",
            ));
        }
    };
    let sent = reply.usage.unwrap_or_default();
    let cost = sent.cost_in_usd_ticks.as_ref().and_then(cost_of_ticks);
    let (counters, usage) = usage(sent);
    Ok(GenerateResponse {
        parts: assembly.finish(&vendor.model),
        finish,
        usage,
        counters,
        cost,
        model: vendor.answered_by(reply.model),
        losses,
    })
}

/// The vendor's counts mean what ours do.
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

/// Some servers send an empty error where there is none.
fn says_something(error: &Value) -> bool {
    match error {
        Value::Null => false,
        Value::String(words) => !words.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}
