//! What the model of the terminal is told anew for every turn: the person's instruction files, the
//! date, the facts.
//!
//! What changes least stands first: caches of prompts hit as far as a request begins like the one
//! before.

use std::sync::Arc;

use adjutant_core::turn::estimate_tokens;
use adjutant_core::{BoxFuture, LanguageModel, Message, Notice, UserId};
use adjutant_memory::{IMPORTANT_TOKENS_MAX, ImportantFacts, Memory, MemoryError, ToldLimits};
use adjutant_runtime::{FreshInstruction, Recall, RecallRequest, TurnInstruction};

use super::Desk;
use crate::input::notes_in;
use crate::instructions::{Instructions, Places};

/// Says it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Told {
    memory: Option<Memory>,
    owner: UserId,
    /// True if facts are told; else the model has its tools only.
    tells: bool,
    /// The instruction files; none of them is another user's.
    places: Option<Places>,
    model: Arc<dyn LanguageModel>,
}

/// A part of what is told, and what it costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToldPart {
    /// A file's path, or `facts`.
    pub(crate) name: String,
    /// Tokens, as the model counts them where it can, else estimated.
    pub(crate) tokens: u32,
    /// Why it is not told, or not all of it.
    pub(crate) notice: Option<String>,
}

impl Told {
    /// `tells`: whether facts are told.
    pub(crate) fn new(
        desk: &Desk,
        tells: bool,
        places: Option<Places>,
        model: Arc<dyn LanguageModel>,
    ) -> Self {
        Self {
            memory: desk.memory().cloned(),
            owner: desk.owner().clone(),
            tells,
            places,
            model,
        }
    }

    /// The parts with their cost, for `/context`.
    pub(crate) async fn parts(&self) -> Vec<ToldPart> {
        let files = self.files().await;
        let mut parts: Vec<ToldPart> = files
            .iter()
            .map(|file| ToldPart {
                name: file.path.display().to_string(),
                tokens: file.text().map_or(0, |text| self.count(&text)),
                notice: file.notice(),
            })
            .collect();
        let (text, notice) = self.facts().await;
        if !text.is_empty() || notice.is_some() {
            parts.push(ToldPart {
                name: "facts".to_owned(),
                tokens: self.count(&text),
                notice: notice.map(|notice| notice.text),
            });
        }
        parts
    }

    /// What the person should know before they begin, in one line: files that were not read.
    pub(crate) async fn unread(&self) -> Option<String> {
        let notices: Vec<String> = self
            .files()
            .await
            .iter()
            .filter_map(Instructions::notice)
            .collect();
        (!notices.is_empty()).then(|| notices.join(" · "))
    }

    async fn files(&self) -> Vec<Instructions> {
        let Some(places) = self.places.clone() else {
            return Vec::new();
        };
        tokio::task::spawn_blocking(move || places.read())
            .await
            .unwrap_or_default()
    }

    /// The important facts as far as there is room for them, and what is the matter with them.
    async fn facts(&self) -> (String, Option<Notice>) {
        let Some(memory) = self.memory.as_ref().filter(|_| self.tells) else {
            return (String::new(), None);
        };
        let facts = match memory.facts().instruction(&|text| self.count(text)).await {
            Ok(facts) => facts,
            Err(error) => return (String::new(), Some(unread(&error))),
        };
        let notice = in_part(
            &facts,
            "`adjutant memory edit ID --not-important` takes importance away.",
        );
        (facts.text, notice)
    }

    fn count(&self, text: &str) -> u32 {
        self.model
            .count_tokens(text)
            .unwrap_or_else(|| estimate_tokens(text))
    }
}

impl Recall for Told {
    fn for_message<'a>(
        &'a self,
        asked: RecallRequest<'a>,
    ) -> BoxFuture<'a, Vec<adjutant_core::Told>> {
        Box::pin(async move {
            // One person's own, whoever else may ask.
            let Some(memory) = self
                .memory
                .as_ref()
                .filter(|_| asked.key.user == self.owner)
            else {
                return Vec::new();
            };
            let said = asked
                .history
                .iter()
                .map(Message::text)
                .chain([asked.message.to_owned()]);
            let attached =
                said.flat_map(|text| notes_in(&text).map(str::to_owned).collect::<Vec<_>>());
            memory.attach(asked.key.conversation, attached.collect());
            if !self.tells {
                return Vec::new();
            }
            let (limits, count) = (ToldLimits::default(), |text: &str| self.count(text));
            // That it cannot be read is told beside the answer, by what makes the instruction.
            memory
                .told(asked.message, asked.history, limits, &count)
                .await
                .unwrap_or_default()
        })
    }
}

impl TurnInstruction for Told {
    fn for_turn<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, FreshInstruction> {
        Box::pin(async move {
            // Files and facts are one person's own, whoever else may ask.
            if *user != self.owner {
                return FreshInstruction::default();
            }
            let mut texts: Vec<String> = self
                .files()
                .await
                .iter()
                .filter_map(Instructions::text)
                .collect();
            texts.push(format!("Today is {}.\n", today()));
            let (facts, notice) = self.facts().await;
            texts.push(facts);
            texts.retain(|text| !text.trim().is_empty());
            FreshInstruction {
                text: texts.join("\n"),
                notices: notice.into_iter().collect(),
            }
        })
    }
}

/// Says that a memory could not be read.
pub(super) fn unread(error: &MemoryError) -> Notice {
    let text =
        format!("The memory could not be read, and this answer is given without it: {error}.");
    Notice {
        code: "memory_unread".to_owned(),
        text,
    }
}

/// Says that there is no room for all important facts, and the remedy.
pub(super) fn in_part(facts: &ImportantFacts, remedy: &str) -> Option<Notice> {
    (facts.left_out > 0).then(|| Notice {
        code: "memory_in_part".to_owned(),
        text: format!(
            "{} of the important facts are told only where they fit: the model's instruction has room for \
             {IMPORTANT_TOKENS_MAX} tokens of them. {remedy}",
            facts.left_out
        ),
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "the person's own clock and zone are what the model is told"
)]
pub(super) fn today() -> String {
    jiff::Zoned::now().strftime("%A, %Y-%m-%d").to_string()
}
