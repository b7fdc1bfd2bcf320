//! What came of a call, as MCP says it: `{success, data?, error?}` as structured content, and the
//! same as text for clients that read only that.

use adjutant_core::{PendingCall, ToolResult};
use rmcp::model::CallToolResult;
use serde_json::json;

use super::ask::CONFIRMATION_ID;

/// It ran.
pub(super) fn done(result: &ToolResult) -> CallToolResult {
    match (result.success, &result.data, &result.error) {
        (true, data, _) => CallToolResult::structured(json!({ "success": true, "data": data })),
        // What data a failure has says the same as its words, and is not what the tool's schema
        // describes.
        (false, _, error) => failed(error.as_deref().unwrap_or("it failed, and did not say why")),
    }
}

/// It did not run, or failed: the words are for whoever called.
pub(super) fn failed(error: &str) -> CallToolResult {
    CallToolResult::structured_error(json!({ "success": false, "error": error }))
}

/// It waits until a person agrees elsewhere. With the id `tool` can be asked again what became of
/// it.
pub(super) fn waits_elsewhere(tool: &str, pending: &[PendingCall], id: &str) -> CallToolResult {
    let message = format!(
        "Nothing was done yet, and you cannot confirm it. Tell the person what the preview says, and that it waits for their \
         yes on the agent's web page or with `adjutant pending`. When they say that they have answered, call {tool} again with \
         the same arguments and this {CONFIRMATION_ID} to learn what became of it."
    );
    let previews: Vec<&str> = pending.iter().map(|call| call.preview.as_str()).collect();
    CallToolResult::structured(json!({
        "success": false,
        "status": "confirmation_required",
        CONFIRMATION_ID: id,
        "preview": previews.join("\n"),
        "expires_at": pending.iter().map(|call| call.expires_at).min(),
        "message": message,
    }))
}

/// The person did not agree, or was not there to.
pub(super) fn declined(message: &str) -> CallToolResult {
    CallToolResult::structured(
        json!({ "success": false, "status": "declined", "message": message }),
    )
}
