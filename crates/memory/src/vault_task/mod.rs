//! The tasks in the notes of a vault: lines in the format of Obsidian's plugin Tasks, found in all
//! notes and changed one at a time.
//!
//! A change touches the line of the task and no other byte. If that line cannot be found again with
//! certainty, nothing is changed.

mod index; // numbers of tasks, in memory
mod locate; // find a task by its address
mod note; // a note with its tasks, and edits of its text
mod numbers; // match numbers with lines
mod settings; // the plugin's settings
mod store; // `TaskStore` over the notes
mod undo; // undo of a change
mod write; // add, complete, edit, delete, move

use std::sync::Arc;

use adjutant_core::{MemoryChange, MemoryEffect, MemoryState};
use adjutant_tools::DELETED_TASK_DAYS;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::vault::path::case_folded;
use crate::vault::read_visible;
use crate::vault_memory::{VaultMemory, blocking};
use crate::{Memory, MemoryError};

pub use index::InMemoryTaskIndex;
pub use locate::TaskAddress;
use note::NoteTasks;
pub use note::VaultTask;
use settings::PluginSettings;
pub use settings::TaskStatus;
pub use store::VaultTaskStore;
pub(crate) use undo::undo_task_change;

/// Number of changes of the ledger that are searched for deleted tasks.
const CHANGES_READ: usize = 10_000;

/// The tasks in the notes of a vault. Files are read again at every operation. Returned by
/// [`Memory::tasks`].
///
/// # Examples
///
/// ```
/// # use std::sync::Arc;
/// # use adjutant_core::UserId;
/// use adjutant_memory::Cause;
/// # use adjutant_memory::{InMemoryLedger, Memory, MemoryOptions, Vault};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let (vault, options) = (Vault::open(folder.path())?, MemoryOptions::default());
/// # let (ledger, clock) = (Arc::new(InMemoryLedger::new()), Arc::new(jiff::Zoned::now));
/// # let memory = Memory::new(vault, UserId::local(), options, ledger, clock)?;
/// let tasks = memory.tasks().ok_or("the memory has a vault")?;
/// tasks.add("Call mom 📅 2026-11-30", "Tasks", &Cause::person()).await?;
/// let task = &tasks.list().await?.tasks[0];
/// assert_eq!(task.words, "Call mom");
/// assert_eq!(task.due, Some(jiff::civil::date(2026, 11, 30)));
/// tasks.complete(&task.address, &Cause::person()).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct VaultTasks(Arc<VaultMemory>);

/// The tasks of all notes of a vault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskList {
    /// In the order of the paths of their notes, then of their lines.
    pub tasks: Vec<VaultTask>,
    /// True if the vault has more notes than are read.
    pub more: bool,
}

/// A change of the text or the due date of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskEdit {
    /// The new text. Tags belong to it: those that it does not repeat are removed. Fields at its
    /// end (`📅 2026-11-30`) are set, other fields of the line stay. `None`: the text stays.
    pub words: Option<String>,
    /// The new due date; `Some(None)` removes it, `None` leaves it.
    pub due: Option<Option<Date>>,
}

/// The result of a change of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskWritten {
    /// The task as it is now; as it was before, if its line is gone.
    pub task: VaultTask,
    /// The task as it was before, if it was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<VaultTask>,
    /// The next occurrence, if the completed task recurs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<VaultTask>,
    /// True if the task was in that state already; nothing was changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub already: bool,
    /// True if the line is gone: deleted, or completed by a task that is deleted when it is done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

/// A deleted task that can be restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeletedTask {
    /// The id of the change, for [`VaultTasks::restore`].
    pub change: Uuid,
    /// The time at which it was deleted.
    pub at: jiff::Timestamp,
    /// The path of the note in which it stood.
    pub path: String,
    /// The whole line of the task.
    pub line: String,
    /// The text of the task, with its tags.
    pub words: String,
}

impl Memory {
    /// Returns the tasks in the notes. `None` without a vault.
    #[must_use]
    pub fn tasks(&self) -> Option<VaultTasks> {
        self.in_vault().cloned().map(VaultTasks)
    }
}

impl VaultTasks {
    /// Lists the tasks of all notes. Notes that are larger than
    /// [`NOTE_BYTES_MAX`](crate::NOTE_BYTES_MAX) are left out, as is the file of the facts.
    ///
    /// # Errors
    /// [`VaultError`](crate::VaultError) if the vault cannot be read.
    pub async fn list(&self) -> Result<TaskList, MemoryError> {
        let (vault, facts) = (self.0.vault.clone(), self.0.facts_path.clone());
        blocking(move || {
            let settings = PluginSettings::load(&vault);
            let mut walk = vault.walk_visible(None)?;
            walk.notes
                // Checkboxes in the file of the facts are no tasks: no tool could change them
                // there.
                .retain(|note| case_folded(&note.path) != case_folded(facts.as_str()));
            let found = read_visible(&walk.notes, |_, note, text| {
                let tasks = NoteTasks::parse(&note.path, text, &settings).tasks();
                (!tasks.is_empty()).then_some(tasks)
            });
            Ok(TaskList {
                tasks: found.results.into_iter().flatten().collect(),
                more: walk.is_truncated,
            })
        })
        .await
    }

    /// Lists the tasks that were deleted here in the last 30 days and not restored, the last first.
    ///
    /// # Errors
    /// [`MemoryError::Ledger`].
    pub async fn deleted(&self) -> Result<Vec<DeletedTask>, MemoryError> {
        let changes = self.0.context.newest(CHANGES_READ).await?;
        let now = (self.0.context.clock)().timestamp();
        let is_recent = |change: &MemoryChange| {
            now.duration_since(change.at).as_hours() < DELETED_TASK_DAYS * 24
        };
        let recent = changes.into_iter().filter(is_recent);
        Ok(recent.filter_map(|change| deleted_task(&change)).collect())
    }

    /// Restores a deleted task: to its old position, or if that is not found, to the end of its
    /// note.
    ///
    /// # Errors
    /// [`MemoryError::Task`] if there is no such deleted task.
    pub async fn restore(&self, change: Uuid) -> Result<DeletedTask, MemoryError> {
        let changes = self.0.context.newest(CHANGES_READ).await?;
        let found = changes
            .into_iter()
            .find(|known| known.id == change)
            .and_then(|change| Some((deleted_task(&change)?, change)));
        let Some((task, change)) = found else {
            return Err(note::task_error(
                "there is no such deleted task; they are kept for 30 days".to_owned(),
            ));
        };
        // A removed line can always be put back, at worst at the end of its note.
        undo_task_change(&self.0, &change).await?;
        let undone = MemoryChange {
            state: MemoryState::Undone,
            ..change
        };
        self.0.context.record(&undone).await?;
        Ok(task)
    }
}

/// Returns the task that a change deleted, unless the change was undone.
fn deleted_task(change: &MemoryChange) -> Option<DeletedTask> {
    let MemoryEffect::Task {
        words,
        before: Some(before),
        after: None,
        ..
    } = &change.effect
    else {
        return None;
    };
    (change.state == MemoryState::Done).then(|| DeletedTask {
        change: change.id,
        at: change.at,
        path: before.path.clone(),
        line: before.text.clone(),
        words: words.clone(),
    })
}

impl TaskWritten {
    fn new(task: VaultTask) -> Self {
        Self {
            task,
            before: None,
            next: None,
            already: false,
            gone: false,
        }
    }
}
