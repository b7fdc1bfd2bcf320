//! What turns a vendor's translation into a [`LanguageModel`]: the same for every vendor.

#[cfg(test)]
#[cfg(any(
    feature = "anthropic",
    feature = "gemini",
    feature = "ollama",
    feature = "openai"
))]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::port::DeltaStream;
use adjutant_core::{
    BoxFuture, Capabilities, GenerateRequest, GenerateResponse, LanguageModel, ModelError, ModelId,
    TraceContext,
};
use bytes::Bytes;
use reqwest::header::HeaderName;
use secrecy::SecretString;
use tokio::time::Instant;
use url::Url;

use crate::connection::Connection;
use crate::decode::{self, Asked, EventsOrWhole, StreamDecoder};
use crate::encode::{Encoded, without_explanations};
use crate::error::Vendor;
use crate::http::{Call, Target};
use crate::patience::Patience;
use crate::retry::{self, Policy};

/// A vendor's translation: pure, no socket, no clock.
pub(crate) trait Wire: Send + Sync + 'static {
    /// The request as the vendor takes it. The same request gives the same bytes.
    ///
    /// # Errors
    /// [`ModelError::BadRequest`] for what the vendor would refuse anyway.
    fn encode(&self, request: &GenerateRequest, streamed: bool) -> Result<Encoded, ModelError>;

    /// Where it goes.
    fn url(&self, streamed: bool) -> &Url;

    /// The headers besides the content type; the key is among them.
    fn headers(&self) -> &[(HeaderName, SecretString)];

    /// Headers that only this request needs.
    fn request_headers(&self, request: &GenerateRequest) -> Vec<(HeaderName, SecretString)> {
        let _ = request;
        Vec::new()
    }

    /// Reads a whole answer to what was asked. `losses` are the request's.
    ///
    /// # Errors
    /// What the vendor says went wrong, or that it cannot be read.
    fn decode(
        &self,
        asked: &Asked,
        body: &str,
        losses: Vec<String>,
    ) -> Result<GenerateResponse, ModelError>;

    /// How the vendor frames a stream. Default: as server-sent events.
    fn framing(&self) -> Framing {
        Framing::Events
    }

    /// Reads a streamed answer to what was asked.
    fn decoder(&self, asked: &Asked, losses: Vec<String>) -> Box<dyn StreamDecoder>;

    /// What has to be known before a request is encoded, such as what the server says of the model.
    /// It cannot fail: what cannot be found out is not known. Default: nothing.
    fn prepare<'a>(
        &'a self,
        request: &'a GenerateRequest,
        connection: &'a Connection,
    ) -> BoxFuture<'a, ()> {
        let _ = (request, connection);
        Box::pin(std::future::ready(()))
    }

    /// What of a request its answer is read with. Default: nothing.
    fn asked(&self, request: &GenerateRequest) -> Asked {
        let _ = request;
        Asked::default()
    }

    /// A failure with what the person can do about it, where the vendor knows more than its status
    /// says. Default: as it is.
    fn explain(&self, error: ModelError) -> ModelError {
        error
    }
}

/// How a stream is cut into pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events,
    /// One JSON value a line.
    Lines,
}

/// A model of a vendor, reached over HTTP. Made by the function `model` of a vendor's module; a
/// clone shares the connections.
#[derive(Clone)]
pub struct HttpModel(Arc<Inner>);

struct Inner {
    vendor: Arc<Vendor>,
    capabilities: Capabilities,
    patience: Patience,
    wire: Box<dyn Wire>,
    /// The addresses for a whole answer and for a streamed one.
    targets: [Arc<Target>; 2],
    connection: Connection,
}

impl HttpModel {
    pub(crate) fn new(
        vendor: Arc<Vendor>,
        capabilities: Capabilities,
        patience: Patience,
        wire: impl Wire,
        connection: Connection,
    ) -> Self {
        let target = |streamed| {
            Arc::new(Target::new(
                &vendor,
                wire.url(streamed).clone(),
                wire.headers(),
            ))
        };
        let targets = [target(false), target(true)];
        Self(Arc::new(Inner {
            vendor,
            capabilities,
            patience,
            wire: Box::new(wire),
            targets,
            connection,
        }))
    }
}

impl fmt::Debug for HttpModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpModel")
            .field("model", &self.0.vendor.model)
            .field("capabilities", &self.0.capabilities)
            .field("connection", &self.0.connection)
            .finish_non_exhaustive()
    }
}

impl LanguageModel for HttpModel {
    fn id(&self) -> &ModelId {
        &self.0.vendor.model
    }

    fn capabilities(&self) -> &Capabilities {
        &self.0.capabilities
    }

    fn generate<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<GenerateResponse, ModelError>> {
        Box::pin(async move {
            let (inner, request) = (&self.0, &*without_explanations(request));
            let time_left = inner.prepare(request).await;
            // A stream, so that silence can be told from work. Somebody else's request stays what
            // it is.
            let streamed = !request.config.verbatim;
            let Encoded { body, losses } = inner.wire.encode(request, streamed)?;
            let (asked, headers) = (
                inner.wire.asked(request),
                inner.wire.request_headers(request),
            );
            let answer = retry::generate(inner.policy(), time_left, async |left| {
                let trace = request.trace.clone();
                let call = inner.call(streamed, &headers, body.clone(), (left, trace));
                let transport = &inner.connection.transport;
                if streamed {
                    let decoder = inner.decoder(&asked, &losses);
                    return Ok(
                        decode::to_the_end(transport.send_stream(call).await?, decoder).await?,
                    );
                }
                let answer = transport.send_json(call).await?;
                Ok(inner.decode(&asked, &answer, losses.clone())?)
            });
            answer.await.map_err(|error| inner.wire.explain(error))
        })
    }

    fn stream<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<DeltaStream, ModelError>> {
        Box::pin(async move {
            let (inner, request) = (self.0.clone(), &*without_explanations(request));
            let time_left = inner.prepare(request).await;
            let Encoded { body, losses } = inner.wire.encode(request, true)?;
            let (asked, headers) = (
                inner.wire.asked(request),
                inner.wire.request_headers(request),
            );
            let (policy, trace) = (inner.policy(), request.trace.clone());
            let asking = inner.clone();
            let open: retry::Open = Box::new(move |left| {
                let inner = asking.clone();
                let call = inner.call(true, &headers, body.clone(), (left, trace.clone()));
                let decoder = inner.decoder(&asked, &losses);
                Box::pin(async move {
                    Ok(decode::deltas(
                        inner.connection.transport.send_stream(call).await?,
                        decoder,
                    ))
                })
            });
            let explain = Box::new(move |error| inner.wire.explain(error));
            Ok(Box::pin(retry::stream(policy, time_left, open, explain).await?) as DeltaStream)
        })
    }
}

impl Inner {
    /// Says how much of the caller's time that leaves.
    async fn prepare(&self, request: &GenerateRequest) -> Option<Duration> {
        let begun = Instant::now();
        self.wire.prepare(request, &self.connection).await;
        request
            .time_left
            .map(|left| left.saturating_sub(begun.elapsed()))
    }

    /// Reads the whole answer that was asked for, or the stream that a server in between sends in
    /// its place.
    fn decode(
        &self,
        asked: &Asked,
        body: &str,
        losses: Vec<String>,
    ) -> Result<GenerateResponse, ModelError> {
        let body = decode::without_mark(body);
        if self.wire.framing() == Framing::Events && decode::is_events(body) {
            return decode::drained(self.wire.decoder(asked, losses), body);
        }
        self.wire.decode(asked, body, losses)
    }

    /// Reads the stream that was asked for, or the whole answer that a server in between sends in
    /// its place.
    fn decoder(self: &Arc<Self>, asked: &Asked, losses: &[String]) -> Box<dyn StreamDecoder> {
        let decoder = self.wire.decoder(asked, losses.to_vec());
        match self.wire.framing() {
            Framing::Lines => decoder,
            Framing::Events => {
                let (inner, asked, losses) = (Arc::clone(self), asked.clone(), losses.to_vec());
                EventsOrWhole::boxed(decoder, move |body| inner.wire.decode(&asked, body, losses))
            }
        }
    }

    fn policy(&self) -> Policy {
        Policy::network(self.connection.retries, self.patience.asks_again)
    }

    fn call(
        &self,
        streamed: bool,
        headers: &[(HeaderName, SecretString)],
        body: Bytes,
        (time_left, trace): (Option<Duration>, Option<TraceContext>),
    ) -> Call {
        Call {
            vendor: self.vendor.clone(),
            target: self.targets[usize::from(streamed)].clone(),
            headers: headers.to_vec(),
            body: Some(body),
            patience: self.patience,
            time_left,
            trace,
        }
    }
}
