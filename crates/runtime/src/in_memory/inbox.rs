//! The inbox of one conversation: inputs that wait, and the ids of all that were accepted.

use std::collections::HashMap;
use std::num::NonZeroU32;

use adjutant_core::port::{AcceptedInput, StoreError};
use adjutant_core::{Input, InputId};

/// The accepted inputs of a conversation, each once.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    accepted: HashMap<InputId, Accepted>,
    /// Inputs that no turn has taken, in the order of their acceptance.
    waiting: Vec<Input>,
}

/// The record of an accepted input, kept after it was taken.
#[derive(Debug)]
struct Accepted {
    fingerprint: Option<String>,
    /// The sequence number of the event that took it.
    taken_at: Option<u64>,
}

impl Inbox {
    /// Accepts an input, if at most `queued_max` messages wait with it. Returns true if it is new.
    pub(super) fn accept(
        &mut self,
        input: Input,
        queued_max: NonZeroU32,
    ) -> Result<bool, StoreError> {
        if let Some(known) = self.accepted.get(&input.id) {
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
            if u32::try_from(queued).is_ok_and(|queued| queued >= queued_max.get()) {
                return Err(StoreError::QueueFull { limit: queued_max });
            }
        }
        let known = Accepted {
            fingerprint: input.fingerprint.clone(),
            taken_at: None,
        };
        self.accepted.insert(input.id.clone(), known);
        self.waiting.push(input);
        Ok(true)
    }

    /// Records that an event took an input. A branch has the events of its origin but not its
    /// inputs, so an unknown input is ignored.
    pub(super) fn take(&mut self, input: &InputId, seq: u64) {
        if let Some(known) = self.accepted.get_mut(input) {
            known.taken_at = Some(seq);
            self.waiting.retain(|waiting| waiting.id != *input);
        }
    }

    /// Returns the accepted inputs that no turn has taken, in order.
    pub(super) fn waiting(&self) -> &[Input] {
        &self.waiting
    }

    /// Returns the record of an accepted input.
    pub(super) fn find(&self, input: &InputId) -> Option<AcceptedInput> {
        self.accepted.get(input).map(|known| AcceptedInput {
            taken_at: known.taken_at,
        })
    }
}
