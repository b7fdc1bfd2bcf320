//! How full a conversation's window is.

use adjutant_core::conversation::Conversation;
use adjutant_core::limits::OUTPUT_TOKENS_MAX;
use adjutant_core::turn::{
    Parts, Room, ToolStyle, Turn, TurnSetup, estimate_tokens, fit, parts_of, said_in,
};
use adjutant_core::{ConversationKey, Message, ToolChoice, TurnId, UserId, WindowShare};
use uuid::Uuid;

use crate::inner::Inner;
use crate::{Agent, RunError};

/// How tokens are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Counting {
    /// With the model's own tokenizer.
    Tokenizer,
    /// Estimated from the text, and corrected by what the provider reported in this conversation.
    Calibrated,
    /// Estimated from the text: the provider has reported nothing yet.
    Estimated,
}

/// What the next request of a conversation takes of the model's window, before the person's next
/// words. All numbers are tokens.
///
/// It is the request as it would be sent: what would be left out of it is not counted.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ContextUse {
    /// The instruction, with what is made anew for every turn.
    pub instruction: u32,
    /// The tools and the schema of the answer.
    pub tools: u32,
    /// What stands for old turns.
    pub summary: u32,
    /// What was said, and the calls.
    pub history: u32,
    /// What tools answered.
    pub results: u32,
    /// What the provider counts beside that.
    pub other: u32,
    /// What fits into the model's window.
    pub window: u32,
    /// Kept free of it for the answer.
    pub reserve: u32,
    /// How this was counted.
    pub counting: Counting,
    /// The share of what is usable at which old turns are summarised. `None`: never.
    pub summarize_at: Option<WindowShare>,
    /// How many messages of the conversation, from its beginning, a summary stands for. `None`:
    /// there is none.
    pub summarized_at: Option<usize>,
    /// Something had to be left out, or would have to be.
    pub is_shortened: bool,
}

impl ContextUse {
    /// All of it.
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

    /// The window without what is kept free for the answer.
    #[must_use]
    pub fn usable(&self) -> u32 {
        self.window.saturating_sub(self.reserve)
    }

    /// What is taken of what is usable: 1.0 is full.
    #[must_use]
    pub fn share(&self) -> f64 {
        f64::from(self.total()) / f64::from(self.usable().max(1))
    }

    /// Whether so large a share is taken.
    #[must_use]
    pub fn needs_summary(&self, threshold: WindowShare) -> bool {
        self.share() >= threshold.get()
    }
}

impl Inner {
    /// The tokens of a text: by the model's own tokenizer, else estimated.
    pub(crate) fn count(&self, text: &str) -> u32 {
        self.model
            .count_tokens(text)
            .unwrap_or_else(|| estimate_tokens(text))
    }

    /// What fits into a request with so long an answer.
    pub(crate) fn room(&self, conversation: &Conversation, answer: Option<u32>) -> Room {
        let window = self.model.capabilities().context_window;
        let calibration = conversation.calibration(self.model.id(), self.has_tokenizer());
        Room::new(window, answer.unwrap_or(OUTPUT_TOKENS_MAX), calibration)
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
        let mut past = conversation.recalled_now();
        if let Some(open) = conversation.open_turn() {
            past.messages.extend(said_in(conversation.recent(), open));
        }
        let summarized_at = past.summary.as_ref().map(|summary| summary.summarized_at);
        let next = ".";
        let turn = Turn::new(TurnSetup {
            turn: TurnId(Uuid::nil()),
            model: self.model.id().clone(),
            instruction,
            recalled: past,
            call: None,
            message: next.to_owned(),
            message_chars: next.len(),
            told: Vec::new(),
            tools: self.gate.registry.tool_set(),
            choice: ToolChoice::Auto,
            context: String::new(),
            control_functions: self.control_functions,
            config: self.config.clone(),
            limits: self.limits.clone(),
            style: ToolStyle::Native,
            output: self.output.clone(),
            schema_support: self.model.capabilities().response_schema,
        })?;
        let count = |text: &str| self.count(text);
        let block = turn.summary_block();
        let room = self.room(conversation, self.config.max_tokens.map(|max| max.get()));
        let room = room.for_turn(block.clone(), turn.own_messages());
        let request = turn.request();
        let (request, is_shortened) = match fit(request.clone(), &room, &count) {
            Ok(fitted) => (fitted.request, fitted.is_shortened),
            Err(_) => (request, true),
        };
        let Parts {
            instruction,
            tools,
            summary,
            history,
            results,
        } = parts_of(&request, block.as_deref(), &count);
        let not_said = Message::user(next)
            .map_or(0, |next| adjutant_core::turn::message_tokens(&next, &count));
        let calibration = room.calibration();
        let tokens = |counted| calibration.share_of(counted);
        Ok(ContextUse {
            instruction: tokens(instruction),
            tools: tokens(tools),
            summary: tokens(summary),
            history: tokens(history.saturating_sub(not_said)),
            results: tokens(results),
            other: calibration.overhead(),
            window: room.window(),
            reserve: room.reserve(),
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
    /// What the next request of a conversation takes of the model's window, by part. New to the
    /// journal: the instruction and the tools.
    ///
    /// # Errors
    /// [`RunError::Store`].
    pub async fn context_use(&self, key: &ConversationKey) -> Result<ContextUse, RunError> {
        let inner = self.inner().of(&key.user);
        match inner.current(key).await? {
            Some(known) => inner.context_use(&key.user, known.conversation()).await,
            None => {
                let nothing = Conversation::new(inner.limits.history_messages_max);
                inner.context_use(&key.user, &nothing).await
            }
        }
    }
}
