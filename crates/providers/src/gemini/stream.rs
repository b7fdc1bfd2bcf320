//! Folds the events of a stream. An event has the shape of a whole answer with less in it, so it is
//! decoded by the same code (`response.rs`).

use std::collections::VecDeque;

use adjutant_core::{Delta, GenerateResponse, ModelError};

use super::error;
use super::response::PartialAnswer;
use crate::decode::{AnswerFold, Progress};

impl AnswerFold for PartialAnswer {
    fn event(&mut self, json: &str, deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        self.add(json, deltas)
    }

    /// Gemini sends no end mark, only a finish reason, which may also come in the middle.
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
        // Gemini breaks into a stream with a bare JSON error (recorded), even after a
        // finishReason.
        if let Some(status) = error::parse_stray(stray) {
            return Err(error::in_answer(self.vendor(), &status));
        }
        self.end()
    }
}
