//! [`Reply`]: one answer of a script, and [`Fault`]: the ways in which it may fail.

use std::time::Duration;

use adjutant_core::{FinishReason, Usage};
use serde_json::{Map, Value};

/// One answer of a script: its text and calls, or its fault.
///
/// # Examples
/// ```
/// use adjutant_providers::scripted::{call, text};
/// use serde_json::json;
///
/// // Answers every request that contains "weather" with text and two calls.
/// let reply = text("Let me look.")
///     .and_call("weather", json!({ "city": "Oslo" }))
///     .and_call("weather", json!({ "city": "Bergen" }))
///     .matching("weather");
/// // Gives this reply three times.
/// let other = call("add_task", json!({ "title": "Buy milk" })).times(3);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    pub(super) thinking: Option<String>,
    pub(super) text: Option<String>,
    pub(super) calls: Vec<Call>,
    pub(super) finish: Option<FinishReason>,
    pub(super) usage: Usage,
    pub(super) fault: Option<Fault>,
    pub(super) matching: Option<String>,
    pub(super) repetition: Repetition,
    pub(super) delay: Duration,
    pub(super) piece_chars: Option<usize>,
    pub(super) pause: Duration,
}

/// The number of times a reply is given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Repetition {
    /// Once in the sequence; a reply with a match, every time.
    #[default]
    Default,
    Times(u32),
    Forever,
}

/// A scripted tool call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: ScriptedArguments,
}

/// Arguments as JSON, or as raw text that a model might have sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ScriptedArguments {
    Json(Value),
    Text(String),
}

/// A fault of a scripted answer: a failure that a vendor may cause, without a vendor.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// HTTP 429, too many requests.
    RateLimit {
        /// The wait the provider asks for, if it does.
        retry_after: Option<Duration>,
    },
    /// The account is out of credit.
    Quota,
    /// The provider fails with an HTTP status, usually 5xx.
    Server {
        /// The HTTP status, such as 503.
        status: u16,
    },
    /// The answer does not come in time. Reported at once, without waiting.
    Timeout,
    /// The connection to the provider is refused.
    Network,
    /// The connection to the provider breaks.
    Reset,
    /// The provider refuses the API key.
    Authentication,
    /// The provider has no such model.
    NotFound,
    /// The provider rejects the request as invalid.
    BadRequest,
    /// The request does not fit the context window.
    ContextTooLong,
    /// The provider's safety system refuses to answer.
    Refused,
    /// The answer cannot be decoded.
    InvalidResponse {
        /// The body of the answer that cannot be decoded.
        raw: String,
    },
    /// The answer stops before its end, after the reply's text.
    Truncated,
    /// The answer never ends, after the reply's text; only the caller's time or a cancellation ends
    /// it.
    Stall,
    /// A finished answer without content.
    Empty,
    /// A finished answer in which the reply's text is thinking, not text.
    ThinkingOnly,
    /// The answer arrives one character at a time.
    SplitUtf8,
    /// The arguments of the reply's calls are cut off in the middle.
    TruncatedJson,
    /// The reply's calls name unknown tools, whose names differ from the real ones in one letter.
    UnknownTool,
    /// The arguments of the reply's calls have wrong types.
    WrongType,
}

impl Fault {
    /// Returns true if the fault alters calls, so that the reply needs some.
    pub(super) fn alters_calls(&self) -> bool {
        matches!(
            self,
            Self::TruncatedJson | Self::UnknownTool | Self::WrongType
        )
    }
}

/// Creates a reply with a text.
#[must_use]
pub fn text(text: impl Into<String>) -> Reply {
    Reply {
        text: Some(text.into()),
        ..Reply::default()
    }
}

/// Creates a reply that calls a tool. `arguments` that are no object are sent as they are, as a
/// confused model would.
#[must_use]
pub fn call(tool: impl Into<String>, arguments: Value) -> Reply {
    Reply::default().and_call(tool, arguments)
}

/// Creates a reply that fails.
#[must_use]
pub fn fault(fault: Fault) -> Reply {
    Reply {
        fault: Some(fault),
        ..Reply::default()
    }
}

impl Reply {
    /// Adds a call to the same answer.
    #[must_use]
    pub fn and_call(mut self, tool: impl Into<String>, arguments: Value) -> Self {
        self.calls.push(Call {
            name: tool.into(),
            arguments: ScriptedArguments::Json(arguments),
        });
        self
    }

    /// Adds a call whose arguments are this raw text, JSON or not.
    #[must_use]
    pub fn and_call_text(mut self, tool: impl Into<String>, arguments: impl Into<String>) -> Self {
        self.calls.push(Call {
            name: tool.into(),
            arguments: ScriptedArguments::Text(arguments.into()),
        });
        self
    }

    /// Sets the fault of the reply.
    #[must_use]
    pub fn failing(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Sets the text, which comes before the calls or the fault.
    #[must_use]
    pub fn saying(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Sets the thinking, which comes before everything else.
    #[must_use]
    pub fn thinking(mut self, text: impl Into<String>) -> Self {
        self.thinking = Some(text.into());
        self
    }

    /// Sets the finish reason. Default: [`FinishReason::ToolCalls`] with calls, else
    /// [`FinishReason::Stop`].
    #[must_use]
    pub fn finish(mut self, finish: FinishReason) -> Self {
        self.finish = Some(finish);
        self
    }

    /// Sets the token counts. Default: unknown.
    #[must_use]
    pub fn usage(mut self, input_tokens: u64, output_tokens: u64) -> Self {
        self.usage = Usage {
            input_tokens: Some(input_tokens),
            output_tokens: Some(output_tokens),
            ..Usage::default()
        };
        self
    }

    /// Takes the reply out of the sequence: it answers every request whose latest text (the user's
    /// message, or the tool results after it) contains `text`, in upper or lower case.
    #[must_use]
    pub fn matching(mut self, text: impl Into<String>) -> Self {
        self.matching = Some(text.into());
        self
    }

    /// Sets the number of times the reply is given.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.repetition = Repetition::Times(times);
        self
    }

    /// Gives the reply every time from here on.
    #[must_use]
    pub fn forever(mut self) -> Self {
        self.repetition = Repetition::Forever;
        self
    }

    /// Delays the answer by this time.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Streams the answer in pieces of so many characters. Default: word by word.
    #[must_use]
    pub fn in_pieces(mut self, chars: usize) -> Self {
        self.piece_chars = Some(chars.max(1));
        self
    }

    /// Streams the answer with this pause before each piece. Default: none.
    #[must_use]
    pub fn with_pauses(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Returns the reply as its fault alters it. Faults that are errors change nothing here.
    pub(super) fn with_fault_applied(mut self) -> Self {
        match &self.fault {
            Some(Fault::Empty) => {
                (self.thinking, self.text) = (None, None);
                self.calls.clear();
            }
            Some(Fault::ThinkingOnly) => {
                let texts = [self.thinking.take(), self.text.take()];
                let texts: Vec<String> = texts.into_iter().flatten().collect();
                self.thinking = Some(texts.join(" "));
                self.calls.clear();
            }
            Some(Fault::SplitUtf8) => self.piece_chars = Some(1),
            Some(Fault::TruncatedJson) => self.calls.iter_mut().for_each(Call::truncate),
            Some(Fault::UnknownTool) => self.calls.iter_mut().for_each(Call::misname),
            Some(Fault::WrongType) => self.calls.iter_mut().for_each(Call::mistype),
            Some(_) | None => {}
        }
        self
    }

    /// Returns the number of times it may be given.
    pub(super) fn times_max(&self) -> u32 {
        match self.repetition {
            Repetition::Default if self.matching.is_none() => 1,
            Repetition::Default | Repetition::Forever => u32::MAX,
            Repetition::Times(times) => times,
        }
    }
}

impl Call {
    /// Returns the arguments as JSON text, valid or not.
    pub(super) fn arguments_text(&self) -> String {
        match &self.arguments {
            ScriptedArguments::Json(value) => value.to_string(),
            ScriptedArguments::Text(text) => text.clone(),
        }
    }

    fn truncate(&mut self) {
        let text = self.arguments_text();
        let kept = text.chars().count() / 2;
        self.arguments = ScriptedArguments::Text(text.chars().take(kept.max(1)).collect());
    }

    fn misname(&mut self) {
        let last = self.name.chars().last().unwrap_or('x');
        self.name.push(last);
    }

    fn mistype(&mut self) {
        if let ScriptedArguments::Json(Value::Object(arguments)) = &mut self.arguments {
            for argument in arguments.values_mut() {
                *argument = match argument {
                    Value::Object(_) => Value::Array(Vec::new()),
                    _ => Value::Object(Map::new()),
                };
            }
        }
    }
}
