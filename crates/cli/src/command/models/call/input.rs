//! Input of a raw call: one JSON object.

use serde::Deserialize;
use serde_json::Value;

use crate::error::CliError;

/// The request. `null` counts as missing; unknown keys are ignored, because they may belong to
/// other programs.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Input {
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
    pub(super) system: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) messages: Vec<Turn>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) tools: Vec<Tool>,
    pub(super) temperature: Option<f64>,
    pub(super) max_tokens: Option<u32>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) stream: bool,
}

/// A message of the transcript.
#[derive(Debug, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(super) enum Turn {
    System {
        text: Option<String>,
    },
    User {
        text: Option<String>,
    },
    Assistant {
        text: Option<String>,
        #[serde(default, deserialize_with = "or_default")]
        tool_calls: Vec<Call>,
    },
    Tool {
        id: Option<String>,
        name: Option<String>,
        #[serde(default)]
        content: Value,
    },
}

/// A call that a model made.
#[derive(Debug, Deserialize)]
pub(super) struct Call {
    pub(super) id: Option<String>,
    pub(super) name: String,
    /// An object, or its JSON text, or malformed text that a model produced.
    #[serde(default)]
    pub(super) args: Value,
    pub(super) signature: Option<String>,
}

/// A tool that the model may call.
#[derive(Debug, Deserialize)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) parameters: Option<Value>,
}

impl Input {
    /// Parses the input.
    ///
    /// # Errors
    /// It is no JSON object, or a value has another type than documented; the error names its
    /// place.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, CliError> {
        // Windows programs begin a UTF-8 file with this mark, which JSON does not allow.
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let unusable = |cause: String| {
            CliError::usage("the input cannot be used")
                .because(cause)
                .or_try("adjutant models call --help has the format")
        };
        let value: Value = serde_json::from_slice(bytes)
            .map_err(|error| unusable(format!("it is not JSON: {error}")))?;
        if !value.is_object() {
            return Err(unusable("it is not a JSON object".to_owned()));
        }
        // In two steps, because an error should name its place in the value and not a column.
        serde_path_to_error::deserialize(value)
            .map_err(|error| unusable(format!("{}: {}", error.path(), error.inner())))
    }
}

fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_and_missing_are_the_same_and_unknown_keys_are_ignored() {
        let nulls =
            br#"{"provider": null, "model": null, "system": null, "messages": null, "tools": null,
            "temperature": null, "max_tokens": null, "stream": null, "seed": 3}"#;
        assert_eq!(
            format!("{:?}", Input::parse(nulls).unwrap()),
            format!("{:?}", Input::default())
        );
        assert_eq!(
            format!("{:?}", Input::parse(b"\xef\xbb\xbf{}").unwrap()),
            format!("{:?}", Input::default())
        );
    }

    #[test]
    fn what_cannot_be_used_is_named_with_its_place() {
        for (text, words) in [
            ("", "it is not JSON"),
            (
                "{\"messages\": [}",
                "it is not JSON: expected value at line 1 column 15",
            ),
            ("[]", "not a JSON object"),
            ("\"hello\"", "not a JSON object"),
            (r#"{"messages": {}}"#, "messages: "),
            (
                r#"{"messages": [{"role": "bot"}]}"#,
                "messages[0].role: unknown variant `bot`",
            ),
            (
                r#"{"messages": [{"role": "user", "text": 3}]}"#,
                "messages[0]: invalid type: integer `3`",
            ),
            (
                r#"{"messages": [{"role": "assistant", "tool_calls": [{"id": "a"}]}]}"#,
                "missing field `name`",
            ),
            (r#"{"messages": [{"text": "x"}]}"#, "missing field `role`"),
            (
                r#"{"tools": [{"name": "a"}, {"description": "b"}]}"#,
                "tools[1]: missing field `name`",
            ),
            (r#"{"temperature": "warm"}"#, "temperature: invalid type"),
            (r#"{"max_tokens": -1}"#, "max_tokens: invalid value"),
            (r#"{"stream": "yes"}"#, "stream: invalid type"),
        ] {
            let error = Input::parse(text.as_bytes()).unwrap_err();
            assert_eq!((error.exit as u8, error.code), (2, "usage"), "{text}");
            assert!(
                error.cause.as_ref().unwrap().contains(words),
                "{text}: {error:?}"
            );
        }
    }
}
