//! Arguments that several tools have, as properties of their schemas.

use serde_json::{Value, json};

/// Number of notes that are shown by default.
pub(super) const NOTES_SHOWN: usize = 20;

pub(super) fn text_property(description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "description": description })
}

pub(super) fn flag_property(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

pub(super) fn limit_property() -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": 100, "description": "How many at most (default 20)" })
}

pub(super) fn folder_property() -> Value {
    json!({ "type": "string", "description": "Only notes below this folder" })
}

pub(super) fn tag_property() -> Value {
    json!({ "type": "string", "description": "Only notes with this tag or one below it, such as project or project/x" })
}
