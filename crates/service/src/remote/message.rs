//! Messages between processes: a line of JSON, followed by the events of a chunk.

use adjutant_core::port;
use adjutant_core::{AgentName, ConversationId, ConversationKey, UserId};
use serde::{Deserialize, Serialize};

use crate::live::Frame;

/// Largest length of the line of JSON in front of a chunk, in bytes.
const HEADER_BYTES: usize = 200;

/// A message from one process to another. The serialized names are part of the protocol between
/// processes of different versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RelayMessage {
    /// Subscribes to a run, or renews the subscription.
    #[serde(rename = "ask")]
    Subscribe(Subscription),
    /// Ends a subscription.
    #[serde(rename = "leave")]
    Unsubscribe {
        /// Id of the subscription.
        session: String,
    },
    /// A chunk of events, or an empty one as a sign that the run goes on.
    #[serde(rename = "told")]
    Events(Chunk),
    /// Refuses a subscription, because the client's history is not that of the run's client.
    Refused {
        /// Id of the subscription.
        session: String,
    },
}

/// Subscription to a run, from an event on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Subscription {
    /// Id of the subscription; a new one after each loss.
    pub(super) session: String,
    pub(super) agent: AgentName,
    pub(super) user: UserId,
    pub(super) conversation: ConversationId,
    /// The client's name for the run, or its turn id.
    pub(super) run: String,
    /// Id of the last event that the subscriber has, if any.
    pub(super) after: Option<String>,
    /// Fingerprint of the client's history, if it sent one.
    #[serde(rename = "has")]
    pub(super) client: Option<String>,
}

/// A numbered part of a run's events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Chunk {
    pub(super) session: String,
    /// Number of the chunk, from 0; of an empty one, the number of the next.
    pub(super) number: u64,
    /// True if the publication ends with it.
    pub(super) ends: bool,
    /// The events as lines; the last line may continue in the next chunk.
    #[serde(skip)]
    pub(super) text: String,
}

impl Subscription {
    pub(super) fn key(&self) -> ConversationKey {
        ConversationKey {
            agent: self.agent.clone(),
            user: self.user.clone(),
            conversation: self.conversation,
        }
    }
}

impl RelayMessage {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (line, events) = text.split_once('\n').unwrap_or((text, ""));
        // A message of a newer version may be unknown here, and is ignored.
        let mut message: Self = serde_json::from_str(line).ok()?;
        if let Self::Events(chunk) = &mut message {
            events.clone_into(&mut chunk.text);
        }
        Some(message)
    }

    pub(super) fn to_text(&self) -> String {
        // The events follow the line: as a member of it, each of their quotes would be escaped.
        let line = serde_json::to_string(self).unwrap_or_default();
        match self {
            Self::Events(chunk) => format!("{line}\n{}", chunk.text),
            Self::Subscribe(_) | Self::Unsubscribe { .. } | Self::Refused { .. } => line,
        }
    }
}

/// Serializes events, one per line.
pub(super) fn to_lines(frames: &[Frame]) -> String {
    frames
        .iter()
        .map(|Frame { id, data }| format!("{id} {data}\n"))
        .collect()
}

/// Takes the complete lines from the beginning of a text. `None`: a line is not an event.
pub(super) fn take_frames(text: &mut String) -> Option<Vec<Frame>> {
    // The rest is the beginning of an event that continues in a later chunk.
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

/// Cuts a text into chunks that fit a message together with their line of JSON.
pub(super) fn split_chunks(text: &str, bytes_max: usize) -> Vec<&str> {
    port::pieces(text, bytes_max.saturating_sub(HEADER_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_chunks_are_reassembled() {
        let frames: Vec<Frame> = (0..50)
            .map(|number| Frame {
                id: format!("mark-{number}"),
                data: format!("{{\"delta\":\"{} \\n 🦀ö\"}}", "ä".repeat(number * 7)).into(),
            })
            .collect();
        let (mut buffer, mut read) = (String::new(), Vec::new());
        for (number, piece) in split_chunks(&to_lines(&frames), 300)
            .into_iter()
            .enumerate()
        {
            let chunk = Chunk {
                session: "0123456789".to_owned(),
                number: number as u64,
                ends: false,
                text: piece.to_owned(),
            };
            let written = RelayMessage::Events(chunk.clone()).to_text();
            assert!(written.len() <= 300, "{written}");
            assert_eq!(
                RelayMessage::parse(&written),
                Some(RelayMessage::Events(chunk))
            );
            buffer += piece;
            read.extend(take_frames(&mut buffer).unwrap());
        }
        let parts = |frames: &[Frame]| {
            frames
                .iter()
                .map(|frame| (frame.id.clone(), frame.data.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!((parts(&read), buffer.as_str()), (parts(&frames), ""));
    }

    #[test]
    fn unknown_messages_are_ignored() {
        for words in [
            "",
            "{}",
            "hello",
            "{\"told\":{\"session\":\"s\"}}\nx",
            "{\"ask\":{}}",
        ] {
            assert_eq!(RelayMessage::parse(words), None, "{words}");
        }
        assert_eq!(
            take_frames(&mut "nospace\n".to_owned()).map(|frames| frames.len()),
            None
        );
    }
}
