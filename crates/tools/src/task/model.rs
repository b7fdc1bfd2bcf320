//! The task model: tasks, their changes, and the outcomes of changes.

use std::fmt;

use adjutant_core::UserId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Greatest length of a task's description, in Unicode characters.
pub const DESCRIPTION_CHARS_MAX: usize = 1000;

/// Days in which a deleted task can be restored.
pub const DELETED_TASK_DAYS: i64 = 30;

/// The id of a task: a number that counts per user from 1 and is never reused. A string in every
/// JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId(u64);

impl TaskId {
    /// The id of a user's first task.
    pub const FIRST: Self = Self(1);

    /// Returns the id that follows this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// Creates an id from its number. `None` for 0: ids start at 1.
    #[must_use]
    pub fn new(number: u64) -> Option<Self> {
        (number > 0).then_some(Self(number))
    }

    /// Returns the id as a number, which is at least 1.
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

/// The description of a task: 1 to 1,000 Unicode characters, no control characters, trimmed.
///
/// # Examples
///
/// ```
/// use adjutant_tools::TaskDescription;
///
/// assert_eq!(TaskDescription::new(" buy\nmilk ")?.as_str(), "buy milk");
/// assert!(TaskDescription::new("  ").is_err());
/// # Ok::<(), adjutant_tools::InvalidDescription>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskDescription(String);

/// Text that cannot be a task's description.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidDescription {
    /// The text is blank.
    #[error("a task needs a description")]
    Empty,
    /// The text has more than [`DESCRIPTION_CHARS_MAX`] characters.
    #[error(
        "a task description has at most {DESCRIPTION_CHARS_MAX} characters, this one has {chars}"
    )]
    TooLong {
        /// Length of the text, in Unicode characters.
        chars: usize,
    },
}

impl TaskDescription {
    /// Trims a text, replaces control characters by spaces, and checks the length.
    ///
    /// # Errors
    /// [`InvalidDescription`] for a blank text and for one that is too long.
    pub fn new(text: &str) -> Result<Self, InvalidDescription> {
        // A description is one line in every list.
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

    /// Returns the description as text.
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

/// An entry of a user's to-do list. It has no due date: dates stay in the description.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The id, unique among the user's tasks and never reused.
    pub id: TaskId,
    /// The owner of the task.
    pub user_id: UserId,
    /// The text that the user reads.
    pub description: TaskDescription,
    /// True if the task is done.
    pub completed: bool,
    /// Time of the creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Time of the completion. `None`: the task is open.
    pub completed_at: Option<Timestamp>,
    /// True if a program wrote the description that may not answer in the user's place, and the user
    /// has not approved it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_others: bool,
}

/// A selection of tasks by their state. Default: all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskFilter {
    /// Tasks that are not done yet.
    Pending,
    /// Tasks that are done.
    Completed,
    /// Tasks in either state.
    #[default]
    All,
}

impl TaskFilter {
    /// Returns true if a task belongs to the selection.
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
    /// Adds a task to the user's list.
    Add {
        /// The description of the new task.
        description: TaskDescription,
        /// True if it is not from the user: [`Task::from_others`].
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        from_others: bool,
    },
    /// Replaces the description of a task.
    Update {
        /// The id of the task to change.
        id: TaskId,
        /// The description that replaces the old one.
        description: TaskDescription,
        /// True if it is not from the user: [`Task::from_others`].
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        from_others: bool,
    },
    /// Marks a task as done.
    Complete {
        /// The id of the task that is done.
        id: TaskId,
    },
    /// Deletes a task. It can be restored for [`DELETED_TASK_DAYS`].
    Delete {
        /// The id of the task to delete.
        id: TaskId,
    },
    /// Restores a deleted task with its id and as it was.
    Restore {
        /// The id that the task had when it was deleted.
        id: TaskId,
    },
}

/// The outcome of a [`TaskChange`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum TaskChanged {
    /// The task was added to the list.
    Added {
        /// The task as it is now.
        task: Task,
    },
    /// The description was replaced.
    Updated {
        /// The task as it is now.
        task: Task,
        /// The description before the change.
        before: TaskDescription,
    },
    /// The task is marked as done.
    Completed {
        /// The task as it is now.
        task: Task,
        /// True if it was done before, so that nothing changed.
        already: bool,
    },
    /// The task was deleted from the list.
    Deleted {
        /// The task as it was before its deletion.
        task: Task,
    },
    /// The task is on the list again.
    Restored {
        /// The task as it is now.
        task: Task,
        /// True if it was never deleted, so that nothing changed.
        already: bool,
    },
    /// The user has no task with that id; nothing changed.
    NoSuchTask {
        /// The id that the change named.
        id: TaskId,
    },
}
