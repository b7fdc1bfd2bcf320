//! The content of an answer, before it is put in a vendor's form.

/// The content of an answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    pub(crate) thinking: &'static str,
    /// Opaque state that comes with the thinking.
    pub(crate) state: &'static str,
    pub(crate) text: &'static str,
    pub(crate) refusal: &'static str,
    pub(crate) calls: Vec<Call>,
    pub(crate) end: End,
    pub(crate) counts: Counts,
}

/// A call as the model wrote it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    /// The arguments as text; a JSON object unless a test wants it broken.
    pub(crate) arguments: &'static str,
}

/// The reason for the end of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum End {
    /// As it should: done, or calls to make.
    #[default]
    Usual,
    /// At the output bound.
    MaxTokens,
    /// A filter, or the model, declined.
    Filtered,
    /// For a reason no documentation knows.
    Unheard,
}

/// Tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts {
    /// Read, cached ones included.
    pub(crate) input: u64,
    /// Written, thinking included.
    pub(crate) output: u64,
    /// Of the input: read from a cache.
    pub(crate) cached: u64,
    /// Of the output: thinking.
    pub(crate) thinking: u64,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            input: 300,
            output: 3,
            cached: 0,
            thinking: 0,
        }
    }
}

/// The kind of an error body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Whatever the status says.
    Plain,
    /// The account is empty.
    Quota,
    /// The request does not fit the window.
    TooLong,
}

pub(crate) fn text(words: &'static str) -> Said {
    Said {
        text: words,
        ..Said::default()
    }
}

pub(crate) fn call(name: &'static str, arguments: &'static str) -> Said {
    Said::default().and_call(name, arguments)
}

impl Said {
    pub(crate) fn and_call(mut self, name: &'static str, arguments: &'static str) -> Self {
        self.calls.push(Call { name, arguments });
        self
    }

    pub(crate) fn thinking(self, words: &'static str) -> Self {
        Self {
            thinking: words,
            state: "c2ln",
            ..self
        }
    }

    pub(crate) fn end(self, end: End) -> Self {
        Self { end, ..self }
    }
}

impl Call {
    /// The arguments as an object where they are one, else as the text they are.
    pub(crate) fn value(&self) -> serde_json::Value {
        serde_json::from_str(self.arguments).unwrap_or_else(|_| self.arguments.into())
    }
}
