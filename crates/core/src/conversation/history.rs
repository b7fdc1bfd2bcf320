//! The messages that the next request begins with.

use crate::message::Message;
use crate::summary::{Recalled, Summary};
use crate::trim::{is_spoken, trimmed_at};

use super::weight::message_weight;

/// Keeps the messages of finished turns that the next request needs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct History {
    messages_max: Option<usize>,
    /// Number of messages there were, kept or not.
    total: usize,
    /// The last of them.
    kept: Vec<Message>,
    /// Number of those that are of a person or a model.
    spoken: usize,
    /// About how many bytes they take.
    weight: usize,
    summary: Option<Summary>,
}

impl History {
    pub(super) fn new(messages_max: Option<usize>) -> Self {
        Self { messages_max, total: 0, kept: Vec::new(), spoken: 0, weight: 0, summary: None }
    }

    /// Adds a message; drops the oldest turns once there are too many.
    pub(super) fn push(&mut self, message: Message) {
        self.total += 1;
        self.keep(message);
    }

    fn keep(&mut self, message: Message) {
        self.spoken += usize::from(is_spoken(&message));
        self.weight += message_weight(&message);
        self.kept.push(message);
        if let Some(max) = self.messages_max
            && self.spoken > max
        {
            let dropped = trimmed_at(&self.kept, max);
            for message in self.kept.drain(..dropped) {
                self.spoken -= usize::from(is_spoken(&message));
                self.weight -= message_weight(&message);
            }
        }
    }

    /// Replaces everything by a history from elsewhere.
    pub(super) fn set(&mut self, messages: impl Iterator<Item = Message>) {
        *self = Self::new(self.messages_max);
        messages.for_each(|message| self.push(message));
    }

    /// Puts a summary in the place of the messages it stands for.
    pub(super) fn summarise(&mut self, summary: Summary) {
        if summary.summarized_at > self.total {
            // It is of another history.
            self.summary = None;
            return;
        }
        let since = (self.total - summary.summarized_at).min(self.kept.len());
        let rest = self.kept.split_off(self.kept.len() - since);
        self.kept.clear();
        (self.spoken, self.weight) = (0, 0);
        // The cut falls where it falls if only what was said since is looked at.
        rest.into_iter().for_each(|message| self.keep(message));
        self.summary = Some(summary);
    }

    pub(super) fn recalled(&self) -> Recalled {
        Recalled {
            summary: self.summary.clone(),
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
        self.summary.as_ref()
    }
}
