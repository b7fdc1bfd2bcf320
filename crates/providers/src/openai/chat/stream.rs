//! Folds the chunks of a stream. A chunk has the shape of a whole answer with less in it, so it is
//! decoded by the same code (`response.rs`).

use std::collections::VecDeque;

use adjutant_core::{Delta, GenerateResponse, ModelError};

use super::response::PartialAnswer;
use crate::decode::{AnswerFold, Progress};

impl AnswerFold for PartialAnswer {
    fn event(&mut self, json: &str, deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        self.add(json, deltas)
    }

    fn done(&mut self) {
        Self::done(self);
    }

    /// Counts come after the finish reason, and not every server sends an end mark.
    fn progress(&self) -> Progress {
        if self.has_finish_reason() {
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
        self.add_stray(stray, deltas)?;
        self.end(deltas)
    }
}
