//! What a person does with their memory, by commands and in a conversation.

use std::path::PathBuf;
use std::sync::Arc;

use adjutant_core::turn::estimate_tokens;
use adjutant_core::{MemoryEffect, UserId};
use adjutant_memory::{
    Cause, FactChange, KeyFact, Memory, MemoryError, NewFact, ToldFact, ToldLimits, Undone, Vault,
    Why,
};
use jiff::Zoned;

use super::undo::{ON_PAGE, with_undo};
use super::vaults::OwnVault;
use crate::config::{RunBounds, Settings};
use crate::display::{clip, local, plural};
use crate::error::CliError;
use crate::store::{self, Store};

/// Characters of one fact in a list.
const SHOWN_MAX: usize = 500;

/// A person's memory, if they have a vault. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Desk {
    memory: Option<Memory>,
    /// Whose vault it is.
    owner: UserId,
    /// True if the files of the person of this machine are its owner's.
    has_files: bool,
    /// Nothing may be written.
    temp: bool,
    /// Whether `/undo` can be typed.
    in_chat: bool,
    /// What the person is called in notes of conversations, if there are such notes.
    logs_as: Option<String>,
}

impl Desk {
    /// Opens the vault of the settings for the person of this machine; without one, there is a desk
    /// with nothing on it.
    ///
    /// # Errors
    /// The vault is not there or cannot be read, or `memory.path` leads out of it.
    pub(crate) async fn open(settings: &Settings, store: Arc<dyn Store>) -> Result<Self, CliError> {
        Self::open_for(settings, store, UserId::local(), true).await
    }

    /// Opens a user's own vault. `settings`: those of [`OwnVault::settings`].
    ///
    /// # Errors
    /// As [`Desk::open`].
    pub(crate) async fn open_own(
        settings: &Settings,
        store: Arc<dyn Store>,
        own: &OwnVault,
    ) -> Result<Self, CliError> {
        Self::open_for(settings, store, own.user.clone(), own.is_of_machine()).await
    }

    async fn open_for(
        settings: &Settings,
        store: Arc<dyn Store>,
        owner: UserId,
        has_files: bool,
    ) -> Result<Self, CliError> {
        let memory = match &settings.memory.vault {
            None => None,
            Some(path) => Some(open(settings, path.clone(), (owner.clone(), store)).await?),
        };
        let RunBounds { temp, in_chat, .. } = settings.bounds;
        let logs_as =
            (settings.memory.log_conversations && !temp).then(|| settings.user_name.clone());
        Ok(Self {
            memory,
            owner,
            has_files,
            temp,
            in_chat,
            logs_as,
        })
    }

    /// The library's memory, for reading; none without a vault.
    pub(crate) fn memory(&self) -> Option<&Memory> {
        self.memory.as_ref()
    }

    /// Returns the vault, if there is one.
    pub(crate) fn vault(&self) -> Option<&Vault> {
        self.memory.as_ref().and_then(Memory::vault)
    }

    /// Returns the user whose vault it is.
    pub(crate) fn owner(&self) -> &UserId {
        &self.owner
    }

    /// Returns true if the instruction files of the person of this machine are its owner's.
    pub(crate) fn has_files(&self) -> bool {
        self.has_files
    }

    /// What the person is called in notes of conversations, if these are written.
    pub(super) fn logs_as(&self) -> Option<&str> {
        self.logs_as.as_deref()
    }

    /// How the person takes back the last change.
    pub(crate) fn undo_command(&self) -> &'static str {
        match (self.in_chat, self.owner == UserId::local()) {
            (true, _) => "/undo",
            (false, true) => "adjutant memory undo",
            // Whoever signs in to the service has no terminal here.
            (false, false) => ON_PAGE,
        }
    }

    /// What the first line of a conversation says of it, such as `vault Notes · memory 12 facts`.
    pub(crate) async fn headline(&self) -> String {
        let Some(memory) = &self.memory else {
            return "no vault (adjutant init)".to_owned();
        };
        let facts = match memory.facts().list().await.as_deref() {
            Ok([_]) => "1 fact".to_owned(),
            Ok(facts) => plural(facts.len() as u64, "fact", "facts"),
            // Told in full with the first answer.
            Err(_) => "cannot be read".to_owned(),
        };
        let temp = if self.temp {
            " · temporary: nothing is kept"
        } else {
            ""
        };
        let vault = memory.vault().map(Vault::name).unwrap_or_default();
        format!("vault {} · memory {facts}{temp}", clip(&vault, 60))
    }

    /// All facts, in the order of the file.
    pub(crate) async fn list(&self) -> Result<Vec<KeyFact>, CliError> {
        Ok(self.reading()?.facts().list().await?)
    }

    /// The facts that fit the words, best first.
    pub(crate) async fn search(&self, words: &str) -> Result<Vec<KeyFact>, CliError> {
        Ok(self.reading()?.facts().search(words).await?)
    }

    /// The facts that would be told with a message at the beginning of a conversation, best first.
    pub(crate) async fn told(&self, message: &str) -> Result<Vec<ToldFact>, CliError> {
        let facts = self.reading()?.facts();
        Ok(facts
            .fitting(message, &[], ToldLimits::default(), &estimate_tokens)
            .await?)
    }

    /// Remembers what the person says. `#important` among the words makes it important, too.
    pub(crate) async fn remember(&self, new: &NewFact<'_>) -> Result<FactChange, CliError> {
        Ok(self
            .writing()?
            .facts()
            .remember(new, &Cause::person())
            .await?)
    }

    /// The known fact that can hardly be true beside these words, if they do not say themselves
    /// that they correct it.
    pub(crate) async fn contradicted(&self, words: &str) -> Result<Option<KeyFact>, CliError> {
        Ok(self
            .writing()?
            .facts()
            .contradicted_by(words, words)
            .await?)
    }

    /// Gives the meant fact other words, or another importance.
    pub(crate) async fn edit(
        &self,
        which: &str,
        words: Option<&str>,
        important: Option<bool>,
    ) -> Result<FactChange, CliError> {
        let facts = self.writing()?.facts();
        let which = self.meant(which).await?;
        Ok(facts
            .edit(&which.content, words, important, &Cause::person())
            .await?)
    }

    /// Forgets the meant fact.
    pub(crate) async fn forget(&self, which: &str) -> Result<FactChange, CliError> {
        let facts = self.writing()?.facts();
        let which = self.meant(which).await?;
        Ok(facts.forget(&which.content, &Cause::person()).await?)
    }

    /// Where the meant fact comes from.
    pub(crate) async fn why(&self, which: &str) -> Result<Why, CliError> {
        let facts = self.reading()?.facts();
        let which = self.meant(which).await?;
        Ok(facts.why(&which.content).await?)
    }

    /// Takes back the newest change of a fact or a note.
    pub(crate) async fn undo(&self) -> Result<Undone, CliError> {
        Ok(self.writing()?.undo().await?)
    }

    /// The one fact that is meant: by its words, a part of them, its id, or a part of the id's
    /// beginning or end.
    pub(crate) async fn meant(&self, which: &str) -> Result<KeyFact, CliError> {
        let facts = self.reading()?.facts();
        let error = match facts.find(which).await {
            Ok(fact) => return Ok(fact),
            Err(error @ MemoryError::NoSuchFact { .. }) => error,
            Err(error) => return Err(error.into()),
        };
        let part = which.trim().to_lowercase();
        let fits = |fact: &KeyFact| {
            fact.id.as_str().starts_with(&part) || fact.id.as_str().ends_with(&part)
        };
        let mut found = facts
            .list()
            .await?
            .into_iter()
            .filter(|fact| !part.is_empty() && fits(fact));
        match (found.next(), found.next()) {
            (Some(fact), None) => Ok(fact),
            (None, _) => Err(error.into()),
            (Some(_), Some(_)) => Err(CliError::unknown(format!("{part:?} fits more than one id"))
                .or_try("more of the id (adjutant memory list)")),
        }
    }

    /// All facts that may be meant: those that hold the words, or the one of the id.
    pub(crate) async fn all_meant(&self, which: &str) -> Result<Vec<KeyFact>, CliError> {
        let (one, words) = (self.meant(which).await, which.trim().to_lowercase());
        if one.is_ok() || words.is_empty() {
            return one.map(|fact| vec![fact]);
        }
        let mut all = self.list().await?;
        all.retain(|fact| fact.content.to_lowercase().contains(&words));
        if all.is_empty() {
            one.map(|fact| vec![fact])
        } else {
            Ok(all)
        }
    }

    /// What was done, in words with the way back.
    pub(crate) fn words(&self, change: &FactChange) -> String {
        with_undo(&change.words(), self.undo_command())
    }

    fn reading(&self) -> Result<&Memory, CliError> {
        self.memory.as_ref().ok_or_else(no_vault)
    }

    fn writing(&self) -> Result<&Memory, CliError> {
        let memory = self.reading()?;
        if self.temp {
            return Err(
                CliError::failed("nothing is written in a temporary conversation")
                    .or_try("run it again without --temp"),
            );
        }
        Ok(memory)
    }
}

async fn open(
    settings: &Settings,
    path: PathBuf,
    (owner, store): (UserId, Arc<dyn Store>),
) -> Result<Memory, CliError> {
    let work = settings.dirs.data.join("vault");
    // A disk that sleeps or a share that is away must not hold up everything else.
    let vault = tokio::task::spawn_blocking(move || Vault::open(path)).await;
    let vault = vault
        .map_err(|error| CliError::failed(error.to_string()))??
        .with_work_folder(work);
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the clock that the memory is handed"
    )]
    let clock = Arc::new(Zoned::now);
    let memory = Memory::new(
        vault,
        owner,
        settings.memory.options.clone(),
        store.clone(),
        clock,
    );
    memory.map(|memory| memory.with_conversations(store, store::agent_name())).map_err(|error| {
        CliError::configuration("memory.path cannot be used")
            .because(error.to_string())
            .or_try("a path inside the vault, such as memory/facts.md (adjutant config show --origin)")
    })
}

pub(super) fn no_vault() -> CliError {
    CliError::configuration("there is no vault: nothing is remembered, and there are no notes")
        .or_try("adjutant init    finds vaults, and asks which")
        .or_try("adjutant config set vault.path DIR, or --vault DIR    any folder will do")
}

/// A fact on one line: id, date or star, words.
pub(crate) fn line(fact: &KeyFact) -> String {
    let mark = match (fact.is_important(), fact.created) {
        (true, _) => "important".to_owned(),
        (false, Some(date)) => date.to_string(),
        (false, None) => String::new(),
    };
    format!("{}  {mark:10}  {}", fact.id, clip(&fact.content, SHOWN_MAX))
}

/// Where a fact comes from, line by line.
pub(crate) fn why_lines(why: &Why) -> Vec<String> {
    let mut lines = vec![line(&why.fact)];
    if why.history.is_empty() {
        lines.push(
            "  nothing is known of it: it was written by hand, or its history was lost".to_owned(),
        );
    }
    for change in &why.history {
        let MemoryEffect::Fact { before, after } = &change.effect else {
            continue;
        };
        let what = match (before, after) {
            (None, Some(after)) => format!("remembered: {}", clip(&after.text, SHOWN_MAX)),
            (Some(before), Some(after)) => {
                format!(
                    "{} (was: {})",
                    clip(&after.text, SHOWN_MAX),
                    clip(&before.text, SHOWN_MAX)
                )
            }
            (before, None) => {
                format!(
                    "forgotten: {}",
                    before
                        .as_ref()
                        .map(|line| clip(&line.text, SHOWN_MAX))
                        .unwrap_or_default()
                )
            }
        };
        let at = local(change.at);
        let who = match &change.source {
            Some(source) => {
                format!(
                    "conversation {}, turn {} (adjutant log show {})",
                    source.conversation, source.turn, source.turn
                )
            }
            None => "by you".to_owned(),
        };
        lines.push(format!("  {at}  {what}"));
        lines.push(format!("  {:26}  {who}", ""));
    }
    lines
}
