//! What came of a call, as MCP says it: `{success, data?, error?}` as structured content, and the same as text for clients
//! that read only that.

use adjutant_core::{PendingCall, ToolResult};
use rmcp::model::CallToolResult;
use serde_json::json;

use super::ask::TOKEN;

/// It ran.
pub(super) fn done(result: &ToolResult) -> CallToolResult {
    match (result.success, &result.data, &result.error) {
        (true, data, _) => CallToolResult::structured(json!({ "success": true, "data": data })),
        // What data a failure has says the same as its words, and is not what the tool's schema describes.
        (false, _, error) => failed(error.as_deref().unwrap_or("it failed, and did not say why")),
    }
}

/// It did not run, or failed: the words are for whoever called.
pub(super) fn failed(error: &str) -> CallToolResult {
    CallToolResult::structured_error(json!({ "success": false, "error": error }))
}

/// It runs when it comes again with the token.
pub(super) fn confirmation_required(pending: &PendingCall, token: &str) -> CallToolResult {
    let message = format!(
        "Nothing was done yet. Show the preview to the person. If they agree, call {} again with the same arguments and \
         this {TOKEN}, before expires_at; if they do not, leave it.",
        pending.tool
    );
    CallToolResult::structured(json!({
        "success": false,
        "status": "confirmation_required",
        TOKEN: token,
        "preview": pending.preview,
        "expires_at": pending.expires_at,
        "message": message,
    }))
}

/// The person did not agree, or was not there to.
pub(super) fn declined(message: &str) -> CallToolResult {
    CallToolResult::structured(json!({ "success": false, "status": "declined", "message": message }))
}
