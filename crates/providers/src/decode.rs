//! A vendor's byte stream as deltas: the same loop for every vendor, around its own pure decoder.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use adjutant_core::port::DeltaStream;
use adjutant_core::{Content, Delta, GenerateResponse, ModelError, ToolSet};
use futures::Stream;

use crate::http::ByteStream;
use crate::ndjson::LineParser;
use crate::sse::SseParser;

/// How near its end a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More has to come.
    Begun,
    /// The answer lacks nothing, but counts, or a mark of the end, may follow.
    Complete,
    /// The mark of the end was there: nothing that follows belongs to the answer.
    Over,
}

/// Turns the bytes of one answer into deltas. Knows no socket and no clock.
pub(crate) trait StreamDecoder: Send + 'static {
    /// Takes bytes as they come, cut anywhere. Deltas of the bytes before a failure are in `deltas`
    /// all the same, so that the cuts make no difference.
    fn push(&mut self, bytes: &[u8], deltas: &mut VecDeque<Delta>) -> Result<(), ModelError>;

    /// How near its end the stream is.
    fn progress(&self) -> Progress;

    /// The stream is over. Fails if it stopped before its last event.
    fn finish(&mut self, deltas: &mut VecDeque<Delta>) -> Result<GenerateResponse, ModelError>;
}

/// A vendor's answer taking shape, event by event. Knows no framing.
pub(crate) trait Answer: Send + 'static {
    /// Adds an event: the data of a frame, or a line.
    fn event(&mut self, json: &str, deltas: &mut VecDeque<Delta>) -> Result<(), ModelError>;

    /// The usual mark of the end, `[DONE]`. Default: it says nothing the answer does not say
    /// itself.
    fn done(&mut self) {}

    /// How near its end the answer is.
    fn progress(&self) -> Progress;

    /// The stream is over; `stray` is what was in it besides events. Fails if it stopped before its
    /// last event.
    fn finish(
        &mut self,
        stray: &str,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<GenerateResponse, ModelError>;
}

/// What of a request its answer is read with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    /// The tools that can be called.
    pub(crate) tools: ToolSet,
    /// How long the prompt is.
    pub(crate) prompt: Length,
}

/// How long a prompt is, without knowing the model's tokenizer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Length {
    /// Characters.
    pub(crate) chars: u64,
    /// Fewer tokens than this it cannot be.
    pub(crate) tokens_min: u64,
}

/// Server-sent events around an answer.
pub(crate) struct SseStream<A> {
    frames: SseParser,
    answer: A,
    /// The usual mark of the end was there.
    done: bool,
}

impl<A: Answer> SseStream<A> {
    pub(crate) fn boxed(answer: A) -> Box<dyn StreamDecoder> {
        Box::new(Self {
            frames: SseParser::default(),
            answer,
            done: false,
        })
    }

    fn frame(&mut self, data: &str, deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        match data.trim() {
            "" => Ok(()),
            // Servers in front of a vendor add it where the vendor does not.
            "[DONE]" => {
                self.done = true;
                self.answer.done();
                Ok(())
            }
            json => self.answer.event(json, deltas),
        }
    }
}

impl<A: Answer> StreamDecoder for SseStream<A> {
    fn push(&mut self, bytes: &[u8], deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let mut rest = bytes;
        // Frame by frame, so that what is behind the end is left out however the bytes are cut.
        while self.progress() != Progress::Over {
            let Some(data) = self.frames.next(&mut rest) else {
                break;
            };
            self.frame(&data, deltas)?;
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        if self.done {
            Progress::Over
        } else {
            self.answer.progress()
        }
    }

    fn finish(&mut self, deltas: &mut VecDeque<Delta>) -> Result<GenerateResponse, ModelError> {
        if self.progress() != Progress::Over
            && let Some(frame) = self.frames.finish()
        {
            self.frame(&frame, deltas)?;
        }
        self.answer.finish(&self.frames.stray(), deltas)
    }
}

/// One JSON value a line around an answer.
pub(crate) struct LineStream<A> {
    lines: LineParser,
    answer: A,
}

impl<A: Answer> LineStream<A> {
    pub(crate) fn boxed(answer: A) -> Box<dyn StreamDecoder> {
        Box::new(Self {
            lines: LineParser::default(),
            answer,
        })
    }
}

impl<A: Answer> StreamDecoder for LineStream<A> {
    fn push(&mut self, bytes: &[u8], deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        for line in self.lines.push(bytes) {
            if self.progress() == Progress::Over {
                return Ok(());
            }
            self.answer.event(&line, deltas)?;
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        self.answer.progress()
    }

    fn finish(&mut self, deltas: &mut VecDeque<Delta>) -> Result<GenerateResponse, ModelError> {
        if self.progress() != Progress::Over
            && let Some(line) = self.lines.finish()
        {
            self.answer.event(&line, deltas)?;
        }
        self.answer.finish("", deltas)
    }
}

/// Reads a whole answer.
type Whole = Box<dyn FnOnce(&str) -> Result<GenerateResponse, ModelError> + Send>;

/// A stream of events, or what a server in between sends in its place: one JSON value.
pub(crate) struct EventsOrWhole {
    events: Box<dyn StreamDecoder>,
    /// `None`: it was called.
    whole: Option<Whole>,
    form: Form,
}

/// What the first characters of an answer say.
enum Form {
    /// Nothing yet.
    Unknown(Vec<u8>),
    Events,
    Whole(Vec<u8>),
}

impl EventsOrWhole {
    pub(crate) fn boxed(
        events: Box<dyn StreamDecoder>,
        whole: impl FnOnce(&str) -> Result<GenerateResponse, ModelError> + Send + 'static,
    ) -> Box<dyn StreamDecoder> {
        Box::new(Self {
            events,
            whole: Some(Box::new(whole)),
            form: Form::Unknown(Vec::new()),
        })
    }
}

impl StreamDecoder for EventsOrWhole {
    fn push(&mut self, bytes: &[u8], deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        match &mut self.form {
            Form::Events => self.events.push(bytes, deltas),
            Form::Whole(body) => {
                body.extend_from_slice(bytes);
                Ok(())
            }
            Form::Unknown(begun) => {
                // Usually the first bytes tell, which are not copied then.
                let is_first = begun.is_empty();
                if !is_first {
                    begun.extend_from_slice(bytes);
                }
                match first_character(if is_first { bytes } else { begun }) {
                    None if is_first => begun.extend_from_slice(bytes),
                    None => {}
                    Some(b'{' | b'[') if is_first => self.form = Form::Whole(bytes.to_vec()),
                    Some(b'{' | b'[') => self.form = Form::Whole(std::mem::take(begun)),
                    Some(_) => {
                        let begun = std::mem::take(begun);
                        self.form = Form::Events;
                        return self
                            .events
                            .push(if is_first { bytes } else { &begun }, deltas);
                    }
                }
                Ok(())
            }
        }
    }

    fn progress(&self) -> Progress {
        match self.form {
            Form::Events => self.events.progress(),
            Form::Unknown(_) | Form::Whole(_) => Progress::Begun,
        }
    }

    fn finish(&mut self, deltas: &mut VecDeque<Delta>) -> Result<GenerateResponse, ModelError> {
        match (&self.form, self.whole.take()) {
            (Form::Whole(body), Some(whole)) => {
                let response = whole(without_mark(&String::from_utf8_lossy(body)))?;
                deltas.extend(
                    response
                        .parts
                        .iter()
                        .filter_map(|part| match &part.content {
                            Content::Text { text } => Some(Delta::Text(text.clone())),
                            Content::Thinking { text } => Some(Delta::Thinking(text.clone())),
                            _ => None,
                        }),
                );
                Ok(response)
            }
            _ => self.events.finish(deltas),
        }
    }
}

/// The first byte that is neither a byte order mark nor white space. `None`: there is none yet.
fn first_character(bytes: &[u8]) -> Option<u8> {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    if MARK.starts_with(bytes) {
        return None;
    }
    let text = bytes.strip_prefix(MARK).unwrap_or(bytes);
    text.iter()
        .copied()
        .find(|byte| !byte.is_ascii_whitespace())
}

/// A text without its byte order mark, which no JSON may have and some servers send.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Whether a body that was to be one JSON value is a stream of events.
pub(crate) fn is_events(body: &str) -> bool {
    let body = body.trim_start();
    ["data:", "event:", ":"]
        .iter()
        .any(|field| body.starts_with(field))
}

/// Reads a stream of events that came as a whole.
pub(crate) fn drained(
    mut decoder: Box<dyn StreamDecoder>,
    body: &str,
) -> Result<GenerateResponse, ModelError> {
    let mut unseen = VecDeque::new();
    decoder.push(body.trim_start().as_bytes(), &mut unseen)?;
    decoder.finish(&mut unseen)
}

/// Reads to the mark of the end, not only to the reason to stop: counts and errors may come behind
/// that. Without a mark, a complete answer is waited for to end, but not for long: some servers
/// keep the connection open.
pub(crate) fn deltas(bytes: ByteStream, decoder: Box<dyn StreamDecoder>) -> DeltaStream {
    Box::pin(Reading::new(bytes, decoder))
}

/// Reads the whole answer of a stream.
pub(crate) async fn to_the_end(
    bytes: ByteStream,
    decoder: Box<dyn StreamDecoder>,
) -> Result<GenerateResponse, ModelError> {
    let mut reading = Reading::new(bytes, decoder);
    loop {
        if let Delta::Finished(response) = poll_fn(|cx| reading.poll_delta(cx)).await? {
            return Ok(response);
        }
    }
}

struct Reading {
    bytes: ByteStream,
    decoder: Box<dyn StreamDecoder>,
    ready: VecDeque<Delta>,
    end: Option<Result<Delta, ModelError>>,
    /// The last item was handed out.
    over: bool,
}

impl Stream for Reading {
    type Item = Result<Delta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over {
            return Poll::Ready(None);
        }
        let item = ready!(self.poll_delta(cx));
        self.over = matches!(item, Err(_) | Ok(Delta::Finished(_)));
        Poll::Ready(Some(item))
    }
}

impl Reading {
    fn new(bytes: ByteStream, decoder: Box<dyn StreamDecoder>) -> Self {
        Self {
            bytes,
            decoder,
            ready: VecDeque::new(),
            end: None,
            over: false,
        }
    }

    fn poll_delta(&mut self, cx: &mut Context<'_>) -> Poll<Result<Delta, ModelError>> {
        loop {
            if let Some(delta) = self.ready.pop_front() {
                return Poll::Ready(Ok(delta));
            }
            if let Some(end) = self.end.take() {
                return Poll::Ready(end);
            }
            let complete = self.decoder.progress() == Progress::Complete;
            match ready!(self.bytes.poll_next(cx, complete)) {
                Ok(Some(bytes)) => match self.decoder.push(&bytes, &mut self.ready) {
                    Ok(()) if self.decoder.progress() == Progress::Over => {
                        self.bytes.settle(cx);
                        self.finish();
                    }
                    Ok(()) if !self.ready.is_empty() => self.bytes.begin(),
                    Ok(()) => {}
                    Err(error) => self.end = Some(Err(error)),
                },
                Ok(None) => self.finish(),
                // Nothing is missing: what was said, and paid for, is kept.
                Err(ModelError::Timeout { .. }) if complete => self.finish(),
                Err(error) => self.end = Some(Err(error)),
            }
        }
    }

    fn finish(&mut self) {
        self.end = Some(self.decoder.finish(&mut self.ready).map(Delta::Finished));
    }
}
