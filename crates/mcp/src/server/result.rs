//! Results of calls in MCP: `{success, data?, error?, note?}` as structured content, and the same as text
//! for clients that read only that.

use adjutant_core::{PendingCall, ToolResult};
use rmcp::model::CallToolResult;
use serde_json::{Value, json};

use super::confirmation::CONFIRMATION_ID;

/// Converts the result of a tool.
pub(super) fn done(result: &ToolResult) -> CallToolResult {
    let (mut content, answer): (_, fn(Value) -> CallToolResult) = if result.success {
        (
            json!({ "success": true, "data": result.data }),
            CallToolResult::structured,
        )
    } else {
        // The data of a failure repeats its message, and does not match the output schema.
        let error = result.error.as_deref();
        (
            failure(error.unwrap_or("it failed, and did not say why")),
            CallToolResult::structured_error,
        )
    };
    if let Some(note) = &result.note {
        content["note"] = json!(note);
    }
    answer(content)
}

/// Returns the result of a call that did not run or failed, with a message for the caller.
pub(super) fn failed(error: &str) -> CallToolResult {
    CallToolResult::structured_error(failure(error))
}

fn failure(error: &str) -> Value {
    json!({ "success": false, "error": error })
}

/// Returns the result of a call that waits for confirmation elsewhere. The id is for repeating the
/// call to get the result.
pub(super) fn confirmation_required(
    tool: &str,
    pending: &[PendingCall],
    id: &str,
) -> CallToolResult {
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

/// Returns the result of a message that is kept until a person has answered a question that waits
/// in its conversation.
pub(super) fn queued(question: &str) -> CallToolResult {
    let message = format!(
        "The message is kept and runs once the person has answered the question that waits in this conversation. You cannot \
         answer it, and need not send the message again. {question}"
    );
    CallToolResult::structured(json!({ "success": false, "status": "queued", "message": message }))
}

/// Returns the result of a call that was denied, or not answered and cannot wait.
pub(super) fn declined(message: &str) -> CallToolResult {
    CallToolResult::structured(
        json!({ "success": false, "status": "declined", "message": message }),
    )
}
