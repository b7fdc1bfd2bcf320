//! Frames to deltas.

use std::collections::VecDeque;
use std::sync::Arc;

use adjutant_core::{Delta, GenerateResponse, ModelError};

use super::error;
use super::response::Answer;
use crate::decode::StreamDecoder;
use crate::error::Vendor;
use crate::sse::{Frame, SseParser};

/// Turns the bytes of `streamGenerateContent?alt=sse` into deltas.
#[derive(Debug)]
pub(super) struct GeminiStream {
    frames: SseParser,
    answer: Answer,
}

impl GeminiStream {
    pub(super) fn new(vendor: Arc<Vendor>, losses: Vec<String>) -> Self {
        Self { frames: SseParser::default(), answer: Answer::new(vendor, losses) }
    }

    fn frame(&mut self, frame: &Frame, deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        match frame.data.trim() {
            // Gemini ends without a mark; servers in front of it may add the usual one.
            "" | "[DONE]" => Ok(()),
            json => self.answer.add(json, deltas),
        }
    }
}

impl StreamDecoder for GeminiStream {
    fn push(&mut self, bytes: &[u8], deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        for frame in self.frames.push(bytes) {
            self.frame(&frame, deltas)?;
        }
        Ok(())
    }

    fn finish(&mut self, deltas: &mut VecDeque<Delta>) -> Result<GenerateResponse, ModelError> {
        if let Some(frame) = self.frames.finish() {
            self.frame(&frame, deltas)?;
        }
        // Gemini breaks into a stream with a bare JSON error (recorded), even behind a finishReason.
        if let Some(status) = error::stray(&self.frames.stray()) {
            return Err(error::inside(self.answer.vendor(), &status));
        }
        self.answer.finish()
    }
}
