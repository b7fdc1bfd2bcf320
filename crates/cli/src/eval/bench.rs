//! The place where a case runs: a store of its own, and a vault of its own if there is a memory.

use std::fs;
use std::sync::Arc;

use adjutant_core::{LanguageModel, TaskChange, TaskChanged, UserId};
use adjutant_memory::{Cause, MemoryOptions};
use adjutant_runtime::{Agent, RunContext};
use adjutant_store::sqlite;
use tempfile::TempDir;

use super::case::{Case, TaskBefore};
use crate::config::Settings;
use crate::error::CliError;
use crate::memory::Desk;
use crate::store::{Store, Stores};
use crate::wiring;

/// The agent of a case with what it works on.
pub(super) struct Bench {
    pub(super) store: Arc<dyn Store>,
    pub(super) agent: Agent,
    vault: Option<(TempDir, Desk)>,
}

impl Bench {
    /// Sets up what a case begins with, and says what is said before.
    ///
    /// # Errors
    /// A setting cannot be used, a folder cannot be made, or the model cannot be asked.
    pub(super) async fn of(
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
                .and_then(|(_, desk)| desk.memory())
                .map(adjutant_memory::Memory::facts);
            if let Some(facts) = facts {
                facts.add(fact, false, &Cause::person()).await?;
            }
        }
        for said in &case.said {
            bench
                .agent
                .run_in(&mut RunContext::new(UserId::local()), said.as_str())
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
        // Nothing of the person's own vault.
        settings.memory.vault = Some(folder.path().to_owned());
        settings.memory.options = MemoryOptions::default();
        settings.memory.tasks_in_notes = false;
        settings.memory.log_conversations = false;
        let desk = Desk::open(&settings, store.clone()).await?;
        let stores = Stores::one(store.clone());
        let (agent, _) = wiring::diana(&settings, model.clone(), &stores, None, &desk)?;
        Ok(Self {
            store,
            agent,
            vault: Some((folder, desk)),
        })
    }

    /// The facts that are known.
    pub(super) async fn facts(&self) -> Result<Vec<String>, CliError> {
        let Some((_, desk)) = self.vault.as_ref() else {
            return Ok(Vec::new());
        };
        Ok(desk
            .list()
            .await?
            .into_iter()
            .map(|fact| fact.content)
            .collect())
    }

    /// The daily notes, of which there is only today's; empty if there is none.
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

/// Gives the user their tasks: ids count from 1 in this order.
async fn add_tasks(store: &dyn Store, tasks: &[TaskBefore]) -> Result<(), CliError> {
    let user = UserId::local();
    for task in tasks {
        let add = TaskChange::Add {
            description: task.description.clone(),
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
