//! The errors of vaults and memories, named after what the caller does next. Each keeps the error
//! that caused it as its `source()`.

use std::io;
use std::path::{Path, PathBuf};
use std::str::Utf8Error;

use adjutant_core::ToolError;
use adjutant_core::port::StoreError;
use tokio::task::JoinError;

/// An error of a vault. `Display` is safe to show to the user and, except for
/// [`Missing`](Self::Missing) and [`NotAFolder`](Self::NotAFolder), to a model: it names notes
/// relative to the vault.
///
/// # Examples
///
/// The error of the operating system is the source:
///
/// ```
/// use std::error::Error as _;
/// use std::io;
///
/// let error = adjutant_memory::Vault::open("/there/is/no/such/folder").unwrap_err();
/// let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
/// assert_eq!(source.unwrap().kind(), io::ErrorKind::NotFound);
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VaultError {
    /// The vault's folder does not exist (any more): set the path, or mount the disk.
    #[error("the vault {path:?} is not there; set vault.path to a folder that is")]
    Missing {
        /// The folder that was to be opened.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The vault's path is that of a file.
    #[error("the vault {path:?} is not a folder")]
    NotAFolder {
        /// The path that was to be opened.
        path: PathBuf,
    },
    /// The note's owner keeps it from the assistant.
    #[error("{name:?} is excluded from what the assistant may see")]
    Excluded {
        /// The path of the note in the vault.
        name: String,
    },
    /// A pattern of excluded notes cannot be read, so that it is unknown which they are: correct it.
    #[error("the pattern {pattern:?} of {place} cannot be read, so no note is shown")]
    Pattern {
        /// The text of the pattern, as its owner wrote it.
        pattern: String,
        /// The setting or file that it stands in.
        place: String,
        /// The mistake in it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The operating system refuses access: give permission.
    #[error("no permission to {action} {name:?}")]
    Denied {
        /// `open`, `read` or `write`.
        action: &'static str,
        /// The path of the note, or the folder of the vault.
        name: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is marked as read-only, or its file system is mounted so.
    #[error("{name:?} is read-only; nothing was changed")]
    ReadOnly {
        /// The path of the note in the vault.
        name: String,
        /// The error of the operating system; none if the file's own permissions forbid it.
        source: Option<io::Error>,
    },
    /// The name cannot be that of a note in this vault: choose another.
    #[error("{name:?} cannot be a note of this vault: {reason}")]
    Name {
        /// The name as the caller gave it, shortened if it is very long.
        name: String,
        /// The rule that the name breaks.
        reason: &'static str,
    },
    /// No note of the vault has the name, the end of the path or the alias.
    #[error("there is no note {name:?}{}", did_you_mean(.nearest))]
    NoSuchNote {
        /// The name as the caller gave it.
        name: String,
        /// The paths of notes with similar names.
        nearest: Vec<String>,
    },
    /// Several notes have the name: give the whole path.
    #[error("{name:?} may be any of {}; give the whole path", quoted(.candidates))]
    Ambiguous {
        /// The name as the caller gave it.
        name: String,
        /// The paths of some of the notes that have it.
        candidates: Vec<String>,
    },
    /// A note of that name exists and is not overwritten.
    #[error("{name:?} exists already; nothing was changed")]
    Exists {
        /// The path of the note in the vault.
        name: String,
    },
    /// The bytes are not UTF-8 text. The file is left as it is.
    #[error("{name:?} is not UTF-8 text (byte {at}); it was left as it is")]
    NotText {
        /// The path of the note in the vault.
        name: String,
        /// The first byte that is not UTF-8, from 0.
        at: usize,
        /// The error of the decoder.
        source: Utf8Error,
    },
    /// The file is larger than a note may be. It is neither read nor written.
    #[error("{name:?} has {bytes} bytes; at most {max} are read")]
    TooLarge {
        /// The path of the note in the vault.
        name: String,
        /// The size of the file, in bytes.
        bytes: u64,
        /// The bound, [`NOTE_BYTES_MAX`](crate::NOTE_BYTES_MAX).
        max: u64,
    },
    /// The note's own Markdown would hide or change the text that was to be written.
    #[error("{name:?} was left as it is: {reason}")]
    Shape {
        /// The path of the note in the vault.
        name: String,
        /// The construct that stands in the way, such as a code block that is not closed.
        reason: String,
    },
    /// Another program has the vault locked, or changes the file again and again: try later.
    #[error("another program is writing to {name:?}; nothing was changed, please try again")]
    Busy {
        /// The path of the note, or of the vault.
        name: String,
    },
    /// The disk or the quota is full: nothing was changed.
    #[error("no space left to write {name:?}; nothing was changed")]
    Full {
        /// The path of the note in the vault.
        name: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Any other error of the operating system.
    #[error("{name:?}: {source}; nothing was changed")]
    Io {
        /// The path of the note, or of the vault.
        name: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

fn did_you_mean(names: &[String]) -> String {
    if names.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", quoted(names))
    }
}

fn quoted(names: &[String]) -> String {
    names
        .iter()
        .map(|name| format!("{name:?}"))
        .collect::<Vec<_>>()
        .join(", ")
}

impl VaultError {
    /// Returns the error of a file of the vault. `action`: `open`, `read` or `write`.
    pub(crate) fn from_file(name: &str, action: &'static str, source: io::Error) -> Self {
        let name = name.to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Denied {
                action,
                name,
                source,
            },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly {
                name,
                source: Some(source),
            },
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::Full { name, source },
            io::ErrorKind::NotFound => Self::no_such_note(name),
            _ => Self::Io { name, source },
        }
    }

    pub(crate) fn no_such_note(name: impl Into<String>) -> Self {
        Self::NoSuchNote {
            name: name.into(),
            nearest: Vec::new(),
        }
    }

    pub(crate) fn shape(name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Shape {
            name: name.into(),
            reason: reason.into(),
        }
    }

    /// Returns the error of the vault's own folder.
    pub(crate) fn from_root(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Self::Missing { path, source },
            io::ErrorKind::NotADirectory => Self::NotAFolder { path },
            _ => Self::from_file(&path.display().to_string(), "open", source),
        }
    }
}

/// An error of a memory operation. Nothing was changed unless the variant says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// A file of the vault could not be read or written.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The text cannot be a fact, an entry or a note: it is empty or too long, or stored already.
    #[error("{reason}")]
    Fact {
        /// The rule that the text breaks, and the remedy.
        reason: String,
    },
    /// The number of facts is at its bound: forget one, or raise the bound.
    #[error(
        "the memory is full: {count} facts, and memory.max_facts is {max}; nothing was added and nothing is evicted. Forget one first, or raise memory.max_facts"
    )]
    Limit {
        /// Number of facts that are stored.
        count: usize,
        /// The bound, [`MemoryOptions::max_facts`](crate::MemoryOptions::max_facts).
        max: usize,
    },
    /// No fact has the id, the text, a part of it, or its keywords.
    #[error("no fact matches {which:?}")]
    NoSuchFact {
        /// The id or text as the caller gave it.
        which: String,
    },
    /// Several facts match: give an id, or more of the text.
    #[error("{which:?} may be any of {}", quoted(.candidates))]
    Ambiguous {
        /// The id or text as the caller gave it.
        which: String,
        /// The texts of some of the facts that match.
        candidates: Vec<String>,
    },
    /// A task cannot be changed this way; its line was left as it is.
    #[error("{reason}")]
    Task {
        /// The reason, and the remedy.
        reason: String,
    },
    /// The ledger has no change that could be undone.
    #[error("there is nothing to undo")]
    NothingToUndo,
    /// The file was edited by hand since the change; the change is left out from now on, so the
    /// next undo takes the one before it.
    #[error(
        "{what} was changed by hand since and was left as it is; the next undo takes the change before it"
    )]
    ChangedSince {
        /// The fact, the note or the task, as it is shown to the user.
        what: String,
    },
    /// The ledger of changes could not be read or written.
    #[error("the history of the memory cannot be used at the moment; nothing was changed")]
    Ledger {
        /// The error of the store, for logs: it may name hosts and files.
        #[from]
        source: StoreError,
    },
    /// The database with the facts could not be read or written.
    #[error("the facts cannot be read or changed at the moment")]
    Store {
        /// The error of the store, for logs: it may name hosts and files.
        source: StoreError,
    },
    /// Other processes changed the facts at every attempt: try later.
    #[error("the facts are being changed by others at the moment; nothing was changed")]
    Busy,
    /// The memory belongs to another user.
    #[error("this memory belongs to another user")]
    NotYours,
    /// The work panicked or was cancelled: the file may have been changed or not.
    #[error("the vault operation was broken off; look at the note before trying again")]
    BrokeOff(#[source] Option<JoinError>),
}

impl MemoryError {
    pub(crate) fn fact(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::Fact { reason }
    }
}

impl From<MemoryError> for ToolError {
    fn from(error: MemoryError) -> Self {
        match &error {
            MemoryError::Vault(VaultError::NoSuchNote { name, nearest }) if nearest.is_empty() => {
                Self::NotFound {
                    what: "note".to_owned(),
                    id: format!("{name:?}"),
                }
            }
            MemoryError::Vault(
                VaultError::Name { .. }
                | VaultError::NoSuchNote { .. }
                | VaultError::Ambiguous { .. }
                | VaultError::Exists { .. },
            )
            | MemoryError::Fact { .. }
            | MemoryError::NoSuchFact { .. }
            | MemoryError::Ambiguous { .. } => Self::invalid(error.to_string()),
            // A model, and the logs of its provider, must not learn where on the disk the vault is.
            MemoryError::Vault(VaultError::Missing { .. } | VaultError::NotAFolder { .. }) => {
                Self::failed("The vault's folder is not there at the moment; nothing was changed.")
            }
            MemoryError::BrokeOff(_) => Self::Unknown {
                message: error.to_string(),
            },
            MemoryError::Vault(_)
            | MemoryError::Limit { .. }
            | MemoryError::Task { .. }
            | MemoryError::NothingToUndo
            | MemoryError::ChangedSince { .. }
            | MemoryError::Ledger { .. }
            | MemoryError::Store { .. }
            | MemoryError::Busy
            | MemoryError::NotYours => Self::failed(error.to_string()),
        }
    }
}

impl From<VaultError> for ToolError {
    fn from(error: VaultError) -> Self {
        MemoryError::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    fn kind(error: &dyn Error) -> Option<io::ErrorKind> {
        let mut source = error.source();
        while let Some(error) = source {
            if let Some(error) = error.downcast_ref::<io::Error>() {
                return Some(error.kind());
            }
            source = error.source();
        }
        None
    }

    #[test]
    fn the_error_of_the_operating_system_is_the_source() {
        for (cause, text) in [
            (
                io::ErrorKind::PermissionDenied,
                "no permission to read \"a.md\"",
            ),
            (
                io::ErrorKind::ReadOnlyFilesystem,
                "\"a.md\" is read-only; nothing was changed",
            ),
            (
                io::ErrorKind::StorageFull,
                "no space left to write \"a.md\"; nothing was changed",
            ),
            (
                io::ErrorKind::TimedOut,
                "\"a.md\": timed out; nothing was changed",
            ),
        ] {
            let error = VaultError::from_file("a.md", "read", cause.into());
            assert_eq!(error.to_string(), text);
            assert_eq!(kind(&error), Some(cause));
            assert_eq!(kind(&MemoryError::from(error)), Some(cause));
        }
        let missing = VaultError::from_root(Path::new("x"), io::ErrorKind::NotFound.into());
        assert_eq!(kind(&missing), Some(io::ErrorKind::NotFound));
    }

    #[test]
    fn the_error_of_a_store_is_the_source() {
        let message = "db.internal:5432".to_owned();
        let store = StoreError::unavailable(message);
        for error in [
            MemoryError::from(store.clone()),
            MemoryError::Store {
                source: store.clone(),
            },
        ] {
            let source = error.source().and_then(|source| source.downcast_ref());
            assert_eq!(source, Some(&store));
            assert!(!error.to_string().contains("db.internal"));
        }
    }
}
