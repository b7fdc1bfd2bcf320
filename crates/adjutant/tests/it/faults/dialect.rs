//! A vendor's own form of what is said.

use super::said::{Reply, Said, Trouble};
use super::table::Row;
use crate::server::Answer;

/// How a vendor says things.
pub(super) trait Dialect: Sync {
    /// The provider's name.
    fn provider(&self) -> &'static str;

    /// A model of it.
    fn model(&self) -> &'static str;

    /// A whole answer.
    fn whole(&self, said: &Said) -> String;

    /// The same answer, streamed.
    fn events(&self, said: &Said) -> Events;

    /// The body of an error answer.
    fn error(&self, status: u16, trouble: Trouble) -> String;

    /// The status with which an empty account is told.
    fn quota_status(&self) -> u16 {
        429
    }

    /// The vendor's server breaking down in the middle of a stream.
    fn error_event(&self) -> String;

    /// What only this vendor can do.
    fn own(&self) -> Vec<Row>;

    /// An event as bytes of the stream.
    fn frame(&self, event: &str) -> String {
        format!("data: {event}\n\n")
    }
}

/// The events of a streamed answer.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// What is said.
    pub(super) said: Vec<String>,
    /// What tells that it was all.
    pub(super) end: Vec<String>,
}

/// How an answer is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    Streamed,
    Whole,
}

/// A reply as the bytes that go over the socket.
pub(super) fn render(dialect: &dyn Dialect, wire: Wire, reply: &Reply) -> Answer {
    let fine = |body: String| match wire {
        Wire::Streamed => Answer::new(200, body).header("content-type", "text/event-stream"),
        Wire::Whole => Answer::new(200, body).header("content-type", "application/json"),
    };
    let framed = |events: &[String]| events.iter().map(|event| dialect.frame(event)).collect::<String>();
    let all = |said: &Said| match wire {
        Wire::Streamed => {
            let Events { said, end } = dialect.events(said);
            framed(&said) + &framed(&end)
        }
        Wire::Whole => dialect.whole(said),
    };
    let begun = |said: &Said| match wire {
        Wire::Streamed => framed(&dialect.events(said).said),
        Wire::Whole => {
            let body = dialect.whole(said);
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
            Wire::Streamed => {
                let before = said.as_ref().map(begun).unwrap_or_default();
                fine(before + &dialect.frame(&dialect.error_event()))
            }
            Wire::Whole => fine(dialect.error(503, Trouble::Plain)),
        },
        Reply::Status { status, trouble, header } => {
            let body = match trouble {
                Trouble::Page => "<html><body><h1>Bad Gateway</h1></body></html>".to_owned(),
                Trouble::Plain | Trouble::Quota | Trouble::TooLong => dialect.error(*status, *trouble),
            };
            let status = if *trouble == Trouble::Quota { dialect.quota_status() } else { *status };
            let answer = Answer::new(status, body);
            match header {
                Some((name, value)) => answer.header(name, *value),
                None => answer,
            }
        }
        Reply::Reset => Answer::reset(),
        Reply::Body(body) => fine((*body).to_owned()),
        Reply::Own { whole, events } => match wire {
            Wire::Streamed => fine(framed(events)),
            Wire::Whole => fine(whole.clone()),
        },
        Reply::OwnStatus { status, body } => Answer::new(*status, body.clone()),
    }
}
