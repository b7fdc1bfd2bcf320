//! Digests of JSON that do not depend on the order of keys.

use std::fmt::Write as _;

use ring::digest::{SHA256, digest};
use serde_json::Value;

/// Returns the SHA-256 of a JSON value in hexadecimal digits, independent of the order of keys.
#[must_use]
pub fn fingerprint(value: &Value) -> String {
    sha256(&sorted(value).to_string())
}

/// Returns the JSON with the keys of every object sorted, so that equal values have equal bytes.
#[must_use]
pub fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            // `serde_json` is built with `preserve_order` here, so a map keeps the order of its
            // text.
            entries.sort_by(|a, b| a.0.cmp(b.0));
            Value::Object(
                entries
                    .into_iter()
                    .map(|(key, value)| (key.clone(), sorted(value)))
                    .collect(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Returns the SHA-256 of a text in hexadecimal digits.
pub(crate) fn sha256(text: &str) -> String {
    let bytes = digest(&SHA256, text.as_bytes());
    bytes.as_ref().iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
