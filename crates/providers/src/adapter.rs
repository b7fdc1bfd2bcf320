//! [`HttpModel`]: a vendor's translation as a [`LanguageModel`], the same for every vendor.
//!
//! A vendor implements [`Wire`] (encode and decode) and describes an [`Endpoint`]. Sending, retries
//! and streaming are here.

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
use crate::decode::{
    self, AnswerFold, EventsOrWhole, LineDecoder, RequestContext, SseDecoder, StreamDecoder,
};
use crate::encode::Encoded;
use crate::error::Vendor;
use crate::http::{HttpRequest, Target};
use crate::read_timeout::ReadTimeouts;
use crate::retry::{self, Policy};
use crate::transcript::without_explanations;

/// A vendor's translation between our types and its API: pure, without sockets or clocks.
pub(crate) trait Wire: Send + Sync + 'static {
    /// Encodes a request as the vendor's JSON. The same request gives the same bytes.
    ///
    /// # Errors
    /// [`ModelError::BadRequest`] for what the vendor would refuse anyway.
    fn encode(&self, request: &GenerateRequest, streamed: bool) -> Result<Encoded, ModelError>;

    /// Returns headers that only this request needs. Default: none.
    fn request_headers(&self, request: &GenerateRequest) -> Vec<(HeaderName, SecretString)> {
        let _ = request;
        Vec::new()
    }

    /// Returns an empty answer, to which the vendor's events are added. `losses` are those of
    /// encoding the request.
    fn answer(&self, context: &RequestContext, losses: Vec<String>) -> Box<dyn AnswerFold>;

    /// Returns how the vendor frames a stream. Default: as server-sent events.
    fn framing(&self) -> Framing {
        Framing::Events
    }

    /// Looks up what encoding needs to know, such as the server's description of the model. It
    /// cannot fail: what cannot be looked up stays unknown. Default: nothing.
    fn prepare<'a>(
        &'a self,
        request: &'a GenerateRequest,
        connection: &'a Connection,
    ) -> BoxFuture<'a, ()> {
        let _ = (request, connection);
        Box::pin(std::future::ready(()))
    }

    /// Returns the facts of a request that decoding its answer needs. Default: none.
    fn request_context(&self, request: &GenerateRequest) -> RequestContext {
        let _ = request;
        RequestContext::default()
    }

    /// Adds advice to an error where the vendor's adapter knows more than the status says. Default:
    /// the error as it is.
    fn explain(&self, error: ModelError) -> ModelError {
        error
    }
}

/// The way in which a stream is cut into events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events, `text/event-stream`.
    Events,
    /// Newline-delimited JSON: one value per line.
    Lines,
}

/// A vendor's model, reached over HTTP. Opened by `model` of a vendor's module, or by
/// [`Provider::model`](crate::Provider::model); a clone shares the connections.
#[derive(Clone)]
pub struct HttpModel(Arc<Inner>);

/// The addresses of a model, and the limits of calls there.
pub(crate) struct Endpoint {
    pub(crate) vendor: Arc<Vendor>,
    /// The addresses for a whole answer and for a streamed one, in this order.
    pub(crate) urls: [Url; 2],
    /// The headers of every request besides the content type; the key is among them.
    pub(crate) headers: Vec<(HeaderName, SecretString)>,
    pub(crate) capabilities: Capabilities,
    pub(crate) timeouts: ReadTimeouts,
}

struct Inner {
    vendor: Arc<Vendor>,
    capabilities: Capabilities,
    timeouts: ReadTimeouts,
    wire: Box<dyn Wire>,
    /// The targets for a whole answer and for a streamed one, in this order.
    targets: [Arc<Target>; 2],
    connection: Connection,
}

impl HttpModel {
    pub(crate) fn new(endpoint: Endpoint, wire: impl Wire, connection: Connection) -> Self {
        let Endpoint {
            vendor, headers, ..
        } = endpoint;
        let target = |url| Arc::new(Target::new(&vendor, url, &headers));
        let targets = endpoint.urls.map(target);
        Self(Arc::new(Inner {
            vendor,
            capabilities: endpoint.capabilities,
            timeouts: endpoint.timeouts,
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
            let request = &*without_explanations(request);
            // Streamed even though the caller wants the whole answer: a pause in a stream is a hung
            // server, while a silence before a whole answer may be a model at work. A verbatim
            // request was made by another program and is sent as that program meant it.
            let streamed = !request.config.verbatim;
            let call = self.encode(request, streamed).await?;
            let transport = &call.inner.connection.transport;
            let answer = retry::generate(call.policy(), call.time_left, async |left| {
                let request = call.http_request(left);
                if streamed {
                    let bytes = transport.send_stream(request).await?;
                    return Ok(decode::read_to_end(bytes, call.decoder()).await?);
                }
                Ok(call.decode(&transport.send_json(request).await?)?)
            });
            answer.await.map_err(|error| call.inner.wire.explain(error))
        })
    }

    fn stream<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<DeltaStream, ModelError>> {
        Box::pin(async move {
            let call = self.encode(&without_explanations(request), true).await?;
            let (policy, time_left) = (call.policy(), call.time_left);
            let inner = self.0.clone();
            let explain = Box::new(move |error| inner.wire.explain(error));
            let open: retry::Open = Box::new(move |left| {
                // Every attempt decodes anew: the decoder of a failed one holds a part of its
                // answer.
                let (inner, decoder) = (call.inner.clone(), call.decoder());
                let request = call.http_request(left);
                Box::pin(async move {
                    let bytes = inner.connection.transport.send_stream(request).await?;
                    Ok(decode::deltas(bytes, decoder))
                })
            });
            retry::stream(policy, time_left, open, explain).await
        })
    }
}

impl HttpModel {
    /// Lets the vendor look things up, which takes some of the caller's time, and encodes the
    /// request.
    async fn encode(
        &self,
        request: &GenerateRequest,
        streamed: bool,
    ) -> Result<EncodedCall, ModelError> {
        let inner = self.0.clone();
        let started = Instant::now();
        inner.wire.prepare(request, &inner.connection).await;
        let time_left = request
            .time_left
            .map(|left| left.saturating_sub(started.elapsed()));
        // Encoded once for all attempts, so that a retry sends the same bytes and meets the
        // vendor's cache.
        let Encoded { body, losses } = inner.wire.encode(request, streamed)?;
        Ok(EncodedCall {
            context: inner.wire.request_context(request),
            headers: inner.wire.request_headers(request),
            trace: request.trace.clone(),
            inner,
            streamed,
            body,
            losses,
            time_left,
            waits_for_overload: !request.has_fallback,
        })
    }
}

/// An encoded request, which every attempt sends again.
struct EncodedCall {
    inner: Arc<Inner>,
    streamed: bool,
    headers: Vec<(HeaderName, SecretString)>,
    body: Bytes,
    /// Everything that could not be sent.
    losses: Vec<String>,
    context: RequestContext,
    trace: Option<TraceContext>,
    /// The caller's time that was left when it was encoded.
    time_left: Option<Duration>,
    /// True if an overload is waited for.
    waits_for_overload: bool,
}

impl EncodedCall {
    fn policy(&self) -> Policy {
        let inner = &self.inner;
        let policy = Policy::network(inner.connection.retries, inner.timeouts.retry_after_silence);
        Policy {
            delay: policy.delay.filter(|_| self.waits_for_overload),
            ..policy
        }
    }

    fn http_request(&self, time_left: Option<Duration>) -> HttpRequest {
        HttpRequest {
            vendor: self.inner.vendor.clone(),
            target: self.inner.targets[usize::from(self.streamed)].clone(),
            headers: self.headers.clone(),
            body: Some(self.body.clone()),
            timeouts: match self.streamed {
                true => self.inner.timeouts.within(self.time_left),
                // Nothing is sent before all work is done.
                false => self.inner.timeouts,
            },
            time_left,
            trace: self.trace.clone(),
        }
    }

    fn answer(&self) -> Box<dyn AnswerFold> {
        self.inner.wire.answer(&self.context, self.losses.clone())
    }

    /// Decodes a whole answer. Some proxies send a stream where none was asked for, so that is
    /// decoded too.
    fn decode(&self, body: &str) -> Result<GenerateResponse, ModelError> {
        let body = decode::strip_bom(body);
        if self.inner.wire.framing() == Framing::Events && decode::is_event_stream(body) {
            return SseDecoder::new(self.answer()).decode_body(body);
        }
        self.answer().whole(body)
    }

    /// Returns a decoder for a streamed answer. Some proxies send a whole answer where a stream was
    /// asked for, so that is decoded too.
    fn decoder(&self) -> Box<dyn StreamDecoder> {
        match self.inner.wire.framing() {
            Framing::Lines => Box::new(LineDecoder::new(self.answer())),
            Framing::Events => Box::new(EventsOrWhole::new(self.answer())),
        }
    }
}
