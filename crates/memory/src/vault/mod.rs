//! A vault: a folder of Markdown that belongs to its owner, such as Obsidian's. Opens it, finds
//! notes by name and content, reads and replaces them.

mod discover; // find vaults on this machine
mod exclusion; // notes that are kept from the assistant
mod file; // read and replace one file
mod lock; // one writer at a time
pub(crate) mod markdown; // blocks, headings, code, comments
pub(crate) mod note; // front matter, tags, aliases, links
mod obsidian; // addresses that open in Obsidian
mod passage; // division of a note into passages
pub(crate) mod path; // names and paths of notes
mod ranking; // BM25 over notes and passages
mod search; // search and lists
pub(crate) mod walk; // all notes of a folder

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use unicode_normalization::{UnicodeNormalization, is_nfc};

use crate::VaultError;
use crate::outside_file::read_regular_file;
use crate::text::sha256_hex;

pub use discover::{System, UserFolders, find_vaults};
pub(crate) use exclusion::read_visible;
pub use file::NOTE_BYTES_MAX;
pub(crate) use file::{Readers, StoredText};
pub(crate) use lock::VaultLock;
pub use note::{Note, NoteText};
pub use path::NotePath;
pub(crate) use search::{Condition, parse_query};
pub use search::{NoteFilter, NoteHit, NoteList, NoteSearchResults};

/// An open vault. Cheap to clone; no content is kept in memory.
///
/// # Examples
///
/// ```
/// use adjutant_memory::{NoteFilter, Vault};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # std::fs::write(folder.path().join("Roses.md"), "Cut them in March. #garden")?;
/// let vault = Vault::open(folder.path())?;
/// let garden = NoteFilter { tag: Some("garden".to_owned()), limit: 10, ..NoteFilter::default() };
/// assert_eq!(vault.list(&garden)?.notes[0].path, "Roses.md");
/// assert_eq!(vault.search("when to cut roses", &NoteFilter::default())?.total, 1);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Vault(Arc<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    root: PathBuf,
    work: Option<PathBuf>,
    tag: String,
    /// Patterns of notes that are kept from the assistant.
    excluded: Vec<String>,
}

/// The place of a note on the disk.
#[derive(Debug)]
pub(crate) struct Located {
    /// The path with symbolic links resolved: the file that is read and replaced.
    pub(crate) real: PathBuf,
    pub(crate) exists: bool,
}

impl Vault {
    /// Opens a folder as a vault; it need not have a `.obsidian` folder.
    ///
    /// # Errors
    /// [`VaultError::Missing`], [`VaultError::NotAFolder`], or [`VaultError::Denied`] if it cannot
    /// be listed.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, VaultError> {
        let path = path.as_ref();
        // Resolved once: later checks compare with it, and a link to the vault may be changed
        // meanwhile.
        let root = fs::canonicalize(path).map_err(|error| VaultError::from_root(path, error))?;
        check_folder(&root, path)?;
        // A folder that may be entered and not listed would look like a vault without notes.
        fs::read_dir(&root).map_err(|error| VaultError::from_root(path, error))?;
        let tag = sha256_hex(root.as_os_str().as_encoded_bytes(), 8);
        Ok(Self(Arc::new(Inner {
            root,
            work: None,
            tag,
            excluded: Vec::new(),
        })))
    }

    /// Sets the folder in which files are prepared before they are moved into the vault, so that no
    /// watcher and no synchronisation sees half a file. Best a folder on the same file system as
    /// the vault; it is created when needed.
    ///
    /// Without it, or if it is on another file system (a rename cannot cross that), a file is
    /// prepared beside its target under a hidden name, `.adjutant-….tmp`, which Obsidian does not
    /// show.
    #[must_use]
    pub fn with_work_folder(self, folder: impl Into<PathBuf>) -> Self {
        self.change(|inner| inner.work = Some(folder.into()))
    }

    fn change(self, change: impl FnOnce(&mut Inner)) -> Self {
        let mut inner = Arc::unwrap_or_clone(self.0);
        change(&mut inner);
        Self(Arc::new(inner))
    }

    fn excluded_patterns(&self) -> &[String] {
        &self.0.excluded
    }

    /// Returns the folder of the vault, with symbolic links resolved.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.0.root
    }

    /// Returns the name of the vault: that of its folder.
    #[must_use]
    pub fn name(&self) -> String {
        folder_name(&self.0.root)
    }

    /// Waits until no other process writes to this vault, at most 10 seconds.
    pub(crate) fn lock(&self) -> Result<VaultLock, VaultError> {
        lock::acquire(&self.0.root, &self.0.tag)
    }

    /// Fails with [`VaultError::Missing`] if the folder itself is gone, instead of reporting every
    /// note as missing.
    fn check_root(&self) -> Result<(), VaultError> {
        check_folder(&self.0.root, &self.0.root)
    }

    /// Returns the place where the note is, or would be. Every symbolic link on the way has to stay
    /// inside the vault and lead to nothing hidden.
    ///
    /// The check and the use are two steps: a user with write access to the vault who swaps a
    /// folder for a link between them is not kept out. Such a user can change the notes anyway.
    pub(crate) fn locate(&self, path: &NotePath) -> Result<Located, VaultError> {
        self.check_root()?;
        let mut at = self.0.root.clone();
        let mut missing = false;
        for part in path.as_str().split('/') {
            if !missing {
                match self.entry(&at, part) {
                    Some(found) => {
                        // Part by part, so that no link leads out of the vault and back in.
                        at = fs::canonicalize(found)
                            .map_err(|error| VaultError::from_file(path.as_str(), "open", error))?;
                        self.check_inside(&at, path)?;
                        continue;
                    }
                    None => missing = true,
                }
            }
            at.push(part);
        }
        if !missing {
            let metadata = fs::metadata(&at)
                .map_err(|error| VaultError::from_file(path.as_str(), "open", error))?;
            if !metadata.is_file() {
                return Err(path.refused("it is not a file"));
            }
        }
        Ok(Located {
            real: at,
            exists: !missing,
        })
    }

    /// Returns the entry of this name, in any Unicode encoding of the name on the disk.
    fn entry(&self, folder: &Path, part: &str) -> Option<PathBuf> {
        let exact = folder.join(part);
        // A link that leads nowhere is an entry too: its name is not free.
        if fs::symlink_metadata(&exact).is_ok() {
            return Some(exact);
        }
        // `part` is composed; the name of a file made on another system may be decomposed. Only
        // names beyond ASCII can differ.
        if part.is_ascii() {
            return None;
        }
        fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
            let name = entry.file_name();
            let name = name.to_str()?;
            (!is_nfc(name) && name.nfc().eq(part.chars())).then(|| entry.path())
        })
    }

    /// Returns a path with its folders and its name as they are on the disk, if they differ only in
    /// case: two notes that differ so are one note on many systems.
    pub(crate) fn settle(&self, path: &NotePath) -> Result<NotePath, VaultError> {
        self.check_root()?;
        let mut at = self.0.root.clone();
        let mut parts = Vec::new();
        for part in path.as_str().split('/') {
            let found = self.entry(&at, part).is_none().then(|| {
                let wanted = path::case_folded(part);
                fs::read_dir(&at).ok()?.flatten().find_map(|entry| {
                    let name = entry.file_name();
                    let name = name.to_str()?;
                    (path::case_folded(name) == wanted).then(|| name.to_owned())
                })
            });
            let part = found.flatten().unwrap_or_else(|| part.to_owned());
            at.push(&part);
            parts.push(part);
        }
        NotePath::from_owner(&parts.join("/"))
    }

    fn check_inside(&self, real: &Path, path: &NotePath) -> Result<(), VaultError> {
        let Ok(inside) = real.strip_prefix(&self.0.root) else {
            return Err(path.refused("a symbolic link leads it out of the vault"));
        };
        // Else a link could lead a write into `.obsidian` or `.git`.
        let is_hidden = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
        if inside.components().any(is_hidden) {
            return Err(path.refused("a symbolic link leads it to something hidden"));
        }
        Ok(())
    }

    /// Reads a note. `None` if it does not exist.
    pub(crate) fn read_stored(&self, path: &NotePath) -> Result<Option<StoredText>, VaultError> {
        let located = self.locate(path)?;
        if located.exists {
            file::read_text(&located.real, path.as_str()).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Replaces the text that `before` read with `after`, or creates the note for these readers if
    /// there was none.
    /// Returns false if the file is no longer what was read: nothing was changed, read it again.
    /// The lock has to be held.
    pub(crate) fn replace(
        &self,
        _lock: &VaultLock,
        path: &NotePath,
        before: Option<&StoredText>,
        after: &str,
        readers: Readers,
    ) -> Result<bool, VaultError> {
        let located = self.locate(path)?;
        // The file was created or removed since it was read.
        if located.exists != before.is_some() {
            return Ok(false);
        }
        if after.len() as u64 > NOTE_BYTES_MAX {
            // It could be written, and never be read again.
            return Err(file::too_large(path.as_str(), after.len() as u64));
        }
        let staging = file::StagingArea {
            work: self.0.work.as_deref(),
            tag: &self.0.tag,
            name: path.as_str(),
            readers,
        };
        let done = file::replace(&located.real, before, after.as_bytes(), &staging);
        // If the vault vanished in between, say so, and not that the note is missing.
        done.map_err(|error| self.check_root().err().unwrap_or(error))
    }

    /// Removes a file if it still holds exactly `before`. The lock has to be held.
    pub(crate) fn remove(
        &self,
        _lock: &VaultLock,
        path: &NotePath,
        before: &StoredText,
    ) -> Result<bool, VaultError> {
        let located = self.locate(path)?;
        // An editor may have written since the text was read.
        if !located.exists || file::read_text(&located.real, path.as_str())? != *before {
            return Ok(false);
        }
        fs::remove_file(&located.real)
            .map_err(|error| VaultError::from_file(path.as_str(), "write", error))?;
        Ok(true)
    }

    /// Returns a folder of the vault as it is on the disk, in any Unicode encoding of its name.
    /// `None` if it does not exist, or a link leads it out of the vault.
    pub(crate) fn folder(&self, name: &str) -> Option<PathBuf> {
        let parts = name.split('/').filter(|part| !part.is_empty());
        let found = parts
            .into_iter()
            .try_fold(self.0.root.clone(), |at, part| self.entry(&at, part))?;
        fs::canonicalize(found)
            .ok()
            .filter(|real| real.starts_with(&self.0.root))
    }

    /// Returns true if a settings file below `.obsidian` exists, readable or not.
    pub(crate) fn has_obsidian_setting(&self, name: &str) -> bool {
        fs::symlink_metadata(self.0.root.join(".obsidian").join(name)).is_ok()
    }

    /// Reads a settings file below `.obsidian`. `None` if it is missing or cannot be read as text.
    pub(crate) fn obsidian_setting(&self, name: &str) -> Option<String> {
        let path = self.0.root.join(".obsidian").join(name);
        String::from_utf8(read_regular_file(&path, NOTE_BYTES_MAX).ok()?).ok()
    }
}

/// Checks that the vault's folder is there. `path`: its name in errors.
fn check_folder(root: &Path, path: &Path) -> Result<(), VaultError> {
    let metadata = fs::metadata(root).map_err(|error| VaultError::from_root(path, error))?;
    match metadata.is_dir() {
        true => Ok(()),
        false => Err(VaultError::NotAFolder {
            path: path.to_owned(),
        }),
    }
}

fn folder_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
