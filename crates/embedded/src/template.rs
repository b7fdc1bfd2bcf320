//! The chat format of the Qwen models, ChatML.

use toktrie::TokenId;

use crate::error::DecodeError;
use crate::tokenizer::Tokenizer;

/// The instruction that the model's own template adds to a conversation without one.
const DEFAULT_INSTRUCTION: &str =
    "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";

/// Control tokens that the format needs.
pub(crate) const REQUIRED_CONTROLS: [&str; 2] = ["<|im_start|>", "<|im_end|>"];

/// The role of a turn in a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// The instruction to the model.
    System,
    /// The person that the model answers, or a tool that it called.
    User,
    /// The model itself, in an earlier answer.
    Assistant,
}

/// A turn of a chat: a role and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatTurn {
    /// The role that the text is attributed to.
    pub speaker: Speaker,
    /// The text. Never parsed as control tokens, whatever it contains.
    pub text: String,
}

impl ChatTurn {
    /// Creates a turn with this role and text.
    pub fn new(speaker: Speaker, text: impl Into<String>) -> Self {
        Self {
            speaker,
            text: text.into(),
        }
    }
}

/// A chat, encoded as tokens.
#[derive(Debug)]
pub(crate) struct Rendered {
    /// All tokens, up to the beginning of the model's next turn.
    pub(crate) tokens: Vec<TokenId>,
    /// The number of [`tokens`](Self::tokens) in the first `head_turns` turns.
    pub(crate) head_tokens: usize,
}

impl Rendered {
    /// Returns the tokens of the turns that later requests repeat.
    pub(crate) fn head(&self) -> &[TokenId] {
        self.tokens.get(..self.head_tokens).unwrap_or_default()
    }
}

/// Encodes `turns`, followed by the beginning of the model's next turn.
pub(crate) fn render(
    tokenizer: &Tokenizer,
    turns: &[ChatTurn],
    head_turns: usize,
) -> Result<Rendered, DecodeError> {
    let control = |name: &str| {
        tokenizer
            .control(name)
            .ok_or_else(|| DecodeError::compute(format!("no control token {name}")))
    };
    let (start, end) = (
        control(REQUIRED_CONTROLS[0])?,
        control(REQUIRED_CONTROLS[1])?,
    );
    let line_break = tokenizer.encode("\n")?;
    let mut tokens = Vec::new();
    let mut head_tokens = 0;
    let mut push = |speaker: &str, text: &str| -> Result<usize, DecodeError> {
        tokens.push(start);
        tokens.extend(tokenizer.encode(&format!("{speaker}\n{text}"))?);
        tokens.push(end);
        tokens.extend(&line_break);
        Ok(tokens.len())
    };
    if turns
        .first()
        .is_none_or(|turn| turn.speaker != Speaker::System)
    {
        push("system", DEFAULT_INSTRUCTION)?;
    }
    for (index, turn) in turns.iter().enumerate() {
        let speaker = match turn.speaker {
            Speaker::System => "system",
            Speaker::User => "user",
            Speaker::Assistant => "assistant",
        };
        let length = push(speaker, &turn.text)?;
        if index < head_turns {
            head_tokens = length;
        }
    }
    // The beginning of the answer, which the model goes on with.
    tokens.push(start);
    tokens.extend(tokenizer.encode("assistant\n")?);
    Ok(Rendered {
        tokens,
        head_tokens,
    })
}
