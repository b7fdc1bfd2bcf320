//! The messages between processes: a line of JSON, and the events of the run behind it.

use adjutant_core::port;
use adjutant_core::{AgentName, ConversationId, ConversationKey, UserId};
use serde::{Deserialize, Serialize};

use crate::live::Frame;

/// The most bytes of a line of JSON in front of what is told.
const LINE_BYTES: usize = 200;

/// A message from one process to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Words {
    /// Somebody here asks for a run, or still does.
    Ask(Ask),
    /// Nobody asks any more.
    Leave {
        /// Name of the request.
        session: String,
    },
    /// A piece of the run, or, without one, that it goes on.
    Told(Told),
    /// This one is not told to whoever asks: it has other messages than whoever began it.
    Refused {
        /// Name of the request.
        session: String,
    },
}

/// A request for a run, from a place on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Ask {
    /// Name of the request: another one after each loss.
    pub(super) session: String,
    pub(super) agent: AgentName,
    pub(super) user: UserId,
    pub(super) conversation: ConversationId,
    /// The client's name for the run, or its turn's.
    pub(super) run: String,
    /// The last event that whoever asks has. `None`: they have none.
    pub(super) after: Option<String>,
    /// The client's own state of the conversation, as it says with a request to run.
    pub(super) has: Option<String>,
}

/// Number of the piece.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) session: String,
    /// The number of the piece, from 0; of none, the one that the next will have.
    pub(super) number: u64,
    /// Nothing comes behind it.
    pub(super) ends: bool,
    /// The piece: lines, which may go on in the next one.
    #[serde(skip)]
    pub(super) text: String,
}

impl Ask {
    pub(super) fn key(&self) -> ConversationKey {
        ConversationKey {
            agent: self.agent.clone(),
            user: self.user.clone(),
            conversation: self.conversation,
        }
    }
}

impl Words {
    pub(super) fn read(words: &str) -> Option<Self> {
        let (line, text) = words.split_once('\n').unwrap_or((words, ""));
        let mut words: Self = serde_json::from_str(line).ok()?;
        if let Self::Told(told) = &mut words {
            text.clone_into(&mut told.text);
        }
        Some(words)
    }

    pub(super) fn written(&self) -> String {
        let line = serde_json::to_string(self).unwrap_or_default();
        match self {
            Self::Told(told) => format!("{line}\n{}", told.text),
            Self::Ask(_) | Self::Leave { .. } | Self::Refused { .. } => line,
        }
    }
}

/// Writes events, each on a line of its own.
pub(super) fn lines(frames: &[Frame]) -> String {
    frames
        .iter()
        .map(|Frame { id, data }| format!("{id} {data}\n"))
        .collect()
}

/// Takes the whole lines from the beginning of a text, and leaves the rest there. `None`: something
/// else is there.
pub(super) fn take_frames(text: &mut String) -> Option<Vec<Frame>> {
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let read = |line: &str| {
        let (id, data) = line.split_once(' ')?;
        Some(Frame {
            id: id.to_owned(),
            data: data.into(),
        })
    };
    text.drain(..whole)
        .collect::<String>()
        .lines()
        .map(read)
        .collect()
}

/// Cuts a text into pieces that can be said at once, with a line in front of each.
pub(super) fn pieces(text: &str, bytes_max: usize) -> Vec<&str> {
    port::pieces(text, bytes_max.saturating_sub(LINE_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_anywhere_comes_together_again() {
        let frames: Vec<Frame> = (0..50)
            .map(|number| Frame {
                id: format!("mark-{number}"),
                data: format!("{{\"delta\":\"{} \\n 🦀ö\"}}", "ä".repeat(number * 7)).into(),
            })
            .collect();
        let (mut buffer, mut read) = (String::new(), Vec::new());
        for (number, piece) in pieces(&lines(&frames), 300).into_iter().enumerate() {
            let told = Told {
                session: "0123456789".to_owned(),
                number: number as u64,
                ends: false,
                text: piece.to_owned(),
            };
            let written = Words::Told(told.clone()).written();
            assert!(written.len() <= 300, "{written}");
            assert_eq!(Words::read(&written), Some(Words::Told(told)));
            buffer += piece;
            read.extend(take_frames(&mut buffer).unwrap());
        }
        let told = |frames: &[Frame]| {
            frames
                .iter()
                .map(|frame| (frame.id.clone(), frame.data.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!((told(&read), buffer.as_str()), (told(&frames), ""));
    }

    #[test]
    fn what_nobody_here_said_is_nothing() {
        for words in [
            "",
            "{}",
            "hello",
            "{\"told\":{\"session\":\"s\"}}\nx",
            "{\"ask\":{}}",
        ] {
            assert_eq!(Words::read(words), None, "{words}");
        }
        assert_eq!(
            take_frames(&mut "nospace\n".to_owned()).map(|frames| frames.len()),
            None
        );
    }
}
