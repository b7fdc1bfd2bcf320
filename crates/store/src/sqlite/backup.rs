//! A copy of a database file, and whether a file is sound.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use adjutant_core::port::StoreError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};

use super::error;
use crate::sql::Failure;

/// At most so many damages of one kind are told.
const DAMAGES_MAX: usize = 100;

/// What SQLite finds wrong with a database: pages, indices, and rows that refer to what is not there.
pub(super) async fn damages(connection: &mut SqliteConnection) -> Result<Vec<String>, Failure> {
    let found: Vec<(String,)> =
        sqlx::query_as("PRAGMA integrity_check(100)").fetch_all(&mut *connection).await?;
    let mut damages: Vec<String> =
        found.into_iter().map(|(damage,)| damage).filter(|damage| damage != "ok").collect();
    let lost: Vec<(String, Option<i64>, String, i64)> =
        sqlx::query_as("PRAGMA foreign_key_check").fetch_all(&mut *connection).await?;
    damages.extend(lost.into_iter().take(DAMAGES_MAX).map(|(table, row, parent, _)| {
        let row = row.map_or_else(|| "a row".to_owned(), |row| format!("row {row}"));
        format!("{row} of {table} refers to a row of {parent} that is not there")
    }));
    Ok(damages)
}

/// Writes a copy that is whole and sound, or nothing. What is there already is left alone.
pub(super) async fn write(from: &SqliteConnectOptions, to: &Path) -> Result<(), Failure> {
    let about_copy =
        |failure: Failure| Failure::Store(error::at(failure, &format!("the copy {}", to.display())));
    let to = std::path::absolute(to).map_err(|error| unusable(to, error))?;
    if fs::symlink_metadata(&to).is_ok() {
        return Err(taken(&to).into());
    }
    let partial = Partial::create(&to)?;
    let name = partial.path.to_str().ok_or_else(|| unusable(&to, "SQLite takes only names in Unicode"))?;
    // A connection of its own: those that read may write nowhere, and others wait for the one that writes.
    let mut source = from.connect().await?;
    let copied = sqlx::query("VACUUM INTO ?1").bind(name).execute(&mut source).await;
    source.close().await?;
    copied.map_err(|error| about_copy(error.into()))?;
    let found = sound(&partial.path).await.map_err(about_copy)?;
    if let Some(damage) = found.first() {
        let message = format!("the copy {} is not sound, so there is none: {damage}", to.display());
        return Err(StoreError::Unreadable { message }.into());
    }
    partial.become_file(&to)?;
    Ok(())
}

/// Looks at a copy, and makes it a database that is read beside a writer, as ours are.
async fn sound(path: &Path) -> Result<Vec<String>, Failure> {
    let options = SqliteConnectOptions::new().filename(path).journal_mode(SqliteJournalMode::Wal);
    let mut copy = options.connect().await?;
    let found = async {
        // Fails unless it has our tables.
        sqlx::query("SELECT max(version) FROM adjutant_migration").fetch_one(&mut copy).await?;
        damages(&mut copy).await
    };
    let found = found.await;
    copy.close().await?;
    found
}

/// A file that is not whole yet. Removed when dropped.
struct Partial {
    path: PathBuf,
}

impl Partial {
    /// An empty file beside the place it is for, for its owner's eyes only.
    fn create(to: &Path) -> Result<Self, StoreError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let Some(name) = to.file_name() else { return Err(unusable(to, "it names no file")) };
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

    /// Gives it its name, unless somebody else has taken that meanwhile; survives a power failure from then on.
    fn become_file(self, to: &Path) -> Result<(), StoreError> {
        File::open(&self.path).and_then(|file| file.sync_all()).map_err(|error| unusable(to, error))?;
        match fs::hard_link(&self.path, to) {
            Ok(()) => {}
            Err(_) if fs::symlink_metadata(to).is_ok() => return Err(taken(to)),
            // A file system without links: nothing there tells in one step whether the name is free.
            Err(_) => fs::rename(&self.path, to).map_err(|error| unusable(to, error))?,
        }
        #[cfg(unix)]
        if let Some(folder) = to.parent() {
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| unusable(to, error))?;
        }
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        for ending in ["", "-wal", "-shm", "-journal"] {
            let mut name = self.path.clone().into_os_string();
            name.push(ending);
            // Not there, or renamed: either is as it should be.
            let _ = fs::remove_file(name);
        }
    }
}

fn taken(to: &Path) -> StoreError {
    let message = format!("{} is there already and is left as it is; choose another name", to.display());
    StoreError::Unusable { message }
}

fn unusable(to: &Path, reason: impl std::fmt::Display) -> StoreError {
    StoreError::Unusable { message: format!("the copy {} cannot be written: {reason}", to.display()) }
}
