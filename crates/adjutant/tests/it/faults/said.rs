//! What a vendor does, before it is put in the vendor's own form.

/// What an answer holds.
#[derive(Debug, Clone, Default)]
pub(super) struct Said {
    pub(super) thinking: &'static str,
    pub(super) text: &'static str,
    pub(super) calls: Vec<Call>,
    pub(super) end: End,
}

/// A call as the model wrote it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) name: &'static str,
    /// What should be a JSON object.
    pub(super) arguments: &'static str,
}

/// Why the answer stops.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum End {
    /// As it should: done, or calls to make.
    #[default]
    Usual,
    /// At the output bound.
    MaxTokens,
    /// For a reason no documentation knows.
    Unheard,
}

pub(super) fn text(words: &'static str) -> Said {
    Said { text: words, ..Said::default() }
}

pub(super) fn call(name: &'static str, arguments: &'static str) -> Said {
    Said::default().and_call(name, arguments)
}

impl Said {
    pub(super) fn and_call(mut self, name: &'static str, arguments: &'static str) -> Self {
        self.calls.push(Call { name, arguments });
        self
    }

    pub(super) fn thinking(self, words: &'static str) -> Self {
        Self { thinking: words, ..self }
    }

    pub(super) fn end(self, end: End) -> Self {
        Self { end, ..self }
    }
}

impl Call {
    /// The arguments as an object where they are one, else as the text they are.
    pub(super) fn value(&self) -> serde_json::Value {
        serde_json::from_str(self.arguments).unwrap_or_else(|_| self.arguments.into())
    }
}

/// What the server does with one request.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    /// Answers.
    Says(Said),
    /// Answers one byte after the other.
    ByteByByte(Said),
    /// Answers, but the last events are missing; of a whole answer, the second half.
    Cut(Said),
    /// The same, and the connection breaks instead of ending.
    Breaks(Said),
    /// The same, and then says nothing more. `None`: nothing at all behind the status.
    Stalls(Option<Said>),
    /// An error inside a 200, behind what was said.
    ErrorInside(Option<Said>),
    /// Refuses with this status.
    Status { status: u16, trouble: Trouble, header: Option<(&'static str, &'static str)> },
    /// The connection closes without an answer.
    Reset,
    /// A 200 with this body, whatever was asked for.
    Body(&'static str),
    /// A form only this vendor has.
    Own { whole: String, events: Vec<String> },
    /// A refusal with a body only this vendor has.
    OwnStatus { status: u16, body: String },
}

/// What an error body is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Whatever the status says.
    Plain,
    /// The account is empty.
    Quota,
    /// The request does not fit the window.
    TooLong,
    /// A page of a proxy in between.
    Page,
}

pub(super) fn status(status: u16) -> Reply {
    Reply::Status { status, trouble: Trouble::Plain, header: None }
}

pub(super) fn trouble(status: u16, trouble: Trouble) -> Reply {
    Reply::Status { status, trouble, header: None }
}

pub(super) fn slow_down(seconds: &'static str) -> Reply {
    Reply::Status { status: 429, trouble: Trouble::Plain, header: Some(("retry-after", seconds)) }
}

impl From<Said> for Reply {
    fn from(said: Said) -> Self {
        Self::Says(said)
    }
}
