//! The user's own operations on facts and notes, from commands and from a conversation.

use std::path::PathBuf;
use std::sync::Arc;

use adjutant_core::turn::estimate_tokens;
use adjutant_core::{MemoryEffect, UserId};
use adjutant_memory::{
    Cause, FactChange, FactProvenance, KeyFact, Memory, MemoryError, NewFact, RecallLimits,
    RecalledFact, UndoneChange, Vault,
};

use super::database_memory::in_database;
use super::undo::{ON_PAGE, with_undo};
use super::vaults::OwnVault;
use crate::clock;
use crate::config::{RunBounds, Settings};
use crate::error::CliError;
use crate::store::{self, Store};
use crate::terminal::display::{clip, local, plural};

/// Characters of one fact in a list at most.
const SHOWN_MAX: usize = 500;

/// The memory of one user: their vault, or facts in the database. Cheap to clone.
#[derive(Clone)]
pub(crate) struct UserMemory {
    memory: Option<Memory>,
    /// The person whose memory it is.
    owner: UserId,
    /// True if the instruction files of the local user are the owner's.
    has_files: bool,
    /// True with `--temp`: nothing may be written.
    temp: bool,
    /// True if `/undo` can be typed.
    in_chat: bool,
    /// The user's name in notes of conversations, if such notes are written.
    logs_as: Option<String>,
}

impl UserMemory {
    /// Opens the local user's memory: the vault in the settings, or without one the facts in the
    /// database, unless the settings turn them off.
    ///
    /// # Errors
    /// The vault does not exist or cannot be read, or `memory.path` leads out of it.
    pub(crate) async fn open(settings: &Settings, store: Arc<dyn Store>) -> Result<Self, CliError> {
        Self::open_for(settings, store, UserId::local(), true).await
    }

    /// Opens a user's own vault, with the settings of [`OwnVault::settings`].
    ///
    /// # Errors
    /// Those of [`UserMemory::open`].
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
            None => in_database(settings, &store).map(|memory| memory.for_user(&owner)),
            Some(path) => Some(open(settings, path.clone(), owner.clone(), store).await?),
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

    /// Returns the library's memory, for reading; `None` without a vault if no facts are kept in the
    /// database.
    pub(crate) fn memory(&self) -> Option<&Memory> {
        self.memory.as_ref()
    }

    /// Returns the vault, if there is one.
    pub(crate) fn vault(&self) -> Option<&Vault> {
        self.memory.as_ref().and_then(Memory::vault)
    }

    /// Returns the user whose memory it is.
    pub(crate) fn owner(&self) -> &UserId {
        &self.owner
    }

    /// Returns true if the instruction files of the local user are the owner's.
    pub(crate) fn has_files(&self) -> bool {
        self.has_files
    }

    /// Returns the user's name in notes of conversations, if these are written.
    pub(super) fn logs_as(&self) -> Option<&str> {
        self.logs_as.as_deref()
    }

    /// Returns the command that undoes the last change.
    pub(crate) fn undo_command(&self) -> &'static str {
        match (self.in_chat, self.owner == UserId::local()) {
            (true, _) => "/undo",
            (false, true) => "adjutant memory undo",
            // A user of the service has no terminal on this machine.
            (false, false) => ON_PAGE,
        }
    }

    /// Describes vault and memory for the first line of a conversation: `vault Notes · memory 12
    /// facts`, or `no vault (adjutant init) · memory 12 facts`.
    pub(crate) async fn headline(&self) -> Vec<String> {
        const NO_VAULT: &str = "no vault (adjutant init)";
        let Some(memory) = &self.memory else {
            return vec![NO_VAULT.to_owned()];
        };
        let facts = match memory.facts().list().await.as_deref() {
            Ok([_]) => "1 fact".to_owned(),
            Ok(facts) => plural(facts.len() as u64, "fact", "facts"),
            // The full error is printed with the first answer.
            Err(_) => "cannot be read".to_owned(),
        };
        let vault = memory.vault().map(Vault::name);
        let vault = vault.map(|name| format!("vault {}", clip(&name, 60)));
        let mut parts = vec![
            vault.unwrap_or_else(|| NO_VAULT.to_owned()),
            format!("memory {facts}"),
        ];
        if self.temp {
            parts.push("temporary: nothing is kept".to_owned());
        }
        parts
    }

    /// Returns all facts, in the order of the file.
    pub(crate) async fn list(&self) -> Result<Vec<KeyFact>, CliError> {
        Ok(self.reading()?.facts().list().await?)
    }

    /// Returns the facts that match the words, best first.
    pub(crate) async fn search(&self, words: &str) -> Result<Vec<KeyFact>, CliError> {
        Ok(self.reading()?.facts().search(words).await?)
    }

    /// Returns the facts that automatic recall would attach to a message at the beginning of a
    /// conversation, best first.
    pub(crate) async fn recalled_for(&self, message: &str) -> Result<Vec<RecalledFact>, CliError> {
        let facts = self.reading()?.facts();
        Ok(facts
            .relevant_to(message, &[], RecallLimits::default(), &estimate_tokens)
            .await?)
    }

    /// Stores a fact. `#important` in its text makes it important.
    pub(crate) async fn remember(&self, new: &NewFact<'_>) -> Result<FactChange, CliError> {
        Ok(self
            .writing()?
            .facts()
            .remember(new, &Cause::person())
            .await?)
    }

    /// Returns the known fact that contradicts this text, unless the text says that it is a
    /// correction.
    pub(crate) async fn contradicted(&self, words: &str) -> Result<Option<KeyFact>, CliError> {
        Ok(self
            .writing()?
            .facts()
            .contradicted_by(words, words)
            .await?)
    }

    /// Changes the text or importance of a fact.
    pub(crate) async fn edit(
        &self,
        which: &str,
        words: Option<&str>,
        important: Option<bool>,
    ) -> Result<FactChange, CliError> {
        // A temporary conversation is refused before the fact is searched.
        let facts = self.writing()?.facts();
        let which = self.find(which).await?;
        Ok(facts
            .edit(&which.content, words, important, &Cause::person())
            .await?)
    }

    /// Deletes a fact.
    pub(crate) async fn forget(&self, which: &str) -> Result<FactChange, CliError> {
        let facts = self.writing()?.facts();
        let which = self.find(which).await?;
        Ok(facts.forget(&which.content, &Cause::person()).await?)
    }

    /// Returns the source and history of a fact.
    pub(crate) async fn why(&self, which: &str) -> Result<FactProvenance, CliError> {
        let facts = self.reading()?.facts();
        let which = self.find(which).await?;
        Ok(facts.provenance(&which.content).await?)
    }

    /// Undoes the newest change of a fact or a note.
    pub(crate) async fn undo(&self) -> Result<UndoneChange, CliError> {
        Ok(self.writing()?.undo().await?)
    }

    /// Returns the fact identified by its text, a part of that, or a part of its id.
    pub(crate) async fn find(&self, which: &str) -> Result<KeyFact, CliError> {
        let facts = self.reading()?.facts();
        let error = match facts.find(which).await {
            Ok(fact) => return Ok(fact),
            Err(error @ MemoryError::NoSuchFact { .. }) => error,
            Err(error) => return Err(error.into()),
        };
        // Only if no text fits: words of a fact that look like an id are more likely words.
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

    /// Returns all facts that may be meant: those that contain the words, or the one with the id.
    pub(crate) async fn find_all(&self, which: &str) -> Result<Vec<KeyFact>, CliError> {
        let (one, words) = (self.find(which).await, which.trim().to_lowercase());
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

    /// Describes a change, with the command that undoes it.
    pub(crate) fn describe_change(&self, change: &FactChange) -> String {
        with_undo(&change.message(), self.undo_command())
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
    owner: UserId,
    store: Arc<dyn Store>,
) -> Result<Memory, CliError> {
    let work = settings.dirs.data.join("vault");
    // A sleeping disk or an unreachable share must not block the async runtime.
    let vault = tokio::task::spawn_blocking(move || Vault::open(path)).await;
    let vault = vault
        .map_err(|error| CliError::failed(error.to_string()))??
        .with_work_folder(work)
        .with_excluded(settings.memory.exclude.clone());
    let clock = Arc::new(clock::zoned);
    let memory = Memory::new(
        vault,
        owner,
        settings.memory.options(),
        store.clone(),
        clock,
    );
    memory.map(|memory| memory.with_conversations(store, store::agent_name())).map_err(|error| {
        CliError::configuration("memory.path cannot be used")
            .because(error.to_string())
            .or_try("a path inside the vault, such as memory/facts.md (adjutant config show --origin)")
    })
}

pub(crate) fn no_vault() -> CliError {
    CliError::configuration(
        "there is no vault, and memory.database is false: nothing is remembered",
    )
    .or_try("adjutant config unset memory.database    keeps facts in the database")
    .or_try("adjutant init    finds vaults, and asks which")
    .or_try("adjutant config set vault.path DIR, or --vault DIR    any folder will do")
}

/// Formats a fact on one line: id, date or star, text.
pub(crate) fn line(fact: &KeyFact) -> String {
    let mark = match (fact.is_important(), fact.created) {
        (true, _) => "important".to_owned(),
        (false, Some(date)) => date.to_string(),
        (false, None) => String::new(),
    };
    format!("{}  {mark:10}  {}", fact.id, clip(&fact.content, SHOWN_MAX))
}

/// Formats source and history of a fact.
pub(crate) fn why_lines(why: &FactProvenance) -> Vec<String> {
    let mut lines = vec![line(&why.fact)];
    if why.history.is_empty() {
        let unknown = "  nothing is known of it: it was written by hand, or its history was lost";
        lines.push(unknown.to_owned());
    }
    for change in &why.history {
        let MemoryEffect::Fact { before, after } = &change.effect else {
            continue;
        };
        let what = match (before, after) {
            (None, Some(after)) => format!("remembered: {}", clip(&after.text, SHOWN_MAX)),
            (Some(before), Some(after)) => format!(
                "{} (was: {})",
                clip(&after.text, SHOWN_MAX),
                clip(&before.text, SHOWN_MAX)
            ),
            (before, None) => {
                let text = before.as_ref().map(|line| clip(&line.text, SHOWN_MAX));
                format!("forgotten: {}", text.unwrap_or_default())
            }
        };
        let at = local(change.at);
        let who = match &change.source {
            Some(source) => format!(
                "conversation {}, turn {1} (adjutant log show {1})",
                source.conversation, source.turn
            ),
            None => "by you".to_owned(),
        };
        lines.push(format!("  {at}  {what}"));
        lines.push(format!("  {:26}  {who}", ""));
    }
    lines
}
