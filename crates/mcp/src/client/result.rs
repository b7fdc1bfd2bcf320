//! Conversion of a tool's result: structured content first, bounded in size, with a note if it was
//! cut.

use std::borrow::Cow;

use adjutant_core::ToolError;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Value, json};

/// Most bytes of an error message.
const FAILURE_BYTES_MAX: usize = 4_000;

/// Returns the data of a successful call.
///
/// # Errors
/// [`ToolError::Failed`] with the server's message if it reports an error.
pub(super) fn decode(answer: CallToolResult, bytes_max: usize) -> Result<Value, ToolError> {
    let failed = answer.is_error.unwrap_or(false);
    let data = match answer.structured_content {
        Some(data) => data,
        None => content(answer.content),
    };
    if failed {
        let words = match data {
            Value::String(words) => words,
            Value::Array(blocks) if blocks.is_empty() => String::new(),
            other => other.to_string(),
        };
        let words = words.trim();
        return Err(ToolError::failed(if words.is_empty() {
            "the tool reports an error, without words".to_owned()
        } else {
            cut_text(words, FAILURE_BYTES_MAX)
        }));
    }
    Ok(bounded(data, bytes_max))
}

/// Returns a single text block as text, and anything else as a list of blocks.
fn content(blocks: Vec<ContentBlock>) -> Value {
    match blocks.as_slice() {
        [ContentBlock::Text(only)] => Value::String(only.text.clone()),
        _ => blocks.into_iter().map(block).collect(),
    }
}

/// Converts a block. Images and audio become a note with their size: as base64 they are noise to a
/// model that reads text.
fn block(block: ContentBlock) -> Value {
    match block {
        ContentBlock::Text(text) => json!({ "type": "text", "text": text.text }),
        ContentBlock::Image(image) => binary("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => binary("audio", &audio.mime_type, &audio.data),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents {
                uri,
                mime_type,
                text,
                ..
            } => {
                json!({ "type": "resource", "uri": uri, "mime_type": mime_type, "text": text })
            }
            ResourceContents::BlobResourceContents {
                uri,
                mime_type,
                blob,
                ..
            } => {
                let mut shown =
                    binary("resource", mime_type.as_deref().unwrap_or("unknown"), &blob);
                shown["uri"] = Value::String(uri);
                shown
            }
            _ => unknown(),
        },
        ContentBlock::ResourceLink(link) => json!({
            "type": "resource_link", "uri": link.uri, "name": link.name,
            "description": link.description, "mime_type": link.mime_type,
        }),
        _ => unknown(),
    }
}

/// Returns a note for a kind of content that later protocol versions add.
fn unknown() -> Value {
    json!({ "type": "unknown", "note": "a kind of content that this client does not know" })
}

fn binary(kind: &str, mime_type: &str, base64: &str) -> Value {
    let padding = base64
        .bytes()
        .rev()
        .take_while(|byte| *byte == b'=')
        .count();
    // Four characters of base64 are three bytes.
    let bytes = (base64.len() / 4 * 3).saturating_sub(padding);
    json!({ "type": kind, "mime_type": mime_type, "bytes": bytes, "note": "not text; not passed on" })
}

/// Replaces data that is too large by its beginning and its size.
fn bounded(data: Value, bytes_max: usize) -> Value {
    let text = match &data {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    };
    if text.len() <= bytes_max {
        return data;
    }
    let begins = beginning(&text, bytes_max);
    json!({
        "cut": format!("the result has {} bytes; these are the first {}", text.len(), begins.len()),
        "begins": begins,
    })
}

fn cut_text(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    format!(
        "{} … (cut: {} bytes in all)",
        beginning(text, bytes_max),
        text.len()
    )
}

/// Returns at most so many bytes, cut between characters.
fn beginning(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(answer: Value) -> Result<Value, String> {
        decode(serde_json::from_value(answer).unwrap(), 300).map_err(|error| error.to_string())
    }

    #[test]
    fn structured_content_goes_before_its_text() {
        let both = json!({"content": [{"type": "text", "text": "{\"n\":1}"}], "structuredContent": {"n": 1}});
        assert_eq!(answer(both), Ok(json!({"n": 1})));
        assert_eq!(
            answer(json!({"content": [], "structuredContent": null})),
            Ok(Value::Null)
        );
    }

    #[test]
    fn one_text_is_text_and_several_things_are_a_list() {
        assert_eq!(
            answer(json!({"content": [{"type": "text", "text": "hi\u{1b}[2J"}]})),
            Ok(json!("hi\u{1b}[2J"))
        );
        assert_eq!(answer(json!({"content": []})), Ok(json!([])));
        let image = json!({"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"});
        let link = json!({"type": "resource_link", "uri": "file:///a", "name": "a"});
        let all = answer(json!({"content": [{"type": "text", "text": "see"}, image]})).unwrap();
        assert_eq!(
            all[1],
            json!({"type": "image", "mime_type": "image/png", "bytes": 5, "note": "not text; not passed on"})
        );
        let resource =
            json!({"type": "resource", "resource": {"uri": "file:///b", "text": "inside"}});
        let all = answer(json!({"content": [link]})).unwrap();
        assert_eq!(
            (all[0]["uri"].as_str(), all[0]["name"].as_str()),
            (Some("file:///a"), Some("a"))
        );
        assert_eq!(
            answer(json!({"content": [resource]})).unwrap()[0]["text"],
            "inside"
        );
    }

    #[test]
    fn an_error_has_the_servers_message() {
        let words =
            json!({"content": [{"type": "text", "text": "no such repository"}], "isError": true});
        assert_eq!(answer(words), Err("no such repository".to_owned()));
        let none = json!({"content": [], "isError": true});
        assert_eq!(
            answer(none),
            Err("the tool reports an error, without words".to_owned())
        );
        let long =
            json!({"content": [{"type": "text", "text": "x".repeat(9_000)}], "isError": true});
        assert!(
            answer(long)
                .unwrap_err()
                .ends_with(" … (cut: 9000 bytes in all)")
        );
    }

    #[test]
    fn what_is_too_large_is_cut_between_characters_and_says_so() {
        let long = "ä".repeat(300);
        let cut = answer(json!({"content": [{"type": "text", "text": long}]})).unwrap();
        assert_eq!(
            cut["cut"],
            "the result has 600 bytes; these are the first 300"
        );
        assert_eq!(cut["begins"], "ä".repeat(150));
        let list: Vec<u32> = (0..200).collect();
        let cut = answer(json!({"content": [], "structuredContent": {"list": list}})).unwrap();
        assert!(
            cut["begins"]
                .as_str()
                .unwrap()
                .starts_with("{\"list\":[0,1,2")
        );
    }
}
