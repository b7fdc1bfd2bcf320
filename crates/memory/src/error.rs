//! Why the vault did not do it, named after what the caller does next.

use std::io;
use std::path::{Path, PathBuf};

use adjutant_core::ToolError;
use adjutant_core::port::StoreError;

/// Why something could not be done in a vault. `Display` is safe to show to the person and, but for
/// opening, to a model: it names notes relative to the vault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VaultError {
    /// The vault's folder is not there (any more): set the path, or mount the disk.
    #[error("the vault {path:?} is not there; set vault.path to a folder that is")]
    Missing {
        /// The folder that was named.
        path: PathBuf,
    },
    /// The vault's path is a file.
    #[error("the vault {path:?} is not a folder")]
    NotAFolder {
        /// What was named.
        path: PathBuf,
    },
    /// The operating system does not allow it: give permission.
    #[error("no permission to {what} {name:?}")]
    Denied {
        /// `open`, `read` or `write`.
        what: &'static str,
        /// The note, or the folder of the vault.
        name: String,
    },
    /// The file is marked as not to be written.
    #[error("{name:?} is read-only; nothing was changed")]
    ReadOnly {
        /// The note.
        name: String,
    },
    /// The name is not one of a note in this vault: choose another.
    #[error("{name:?} cannot be a note of this vault: {reason}")]
    Name {
        /// What was asked for.
        name: String,
        /// The rule it breaks.
        reason: &'static str,
    },
    /// There is no such note.
    #[error("there is no note {name:?}{}", did_you_mean(.nearest))]
    NoSuchNote {
        /// What was looked for.
        name: String,
        /// Notes with similar names.
        nearest: Vec<String>,
    },
    /// Several notes answer to the name: say which.
    #[error("{name:?} may be any of {}; give the whole path", quoted(.candidates))]
    Ambiguous {
        /// What was looked for.
        name: String,
        /// The notes.
        candidates: Vec<String>,
    },
    /// A note of that name exists and is not overwritten.
    #[error("{name:?} exists already; nothing was changed")]
    Exists {
        /// The note.
        name: String,
    },
    /// The bytes are not UTF-8 text. The file is left as it is.
    #[error("{name:?} is not UTF-8 text (byte {at}); it was left as it is")]
    NotText {
        /// The note.
        name: String,
        /// The first byte that does not fit, from 0.
        at: usize,
    },
    /// Larger than what is read.
    #[error("{name:?} has {bytes} bytes; at most {max} are read")]
    TooLarge {
        /// The note.
        name: String,
        /// Its size.
        bytes: u64,
        /// The bound, [`NOTE_BYTES_MAX`](crate::NOTE_BYTES_MAX).
        max: u64,
    },
    /// The note is built so that the text would not be seen where it belongs.
    #[error("{name:?} was left as it is: {reason}")]
    Shape {
        /// The note.
        name: String,
        /// What stands in the way.
        reason: String,
    },
    /// Another program has the vault locked, or changes the file again and again: try later.
    #[error("another program is writing to {name:?}; nothing was changed, please try again")]
    Busy {
        /// The note, or the vault.
        name: String,
    },
    /// No space left: nothing was changed.
    #[error("no space left to write {name:?}; nothing was changed")]
    Full {
        /// The note.
        name: String,
    },
    /// Whatever else the operating system said.
    #[error("{name:?}: {reason}; nothing was changed")]
    Io {
        /// The note.
        name: String,
        /// Its words.
        reason: String,
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
    /// What the operating system said about a file of the vault.
    pub(crate) fn of_file(name: &str, what: &'static str, error: &io::Error) -> Self {
        let name = name.to_owned();
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Denied { what, name },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { name },
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::Full { name },
            io::ErrorKind::NotFound => Self::NoSuchNote {
                name,
                nearest: Vec::new(),
            },
            _ => Self::Io {
                name,
                reason: error.to_string(),
            },
        }
    }

    /// What the operating system said about the vault's folder.
    pub(crate) fn of_root(path: &Path, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing {
                path: path.to_owned(),
            },
            io::ErrorKind::NotADirectory => Self::NotAFolder {
                path: path.to_owned(),
            },
            _ => Self::of_file(&path.display().to_string(), "open", error),
        }
    }
}

/// Why a memory operation was not carried out. Nothing was changed unless it says so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The vault.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The words cannot be a fact.
    #[error("{reason}")]
    Fact {
        /// What is wrong and what would be right.
        reason: String,
    },
    /// As many facts as may be: forget one, or raise the bound.
    #[error(
        "the memory is full: {count} facts, and memory.max_facts is {max}; nothing was added and nothing is evicted. Forget one first, or raise memory.max_facts"
    )]
    Limit {
        /// How many there are.
        count: usize,
        /// The bound.
        max: usize,
    },
    /// No fact answers to the words.
    #[error("no fact matches {which:?}")]
    NoSuchFact {
        /// What was looked for.
        which: String,
    },
    /// Several do: say more.
    #[error("{which:?} may be any of {}", quoted(.candidates))]
    Ambiguous {
        /// What was looked for.
        which: String,
        /// The facts.
        candidates: Vec<String>,
    },
    /// A task's line was left as it is.
    #[error("{reason}")]
    Task {
        /// The reason, and what can be done.
        reason: String,
    },
    /// There is nothing to undo.
    #[error("there is nothing to undo")]
    NothingToUndo,
    /// The file was changed by hand since; the change is left out from now on, so the next undo
    /// takes the one before it.
    #[error(
        "{what} was changed by hand since and was left as it is; the next undo takes the change before it"
    )]
    ChangedSince {
        /// The fact or the note.
        what: String,
    },
    /// The history did not answer.
    #[error("the history of the memory cannot be used at the moment; nothing was changed")]
    Ledger {
        /// What the store said, for logs: it may name hosts and files.
        reason: String,
    },
    /// The database with the facts did not answer.
    #[error("the facts cannot be read or changed at the moment")]
    Store {
        /// The store's words, for logs: they may name hosts and files.
        reason: String,
    },
    /// Others changed the facts again and again meanwhile.
    #[error("the facts are being changed by others at the moment; nothing was changed")]
    Busy,
    /// Another user's memory.
    #[error("this memory belongs to another user")]
    NotYours,
    /// The work was broken off.
    #[error("the vault operation was broken off; look at the note before trying again")]
    BrokeOff,
}

impl MemoryError {
    /// The words of a store of facts.
    pub(crate) fn of_store(error: StoreError) -> Self {
        Self::Store {
            reason: error.to_string(),
        }
    }
}

impl From<StoreError> for MemoryError {
    fn from(error: StoreError) -> Self {
        Self::Ledger {
            reason: error.to_string(),
        }
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
            // Where on the disk the vault is, is the person's business.
            MemoryError::Vault(VaultError::Missing { .. } | VaultError::NotAFolder { .. }) => {
                Self::failed("The vault's folder is not there at the moment; nothing was changed.")
            }
            MemoryError::BrokeOff => Self::Unknown {
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
