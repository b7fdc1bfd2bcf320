//! Several replicas on one database share the recovery of conversations: its cost does not grow
//! with their number.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::port::{ConversationStore, Journal, LogStore};
use adjutant_core::{
    Annotations, Arguments, BoxFuture, CancellationToken, OutcomeCategory, Tool, ToolContext,
    ToolDefinition, ToolError,
};
use adjutant_providers::scripted::{Reply, ScriptedModel, call, text};
use adjutant_runtime::{Agent, RunContext};
use adjutant_store::{postgres, sqlite};
use jiff::Timestamp;
use serde_json::{Value, json};
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};
use tempfile::TempDir;

use crate::server::Server;
use crate::size::cases;

trait Store: Journal + LogStore + ConversationStore {}
impl<S: Journal + LogStore + ConversationStore> Store for S {}

/// A tool that is never approved.
struct Careful(ToolDefinition);

impl Careful {
    fn new() -> Self {
        let definition = ToolDefinition::new("drop", "Drops.", json!({"type": "object"})).unwrap();
        let annotations = Annotations {
            destructive: true,
            ..Annotations::default()
        };
        Self(definition.annotated(annotations))
    }
}

impl Tool for Careful {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn call<'a>(
        &'a self,
        _: &'a ToolContext,
        _: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        panic!("nobody said yes")
    }
}

fn agent<S: Store>(store: &Arc<S>, worker: &str, reply: Reply, now: &str) -> Agent {
    let now: Timestamp = now.parse().unwrap();
    Agent::builder("adjutant")
        .model(ScriptedModel::new([reply.forever()]))
        .instruction("Be brief.")
        .tools([Arc::new(Careful::new()) as Arc<dyn Tool>])
        .clock(move || now)
        .journal(store.clone(), worker)
        .build()
        .unwrap()
}

/// Leaves this number of conversations that wait for a confirmation.
async fn park<S: Store>(store: &Arc<S>, conversations: usize) {
    let agent = agent(
        store,
        "the first",
        call("drop", json!({})),
        "2026-01-01T00:00:00Z",
    );
    for _ in 0..conversations {
        let asked = agent
            .run_in(&mut RunContext::default(), "drop it")
            .await
            .unwrap();
        assert_eq!(asked.outcome, OutcomeCategory::PendingConfirmation);
    }
}

/// Lets replicas recover expired conversations, all at once; each of them knows only its store.
/// Together they end each conversation once.
async fn take_up<S: Store>(stores: Vec<Arc<S>>, conversations: usize) {
    let agents = stores.iter().enumerate().map(|(number, store)| {
        // Waits a little, so that other replicas come in between.
        let reply = text("It was not dropped.").after(Duration::from_millis(2));
        agent(
            store,
            &format!("replica {number}"),
            reply,
            "2026-02-01T00:00:00Z",
        )
    });
    let agents: Vec<Agent> = agents.collect();
    let never = CancellationToken::new();
    let swept =
        futures::future::join_all(agents.iter().map(|agent| agent.recover_until(None, &never)))
            .await;
    let mut turns = Vec::new();
    for swept in swept {
        let swept = swept.unwrap();
        assert_eq!((swept.failed, swept.given_up), (Vec::new(), Vec::new()));
        turns.extend(swept.responses.into_iter().map(|response| response.turn));
    }
    assert_eq!(turns.len(), conversations, "each was taken up by one");
    turns.sort_unstable();
    turns.dedup();
    assert_eq!(turns.len(), conversations, "each was taken up once");
    let name = agents[0].name();
    assert_eq!(stores[0].parked(name, None).await.unwrap(), []);
    assert_eq!(stores[0].unsettled(name, None).await.unwrap(), []);
}

/// Prints the count, and fails if it is too high. A conversation costs two commits, that its
/// question expired and that its turn ended, and its share of the one that leased eight or more of
/// them. The last batch of a replica may be small, and the server itself commits now and then.
fn check(database: &str, conversations: usize, counted: &[(usize, usize)]) {
    for (replicas, commits) in counted {
        let each = format!(
            "{}.{:02}",
            commits / conversations,
            commits * 100 / conversations % 100
        );
        println!(
            "{database}: {conversations} conversations, {replicas} replicas: {each} commits each"
        );
        let most = conversations * 2 + conversations / 8 + replicas * 2 + 4;
        assert!(*commits <= most, "{commits} commits, {most} at most");
    }
}

/// Returns the commits of a server since a place in its write-ahead log, which has a record of each
/// commit that wrote.
async fn commits_since(server: &mut PgConnection, place: &str) -> usize {
    let query = "SELECT count(*) FROM pg_get_wal_records_info(CAST($1 AS pg_lsn), pg_current_wal_flush_lsn())
         WHERE resource_manager = 'Transaction' AND record_type LIKE 'COMMIT%'";
    let (commits,): (i64,) = sqlx::query_as(query)
        .bind(place)
        .fetch_one(server)
        .await
        .unwrap();
    usize::try_from(commits).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_on_a_server_share_what_expired_at_the_same_cost() {
    let conversations = cases(1000, 100);
    let Some(server) = Server::start() else {
        return;
    };
    let options: PgConnectOptions = server.url("postgres").parse().unwrap();
    let mut counting = options.connect().await.unwrap();
    sqlx::query("CREATE EXTENSION pg_walinspect")
        .execute(&mut counting)
        .await
        .unwrap();
    let mut counted = Vec::new();
    for replicas in [1, 4, 8] {
        let url = server
            .create_database(&format!("replicas_{replicas}"))
            .await;
        let mut stores = Vec::new();
        for _ in 0..replicas {
            stores.push(Arc::new(postgres::Store::connect(&url, 4).await.unwrap()));
        }
        park(&stores[0], conversations).await;
        let (place,): (String,) = sqlx::query_as("SELECT CAST(pg_current_wal_flush_lsn() AS TEXT)")
            .fetch_one(&mut counting)
            .await
            .unwrap();
        take_up(stores.clone(), conversations).await;
        counted.push((replicas, commits_since(&mut counting, &place).await));
        for store in stores {
            store.close().await;
        }
    }
    counting.close().await.unwrap();
    check("PostgreSQL", conversations, &counted);
}

/// Returns the commits in a write-ahead log that was never checkpointed: a frame that ends a
/// transaction states the size of the database. Source:
/// sqlite.org/fileformat2.html#the_write_ahead_log.
fn commits_in(log: &Path) -> usize {
    let log = std::fs::read(log).unwrap();
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    let (header, frames) = log.split_at(32);
    let page = usize::try_from(number(&header[8..12])).unwrap();
    let of_now = |frame: &&[u8]| frame[8..16] == header[16..24];
    frames
        .chunks_exact(24 + page)
        .take_while(of_now)
        .filter(|frame| number(&frame[4..8]) != 0)
        .count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_on_a_file_share_what_expired_at_the_same_cost() {
    let conversations = cases(1000, 100);
    let mut counted = Vec::new();
    for replicas in [1, 4, 8] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("adjutant.db");
        let mut stores = Vec::new();
        for _ in 0..replicas {
            stores.push(Arc::new(sqlite::Store::open(&path).await.unwrap()));
        }
        park(&stores[0], conversations).await;
        // An open read transaction keeps the log from being reset.
        let mut reader = SqliteConnectOptions::new()
            .filename(&path)
            .connect()
            .await
            .unwrap();
        sqlx::raw_sql("BEGIN; SELECT count(*) FROM adjutant_conversation")
            .execute(&mut reader)
            .await
            .unwrap();
        let log = folder.path().join("adjutant.db-wal");
        let before = commits_in(&log);
        take_up(stores, conversations).await;
        counted.push((replicas, commits_in(&log) - before));
    }
    check("SQLite", conversations, &counted);
}
