//! The text format of messages between processes about a turn.
//!
//! A message is one head line and a body. All begin with [`MARK`], which tells them from other
//! messages in the same relay:
//!
//! ```text
//! adjutant-turn-1 SESSION NUMBER part|event|turn|end   a numbered piece; the body is JSON
//! adjutant-turn-1 SESSION EPOCH begun                  a worker started; the body is its id
//! adjutant-turn-1 ask                                  asks whether a worker is alive
//! adjutant-turn-1 alive                                the answer that it is
//! ```

use adjutant_core::port::Holder;

/// The first word of every message.
const MARK: &str = "adjutant-turn-1";

/// The most bytes that the head line takes.
pub(super) const HEAD_BYTES: usize = 100;

/// A message from another process.
#[derive(Debug, PartialEq)]
pub(super) enum RelayMessage<'a> {
    /// A numbered piece of the events of a turn.
    Piece {
        session: &'a str,
        number: u64,
        end: PieceEnd,
        text: &'a str,
    },
    /// A worker starts or continues a turn.
    WorkerStarted { session: &'a str, holder: Holder },
    /// Asks the process of a worker to answer.
    Ping { worker: &'a str },
    /// Answers that the worker is alive.
    Alive { worker: &'a str },
}

/// The unit that ends with a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PieceEnd {
    /// None: it continues in the next piece.
    Partial,
    /// An event.
    Event,
    /// The state of a turn.
    State,
    /// The whole session.
    Session,
}

pub(super) fn encode_piece(session: &str, number: u64, end: PieceEnd, text: &str) -> String {
    let end = match end {
        PieceEnd::Partial => "part",
        PieceEnd::Event => "event",
        PieceEnd::State => "turn",
        PieceEnd::Session => "end",
    };
    format!("{MARK} {session} {number} {end}\n{text}")
}

pub(super) fn encode_worker_started(session: &str, Holder { worker, epoch }: &Holder) -> String {
    format!("{MARK} {session} {epoch} begun\n{worker}")
}

pub(super) fn encode_ping(worker: &str) -> String {
    format!("{MARK} ask\n{worker}")
}

pub(super) fn encode_alive(worker: &str) -> String {
    format!("{MARK} alive\n{worker}")
}

/// Parses a message. `None`: it is not one of ours, or of another version.
pub(super) fn parse_message(message: &str) -> Option<RelayMessage<'_>> {
    let (head, text) = message.split_once('\n')?;
    let head: Vec<&str> = head
        .strip_prefix(MARK)?
        .strip_prefix(' ')?
        .split(' ')
        .collect();
    let (session, number, end) = match *head {
        ["ask"] => return Some(RelayMessage::Ping { worker: text }),
        ["alive"] => return Some(RelayMessage::Alive { worker: text }),
        [session, number, end] => (session, number, end),
        _ => return None,
    };
    let end = match end {
        "begun" => {
            let holder = Holder {
                worker: text.to_owned(),
                epoch: number.parse().ok()?,
            };
            return Some(RelayMessage::WorkerStarted { session, holder });
        }
        "part" => PieceEnd::Partial,
        "event" => PieceEnd::Event,
        "turn" => PieceEnd::State,
        "end" => PieceEnd::Session,
        _ => return None,
    };
    Some(RelayMessage::Piece {
        session,
        number: number.parse().ok()?,
        end,
        text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_other_programs_are_ignored() {
        for message in [
            "",
            "{}",
            "adjutant-turn-1 a 0 event",
            "adjutant-turn-1 a x event\n",
            "adjutant-turn-1 a 0 what\n",
            "adjutant-turn-1 a x begun\nworker",
            "adjutant-turn-1 asks\nworker",
        ] {
            assert_eq!(parse_message(message), None, "{message}");
        }
        let encoded = encode_piece("a", 7, PieceEnd::Partial, "x\ny");
        assert_eq!(
            parse_message(&encoded),
            Some(RelayMessage::Piece {
                session: "a",
                number: 7,
                end: PieceEnd::Partial,
                text: "x\ny"
            })
        );
    }
}
