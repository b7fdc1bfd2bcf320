use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;

use crate::BoxFuture;
use crate::error::ModelError;
use crate::id::ModelId;
use crate::model::{Capabilities, Delta, GenerateRequest, GenerateResponse};

/// An answer on its way. Ends after [`Delta::Finished`] or an error; dropping it cancels the call.
pub type DeltaStream = Pin<Box<dyn Stream<Item = Result<Delta, ModelError>> + Send>>;

/// Whoever answers: one adapter per provider.
///
/// An adapter retries by itself, only before the first delta and only what can help; nobody retries
/// above it. Dropping the future or the stream cancels the call.
pub trait LanguageModel: Send + Sync + 'static {
    /// Which model of which provider.
    fn id(&self) -> &ModelId;

    /// What it can do.
    fn capabilities(&self) -> &Capabilities;

    /// Asks for a whole answer.
    ///
    /// # Errors
    /// [`ModelError`], after the retries that made sense.
    fn generate<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<GenerateResponse, ModelError>>;

    /// Asks for an answer piece by piece. The last item is [`Delta::Finished`] with the same
    /// response `generate` would give.
    ///
    /// # Errors
    /// [`ModelError`] if no answer began; later failures are items of the stream.
    fn stream<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<DeltaStream, ModelError>>;

    /// Begins to read what the requests of an agent have in common, all messages of `request` but
    /// the last one, so that the first answer comes sooner. Returns at once; a request is never
    /// held up by it, and goes on from what was read. Does nothing by default: only a model that
    /// computes in this process gains by it.
    fn prepare(&self, request: &GenerateRequest) {
        let _ = request;
    }

    /// Tokens `text` costs in this model, if the adapter has its tokenizer.
    fn count_tokens(&self, text: &str) -> Option<u32> {
        let _ = text;
        None
    }
}

impl<M: LanguageModel + ?Sized> LanguageModel for Arc<M> {
    fn id(&self) -> &ModelId {
        (**self).id()
    }

    fn capabilities(&self) -> &Capabilities {
        (**self).capabilities()
    }

    fn generate<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<GenerateResponse, ModelError>> {
        (**self).generate(request)
    }

    fn stream<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<DeltaStream, ModelError>> {
        (**self).stream(request)
    }

    fn prepare(&self, request: &GenerateRequest) {
        (**self).prepare(request);
    }

    fn count_tokens(&self, text: &str) -> Option<u32> {
        (**self).count_tokens(text)
    }
}
