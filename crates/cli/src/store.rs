//! Opens the database: an SQLite file, or PostgreSQL. Commands use traits and do not know which.

use std::sync::Arc;

use adjutant_core::port::{
    BudgetStore, ConversationIndex, ConversationStore, FactStore, Journal, LogStore, MemoryLedger,
    OperatorStore, StoreError, TokenStore, UserSettingStore,
};
use adjutant_core::{AgentName, Budgets, ConversationId, ConversationKey, UserId};
#[cfg(feature = "postgres")]
use adjutant_store::postgres;
use adjutant_store::{Maintenance, sqlite, worker_id};
use adjutant_tools::{TaskIndex, TaskStore};

use crate::config::{Database, Settings};
use crate::error::CliError;

/// The store of an agent.
pub(crate) trait Work:
    Journal + LogStore + ConversationStore + TaskStore + BudgetStore + UserSettingStore
{
}

impl<S: Journal + LogStore + ConversationStore + TaskStore + BudgetStore + UserSettingStore> Work
    for S
{
}

/// The store of commands.
pub(crate) trait Store:
    Work
    + TokenStore
    + MemoryLedger
    + FactStore
    + TaskIndex
    + OperatorStore
    + ConversationIndex
    + Maintenance
{
}

impl<
    S: Work
        + TokenStore
        + MemoryLedger
        + FactStore
        + TaskIndex
        + OperatorStore
        + ConversationIndex
        + Maintenance,
> Store for S
{
}

/// Returns the name under which all commands keep their conversations. The terminal's assistant,
/// the task assistant and `serve` are instructions of one agent, so that a conversation begun with
/// one can be continued with another.
pub(crate) fn agent_name() -> AgentName {
    AgentName::adjutant()
}

/// Returns the key of a user's conversation.
pub(crate) fn key_of(user: &UserId, conversation: ConversationId) -> ConversationKey {
    ConversationKey {
        agent: agent_name(),
        user: user.clone(),
        conversation,
    }
}

/// Opens the database in the settings.
///
/// # Errors
/// It cannot be opened or created.
pub(crate) async fn open(settings: &Settings) -> Result<Arc<dyn Store>, CliError> {
    open_at(&settings.database, settings).await
}

/// Opens a database, with the settings for everything else.
///
/// # Errors
/// Those of [`open`].
pub(crate) async fn open_at(
    database: &Database,
    settings: &Settings,
) -> Result<Arc<dyn Store>, CliError> {
    Ok(match database {
        Database::Sqlite(path) => {
            let store = sqlite::Store::open(path)
                .await?
                .with_log_content(settings.log_content);
            Arc::new(store.with_messages_queued_max(settings.serve.messages_queued))
        }
        #[cfg(feature = "postgres")]
        Database::Postgres(address) => {
            let listen = match &settings.listen {
                Some(Database::Postgres(listen)) => listen,
                Some(Database::Sqlite(_)) => {
                    return Err(CliError::configuration("database.listen_url is no address of a server")
                        .or_try(
                            "database.listen_url = \"postgres://USER@HOST:PORT/DATABASE\", past the pooler",
                        ));
                }
                None => address,
            };
            let store =
                postgres::Store::connect_and_listen(address, listen, settings.pool_max).await?;
            let store = store.with_log_content(settings.log_content);
            Arc::new(store.with_messages_queued_max(settings.serve.messages_queued))
        }
        #[cfg(not(feature = "postgres"))]
        Database::Postgres(_) => return Err(no_postgres()),
    })
}

/// Stores of a conversation: the same one twice, except with `--temp`.
#[derive(Clone)]
pub(crate) struct Stores {
    /// Store of the conversation and its logs.
    pub(crate) conversation: Arc<dyn Store>,
    /// Store of tasks, the history of memory changes, and spending.
    pub(crate) kept: Arc<dyn Store>,
}

impl Stores {
    /// Returns one store for both.
    pub(crate) fn shared(store: Arc<dyn Store>) -> Self {
        Self {
            conversation: store.clone(),
            kept: store,
        }
    }

    /// Replaces the store of conversations by one in memory.
    ///
    /// # Errors
    /// It cannot be created.
    pub(crate) async fn with_temporary_conversations(self) -> Result<Self, CliError> {
        Ok(Self {
            conversation: Arc::new(sqlite::Store::in_memory().await?),
            ..self
        })
    }
}

/// Opens the stores of a conversation. With `--temp` it is kept in memory; the database is opened
/// only if it exists or a budget applies, and then only spending is written to it.
///
/// # Errors
/// Those of [`open`].
pub(crate) async fn open_for_session(settings: &Settings) -> Result<Stores, CliError> {
    if !settings.bounds.temp {
        let store = open(settings).await?;
        return Ok(Stores::shared(store));
    }
    let conversation: Arc<dyn Store> = Arc::new(sqlite::Store::in_memory().await?);
    // A run that leaves nothing behind must not create the database either.
    let is_there = match &settings.database {
        Database::Sqlite(path) => path.exists(),
        Database::Postgres(_) => true,
    };
    let kept = if is_there || settings.budgets != Budgets::default() {
        open(settings).await?
    } else {
        conversation.clone()
    };
    Ok(Stores { conversation, kept })
}

#[cfg(not(feature = "postgres"))]
pub(crate) fn no_postgres() -> CliError {
    CliError::configuration("this adjutant was built without PostgreSQL")
        .or_try("build it with the feature postgres, or take an SQLite file")
}

/// Returns the name of this process for leases. On a shared server processes of several machines
/// meet, and their process ids may be equal.
pub(crate) fn worker(settings: &Settings) -> String {
    match settings.database {
        Database::Sqlite(_) => worker_id().to_owned(),
        Database::Postgres(_) => format!("{}-{}", worker_id(), uuid::Uuid::now_v7()),
    }
}

/// The remedy for a place that cannot be used.
const ELSEWHERE: &str =
    "see where it is: adjutant config path; another place: ADJUTANT_STORE_PATH=FILE, or --database";

/// Converts the error of a store to a message with remedies.
impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::ReadOnly { .. } => {
                Self::read_only("the data can only be read").because(message).or_try(ELSEWHERE)
            }
            StoreError::Full { .. }
            | StoreError::DiskFailed { .. }
            | StoreError::Unusable { .. }
            | StoreError::Unreadable { .. } => {
                Self::configuration("the data cannot be used").because(message).or_try(ELSEWHERE)
            }
            StoreError::Conflict | StoreError::Unavailable { .. } => {
                Self::failed(message).or_try("try again; another adjutant may be busy with the same data")
            }
            StoreError::QueueFull { limit } => Self::failed(format!(
                "as many messages wait in this conversation as may ({limit}); this one was not taken"
            ))
            .or_try("wait until some are answered, or stop the turn that runs")
            .or_try("more may wait: adjutant config set serve.messages_queued NUMBER"),
            StoreError::Reused => {
                Self::usage("this --idempotency-key was used before, for another call; nothing was done")
                    .or_try("another --idempotency-key, or none")
            }
            _ => Self::failed(message),
        }
    }
}
