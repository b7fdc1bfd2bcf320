//! A simulated disk that may lose unsynced data.

use std::collections::BTreeMap;
use std::path::Path;

use crate::dice::Dice;
use crate::power::record::Operation;

/// The unit that a disk writes completely or not at all, in bytes.
const SECTOR: usize = 512;

/// The part of unsynced data that survives a power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// All of it survives.
    Everything,
    /// Nothing survives.
    Nothing,
    /// All but the last half of the last write survives.
    FirstHalf,
    /// All but the first half of the last write survives.
    LastHalf,
    /// Each sector and each name survives or not, at random.
    Sectors(u64),
}

#[derive(Debug, Clone)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Truncate { size: usize },
}

/// The content of a file, independent of its name.
#[derive(Debug, Default)]
struct File {
    /// The synced content.
    kept: Vec<u8>,
    /// Writes since the last sync.
    changes: Vec<Change>,
}

/// A folder on a disk.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    files: Vec<File>,
    /// The synced directory entries.
    kept: BTreeMap<String, usize>,
    names: BTreeMap<String, usize>,
    /// The file that was written last.
    last: usize,
}

impl Disk {
    /// Applies a recorded operation.
    pub(crate) fn play(&mut self, operation: &Operation) {
        match operation {
            Operation::Create { name } => {
                self.files.push(File::default());
                self.names.insert(name.clone(), self.files.len() - 1);
            }
            Operation::Write { name, at, bytes } => {
                self.change(
                    name,
                    Change::Write {
                        at: *at,
                        bytes: bytes.clone(),
                    },
                );
            }
            Operation::Truncate { name, size } => {
                self.change(name, Change::Truncate { size: *size })
            }
            Operation::Sync { name } => {
                let file = &mut self.files[self.names[name]];
                for change in std::mem::take(&mut file.changes) {
                    apply(&mut file.kept, &change);
                }
            }
            Operation::Unlink { name } => drop(self.names.remove(name).unwrap()),
            Operation::Rename { name, to } => {
                let file = self.names.remove(name).unwrap();
                self.names.insert(to.clone(), file);
            }
            Operation::SyncFolder => self.kept.clone_from(&self.names),
            Operation::Fail { .. } | Operation::Reply(_) | Operation::Tool(_) => {}
        }
    }

    fn change(&mut self, name: &str, change: Change) {
        self.last = self.names[name];
        self.files[self.last].changes.push(change);
    }

    /// Returns the files that are left after a power loss.
    pub(crate) fn after(&self, left: Left) -> BTreeMap<String, Vec<u8>> {
        let mut dice = Dice(match left {
            Left::Sectors(seed) => seed,
            _ => 0,
        });
        let names = match left {
            Left::Nothing => self.kept.clone(),
            Left::Sectors(_) => self.some_names(&mut dice),
            _ => self.names.clone(),
        };
        names
            .into_iter()
            .map(|(name, file)| (name, self.content(file, left, &mut dice)))
            .collect()
    }

    /// Returns the directory entries; each unsynced change of them survives or not.
    fn some_names(&self, dice: &mut Dice) -> BTreeMap<String, usize> {
        let mut names = self.kept.clone();
        for name in self.kept.keys().chain(self.names.keys()) {
            if dice.roll(2) == 0 {
                match self.names.get(name) {
                    Some(file) => drop(names.insert(name.clone(), *file)),
                    None => drop(names.remove(name)),
                }
            }
        }
        names
    }

    fn content(&self, file: usize, left: Left, dice: &mut Dice) -> Vec<u8> {
        let File { kept, changes } = &self.files[file];
        let mut content = kept.clone();
        if left == Left::Nothing {
            return content;
        }
        for (number, change) in changes.iter().enumerate() {
            let is_last = file == self.last && number + 1 == changes.len();
            match change {
                Change::Write { at, bytes } => {
                    let half = (at + bytes.len() / 2) / SECTOR * SECTOR;
                    for (start, sector) in sectors(*at, bytes) {
                        let is_there = match left {
                            Left::FirstHalf => !is_last || start < half,
                            Left::LastHalf => !is_last || start >= half,
                            Left::Sectors(_) => dice.roll(2) == 0,
                            Left::Everything | Left::Nothing => true,
                        };
                        if is_there {
                            write(&mut content, start, sector);
                        }
                    }
                }
                Change::Truncate { .. } => {
                    if !matches!(left, Left::Sectors(_)) || dice.roll(2) == 0 {
                        apply(&mut content, change);
                    }
                }
            }
        }
        content
    }
}

fn apply(content: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { at, bytes } => write(content, *at, bytes),
        Change::Truncate { size } => content.resize(*size, 0),
    }
}

fn write(content: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    content.resize(content.len().max(at + bytes.len()), 0);
    content[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Splits a write at the borders of sectors. Returns the parts with their offsets.
fn sectors(at: usize, bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let first = (SECTOR - at % SECTOR).min(bytes.len());
    let (head, rest) = bytes.split_at(first);
    let rest = rest
        .chunks(SECTOR)
        .enumerate()
        .map(move |(n, part)| (at + first + n * SECTOR, part));
    std::iter::once((at, head)).chain(rest)
}

/// Writes files to an empty folder.
pub(crate) fn put(files: &BTreeMap<String, Vec<u8>>, folder: &Path) {
    for (name, content) in files {
        std::fs::write(folder.join(name), content).unwrap();
    }
}
