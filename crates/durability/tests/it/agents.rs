//! Two agents on one store, and a store from before agents had names: each agent continues its own
//! conversations, and no others.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::port::{ConversationStore, Journal, LogStore};
use adjutant_core::{AgentName, ConversationKey, OutcomeCategory};
use adjutant_providers::scripted::{Reply, ScriptedModel, text};
use adjutant_runtime::{Agent, InMemory, RunContext, RunEvent};
use adjutant_store::{postgres, sqlite};
use sqlx::{ConnectOptions as _, Connection as _};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::bench::give_back;
use crate::server::Server;

trait Store: Journal + LogStore + ConversationStore {}
impl<S: Journal + LogStore + ConversationStore> Store for S {}

/// All agents are in this process.
const WORKER: &str = "replica";

fn agent<S: Store>(name: &str, store: &Arc<S>, replies: impl IntoIterator<Item = Reply>) -> Agent {
    Agent::builder(name)
        .model(ScriptedModel::new(replies))
        .instruction("Be brief.")
        .version("7")
        .clock(|| "2026-01-01T01:00:00Z".parse().unwrap())
        .journal(store.clone(), WORKER)
        .build()
        .unwrap()
}

/// Drops a turn of the agent `first` while it waits for its model, as if its process had died. Its
/// lease is released.
fn stopped_in_the_middle<S: Store>(open: impl AsyncFn() -> Arc<S>) -> ConversationKey {
    let doomed = Runtime::new().unwrap();
    let key = doomed.block_on(async {
        let store = open().await;
        let first = agent(
            "first",
            &store,
            [text("Too late.").after(Duration::from_secs(3600))],
        );
        let context = RunContext::default();
        let mut events = first.stream(&context, "say hello").detached();
        while !matches!(events.next().await, Some(RunEvent::TurnStarted { .. })) {}
        first.key(&context)
    });
    doomed.shutdown_background();
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async { give_back(&*open().await, &key, WORKER).await });
    key
}

/// With only the other agent running, nothing changes. Then the right one runs, and finishes.
fn only_its_own_agent_goes_on<S: Store>(open: impl AsyncFn() -> Arc<S>) {
    let key = stopped_in_the_middle(&open);
    Runtime::new().unwrap().block_on(async {
        let store = open().await;
        let before = store.load(&key).await.unwrap();
        assert_eq!(
            before
                .events
                .iter()
                .map(|recorded| recorded.event.kind())
                .collect::<Vec<_>>(),
            ["turn_started"]
        );

        let other = agent("other", &store, [text("Mine now.")]);
        assert_eq!(other.recover(None).await.unwrap(), []);
        assert_eq!(other.run_conversation(&key).await.unwrap(), None);
        assert_eq!(other.drop_turn(&key).await.unwrap(), None);
        let context = other.context(&key).await.unwrap();
        assert_eq!((context.history.len(), context.pending.len()), (0, 0));
        let theirs = ConversationKey {
            agent: other.name().clone(),
            ..key.clone()
        };
        assert_eq!(store.summary(&theirs).await.unwrap(), None);
        assert_eq!(store.load(&key).await.unwrap(), before, "nothing moved");

        let first = agent("first", &store, [text("Hello.")]);
        let ended = first.recover(None).await.unwrap();
        assert_eq!(ended.len(), 1);
        assert_eq!(
            (ended[0].content.as_str(), ended[0].outcome),
            ("Hello.", OutcomeCategory::ResponseGiven)
        );
        let decision = store
            .decision(&key.user, ended[0].turn)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (decision.key(), decision.version.as_deref()),
            (key.clone(), Some("7"))
        );
        assert_eq!(first.recover(None).await.unwrap(), []);

        // The same id with the other agent is another conversation.
        let mut same_id = RunContext {
            conversation: key.conversation,
            ..RunContext::default()
        };
        assert_eq!(
            other.run_in(&mut same_id, "hello").await.unwrap().content,
            "Mine now."
        );
        assert_eq!(first.context(&key).await.unwrap().history.len(), 2);
    });
}

#[test]
fn of_two_agents_in_memory_each_goes_on_with_its_own() {
    let store = Arc::new(InMemory::new());
    only_its_own_agent_goes_on(async || store.clone());
}

#[test]
fn of_two_agents_on_a_file_each_goes_on_with_its_own() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("adjutant.db");
    only_its_own_agent_goes_on(async || Arc::new(sqlite::Store::open(&path).await.unwrap()));
}

#[test]
fn of_two_agents_on_a_server_each_goes_on_with_its_own() {
    let Some(server) = Server::start() else {
        return;
    };
    let url = Runtime::new()
        .unwrap()
        .block_on(server.create_database("agents"));
    only_its_own_agent_goes_on(async || Arc::new(postgres::Store::connect(&url, 2).await.unwrap()));
}

/// Turns of the first version, which recorded no agent, are finished by `adjutant` and by no other
/// agent.
async fn finishes_what_the_first_version_left<S: Store>(store: S) {
    let store = Arc::new(store);
    let other = agent("other", &store, [text("Mine now.").forever()]);
    assert_eq!(other.recover(None).await.unwrap(), []);
    let product = agent(
        AgentName::adjutant().as_str(),
        &store,
        [text("Hello.").forever()],
    );
    let ended = product.recover(None).await.unwrap();
    let outcomes: Vec<_> = ended
        .iter()
        .map(|end| (end.content.as_str(), end.outcome))
        .collect();
    assert_eq!(
        outcomes,
        vec![("Hello.", OutcomeCategory::ResponseGiven); 2]
    );
    let waiting = store.parked(product.name(), None).await.unwrap();
    assert_eq!(waiting.len(), 1, "what waits for a person goes on waiting");
}

#[tokio::test]
async fn a_file_of_the_first_version_goes_on() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("adjutant.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true);
    let mut hand = options.connect().await.unwrap();
    let old = include_str!("../../../store/tests/fixtures/first_version.sqlite.sql");
    sqlx::raw_sql(old).execute(&mut hand).await.unwrap();
    hand.close().await.unwrap();
    finishes_what_the_first_version_left(sqlite::Store::open(&path).await.unwrap()).await;
}

#[tokio::test]
async fn a_server_of_the_first_version_goes_on() {
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.create_database("old").await;
    let mut hand = url
        .parse::<sqlx::postgres::PgConnectOptions>()
        .unwrap()
        .connect()
        .await
        .unwrap();
    let old = include_str!("../../../store/tests/fixtures/first_version.postgres.sql");
    sqlx::raw_sql(old).execute(&mut hand).await.unwrap();
    hand.close().await.unwrap();
    finishes_what_the_first_version_left(postgres::Store::connect(&url, 2).await.unwrap()).await;
}
