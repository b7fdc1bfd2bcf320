//! Notes and daily notes of a vault: written, added to, read, searched and listed.

use std::sync::Arc;

use adjutant_core::{ConversationId, MemoryChange, MemoryEffect, UserId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::context::Cause;
use crate::daily::{self, Entry, EntryPlace, place_entry};
use crate::text::{insertion, splice, without_controls};
use crate::vault::markdown::{BlockKind, Outline, ends_open, line_ending};
use crate::vault::path::case_folded;
use crate::vault::{NoteFilter, NoteList, NotePath, NoteSearchResults, NoteText, StoredText};
use crate::vault_memory::{PlannedWrite, PriorAttempt, VaultMemory, blocking};
use crate::{MemoryError, VaultError};

/// Bound of the text of one note that a single read returns, in Unicode characters.
pub const READ_CHARS_MAX: usize = 20_000;
/// Bound of the text that a single write adds to a note, in Unicode characters.
pub const WRITE_CHARS_MAX: usize = 100_000;

/// The notes of a vault. Files are read again at every operation; text that stands in a note is
/// never changed, only added to. Returned by [`Memory::notes`](crate::Memory::notes).
///
/// # Examples
///
/// ```
/// # use std::sync::Arc;
/// # use adjutant_core::UserId;
/// use adjutant_memory::{Cause, NoteFilter};
/// # use adjutant_memory::{InMemoryLedger, Memory, MemoryOptions, Vault};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let (vault, options) = (Vault::open(folder.path())?, MemoryOptions::default());
/// # let (ledger, clock) = (Arc::new(InMemoryLedger::new()), Arc::new(jiff::Zoned::now));
/// # let memory = Memory::new(vault, UserId::local(), options, ledger, clock)?;
/// let notes = memory.notes().ok_or("the memory has a vault")?;
/// let written = notes
///     .write("Garden/Roses", "Cut them in March.", false, &Cause::person())
///     .await?;
/// assert_eq!((written.file_path.as_str(), written.created), ("Garden/Roses.md", true));
/// let filter = NoteFilter { limit: 5, ..NoteFilter::default() };
/// let found = notes.search("cutting roses", &filter).await?;
/// assert_eq!(found.notes[0].lines, [(1, "Cut them in March.".to_owned())]);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Notes(pub(crate) Arc<VaultMemory>);

/// The result of a write into a note or a daily note.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteChange {
    /// The path of the note, relative to the vault.
    pub file_path: String,
    /// True if the note is new.
    pub created: bool,
    /// True if the entry stood in the note already; then nothing was changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub already: bool,
    /// The entry as it stands in the daily note; none for another note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Remarks for the user, such as a template that is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

impl NoteChange {
    /// Returns the change as a message for the user, with the command that undoes it.
    #[must_use]
    pub fn message(&self) -> String {
        let path = &self.file_path;
        let mut message = match (&self.entry, self.already, self.created) {
            (_, true, _) => format!("Already in {path}; nothing was changed."),
            (Some(entry), false, _) => {
                let entry = entry
                    .trim_start_matches("- ")
                    .lines()
                    .next()
                    .unwrap_or_default();
                format!("✎ noted in {path}: {entry}  (undo: /undo)")
            }
            (None, false, true) => format!("✎ wrote the note {path}  (undo: /undo)"),
            (None, false, false) => format!("✎ added to {path}  (undo: /undo)"),
        };
        for notice in &self.notices {
            message.push(' ');
            message.push_str(notice);
        }
        message
    }
}

impl Notes {
    /// Returns the notes for their owner.
    ///
    /// # Errors
    /// [`MemoryError::NotYours`] for every other user.
    pub(crate) fn for_owner(&self, user: &UserId) -> Result<&Self, MemoryError> {
        if *user == self.0.context.scope.user {
            Ok(self)
        } else {
            Err(MemoryError::NotYours)
        }
    }

    /// Adds an entry to today's daily note, under its heading, and creates the note from its
    /// template if it does not exist.
    ///
    /// # Errors
    /// [`MemoryError::Fact`] for an entry without text or with too much; [`VaultError::Shape`] if
    /// the note would hide the entry; and any error of the file: nothing is changed then.
    pub async fn write_daily(
        &self,
        activity: &str,
        title: Option<&str>,
        cause: &Cause,
    ) -> Result<NoteChange, MemoryError> {
        let memory = &self.0;
        let unfinished = match self.prior_attempt(cause).await? {
            PriorAttempt::Answered(change) => return Ok(change),
            PriorAttempt::Open(change) => change,
        };
        let now = (memory.context.clock)();
        // A repeat after a crash writes what the first attempt wrote, on the day of that attempt.
        let time = unfinished.as_ref().map_or_else(
            || now.clone(),
            |change| change.at.to_zoned(now.time_zone().clone()),
        );
        let entry = Entry::new(activity, title, &time)?;
        let (vault, options, at) = (memory.vault.clone(), memory.options.clone(), time.clone());
        let (path, template, notices) = blocking(move || {
            let daily = vault.daily_notes(&options.daily, options.locale, &at);
            let path = vault.settle(&daily.path(&at)?)?;
            let mut notices = daily.notices;
            let mut template = String::new();
            if let Some(name) = &daily.settings.template
                && !vault.locate(&path)?.exists
            {
                let found = NotePath::from_owner(name).and_then(|name| vault.read_stored(&name));
                match found.ok().flatten() {
                    Some(stored) => {
                        template = daily::render(&vault, stored.as_str(), path.title(), &at, daily.locale);
                        if daily::has_code(&template) {
                            notices.push(format!(
                                "The template {name:?} has code of Templater (<% %>), which was not run and stands in the note."
                            ));
                        }
                    }
                    // A template that is missing is no reason to lose the entry.
                    None => notices.push(format!("The template {name:?} cannot be read and was left out.")),
                }
            }
            Ok((path, template, notices))
        })
        .await?;
        self.refuse_facts_file(&path)?;
        memory
            .change(&path, cause, unfinished.as_deref(), |text| {
                if let Some(answer) = finished_answer(unfinished.as_deref(), text) {
                    return Ok(PlannedWrite::Nothing(answer));
                }
                let change = |already: bool| NoteChange {
                    file_path: path.to_string(),
                    created: text.is_none() && !already,
                    already,
                    entry: Some(entry.as_str().to_owned()),
                    notices: notices.clone(),
                };
                let base = text.unwrap_or(&template);
                let heading = &memory.options.heading;
                Ok(match place_entry(path.as_str(), base, heading, &entry)? {
                    EntryPlace::Present => PlannedWrite::Nothing(change(true)),
                    EntryPlace::At(at, inserted) => {
                        let new = splice(base, at..at, &inserted);
                        plan_write(text, new, inserted, change(false))
                    }
                })
            })
            .await
    }

    /// Writes a new note, or adds to the end of one that exists if `append` is true. Existing text
    /// is never overwritten.
    ///
    /// # Errors
    /// [`VaultError::Exists`] for a note that exists without `append`; [`VaultError::Name`] for a
    /// name that no note can have, and for the file of the facts; else as [`Notes::write_daily`].
    pub async fn write(
        &self,
        name: &str,
        content: &str,
        append: bool,
        cause: &Cause,
    ) -> Result<NoteChange, MemoryError> {
        let memory = &self.0;
        let unfinished = match self.prior_attempt(cause).await? {
            PriorAttempt::Answered(change) => return Ok(change),
            PriorAttempt::Open(change) => change,
        };
        let content = without_controls(content);
        let content = content.trim_matches('\n');
        if content.trim().is_empty() {
            return Err(MemoryError::fact("a note needs text"));
        }
        let chars = content.chars().count();
        if chars > WRITE_CHARS_MAX {
            return Err(MemoryError::fact(format!(
                "at most {WRITE_CHARS_MAX} characters are written at once, these are {chars}"
            )));
        }
        let (vault, name) = (memory.vault.clone(), name.to_owned());
        let path = blocking(move || {
            let path = match append {
                true => vault.resolve_or_new(&name)?,
                false => vault.settle(&NotePath::for_new(&name)?)?,
            };
            // Else a write would tell if there is such a note.
            vault.check_visible(&path)?;
            Ok(path)
        })
        .await?;
        self.refuse_facts_file(&path)?;
        memory
            .change(&path, cause, unfinished.as_deref(), |text| {
                if let Some(answer) = finished_answer(unfinished.as_deref(), text) {
                    return Ok(PlannedWrite::Nothing(answer));
                }
                let change = NoteChange {
                    file_path: path.to_string(),
                    created: text.is_none(),
                    ..NoteChange::default()
                };
                let Some(old) = text else {
                    let new = format!("{content}\n");
                    return Ok(plan_write(None, new.clone(), new, change));
                };
                let name = path.to_string();
                // Another program may have created the note since its name was checked, so this is
                // checked on the text that is replaced.
                if !append {
                    return Err(VaultError::Exists { name }.into());
                }
                // What follows an open code block or comment would be a part of it.
                if ends_open(old) {
                    let reason = "it ends in a code block or a comment that is not closed";
                    return Err(VaultError::shape(name, reason).into());
                }
                let block = content.replace('\n', line_ending(old));
                let inserted = insertion(old, old.len(), &block);
                let new = format!("{old}{inserted}");
                Ok(plan_write(text, new, inserted, change))
            })
            .await
    }

    /// Reads a note, or the section under a heading for `[[Note#Heading]]`, from a line on; at most
    /// [`READ_CHARS_MAX`].
    ///
    /// # Errors
    /// As [`Vault::resolve`](crate::Vault::resolve); [`VaultError::NotText`],
    /// [`VaultError::TooLarge`].
    pub async fn read(
        &self,
        name: &str,
        from_line: Option<usize>,
    ) -> Result<NoteText, MemoryError> {
        let (vault, name) = (self.0.vault.clone(), name.to_owned());
        let heading = linked_heading(&name).map(str::to_owned);
        let (path, stored) = blocking(move || {
            let path = vault.resolve(&name)?;
            let stored = vault.read_stored(&path)?;
            let missing = VaultError::no_such_note(path.as_str());
            Ok((path, stored.ok_or(missing)?))
        })
        .await?;
        Ok(read_section(
            &path,
            &stored,
            heading.as_deref(),
            from_line.unwrap_or(1),
        )?)
    }

    /// Returns the notes that match a query best; see [`Vault::search`](crate::Vault::search).
    ///
    /// # Errors
    /// As [`Vault::search`](crate::Vault::search).
    pub async fn search(
        &self,
        query: &str,
        filter: &NoteFilter,
    ) -> Result<NoteSearchResults, MemoryError> {
        let (vault, query, filter) = (self.0.vault.clone(), query.to_owned(), filter.clone());
        blocking(move || vault.search(&query, &filter)).await
    }

    /// Returns the notes of a folder or with a tag; see [`Vault::list`](crate::Vault::list).
    ///
    /// # Errors
    /// As [`Vault::list`](crate::Vault::list).
    pub async fn list(&self, filter: &NoteFilter) -> Result<NoteList, MemoryError> {
        let (vault, filter) = (self.0.vault.clone(), filter.clone());
        blocking(move || vault.list(&filter)).await
    }

    /// Returns the paths of the notes that are attached in a conversation.
    pub(crate) fn attached(&self, conversation: ConversationId) -> Vec<String> {
        self.0.attached(conversation)
    }

    /// Returns the addresses at which Obsidian opens the notes of links; see
    /// [`Vault::obsidian_addresses`](crate::Vault::obsidian_addresses).
    ///
    /// # Errors
    /// As [`Vault::obsidian_addresses`](crate::Vault::obsidian_addresses).
    pub async fn addresses(&self, links: Vec<String>) -> Result<Vec<Option<String>>, MemoryError> {
        let vault = self.0.vault.clone();
        blocking(move || vault.obsidian_addresses(&links)).await
    }

    fn refuse_facts_file(&self, path: &NotePath) -> Result<(), VaultError> {
        let reason = "the facts are kept there; use remember for a fact";
        self.0.refuse_facts_file(path, reason)
    }

    async fn prior_attempt(&self, cause: &Cause) -> Result<PriorAttempt<NoteChange>, MemoryError> {
        self.0.context.prior_attempt(cause, recorded_answer).await
    }
}

fn recorded_answer(effect: &MemoryEffect) -> Option<&Value> {
    match effect {
        MemoryEffect::Note { answer, .. } => Some(answer),
        MemoryEffect::Fact { .. } | MemoryEffect::Task { .. } => None,
    }
}

fn plan_write(
    old: Option<&str>,
    new: String,
    inserted: String,
    change: NoteChange,
) -> PlannedWrite<NoteChange> {
    let created = old.is_none();
    let inserted = if created { new.clone() } else { inserted };
    let effect = MemoryEffect::Note {
        path: change.file_path.clone(),
        found_before: old.map_or(0, |old| occurrences(old, &inserted)),
        inserted,
        created,
        answer: json!(change),
    };
    PlannedWrite::Write {
        text: new,
        effect: Box::new(effect),
        answer: change,
    }
}

/// Returns the answer of an attempt that crashed after it wrote the file: its text stands in the
/// note once more than before.
fn finished_answer(unfinished: Option<&MemoryChange>, text: Option<&str>) -> Option<NoteChange> {
    let MemoryEffect::Note {
        inserted,
        found_before,
        answer,
        ..
    } = &unfinished?.effect
    else {
        return None;
    };
    if occurrences(text?, inserted) <= *found_before {
        return None;
    }
    serde_json::from_value(answer.clone()).ok()
}

/// Counts an inserted text in a note, without the blank lines around it: these may have been edited
/// since.
fn occurrences(text: &str, inserted: &str) -> usize {
    text.matches(inserted.trim()).count()
}

/// Returns the heading that a wiki link names.
fn linked_heading(name: &str) -> Option<&str> {
    let inner = name
        .trim()
        .trim_start_matches('!')
        .strip_prefix("[[")?
        .strip_suffix("]]")?;
    let inner = inner.split('|').next()?;
    // Obsidian gives a deeper heading after all those above it: `Note#Chapter#Section`.
    inner
        .rsplit_once('#')
        .map(|(_, heading)| heading.trim())
        .filter(|heading| !heading.is_empty())
}

fn read_section(
    path: &NotePath,
    stored: &StoredText,
    heading: Option<&str>,
    from_line: usize,
) -> Result<NoteText, VaultError> {
    let text = stored.as_str().trim_start_matches('\u{FEFF}');
    let all: Vec<&str> = text.lines().collect();
    let (mut first, mut last) = (1, all.len());
    if let Some(heading) = heading {
        let outline = Outline::parse(text);
        let at = outline.blocks.iter().position(
            |block| matches!(&block.kind, BlockKind::Heading { title, .. } if case_folded(title) == case_folded(heading)),
        );
        let Some(at) = at else {
            return Err(VaultError::no_such_note(format!("{path}#{heading}")));
        };
        let line_of = |byte: usize| text.get(..byte).unwrap_or_default().matches('\n').count() + 1;
        first = outline
            .blocks
            .get(at)
            .map_or(1, |block| line_of(block.range.start));
        let end = outline.section(at).last().unwrap_or(at);
        last = outline
            .blocks
            .get(end)
            .map_or(last, |block| line_of(block.range.end.saturating_sub(1)));
    }
    first = first.max(from_line);
    let mut given = String::new();
    let mut chars = 0;
    let mut shown = first.saturating_sub(1);
    let mut cut = None;
    for line in all.iter().take(last).skip(first.saturating_sub(1)) {
        let length = line.chars().count() + 1;
        if chars + length > READ_CHARS_MAX {
            let mut line_cut = String::new();
            if chars == 0 {
                // One line alone is too long: its beginning is better than nothing.
                given.extend(line.chars().take(READ_CHARS_MAX));
                shown += 1;
                line_cut = format!("line {shown} is cut at {READ_CHARS_MAX} characters, and ");
            }
            cut = Some(format!(
                "{line_cut}{} more lines follow; read on with from_line {}",
                last - shown,
                shown + 1
            ));
            break;
        }
        given.push_str(line);
        given.push('\n');
        chars += length;
        shown += 1;
    }
    Ok(NoteText {
        path: path.to_string(),
        text: given,
        first_line: first,
        last_line: shown,
        lines: all.len(),
        cut,
    })
}
