//! Conversion of memory errors to errors of commands.

use adjutant_memory::{MemoryError, VaultError};

use crate::error::{CliError, Exit};

impl From<MemoryError> for CliError {
    fn from(error: MemoryError) -> Self {
        let message = error.to_string();
        match error {
            MemoryError::Vault(error) => error.into(),
            MemoryError::Fact { .. } => Self::usage(message),
            MemoryError::Limit { .. } => Self {
                exit: Exit::Limit,
                code: "limit",
                ..Self::failed(message)
            }
            .or_try("adjutant memory list, then adjutant memory forget ID"),
            MemoryError::NoSuchFact { .. } => Self::unknown(message).or_try("adjutant memory list"),
            MemoryError::Ambiguous { .. } => {
                Self::unknown(message).or_try("the id, or more of the words (adjutant memory list)")
            }
            // The message names the ledger only; what is wrong with the database is in its source.
            MemoryError::Ledger { source } => Self::failed(message).because(source.to_string()),
            MemoryError::ChangedSince { .. } => {
                Self::failed(message).or_try("adjutant memory undo")
            }
            // Nothing to undo, another user's vault, interrupted.
            _ => Self::failed(message),
        }
    }
}

impl From<VaultError> for CliError {
    fn from(error: VaultError) -> Self {
        let message = error.to_string();
        match error {
            VaultError::Missing { path, .. } => Self::configuration(format!(
                "the vault {} is not there",
                path.display()
            ))
            .or_try(
                "mount its disk, or name another folder: --vault DIR, or vault.path (adjutant config path)",
            ),
            VaultError::NotAFolder { path } => {
                Self::configuration(format!("the vault {} is not a folder", path.display()))
                    .or_try("the folder with your notes: --vault DIR, or vault.path (adjutant config path)")
            }
            VaultError::Pattern { source, .. } => {
                Self::configuration(message).because(source.to_string())
            }
            VaultError::Name { .. } => Self::usage(message),
            VaultError::NoSuchNote { .. } | VaultError::Ambiguous { .. } => Self::unknown(message),
            VaultError::Denied { .. } | VaultError::ReadOnly { .. } => {
                Self::failed(message).or_try("permission to write in the vault (ls -l)")
            }
            // Busy, full, not text, of another schema: the message has the remedy.
            _ => Self::failed(message),
        }
    }
}
