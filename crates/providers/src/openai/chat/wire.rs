//! The API's JSON, field for field as far as it is used.
//!
//! Answers are written by many servers: every field may be missing or null, and where its type
//! differs between servers, it is not fixed. Texts are borrowed from the JSON if possible and rare
//! fields are boxed, because a streamed answer is parsed in hundreds of chunks.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The fields of a request before the tools and the messages.
#[derive(Debug, Serialize)]
pub(super) struct Head<'a> {
    pub(super) model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_k: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) store: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response_format: Option<ResponseFormat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_choice: Option<Value>,
}

#[derive(Debug, Serialize)]
pub(super) struct StreamOptions {
    pub(super) include_usage: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct ResponseFormat {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) json_schema: JsonSchema,
}

#[derive(Debug, Serialize)]
pub(super) struct JsonSchema {
    pub(super) name: &'static str,
    pub(super) strict: bool,
    pub(super) schema: Value,
}

/// A value that is nearly always a text or a small number, but may be anything with some servers.
#[derive(Debug, PartialEq)]
pub(super) enum LooseValue<'a> {
    Text(Cow<'a, str>),
    Count(u64),
    Other(Box<Value>),
}

impl LooseValue<'_> {
    pub(super) fn as_str(&self) -> Option<&str> {
        if let Self::Text(text) = self {
            Some(text)
        } else {
            None
        }
    }

    pub(super) fn as_u64(&self) -> Option<u64> {
        if let Self::Count(count) = self {
            Some(*count)
        } else {
            None
        }
    }

    /// Returns true if there is a value; some servers send empty ones.
    fn is_set(&self) -> bool {
        match self {
            Self::Text(text) => !text.is_empty(),
            Self::Count(_) => true,
            Self::Other(value) => is_set(value),
        }
    }

    /// Returns a text that is not empty, or a number as text.
    pub(super) fn to_nonempty_text(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Text(text) => Some(Cow::Borrowed(text.as_ref())).filter(|text| !text.is_empty()),
            Self::Count(count) => Some(Cow::Owned(count.to_string())),
            Self::Other(value) => value.is_number().then(|| Cow::Owned(value.to_string())),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for LooseValue<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor)
    }
}

struct LooseVisitor;

impl LooseVisitor {
    fn other<'de, E>(value: impl Into<Value>) -> Result<LooseValue<'de>, E> {
        Ok(LooseValue::Other(Box::new(value.into())))
    }
}

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = LooseValue<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(LooseValue::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(LooseValue::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(LooseValue::Text(Cow::Owned(text)))
    }

    fn visit_u64<E>(self, count: u64) -> Result<Self::Value, E> {
        Ok(LooseValue::Count(count))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Self::other(number)
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Self::other(number)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Self::Value, E> {
        Self::other(truth)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Self::other(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        Self::other(Value::deserialize(SeqAccessDeserializer::new(list))?)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Self::other(Value::deserialize(MapAccessDeserializer::new(map))?)
    }
}

/// A whole answer, one chunk of a streamed one, or an error inside a 200.
#[derive(Debug, Deserialize)]
pub(super) struct Reply<'a> {
    #[serde(borrow)]
    pub(super) model: Option<LooseValue<'a>>,
    #[serde(borrow)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    pub(super) usage: Option<Box<Value>>,
    pub(super) x_groq: Option<Box<Value>>,
    pub(super) error: Option<Box<Value>>,
    /// Random letters that hide the length of a chunk's text (OpenAI).
    #[serde(borrow)]
    pub(super) obfuscation: Option<LooseValue<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(borrow)]
    pub(super) index: Option<LooseValue<'a>>,
    /// The content of a chunk.
    #[serde(borrow)]
    pub(super) delta: Option<Message<'a>>,
    /// The content of a whole answer.
    #[serde(borrow)]
    pub(super) message: Option<Box<Message<'a>>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<LooseValue<'a>>,
    pub(super) usage: Option<Box<Value>>,
    pub(super) error: Option<Box<Value>>,
}

impl<'a> Choice<'a> {
    /// Returns true for the choice that is used. One is requested, but a server may send more, or
    /// leave the index out.
    pub(super) fn is_first(&self) -> bool {
        self.index().unwrap_or(0) == 0
    }

    pub(super) fn index(&self) -> Option<u64> {
        self.index.as_ref().and_then(LooseValue::as_u64)
    }

    /// Takes the content out, and returns true with it if it is a piece of an answer. A body that
    /// is no stream has a message, a chunk has a delta; a few servers send both, one of them
    /// empty.
    pub(super) fn take_content(&mut self, is_body: bool) -> Option<(Message<'a>, bool)> {
        let piece = self.delta.take().map(|piece| (piece, true));
        let whole = self.message.take().map(|message| (*message, false));
        let (usual, other) = if is_body {
            (whole, piece)
        } else {
            (piece, whole)
        };
        let holds_something = |(message, _): &(Message<'a>, bool)| !message.is_empty();
        usual
            .filter(holds_something)
            .or_else(|| other.filter(holds_something))
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) content: Option<LooseValue<'a>>,
    #[serde(borrow)]
    pub(super) refusal: Option<LooseValue<'a>>,
    #[serde(borrow)]
    pub(super) reasoning_content: Option<LooseValue<'a>>,
    #[serde(borrow)]
    pub(super) reasoning: Option<LooseValue<'a>>,
    pub(super) reasoning_details: Option<Box<Value>>,
    /// Images that the model generated (OpenRouter).
    pub(super) images: Option<Box<Value>>,
    /// Calls of tools that the server ran itself (Groq).
    pub(super) executed_tools: Option<Box<Value>>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<Call<'a>>>,
    /// The deprecated form of a call, from before there could be several.
    #[serde(borrow)]
    pub(super) function_call: Option<Box<Function<'a>>>,
}

impl<'a> Message<'a> {
    /// Returns true if the message has no content: only a role, or empty fields.
    fn is_empty(&self) -> bool {
        let texts = [
            &self.content,
            &self.refusal,
            &self.reasoning_content,
            &self.reasoning,
        ];
        let traces = [&self.reasoning_details, &self.images, &self.executed_tools];
        !(texts.into_iter().flatten().any(LooseValue::is_set)
            || traces.into_iter().flatten().any(|trace| is_set(trace))
            || self
                .tool_calls
                .as_ref()
                .is_some_and(|calls| !calls.is_empty())
            || self.function_call.is_some())
    }

    /// Takes the calls out, those in the deprecated form among them.
    pub(super) fn take_calls(&mut self) -> Vec<Call<'a>> {
        let mut calls = self.tool_calls.take().unwrap_or_default();
        calls.extend(self.function_call.take().map(|function| Call {
            index: Some(LooseValue::Count(0)),
            function: Some(*function),
            ..Call::default()
        }));
        calls
    }
}

/// Returns true if a field has a value; some servers send empty fields, `error` among them.
pub(super) fn is_set(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Call<'a> {
    #[serde(borrow)]
    pub(super) index: Option<LooseValue<'a>>,
    #[serde(borrow)]
    pub(super) id: Option<LooseValue<'a>>,
    #[serde(borrow)]
    pub(super) function: Option<Function<'a>>,
    #[serde(borrow)]
    pub(super) custom: Option<Box<Custom<'a>>>,
    pub(super) extra_content: Option<Box<Value>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: Option<LooseValue<'a>>,
    /// JSON text; some servers send the object itself.
    #[serde(borrow)]
    pub(super) arguments: Option<LooseValue<'a>>,
}

/// A call of a custom tool, whose argument is text.
#[derive(Debug, Deserialize)]
pub(super) struct Custom<'a> {
    #[serde(borrow)]
    pub(super) name: Option<LooseValue<'a>>,
    #[serde(borrow)]
    pub(super) input: Option<LooseValue<'a>>,
}
