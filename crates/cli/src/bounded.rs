//! A model whose answers have to come in time, for adapters that have no time-out of their own.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::port::DeltaStream;
use adjutant_core::{
    BoxFuture, Capabilities, GenerateRequest, GenerateResponse, LanguageModel, ModelError, ModelId,
};

/// Tells the model inside that the caller waits no longer than `timeout`.
pub(crate) struct Bounded<M> {
    inner: M,
    timeout: Duration,
}

impl<M: LanguageModel> Bounded<M> {
    /// The model as it is, or bounded.
    pub(crate) fn shared(inner: M, timeout: Option<Duration>) -> Arc<dyn LanguageModel> {
        match timeout {
            Some(timeout) => Arc::new(Self { inner, timeout }),
            None => Arc::new(inner),
        }
    }

    fn bound(&self, request: &GenerateRequest) -> GenerateRequest {
        let left = request.time_left.map_or(self.timeout, |left| left.min(self.timeout));
        GenerateRequest { time_left: Some(left), ..request.clone() }
    }
}

impl<M: LanguageModel> LanguageModel for Bounded<M> {
    fn id(&self) -> &ModelId {
        self.inner.id()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn generate<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<GenerateResponse, ModelError>> {
        Box::pin(async move { self.inner.generate(&self.bound(request)).await })
    }

    fn stream<'a>(&'a self, request: &'a GenerateRequest) -> BoxFuture<'a, Result<DeltaStream, ModelError>> {
        Box::pin(async move { self.inner.stream(&self.bound(request)).await })
    }

    fn count_tokens(&self, text: &str) -> Option<u32> {
        self.inner.count_tokens(text)
    }
}
