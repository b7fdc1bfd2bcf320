//! Backup of a database file, and the check that a file is sound.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use adjutant_core::port::StoreError;
use rusqlite::Connection;

use super::error;
use super::open::{self, FileOptions};
use crate::sql::Failure;

/// Most findings of one kind.
const DAMAGES_MAX: usize = 100;

/// Returns what SQLite finds wrong with a database: damaged pages and indices, and rows that refer
/// to missing rows.
pub(super) fn damages(connection: &Connection) -> Result<Vec<String>, Failure> {
    let mut check = connection.prepare("PRAGMA integrity_check(100)")?;
    let found = check
        .query_map([], |row| row.get::<_, String>(0))?
        .collect::<Result<Vec<_>, _>>()?;
    let mut damages: Vec<String> = found.into_iter().filter(|damage| damage != "ok").collect();
    let mut check = connection.prepare("PRAGMA foreign_key_check")?;
    let lost = check.query_map([], |row| {
        let (table, row, parent): (String, Option<i64>, String) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        let row = row.map_or_else(|| "a row".to_owned(), |row| format!("row {row}"));
        Ok(format!(
            "{row} of {table} refers to a row of {parent} that is not there"
        ))
    })?;
    for damage in lost.take(DAMAGES_MAX) {
        damages.push(damage?);
    }
    Ok(damages)
}

/// Writes a complete and checked copy, or nothing. An existing file is not overwritten.
pub(super) fn write(from: &FileOptions, to: &Path) -> Result<(), Failure> {
    let about_copy = |failure: Failure| {
        Failure::Store(error::explain(
            failure,
            &format!("the copy {}", to.display()),
        ))
    };
    let to = std::path::absolute(to).map_err(|error| unusable(to, error))?;
    if fs::symlink_metadata(&to).is_ok() {
        return Err(taken(&to).into());
    }
    // Under another name until it is complete and checked, so that no half copy is taken for a
    // backup.
    let partial = Partial::create(&to)?;
    let name = partial
        .path
        .to_str()
        .ok_or_else(|| unusable(&to, "SQLite takes only names in Unicode"))?;
    // A separate connection: the readers may write nowhere, and the writer would block others for
    // the time of the copy.
    let source = from.connect()?;
    source
        .execute("VACUUM INTO ?1", [name])
        .map_err(|error| about_copy(error.into()))?;
    drop(source);
    let found = sound(&partial.path).map_err(about_copy)?;
    if let Some(damage) = found.first() {
        let message = format!(
            "the copy {} is not sound, so there is none: {damage}",
            to.display()
        );
        return Err(StoreError::unreadable(message).into());
    }
    partial.become_file(&to)?;
    Ok(())
}

/// Checks a copy, and switches it to WAL mode.
fn sound(path: &Path) -> Result<Vec<String>, Failure> {
    let copy = Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    open::write_ahead(&copy)?;
    // Fails unless the file has our tables.
    copy.query_row(
        "SELECT max(version) FROM adjutant_migration",
        [],
        |_| Ok(()),
    )?;
    damages(&copy)
}

/// A file that is still being written. Removed when dropped.
struct Partial {
    path: PathBuf,
}

impl Partial {
    /// Creates an empty file beside the target, accessible to the owner only.
    fn create(to: &Path) -> Result<Self, StoreError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let Some(name) = to.file_name() else {
            return Err(unusable(to, "it names no file"));
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut partial = OsString::from(".");
        partial.push(name);
        partial.push(format!(".{}-{number}.partial", std::process::id()));
        let path = to.with_file_name(partial);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&path).map_err(|error| unusable(to, error))?;
        Ok(Self { path })
    }

    /// Gives the file its final name, unless a file of that name appeared meanwhile. From then on
    /// it survives a power failure.
    fn become_file(self, to: &Path) -> Result<(), StoreError> {
        File::open(&self.path)
            .and_then(|file| file.sync_all())
            .map_err(|error| unusable(to, error))?;
        // A hard link fails if the name exists; a rename would replace the file.
        match fs::hard_link(&self.path, to) {
            Ok(()) => {}
            Err(_) if fs::symlink_metadata(to).is_ok() => return Err(taken(to)),
            // A file system without hard links has no atomic way to fail if the name is taken.
            Err(_) => fs::rename(&self.path, to).map_err(|error| unusable(to, error))?,
        }
        #[cfg(unix)]
        if let Some(folder) = to.parent() {
            File::open(folder)
                .and_then(|folder| folder.sync_all())
                .map_err(|error| unusable(to, error))?;
        }
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        for ending in ["", "-wal", "-shm", "-journal"] {
            let mut name = self.path.clone().into_os_string();
            name.push(ending);
            // Missing, or renamed: both are fine.
            let _ = fs::remove_file(name);
        }
    }
}

fn taken(to: &Path) -> StoreError {
    let message = format!(
        "{} is there already and is left as it is; choose another name",
        to.display()
    );
    StoreError::unusable(message)
}

fn unusable(to: &Path, reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    let reason = reason.into();
    let message = format!("the copy {} cannot be written: {reason}", to.display());
    StoreError::unusable(message).with_source(reason)
}
