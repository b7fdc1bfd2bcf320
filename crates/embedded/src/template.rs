//! The chat format of the Qwen models (ChatML).

use toktrie::TokenId;

use crate::error::DecodeError;
use crate::tokenizer::Tokenizer;

/// What the model's own template says when a conversation has no instruction.
const DEFAULT_INSTRUCTION: &str =
    "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";

/// Control tokens the format needs.
pub(crate) const REQUIRED_CONTROLS: [&str; 2] = ["<|im_start|>", "<|im_end|>"];

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// The instruction.
    System,
    /// The person, or whatever the model answers to.
    User,
    /// The model.
    Assistant,
}

/// One turn of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatTurn {
    /// Who speaks.
    pub speaker: Speaker,
    /// What is said. Never read as control tokens, whatever it contains.
    pub text: String,
}

impl ChatTurn {
    /// A turn of `speaker`.
    pub fn new(speaker: Speaker, text: impl Into<String>) -> Self {
        Self {
            speaker,
            text: text.into(),
        }
    }
}

/// A chat as tokens.
#[derive(Debug)]
pub(crate) struct Rendered {
    /// All of it, up to where the model goes on.
    pub(crate) tokens: Vec<TokenId>,
    /// How many of [`tokens`](Self::tokens) belong to the first `head_turns` turns.
    pub(crate) head_tokens: usize,
}

/// Renders `turns` and opens the model's own turn.
pub(crate) fn render(
    tokenizer: &Tokenizer,
    turns: &[ChatTurn],
    head_turns: usize,
) -> Result<Rendered, DecodeError> {
    let control = |name: &str| {
        tokenizer.control(name).ok_or_else(|| DecodeError::Compute {
            reason: format!("no control token {name}"),
        })
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
    tokens.push(start);
    tokens.extend(tokenizer.encode("assistant\n")?);
    Ok(Rendered {
        tokens,
        head_tokens,
    })
}
