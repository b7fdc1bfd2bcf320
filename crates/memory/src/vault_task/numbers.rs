//! The numbers of lines: matched anew whenever the notes are read, because their owner changes them
//! too.

use std::collections::HashMap;
use std::hash::Hash;

use adjutant_core::TaskId;
use jiff::{Timestamp, Zoned};
use serde::{Deserialize, Serialize};

use super::note::VaultTask;
use super::place::TaskAddress;

/// The task that a number stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    pub(super) path: String,
    pub(super) line: String,
    /// The words of the task.
    words: String,
    nth: usize,
    around: String,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
    pub(super) completed_at: Option<Timestamp>,
    /// Since when no line is it.
    pub(super) gone_at: Option<Timestamp>,
}

/// A number and what it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Numbered {
    pub(super) id: TaskId,
    pub(super) known: Known,
}

impl Known {
    /// Returns what a new number stands for.
    pub(super) fn new(task: &VaultTask, now: &Zoned) -> Self {
        let created_at = task
            .created
            .and_then(|date| date.to_zoned(now.time_zone().clone()).ok());
        let created_at = created_at.map_or_else(|| now.timestamp(), |at| at.timestamp());
        let known = Self {
            path: String::new(),
            line: String::new(),
            words: String::new(),
            nth: 0,
            around: String::new(),
            created_at,
            updated_at: now.timestamp(),
            completed_at: None,
            gone_at: None,
        };
        known.of(task, now)
    }

    /// Returns the same as it reads now.
    pub(super) fn of(&self, task: &VaultTask, now: &Zoned) -> Self {
        let is_other = self.line != task.address.line;
        let done_at = || {
            let day = task
                .done
                .and_then(|date| date.to_zoned(now.time_zone().clone()).ok());
            day.map_or_else(|| now.timestamp(), |at| at.timestamp())
        };
        Self {
            completed_at: task
                .status
                .is_closed()
                .then(|| self.completed_at.unwrap_or_else(done_at)),
            updated_at: if is_other {
                now.timestamp()
            } else {
                self.updated_at
            },
            ..self.at(&task.address, &task.words)
        }
    }

    /// Returns the same as a line that is not there any more.
    pub(super) fn gone(&self, now: &Zoned) -> Self {
        Self {
            gone_at: Some(now.timestamp()),
            ..self.clone()
        }
    }

    /// Returns the same at another place.
    pub(super) fn at(&self, address: &TaskAddress, words: &str) -> Self {
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

    /// Returns whether it is the line of an address.
    pub(super) fn stands_at(&self, address: &TaskAddress) -> bool {
        self.gone_at.is_none()
            && (&self.path, &self.line, self.nth) == (&address.path, &address.line, address.nth)
    }

    /// Returns the address of the line as it was when it was last seen.
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

/// Returns for each task the place of the number that stands for it, if that is sure. Numbers of
/// lines that are gone stand for them again if they come back.
///
/// A line with other words is another task: whoever has its old number in mind does not mean it.
pub(super) fn matched(tasks: &[VaultTask], numbers: &[Numbered]) -> Vec<Option<usize>> {
    let mut matching = Matching {
        tasks,
        numbers,
        found: vec![None; tasks.len()],
        taken: vec![false; numbers.len()],
    };
    matching.same_lines(false);
    matching.same_lines(true);
    matching.only(
        |task| (task.address.path.as_str(), task.words.as_str()),
        |known| (&known.path, &known.words),
    );
    matching.only(|task| task.address.line.as_str(), |known| &known.line);
    matching.only(|task| task.words.as_str(), |known| &known.words);
    matching.found
}

struct Matching<'a> {
    tasks: &'a [VaultTask],
    numbers: &'a [Numbered],
    found: Vec<Option<usize>>,
    taken: Vec<bool>,
}

/// Tasks and numbers that have something in common.
type Groups<K> = HashMap<K, (Vec<usize>, Vec<usize>)>;

impl<'a> Matching<'a> {
    fn groups<K: Eq + Hash>(
        &self,
        gone: bool,
        of_task: impl Fn(&'a VaultTask) -> K,
        of_known: impl Fn(&'a Known) -> K,
    ) -> Groups<K> {
        let mut groups: Groups<K> = HashMap::new();
        for (at, task) in self
            .tasks
            .iter()
            .enumerate()
            .filter(|(at, _)| self.found.get(*at) == Some(&None))
        {
            groups.entry(of_task(task)).or_default().0.push(at);
        }
        for (at, number) in self
            .numbers
            .iter()
            .enumerate()
            .filter(|(at, _)| self.taken.get(*at) == Some(&false))
        {
            if number.known.gone_at.is_some() == gone {
                groups
                    .entry(of_known(&number.known))
                    .or_default()
                    .1
                    .push(at);
            }
        }
        groups
    }

    fn take(&mut self, task: usize, number: usize) {
        if let (Some(found), Some(taken)) = (self.found.get_mut(task), self.taken.get_mut(number)) {
            *found = Some(number);
            *taken = true;
        }
    }

    /// Lines of a note that read the same: in their order if there are as many as before, else by
    /// their neighbours.
    fn same_lines(&mut self, gone: bool) {
        let groups = self.groups(
            gone,
            |task| (task.address.path.as_str(), task.address.line.as_str()),
            |known| (known.path.as_str(), known.line.as_str()),
        );
        for (tasks, mut numbers) in groups.into_values() {
            if tasks.len() == numbers.len() {
                numbers.sort_by_key(|at| self.numbers.get(*at).map(|number| number.known.nth));
                for (task, number) in tasks.into_iter().zip(numbers) {
                    self.take(task, number);
                }
                continue;
            }
            let around_task =
                |at: &usize| self.tasks.get(*at).map(|task| task.address.around.as_str());
            let around_number = |at: &usize| {
                self.numbers
                    .get(*at)
                    .map(|number| number.known.around.as_str())
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
                self.take(task, number);
            }
        }
    }

    /// Those that are the only ones on both sides.
    fn only<K: Eq + Hash>(
        &mut self,
        of_task: impl Fn(&'a VaultTask) -> K,
        of_known: impl Fn(&'a Known) -> K,
    ) {
        for (tasks, numbers) in self.groups(false, of_task, of_known).into_values() {
            if let ([task], [number]) = (tasks.as_slice(), numbers.as_slice()) {
                self.take(*task, *number);
            }
        }
    }
}
