//! History: the messages that the next request to a model begins with.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::event::{Event, Recorded};
use crate::message::Message;
use crate::summary::{Summary, TurnHistory};
use crate::trim::{is_spoken, trimmed_at};

use super::weight::message_weight;

/// The messages of finished turns that the next request needs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct History {
    messages_max: Option<usize>,
    /// Number of all messages of finished turns, kept or dropped.
    total: usize,
    /// The newest messages, oldest first.
    kept: Vec<Message>,
    /// Sequence numbers of the events that the kept messages come from, each with its number of
    /// kept messages.
    sources: VecDeque<(u64, usize)>,
    /// Number of kept messages of the person and the model.
    spoken: usize,
    /// Approximate size of the kept messages, in bytes.
    weight: usize,
    /// Summary that replaces the oldest messages, with the sequence number of its event.
    summary: Option<(u64, Summary)>,
}

/// A history without its messages, as snapshots store it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Outline {
    messages_max: Option<usize>,
    total: usize,
    kept: usize,
    summary: Option<(u64, Summary)>,
}

impl Outline {
    pub(super) fn messages_max(&self) -> Option<usize> {
        self.messages_max
    }
}

impl History {
    pub(super) fn new(messages_max: Option<usize>) -> Self {
        Self {
            messages_max,
            total: 0,
            kept: Vec::new(),
            sources: VecDeque::new(),
            spoken: 0,
            weight: 0,
            summary: None,
        }
    }

    /// Adds a message of the event with sequence number `seq`, and drops the oldest turns if there
    /// are too many.
    pub(super) fn push(&mut self, seq: u64, message: Message) {
        self.total += 1;
        self.keep(seq, message);
    }

    fn keep(&mut self, seq: u64, message: Message) {
        match self.sources.back_mut().filter(|(last, _)| *last == seq) {
            Some((_, messages)) => *messages += 1,
            None => self.sources.push_back((seq, 1)),
        }
        self.spoken += usize::from(is_spoken(&message));
        self.weight += message_weight(&message);
        self.kept.push(message);
        // In blocks, exactly as `trim` does it: folding step by step has to give the messages of
        // folding at once.
        if let Some(max) = self.messages_max
            && self.spoken > max
        {
            let dropped = trimmed_at(&self.kept, max);
            for message in self.kept.drain(..dropped) {
                self.spoken -= usize::from(is_spoken(&message));
                self.weight -= message_weight(&message);
                if let Some((_, messages)) = self.sources.front_mut() {
                    *messages -= 1;
                    if *messages == 0 {
                        self.sources.pop_front();
                    }
                }
            }
        }
    }

    /// Replaces all messages by a history from outside.
    pub(super) fn set(&mut self, seq: u64, messages: impl Iterator<Item = Message>) {
        // Totals and summary begin anew too: they are positions in the history that is replaced.
        *self = Self::new(self.messages_max);
        messages.for_each(|message| self.push(seq, message));
    }

    /// Replaces the messages that a summary covers by it.
    pub(super) fn summarise(&mut self, seq: u64, summary: Summary) {
        if summary.summarized_at > self.total {
            // The old summary describes a history that is gone.
            self.summary = None;
            return;
        }
        // The limit may have dropped some of them already.
        let since = (self.total - summary.summarized_at).min(self.kept.len());
        self.keep_last(since);
        self.summary = Some((seq, summary));
    }

    /// Drops all messages but the last ones, at whatever turn boundary or none.
    fn keep_last(&mut self, messages: usize) {
        let rest = self
            .kept
            .split_off(self.kept.len().saturating_sub(messages));
        // From the back: the first source may have lost some of its messages, the last ones have
        // all of theirs.
        let mut places: Vec<u64> = Vec::with_capacity(rest.len());
        for (seq, messages) in self.sources.drain(..).rev() {
            places.extend(std::iter::repeat_n(
                seq,
                messages.min(rest.len() - places.len()),
            ));
        }
        self.kept.clear();
        (self.spoken, self.weight) = (0, 0);
        for (seq, message) in places.into_iter().rev().zip(rest) {
            self.keep(seq, message);
        }
    }

    /// Returns the sequence number of the first event with kept messages, or `None` if there are
    /// none.
    pub(super) fn begins_at(&self) -> Option<u64> {
        self.sources.front().map(|(seq, _)| *seq)
    }

    pub(super) fn outline(&self) -> Outline {
        Outline {
            messages_max: self.messages_max,
            total: self.total,
            kept: self.kept.len(),
            summary: self.summary.clone(),
        }
    }

    /// Restores a history from its outline and the events with messages from [`History::begins_at`]
    /// on. Returns `None` if the events do not match, or another number of messages has to be kept.
    pub(super) fn restore(
        messages_max: Option<usize>,
        outline: Outline,
        with_messages: impl IntoIterator<Item = Recorded>,
    ) -> Option<Self> {
        let Outline {
            messages_max: kept_max,
            total,
            kept,
            summary,
        } = outline;
        // Without the limit: which messages were kept depends on summaries and earlier messages, so
        // the outline says how many.
        let mut all = Self::new(None);
        for Recorded { seq, event, .. } in with_messages {
            match &*event {
                Event::HistorySet { messages, .. } => all.set(seq, messages.iter().cloned()),
                Event::TurnFinished { end, .. } => {
                    end.history().for_each(|message| all.push(seq, message));
                }
                _ => {}
            }
        }
        // A state with another limit would have kept other messages, and cannot be made of this
        // one.
        if messages_max != kept_max || all.kept.len() < kept {
            return None;
        }
        all.messages_max = messages_max;
        all.keep_last(kept);
        (all.total, all.summary) = (total, summary);
        // The limit drops messages while they are added again; a snapshot that fits loses none.
        (all.kept.len() == kept).then_some(all)
    }

    pub(super) fn turn_history(&self) -> TurnHistory {
        TurnHistory {
            summary: self.summary().cloned(),
            from: self.total - self.kept.len(),
            messages: self.kept.clone(),
        }
    }

    pub(super) fn weight(&self) -> usize {
        self.weight
    }

    pub(super) fn kept(&self) -> &[Message] {
        &self.kept
    }

    pub(super) fn total(&self) -> usize {
        self.total
    }

    pub(super) fn messages_max(&self) -> Option<usize> {
        self.messages_max
    }

    pub(super) fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref().map(|(_, summary)| summary)
    }

    /// Returns the sequence number of the event with the summary.
    pub(super) fn summary_at(&self) -> Option<u64> {
        self.summary.as_ref().map(|(seq, _)| *seq)
    }
}

/// Returns the messages of all finished turns in order, without an instruction.
#[must_use]
pub fn history(events: &[Recorded]) -> Vec<Message> {
    let mut messages = Vec::new();
    for recorded in events {
        if let Event::HistorySet { messages: set, .. } = &*recorded.event {
            messages = set.clone();
        } else if let Event::TurnFinished { end, .. } = &*recorded.event {
            messages.extend(end.history());
        }
    }
    messages
}
