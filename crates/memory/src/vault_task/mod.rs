//! The tasks in the notes of a vault: the lines of the plugin Tasks of Obsidian, found in all notes
//! and changed one at a time.
//!
//! A change touches the line that it is about and no other byte. If that line is not surely found
//! again, nothing is changed.

mod index; // numbers, without a database
mod note; // one note with its tasks
mod numbers; // which number stands for which line
mod place; // where a task stands, and finding it again
mod settings; // what the plugin is told by its owner
mod store; // the task store of an assistant
mod undo; // the way back
mod write; // add, complete, edit, move, delete

use std::sync::Arc;

use adjutant_core::{DELETED_TASK_DAYS, MemoryChange, MemoryEffect, MemoryState};
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::memory::{Cause, Shared, blocking};
use crate::vault::path::folded;
use crate::vault::walk::read_all;
use crate::{Memory, MemoryError};

pub use index::InMemoryTaskIndex;
use note::NoteTasks;
pub use note::VaultTask;
pub use place::TaskAddress;
use settings::PluginSettings;
pub use settings::TaskStatus;
pub use store::VaultTaskStore;
pub(crate) use undo::take_back;

/// Changes that are looked through for deleted tasks.
const LOOKED_THROUGH: usize = 10_000;

/// The tasks in the notes of a vault. Files are read fresh at every operation.
#[derive(Clone)]
pub struct VaultTasks(Arc<Shared>);

/// The tasks of a vault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskList {
    /// In the order of the paths of their notes, then of their lines.
    pub tasks: Vec<VaultTask>,
    /// There are more notes than are looked at.
    pub more: bool,
}

/// A change of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskEdit {
    /// Other words. Tags belong to them: those that are not said again go. Fields at their end
    /// (`📅 2026-11-30`) are set, other fields of the line stay.
    pub words: Option<String>,
    /// Another day on which it is due; `Some(None)` takes it out.
    pub due: Option<Option<Date>>,
}

/// The outcome of a change of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskWritten {
    /// As it is now; as it was, if it is gone.
    pub task: VaultTask,
    /// As it was, if it was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<VaultTask>,
    /// The task that comes next, if the one that was completed recurs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<VaultTask>,
    /// It was so already; nothing was changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub already: bool,
    /// The line is gone: deleted, or done and to be deleted then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

/// A task that was deleted and can be brought back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeletedTask {
    /// The name of the change, for [`VaultTasks::restore`].
    pub change: Uuid,
    /// The time at which it was deleted.
    pub at: jiff::Timestamp,
    /// The note it stood in.
    pub path: String,
    /// Its line.
    pub line: String,
    /// The words of the task.
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
        let (vault, facts) = (self.0.vault.clone(), self.0.facts.clone());
        blocking(move || {
            let settings = PluginSettings::of(&vault);
            let mut walk = vault.walk(None)?;
            walk.notes
                .retain(|note| folded(&note.path) != folded(facts.as_str()));
            let found = read_all(&walk.notes, |note, text| {
                let tasks = NoteTasks::read(&note.path, text, &settings).all();
                (!tasks.is_empty()).then_some(tasks)
            });
            Ok(TaskList {
                tasks: found.into_iter().flatten().collect(),
                more: walk.more,
            })
        })
        .await
    }

    /// Lists the tasks that were deleted here in the last 30 days and not brought back, the last
    /// first.
    ///
    /// # Errors
    /// [`MemoryError::Ledger`].
    pub async fn deleted(&self) -> Result<Vec<DeletedTask>, MemoryError> {
        let changes = self
            .0
            .common
            .ledger
            .newest(&self.0.common.scope, LOOKED_THROUGH)
            .await?;
        let now = (self.0.common.clock)().timestamp();
        let kept = |change: &MemoryChange| {
            now.duration_since(change.at).as_hours() < DELETED_TASK_DAYS * 24
        };
        Ok(changes
            .into_iter()
            .filter(kept)
            .filter_map(deleted)
            .collect())
    }

    /// Brings a deleted task back: to where it stood, or where that is not found, to the end of its
    /// note.
    ///
    /// # Errors
    /// [`MemoryError::Task`] if there is no such deleted task.
    pub async fn restore(&self, change: Uuid) -> Result<DeletedTask, MemoryError> {
        let found = self
            .0
            .common
            .ledger
            .newest(&self.0.common.scope, LOOKED_THROUGH)
            .await?;
        let found = found
            .into_iter()
            .find(|known| known.id == change && deleted(known.clone()).is_some());
        let Some(found) = found else {
            return Err(note::refused(
                "there is no such deleted task; they are kept for 30 days".to_owned(),
            ));
        };
        take_back(&self.0, &found).await?;
        let undone = MemoryChange {
            state: MemoryState::Undone,
            ..found
        };
        self.0
            .common
            .ledger
            .put(&self.0.common.scope, &undone)
            .await?;
        deleted(MemoryChange {
            state: MemoryState::Done,
            ..undone
        })
        .ok_or_else(|| note::refused("there is no such deleted task".to_owned()))
    }
}

/// Returns a change as a deleted task, if it is one that was not taken back.
fn deleted(change: MemoryChange) -> Option<DeletedTask> {
    let (
        MemoryEffect::Task {
            words,
            before: Some(before),
            after: None,
            ..
        },
        MemoryState::Done,
    ) = (change.effect, change.state)
    else {
        return None;
    };
    Some(DeletedTask {
        change: change.id,
        at: change.at,
        path: before.path,
        line: before.text,
        words,
    })
}

impl TaskWritten {
    fn of(task: VaultTask) -> Self {
        Self {
            task,
            before: None,
            next: None,
            already: false,
            gone: false,
        }
    }
}

/// A call, as far as the history knows it.
enum Earlier {
    None,
    Begun(Box<MemoryChange>),
    Answered(Box<TaskWritten>),
}

impl Shared {
    async fn earlier_task(&self, cause: &Cause) -> Result<Earlier, MemoryError> {
        let Some(key) = &cause.key else {
            return Ok(Earlier::None);
        };
        let Some(change) = self.common.ledger.by_key(&self.common.scope, key).await? else {
            return Ok(Earlier::None);
        };
        let MemoryEffect::Task { answer, .. } = &change.effect else {
            return Ok(Earlier::None);
        };
        Ok(match change.state {
            MemoryState::Done | MemoryState::Undone => match serde_json::from_value(answer.clone())
            {
                Ok(written) => Earlier::Answered(Box::new(written)),
                Err(_) => Earlier::None,
            },
            MemoryState::Begun => Earlier::Begun(Box::new(change)),
            MemoryState::Void => Earlier::None,
        })
    }
}
