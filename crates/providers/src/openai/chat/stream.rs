//! Events to deltas. A chunk is a whole answer with less in it, so reading one is reading the
//! other.

use std::collections::VecDeque;

use adjutant_core::{Delta, GenerateResponse, ModelError};

use super::response::Reading;
use crate::decode::{Answer, Progress};

impl Answer for Reading {
    fn event(&mut self, json: &str, deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        self.add(json, deltas)
    }

    fn done(&mut self) {
        Self::done(self);
    }

    /// Counts come behind the reason to stop, and not every server has a mark of the end.
    fn progress(&self) -> Progress {
        if self.has_reason_to_stop() {
            Progress::Complete
        } else {
            Progress::Begun
        }
    }

    fn finish(
        &mut self,
        stray: &str,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<GenerateResponse, ModelError> {
        self.stray(stray, deltas)?;
        self.end(deltas)
    }
}
