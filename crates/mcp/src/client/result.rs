//! Conversion of a tool's result: structured content together with what its text adds, bounded in
//! size, with a note if it was cut. Pictures and sound are described.

use std::borrow::Cow;

use adjutant_core::ToolError;
use rmcp::model::{Annotations, CallToolResult, ContentBlock, ResourceContents, Role};
use serde_json::{Value, json};

/// Most bytes of an error message.
const FAILURE_BYTES_MAX: usize = 4_000;

/// Returns the data of a successful call.
///
/// # Errors
/// [`ToolError::Failed`] with the server's message if it reports an error.
pub(super) fn decode(answer: CallToolResult, bytes_max: usize) -> Result<Value, ToolError> {
    if answer.is_error.unwrap_or(false) {
        return Err(ToolError::failed(failure(answer)));
    }
    let Some(structured) = answer.structured_content else {
        return Ok(bounded(content(answer.content), bytes_max));
    };
    let data = match answer.content.as_slice() {
        // A text in a wrapper: to a model it is easier to read without the escapes of JSON.
        [ContentBlock::Text(only)]
            if only_value(&structured).and_then(Value::as_str) == Some(&only.text) =>
        {
            Value::String(only.text.clone())
        }
        _ => {
            let adds: Vec<ContentBlock> = answer
                .content
                .into_iter()
                .filter(|block| !is_repeated(block, &structured))
                .collect();
            let structured = described(structured);
            match adds.is_empty() {
                true => structured,
                false => json!({ "content": content(adds), "structuredContent": structured }),
            }
        }
    };
    Ok(bounded(data, bytes_max))
}

/// Returns the words of an error: all of its text, and its data unless the text repeats them.
fn failure(answer: CallToolResult) -> String {
    let mut words: Vec<String> = Vec::new();
    for found in answer.content {
        let said = match found {
            ContentBlock::Text(text) => text.text.trim().to_owned(),
            other => block(other).to_string(),
        };
        words.extend((!said.is_empty()).then_some(said));
    }
    let data = answer.structured_content.filter(|data| !data.is_null());
    if let Some(data) = data.map(described) {
        let said = match &data {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let is_told = words.iter().any(|told| {
            *told == said
                || only_value(&data).and_then(Value::as_str) == Some(told)
                || serde_json::from_str::<Value>(told).is_ok_and(|told| told == data)
        });
        words.extend((!is_told).then_some(said));
    }
    if words.is_empty() {
        return "the tool reports an error, without words".to_owned();
    }
    cut_text(&words.join("\n"), FAILURE_BYTES_MAX)
}

/// Returns the value of an object that has one key.
fn only_value(data: &Value) -> Option<&Value> {
    let mut values = data.as_object()?.values();
    values.next().filter(|_| values.next().is_none())
}

/// Returns true if a block says only what the structured content says: itself or a part of it.
fn is_repeated(block: &ContentBlock, structured: &Value) -> bool {
    match block {
        ContentBlock::Text(text) => {
            let text = text.text.trim();
            let read: Option<Value> = serde_json::from_str(text).ok();
            text.is_empty()
                || contains(structured, &|part| {
                    part.as_str().map(str::trim) == Some(text) || Some(part) == read.as_ref()
                })
        }
        ContentBlock::Image(image) => contains(structured, &|part| is_text(part, &image.data)),
        ContentBlock::Audio(audio) => contains(structured, &|part| is_text(part, &audio.data)),
        _ => false,
    }
}

fn is_text(value: &Value, text: &str) -> bool {
    value.as_str() == Some(text)
}

/// Returns true if the value or a part of it matches.
fn contains(value: &Value, matches: &impl Fn(&Value) -> bool) -> bool {
    matches(value)
        || match value {
            Value::Array(values) => values.iter().any(|value| contains(value, matches)),
            Value::Object(map) => map.values().any(|value| contains(value, matches)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
}

/// Replaces blocks of pictures, sound and other binary content in structured data by descriptions.
fn described(value: Value) -> Value {
    match value {
        Value::Array(values) => values.into_iter().map(described).collect(),
        Value::Object(map) => {
            let text = |key: &str| map.get(key).and_then(Value::as_str);
            let mime_type = text("mimeType").or_else(|| text("mime_type"));
            match (text("type"), text("data"), text("blob")) {
                (Some(kind @ ("image" | "audio")), Some(data), _) => {
                    binary(kind, mime_type.unwrap_or("unknown"), data)
                }
                (_, _, Some(blob)) if map.contains_key("uri") => {
                    let mut shown = binary("resource", mime_type.unwrap_or("unknown"), blob);
                    shown["uri"] = map["uri"].clone();
                    shown
                }
                _ => map
                    .into_iter()
                    .map(|(key, value)| (key, described(value)))
                    .collect(),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// Returns a single text block as text, and anything else as a list of blocks.
fn content(blocks: Vec<ContentBlock>) -> Value {
    match blocks.as_slice() {
        [ContentBlock::Text(only)] if !is_for_person(&blocks[0]) => {
            Value::String(only.text.clone())
        }
        _ => blocks
            .into_iter()
            .map(|found| match is_for_person(&found) {
                true => {
                    json!({ "type": "left_out", "note": "for the person alone; not passed on" })
                }
                false => block(found),
            })
            .collect(),
    }
}

/// Returns true if a block is not meant for a model.
fn is_for_person(block: &ContentBlock) -> bool {
    let annotations: Option<&Annotations> = match block {
        ContentBlock::Text(text) => text.annotations.as_ref(),
        ContentBlock::Image(image) => image.annotations.as_ref(),
        ContentBlock::Audio(audio) => audio.annotations.as_ref(),
        ContentBlock::Resource(resource) => resource.annotations.as_ref(),
        ContentBlock::ResourceLink(link) => link.annotations.as_ref(),
        _ => None,
    };
    let audience = annotations.and_then(|annotations| annotations.audience.as_ref());
    audience.is_some_and(|roles| !roles.is_empty() && !roles.contains(&Role::Assistant))
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
    fn text_beside_structured_content_is_kept_unless_it_repeats_it() {
        let both = |content: Value, structured: Value| {
            answer(json!({"content": content, "structuredContent": structured})).unwrap()
        };
        let said = |text: &str| json!([{"type": "text", "text": text}]);
        assert_eq!(
            both(said("2 of 9 pages"), json!({"n": 1})),
            json!({"content": "2 of 9 pages", "structuredContent": {"n": 1}})
        );
        // A block for each element of a list, as `fastmcp` sends them.
        let elements =
            json!([{"type": "text", "text": "{\"a\": 1}"}, {"type": "text", "text": "two"}]);
        let list = json!({"result": [{"a": 1}, "two"]});
        assert_eq!(both(elements, list.clone()), list);
        assert_eq!(
            both(said("a\n\"b\""), json!({"content": "a\n\"b\""})),
            json!("a\n\"b\"")
        );
        let pretty = "{\n  \"n\": 1\n}";
        assert_eq!(both(said(pretty), json!({"n": 1})), json!({"n": 1}));
    }

    #[test]
    fn pictures_in_structured_content_are_described_once() {
        let image = json!({"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"});
        let shown = json!({"type": "image", "mime_type": "image/png", "bytes": 5, "note": "not text; not passed on"});
        let nested =
            json!({"content": [image], "structuredContent": {"result": [{"page": [image]}]}});
        assert_eq!(answer(nested), Ok(json!({"result": [{"page": [shown]}]})));
        let blob = json!({"uri": "file:///a", "blob": "aGVsbG8=", "mimeType": "text/x"});
        let resource = answer(json!({"content": [], "structuredContent": {"resource": blob}}));
        assert_eq!(resource.unwrap()["resource"]["bytes"], 5);
        let beside = answer(json!({"content": [image], "structuredContent": {"n": 1}}));
        assert_eq!(
            beside,
            Ok(json!({"content": [shown], "structuredContent": {"n": 1}}))
        );
    }

    #[test]
    fn content_for_the_person_alone_is_not_passed_on() {
        let for_the_user =
            json!({"type": "text", "text": "secret", "annotations": {"audience": ["user"]}});
        let both = json!({"type": "text", "text": "open", "annotations": {"audience": ["user", "assistant"]}});
        let left_out = json!({"type": "left_out", "note": "for the person alone; not passed on"});
        assert_eq!(
            answer(json!({"content": [for_the_user, both]})),
            Ok(json!([left_out, {"type": "text", "text": "open"}]))
        );
        assert_eq!(
            answer(json!({"content": [for_the_user]})),
            Ok(json!([left_out]))
        );
        assert_eq!(answer(json!({"content": [both]})), Ok(json!("open")));
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
        let both = json!({
            "content": [{"type": "text", "text": "quota: try in 5 min"}],
            "structuredContent": {"code": 7}, "isError": true
        });
        assert_eq!(
            answer(both),
            Err("quota: try in 5 min\n{\"code\":7}".to_owned())
        );
        let same = json!({
            "content": [{"type": "text", "text": "{\"code\": 7}"}],
            "structuredContent": {"code": 7}, "isError": true
        });
        assert_eq!(answer(same), Err("{\"code\": 7}".to_owned()));
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
