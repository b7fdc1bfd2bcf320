//! A vendor's byte stream as deltas: the framing and the read loop, which are the same for every
//! vendor, around the vendor's own pure decoder.
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use adjutant_core::port::DeltaStream;
use adjutant_core::{Content, Delta, FinishReason, GenerateResponse, ModelError, Part, ToolSet};
use futures::Stream;

use crate::error::Vendor;
use crate::http::ByteStream;
use crate::ndjson::LineParser;
use crate::sse::SseParser;

/// The position of a stream relative to the end of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The answer is not complete yet.
    Begun,
    /// The answer is complete, but token counts or an end mark may follow.
    Complete,
    /// The end mark was read: whatever follows belongs to no answer.
    Over,
}

/// Decodes the bytes of one answer to deltas, without sockets or clocks.
pub(crate) trait StreamDecoder: Send + 'static {
    /// Decodes bytes, cut anywhere. If it fails, `deltas` still has those of the bytes before the
    /// failure, so that the cuts make no difference.
    fn push(&mut self, bytes: &[u8], deltas: &mut VecDeque<Delta>) -> Result<(), ModelError>;

    /// Returns the position of the stream.
    fn progress(&self) -> Progress;

    /// Ends the stream. Fails if it stopped before its last event.
    fn finish(&mut self, deltas: &mut VecDeque<Delta>) -> Result<GenerateResponse, ModelError>;
}

/// Folds the events of a streamed answer into one response, whatever the framing.
pub(crate) trait AnswerFold: Send + 'static {
    /// Adds an event: the JSON of a frame or of a line.
    fn event(&mut self, json: &str, deltas: &mut VecDeque<Delta>) -> Result<(), ModelError>;

    /// Notes the common end mark, `[DONE]`. Default: ignored, because the vendor's events say
    /// when the answer is complete.
    fn done(&mut self) {}

    /// Returns the position of the answer.
    fn progress(&self) -> Progress;

    /// Ends the answer. `stray` are lines of the stream that were no events. Fails if the stream
    /// stopped before its last event.
    fn finish(
        &mut self,
        stray: &str,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<GenerateResponse, ModelError>;

    /// Decodes the body of an answer that was not streamed. Called instead of the other methods.
    fn whole(&mut self, body: &str) -> Result<GenerateResponse, ModelError>;
}

/// The facts of a request that decoding its answer needs.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestContext {
    /// The tools that the model may call.
    pub(crate) tools: ToolSet,
    /// The length of the prompt.
    pub(crate) prompt: PromptLength,
}

/// Bounds on the length of a prompt, without the model's tokenizer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PromptLength {
    /// Characters of all messages.
    pub(crate) chars: u64,
    /// A lower bound of its tokens.
    pub(crate) tokens_min: u64,
}

/// Decodes server-sent events and folds them into an answer.
pub(crate) struct SseDecoder {
    frames: SseParser,
    answer: Box<dyn AnswerFold>,
    /// `[DONE]` was read.
    done: bool,
}

impl SseDecoder {
    pub(crate) fn new(answer: Box<dyn AnswerFold>) -> Self {
        Self {
            frames: SseParser::default(),
            answer,
            done: false,
        }
    }

    /// Decodes a stream of events that is there as a whole.
    pub(crate) fn decode_body(mut self, body: &str) -> Result<GenerateResponse, ModelError> {
        let mut unseen = VecDeque::new();
        self.push(body.trim_start().as_bytes(), &mut unseen)?;
        self.finish(&mut unseen)
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

impl StreamDecoder for SseDecoder {
    fn push(&mut self, bytes: &[u8], deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let mut rest = bytes;
        // Frame by frame, so that what follows the end is ignored however the bytes are cut.
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
        // Some vendors omit the blank line after the last frame.
        if self.progress() != Progress::Over
            && let Some(frame) = self.frames.finish()
        {
            self.frame(&frame, deltas)?;
        }
        self.answer.finish(&self.frames.stray(), deltas)
    }
}

/// Decodes newline-delimited JSON and folds it into an answer.
pub(crate) struct LineDecoder {
    lines: LineParser,
    answer: Box<dyn AnswerFold>,
}

impl LineDecoder {
    pub(crate) fn new(answer: Box<dyn AnswerFold>) -> Self {
        Self {
            lines: LineParser::default(),
            answer,
        }
    }
}

impl StreamDecoder for LineDecoder {
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

/// Decodes a stream of events, or a whole answer that a proxy sends in its place as one JSON value.
pub(crate) struct EventsOrWhole {
    events: SseDecoder,
    form: BodyForm,
}

/// The form of a body, found out from its first character.
enum BodyForm {
    /// Not known yet; the bytes so far.
    Unknown(Vec<u8>),
    Events,
    /// One JSON value; the bytes so far.
    Whole(Vec<u8>),
}

impl EventsOrWhole {
    pub(crate) fn new(answer: Box<dyn AnswerFold>) -> Self {
        Self {
            events: SseDecoder::new(answer),
            form: BodyForm::Unknown(Vec::new()),
        }
    }
}

impl StreamDecoder for EventsOrWhole {
    fn push(&mut self, bytes: &[u8], deltas: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        match &mut self.form {
            BodyForm::Events => self.events.push(bytes, deltas),
            BodyForm::Whole(body) => {
                body.extend_from_slice(bytes);
                Ok(())
            }
            BodyForm::Unknown(begun) => {
                begun.extend_from_slice(bytes);
                match first_character(begun) {
                    // White space and a cut byte order mark may begin either form.
                    None => Ok(()),
                    Some(b'{' | b'[') => {
                        self.form = BodyForm::Whole(std::mem::take(begun));
                        Ok(())
                    }
                    Some(_) => {
                        let begun = std::mem::take(begun);
                        self.form = BodyForm::Events;
                        self.events.push(&begun, deltas)
                    }
                }
            }
        }
    }

    fn progress(&self) -> Progress {
        match self.form {
            BodyForm::Events => self.events.progress(),
            BodyForm::Unknown(_) | BodyForm::Whole(_) => Progress::Begun,
        }
    }

    fn finish(&mut self, deltas: &mut VecDeque<Delta>) -> Result<GenerateResponse, ModelError> {
        let BodyForm::Whole(body) = &self.form else {
            // Also a body that never showed its form: it is a stream that ended before its first
            // event.
            return self.events.finish(deltas);
        };
        let body = String::from_utf8_lossy(body);
        let response = self.events.answer.whole(strip_bom(&body))?;
        let delta = |part: &Part| match &part.content {
            Content::Text { text } => Some(Delta::Text(text.clone())),
            Content::Thinking { text } => Some(Delta::Thinking(text.clone())),
            _ => None,
        };
        deltas.extend(response.parts.iter().filter_map(delta));
        Ok(response)
    }
}

/// Returns the first byte that is neither of a byte order mark nor white space, if it is there yet.
fn first_character(bytes: &[u8]) -> Option<u8> {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    // True for no bytes at all, and for a mark whose end has not arrived.
    if MARK.starts_with(bytes) {
        return None;
    }
    let text = bytes.strip_prefix(MARK).unwrap_or(bytes);
    text.iter()
        .copied()
        .find(|byte| !byte.is_ascii_whitespace())
}

/// Strips a byte order mark, which JSON may not have and some servers send.
pub(crate) fn strip_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Returns true if a body that was expected to be one JSON value is a stream of events.
pub(crate) fn is_event_stream(body: &str) -> bool {
    let body = body.trim_start();
    ["data:", "event:", ":"]
        .iter()
        .any(|field| body.starts_with(field))
}

/// Output tokens that an answer without content may have: vendors count the marks that end a turn.
/// Recorded answers have up to 4.
const END_TOKENS_MAX: u64 = 4;

/// Returns an answer unless its content is missing: it ended because of calls and has none, or its
/// output was counted and nothing of it arrived.
///
/// # Errors
/// [`ModelError::Truncated`]: the server or a proxy lost the content, and may not lose it again.
pub(crate) fn check_content(
    response: GenerateResponse,
    vendor: &Vendor,
) -> Result<GenerateResponse, ModelError> {
    match response.finish {
        FinishReason::ToolCalls if response.tool_calls().next().is_none() => {
            return Err(vendor.truncated("it ended in order to call tools, and has no call"));
        }
        FinishReason::Stop => {}
        // A limit or a filter may leave nothing of an answer.
        _ => return Ok(response),
    }
    let is_empty = |part: &Part| match &part.content {
        Content::Text { text } => text.is_empty(),
        _ => false,
    };
    // Thinking may be counted and not shown.
    let thinking = response.usage.thinking_tokens.unwrap_or(0);
    let written = response.usage.output_tokens.unwrap_or(0);
    if written.saturating_sub(thinking) > END_TOKENS_MAX && response.parts.iter().all(is_empty) {
        return Err(vendor.truncated(format!(
            "{written} output tokens were counted, and there is no content"
        )));
    }
    Ok(response)
}

/// Returns the deltas of a streamed answer. Reads up to the end mark, because token counts and
/// errors may follow the stop reason. Without a mark, a complete answer may go on for a short time
/// only: some servers keep the connection open.
pub(crate) fn deltas(bytes: ByteStream, decoder: Box<dyn StreamDecoder>) -> DeltaStream {
    Box::pin(DeltaReader::new(bytes, decoder))
}

/// Reads a streamed answer to its end and returns it as a whole.
pub(crate) async fn read_to_end(
    bytes: ByteStream,
    decoder: Box<dyn StreamDecoder>,
) -> Result<GenerateResponse, ModelError> {
    let mut reading = DeltaReader::new(bytes, decoder);
    loop {
        if let Delta::Finished(response) = poll_fn(|cx| reading.poll_delta(cx)).await? {
            return Ok(response);
        }
    }
}

/// Reads bytes and decodes them, one delta per poll.
struct DeltaReader {
    bytes: ByteStream,
    decoder: Box<dyn StreamDecoder>,
    /// Deltas that were decoded and not returned yet.
    ready: VecDeque<Delta>,
    /// The last item, to be returned once `ready` is empty.
    end: Option<Result<Delta, ModelError>>,
    /// The last item was returned.
    over: bool,
}

impl Stream for DeltaReader {
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

impl DeltaReader {
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
            // After the deltas of the bytes before it, so that a failure takes no text with it.
            if let Some(end) = self.end.take() {
                return Poll::Ready(end);
            }
            let complete = self.decoder.progress() == Progress::Complete;
            match ready!(self.bytes.poll_next(cx, complete)) {
                Ok(Some(bytes)) => match self.decoder.push(&bytes, &mut self.ready) {
                    Ok(()) if self.decoder.progress() == Progress::Over => {
                        self.bytes.drain(cx);
                        self.finish();
                    }
                    // From the first delta on, a silence is a pause within the answer, with a bound
                    // of its own.
                    Ok(()) if !self.ready.is_empty() => self.bytes.mark_begun(),
                    Ok(()) => {}
                    Err(error) => self.end = Some(Err(error)),
                },
                Ok(None) => self.finish(),
                // Nothing is missing, so an answer that was paid for is not thrown away.
                Err(ModelError::Timeout { .. }) if complete => self.finish(),
                Err(error) => self.end = Some(Err(error)),
            }
        }
    }

    fn finish(&mut self) {
        self.end = Some(self.decoder.finish(&mut self.ready).map(Delta::Finished));
    }
}
