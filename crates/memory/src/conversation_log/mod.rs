//! The log of conversations: each is written as a note, which is only ever added to.
//!
//! A note is found again by its front matter, so its owner may rename it, move it to a subfolder,
//! tag it and write into it; existing text is never changed.

mod conversation; // a conversation to be written
mod note; // name, front matter and content of the note
mod quotation; // messages as quotations

use serde::Serialize;

use crate::text::timestamp;
use crate::vault::markdown::{Outline, ends_open};
use crate::vault::{NOTE_BYTES_MAX, NotePath, Readers, StoredText, Vault, VaultLock};
use crate::vault_memory::blocking;
use crate::{Memory, MemoryError, VaultError};
pub use conversation::ConversationLog;
use note::{ExistingNote, NoteLocation};

/// Size from which a note is full, in bytes, and another one continues: below the bound of a note
/// one more long message fits.
const NOTE_FULL_BYTES: usize = (NOTE_BYTES_MAX / 4) as usize;
/// Number of attempts if another program writes in between.
const ATTEMPTS_MAX: usize = 8;

/// The result of [`Memory::log_conversation`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LoggedConversation {
    /// The path of the note with the end of the conversation, relative to the vault; none if there
    /// is no message.
    pub file_path: Option<String>,
    /// Number of messages that were written now; 0 if all of them stood there already.
    pub added: usize,
}

impl Memory {
    /// Writes a conversation into a note in
    /// [`MemoryOptions::conversations`](crate::MemoryOptions::conversations), or adds its new
    /// messages to that note. Writing the same conversation again changes nothing.
    ///
    /// Existing text of the note stays, byte for byte; only `modified` and
    /// `logged` in its front matter are updated. Where nothing can be added (the note ends in an
    /// open code block, or is full), a second note continues. The log is not recorded in the
    /// ledger: `undo` does not remove it. Without a vault nothing is written.
    ///
    /// # Errors
    /// [`VaultError::Name`] if the folder cannot be one of the vault, and any error of the file:
    /// nothing is changed then.
    pub async fn log_conversation(
        &self,
        log: ConversationLog,
    ) -> Result<LoggedConversation, MemoryError> {
        let Some(memory) = self.in_vault() else {
            return Ok(LoggedConversation::default());
        };
        let (vault, folder) = (memory.vault.clone(), memory.options.conversations.clone());
        let now = (memory.context.clock)();
        blocking(move || {
            let location = NoteLocation::new(&folder, &log, now.time_zone())?;
            let lock = vault.lock()?;
            let stamp = timestamp(&now);
            let mut logged = LoggedConversation::default();
            // More than one round only if one note cannot take all of it.
            loop {
                let rest = write_one(&vault, &lock, &location, &log, &stamp, &mut logged)?;
                if rest == 0 {
                    return Ok(logged);
                }
            }
        })
        .await
    }
}

/// Writes as many messages as one note takes; returns the number of messages that are left.
fn write_one(
    vault: &Vault,
    lock: &VaultLock,
    location: &NoteLocation,
    log: &ConversationLog,
    stamp: &str,
    logged: &mut LoggedConversation,
) -> Result<usize, VaultError> {
    for _ in 0..ATTEMPTS_MAX {
        let known = note::find(vault, location, log)?;
        let from = known.as_ref().map_or(0, |known| known.next);
        if let Some(known) = &known {
            logged.file_path = Some(known.path.to_string());
        }
        let rest = log.messages.get(from..).unwrap_or_default();
        if !rest.iter().any(note::is_logged) {
            return Ok(0);
        }
        let (path, old) = match known.filter(can_append) {
            Some(known) => (known.path, Some(known.stored)),
            None => (location.free_path(vault)?, None),
        };
        let old_text = old.as_ref().map_or("", StoredText::as_str);
        let capacity = NOTE_FULL_BYTES.saturating_sub(old_text.len());
        let part = location.render(log, from, capacity);
        let new = match &old {
            Some(_) => note::add(old_text, &part, stamp),
            None => note::create(log, location, &part, stamp),
        };
        verify_structure(&path, old_text, &new)?;
        if vault.replace(lock, &path, old.as_ref(), &new, Readers::Usual)? {
            logged.file_path = Some(path.to_string());
            logged.added += part.messages;
            return Ok(part.left);
        }
    }
    Err(VaultError::Busy {
        name: location.folder.clone(),
    })
}

/// Returns true if more can be added to a note, and would be visible.
fn can_append(known: &ExistingNote) -> bool {
    let text = known.stored.as_str();
    text.len() < NOTE_FULL_BYTES && !ends_open(text)
}

/// Parses a changed note and checks that no message has become a heading, a list or code of the
/// note, or is hidden in a comment.
fn verify_structure(path: &NotePath, old: &str, new: &str) -> Result<(), VaultError> {
    let (before, after) = (Outline::parse(old), Outline::parse(new));
    let structure = |outline: &Outline| {
        outline
            .blocks
            .iter()
            .filter(|block| block.is_structure())
            .count()
    };
    // The title of a new note is a heading.
    let own = usize::from(old.is_empty());
    if after.front.is_some() && !ends_open(new) && structure(&after) == structure(&before) + own {
        return Ok(());
    }
    let reason = "what was said would not stand in it as a quotation";
    Err(VaultError::shape(path.as_str(), reason))
}
