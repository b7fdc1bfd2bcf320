//! The facts as they were read, and those of a file kept as long as it is the same file.

use std::fs;
#[cfg(unix)]
use std::fs::Metadata;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use adjutant_core::MemoryState;
use jiff::Timestamp;
use uuid::Uuid;

use super::known::{Ages, Known};
use crate::rank::{Counted, Index, Query};

/// A file that was changed less than so many seconds before it was read is read again: a file
/// system may give two changes one time.
const SETTLED_SECONDS: i64 = 2;

/// Facts in the order of the file, or oldest first, and what was found out about them.
pub(crate) struct Facts {
    facts: Vec<Known>,
    /// The words of all facts, once they are looked for. `None`: the facts are read anew the next
    /// time.
    index: Option<OnceLock<Index>>,
    ages: OnceLock<Ages>,
    withdrawn: Mutex<Option<Withdrawn>>,
}

/// The newest change of the history, and the words that were withdrawn up to it.
type Withdrawn = ((Uuid, MemoryState), Arc<[String]>);

impl Facts {
    /// Facts that may be kept.
    pub(crate) fn to_keep(facts: Vec<Known>) -> Self {
        Self {
            facts,
            index: Some(OnceLock::new()),
            ages: OnceLock::new(),
            withdrawn: Mutex::default(),
        }
    }

    /// Facts that are read anew the next time.
    pub(crate) fn once(facts: Vec<Known>) -> Self {
        Self {
            facts,
            index: None,
            ages: OnceLock::new(),
            withdrawn: Mutex::default(),
        }
    }

    /// Returns how old the facts are.
    pub(crate) fn ages(&self) -> &Ages {
        self.ages.get_or_init(|| Ages::of(&self.facts))
    }

    /// Returns the facts from newest to oldest, each with its place.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = (usize, &Known)> {
        self.ages()
            .order
            .iter()
            .rev()
            .filter_map(|at| Some((*at, self.facts.get(*at)?)))
    }

    /// Counts the words of a query in each fact.
    pub(crate) fn counted(&self, query: &Query) -> Vec<Counted> {
        let contents = || self.facts.iter().map(|fact| fact.content.as_str());
        match &self.index {
            Some(index) => query.count_in(index.get_or_init(|| Index::of(contents()))),
            None => contents().map(|content| query.count(content)).collect(),
        }
    }

    /// Returns the words that were withdrawn up to a change, if they are known.
    pub(crate) fn withdrawn_up_to(&self, newest: (Uuid, MemoryState)) -> Option<Arc<[String]>> {
        let known = self
            .withdrawn
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        known
            .as_ref()
            .filter(|(known, _)| *known == newest)
            .map(|(_, words)| words.clone())
    }

    /// Keeps the words that were withdrawn up to a change.
    pub(crate) fn keep_withdrawn(&self, newest: (Uuid, MemoryState), words: &Arc<[String]>) {
        *self
            .withdrawn
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some((newest, words.clone()));
    }
}

impl Deref for Facts {
    type Target = [Known];

    fn deref(&self) -> &[Known] {
        &self.facts
    }
}

/// The facts that were read last.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Option<(Mark, Arc<Facts>)>>);

impl Kept {
    /// Returns the facts of a file if it is the one that was read.
    pub(crate) fn get(&self, mark: &Mark) -> Option<Arc<Facts>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref()
            .filter(|(known, _)| known == mark)
            .map(|(_, facts)| facts.clone())
    }

    /// Keeps the facts of a file. `before` and `after` reading it; it is in doubt if they differ,
    /// or if it was changed just before `now`.
    pub(crate) fn put(
        &self,
        before: Mark,
        after: Option<&Mark>,
        now: Timestamp,
        facts: &Arc<Facts>,
    ) {
        let is_settled = before
            .changed()
            .is_some_and(|at| now.duration_since(at).as_secs() >= SETTLED_SECONDS);
        let is_sure = is_settled && after == Some(&before);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            is_sure.then(|| (before, facts.clone()));
    }
}

/// A mark that tells a file from what it was before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    path: PathBuf,
    bytes: u64,
    modified: SystemTime,
    #[cfg(unix)]
    inode: (u64, u64, i64, i64),
}

impl Mark {
    /// `None`: there is no such file, or the system does not say.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let about = fs::metadata(path).ok()?;
        Some(Self {
            path: path.to_owned(),
            bytes: about.len(),
            modified: about.modified().ok()?,
            #[cfg(unix)]
            inode: inode(&about),
        })
    }

    fn changed(&self) -> Option<Timestamp> {
        self.modified.try_into().ok()
    }
}

/// The file itself, and when anything about it was changed, which no program can set.
#[cfg(unix)]
fn inode(about: &Metadata) -> (u64, u64, i64, i64) {
    use std::os::unix::fs::MetadataExt as _;
    (about.dev(), about.ino(), about.ctime(), about.ctime_nsec())
}
