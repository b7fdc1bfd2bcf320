//! The text of a turn, the user's message and the answer to it, from the events of its journal.

use adjutant_core::port::Passage;
use adjutant_core::{Event, LogContent, Recorded, TurnId};
use jiff::Timestamp;

use crate::rank::index_terms;

/// Number of words of a passage. A longer turn is divided into several.
const PASSAGE_WORDS: usize = 1_000;

/// The text of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TurnText {
    pub(super) turn: TurnId,
    /// The number of the event that starts the turn.
    pub(super) seq: u64,
    pub(super) at: Timestamp,
    /// The user's message.
    pub(super) user: String,
    /// The answer; empty if there was none.
    pub(super) answer: String,
    /// True if either holds text of others, or was written after such text was read.
    pub(super) from_others: bool,
}

impl TurnText {
    /// Returns the message and the answer.
    pub(super) fn to_text(&self) -> String {
        if self.answer.is_empty() {
            self.user.clone()
        } else {
            format!("{}\n{}", self.user, self.answer)
        }
    }
}

/// Returns the text of the turns in these events, in order. What looks like a secret is masked: it
/// can neither be found nor shown. Turns that run a tool call without a message are left out, and
/// so are answers that only report an error.
pub(super) fn turn_texts(events: &[Recorded]) -> Vec<TurnText> {
    let mut turns: Vec<TurnText> = Vec::new();
    for Recorded { seq, at, event } in events {
        match &**event {
            Event::TurnStarted {
                turn,
                message,
                call: None,
                from_others,
                ..
            } => turns.push(TurnText {
                turn: *turn,
                seq: *seq,
                at: *at,
                user: LogContent::Full.text(message),
                answer: String::new(),
                from_others: *from_others,
            }),
            Event::TurnFinished { turn, end, .. } => {
                if let Some(text) = turns.iter_mut().rev().find(|text| text.turn == *turn) {
                    text.from_others = end.is_from_others();
                    if end.error.is_none() {
                        text.answer = LogContent::Full.text(&end.decision.text);
                    }
                }
            }
            _ => {}
        }
    }
    turns
}

/// Returns the passages of turns, as an index holds them.
pub(super) fn passages(turns: &[TurnText]) -> Vec<Passage> {
    let passages = turns.iter().flat_map(|text| {
        let pieces = index_terms(&text.to_text(), PASSAGE_WORDS).into_iter();
        pieces.zip(0..).map(|((words, length), number)| Passage {
            seq: text.seq,
            number,
            turn: text.turn,
            at: text.at,
            length,
            words,
        })
    });
    passages.collect()
}
