//! What needs a hand inside the store: a full disk, a lock nobody waits five seconds for, a file it may not write.

use std::time::Duration;

use adjutant_core::port::{ConversationFilter, ConversationStore, Journal as _, StoreError};
use adjutant_core::{
    AgentName, ConversationKey, DecisionFilter, Input, InputBody, InputId, TaskChange, TaskDescription,
    UserId, port::LogStore as _, port::TaskStore as _,
};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{ConnectOptions as _, Connection as _, SqlStr, SqliteConnection};
use tempfile::TempDir;

use super::*;
use crate::sql::migrate::Migrations;
use crate::sql::{conversation, journal, log};

fn input(number: usize) -> Input {
    let text = format!("{number} {}", "long ".repeat(2000));
    let at = jiff::Timestamp::UNIX_EPOCH;
    Input::new(InputId::new(format!("i{number}")).unwrap(), at, InputBody::message(text))
}

fn one_conversation() -> ConversationKey {
    let conversation = "00000000-0000-7000-8000-000000000001".parse().unwrap();
    ConversationKey { agent: AgentName::adjutant(), user: UserId::local(), conversation }
}

#[tokio::test]
async fn a_full_disk_refuses_and_keeps_what_was_accepted() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path().join("adjutant.db")).await.unwrap();
    let writer = store.0.pools.writer.clone();
    let pages: i64 = sqlx::query_scalar("PRAGMA page_count").fetch_one(&writer).await.unwrap();
    let limit = sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {}", pages + 20));
    sqlx::query(limit).execute(&writer).await.unwrap();

    let mut accepted = Vec::new();
    let refused = loop {
        let input = input(accepted.len());
        match store.submit(&one_conversation(), &input).await {
            Ok(()) => accepted.push(input),
            Err(error) => break error,
        }
    };
    let StoreError::Full { message } = &refused else { panic!("{refused:?}") };
    assert!(message.contains("no space left") && message.contains("adjutant.db"), "{message}");
    assert!(!accepted.is_empty());
    assert_eq!(store.load(&one_conversation()).await.unwrap().inbox, accepted);

    // Space again: the bound was the connection's, and the connection that was refused has been replaced.
    let again = input(accepted.len());
    store.submit(&one_conversation(), &again).await.unwrap();
    accepted.push(again);
    assert_eq!(store.load(&one_conversation()).await.unwrap().inbox, accepted);
}

#[tokio::test]
async fn a_lock_of_another_process_is_told_and_passes() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("adjutant.db");
    let open = || Store::with(Place::File(path.clone()), Duration::from_millis(1));
    let store = open().await.unwrap();
    store.submit(&one_conversation(), &input(0)).await.unwrap();

    let mut other = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    let lock = other.begin_with("BEGIN EXCLUSIVE").await.unwrap();
    let refused = store.submit(&one_conversation(), &input(1)).await.unwrap_err();
    let StoreError::Unavailable { message } = &refused else { panic!("{refused:?}") };
    assert!(message.contains("locked by another process") && message.contains("adjutant.db"), "{message}");
    // Reading goes on beside a writer, and so does opening.
    assert_eq!(store.load(&one_conversation()).await.unwrap().inbox.len(), 1);
    assert_eq!(
        ConversationStore::list(
            &open().await.unwrap(),
            &AgentName::adjutant(),
            &UserId::local(),
            &ConversationFilter::newest(10)
        )
        .await
        .unwrap()
        .len(),
        1
    );

    lock.rollback().await.unwrap();
    store.submit(&one_conversation(), &input(1)).await.unwrap();
}

#[tokio::test]
async fn a_lock_while_the_schema_is_made_is_told() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("adjutant.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let mut other = options.connect().await.unwrap();
    let lock = other.begin_with("BEGIN EXCLUSIVE").await.unwrap();
    let open = || Store::with(Place::File(path.clone()), Duration::from_millis(1));
    let refused = open().await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable { .. }), "{refused:?}");
    lock.rollback().await.unwrap();
    open().await.unwrap();
}

/// Permission bits do not bind root, so SQLite is told to refuse by itself: the code is the same.
#[tokio::test]
async fn a_refusal_to_write_is_told_by_every_port() {
    let store = Store::in_memory().await.unwrap();
    sqlx::query("PRAGMA query_only = ON").execute(&store.0.pools.writer).await.unwrap();
    let user = UserId::local();
    let change = TaskChange::Add { description: TaskDescription::new("x").unwrap() };
    let key = one_conversation();
    let refusals = [
        store.apply(&user, &change, None).await.map(drop),
        store.submit(&key, &input(0)).await,
        store.rename(&key, "x").await.map(drop),
        store.delete(&key).await.map(drop),
        store.release(&key, "a").await,
    ];
    for refused in refusals {
        let Err(StoreError::ReadOnly { message }) = &refused else { panic!("{refused:?}") };
        assert!(message.contains("may not be written to"), "{message}");
    }
    assert_eq!(store.decisions(&user, &DecisionFilter::default()).await.unwrap(), []);
}

#[tokio::test]
async fn looking_for_work_reads_an_index() {
    let store = Store::in_memory().await.unwrap();
    let mut connection = store.0.pools.writer.acquire().await.unwrap();
    // The statements themselves, so that none of them can change without this test.
    let queries = [
        (journal::UNSETTLED, "adjutant_conversation_unsettled"),
        (journal::PARKED, "adjutant_conversation_parked"),
        (journal::INBOX, "adjutant_inbox_untaken"),
        (journal::CANCELLATION, "adjutant_inbox_untaken"),
        (conversation::NEWEST, "adjutant_conversation_recent"),
        (log::DECISIONS, "adjutant_decision_recent"),
    ];
    for (query, index) in queries {
        let plan = plan(&mut connection, query).await;
        assert!(plan.contains(index) && !plan.contains("TEMP B-TREE"), "{query}: {plan}");
    }
    // Those that wait are few, and they are found by the time they expire; their order among each other is made then.
    let plan = plan(&mut connection, journal::EXPIRED).await;
    assert!(plan.contains("adjutant_conversation_wake"), "{plan}");
}

#[tokio::test]
async fn a_database_of_the_first_schema_is_brought_up_to_date_and_keeps_its_rows() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("adjutant.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let mut old = options.connect().await.unwrap();
    let first = Migration::new(
        1,
        "initial".into(),
        MigrationType::Simple,
        SqlStr::from_static(include_str!("migrations/0001_initial.sql")),
        false,
    );
    Migrator::with_migrations(vec![first]).run(&mut old).await.unwrap();
    let rows = "
        INSERT INTO conversation (key, user_id, id, title, created_at, updated_at)
        VALUES (1, 'local', '00000000-0000-7000-8000-000000000001', 'milk', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z');
        INSERT INTO decision (conversation, conversation_id, user_id, id, started_at, message, message_chars,
            model_provider, model_name, model_calls, iterations, input_tokens, model_ms, tool_ms)
        VALUES (1, '00000000-0000-7000-8000-000000000001', 'local', '11111111-0000-7000-8000-000000000001',
            '2026-01-01T00:00:00Z', 'add milk', 8, 'gemini', 'gemini-3.8-flash', 1, 0, 12, 5, 0);";
    sqlx::raw_sql(rows).execute(&mut old).await.unwrap();
    old.close().await.unwrap();

    let store = Store::open(&path).await.unwrap();
    let decisions = store.decisions(&UserId::local(), &DecisionFilter::default()).await.unwrap();
    assert_eq!(decisions.len(), 1);
    assert_eq!((decisions[0].message.as_str(), decisions[0].usage.input_tokens), ("add milk", Some(12)));
    // Nobody wrote down what it cost: that is not known, and not nothing.
    assert_eq!((decisions[0].cost, decisions[0].notices.len()), (None, 0));
}

/// Every statement that made the schema, and how many rows there are to lose.
async fn whole(path: &Path) -> (Vec<String>, i64) {
    let mut hand = sqlx::sqlite::SqliteConnectOptions::new().filename(path).connect().await.unwrap();
    let schema = "SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY type, name";
    let schema = sqlx::query_scalar(schema).fetch_all(&mut hand).await.unwrap();
    let rows = "SELECT (SELECT count(*) FROM event) + (SELECT count(*) FROM conversation) + (SELECT count(*) FROM _sqlx_migrations)";
    let rows = sqlx::query_scalar(rows).fetch_one(&mut hand).await.unwrap();
    hand.close().await.unwrap();
    (schema, rows)
}

#[tokio::test]
async fn a_migration_that_breaks_off_leaves_the_first_version_as_it_was() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("adjutant.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let mut hand = options.connect().await.unwrap();
    let old = include_str!("../../tests/fixtures/first_version.sqlite.sql");
    sqlx::raw_sql(old).execute(&mut hand).await.unwrap();
    let before = whole(&path).await;
    // Everything is done but the last statement.
    let statements = concat!(include_str!("migrations/0009_agent.sql"), "INSERT INTO nowhere VALUES (1);");
    let breaks_off = Migrations { prefix: (9, "agent", statements), ..open::MIGRATIONS };
    let failure = open::run_migrations(&mut hand, &breaks_off).await.unwrap_err();
    assert!(format!("{failure:?}").contains("nowhere"), "{failure:?}");
    hand.close().await.unwrap();
    assert_eq!(whole(&path).await, before);

    let store = Store::open(&path).await.unwrap();
    assert_eq!(store.unsettled(&AgentName::adjutant(), None).await.unwrap().len(), 2);
}

/// A row that refers to nothing would be lost without a word: the database is left as it was.
#[tokio::test]
async fn a_migration_checks_what_refers_to_what() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("adjutant.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let mut hand = options.foreign_keys(false).connect().await.unwrap();
    let old = include_str!("../../tests/fixtures/first_version.sqlite.sql");
    sqlx::raw_sql(old).execute(&mut hand).await.unwrap();
    sqlx::raw_sql("UPDATE inbox SET conversation = 99 WHERE accepted = 1").execute(&mut hand).await.unwrap();
    hand.close().await.unwrap();
    let before = whole(&path).await;
    let refused = Store::open(&path).await.unwrap_err();
    let StoreError::Unreadable { message } = &refused else { panic!("{refused:?}") };
    assert!(message.contains("1 of its rows"), "{message}");
    assert_eq!(whole(&path).await, before);
}

async fn plan(connection: &mut SqliteConnection, query: &str) -> String {
    let query = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {query}"));
    let rows: Vec<(i64, i64, i64, String)> = sqlx::query_as(query).fetch_all(connection).await.unwrap();
    rows.into_iter().map(|(_, _, _, detail)| detail).collect::<Vec<_>>().join("; ")
}
