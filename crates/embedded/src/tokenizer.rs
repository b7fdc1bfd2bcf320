//! The tokenizer: converts text to tokens and back, with the vocabulary of the model file.
//!
//! Control tokens are not part of the vocabulary that text is encoded with, so a user's
//! `<|im_start|>` is encoded as ordinary characters. Prompts add control tokens by id.

use std::collections::HashMap;

use candle_core::quantized::gguf_file::Value;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::SplitDelimiterBehavior;
use toktrie::{TokRxInfo, TokTrie, TokenId, TokenizerEnv};

use crate::engine::{GgufFile, whole_number};
use crate::error::{DecodeError, LoadError};

/// The pattern by which Qwen2 splits text before merging, from the model's published
/// `tokenizer.json`.
const QWEN2_SPLIT: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Bytes of a token at most. The longest known has 1,024 spaces; the tree of all tokens has no room
/// for more levels.
const TOKEN_BYTES_MAX: usize = 1_024;

/// The `tokenizer.ggml.token_type` of ordinary text.
const TYPE_NORMAL: usize = 1;
/// The type of control tokens, such as `<|im_start|>`.
const TYPE_CONTROL: usize = 3;
/// The type of tokens with a special meaning that are still text, such as `<tool_call>`.
const TYPE_USER_DEFINED: usize = 4;

/// The tokenizer of one model.
pub(crate) struct Tokenizer {
    bpe: tokenizers::Tokenizer,
    trie: TokTrie,
    controls: HashMap<String, TokenId>,
    ends: Vec<TokenId>,
}

impl Tokenizer {
    /// Builds the tokenizer from the file's metadata.
    pub(crate) fn load(file: &GgufFile) -> Result<Self, LoadError> {
        let (model, split) = (
            file.text("tokenizer.ggml.model")?,
            file.text("tokenizer.ggml.pre")?,
        );
        if (model, split) != ("gpt2", "qwen2") {
            return Err(file.unsupported_tokenizer(format!(
                "`{model}` with `{split}`; supported: `gpt2` with `qwen2`"
            )));
        }
        let tokens = texts(file, "tokenizer.ggml.tokens")?;
        let types = file.array("tokenizer.ggml.token_type")?;
        if types.len() != tokens.len() {
            return Err(file.damaged(format!(
                "{} tokens have {} types",
                tokens.len(),
                types.len()
            )));
        }
        let kind = |value| whole_number(value).unwrap_or_default();
        let kinds: Vec<usize> = types.iter().map(kind).collect();
        let parts = Vocabulary::sort(&tokens, &kinds).ok_or_else(|| {
            file.unsupported_tokenizer("a token is not in the byte-level alphabet")
        })?;
        if let Some(longest) = parts.bytes.iter().map(Vec::len).max()
            && longest > TOKEN_BYTES_MAX
        {
            return Err(file.damaged(format!(
                "a token of {longest} bytes is longer than any ({TOKEN_BYTES_MAX} at most)"
            )));
        }
        let merges = texts(file, "tokenizer.ggml.merges")?;
        let bpe = byte_level_bpe(parts.normal, merges)
            .map_err(|error| file.unsupported_tokenizer(error.to_string()))?;

        let end = file.count("tokenizer.ggml.eos_token_id")?;
        let end = TokenId::try_from(end)
            .ok()
            .filter(|&id| (id as usize) < tokens.len());
        let end = end.ok_or_else(|| file.damaged("its end token is outside of its vocabulary"))?;
        // Files name one end token, but models of this family stop with either.
        let named = ["<|im_end|>", "<|endoftext|>"]
            .iter()
            .filter_map(|name| parts.controls.get(*name).copied());
        let mut ends: Vec<TokenId> = named.chain([end]).collect();
        ends.sort_unstable();
        ends.dedup();
        let vocabulary_len =
            u32::try_from(tokens.len()).map_err(|_| file.damaged("its vocabulary is too large"))?;
        let trie = TokTrie::from(&TokRxInfo::new(vocabulary_len, end), &parts.bytes)
            .with_eos_tokens(&ends);
        Ok(Self {
            bpe,
            trie,
            controls: parts.controls,
            ends,
        })
    }

    /// Encodes `text`, never as control tokens.
    pub(crate) fn encode(&self, text: &str) -> Result<Vec<TokenId>, DecodeError> {
        let encoding = self.bpe.encode_fast(text, false);
        let encoding = encoding.map_err(|error| DecodeError::Compute {
            reason: error.to_string(),
            source: Some(error),
        })?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Returns the bytes of a token; none for control tokens. A character may be spread over
    /// several tokens.
    pub(crate) fn bytes(&self, token: TokenId) -> &[u8] {
        match self.trie.token(token) {
            [TokTrie::SPECIAL_TOKEN_MARKER, ..] => &[],
            bytes => bytes,
        }
    }

    /// Returns the control token of this name, if the model has it.
    pub(crate) fn control(&self, name: &str) -> Option<TokenId> {
        self.controls.get(name).copied()
    }

    /// Returns true if `token` ends an answer.
    pub(crate) fn is_end(&self, token: TokenId) -> bool {
        self.ends.contains(&token)
    }
}

impl TokenizerEnv for Tokenizer {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        let encode = |text: &str| {
            self.encode(text)
                // The trait cannot report an error; greedy tokens spell the same bytes.
                .unwrap_or_else(|_| self.trie.greedy_tokenize(text.as_bytes()))
        };
        self.trie.tokenize_with_greedy_fallback(bytes, encode)
    }
}

/// The tokens of a file, sorted by kind.
struct Vocabulary {
    normal: Vocab,
    controls: HashMap<String, TokenId>,
    /// The bytes of every token by id: control tokens with the trie's marker in front, unused ones
    /// empty.
    bytes: Vec<Vec<u8>>,
}

impl Vocabulary {
    fn sort(tokens: &[&str], kinds: &[usize]) -> Option<Self> {
        let bytes_of = byte_level_alphabet();
        let mut sorted = Self {
            normal: Vocab::default(),
            controls: HashMap::new(),
            bytes: Vec::new(),
        };
        for (id, (token, kind)) in (0..).zip(tokens.iter().zip(kinds)) {
            sorted.bytes.push(match *kind {
                TYPE_NORMAL => {
                    sorted.normal.insert((*token).to_owned(), id);
                    token
                        .chars()
                        .map(|character| bytes_of.get(&character).copied())
                        .collect::<Option<_>>()?
                }
                TYPE_CONTROL | TYPE_USER_DEFINED => {
                    sorted.controls.insert((*token).to_owned(), id);
                    [&[TokTrie::SPECIAL_TOKEN_MARKER], token.as_bytes()].concat()
                }
                _ => Vec::new(),
            });
        }
        Some(sorted)
    }
}

fn byte_level_bpe(
    vocabulary: Vocab,
    merges: Vec<&str>,
) -> tokenizers::Result<tokenizers::Tokenizer> {
    let pairs = merges.into_iter().filter_map(|merge| merge.split_once(' '));
    let pairs = pairs
        .map(|(left, right)| (left.to_owned(), right.to_owned()))
        .collect();
    let model = BPE::builder().vocab_and_merges(vocabulary, pairs).build()?;
    let split = Split::new(
        SplitPattern::Regex(QWEN2_SPLIT.to_owned()),
        SplitDelimiterBehavior::Isolated,
        false,
    )?;
    let mut bpe = tokenizers::Tokenizer::new(model);
    let bytes = ByteLevel::new(false, false, false);
    bpe.with_pre_tokenizer(Some(Sequence::new(vec![split.into(), bytes.into()])));
    Ok(bpe)
}

/// Returns the bytes by the printable characters that stand for them in GPT-2's byte-level
/// vocabularies: printable bytes stand for themselves, the others are numbered from U+0100 on.
fn byte_level_alphabet() -> HashMap<char, u8> {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut stand_ins = (0x100u32..).filter_map(char::from_u32);
    let pair = |byte: u8| match printable(byte) {
        true => Some((char::from(byte), byte)),
        false => stand_ins.next().map(|character| (character, byte)),
    };
    (0..=u8::MAX).filter_map(pair).collect()
}

fn texts<'a>(file: &'a GgufFile, key: &str) -> Result<Vec<&'a str>, LoadError> {
    let text = |value: &'a Value| match value {
        Value::String(text) => Some(text.as_str()),
        _ => None,
    };
    let texts: Option<Vec<&str>> = file.array(key)?.iter().map(text).collect();
    texts.ok_or_else(|| file.damaged(format!("`{key}` holds something that is not a text")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_names_every_byte_once() {
        let alphabet = byte_level_alphabet();
        assert_eq!(alphabet.len(), 256);
        assert_eq!(alphabet.get(&'Ġ'), Some(&b' '));
        assert_eq!(alphabet.get(&'Ċ'), Some(&b'\n'));
    }
}
