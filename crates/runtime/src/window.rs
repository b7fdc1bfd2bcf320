//! Context window usage: the tokens that a conversation's next request takes.

use adjutant_core::conversation::Conversation;
use adjutant_core::limits::OUTPUT_TOKENS_MAX;
use adjutant_core::turn::{
    ToolStyle, Turn, TurnSetup, WindowCapacity, estimate_tokens, fit, parts_of, said_in,
};
use adjutant_core::{ConversationKey, Message, UserId, WindowShare};

use crate::inner::Inner;
use crate::run::setup;
use crate::turn_tools::TurnTools;
use crate::{Agent, RunError};

/// The method by which tokens were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Counting {
    /// Counted with the model's own tokenizer.
    Tokenizer,
    /// Estimated from the text, and corrected by what the provider reported in this conversation.
    Calibrated,
    /// Estimated from the text: the provider has reported nothing yet.
    Estimated,
}

/// The tokens that the next request of a conversation takes of the model's context window, without
/// the next message.
///
/// It is the request as it would be sent: messages that would be left out are not counted.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ContextUse {
    /// Tokens of the instruction, with the text that is added for every turn.
    pub instruction: u32,
    /// Tokens of the tool definitions and the output schema.
    pub tools: u32,
    /// Tokens of the summary that replaces old turns.
    pub summary: u32,
    /// Tokens of messages and tool calls.
    pub history: u32,
    /// Tokens that results of tool calls take.
    pub results: u32,
    /// Tokens that the provider reports beyond these parts.
    pub other: u32,
    /// Size of the model's context window in tokens.
    pub window: u32,
    /// Tokens of the window that are kept free for the answer.
    pub reserve: u32,
    /// The method by which these tokens were counted.
    pub counting: Counting,
    /// The share of the usable window at which compaction starts. `None`: never.
    pub summarize_at: Option<WindowShare>,
    /// Number of messages, from the beginning of the conversation, that a summary replaces. `None`:
    /// there is no summary.
    pub summarized_at: Option<usize>,
    /// True if messages or results have to be left out of the request.
    pub is_shortened: bool,
}

impl ContextUse {
    /// Returns the sum of all parts, without the reserve.
    #[must_use]
    pub fn total(&self) -> u32 {
        [
            self.instruction,
            self.tools,
            self.summary,
            self.history,
            self.results,
            self.other,
        ]
        .into_iter()
        .fold(0, u32::saturating_add)
    }

    /// Returns the window without the reserve for the answer.
    #[must_use]
    pub fn usable(&self) -> u32 {
        self.window.saturating_sub(self.reserve)
    }

    /// Returns the share of the usable window that the request takes; 1.0 is full.
    #[must_use]
    pub fn share(&self) -> f64 {
        f64::from(self.total()) / f64::from(self.usable().max(1))
    }

    /// Returns true if the request takes at least this share of the usable window.
    #[must_use]
    pub fn needs_summary(&self, threshold: WindowShare) -> bool {
        self.share() >= threshold.get()
    }
}

impl Inner {
    /// Returns the tokens of a text: counted by the model's own tokenizer, else estimated.
    pub(crate) fn count(&self, text: &str) -> u32 {
        self.model
            .count_tokens(text)
            .unwrap_or_else(|| estimate_tokens(text))
    }

    /// Returns the part of the context window for a request whose answer has at most `answer` tokens.
    pub(crate) fn window_capacity(
        &self,
        conversation: &Conversation,
        answer: Option<u32>,
    ) -> WindowCapacity {
        let window = self.model.capabilities().context_window;
        let calibration = conversation.calibration(self.model.id(), self.has_tokenizer());
        WindowCapacity::new(window, answer.unwrap_or(OUTPUT_TOKENS_MAX), calibration)
    }

    fn has_tokenizer(&self) -> bool {
        self.model.count_tokens("a").is_some()
    }

    pub(crate) async fn context_use(
        &self,
        user: &UserId,
        conversation: &Conversation,
    ) -> Result<ContextUse, RunError> {
        let (instruction, _) = self.instruction_for(user).await;
        let mut past = conversation.turn_history_now();
        if let Some(open) = conversation.open_turn() {
            past.messages.extend(said_in(conversation.recent(), open));
        }
        let summarized_at = past.summary.as_ref().map(|summary| summary.summarized_at);
        // A turn needs a message: this one stands for the next, and its tokens are deducted below.
        let next = ".";
        let tools = TurnTools::new(self, &self.limits, None)?;
        let (message, chars) = (next.to_owned(), next.len());
        let turn = Turn::new(TurnSetup {
            recalled: past,
            style: ToolStyle::Native,
            ..setup(self, &self.limits, &tools, instruction, message, chars)
        })?;
        let count = |text: &str| self.count(text);
        let block = turn.summary_block();
        let capacity =
            self.window_capacity(conversation, self.config.max_tokens.map(|max| max.get()));
        let capacity = capacity.for_turn(block.clone(), turn.own_messages());
        let request = turn.request();
        let (request, is_shortened) = match fit(request.clone(), &capacity, &count) {
            Ok(fitted) => (fitted.request, fitted.is_shortened),
            Err(_) => (request, true),
        };
        let parts = parts_of(&request, block.as_deref(), &count);
        let not_said = Message::user(next)
            .map_or(0, |next| adjutant_core::turn::message_tokens(&next, &count));
        let calibration = capacity.calibration();
        let tokens = |counted| calibration.share_of(counted);
        Ok(ContextUse {
            instruction: tokens(parts.instruction),
            tools: tokens(parts.tools),
            summary: tokens(parts.summary),
            history: tokens(parts.history.saturating_sub(not_said)),
            results: tokens(parts.results),
            other: calibration.overhead(),
            window: capacity.window(),
            reserve: capacity.reserve(),
            counting: match (self.has_tokenizer(), calibration.is_reported()) {
                (true, _) => Counting::Tokenizer,
                (false, true) => Counting::Calibrated,
                (false, false) => Counting::Estimated,
            },
            summarize_at: self.limits.summarize_at,
            summarized_at,
            is_shortened,
        })
    }
}

impl Agent {
    /// Returns the tokens that the next request of a conversation takes of the context window, by
    /// part. For a conversation that the journal does not know: the instruction and the tools.
    ///
    /// # Errors
    /// [`RunError::Store`] if the conversation cannot be read.
    pub async fn context_use(&self, key: &ConversationKey) -> Result<ContextUse, RunError> {
        let inner = self.inner().for_user(&key.user);
        match inner.current(key).await? {
            Some(known) => inner.context_use(&key.user, known.conversation()).await,
            None => {
                let nothing = Conversation::new(inner.limits.history_messages_max);
                inner.context_use(&key.user, &nothing).await
            }
        }
    }
}
