//! The task of the task assistant.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::UserId;

/// The longest task description, in Unicode characters.
pub const DESCRIPTION_CHARS_MAX: usize = 1000;

/// Days in which a deleted task can be brought back.
pub const DELETED_TASK_DAYS: i64 = 30;

/// A task's id: per user from 1, never reused. A string on every wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId(u64);

impl TaskId {
    /// The first one of a user.
    pub const FIRST: Self = Self(1);

    /// The one after this.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// `None` for 0: ids start at 1.
    #[must_use]
    pub fn new(number: u64) -> Option<Self> {
        (number > 0).then_some(Self(number))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<TaskId> for String {
    fn from(id: TaskId) -> Self {
        id.0.to_string()
    }
}

impl TryFrom<String> for TaskId {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.trim()
            .parse()
            .ok()
            .and_then(Self::new)
            .ok_or_else(|| format!("{text:?} is not a task id"))
    }
}

/// The words of a task: 1 to 1,000 Unicode characters, no control characters, trimmed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskDescription(String);

/// Text that cannot be a task's description.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidDescription {
    /// Nothing in it.
    #[error("a task needs a description")]
    Empty,
    /// Too long.
    #[error(
        "a task description has at most {DESCRIPTION_CHARS_MAX} characters, this one has {chars}"
    )]
    TooLong {
        /// How many it has.
        chars: usize,
    },
}

impl TaskDescription {
    /// Trims, replaces control characters by spaces, and checks the length.
    ///
    /// # Errors
    /// [`InvalidDescription`].
    pub fn new(text: &str) -> Result<Self, InvalidDescription> {
        let text: String = text
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let text = text.trim();
        let chars = text.chars().count();
        match chars {
            0 => Err(InvalidDescription::Empty),
            1..=DESCRIPTION_CHARS_MAX => Ok(Self(text.to_owned())),
            _ => Err(InvalidDescription::TooLong { chars }),
        }
    }

    /// The words.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TaskDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<TaskDescription> for String {
    fn from(text: TaskDescription) -> Self {
        text.0
    }
}

impl TryFrom<String> for TaskDescription {
    type Error = InvalidDescription;
    fn try_from(text: String) -> Result<Self, InvalidDescription> {
        Self::new(&text)
    }
}

/// Something the person wants to do. No due date: dates stay in its words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Per user from 1, never reused.
    pub id: TaskId,
    /// Whose it is.
    pub user_id: UserId,
    /// Its words.
    pub description: TaskDescription,
    /// Whether it is done.
    pub completed: bool,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was done, if it is.
    pub completed_at: Option<Timestamp>,
}

/// Which tasks to list. Default: all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskFilter {
    /// Open ones.
    Pending,
    /// Done ones.
    Completed,
    /// Every one.
    #[default]
    All,
}

impl TaskFilter {
    /// Whether a task belongs to the selection.
    #[must_use]
    pub fn takes(self, task: &Task) -> bool {
        match self {
            Self::Pending => !task.completed,
            Self::Completed => task.completed,
            Self::All => true,
        }
    }
}

/// A change of one user's tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum TaskChange {
    /// A new task.
    Add {
        /// Its words.
        description: TaskDescription,
    },
    /// Other words.
    Update {
        /// Which.
        id: TaskId,
        /// The new words.
        description: TaskDescription,
    },
    /// Done.
    Complete {
        /// Which.
        id: TaskId,
    },
    /// Gone, and to be brought back for [`DELETED_TASK_DAYS`].
    Delete {
        /// Which.
        id: TaskId,
    },
    /// Back again, with its id and as it was.
    Restore {
        /// The deleted task.
        id: TaskId,
    },
}

/// What a [`TaskChange`] led to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum TaskChanged {
    /// It was added.
    Added {
        /// As it is now.
        task: Task,
    },
    /// Its words changed.
    Updated {
        /// As it is now.
        task: Task,
        /// What it said before.
        before: TaskDescription,
    },
    /// It is done.
    Completed {
        /// As it is now.
        task: Task,
        /// It was done before already; nothing changed.
        already: bool,
    },
    /// It is gone.
    Deleted {
        /// As it was.
        task: Task,
    },
    /// It is there again.
    Restored {
        /// As it is now.
        task: Task,
        /// It was there all the time; nothing changed.
        already: bool,
    },
    /// The user has no such task.
    NoSuchTask {
        /// What was looked for.
        id: TaskId,
    },
}
