//! A folder of markdown that belongs to its owner: opened, looked through, read and written.

mod discover; // where vaults are
mod file; // one file, read and replaced
mod lock; // one writer at a time
pub(crate) mod markdown; // blocks, headings, code, comments
pub(crate) mod note; // front matter, tags, aliases, links
mod obsidian; // links that open there
mod passage; // a note in pieces
pub(crate) mod path; // names
mod ranking; // how well notes fit a question
mod search; // which notes
pub(crate) mod walk; // all notes

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use unicode_normalization::{UnicodeNormalization, is_nfc};

use crate::VaultError;

pub use discover::{System, UserFolders, find_vaults};
pub use file::NOTE_BYTES_MAX;
pub(crate) use file::Stored;
pub(crate) use lock::VaultLock;
pub use note::{Note, NoteText};
pub use path::NotePath;
pub use search::{Filter, Found, Hit, Listed};
pub(crate) use search::{Term, meets, terms_of};

/// An open vault. Cheap to clone; nothing of its content is kept in memory.
///
/// ```no_run
/// # fn main() -> Result<(), adjutant_memory::VaultError> {
/// let vault = adjutant_memory::Vault::open("Notes")?.with_work_folder("state/vault");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Vault(Arc<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    root: PathBuf,
    work: Option<PathBuf>,
    tag: String,
}

/// A note's place on the disk.
#[derive(Debug)]
pub(crate) struct Located {
    /// Symbolic links resolved: what is read and replaced.
    pub(crate) real: PathBuf,
    pub(crate) exists: bool,
}

impl Vault {
    /// Opens the folder; it need not have a `.obsidian` folder.
    ///
    /// # Errors
    /// [`VaultError::Missing`], [`VaultError::NotAFolder`], or [`VaultError::Denied`] if it cannot
    /// be listed.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, VaultError> {
        let path = path.as_ref();
        let root = fs::canonicalize(path).map_err(|error| VaultError::of_root(path, &error))?;
        let about = fs::metadata(&root).map_err(|error| VaultError::of_root(path, &error))?;
        if !about.is_dir() {
            return Err(VaultError::NotAFolder {
                path: path.to_owned(),
            });
        }
        fs::read_dir(&root).map_err(|error| VaultError::of_root(path, &error))?;
        let digest = Sha256::digest(root.as_os_str().as_encoded_bytes());
        let tag = digest
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Ok(Self(Arc::new(Inner {
            root,
            work: None,
            tag,
        })))
    }

    /// Where files are prepared before they are moved into the vault, so that no watcher and no
    /// synchronisation sees half a file. Best a folder on the same file system as the vault; it is
    /// created when needed.
    ///
    /// Without it, or if it is on another file system (a rename cannot cross that), a file is
    /// prepared beside its target under a hidden name, `.adjutant-….tmp`, which Obsidian does not
    /// show.
    #[must_use]
    pub fn with_work_folder(self, folder: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Inner {
            work: Some(folder.into()),
            ..Arc::unwrap_or_clone(self.0)
        }))
    }

    /// The folder, symbolic links resolved.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.0.root
    }

    /// What the vault is called: its folder's name.
    #[must_use]
    pub fn name(&self) -> String {
        self.0
            .root
            .file_name()
            .unwrap_or(self.0.root.as_os_str())
            .to_string_lossy()
            .into_owned()
    }

    /// Waits until no other process writes to this vault, at most 10 seconds.
    pub(crate) fn lock(&self) -> Result<VaultLock, VaultError> {
        lock::acquire(&self.0)
    }

    /// Fails with the right words if the folder itself is gone.
    fn check_root(&self) -> Result<(), VaultError> {
        let about = fs::metadata(&self.0.root)
            .map_err(|error| VaultError::of_root(&self.0.root, &error))?;
        if about.is_dir() {
            Ok(())
        } else {
            Err(VaultError::NotAFolder {
                path: self.0.root.clone(),
            })
        }
    }

    /// Where the note is, or would be. Every symbolic link on the way has to stay inside the vault
    /// and lead to nothing hidden.
    ///
    /// The check and the use are two steps: somebody with write access to the vault who swaps a
    /// folder for a link between them is not kept out. Such a person can change the notes anyway.
    pub(crate) fn locate(&self, path: &NotePath) -> Result<Located, VaultError> {
        self.check_root()?;
        let mut at = self.0.root.clone();
        let mut missing = false;
        for part in path.as_str().split('/') {
            if !missing {
                match self.entry(&at, part) {
                    Some(found) => {
                        at = fs::canonicalize(found)
                            .map_err(|error| VaultError::of_file(path.as_str(), "open", &error))?;
                        self.check_inside(&at, path)?;
                        continue;
                    }
                    None => missing = true,
                }
            }
            at.push(part);
        }
        if !missing {
            let about = fs::metadata(&at)
                .map_err(|error| VaultError::of_file(path.as_str(), "open", &error))?;
            if !about.is_file() {
                return Err(VaultError::Name {
                    name: path.to_string(),
                    reason: "it is not a file",
                });
            }
        }
        Ok(Located {
            real: at,
            exists: !missing,
        })
    }

    /// The entry of this name, in whatever encoding of Unicode it stands on the disk.
    fn entry(&self, folder: &Path, part: &str) -> Option<PathBuf> {
        let exact = folder.join(part);
        // A link that leads nowhere is an entry too: it must not be taken for a free name.
        if fs::symlink_metadata(&exact).is_ok() {
            return Some(exact);
        }
        // `part` is composed; a file made elsewhere may be decomposed. Only names beyond ASCII can
        // differ.
        if part.is_ascii() {
            return None;
        }
        fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
            let name = entry.file_name();
            let name = name.to_str()?;
            (!is_nfc(name) && name.nfc().eq(part.chars())).then(|| entry.path())
        })
    }

    /// The same path with its folders and its name as they stand on the disk, if they differ in
    /// capitals only: two notes that differ so are one note on many systems.
    pub(crate) fn settle(&self, path: &NotePath) -> Result<NotePath, VaultError> {
        self.check_root()?;
        let mut at = self.0.root.clone();
        let mut parts = Vec::new();
        for part in path.as_str().split('/') {
            let found = self.entry(&at, part).is_none().then(|| {
                let wanted = path::folded(part);
                fs::read_dir(&at).ok()?.flatten().find_map(|entry| {
                    let name = entry.file_name();
                    let name = name.to_str()?;
                    (path::folded(name) == wanted).then(|| name.to_owned())
                })
            });
            let part = found.flatten().unwrap_or_else(|| part.to_owned());
            at.push(&part);
            parts.push(part);
        }
        NotePath::of_owner(&parts.join("/"))
    }

    fn check_inside(&self, real: &Path, path: &NotePath) -> Result<(), VaultError> {
        let inside = real
            .strip_prefix(&self.0.root)
            .map_err(|_| VaultError::Name {
                name: path.to_string(),
                reason: "a symbolic link leads it out of the vault",
            })?;
        let hidden = inside
            .components()
            .any(|part| part.as_os_str().as_encoded_bytes().first() == Some(&b'.'));
        if hidden {
            return Err(VaultError::Name {
                name: path.to_string(),
                reason: "a symbolic link leads it to something hidden",
            });
        }
        Ok(())
    }

    /// Reads a note's bytes; `None` if it does not exist.
    pub(crate) fn read_stored(&self, path: &NotePath) -> Result<Option<Stored>, VaultError> {
        let located = self.locate(path)?;
        if located.exists {
            file::read(&located.real, path.as_str()).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Replaces what `before` read with `after`, or creates the note if there was nothing. `false`
    /// if the file is no longer what was read: nothing was changed, read again. Only under the
    /// lock.
    pub(crate) fn replace(
        &self,
        _lock: &VaultLock,
        path: &NotePath,
        before: Option<&Stored>,
        after: &str,
    ) -> Result<bool, VaultError> {
        let located = self.locate(path)?;
        if located.exists != before.is_some() {
            return Ok(false);
        }
        if after.len() as u64 > NOTE_BYTES_MAX {
            return Err(VaultError::TooLarge {
                name: path.to_string(),
                bytes: after.len() as u64,
                max: NOTE_BYTES_MAX,
            });
        }
        let place = file::Place {
            work: self.0.work.as_deref(),
            tag: &self.0.tag,
            name: path.as_str(),
        };
        let done = file::replace(&located.real, before, after.as_bytes(), &place);
        // A vault that vanished in between says so, not that the note is missing.
        done.map_err(|error| self.check_root().err().unwrap_or(error))
    }

    /// Removes a file if it still holds exactly `before`. Only under the lock.
    pub(crate) fn remove(
        &self,
        _lock: &VaultLock,
        path: &NotePath,
        before: &Stored,
    ) -> Result<bool, VaultError> {
        let located = self.locate(path)?;
        if !located.exists || file::read(&located.real, path.as_str())? != *before {
            return Ok(false);
        }
        fs::remove_file(&located.real)
            .map_err(|error| VaultError::of_file(path.as_str(), "write", &error))?;
        Ok(true)
    }

    /// A folder of the vault as it stands on the disk, in whatever encoding of Unicode; `None` if a
    /// link leads it out.
    pub(crate) fn folder(&self, name: &str) -> Option<PathBuf> {
        let parts = name.split('/').filter(|part| !part.is_empty());
        let found = parts
            .into_iter()
            .try_fold(self.0.root.clone(), |at, part| self.entry(&at, part))?;
        fs::canonicalize(found)
            .ok()
            .filter(|real| real.starts_with(&self.0.root))
    }

    /// Returns whether there is such a settings file, readable or not.
    pub(crate) fn has_obsidian_setting(&self, name: &str) -> bool {
        fs::symlink_metadata(self.0.root.join(".obsidian").join(name)).is_ok()
    }

    /// A small settings file below `.obsidian`; `None` if it is missing or cannot be read as text.
    pub(crate) fn obsidian_setting(&self, name: &str) -> Option<String> {
        let path = self.0.root.join(".obsidian").join(name);
        let about = fs::metadata(&path).ok()?;
        if !about.is_file() || about.len() > NOTE_BYTES_MAX {
            return None;
        }
        fs::read_to_string(path).ok()
    }
}
