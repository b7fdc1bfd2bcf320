//! A walk over all notes of a vault, and reading them in parallel.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use unicode_normalization::UnicodeNormalization;

use super::path::is_note_name;
use super::{NOTE_BYTES_MAX, Vault};
use crate::VaultError;
use crate::outside_file::open_regular_file;

/// Number of notes that a walk returns.
pub(crate) const NOTES_MAX: usize = 100_000;
/// Levels of folders that a walk descends.
const DEPTH_MAX: usize = 32;
/// Bytes at the beginning of a note in which its front matter is read.
const HEAD_BYTES: u64 = 16 * 1024;
/// Number of threads that read files in parallel.
const THREADS_MAX: usize = 8;

/// A note that a walk found.
#[derive(Debug, Clone)]
pub(crate) struct NoteFile {
    /// The path relative to the vault, composed, with `/`.
    pub(crate) path: String,
    pub(crate) real: PathBuf,
}

/// The result of a walk.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// In the order of their paths.
    pub(crate) notes: Vec<NoteFile>,
    /// True if there are more than [`NOTES_MAX`].
    pub(crate) is_truncated: bool,
    /// Number of notes that were left out because their paths are excluded.
    pub(crate) excluded: usize,
}

impl Vault {
    /// Returns all notes below a folder. Hidden folders and files are skipped; symbolic links are
    /// not followed, so no note is found twice and none outside the vault.
    pub(crate) fn walk(&self, folder: Option<&str>) -> Result<Walk, VaultError> {
        self.check_root()?;
        let mut start = self.root().to_owned();
        let is_dir =
            |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
        for part in folder.into_iter().flat_map(|folder| folder.split('/')) {
            start = self.entry(&start, part).filter(is_dir).ok_or_else(|| {
                VaultError::no_such_note(format!("{}/", folder.unwrap_or_default()))
            })?;
        }
        Ok(list_notes(&start, folder.unwrap_or_default()))
    }
}

/// Returns all notes below a folder that is known to be inside the vault. `name`: its path there,
/// empty for the vault itself.
pub(crate) fn list_notes(folder: &Path, name: &str) -> Walk {
    let mut walk = Walk::default();
    let prefix = match name {
        "" => String::new(),
        name => format!("{name}/"),
    };
    visit_folder(folder, &prefix, 0, &mut walk);
    walk.notes.sort_by(|one, other| one.path.cmp(&other.path));
    walk
}

fn visit_folder(folder: &Path, prefix: &str, depth: usize, walk: &mut Walk) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        // Obsidian's settings, its trash and our own temporary files are hidden.
        if name.starts_with('.') {
            continue;
        }
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() {
            if depth < DEPTH_MAX {
                let prefix = format!("{prefix}{}/", composed(name));
                visit_folder(&entry.path(), &prefix, depth + 1, walk);
            }
        } else if kind.is_file() && is_note_name(name) {
            if walk.notes.len() == NOTES_MAX {
                walk.is_truncated = true;
                return;
            }
            walk.notes.push(NoteFile {
                path: format!("{prefix}{}", composed(name)),
                real: entry.path(),
            });
        }
    }
}

fn composed(name: &str) -> String {
    if name.is_ascii() {
        name.to_owned()
    } else {
        name.nfc().collect()
    }
}

/// Reads the notes in parallel and returns the results of `visit`, in the order of the notes. A
/// note that is too large, or that vanishes in between, is skipped; one that is not UTF-8 is read
/// with its invalid bytes replaced.
pub(crate) fn read_all<T: Send>(
    notes: &[NoteFile],
    visit: impl Fn(usize, &NoteFile, &str) -> Option<T> + Sync,
) -> Vec<T> {
    let whole = Part {
        bytes_max: NOTE_BYTES_MAX,
        is_whole: true,
    };
    read_with(notes, whole, visit)
}

/// Does the same for the beginnings of the notes, where their front matter is: 16 KiB of each.
pub(crate) fn read_heads<T: Send>(
    notes: &[NoteFile],
    visit: impl Fn(&NoteFile, &str) -> Option<T> + Sync,
) -> Vec<T> {
    let head = Part {
        bytes_max: HEAD_BYTES,
        is_whole: false,
    };
    read_with(notes, head, |_, note, text| visit(note, text))
}

/// The part of a file that is read.
#[derive(Clone, Copy)]
struct Part {
    bytes_max: u64,
    /// True if a longer file is not read at all.
    is_whole: bool,
}

/// Reads a part of a file into `bytes`. Returns false if the file has more than is read.
fn read_part(path: &Path, part: Part, bytes: &mut Vec<u8>) -> io::Result<bool> {
    bytes.clear();
    let file = open_regular_file(path)?;
    let size = file.metadata()?.len();
    if part.is_whole && size > part.bytes_max {
        return Ok(false);
    }
    // The file may grow in between, and some files (`/proc`) report no size.
    let bytes_read_max = part.bytes_max + u64::from(part.is_whole);
    bytes.reserve(usize::try_from(size.min(part.bytes_max)).unwrap_or_default());
    file.take(bytes_read_max).read_to_end(bytes)?;
    Ok(bytes.len() as u64 <= part.bytes_max)
}

/// Reads a part of each file. Each thread reads all of its files into the same buffer.
fn read_with<T: Send>(
    notes: &[NoteFile],
    part: Part,
    visit: impl Fn(usize, &NoteFile, &str) -> Option<T> + Sync,
) -> Vec<T> {
    let threads =
        std::thread::available_parallelism().map_or(1, |count| count.get().min(THREADS_MAX));
    // Threads take the next note from a counter, so that one with large notes does not hold up the
    // others.
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                // Each thread keeps its results, and takes the shared lock once.
                let (mut own, mut bytes) = (Vec::new(), Vec::new());
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(note) = notes.get(at) else { break };
                    if read_part(&note.real, part, &mut bytes).is_ok_and(|is_read| is_read)
                        // A note that is not UTF-8 is still found by the words in it that are.
                        && let Some(result) = visit(at, note, &String::from_utf8_lossy(&bytes))
                    {
                        own.push((at, result));
                    }
                }
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                found.append(&mut own);
            });
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    // The threads finish in any order.
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, result)| result).collect()
}
