//! [`Decoder`]: generates answers with a loaded model, one after the other.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use adjutant_core::PromptProgress;
use serde_json::Value;
use toktrie::TokenId;
use tracing::debug;

use crate::classifier::{ActionClassifier, StateReader};
use crate::constrain::{Constraint, Constraints};
use crate::engine::{self, GgufFile, KvCache, Network};
use crate::error::{DecodeError, LoadError};
use crate::prefill::{CHUNK_TOKENS, PrefillRate, chunk_len};
use crate::prefix::{CacheKey, HeadFile, PrefixStore, common_len};
use crate::sample::{Sampler, Sampling, share};
use crate::template::{self, ChatTurn};
use crate::tokenizer::Tokenizer;

/// The largest context window in tokens, whatever the model supports: a token needs 57 KB of memory
/// in the 1.5B model.
pub(crate) const WINDOW_TOKENS_MAX: usize = 8192;

/// A request for one answer: a chat, and how to continue it.
///
/// # Examples
/// ```
/// use adjutant_embedded::{ChatRequest, ChatTurn, Speaker};
/// use serde_json::json;
///
/// let request = ChatRequest::new(vec![
///     ChatTurn::new(Speaker::System, "Answer with the city."),
///     ChatTurn::new(Speaker::User, "Where is the Louvre?"),
/// ])
/// .with_schema(json!({
///     "type": "object",
///     "properties": { "city": { "type": "string" } },
///     "required": ["city"],
/// }));
/// assert_eq!(request.head_turns, 1);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChatRequest {
    /// The conversation so far, the oldest turn first.
    pub turns: Vec<ChatTurn>,
    /// The number of first turns that are the same in every request. Their state is kept on disk,
    /// see [`Decoder::set_prefix_cache_dir`].
    pub head_turns: usize,
    /// The schema of the answer, which will be compact JSON. `None` for free text.
    pub schema: Option<Value>,
    /// The settings by which tokens are chosen.
    pub sampling: Sampling,
    /// The bound on the tokens of the answer. Default 1024.
    pub output_tokens_max: usize,
}

impl ChatRequest {
    /// Requests free text of at most 1024 of the likeliest tokens; all turns but the last are the
    /// head.
    pub fn new(turns: Vec<ChatTurn>) -> Self {
        let head_turns = turns.len().saturating_sub(1);
        Self {
            turns,
            head_turns,
            schema: None,
            sampling: Sampling::default(),
            output_tokens_max: 1024,
        }
    }

    /// Constrains the answer to JSON that conforms to `schema`.
    #[must_use]
    pub fn with_schema(mut self, schema: Value) -> Self {
        self.schema = Some(schema);
        self
    }
}

/// The reason for the end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerEnd {
    /// The model ended the answer, or its schema was complete.
    Stop,
    /// The bound on the answer or the context window was reached; JSON is cut off.
    TokensMax,
}

/// An answer with its token counts.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// The complete text of the answer.
    pub text: String,
    /// The reason why the answer ended there.
    pub end: AnswerEnd,
    /// The number of tokens of the prompt.
    pub input_tokens: usize,
    /// The number of prompt tokens that were in the cache and not computed again.
    pub cached_tokens: usize,
    /// The number of tokens that were generated.
    pub output_tokens: usize,
    /// The probability of the answer among all that the schema allows, `0.0..=1.0`: the product of
    /// the shares that the chosen tokens have of the allowed ones. `None` without a schema.
    pub certainty: Option<f32>,
}

/// Receives an answer while it is generated, and may cancel it.
pub trait Listener {
    /// Receives the next piece of text, which is never empty and never splits a character.
    fn on_text(&mut self, piece: &str);

    /// Receives the progress of computing the prompt: before each chunk while more than 32 tokens
    /// are left, and once at the end. Not called if no more than 32 are left from the start.
    fn on_prompt_progress(&mut self, progress: PromptProgress) {
        let _ = progress;
    }

    /// Returns true to cancel the answer. Called between tokens and between chunks of the prompt.
    fn is_cancelled(&self) -> bool;
}

/// A listener for callers who only want the whole answer.
impl Listener for () {
    fn on_text(&mut self, _piece: &str) {}

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// A loaded model. It answers one request at a time and keeps the state of its tokens: the
/// beginning that a request shares with the one before is not computed again.
///
/// A prompt is computed in chunks of 32 tokens; between them the listener may cancel. The state of
/// the chunks until then is kept.
///
/// # Examples
/// ```no_run
/// use adjutant_embedded::{ChatRequest, ChatTurn, Decoder, Speaker};
///
/// let mut decoder = Decoder::load("model.gguf".as_ref())?;
/// let request = ChatRequest::new(vec![ChatTurn::new(Speaker::User, "Hello!")]);
/// let answer = decoder.generate(&request, &mut ())?;
/// println!("{}", answer.text);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Decoder {
    pub(crate) network: Box<dyn Network>,
    tokenizer: Arc<Tokenizer>,
    constraints: Constraints,
    cache: KvCache,
    /// The tokens whose state is in `cache`.
    cached: Vec<TokenId>,
    pub(crate) key: CacheKey,
    /// The classifier of actions, if there is one for this model.
    pub(crate) classifier: Option<ActionClassifier>,
    /// The state of the classifier's prompt, once there was one.
    pub(crate) state_reader: Option<StateReader>,
    /// The folder for the head's file, until `head` is set.
    heads: Option<PrefixStore>,
    /// The file of the head that is kept on disk.
    head: Option<HeadFile>,
    /// The number of tokens in the head of the current prompt.
    head_tokens: usize,
    rate: PrefillRate,
}

/// The shortest head worth a file; a shorter one is computed faster than read.
const HEAD_TOKENS_MIN: usize = 128;

impl Decoder {
    /// Loads a GGUF file.
    ///
    /// Takes about as long as reading the file from the disk. The file must stay in place while the
    /// model is used.
    ///
    /// # Errors
    /// [`LoadError`], whose variants tell whether to pull the file, pull it again or choose
    /// another.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let file = GgufFile::open(path)?;
        // Building the vocabulary takes about as long as packing the weights, so both run at once.
        let (network, text) = std::thread::scope(|scope| {
            let text = scope.spawn(|| TextSupport::load(&file));
            let network = engine::load(&file);
            let text = text
                .join()
                .unwrap_or_else(|_| Err(file.damaged("its vocabulary cannot be used")));
            (network, text)
        });
        let (network, text) = (network?, text?);
        let cache = network
            .new_cache(network.blocks())
            .map_err(|error| file.damaged(error.to_string()))?;
        let key = CacheKey {
            fingerprint: file.fingerprint(),
            layers: cache.layer_count(),
            width: cache.width(),
        };
        Ok(Self {
            network,
            tokenizer: text.tokenizer,
            constraints: text.constraints,
            cache,
            cached: Vec::new(),
            key,
            classifier: ActionClassifier::built_in(&key.fingerprint),
            state_reader: None,
            heads: None,
            head: None,
            head_tokens: 0,
            rate: PrefillRate::default(),
        })
    }

    /// Keeps the state of the head of prompts in the folder `dir`, chunk by chunk, and continues
    /// with the state that another process left there. The head is that of the first request, or of
    /// the first [`prepare`](Self::prepare), that has 128 tokens or more.
    ///
    /// A token takes at most 30 KB; the newest four heads are kept. Lost or damaged files are
    /// written again.
    pub fn set_prefix_cache_dir(&mut self, dir: impl Into<PathBuf>) {
        self.heads = Some(PrefixStore::new(dir.into()));
    }

    pub(crate) fn tokenizer(&self) -> Arc<Tokenizer> {
        self.tokenizer.clone()
    }

    pub(crate) fn tokenizer_ref(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Returns the context window in tokens, prompt and answer together.
    pub fn window_tokens(&self) -> usize {
        self.network.window_tokens().min(WINDOW_TOKENS_MAX)
    }

    /// Returns the number of tokens in `text`.
    ///
    /// # Errors
    /// [`DecodeError::Compute`] if the tokenizer fails, which no known text causes.
    pub fn count_tokens(&self, text: &str) -> Result<usize, DecodeError> {
        self.tokenizer.encode(text).map(|tokens| tokens.len())
    }

    /// Answers `request`, and passes every piece of text to `listener` as soon as it is known.
    ///
    /// # Errors
    /// [`DecodeError::ContextTooLong`] before anything is computed; [`DecodeError::Schema`] for a
    /// schema that cannot be compiled; [`DecodeError::Cancelled`] soon after `listener`
    /// cancels.
    pub fn generate(
        &mut self,
        request: &ChatRequest,
        listener: &mut dyn Listener,
    ) -> Result<Answer, DecodeError> {
        let constraint = request
            .schema
            .as_ref()
            .map(|schema| self.constraints.compile(schema))
            .transpose()?;
        let rendered = template::render(&self.tokenizer, &request.turns, request.head_turns)?;
        let prompt = &rendered.tokens;
        let window_tokens = self.window_tokens();
        if prompt.len() >= window_tokens {
            return Err(DecodeError::ContextTooLong {
                prompt_tokens: prompt.len(),
                window_tokens,
            });
        }
        self.open_head(rendered.head());
        // The last token is computed in any case, because its logits are needed.
        let cached_tokens = self.truncate_to_common(&prompt[..prompt.len().saturating_sub(1)]);
        let mut generation = Generation {
            prompt_tokens: prompt.len(),
            pending: prompt[cached_tokens..].to_vec(),
            constraint,
            sampler: Sampler::new(request.sampling.clone()),
            tokens_left: request.output_tokens_max.min(window_tokens - prompt.len()),
            text: TextStream::buffering(),
            output_tokens: 0,
            certainty: request.schema.as_ref().map(|_| 1.0),
        };
        let end = self.generate_tokens(&mut generation, listener)?;
        generation.text.finish(listener);
        Ok(Answer {
            text: generation.text.text,
            end,
            input_tokens: prompt.len(),
            cached_tokens,
            output_tokens: generation.output_tokens,
            certainty: generation.certainty,
        })
    }

    /// Computes the head of `request` in advance, so that a request with this head is answered
    /// sooner. Does nothing if its state is in the cache.
    ///
    /// # Errors
    /// [`DecodeError::Cancelled`] soon after `listener` cancels; the state until then is kept.
    pub fn prepare(
        &mut self,
        request: &ChatRequest,
        listener: &mut dyn Listener,
    ) -> Result<(), DecodeError> {
        let rendered = template::render(&self.tokenizer, &request.turns, request.head_turns)?;
        let head = rendered.head();
        // The request itself will fail with a better error.
        if head.len() >= self.window_tokens() {
            return Ok(());
        }
        self.open_head(head);
        let known = common_len(&self.cached, head);
        if known < head.len() {
            self.truncate_to_common(head);
            self.prefill(&head[known..], head.len(), false, listener)?;
        }
        Ok(())
    }

    fn generate_tokens(
        &mut self,
        generation: &mut Generation,
        listener: &mut dyn Listener,
    ) -> Result<AnswerEnd, DecodeError> {
        loop {
            if let Some(constraint) = &mut generation.constraint {
                // Forced tokens join the rest of the prompt or each other, and are computed at
                // once.
                for token in constraint.take_forced() {
                    if !generation.push(token, &self.tokenizer, listener) {
                        return Ok(AnswerEnd::TokensMax);
                    }
                }
                if generation
                    .constraint
                    .as_ref()
                    .is_some_and(Constraint::is_complete)
                {
                    return Ok(AnswerEnd::Stop);
                }
            }
            if generation.tokens_left == 0 {
                return Ok(AnswerEnd::TokensMax);
            }
            let pending = std::mem::take(&mut generation.pending);
            let prompt_tokens = generation.prompt_tokens;
            let logits = self
                .prefill(&pending, prompt_tokens, true, listener)?
                .ok_or_else(|| DecodeError::compute("there was nothing to read"))?;
            generation.text.release(listener);
            let allowed = generation
                .constraint
                .as_mut()
                .map(Constraint::allowed)
                .transpose()?;
            let token = generation.sampler.pick(&logits, allowed.as_ref())?;
            if let (Some(certainty), Some(allowed)) = (&mut generation.certainty, &allowed) {
                *certainty *= share(&logits, allowed, token);
            }
            // Checked here, because the constraint does not accept end tokens.
            if self.tokenizer.is_end(token) {
                return Ok(AnswerEnd::Stop);
            }
            if let Some(constraint) = &mut generation.constraint {
                constraint.take(token)?;
            }
            if !generation.push(token, &self.tokenizer, listener) {
                return Ok(AnswerEnd::TokensMax);
            }
        }
    }

    /// Computes `tokens`, which follow the cached ones, and returns the logits of the next token if
    /// they are wanted. State that was computed before a cancellation is kept. `prompt_tokens` is
    /// the length of the prompt; forced tokens of the answer may follow it.
    fn prefill(
        &mut self,
        tokens: &[TokenId],
        prompt_tokens: usize,
        wants_logits: bool,
        listener: &mut dyn Listener,
    ) -> Result<Option<Vec<f32>>, DecodeError> {
        let mut logits = None;
        let mut rest = tokens;
        let mut reported = false;
        while !rest.is_empty() {
            let (chunk, after) =
                rest.split_at(chunk_len(self.cached.len(), self.head_tokens, rest.len()));
            // Forced tokens of an answer are computed here too, but are no progress of the prompt.
            if rest.len() > CHUNK_TOKENS && self.cached.len() < prompt_tokens {
                listener.on_prompt_progress(self.progress(prompt_tokens));
                reported = true;
            }
            if listener.is_cancelled() {
                return Err(DecodeError::Cancelled);
            }
            let began = Instant::now();
            logits =
                self.network
                    .forward(chunk, &mut self.cache, wants_logits && after.is_empty())?;
            self.rate.record(chunk.len(), began.elapsed());
            self.cached.extend_from_slice(chunk);
            if let Some(head) = &mut self.head {
                // Best effort: without the file the next process computes the head again.
                if let Err(error) = head.grow(&self.cached, &self.cache) {
                    debug!(%error, "the prefix cache cannot be written");
                }
            }
            rest = after;
        }
        if reported {
            listener.on_prompt_progress(self.progress(prompt_tokens));
        }
        Ok(logits)
    }

    fn progress(&self, prompt_tokens: usize) -> PromptProgress {
        let count = |tokens: usize| u32::try_from(tokens).unwrap_or(u32::MAX);
        let kept = self
            .head
            .as_ref()
            .map_or(0, HeadFile::stored)
            .min(self.cached.len());
        PromptProgress {
            // Forced tokens of the answer may follow the prompt.
            done: count(self.cached.len().min(prompt_tokens)),
            total: count(prompt_tokens),
            kept: count(kept),
            left: self
                .rate
                .estimate(prompt_tokens.saturating_sub(self.cached.len())),
        }
    }

    /// Notes the length of the prompt's head. The first head that is long enough is kept on disk,
    /// and the state that a file has of it is loaded.
    fn open_head(&mut self, head: &[TokenId]) {
        self.head_tokens = head.len();
        if head.len() < HEAD_TOKENS_MIN || self.head.is_some() {
            return;
        }
        let Some(store) = self.heads.take() else {
            return;
        };
        let mut file = store.head_file(self.key, head);
        if let Some(tokens) = file.restore(common_len(&self.cached, head), &mut self.cache) {
            self.cached = tokens;
        }
        self.head = Some(file);
    }

    /// Drops the state of all tokens after the beginning shared with `prompt`; returns its length.
    fn truncate_to_common(&mut self, prompt: &[TokenId]) -> usize {
        let kept = common_len(&self.cached, prompt).min(self.cache.len());
        self.cache.truncate(kept);
        self.cached.truncate(kept);
        kept
    }
}

/// The parts of a loaded model that concern text, not weights.
struct TextSupport {
    tokenizer: Arc<Tokenizer>,
    constraints: Constraints,
}

impl TextSupport {
    fn load(file: &GgufFile) -> Result<Self, LoadError> {
        let tokenizer = Arc::new(Tokenizer::load(file)?);
        if let Some(missing) = template::REQUIRED_CONTROLS
            .iter()
            .find(|name| tokenizer.control(name).is_none())
        {
            return Err(file.unsupported_tokenizer(format!("it has no token {missing}")));
        }
        let constraints = Constraints::new(tokenizer.clone())
            .map_err(|error| file.unsupported_tokenizer(error.to_string()))?;
        Ok(Self {
            tokenizer,
            constraints,
        })
    }
}

/// An answer while it is generated.
struct Generation {
    prompt_tokens: usize,
    /// Tokens that are chosen but not computed yet.
    pending: Vec<TokenId>,
    constraint: Option<Constraint>,
    sampler: Sampler,
    tokens_left: usize,
    text: TextStream,
    output_tokens: usize,
    certainty: Option<f32>,
}

impl Generation {
    /// Appends a token; returns false if the bound on the answer is reached.
    fn push(&mut self, token: TokenId, tokenizer: &Tokenizer, listener: &mut dyn Listener) -> bool {
        if self.tokens_left == 0 {
            return false;
        }
        self.tokens_left -= 1;
        self.output_tokens += 1;
        self.pending.push(token);
        self.text.push(tokenizer.bytes(token), listener);
        true
    }
}

/// Joins the bytes of tokens to text, and holds back incomplete characters.
#[derive(Debug, Default)]
struct TextStream {
    text: String,
    partial: Vec<u8>,
    /// Text that is held back until the prompt is computed; `None` once it is.
    held: Option<String>,
}

impl TextStream {
    /// Creates a stream that emits nothing before [`release`](Self::release): the forced beginning
    /// of an answer is known before the prompt is computed.
    fn buffering() -> Self {
        Self {
            held: Some(String::new()),
            ..Self::default()
        }
    }

    /// Emits the text that was held back; later text is emitted at once.
    fn release(&mut self, listener: &mut dyn Listener) {
        if let Some(held) = self.held.take().filter(|held| !held.is_empty()) {
            listener.on_text(&held);
        }
    }

    fn push(&mut self, bytes: &[u8], listener: &mut dyn Listener) {
        self.partial.extend_from_slice(bytes);
        let mut piece = String::new();
        let mut kept = Vec::new();
        let mut chunks = self.partial.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            piece.push_str(chunk.valid());
            // Only the end of the bytes may still become a character.
            match chunks.peek() {
                None if chunk.invalid().len() < 4 => kept = chunk.invalid().to_vec(),
                _ if chunk.invalid().is_empty() => {}
                _ => piece.push(char::REPLACEMENT_CHARACTER),
            }
        }
        self.partial = kept;
        self.emit(&piece, listener);
    }

    fn finish(&mut self, listener: &mut dyn Listener) {
        self.release(listener);
        if !std::mem::take(&mut self.partial).is_empty() {
            self.emit(&char::REPLACEMENT_CHARACTER.to_string(), listener);
        }
    }

    fn emit(&mut self, piece: &str, listener: &mut dyn Listener) {
        if !piece.is_empty() {
            self.text.push_str(piece);
            match &mut self.held {
                Some(held) => held.push_str(piece),
                None => listener.on_text(piece),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_arrives_in_whole_characters_however_its_bytes_are_cut() {
        let whole = "aé😀\u{7f}日";
        for cut in 0..=whole.len() {
            let (left, right) = whole.as_bytes().split_at(cut);
            let mut stream = TextStream::default();
            stream.push(left, &mut ());
            assert!(whole.starts_with(&stream.text), "{cut}");
            stream.push(right, &mut ());
            stream.finish(&mut ());
            assert_eq!(stream.text, whole, "{cut}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_marked() {
        let mut stream = TextStream::default();
        stream.push(b"a\xffb\xe2", &mut ());
        assert_eq!(stream.text, "a\u{fffd}b");
        stream.finish(&mut ());
        assert_eq!(stream.text, "a\u{fffd}b\u{fffd}");
    }
}
