//! Conversations as notes: one note each, only ever added to.
//!
//! The note is found again by its front matter, so it may be renamed, filed in a folder below,
//! tagged, and written into; what stands in it is never changed.

mod note; // the note: its name, its front matter, how far it goes
mod words; // what was said, so that it cannot break the note

use adjutant_core::{ConversationId, TranscriptMessage};
use jiff::Timestamp;
use serde::Serialize;

use crate::memory::blocking;
use crate::vault::markdown::{Outline, ends_open};
use crate::vault::{NOTE_BYTES_MAX, NotePath, Vault, VaultLock};
use crate::{Memory, MemoryError, VaultError};
use note::{Known, Place};

/// A note is full here, in bytes, and another takes what follows: the bound of a note leaves room
/// for one long message more.
const FULL: usize = (NOTE_BYTES_MAX / 4) as usize;
/// How often it is tried again because another program wrote in between.
const ATTEMPTS_MAX: usize = 8;

/// A conversation as it is to be logged.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversationLog {
    /// By which its note is found again.
    pub id: ConversationId,
    /// What it is called; its note is named after it when it is made, and keeps that name.
    pub title: String,
    /// When it began; the date is part of the name.
    pub started: Timestamp,
    /// What the person is called in it, such as `You`.
    pub person: String,
    /// What the assistant is called in it, such as `Diana`.
    pub assistant: String,
    /// All of it from the beginning, as [`adjutant_core::transcript`] tells it. Words of the person
    /// and of the assistant and the names of the tools go into the note; instructions, arguments
    /// and results do not.
    pub messages: Vec<TranscriptMessage>,
}

/// What [`Memory::log_conversation`] did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Logged {
    /// The note that has the end of the conversation, relative to the vault; none if nothing was
    /// said.
    pub file_path: Option<String>,
    /// Messages that were written now; 0 if all of them stood there already.
    pub added: usize,
}

impl Memory {
    /// Writes a conversation into a note of its own in
    /// [`MemoryOptions::conversations`](crate::MemoryOptions::conversations), or adds to that note
    /// what was said since. The same conversation again changes nothing.
    ///
    /// What stands in the note stays, byte for byte, whoever wrote it; only `modified` and `logged`
    /// in its front matter are kept up to date. Where adding is not possible (the note ends in an
    /// open code block, or is full), a second note goes on. It is not part of the history: `undo`
    /// does not take it back. Without a vault nothing is written.
    ///
    /// # Errors
    /// [`VaultError::Name`] if the folder cannot be one of the vault, and whatever keeps the file
    /// from being written: nothing is changed then.
    pub async fn log_conversation(&self, log: ConversationLog) -> Result<Logged, MemoryError> {
        let Some(shared) = self.in_vault() else {
            return Ok(Logged::default());
        };
        let (vault, folder) = (shared.vault.clone(), shared.options.conversations.clone());
        let now = (shared.common.clock)();
        blocking(move || {
            let place = Place::of(&folder, &log, now.time_zone())?;
            let lock = vault.lock()?;
            let stamp = note::stamp(&now);
            let mut logged = Logged::default();
            // Several rounds only where one note cannot take all of it.
            loop {
                let rest = write_one(&vault, &lock, &place, &log, &stamp, &mut logged)?;
                if rest == 0 {
                    return Ok(logged);
                }
            }
        })
        .await
    }
}

/// Writes as much as one note takes; how many messages are left.
fn write_one(
    vault: &Vault,
    lock: &VaultLock,
    place: &Place,
    log: &ConversationLog,
    stamp: &str,
    logged: &mut Logged,
) -> Result<usize, VaultError> {
    for _ in 0..ATTEMPTS_MAX {
        let known = note::find(vault, place, log)?;
        let from = known.as_ref().map_or(0, |known| known.next);
        if let Some(known) = &known {
            logged.file_path = Some(known.path.to_string());
        }
        let rest = log.messages.get(from..).unwrap_or_default();
        if !rest.iter().any(note::is_told) {
            return Ok(0);
        }
        let (path, done, added, left) = match known.filter(may_go_on) {
            Some(known) => {
                let room = FULL.saturating_sub(known.stored.text().len());
                let part = place.render(log, from, room);
                let new = note::add(known.stored.text(), &part, stamp);
                check(&known.path, known.stored.text(), &new)?;
                let done = vault.replace(lock, &known.path, Some(&known.stored), &new)?;
                (known.path, done, part.told, part.left)
            }
            None => {
                let path = place.free_path(vault)?;
                let part = place.render(log, from, FULL);
                let new = note::create(log, place, &part, stamp);
                check(&path, "", &new)?;
                let done = vault.replace(lock, &path, None, &new)?;
                (path, done, part.told, part.left)
            }
        };
        if done {
            logged.file_path = Some(path.to_string());
            logged.added += added;
            return Ok(left);
        }
    }
    Err(VaultError::Busy {
        name: place.folder.clone(),
    })
}

/// Whether what is added would be seen, and fits.
fn may_go_on(known: &Known) -> bool {
    let text = known.stored.text();
    text.len() < FULL && !ends_open(text)
}

/// What is written is read again first: nothing that was said may have become a heading, a list or
/// code of the note, or be hidden in a comment.
fn check(path: &NotePath, old: &str, new: &str) -> Result<(), VaultError> {
    let (before, after) = (Outline::of(old), Outline::of(new));
    let structure = |outline: &Outline| {
        outline
            .blocks
            .iter()
            .filter(|block| block.is_structure())
            .count()
    };
    // The note's own title is one.
    let own = usize::from(old.is_empty());
    if after.front.is_some() && !ends_open(new) && structure(&after) == structure(&before) + own {
        return Ok(());
    }
    let reason = "what was said would not stand in it as a quotation".to_owned();
    Err(VaultError::Shape {
        name: path.to_string(),
        reason,
    })
}
