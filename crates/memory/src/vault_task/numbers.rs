//! The numbers of tasks, by which users and models name them. They are matched with the lines
//! whenever the notes are read, because the owner edits these too.

use std::collections::HashMap;
use std::hash::Hash;

use adjutant_tools::TaskId;
use jiff::civil::Date;
use jiff::{Timestamp, Zoned};
use serde::{Deserialize, Serialize};

use super::locate::TaskAddress;
use super::note::VaultTask;

/// The line that a number stands for, and its times. Stored as JSON by the index.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskRecord {
    pub(super) path: String,
    pub(super) line: String,
    /// The text of the task, with its tags.
    words: String,
    nth: usize,
    around: String,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
    pub(super) completed_at: Option<Timestamp>,
    /// The time since which no line matches the number.
    pub(super) gone_at: Option<Timestamp>,
}

/// A number and the line that it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NumberedTask {
    pub(super) id: TaskId,
    pub(super) record: TaskRecord,
}

impl TaskRecord {
    /// Returns the record of a task that gets a number now.
    pub(super) fn new(task: &VaultTask, now: &Zoned) -> Self {
        let record = Self {
            created_at: start_or_now(task.created, now),
            updated_at: now.timestamp(),
            ..Self::default()
        };
        record.updated_from(task, now)
    }

    /// Returns the record with the current state of its task.
    pub(super) fn updated_from(&self, task: &VaultTask, now: &Zoned) -> Self {
        let is_other = self.line != task.address.line;
        Self {
            // A time that was recorded before stays, since the line has only the day.
            completed_at: task.status.is_closed().then(|| {
                self.completed_at
                    .unwrap_or_else(|| start_or_now(task.done, now))
            }),
            updated_at: if is_other {
                now.timestamp()
            } else {
                self.updated_at
            },
            ..self.moved_to(&task.address, &task.words)
        }
    }

    /// Returns the record of a task whose line is not found any more.
    pub(super) fn marked_gone(&self, now: &Zoned) -> Self {
        Self {
            gone_at: Some(now.timestamp()),
            ..self.clone()
        }
    }

    /// Returns the record with another address.
    pub(super) fn moved_to(&self, address: &TaskAddress, words: &str) -> Self {
        Self {
            path: address.path.clone(),
            line: address.line.clone(),
            words: words.to_owned(),
            nth: address.nth,
            around: address.around.clone(),
            gone_at: None,
            ..self.clone()
        }
    }

    /// Returns true if the record is of the line at an address.
    pub(super) fn is_at(&self, address: &TaskAddress) -> bool {
        self.gone_at.is_none()
            && (&self.path, &self.line, self.nth) == (&address.path, &address.line, address.nth)
    }

    /// Returns the address of the line as it was read last.
    pub(super) fn address(&self) -> TaskAddress {
        TaskAddress {
            path: self.path.clone(),
            line: self.line.clone(),
            nth: self.nth,
            of: 1,
            around: self.around.clone(),
            note: String::new(),
        }
    }
}

impl NumberedTask {
    pub(super) fn with_record(&self, record: TaskRecord) -> Self {
        Self {
            id: self.id,
            record,
        }
    }
}

/// Returns the start of a day in the user's time zone, or now if no day is known.
fn start_or_now(day: Option<Date>, now: &Zoned) -> Timestamp {
    let start = day.and_then(|day| day.to_zoned(now.time_zone().clone()).ok());
    start.as_ref().unwrap_or(now).timestamp()
}

/// Returns, for each task, the index of the number that stands for it, if that is certain. The
/// number of a line that was gone stands for it again if it comes back.
///
/// A line with another text is another task: a user who has its old number in mind does not mean
/// it.
pub(super) fn match_tasks(tasks: &[VaultTask], numbers: &[NumberedTask]) -> Vec<Option<usize>> {
    let mut matching = Matching {
        tasks,
        numbers,
        found: vec![None; tasks.len()],
        taken: vec![false; numbers.len()],
    };
    // From the most to the least certain: each step pairs only what is left by those before.
    matching.match_same_lines(false);
    matching.match_same_lines(true);
    matching.match_unique(
        |task| (task.address.path.as_str(), task.words.as_str()),
        |record| (&record.path, &record.words),
    );
    matching.match_unique(|task| task.address.line.as_str(), |record| &record.line);
    matching.match_unique(|task| task.words.as_str(), |record| &record.words);
    matching.found
}

/// A matching of tasks and numbers, made in several passes from the most to the least certain.
struct Matching<'a> {
    tasks: &'a [VaultTask],
    numbers: &'a [NumberedTask],
    found: Vec<Option<usize>>,
    taken: Vec<bool>,
}

/// Tasks and numbers that have a key in common, by their indexes.
type Groups<K> = HashMap<K, (Vec<usize>, Vec<usize>)>;

impl<'a> Matching<'a> {
    fn groups<K: Eq + Hash>(
        &self,
        gone: bool,
        of_task: impl Fn(&'a VaultTask) -> K,
        of_record: impl Fn(&'a TaskRecord) -> K,
    ) -> Groups<K> {
        let mut groups: Groups<K> = HashMap::new();
        for (at, (task, found)) in self.tasks.iter().zip(&self.found).enumerate() {
            if found.is_none() {
                groups.entry(of_task(task)).or_default().0.push(at);
            }
        }
        for (at, (number, is_taken)) in self.numbers.iter().zip(&self.taken).enumerate() {
            if !is_taken && number.record.gone_at.is_some() == gone {
                let group = groups.entry(of_record(&number.record)).or_default();
                group.1.push(at);
            }
        }
        groups
    }

    fn pair(&mut self, task: usize, number: usize) {
        if let (Some(found), Some(taken)) = (self.found.get_mut(task), self.taken.get_mut(number)) {
            *found = Some(number);
            *taken = true;
        }
    }

    /// Matches lines of a note with the same text: in their order if there are as many as before,
    /// else by their neighbours.
    fn match_same_lines(&mut self, gone: bool) {
        let groups = self.groups(
            gone,
            |task| (task.address.path.as_str(), task.address.line.as_str()),
            |record| (record.path.as_str(), record.line.as_str()),
        );
        for (tasks, mut numbers) in groups.into_values() {
            // None was added or removed, so their order tells which is which.
            if tasks.len() == numbers.len() {
                numbers.sort_by_key(|at| self.numbers.get(*at).map(|number| number.record.nth));
                for (task, number) in tasks.into_iter().zip(numbers) {
                    self.pair(task, number);
                }
                continue;
            }
            let around_task =
                |at: &usize| self.tasks.get(*at).map(|task| task.address.around.as_str());
            let around_number = |at: &usize| {
                self.numbers
                    .get(*at)
                    .map(|number| number.record.around.as_str())
            };
            let pairs: Vec<(usize, usize)> = tasks
                .iter()
                .filter(|task| {
                    tasks
                        .iter()
                        .filter(|other| around_task(other) == around_task(task))
                        .count()
                        == 1
                })
                .filter_map(|task| {
                    let mut same = numbers
                        .iter()
                        .filter(|number| around_number(number) == around_task(task));
                    same.next()
                        .filter(|_| same.next().is_none())
                        .map(|number| (*task, *number))
                })
                .collect();
            for (task, number) in pairs {
                self.pair(task, number);
            }
        }
    }

    /// Matches a task and a number that are the only ones with their key.
    fn match_unique<K: Eq + Hash>(
        &mut self,
        of_task: impl Fn(&'a VaultTask) -> K,
        of_record: impl Fn(&'a TaskRecord) -> K,
    ) {
        for (tasks, numbers) in self.groups(false, of_task, of_record).into_values() {
            if let ([task], [number]) = (tasks.as_slice(), numbers.as_slice()) {
                self.pair(*task, *number);
            }
        }
    }
}
