//! All notes of a vault.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use unicode_normalization::UnicodeNormalization;

use super::path::is_note_name;
use super::{NOTE_BYTES_MAX, Vault};
use crate::VaultError;

/// Notes that are looked at, at most.
pub(crate) const NOTES_MAX: usize = 100_000;
/// Folders in folders.
const DEPTH_MAX: usize = 32;
/// Bytes in which a note's front matter is looked for.
const HEAD_BYTES: u64 = 16 * 1024;
/// Threads that read files side by side.
const THREADS_MAX: usize = 8;

/// A note that was come upon.
#[derive(Debug, Clone)]
pub(crate) struct Walked {
    /// Relative to the vault, composed, with `/`.
    pub(crate) path: String,
    pub(crate) real: PathBuf,
}

/// What a walk found.
#[derive(Debug)]
pub(crate) struct Walk {
    /// In the order of their paths.
    pub(crate) notes: Vec<Walked>,
    /// There are more than [`NOTES_MAX`].
    pub(crate) more: bool,
}

impl Vault {
    /// All notes below a folder. Hidden folders and files are no notes; symbolic links are not
    /// followed, so nothing is found twice and nothing outside.
    pub(crate) fn walk(&self, folder: Option<&str>) -> Result<Walk, VaultError> {
        self.check_root()?;
        let mut walk = Walk {
            notes: Vec::new(),
            more: false,
        };
        let mut start = self.root().to_owned();
        for part in folder.into_iter().flat_map(|folder| folder.split('/')) {
            match self
                .entry(&start, part)
                .filter(|found| fs::symlink_metadata(found).is_ok_and(|about| about.is_dir()))
            {
                Some(found) => start = found,
                None => {
                    return Err(VaultError::NoSuchNote {
                        name: format!("{}/", folder.unwrap_or_default()),
                        nearest: Vec::new(),
                    });
                }
            }
        }
        let prefix = folder
            .map(|folder| format!("{folder}/"))
            .unwrap_or_default();
        descend(&start, &prefix, 0, &mut walk);
        walk.notes.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(walk)
    }
}

/// All notes below a folder that is known to be inside the vault.
pub(crate) fn below(folder: &Path, name: &str) -> Vec<Walked> {
    let mut walk = Walk {
        notes: Vec::new(),
        more: false,
    };
    let prefix = if name.is_empty() {
        String::new()
    } else {
        format!("{name}/")
    };
    descend(folder, &prefix, 0, &mut walk);
    walk.notes.sort_by(|one, other| one.path.cmp(&other.path));
    walk.notes
}

fn descend(folder: &Path, prefix: &str, depth: usize, walk: &mut Walk) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.starts_with('.') {
            continue;
        }
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() {
            if depth < DEPTH_MAX {
                let prefix = format!("{prefix}{}/", composed(name));
                descend(&entry.path(), &prefix, depth + 1, walk);
            }
        } else if kind.is_file() && is_note_name(name) {
            if walk.notes.len() == NOTES_MAX {
                walk.more = true;
                return;
            }
            walk.notes.push(Walked {
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

/// Reads the notes side by side and keeps what `look` makes of each, in the order of the notes. A
/// note that is too large, or that vanishes in between, is left out; one that is not UTF-8 is read
/// with its broken bytes replaced.
pub(crate) fn read_all<T: Send>(
    notes: &[Walked],
    look: impl Fn(&Walked, &str) -> Option<T> + Sync,
) -> Vec<T> {
    let part = Part {
        bytes_max: NOTE_BYTES_MAX,
        is_whole: true,
    };
    read_with(notes, part, |note, bytes| {
        look(note, &String::from_utf8_lossy(bytes))
    })
}

/// The same for the beginnings of the notes, where their front matter is: 16 KiB of each.
pub(crate) fn read_heads<T: Send>(
    notes: &[Walked],
    look: impl Fn(&Walked, &str) -> Option<T> + Sync,
) -> Vec<T> {
    let part = Part {
        bytes_max: HEAD_BYTES,
        is_whole: false,
    };
    read_with(notes, part, |note, bytes| {
        look(note, &String::from_utf8_lossy(bytes))
    })
}

/// The part of a file that is read.
#[derive(Clone, Copy)]
struct Part {
    bytes_max: u64,
    /// A file that has more is not read at all.
    is_whole: bool,
}

/// Reads a part of a file into `bytes`. `false`: it has more than is read.
fn read_part(path: &Path, part: Part, bytes: &mut Vec<u8>) -> io::Result<bool> {
    bytes.clear();
    let file = fs::File::open(path)?;
    let size = file.metadata()?.len();
    if part.is_whole && size > part.bytes_max {
        return Ok(false);
    }
    // It may grow in between, and some files say nothing of their size.
    let room = if part.is_whole {
        part.bytes_max + 1
    } else {
        part.bytes_max
    };
    bytes.reserve(usize::try_from(size.min(part.bytes_max)).unwrap_or_default());
    file.take(room).read_to_end(bytes)?;
    Ok(bytes.len() as u64 <= part.bytes_max)
}

/// Reads a part of each. A thread reads all of its files into the same memory.
fn read_with<T: Send>(
    notes: &[Walked],
    part: Part,
    look: impl Fn(&Walked, &[u8]) -> Option<T> + Sync,
) -> Vec<T> {
    let threads =
        std::thread::available_parallelism().map_or(1, |count| count.get().min(THREADS_MAX));
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let (mut mine, mut bytes) = (Vec::new(), Vec::new());
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(note) = notes.get(at) else { break };
                    if read_part(&note.real, part, &mut bytes).is_ok_and(|is_read| is_read)
                        && let Some(seen) = look(note, &bytes)
                    {
                        mine.push((at, seen));
                    }
                }
                found
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner)
                    .append(&mut mine);
            });
        }
    });
    let mut found = found
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, seen)| seen).collect()
}
