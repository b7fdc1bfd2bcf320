//! A vendor's own form of what is said.

use super::reply::Reply;
use super::table::Row;
use super::wire::said::{Said, Trouble};
use super::wire::{Events, Form};
use crate::server::Answer;

/// The wire format of a vendor.
pub(super) trait Dialect: Sync {
    /// The provider's name.
    fn provider(&self) -> &'static str;

    /// The form of its answers.
    fn form(&self) -> &dyn Form;

    /// The status with which an empty account is reported.
    fn quota_status(&self) -> u16 {
        429
    }

    /// The vendor's server breaking down in the middle of a stream.
    fn error_event(&self) -> String;

    /// Says whether a server on this machine is taken for the vendor's, because no local server
    /// speaks its language.
    fn is_vendor_everywhere(&self) -> bool {
        false
    }

    /// Returns the rows of faults that only this vendor can have.
    fn own(&self) -> Vec<Row>;
}

/// The form in which an answer is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    /// Piece by piece.
    Streamed,
    /// As a whole, and the server sends the stream that it is asked for.
    Drained,
    /// As a whole, and the server sends a whole answer all the same.
    Whole,
}

/// A reply as the bytes that go over the socket.
pub(super) fn render(dialect: &dyn Dialect, wire: Wire, reply: &Reply) -> Answer {
    let form = dialect.form();
    let fine = |body: String| match wire {
        Wire::Streamed | Wire::Drained => {
            Answer::new(200, body).header("content-type", "text/event-stream")
        }
        Wire::Whole => Answer::new(200, body).header("content-type", "application/json"),
    };
    let framed = |events: &[String]| {
        events
            .iter()
            .map(|event| form.frame(event))
            .collect::<String>()
    };
    let all = |said: &Said| match wire {
        Wire::Streamed | Wire::Drained => {
            let Events { said, end } = form.events(said);
            framed(&said) + &framed(&end)
        }
        Wire::Whole => form.whole(said),
    };
    let begun = |said: &Said| match wire {
        Wire::Streamed | Wire::Drained => framed(&form.events(said).said),
        Wire::Whole => {
            let body = form.whole(said);
            body.chars().take(body.chars().count() / 2).collect()
        }
    };
    match reply {
        Reply::Says(said) => fine(all(said)),
        Reply::ByteByByte(said) => fine(all(said)).cut(1),
        Reply::Cut(said) => fine(begun(said)),
        Reply::Breaks(said) => fine(begun(said)).then_break(),
        Reply::Stalls(said) => fine(said.as_ref().map(begun).unwrap_or_default()).then_stall(),
        Reply::ErrorInside(said) => match wire {
            Wire::Streamed | Wire::Drained => {
                let before = said.as_ref().map(begun).unwrap_or_default();
                fine(before + &form.frame(&dialect.error_event()))
            }
            Wire::Whole => fine(form.error(503, Trouble::Plain)),
        },
        Reply::Page { status } => {
            Answer::new(*status, "<html><body><h1>Bad Gateway</h1></body></html>")
        }
        Reply::Status {
            status,
            trouble,
            header,
        } => {
            let body = form.error(*status, *trouble);
            let status = if *trouble == Trouble::Quota {
                dialect.quota_status()
            } else {
                *status
            };
            let answer = Answer::new(status, body);
            match header {
                Some((name, value)) => answer.header(name, *value),
                None => answer,
            }
        }
        Reply::Reset => Answer::reset(),
        Reply::Mute => Answer::mute(),
        Reply::Body(body) => fine((*body).to_owned()),
        Reply::Own { whole, events } => match wire {
            Wire::Streamed | Wire::Drained => fine(framed(events)),
            Wire::Whole => fine(whole.clone()),
        },
        Reply::OwnStatus { status, body } => Answer::new(*status, body.clone()),
    }
}
