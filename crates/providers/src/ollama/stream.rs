//! Lines to deltas. A line is a whole answer with less in it, so reading one is reading the other.

use std::collections::VecDeque;

use adjutant_core::{Delta, GenerateResponse, ModelError};

use super::response::Reading;
use crate::decode::{Answer, Progress};

impl Answer for Reading {
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
