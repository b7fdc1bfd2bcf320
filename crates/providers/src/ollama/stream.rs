//! Folds the lines of a stream. A line has the shape of a whole answer with less in it, so it is
//! decoded by the same code (`response.rs`).

use std::collections::VecDeque;

use adjutant_core::{Delta, GenerateResponse, ModelError};

use super::response::PartialAnswer;
use crate::decode::{AnswerFold, Progress};

impl AnswerFold for PartialAnswer {
    fn event(&mut self, json: &str, deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        self.line(json, deltas)
    }

    fn progress(&self) -> Progress {
        if self.is_done() {
            Progress::Over
        } else {
            Progress::Begun
        }
    }

    fn finish(
        &mut self,
        _: &str,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<GenerateResponse, ModelError> {
        self.end(deltas)
    }
}
