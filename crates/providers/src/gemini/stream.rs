//! Events to deltas. An event is a whole answer with less in it, so reading one is reading the
//! other.

use std::collections::VecDeque;

use adjutant_core::{Delta, GenerateResponse, ModelError};

use super::error;
use super::response::Reading;
use crate::decode::{Answer, Progress};

impl Answer for Reading {
    fn event(&mut self, json: &str, deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        self.add(json, deltas)
    }

    /// Gemini has no mark of the end, only a reason to stop, which may also come in the middle.
    fn progress(&self) -> Progress {
        if self.has_ended() {
            Progress::Complete
        } else {
            Progress::Begun
        }
    }

    fn finish(
        &mut self,
        stray: &str,
        _: &mut VecDeque<Delta>,
    ) -> Result<GenerateResponse, ModelError> {
        // Gemini breaks into a stream with a bare JSON error (recorded), even behind a
        // finishReason.
        if let Some(status) = error::stray(stray) {
            return Err(error::inside(self.vendor(), &status));
        }
        self.end()
    }
}
