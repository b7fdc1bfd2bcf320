//! Results of tool calls.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::Arguments;

/// The result of a call, as the model, the log and the API show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// True if the call succeeded.
    pub success: bool,
    /// The output, if the call succeeded. Shared between copies and never changed: it may be large.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "null_is_data"
    )]
    pub data: Option<Arc<Value>>,
    /// The failure, if there was one: a message that a model can act on and a person may read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// True if the model reads `data` alone, as it is, without `success` around it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verbatim: bool,
    /// A note for the model about its call, beside the data: that the arguments were corrected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// True if it is text of others, or holds some: what a page, a mail or another program says.
    /// Such text may try to act through the model. Set by the runtime from
    /// [`Tool::reads_from_others`](crate::Tool::reads_from_others) and
    /// [`Tool::holds_text_of_others`](crate::Tool::holds_text_of_others).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_others: bool,
}

/// Deserialises `null` as data: a tool may answer `null`, and that is not the same as no answer.
fn null_is_data<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Arc<Value>>, D::Error> {
    Value::deserialize(deserializer).map(|data| Some(data.into()))
}

impl ToolResult {
    /// Creates the result of a successful call.
    #[must_use]
    pub fn ok(data: Value) -> Self {
        Self {
            success: true,
            data: Some(data.into()),
            error: None,
            verbatim: false,
            note: None,
            from_others: false,
        }
    }

    /// Creates the result of a failed call.
    #[must_use]
    pub fn failed(error: impl Into<String>) -> Self {
        Self {
            success: false,
            data: None,
            error: Some(error.into()),
            verbatim: false,
            note: None,
            from_others: false,
        }
    }

    /// Creates a successful result that the model reads exactly as it is.
    #[must_use]
    pub fn verbatim(data: Value) -> Self {
        Self {
            verbatim: true,
            ..Self::ok(data)
        }
    }

    /// Creates the result of a call that was not carried out, because the person was asked what it
    /// refers to.
    #[must_use]
    pub fn asked(question: &str) -> Self {
        Self::failed(format!("not done; the person was asked: {question}"))
    }

    /// Adds a note for the model about its call. `None` leaves the result as it is.
    #[must_use]
    pub fn with_note(self, note: Option<String>) -> Self {
        Self {
            note: note.or(self.note),
            ..self
        }
    }

    /// Marks the result as text of others, if it is.
    #[must_use]
    pub fn marked(self, from_others: bool) -> Self {
        Self {
            from_others: from_others || self.from_others,
            ..self
        }
    }

    /// Returns true if another result says the same, whether it is marked as text of others or not.
    #[must_use]
    pub fn says_the_same(&self, other: &Self) -> bool {
        let marked = |result: &Self| result.clone().marked(true);
        marked(self) == marked(other)
    }

    /// Creates the result of an interrupted call that the user says was carried out.
    #[must_use]
    pub fn taken_as_done() -> Self {
        Self::ok(serde_json::json!({ "status": "done", "note": "confirmed by the person" }))
    }

    /// Creates the result of an interrupted call whose effect stays unknown.
    #[must_use]
    pub fn left_open() -> Self {
        let note = "interrupted; may or may not have been carried out; not repeated";
        Self::unknown(format!("unknown: {note}"), note)
    }

    /// Creates the result of a call that broke off and may have had its effect: the model reads so,
    /// and the same call is not made again in this turn.
    #[must_use]
    pub fn broke_off(error: impl fmt::Display) -> Self {
        let note = "may or may not have been carried out; not repeated";
        Self::unknown(format!("{error}; it {note}"), note)
    }

    fn unknown(error: String, note: &str) -> Self {
        Self {
            data: Some(serde_json::json!({ "status": "unknown", "note": note }).into()),
            ..Self::failed(error)
        }
    }

    /// Returns roughly how many bytes a model reads of it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.to_text().len()
    }

    /// Returns true if it is not known whether the call was carried out.
    pub(crate) fn is_unknown(&self) -> bool {
        !self.success
            && self
                .data
                .as_ref()
                .is_some_and(|data| data["status"] == "unknown")
    }

    /// Adds a note for the model that had called the tool with other arguments.
    #[must_use]
    pub(crate) fn of_edited(self, arguments: &Arguments) -> Self {
        let note = "the person changed the arguments before it ran";
        Self {
            data: Some(
                serde_json::json!({ "note": note, "arguments": arguments, "result": self.data })
                    .into(),
            ),
            verbatim: false,
            // The arguments stand beside the result.
            note: None,
            ..self
        }
    }

    /// Returns the text that the model reads: a verbatim text without a note as it is, everything
    /// else as JSON.
    #[must_use]
    pub fn to_text(&self) -> String {
        // Without quotation marks: the model reads the text and not its JSON.
        if let Some(words) = self.words() {
            return words.to_owned();
        }
        match &self.data {
            Some(data) if self.is_bare() => data.to_string(),
            _ => serde_json::to_string(&self.shown()).unwrap_or_default(),
        }
    }

    fn shown(&self) -> Shown<'_> {
        Shown {
            success: self.success,
            data: self.data.as_deref(),
            error: self.error.as_deref(),
            note: self.note.as_deref(),
        }
    }

    /// Returns true if the model reads the data alone. A note needs a place beside it.
    fn is_bare(&self) -> bool {
        self.verbatim && self.note.is_none()
    }

    /// Returns the text of a verbatim result that is a text.
    pub(crate) fn words(&self) -> Option<&str> {
        self.data.as_ref().filter(|_| self.is_bare())?.as_str()
    }

    /// Returns the JSON that the model reads.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match &self.data {
            Some(data) if self.is_bare() => Value::clone(data),
            _ => serde_json::json!(self.shown()),
        }
    }
}

/// The part of a result that the model reads.
#[derive(Serialize)]
struct Shown<'a> {
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
}

/// A call of a known tool with valid arguments that was executed, failed or was denied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolInvocation {
    /// The name of the tool.
    pub tool: String,
    /// The arguments of the call, with references resolved to ids.
    pub arguments: Arguments,
    /// The result of the call. Serialised as `{success, data?, error?, note?}`.
    pub result: ToolResult,
}

impl ToolInvocation {
    /// Returns the data, or the failure.
    ///
    /// # Errors
    /// The failure of the call, as the model saw it.
    pub fn outcome(&self) -> Result<&Value, &str> {
        if self.result.success {
            Ok(self.result.data.as_deref().unwrap_or(&Value::Null))
        } else {
            Err(self.result.error.as_deref().unwrap_or_default())
        }
    }
}
