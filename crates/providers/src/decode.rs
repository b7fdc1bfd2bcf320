//! A vendor's byte stream as deltas: the same loop for every vendor, around its own pure decoder.

use std::collections::VecDeque;

use adjutant_core::port::DeltaStream;
use adjutant_core::{Delta, GenerateResponse, ModelError};
use futures::stream;

use crate::http::ByteStream;

/// Turns the bytes of one answer into deltas. Knows no socket and no clock.
pub(crate) trait StreamDecoder: Send + 'static {
    /// Takes bytes as they come, cut anywhere. Deltas of the bytes before a failure are in `deltas` all the same, so that
    /// the cuts make no difference.
    fn push(&mut self, bytes: &[u8], deltas: &mut VecDeque<Delta>) -> Result<(), ModelError>;

    /// The stream is over. Fails if it stopped before its last event.
    fn finish(&mut self, deltas: &mut VecDeque<Delta>) -> Result<GenerateResponse, ModelError>;
}

/// Reads to the end of the stream, not only to the reason to stop: counts and errors may come behind it.
pub(crate) fn deltas(bytes: ByteStream, decoder: impl StreamDecoder) -> DeltaStream {
    let state = Reading { bytes, decoder, ready: VecDeque::new(), end: None };
    Box::pin(stream::unfold(Some(state), async |state| {
        let mut state = state?;
        let item = state.next().await;
        let over = matches!(item, Err(_) | Ok(Delta::Finished(_)));
        Some((item, (!over).then_some(state)))
    }))
}

struct Reading<D> {
    bytes: ByteStream,
    decoder: D,
    ready: VecDeque<Delta>,
    end: Option<Result<Delta, ModelError>>,
}

impl<D: StreamDecoder> Reading<D> {
    async fn next(&mut self) -> Result<Delta, ModelError> {
        loop {
            if let Some(delta) = self.ready.pop_front() {
                return Ok(delta);
            }
            if let Some(end) = self.end.take() {
                return end;
            }
            match self.bytes.next().await {
                Ok(Some(bytes)) => {
                    if let Err(error) = self.decoder.push(&bytes, &mut self.ready) {
                        self.end = Some(Err(error));
                    }
                }
                Ok(None) => self.end = Some(self.decoder.finish(&mut self.ready).map(Delta::Finished)),
                Err(error) => self.end = Some(Err(error)),
            }
        }
    }
}
