//! The inputs of one conversation: those that wait to be taken, and what is known of all that were
//! accepted.

use std::collections::HashMap;
use std::num::NonZeroU32;

use adjutant_core::port::{AcceptedInput, StoreError};
use adjutant_core::{Input, InputId};

/// Accepted inputs, each once.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    known: HashMap<InputId, Known>,
    /// In the order in which they were accepted.
    waiting: Vec<Input>,
}

/// An accepted input, as it is remembered also after it was taken.
#[derive(Debug)]
struct Known {
    fingerprint: Option<String>,
    /// The place of the event that took it.
    taken_at: Option<u64>,
}

impl Inbox {
    /// Accepts an input, if no more than `room` wait with it. Returns whether it is new.
    pub(super) fn accept(&mut self, input: Input, room: NonZeroU32) -> Result<bool, StoreError> {
        if let Some(known) = self.known.get(&input.id) {
            let differs =
                |known: &String| input.fingerprint.as_ref().is_some_and(|new| new != known);
            return match known.fingerprint.as_ref().is_some_and(differs) {
                true => Err(StoreError::Reused),
                false => Ok(false),
            };
        }
        if input.body.starts_turn() {
            let queued = self
                .waiting
                .iter()
                .filter(|input| input.body.starts_turn())
                .count();
            if u32::try_from(queued).is_ok_and(|queued| queued >= room.get()) {
                return Err(StoreError::QueueFull { limit: room });
            }
        }
        let known = Known {
            fingerprint: input.fingerprint.clone(),
            taken_at: None,
        };
        self.known.insert(input.id.clone(), known);
        self.waiting.push(input);
        Ok(true)
    }

    /// Notes that the event at a place took an input. One that was accepted elsewhere is not known
    /// here: a branch has the events of the conversation it comes from, and not its inputs.
    pub(super) fn take(&mut self, input: &InputId, seq: u64) {
        if let Some(known) = self.known.get_mut(input) {
            known.taken_at = Some(seq);
            self.waiting.retain(|waiting| waiting.id != *input);
        }
    }

    /// Returns the inputs that were accepted and not taken, in order.
    pub(super) fn waiting(&self) -> &[Input] {
        &self.waiting
    }

    /// Returns what is known of an input.
    pub(super) fn find(&self, input: &InputId) -> Option<AcceptedInput> {
        self.known.get(input).map(|known| AcceptedInput {
            taken_at: known.taken_at,
        })
    }
}
