//! Turns in words: what a person said, and what was answered to it.

use adjutant_core::port::Passage;
use adjutant_core::{Event, LogContent, Recorded, TurnId};
use jiff::Timestamp;

use crate::rank::index_words;

/// Words of a passage: a longer turn is several.
const PASSAGE_WORDS: usize = 1_000;

/// A turn in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) turn: TurnId,
    /// The place of its beginning.
    pub(super) seq: u64,
    pub(super) at: Timestamp,
    /// The words of the person.
    pub(super) person: String,
    /// The words they were answered with; empty if there was no answer.
    pub(super) answer: String,
}

impl Said {
    /// Returns all words.
    pub(super) fn text(&self) -> String {
        if self.answer.is_empty() {
            self.person.clone()
        } else {
            format!("{}\n{}", self.person, self.answer)
        }
    }
}

/// Returns the turns that events tell of, in order, without what looks like a secret: it is neither
/// found nor shown. Left out are calls that were asked for without words, and answers that only say
/// why there is none.
pub(super) fn said(events: &[Recorded]) -> Vec<Said> {
    let mut turns: Vec<Said> = Vec::new();
    for Recorded { seq, at, event } in events {
        match &**event {
            Event::TurnStarted {
                turn,
                message,
                call: None,
                ..
            } => turns.push(Said {
                turn: *turn,
                seq: *seq,
                at: *at,
                person: LogContent::Full.text(message),
                answer: String::new(),
            }),
            Event::TurnFinished { turn, end, .. } if end.error.is_none() => {
                if let Some(said) = turns.iter_mut().rev().find(|said| said.turn == *turn) {
                    said.answer = LogContent::Full.text(&end.decision.text);
                }
            }
            _ => {}
        }
    }
    turns
}

/// Returns turns as they are put into the index.
pub(super) fn passages(turns: &[Said]) -> Vec<Passage> {
    let passages = turns.iter().flat_map(|said| {
        let pieces = index_words(&said.text(), PASSAGE_WORDS).into_iter();
        pieces.zip(0..).map(|((words, length), number)| Passage {
            seq: said.seq,
            number,
            turn: said.turn,
            at: said.at,
            length,
            words,
        })
    });
    passages.collect()
}
