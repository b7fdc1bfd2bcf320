//! The environment of a case: a store of its own, and a vault of its own if memory is used.

use std::fs;
use std::sync::Arc;

use adjutant_core::{LanguageModel, UserId};
use adjutant_memory::Cause;
use adjutant_runtime::{Agent, RunContext};
use adjutant_store::sqlite;
use adjutant_tools::{TaskChange, TaskChanged};
use tempfile::TempDir;

use super::case::Case;
use super::task_before::TaskBefore;
use crate::config::Settings;
use crate::error::CliError;
use crate::memory::UserMemory;
use crate::store::{Store, Stores};
use crate::wiring;

/// The agent of a case with its store and vault.
pub(super) struct Bench {
    pub(super) store: Arc<dyn Store>,
    pub(super) agent: Agent,
    vault: Option<(TempDir, UserMemory)>,
}

impl Bench {
    /// Creates tasks, facts and earlier conversations of a case.
    ///
    /// # Errors
    /// A setting cannot be used, a folder cannot be created, or the model cannot be called.
    pub(super) async fn prepare(
        case: &Case,
        memory: bool,
        settings: &Settings,
        model: &Arc<dyn LanguageModel>,
    ) -> Result<Self, CliError> {
        let store: Arc<dyn Store> = Arc::new(sqlite::Store::in_memory().await?);
        add_tasks(&*store, &case.tasks).await?;
        let bench = if memory || case.needs_memory() {
            Self::with_memory(store, settings, model).await?
        } else {
            let agent = wiring::agent(settings, model.clone(), store.clone(), store.clone())?;
            Self {
                store,
                agent,
                vault: None,
            }
        };
        for fact in &case.facts {
            let facts = bench
                .vault
                .as_ref()
                .and_then(|(_, user_memory)| user_memory.memory())
                .map(adjutant_memory::Memory::facts);
            if let Some(facts) = facts {
                facts.add(fact, false, &Cause::person()).await?;
            }
        }
        // By the agent itself, so that they are remembered and indexed as in real use.
        for text in &case.said {
            bench
                .agent
                .run_in(&mut RunContext::new(UserId::local()), text.as_str())
                .await?;
        }
        Ok(bench)
    }

    async fn with_memory(
        store: Arc<dyn Store>,
        settings: &Settings,
        model: &Arc<dyn LanguageModel>,
    ) -> Result<Self, CliError> {
        let folder = tempfile::tempdir().map_err(|error| CliError::failed(error.to_string()))?;
        let mut settings = settings.clone();
        // The case must not see the user's own vault.
        settings.memory.use_plain_vault(folder.path().to_owned());
        let user_memory = UserMemory::open(&settings, store.clone()).await?;
        let stores = Stores::shared(store.clone());
        let (agent, _) = wiring::diana(&settings, model.clone(), &stores, None, &user_memory)?;
        Ok(Self {
            store,
            agent,
            vault: Some((folder, user_memory)),
        })
    }

    /// Returns the facts after the turn.
    pub(super) async fn facts(&self) -> Result<Vec<String>, CliError> {
        let Some((_, user_memory)) = self.vault.as_ref() else {
            return Ok(Vec::new());
        };
        Ok(user_memory
            .list()
            .await?
            .into_iter()
            .map(|fact| fact.content)
            .collect())
    }

    /// Returns today's daily note; empty if there is none. A fresh vault has no others.
    pub(super) fn note_today(&self) -> Result<String, CliError> {
        let Some((folder, _)) = self.vault.as_ref() else {
            return Ok(String::new());
        };
        let failed = |error: std::io::Error| CliError::failed(error.to_string());
        let mut text = String::new();
        for entry in fs::read_dir(folder.path()).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                text.push_str(&fs::read_to_string(path).map_err(failed)?);
            }
        }
        Ok(text)
    }
}

/// Creates the tasks of the case; their ids count from 1.
async fn add_tasks(store: &dyn Store, tasks: &[TaskBefore]) -> Result<(), CliError> {
    let user = UserId::local();
    for task in tasks {
        let add = TaskChange::Add {
            description: task.description.clone(),
            from_others: false,
        };
        let added = store.apply(&user, &add, None).await?;
        if let (true, TaskChanged::Added { task }) = (task.completed, added) {
            store
                .apply(&user, &TaskChange::Complete { id: task.id }, None)
                .await?;
        }
    }
    Ok(())
}
