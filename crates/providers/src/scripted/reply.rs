//! One answer of a script.

use std::time::Duration;

use adjutant_core::{FinishReason, Usage};
use serde_json::{Map, Value};

/// One answer of a script: what is said and called, or how it fails.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    pub(super) thinking: Option<String>,
    pub(super) text: Option<String>,
    pub(super) calls: Vec<Call>,
    pub(super) finish: Option<FinishReason>,
    pub(super) usage: Usage,
    pub(super) fault: Option<Fault>,
    pub(super) matching: Option<String>,
    pub(super) uses: Uses,
    pub(super) delay: Duration,
    pub(super) piece_chars: Option<usize>,
    pub(super) pause: Duration,
}

/// How often a reply is given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Uses {
    /// Once in the sequence; a reply that matches, every time.
    #[default]
    Usual,
    /// So many times.
    Times(u32),
    /// Every time.
    Forever,
}

/// A call of a tool in a script.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: ScriptedArguments,
}

/// Arguments as JSON, or as the raw text a model might have sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ScriptedArguments {
    Json(Value),
    Text(String),
}

/// How a scripted answer fails: what a vendor might do, without a vendor.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// Too many requests; `retry_after` is how long to wait, if it says.
    RateLimit {
        /// How long to wait.
        retry_after: Option<Duration>,
    },
    /// Out of credit.
    Quota,
    /// The provider failed with this HTTP status.
    Server {
        /// The status.
        status: u16,
    },
    /// No answer in time, reported at once.
    Timeout,
    /// Cannot be reached.
    Network,
    /// The connection breaks.
    Reset,
    /// The key is refused.
    Authentication,
    /// No such model.
    NotFound,
    /// The request is refused.
    BadRequest,
    /// The request does not fit the window.
    ContextTooLong,
    /// The provider declines to answer.
    Refused,
    /// The answer cannot be read.
    InvalidResponse {
        /// The unreadable answer.
        raw: String,
    },
    /// The answer stops before its end; the text of the reply comes before that.
    Truncated,
    /// Nothing more ever comes; the caller's time or a cancellation ends it.
    Stall,
    /// A finished answer with nothing in it.
    Empty,
    /// A finished answer in which the text of the reply is only thought, not said.
    ThinkingOnly,
    /// The answer arrives a byte at a time, so that every character is cut; what cannot be read yet
    /// waits for its rest.
    SplitUtf8,
    /// The arguments of the reply's calls stop in the middle.
    TruncatedJson,
    /// The reply's calls name tools there are not, one letter beside those that are meant.
    UnknownTool,
    /// No argument of the reply's calls has the type it had.
    WrongType,
}

impl Fault {
    /// Whether it spoils calls, and so needs some.
    pub(super) fn spoils_calls(&self) -> bool {
        matches!(
            self,
            Self::TruncatedJson | Self::UnknownTool | Self::WrongType
        )
    }
}

/// A reply that says something.
#[must_use]
pub fn text(words: impl Into<String>) -> Reply {
    Reply {
        text: Some(words.into()),
        ..Reply::default()
    }
}

/// A reply that calls a tool. `arguments` that are no object are sent as they are, as a confused
/// model would.
#[must_use]
pub fn call(tool: impl Into<String>, arguments: Value) -> Reply {
    Reply::default().and_call(tool, arguments)
}

/// A reply that fails.
#[must_use]
pub fn fault(fault: Fault) -> Reply {
    Reply {
        fault: Some(fault),
        ..Reply::default()
    }
}

impl Reply {
    /// The same and a further call in the same answer.
    #[must_use]
    pub fn and_call(mut self, tool: impl Into<String>, arguments: Value) -> Self {
        self.calls.push(Call {
            name: tool.into(),
            arguments: ScriptedArguments::Json(arguments),
        });
        self
    }

    /// The same and a call whose arguments are this raw text, JSON or not.
    #[must_use]
    pub fn and_call_text(mut self, tool: impl Into<String>, arguments: impl Into<String>) -> Self {
        self.calls.push(Call {
            name: tool.into(),
            arguments: ScriptedArguments::Text(arguments.into()),
        });
        self
    }

    /// The same, failing like this.
    #[must_use]
    pub fn failing(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// The same with words before the calls or the fault.
    #[must_use]
    pub fn saying(mut self, words: impl Into<String>) -> Self {
        self.text = Some(words.into());
        self
    }

    /// The same with thinking before everything else.
    #[must_use]
    pub fn thinking(mut self, words: impl Into<String>) -> Self {
        self.thinking = Some(words.into());
        self
    }

    /// The same with this reason to stop. Default: by what the reply holds.
    #[must_use]
    pub fn finish(mut self, finish: FinishReason) -> Self {
        self.finish = Some(finish);
        self
    }

    /// The same with this token count. Default: unknown.
    #[must_use]
    pub fn usage(mut self, input_tokens: u64, output_tokens: u64) -> Self {
        self.usage = Usage {
            input_tokens: Some(input_tokens),
            output_tokens: Some(output_tokens),
            ..Usage::default()
        };
        self
    }

    /// Not part of the sequence: answers every request whose latest words (the person's, or what
    /// tools returned) hold `words`, upper or lower case.
    #[must_use]
    pub fn matching(mut self, words: impl Into<String>) -> Self {
        self.matching = Some(words.into());
        self
    }

    /// Given so many times.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.uses = Uses::Times(times);
        self
    }

    /// Given every time from here on.
    #[must_use]
    pub fn forever(mut self) -> Self {
        self.uses = Uses::Forever;
        self
    }

    /// Given after this time.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Streamed in pieces of so many characters. Default: word by word.
    #[must_use]
    pub fn in_pieces(mut self, chars: usize) -> Self {
        self.piece_chars = Some(chars.max(1));
        self
    }

    /// Streamed with this time before each piece. Default: none.
    #[must_use]
    pub fn with_pauses(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// What is played: the reply as its fault leaves it. A fault that is an error is left to be
    /// one.
    pub(super) fn spoilt(mut self) -> Self {
        match &self.fault {
            Some(Fault::Empty) => {
                (self.thinking, self.text) = (None, None);
                self.calls.clear();
            }
            Some(Fault::ThinkingOnly) => {
                let thought = [self.thinking.take(), self.text.take()]
                    .into_iter()
                    .flatten();
                self.thinking = Some(thought.collect::<Vec<_>>().join(" "));
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

    /// How often it may be given.
    pub(super) fn uses_max(&self) -> u32 {
        match self.uses {
            Uses::Usual if self.matching.is_some() => u32::MAX,
            Uses::Usual => 1,
            Uses::Times(times) => times,
            Uses::Forever => u32::MAX,
        }
    }
}

impl Call {
    /// The arguments as JSON text, or what should be.
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
