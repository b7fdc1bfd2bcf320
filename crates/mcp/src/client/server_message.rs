//! Parts of a server's messages that the library's types drop, kept in `_meta`.

use std::borrow::Cow;

use rmcp::model::Tool;
use serde_json::{Value, json};

/// The key in a tool's `_meta` for its `execution`.
const EXECUTION: &str = "adjutant/execution";

/// Returns a message with the `execution` of each tool in a list of tools copied to its `_meta`.
/// Any other message stays as it is.
pub(super) fn keep_execution(message: &[u8]) -> Cow<'_, [u8]> {
    let wanted = b"\"taskSupport\"";
    if !message.windows(wanted.len()).any(|window| window == wanted) {
        return Cow::Borrowed(message);
    }
    let Ok(mut read) = serde_json::from_slice::<Value>(message) else {
        return Cow::Borrowed(message);
    };
    let Some(Value::Array(tools)) = read.pointer_mut("/result/tools") else {
        return Cow::Borrowed(message);
    };
    for tool in tools {
        let Some(tool) = tool.as_object_mut() else {
            continue;
        };
        if let Some(execution) = tool.get("execution").cloned() {
            let meta = tool.entry("_meta").or_insert_with(|| json!({}));
            if let Some(meta) = meta.as_object_mut() {
                meta.insert(EXECUTION.to_owned(), execution);
            }
        }
    }
    Cow::Owned(read.to_string().into_bytes())
}

/// Returns true if a tool runs only as a task, whose result is fetched later.
pub(super) fn needs_task(tool: &Tool) -> bool {
    let execution = tool.meta.as_ref().and_then(|meta| meta.get(EXECUTION));
    execution.is_some_and(|execution| execution["taskSupport"] == "required")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tools_of_a_list_are_changed() {
        let kept = |message: &Value| -> Value {
            serde_json::from_slice(&keep_execution(message.to_string().as_bytes())).unwrap()
        };
        let execution = json!({"taskSupport": "required"});
        let tool =
            json!({"name": "t", "inputSchema": {}, "execution": execution, "_meta": {"a": 1}});
        let list = kept(&json!({"id": 1, "result": {"tools": [tool, {"name": "u"}]}}));
        let meta = json!({"a": 1, EXECUTION: execution});
        assert_eq!(list["result"]["tools"][0]["_meta"], meta);
        let other = json!({"id": 1, "result": {"content": [{"execution": execution}]}});
        assert_eq!(kept(&other), other);
        let tool: Tool = serde_json::from_value(list["result"]["tools"][0].clone()).unwrap();
        assert!(needs_task(&tool));
        assert!(!needs_task(&Tool::default()));
    }
}
