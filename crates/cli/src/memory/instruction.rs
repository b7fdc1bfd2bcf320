//! The parts of the terminal assistant's instruction that are made anew for every turn: instruction
//! files, the facts. The date is no part of it: it stands in front of each message.
//!
//! The parts that change least come first, because prompt caches match a request from its
//! beginning.

use std::sync::Arc;

use adjutant_core::turn::estimate_tokens;
use adjutant_core::{BoxFuture, LanguageModel, Message, Notice, UserId};
use adjutant_memory::{IMPORTANT_TOKENS_MAX, ImportantFacts, Memory, MemoryError, RecallLimits};
use adjutant_runtime::{InstructionAddition, Recall, RecallRequest, TurnInstruction};

use super::UserMemory;
use crate::instructions::{Instructions, Locations};
use crate::terminal::input::notes_in;

/// Builds these parts. Cheap to clone.
#[derive(Clone)]
pub(crate) struct UserInstruction {
    memory: Option<Memory>,
    owner: UserId,
    /// True if facts are included; else the model has its tools only.
    includes_facts: bool,
    /// The user's instruction files; `None` for other users.
    locations: Option<Locations>,
    model: Arc<dyn LanguageModel>,
}

/// A part of the instruction and its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstructionPart {
    /// The path of a file, or `facts`.
    pub(crate) name: String,
    /// Size in tokens, counted by the model where it can, else estimated.
    pub(crate) tokens: u32,
    /// The reason why the part is left out or cut.
    pub(crate) notice: Option<String>,
}

impl UserInstruction {
    /// Creates the builder. `includes_facts` adds the facts.
    pub(crate) fn new(
        user_memory: &UserMemory,
        includes_facts: bool,
        locations: Option<Locations>,
        model: Arc<dyn LanguageModel>,
    ) -> Self {
        Self {
            memory: user_memory.memory().cloned(),
            owner: user_memory.owner().clone(),
            includes_facts,
            locations,
            model,
        }
    }

    /// Returns the parts with their sizes, for `/context`.
    pub(crate) async fn parts(&self) -> Vec<InstructionPart> {
        let files = self.files().await;
        let mut parts: Vec<InstructionPart> = files
            .iter()
            .map(|file| InstructionPart {
                name: file.path.display().to_string(),
                tokens: file.model_text().map_or(0, |text| self.count(&text)),
                notice: file.notice(),
            })
            .collect();
        let (text, notice) = self.facts().await;
        if !text.is_empty() || notice.is_some() {
            parts.push(InstructionPart {
                name: "facts".to_owned(),
                tokens: self.count(&text),
                notice: notice.map(|notice| notice.text),
            });
        }
        parts
    }

    /// Returns a notice about instruction files that were not read, in one line.
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
        let Some(locations) = self.locations.clone() else {
            return Vec::new();
        };
        tokio::task::spawn_blocking(move || locations.load())
            .await
            .unwrap_or_default()
    }

    /// Returns the important facts that fit, and a notice about the others.
    async fn facts(&self) -> (String, Option<Notice>) {
        let Some(memory) = self.memory.as_ref().filter(|_| self.includes_facts) else {
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
        count_tokens(&*self.model, text)
    }
}

impl Recall for UserInstruction {
    fn for_message<'a>(
        &'a self,
        asked: RecallRequest<'a>,
    ) -> BoxFuture<'a, Vec<adjutant_core::RecalledText>> {
        Box::pin(async move {
            // The vault has one owner, whatever user the turn is of.
            let is_owner = asked.key.user == self.owner;
            let Some(memory) = self.memory.as_ref().filter(|_| is_owner) else {
                return Vec::new();
            };
            let texts = asked.history.iter().map(Message::text);
            let attached = texts
                .chain([asked.message.to_owned()])
                .flat_map(|text| notes_in(&text).map(str::to_owned).collect::<Vec<_>>());
            // Also without automatic recall: what the user attached decides between notes that fit
            // alike when the model searches.
            memory.attach(asked.key.conversation, attached.collect());
            if !self.includes_facts {
                return Vec::new();
            }
            let (limits, count) = (RecallLimits::default(), |text: &str| self.count(text));
            // The error is reported by the code that makes the instruction.
            memory
                .recall_for_message(asked.message, asked.history, limits, &count)
                .await
                .unwrap_or_default()
        })
    }
}

impl TurnInstruction for UserInstruction {
    fn for_turn<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, InstructionAddition> {
        Box::pin(async move {
            // Files and facts have one owner, whatever user the turn is of.
            if *user != self.owner {
                return InstructionAddition::default();
            }
            let mut texts: Vec<String> = self
                .files()
                .await
                .iter()
                .filter_map(Instructions::model_text)
                .collect();
            let (facts, notice) = self.facts().await;
            texts.push(facts);
            texts.retain(|text| !text.trim().is_empty());
            InstructionAddition {
                text: texts.join("\n"),
                notices: notice.into_iter().collect(),
            }
        })
    }
}

/// Returns the size of a text in tokens, counted by the model where it can, else estimated.
pub(super) fn count_tokens(model: &dyn LanguageModel, text: &str) -> u32 {
    model
        .count_tokens(text)
        .unwrap_or_else(|| estimate_tokens(text))
}

/// Returns the notice of a memory that could not be read.
pub(super) fn unread(error: &MemoryError) -> Notice {
    let text =
        format!("The memory could not be read, and this answer is given without it: {error}.");
    Notice {
        code: "memory_unread".to_owned(),
        text,
    }
}

/// Returns the notice that not all important facts fit, with the remedy.
pub(super) fn in_part(facts: &ImportantFacts, remedy: &str) -> Option<Notice> {
    (facts.left_out > 0).then(|| Notice {
        code: "memory_in_part".to_owned(),
        text: format!(
            "{} of the important facts are attached only where they fit: the model's instruction takes \
             {IMPORTANT_TOKENS_MAX} tokens of them. {remedy}",
            facts.left_out
        ),
    })
}
