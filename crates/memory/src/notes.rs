//! The operations on notes.

use std::sync::Arc;

use adjutant_core::{ConversationId, MemoryChange, MemoryEffect, MemoryState, UserId};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::daily::{self, Entry, Placed, place};
use crate::key_fact::document::{insertion, splice};
use crate::memory::{Cause, Planned, Shared, blocking};
use crate::vault::markdown::{BlockKind, Outline, ends_open, line_ending};
use crate::vault::path::folded;
use crate::vault::{Filter, Found, Listed, NotePath, NoteText, Stored};
use crate::{MemoryError, VaultError};

/// Unicode characters of one note that are given at once.
pub const READ_CHARS_MAX: usize = 20_000;
/// Unicode characters that are written into a note at once.
pub const WRITE_CHARS_MAX: usize = 100_000;

/// The notes of a vault. Files are read fresh at every operation; text that stands in a note is
/// never changed, only added to.
#[derive(Clone)]
pub struct Notes(pub(crate) Arc<Shared>);

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The note, relative to the vault.
    pub file_path: String,
    /// The note is new.
    pub created: bool,
    /// It stood there already; nothing was changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub already: bool,
    /// The entry of a daily note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// What the person should know, such as a template that is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

impl Written {
    /// What was done, in words for the person, with the way back.
    #[must_use]
    pub fn words(&self) -> String {
        let path = &self.file_path;
        let mut words = match (&self.entry, self.already, self.created) {
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
            words.push(' ');
            words.push_str(notice);
        }
        words
    }
}

/// Text without control characters, lines divided by `\n`.
pub(crate) fn visible(text: &str) -> String {
    text.replace("\r\n", "\n")
        .chars()
        .map(|char| if char == '\r' { '\n' } else { char })
        .filter(|char| !char.is_control() || matches!(char, '\n' | '\t'))
        .collect()
}

impl Notes {
    /// Refuses everybody but the owner.
    pub(crate) fn of(&self, user: &UserId) -> Result<&Self, MemoryError> {
        if *user == self.0.common.scope.user {
            Ok(self)
        } else {
            Err(MemoryError::NotYours)
        }
    }

    /// Adds an entry to today's daily note, under its heading, and makes the note from its template
    /// if there is none.
    ///
    /// # Errors
    /// [`MemoryError::Fact`] for no or too many words; [`VaultError::Shape`] if the entry would
    /// disappear in the note; and whatever keeps the file from being written: nothing is changed
    /// then.
    pub async fn write_daily(
        &self,
        activity: &str,
        title: Option<&str>,
        cause: &Cause,
    ) -> Result<Written, MemoryError> {
        let shared = &self.0;
        let begun = match self.earlier(cause).await? {
            Earlier::Answered(written) => return Ok(written),
            Earlier::Begun(change) => Some(*change),
            Earlier::None => None,
        };
        let now = (shared.common.clock)();
        // A repeat after a crash writes what the call wrote, on the day it was made.
        let time = begun.as_ref().map_or_else(
            || now.clone(),
            |change| change.at.to_zoned(now.time_zone().clone()),
        );
        let entry = Entry::new(activity, title, &time)?;
        let (vault, options, at) = (shared.vault.clone(), shared.options.clone(), time.clone());
        let (path, template, notices) = blocking(move || {
            let daily = vault.daily_notes(&options.daily, options.locale, &at);
            let path = vault.settle(&daily.path(&at)?)?;
            let mut notices = daily.notices;
            let mut template = String::new();
            if let Some(name) = &daily.settings.template
                && !vault.locate(&path)?.exists
            {
                let found = NotePath::of_owner(name).and_then(|name| vault.read_stored(&name));
                match found.ok().flatten() {
                    Some(stored) => {
                        template = daily::render(&vault, stored.text(), path.title(), &at, daily.locale);
                        if daily::has_code(&template) {
                            notices.push(format!(
                                "The template {name:?} has code of Templater (<% %>), which was not run and stands in the note."
                            ));
                        }
                    }
                    None => notices.push(format!("The template {name:?} cannot be read and was left out.")),
                }
            }
            Ok((path, template, notices))
        })
        .await?;
        self.guard(&path)?;
        shared
            .change(&path, cause, begun.as_ref(), |text| {
                let written = |already: bool| Written {
                    file_path: path.to_string(),
                    created: text.is_none() && !already,
                    already,
                    entry: Some(entry.as_str().to_owned()),
                    notices: notices.clone(),
                };
                if let Some(answer) = begun.as_ref().and_then(|change| done_before(change, text)) {
                    return Ok(Planned::Nothing(answer));
                }
                let base = text.unwrap_or(&template);
                Ok(
                    match place(path.as_str(), base, &shared.options.heading, &entry)? {
                        Placed::Already => Planned::Nothing(written(true)),
                        Placed::At(at, inserted) => planned(
                            &path,
                            text,
                            splice(base, at..at, &inserted),
                            inserted,
                            written(false),
                        ),
                    },
                )
            })
            .await
    }

    /// Writes a new note, or adds to the end of one that exists if `append`. Nothing that stands in
    /// a note is overwritten.
    ///
    /// # Errors
    /// [`VaultError::Exists`] for a note that exists without `append`; [`VaultError::Name`] for a
    /// name that cannot be one, and for the file of the facts; else as [`Notes::write_daily`].
    pub async fn write(
        &self,
        name: &str,
        content: &str,
        append: bool,
        cause: &Cause,
    ) -> Result<Written, MemoryError> {
        let shared = &self.0;
        let begun = match self.earlier(cause).await? {
            Earlier::Answered(written) => return Ok(written),
            Earlier::Begun(change) => Some(*change),
            Earlier::None => None,
        };
        let content = visible(content);
        let content = content.trim_matches('\n');
        if content.trim().is_empty() {
            return Err(MemoryError::Fact {
                reason: "a note needs text".to_owned(),
            });
        }
        let chars = content.chars().count();
        if chars > WRITE_CHARS_MAX {
            let reason = format!(
                "at most {WRITE_CHARS_MAX} characters are written at once, these are {chars}"
            );
            return Err(MemoryError::Fact { reason });
        }
        let (vault, name) = (shared.vault.clone(), name.to_owned());
        let path = blocking(move || {
            let known = if append {
                vault.resolve(&name)
            } else {
                NotePath::for_new(&name)
            };
            match known {
                Ok(path) => vault.settle(&path),
                Err(VaultError::NoSuchNote { .. }) => vault.settle(&NotePath::for_new(&name)?),
                Err(error) => Err(error),
            }
        })
        .await?;
        self.guard(&path)?;
        shared
            .change(&path, cause, begun.as_ref(), |text| {
                if let Some(answer) = begun.as_ref().and_then(|change| done_before(change, text)) {
                    return Ok(Planned::Nothing(answer));
                }
                let written = Written {
                    file_path: path.to_string(),
                    created: text.is_none(),
                    already: false,
                    entry: None,
                    notices: Vec::new(),
                };
                let Some(old) = text else {
                    let new = format!("{content}\n");
                    return Ok(planned(&path, None, new.clone(), new, written));
                };
                if !append {
                    return Err(VaultError::Exists {
                        name: path.to_string(),
                    }
                    .into());
                }
                let block = content.replace('\n', line_ending(old));
                let inserted = insertion(old, old.len(), &block);
                let new = format!("{old}{inserted}");
                check_open(&path, old)?;
                Ok(planned(&path, text, new, inserted, written))
            })
            .await
    }

    /// Reads a note, or the part under a heading for `[[Note#Heading]]`, from a line on; at most
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
        let heading = heading_of(&name).map(str::to_owned);
        let (path, stored) = blocking(move || {
            let path = vault.resolve(&name)?;
            let stored = vault.read_stored(&path)?;
            let missing = VaultError::NoSuchNote {
                name: path.to_string(),
                nearest: Vec::new(),
            };
            Ok((path, stored.ok_or(missing)?))
        })
        .await?;
        part_of(&path, &stored, heading.as_deref(), from_line.unwrap_or(1))
            .map_err(MemoryError::from)
    }

    /// The notes that hold the words; see [`Vault::search`](crate::Vault::search).
    ///
    /// # Errors
    /// As there.
    pub async fn search(&self, query: &str, filter: &Filter) -> Result<Found, MemoryError> {
        let (vault, query, filter) = (self.0.vault.clone(), query.to_owned(), filter.clone());
        blocking(move || vault.search(&query, &filter)).await
    }

    /// The notes of a folder or with a tag; see [`Vault::list`](crate::Vault::list).
    ///
    /// # Errors
    /// As there.
    pub async fn list(&self, filter: &Filter) -> Result<Listed, MemoryError> {
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
    /// As there.
    pub async fn addresses(&self, links: Vec<String>) -> Result<Vec<Option<String>>, MemoryError> {
        let vault = self.0.vault.clone();
        blocking(move || vault.obsidian_addresses(&links)).await
    }

    /// The file of the facts has a form of its own.
    fn guard(&self, path: &NotePath) -> Result<(), MemoryError> {
        let facts = &self.0.facts;
        let same_name = folded(path.as_str()) == folded(facts.as_str());
        let same_file = || match (self.0.vault.locate(path), self.0.vault.locate(facts)) {
            (Ok(one), Ok(other)) => one.exists && other.exists && one.real == other.real,
            _ => false,
        };
        if same_name || same_file() {
            let reason = "the facts are kept there; use remember for a fact";
            return Err(VaultError::Name {
                name: path.to_string(),
                reason,
            }
            .into());
        }
        Ok(())
    }

    /// What the history knows of this call.
    async fn earlier(&self, cause: &Cause) -> Result<Earlier, MemoryError> {
        let Some(key) = &cause.key else {
            return Ok(Earlier::None);
        };
        let Some(change) = self
            .0
            .common
            .ledger
            .by_key(&self.0.common.scope, key)
            .await?
        else {
            return Ok(Earlier::None);
        };
        let MemoryEffect::Note { answer, .. } = &change.effect else {
            return Ok(Earlier::None);
        };
        Ok(match change.state {
            MemoryState::Done | MemoryState::Undone => match serde_json::from_value(answer.clone())
            {
                Ok(written) => Earlier::Answered(written),
                Err(_) => Earlier::None,
            },
            MemoryState::Begun => Earlier::Begun(Box::new(change)),
            MemoryState::Void => Earlier::None,
        })
    }
}

enum Earlier {
    None,
    Begun(Box<MemoryChange>),
    Answered(Written),
}

fn planned(
    path: &NotePath,
    old: Option<&str>,
    new: String,
    inserted: String,
    written: Written,
) -> Planned<Written> {
    let created = old.is_none();
    let inserted = if created { new.clone() } else { inserted };
    let effect = MemoryEffect::Note {
        path: path.to_string(),
        found_before: old.map_or(0, |old| count(old, &inserted)),
        inserted,
        created,
        answer: json!(written),
    };
    Planned::Write {
        text: new,
        effect: Box::new(effect),
        answer: written,
    }
}

/// The answer of a call that was begun before a crash, if its text stands in the note once more
/// than before.
fn done_before(change: &MemoryChange, text: Option<&str>) -> Option<Written> {
    let MemoryEffect::Note {
        inserted,
        found_before,
        answer,
        ..
    } = &change.effect
    else {
        return None;
    };
    if count(text?, inserted) <= *found_before {
        return None;
    }
    serde_json::from_value(answer.clone()).ok()
}

/// How often the words stand there; blank lines around them may have been changed by hand.
fn count(text: &str, inserted: &str) -> usize {
    text.matches(inserted.trim()).count()
}

/// # Errors
/// [`VaultError::Shape`] if what comes after the text would be code or a comment.
fn check_open(path: &NotePath, text: &str) -> Result<(), VaultError> {
    if !ends_open(text) {
        return Ok(());
    }
    let reason = "it ends in a code block or a comment that is not closed".to_owned();
    Err(VaultError::Shape {
        name: path.to_string(),
        reason,
    })
}

fn heading_of(name: &str) -> Option<&str> {
    let inner = name
        .trim()
        .trim_start_matches('!')
        .strip_prefix("[[")?
        .strip_suffix("]]")?;
    let inner = inner.split('|').next()?;
    // A deeper heading is given after all those above it.
    inner
        .rsplit_once('#')
        .map(|(_, heading)| heading.trim())
        .filter(|heading| !heading.is_empty())
}

fn part_of(
    path: &NotePath,
    stored: &Stored,
    heading: Option<&str>,
    from_line: usize,
) -> Result<NoteText, VaultError> {
    let text = stored.text().trim_start_matches('\u{FEFF}');
    let all: Vec<&str> = text.lines().collect();
    let (mut first, mut last) = (1, all.len());
    if let Some(heading) = heading {
        let outline = Outline::of(text);
        let at = outline.blocks.iter().position(
            |block| matches!(&block.kind, BlockKind::Heading { title, .. } if folded(title) == folded(heading)),
        );
        let Some(at) = at else {
            return Err(VaultError::NoSuchNote {
                name: format!("{path}#{heading}"),
                nearest: Vec::new(),
            });
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
            if chars == 0 {
                // One line alone is too long: its beginning is better than nothing.
                given.extend(line.chars().take(READ_CHARS_MAX));
                shown += 1;
            }
            let left = last - shown;
            cut = Some(if chars == 0 {
                format!(
                    "line {shown} is cut at {READ_CHARS_MAX} characters, and {left} more lines follow; read on with from_line {}",
                    shown + 1
                )
            } else {
                format!(
                    "{left} more lines follow; read on with from_line {}",
                    shown + 1
                )
            });
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
