//! Replies of a vendor, before they are encoded in the vendor's format.

use super::wire::said::{Said, Trouble};

/// The server's reaction to one request.
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
    /// Takes the request and says nothing, not even a status.
    Mute,
    /// An error inside a 200, behind what was said.
    ErrorInside(Option<Said>),
    /// A page of a proxy in between.
    Page { status: u16 },
    /// Refuses with this status.
    Status {
        status: u16,
        trouble: Trouble,
        header: Option<(&'static str, &'static str)>,
    },
    /// The connection closes without an answer.
    Reset,
    /// A 200 with this body, whatever was asked for.
    Body(&'static str),
    /// A form only this vendor has.
    Own { whole: String, events: Vec<String> },
    /// A refusal with a body only this vendor has.
    OwnStatus { status: u16, body: String },
}

pub(super) fn status(status: u16) -> Reply {
    Reply::Status {
        status,
        trouble: Trouble::Plain,
        header: None,
    }
}

pub(super) fn trouble(status: u16, trouble: Trouble) -> Reply {
    Reply::Status {
        status,
        trouble,
        header: None,
    }
}

pub(super) fn slow_down(seconds: &'static str) -> Reply {
    Reply::Status {
        status: 429,
        trouble: Trouble::Plain,
        header: Some(("retry-after", seconds)),
    }
}

impl From<Said> for Reply {
    fn from(said: Said) -> Self {
        Self::Says(said)
    }
}
