//! Events to deltas. A chunk is a whole answer with less in it, so reading one is reading the other.

use std::collections::VecDeque;

use adjutant_core::{Delta, GenerateResponse, ModelError};

use super::response::Reading;
use crate::decode::Answer;

impl Answer for Reading {
    fn event(&mut self, json: &str, deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        self.add(json, deltas)
    }

    fn done(&mut self) {
        Self::done(self);
    }

    fn finish(&mut self, stray: &str, deltas: &mut VecDeque<Delta>) -> Result<GenerateResponse, ModelError> {
        self.stray(stray, deltas)?;
        self.end(deltas)
    }
}
