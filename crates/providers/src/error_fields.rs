//! Finds the message and the codes of an error body, wherever a server has put them.

use serde_json::Value;

/// Everything in a body that resembles `message`, `type` and `code`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ErrorFields {
    /// The first message; empty if there is none.
    pub(crate) message: String,
    /// All codes and types, as they are written.
    pub(crate) codes: Vec<String>,
    /// A code that is an HTTP status of an error.
    pub(crate) status: Option<u16>,
}

impl ErrorFields {
    /// Searches a body.
    pub(crate) fn find_in(body: &Value) -> Self {
        let mut fields = Self::default();
        fields.collect(body, 0);
        fields
    }

    // Nesting is bounded, because the body comes from outside.
    fn collect(&mut self, value: &Value, depth: usize) {
        match value {
            // The first message wins: those further inside are causes, or repeat it.
            Value::String(text) if self.message.is_empty() => self.message.clone_from(text),
            Value::Array(values) if depth < 8 => {
                values
                    .iter()
                    .for_each(|value| self.collect(value, depth + 1));
            }
            Value::Object(fields) if depth < 8 => {
                for name in [
                    "code",
                    "type",
                    "error_type",
                    "status",
                    "statusCode",
                    "status_code",
                    "reason",
                ] {
                    self.add_code(fields.get(name));
                }
                // OpenRouter lists the categories that its moderation found.
                if fields.get("reasons").is_some_and(Value::is_array) {
                    self.codes.push("moderation_blocked".to_owned());
                }
                for name in [
                    "error",
                    "message",
                    "msg",
                    "detail",
                    "details",
                    "error_message",
                    "error_msg",
                    "error_description",
                    "description",
                    "title",
                    "errors",
                    "innererror",
                    "metadata",
                ] {
                    if let Some(value) = fields.get(name) {
                        self.collect(value, depth + 1);
                    }
                }
                // The error of the server behind OpenRouter, beside OpenRouter's own "Provider
                // returned error".
                if let Some(Value::String(raw)) = fields.get("raw") {
                    self.add_cause(raw);
                }
            }
            _ => {}
        }
    }

    /// Appends the message and codes of the error that caused this one.
    fn add_cause(&mut self, raw: &str) {
        let behind = serde_json::from_str(raw).map_or_else(
            |_| Self {
                message: raw.to_owned(),
                ..Self::default()
            },
            |body: Value| Self::find_in(&body),
        );
        self.message = format!("{}: {}", self.message, behind.message);
        self.codes.extend(behind.codes);
    }

    fn add_code(&mut self, value: Option<&Value>) {
        let number = match value {
            Some(Value::String(text)) => {
                self.codes.push(text.clone());
                // Some servers write the status as text.
                text.parse().ok()
            }
            Some(Value::Number(number)) => number.as_u64(),
            _ => None,
        };
        let number = number.filter(|number| (400..600).contains(number));
        self.status = self
            .status
            .or(number.and_then(|number| u16::try_from(number).ok()));
    }
}
