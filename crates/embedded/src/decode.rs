//! Writing one answer after another with a loaded model.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use adjutant_core::PromptProgress;
use serde_json::Value;
use toktrie::TokenId;

use crate::constrain::{Constraint, Constraints};
use crate::engine::{self, GgufFile, KvCache, Network};
use crate::error::{DecodeError, LoadError};
use crate::pace::{CHUNK_TOKENS, Pace, chunk_tokens};
use crate::prefix::{HeadFile, Owner, PrefixStore, common_len};
use crate::sample::{Sampler, Sampling};
use crate::template::{self, ChatTurn};
use crate::tokenizer::Tokenizer;

/// Tokens remembered at most, prompt and answer together, whatever the model could do: the memory
/// for one is 57 KB in the 1.5B model.
pub(crate) const WINDOW_TOKENS_MAX: usize = 8192;

/// What to answer, and how.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChatRequest {
    /// The conversation so far.
    pub turns: Vec<ChatTurn>,
    /// Number of first turns that are the same in every request; their state is kept on disk, see
    /// [`Decoder::keep_heads_in`].
    pub head_turns: usize,
    /// The answer will be compact JSON that fits this schema. `None`: free text.
    pub schema: Option<Value>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Tokens of the answer at most. Default 1024.
    pub output_tokens_max: usize,
}

impl ChatRequest {
    /// Free text, the likeliest tokens, at most 1024 of them; all turns but the last are the head.
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

    /// Constrains the answer to `schema`.
    #[must_use]
    pub fn with_schema(mut self, schema: Value) -> Self {
        self.schema = Some(schema);
        self
    }
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerEnd {
    /// The model was done, or its schema complete.
    Stop,
    /// The bound on the answer or the model's window was reached; JSON is cut off.
    TokensMax,
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// The text.
    pub text: String,
    /// Why it ended.
    pub end: AnswerEnd,
    /// Tokens of the prompt.
    pub input_tokens: usize,
    /// How many of them were not computed again.
    pub cached_tokens: usize,
    /// Tokens of the answer.
    pub output_tokens: usize,
}

/// Who listens to an answer while it is written.
pub trait Listener {
    /// Takes the next piece of text, never empty, never half a character.
    fn text(&mut self, piece: &str);

    /// Takes how far the prompt was read: before each of its chunks while more than 32 tokens are
    /// left, and once more at its end. Not called where no more than these are left to begin with.
    fn reading(&mut self, progress: PromptProgress) {
        let _ = progress;
    }

    /// Says whether nobody wants the answer any more. Asked between tokens and between chunks of
    /// the prompt.
    fn is_gone(&self) -> bool;
}

/// Nobody: for callers who only want the whole answer.
impl Listener for () {
    fn text(&mut self, _piece: &str) {}

    fn is_gone(&self) -> bool {
        false
    }
}

/// A loaded model. Answers one request at a time and keeps what it has read: a request that begins
/// like the one before is answered without computing that beginning again.
///
/// A prompt is read in chunks of 32 tokens, between which the listener is asked whether it is still
/// wanted. Whenever reading ends early, what was read until then is kept.
pub struct Decoder {
    network: Box<dyn Network>,
    tokenizer: Arc<Tokenizer>,
    constraints: Constraints,
    cache: KvCache,
    /// The tokens that `cache` remembers.
    read: Vec<TokenId>,
    owner: Owner,
    /// The folder for the head's file, until there is one.
    heads: Option<PrefixStore>,
    /// The file of the head.
    head: Option<HeadFile>,
    /// Tokens of the head of the prompt that is read.
    head_tokens: usize,
    pace: Pace,
}

/// A head shorter than this is computed faster than it is worth a file.
const HEAD_TOKENS_MIN: usize = 128;

impl Decoder {
    /// Loads a GGUF file.
    ///
    /// Takes about as long as reading it from the disk; the file must stay in place while the model
    /// is used.
    ///
    /// # Errors
    /// [`LoadError`] says whether to fetch the file, fetch it again or choose another one.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let file = GgufFile::open(path)?;
        // Reading the vocabulary takes about as long as packing the weights, so both go on at once.
        let (network, words) = std::thread::scope(|scope| {
            let words = scope.spawn(|| Words::load(&file));
            let network = engine::load(&file);
            (
                network,
                words
                    .join()
                    .unwrap_or_else(|_| Err(file.damaged("its vocabulary cannot be used"))),
            )
        });
        let (
            network,
            Words {
                tokenizer,
                constraints,
            },
        ) = (network?, words?);
        let cache = network
            .new_cache()
            .map_err(|error| file.damaged(error.to_string()))?;
        let owner = Owner {
            fingerprint: file.fingerprint(),
            layers: cache.layer_count(),
            width: cache.width(),
        };
        Ok(Self {
            network,
            tokenizer,
            constraints,
            cache,
            read: Vec::new(),
            owner,
            heads: None,
            head: None,
            head_tokens: 0,
            pace: Pace::default(),
        })
    }

    /// Keeps what is read of the head of prompts in the folder `dir`, chunk by chunk, and goes on
    /// from what another process left there. The head is that of the first request, or of the first
    /// [`prepare`](Self::prepare), that is 128 tokens or longer.
    ///
    /// At most 30 KB a token; the newest four heads are kept. Lost or damaged files are made again.
    pub fn keep_heads_in(&mut self, dir: impl Into<PathBuf>) {
        self.heads = Some(PrefixStore::new(dir.into()));
    }

    pub(crate) fn tokenizer(&self) -> Arc<Tokenizer> {
        self.tokenizer.clone()
    }

    /// Tokens that fit, prompt and answer together.
    pub fn window_tokens(&self) -> usize {
        self.network.window_tokens().min(WINDOW_TOKENS_MAX)
    }

    /// How many tokens `text` is.
    ///
    /// # Errors
    /// [`DecodeError::Compute`] if the tokenizer fails, which it does for no text we know of.
    pub fn count_tokens(&self, text: &str) -> Result<usize, DecodeError> {
        self.tokenizer.encode(text).map(|tokens| tokens.len())
    }

    /// Answers `request`, telling `listener` every piece as soon as it is known.
    ///
    /// # Errors
    /// [`DecodeError::ContextTooLong`] before anything is computed; [`DecodeError::Schema`] for a
    /// schema that has no constraint; [`DecodeError::Cancelled`] soon after `listener` is gone.
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
        let prompt = rendered.tokens;
        let window_tokens = self.window_tokens();
        if prompt.len() >= window_tokens {
            return Err(DecodeError::ContextTooLong {
                prompt_tokens: prompt.len(),
                window_tokens,
            });
        }
        self.open_head(prompt.get(..rendered.head_tokens).unwrap_or_default());
        // The scores of the last token are needed, so it is read in any case.
        let cached_tokens = self.keep_common(&prompt[..prompt.len().saturating_sub(1)]);
        let mut writing = Writing {
            prompt_tokens: prompt.len(),
            pending: prompt[cached_tokens..].to_vec(),
            constraint,
            sampler: Sampler::new(request.sampling.clone()),
            tokens_left: request.output_tokens_max.min(window_tokens - prompt.len()),
            text: TextStream::held(),
            output_tokens: 0,
        };
        let end = self.write(&mut writing, listener)?;
        writing.text.finish(listener);
        Ok(Answer {
            text: writing.text.text,
            end,
            input_tokens: prompt.len(),
            cached_tokens,
            output_tokens: writing.output_tokens,
        })
    }

    /// Reads the head of `request` ahead, so that a request that begins with it is answered sooner.
    /// Does nothing if it was read already.
    ///
    /// # Errors
    /// [`DecodeError::Cancelled`] soon after `listener` is gone; what was read until then is kept.
    pub fn prepare(
        &mut self,
        request: &ChatRequest,
        listener: &mut dyn Listener,
    ) -> Result<(), DecodeError> {
        let rendered = template::render(&self.tokenizer, &request.turns, request.head_turns)?;
        let head = rendered
            .tokens
            .get(..rendered.head_tokens)
            .unwrap_or_default();
        if head.len() >= self.window_tokens() {
            return Ok(());
        }
        self.open_head(head);
        let known = common_len(&self.read, head);
        if known < head.len() {
            self.keep_common(head);
            self.read(&head[known..], (head.len(), false), listener)?;
        }
        Ok(())
    }

    fn write(
        &mut self,
        writing: &mut Writing,
        listener: &mut dyn Listener,
    ) -> Result<AnswerEnd, DecodeError> {
        loop {
            if let Some(constraint) = &mut writing.constraint {
                // Forced tokens join the prompt's rest or each other, and are read in one go.
                for token in constraint.take_forced() {
                    if !writing.push(token, &self.tokenizer, listener) {
                        return Ok(AnswerEnd::TokensMax);
                    }
                }
                if writing
                    .constraint
                    .as_ref()
                    .is_some_and(Constraint::is_complete)
                {
                    return Ok(AnswerEnd::Stop);
                }
            }
            if writing.tokens_left == 0 {
                return Ok(AnswerEnd::TokensMax);
            }
            let pending = std::mem::take(&mut writing.pending);
            let logits = self.read(&pending, (writing.prompt_tokens, true), listener)?;
            writing.text.release(listener);
            let logits = logits.ok_or_else(|| DecodeError::Compute {
                reason: "there was nothing to read".into(),
            })?;
            let allowed = writing
                .constraint
                .as_mut()
                .map(Constraint::allowed)
                .transpose()?;
            let token = writing.sampler.pick(&logits, allowed.as_ref())?;
            // The end token is ours: handing it to the constraint is an error there.
            if self.tokenizer.is_end(token) {
                return Ok(AnswerEnd::Stop);
            }
            if let Some(constraint) = &mut writing.constraint {
                constraint.take(token)?;
            }
            if !writing.push(token, &self.tokenizer, listener) {
                return Ok(AnswerEnd::TokensMax);
            }
        }
    }

    /// Reads `tokens`, behind what is remembered, and gives the scores of what follows if they are
    /// wanted. What was read stays read if the listener goes away. `prompt_tokens`: where the
    /// prompt ends.
    fn read(
        &mut self,
        tokens: &[TokenId],
        (prompt_tokens, wants_logits): (usize, bool),
        listener: &mut dyn Listener,
    ) -> Result<Option<Vec<f32>>, DecodeError> {
        let mut logits = None;
        let mut rest = tokens;
        let mut told = false;
        while !rest.is_empty() {
            let (chunk, after) =
                rest.split_at(chunk_tokens(self.read.len(), self.head_tokens, rest.len()));
            if rest.len() > CHUNK_TOKENS && self.read.len() < prompt_tokens {
                listener.reading(self.progress(prompt_tokens));
                told = true;
            }
            if listener.is_gone() {
                return Err(DecodeError::Cancelled);
            }
            let began = Instant::now();
            logits =
                self.network
                    .forward(chunk, &mut self.cache, wants_logits && after.is_empty())?;
            self.pace.add(chunk.len(), began.elapsed());
            self.read.extend_from_slice(chunk);
            if let Some(head) = &mut self.head {
                // Without the file the next process computes the beginning again; that is all.
                let _ = head.grow(&self.read, &self.cache);
            }
            rest = after;
        }
        if told {
            listener.reading(self.progress(prompt_tokens));
        }
        Ok(logits)
    }

    fn progress(&self, prompt_tokens: usize) -> PromptProgress {
        let count = |tokens: usize| u32::try_from(tokens).unwrap_or(u32::MAX);
        let kept = self
            .head
            .as_ref()
            .map_or(0, HeadFile::stored)
            .min(self.read.len());
        PromptProgress {
            // Behind the prompt is what the answer has to begin with.
            done: count(self.read.len().min(prompt_tokens)),
            total: count(prompt_tokens),
            kept: count(kept),
            left: self
                .pace
                .time_for(prompt_tokens.saturating_sub(self.read.len())),
        }
    }

    /// Notes where the head ends. Takes the first one that is long enough as the one to keep, and
    /// what a file holds of it into memory.
    fn open_head(&mut self, head: &[TokenId]) {
        self.head_tokens = head.len();
        if head.len() < HEAD_TOKENS_MIN || self.head.is_some() {
            return;
        }
        let Some(store) = self.heads.take() else {
            return;
        };
        let mut file = store.head_file(self.owner, head);
        if let Some(tokens) = file.restore(common_len(&self.read, head), &mut self.cache) {
            self.read = tokens;
        }
        self.head = Some(file);
    }

    /// Forgets everything that differs from `prompt`. Gives the number of tokens kept.
    fn keep_common(&mut self, prompt: &[TokenId]) -> usize {
        let kept = common_len(&self.read, prompt).min(self.cache.len());
        self.cache.truncate(kept);
        self.read.truncate(kept);
        kept
    }
}

/// The half of a model that knows text.
struct Words {
    tokenizer: Arc<Tokenizer>,
    constraints: Constraints,
}

impl Words {
    fn load(file: &GgufFile) -> Result<Self, LoadError> {
        let unsupported = |reason| LoadError::UnsupportedTokenizer {
            path: file.path().to_owned(),
            reason,
        };
        let tokenizer = Arc::new(Tokenizer::load(file)?);
        if let Some(missing) = template::REQUIRED_CONTROLS
            .iter()
            .find(|name| tokenizer.control(name).is_none())
        {
            return Err(unsupported(format!("it has no token {missing}")));
        }
        let constraints =
            Constraints::new(tokenizer.clone()).map_err(|error| unsupported(error.to_string()))?;
        Ok(Self {
            tokenizer,
            constraints,
        })
    }
}

/// An answer that is being written.
struct Writing {
    prompt_tokens: usize,
    /// Tokens decided but not read by the model yet.
    pending: Vec<TokenId>,
    constraint: Option<Constraint>,
    sampler: Sampler,
    tokens_left: usize,
    text: TextStream,
    output_tokens: usize,
}

impl Writing {
    /// Adds a token; `false` if there is no room for it.
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

/// Turns bytes into text, holding back the beginning of a character whose rest has not come yet.
#[derive(Debug, Default)]
struct TextStream {
    text: String,
    partial: Vec<u8>,
    /// Text held back until the prompt is read. `None`: nothing is held back any more.
    held: Option<String>,
}

impl TextStream {
    /// A stream that tells nothing before [`release`](Self::release): what an answer has to begin
    /// with is known before the prompt is read.
    fn held() -> Self {
        Self {
            held: Some(String::new()),
            ..Self::default()
        }
    }

    /// Tells what was held back, and everything else at once from now on.
    fn release(&mut self, listener: &mut dyn Listener) {
        if let Some(held) = self.held.take().filter(|held| !held.is_empty()) {
            listener.text(&held);
        }
    }

    fn push(&mut self, bytes: &[u8], listener: &mut dyn Listener) {
        self.partial.extend_from_slice(bytes);
        let mut piece = String::new();
        let mut kept = Vec::new();
        let mut chunks = self.partial.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            piece.push_str(chunk.valid());
            // Only the very end can still become a character.
            match chunks.peek() {
                None if chunk.invalid().len() < 4 => kept = chunk.invalid().to_vec(),
                _ if chunk.invalid().is_empty() => {}
                _ => piece.push(char::REPLACEMENT_CHARACTER),
            }
        }
        self.partial = kept;
        self.tell(&piece, listener);
    }

    fn finish(&mut self, listener: &mut dyn Listener) {
        self.release(listener);
        if !std::mem::take(&mut self.partial).is_empty() {
            self.tell(&char::REPLACEMENT_CHARACTER.to_string(), listener);
        }
    }

    fn tell(&mut self, piece: &str, listener: &mut dyn Listener) {
        if !piece.is_empty() {
            self.text.push_str(piece);
            match &mut self.held {
                Some(held) => held.push_str(piece),
                None => listener.text(piece),
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
