//! Memory of the service's users: a vault of their own, facts in the database, or none.

use std::sync::Arc;

use adjutant_core::{LanguageModel, UserId};
use adjutant_mcp::client::Servers;
use adjutant_memory::{DatabaseMemory, Memories, Memory};
use adjutant_runtime::Agent;

use crate::config::{Authentication, Settings};
use crate::error::CliError;
use crate::memory::{self, OwnVault, UserMemory};
use crate::store::Stores;
use crate::terminal::screen::Screen;
use crate::wiring;

/// Vaults of users, and the memory of all others.
pub(super) struct UserMemories {
    desks: Vec<(OwnVault, UserMemory)>,
    /// Users whose vault cannot be opened. They get no memory at all, because facts in the database
    /// would differ from those in their vault.
    locked_out: Vec<UserId>,
    others: Option<DatabaseMemory>,
}

impl UserMemories {
    /// Opens the vaults. The service runs without those that cannot be opened.
    pub(super) async fn open(
        settings: &Settings,
        vaults: Vec<OwnVault>,
        stores: &Stores,
        screen: &Screen,
    ) -> Self {
        let (mut desks, mut locked_out) = (Vec::new(), Vec::new());
        for own in vaults {
            match UserMemory::open_own(&own.settings(settings), stores.kept.clone(), &own).await {
                Ok(user_memory) => desks.push((own, user_memory)),
                Err(error) => {
                    screen.note(&format!(
                        "nothing is remembered of {}, and nothing of it shown: {}",
                        own.user, error.message
                    ));
                    locked_out.push(own.user);
                }
            }
        }
        Self {
            desks,
            locked_out,
            others: memory::in_database(settings, &stores.kept),
        }
    }

    /// Returns the memories that have a vault.
    pub(super) fn vault_memories(&self) -> impl Iterator<Item = &Memory> {
        self.desks
            .iter()
            .filter_map(|(_, user_memory)| user_memory.memory())
    }

    /// Returns the memories of all users.
    pub(super) fn memories(&self) -> Memories {
        let own = self
            .vault_memories()
            .cloned()
            .fold(Memories::default(), Memories::with);
        let own = self.locked_out.iter().cloned().fold(own, Memories::without);
        match &self.others {
            Some(others) => own.with_others(others.clone()),
            None => own,
        }
    }

    /// Builds the agent. A user with a vault gets the assistant of the terminal, with notes and
    /// memory; all others get the task assistant.
    ///
    /// # Errors
    /// Those of [`wiring::agent`].
    pub(super) fn agent(
        &self,
        settings: &Settings,
        model: &Arc<dyn LanguageModel>,
        stores: &Stores,
        servers: &Servers,
    ) -> Result<Agent, CliError> {
        // Users without a vault have their tasks in the database.
        let for_others = |memory: Option<&DatabaseMemory>| {
            let (tasks, work) = (stores.kept.clone(), stores.conversation.clone());
            wiring::agent_with(settings, model.clone(), tasks, work, Some(servers), memory)
        };
        let mut agent = for_others(self.others.as_ref())?;
        if self.desks.is_empty() {
            agent.prepare();
        }
        for (at, (own, user_memory)) in self.desks.iter().enumerate() {
            let (theirs, _) = wiring::diana(
                &own.settings(settings),
                model.clone(),
                stores,
                Some(servers),
                user_memory,
            )?;
            if at == 0 {
                theirs.prepare();
            }
            agent = agent.with_override_for(own.user.clone(), &theirs);
        }
        if !self.locked_out.is_empty() {
            // Without facts in the database too, else they would contradict those in the vault when
            // it can be opened again.
            let forgetful = for_others(None)?;
            for user in &self.locked_out {
                agent = agent.with_override_for(user.clone(), &forgetful);
            }
        }
        Ok(agent)
    }

    /// Describes which users have which memory, for the operator.
    pub(super) fn describe(&self, how: Authentication) -> String {
        let others = match &self.others {
            Some(_) => "their tasks, and facts in the database",
            None => "their tasks, without notes or memory",
        };
        let Some((own, _)) = self.desks.first() else {
            let facts = if self.others.is_some() {
                "; facts are in the database"
            } else {
                ""
            };
            return format!("none: there is no vault (adjutant init){facts}");
        };
        let signs_in = matches!(
            how,
            Authentication::Jwt | Authentication::Oidc | Authentication::Proxy
        );
        let names: Vec<&str> = self
            .desks
            .iter()
            .map(|(own, _)| own.user.as_str())
            .collect();
        match (how, own.user == UserId::local()) {
            (_, true) if signs_in && names.len() == 1 => {
                "no user who signs in has the notes: vault.owner says who does, by the name they sign in with"
                    .to_owned()
            }
            (Authentication::None, false) => {
                format!("{} has the notes, and everybody here is local (serve.auth)", names.join(", "))
            }
            (Authentication::None, true) => "you have the notes, and everybody here is you".to_owned(),
            (_, true) if names.len() == 1 => format!("you have the notes; everybody else has {others}"),
            (_, true) => {
                let names = names.get(1..).unwrap_or_default().join(", ");
                format!("you have the notes, and {names} their own; everybody else has {others}")
            }
            (_, false) if names.len() == 1 => {
                format!("{} has the notes; everybody else has {others}", names.join(""))
            }
            (_, false) => {
                format!("{} have notes, each their own; everybody else has {others}", names.join(", "))
            }
        }
    }
}
