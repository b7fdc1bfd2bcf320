//! Databases made by the code of the first version: opened by this version, everything in them is
//! there, under the default agent.
//!
//! `first_version.*.sql` are the databases, `first_version.*.json` is what the first version itself
//! read from them.

use std::collections::BTreeSet;

use adjutant_core::conversation::Status;
use adjutant_core::port::{
    BudgetStore, ConversationFilter, ConversationStore, Deleted, Journal, LogStore, MemoryLedger,
    TokenScopes, TokenStore,
};
use adjutant_core::{AgentName, ConversationKey, DecisionFilter, MemoryScope, UserId};
use adjutant_store::{Maintenance, sqlite};
use adjutant_tools::{TaskFilter, TaskStore};
use jiff::civil::date;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Row as _};

use crate::place;

const SQLITE: &str = include_str!("../fixtures/first_version.sqlite.sql");
const SQLITE_READ: &str = include_str!("../fixtures/first_version.sqlite.json");

/// Conversations without a lease when the worker is gone.
const UNSETTLED: usize = 2;

/// Everything the first version read is read, and belongs to the agent of the product.
async fn holds_everything<S>(store: &S, read: &str) -> Vec<ConversationKey>
where
    S: Journal
        + LogStore
        + ConversationStore
        + TaskStore
        + BudgetStore
        + TokenStore
        + MemoryLedger
        + Maintenance,
{
    let read: Value = serde_json::from_str(read).unwrap();
    let (agent, other) = (AgentName::adjutant(), AgentName::new("other").unwrap());
    let (mut keys, mut running) = (Vec::new(), Vec::new());
    for known in read["conversations"].as_array().unwrap() {
        let key: ConversationKey = serde_json::from_value(
            json!({ "agent": agent, "user": known["user"], "conversation": known["id"] }),
        )
        .unwrap();
        let loaded = store.load(&key).await.unwrap();
        let events: Vec<Value> = loaded
            .events
            .iter()
            .map(|recorded| json!({ "seq": recorded.seq, "at": recorded.at, "event": recorded.event }))
            .collect();
        assert_eq!(json!(events), known["events"], "{key:?}");
        assert_eq!(json!(loaded.inbox), known["inbox"], "{key:?}");
        let mut summary = known["summary"].clone();
        if Status::from_events(&loaded.events).runs() {
            summary["running"] = json!(true);
            running.push(summary["id"].clone());
        }
        assert_eq!(
            json!(store.summary(&key).await.unwrap()),
            summary,
            "{key:?}"
        );
        keys.push(key);
    }
    for (name, known) in read["users"].as_object().unwrap() {
        let user = UserId::new(name).unwrap();
        let mut decisions = known["decisions"].clone();
        for decision in decisions.as_array_mut().unwrap() {
            decision["agent"] = json!("adjutant");
        }
        assert_eq!(
            json!(
                store
                    .decisions(&user, &DecisionFilter::default())
                    .await
                    .unwrap()
            ),
            decisions
        );
        let tasks = TaskStore::list(store, &user, TaskFilter::All)
            .await
            .unwrap();
        assert_eq!(json!(tasks), known["tasks"]);
        let all = ConversationFilter::newest(100);
        let list = ConversationStore::list(store, &agent, &user, &all)
            .await
            .unwrap();
        let mut known_list = known["list"].clone();
        for entry in known_list.as_array_mut().unwrap() {
            if running.contains(&entry["id"]) {
                entry["running"] = json!(true);
            }
        }
        assert_eq!(json!(list), known_list);
        assert_eq!(
            ConversationStore::list(store, &other, &user, &all)
                .await
                .unwrap(),
            []
        );
        assert_eq!(
            store.parked(&agent, Some(&user)).await.unwrap().len(),
            known["parked"]
        );
        let unsettled = store.unsettled(&agent, Some(&user)).await.unwrap();
        let unsettled: Vec<_> = unsettled.into_iter().map(|key| key.conversation).collect();
        assert_eq!(json!(unsettled), known["unsettled"]);
        let spent = store.spent(Some(&user), date(2026, 1, 1)).await.unwrap();
        assert_eq!(spent.tokens, known["tokens_spent"].as_u64().unwrap());
        assert_eq!(
            store.tokens(Some(&user)).await.unwrap().len(),
            known["tokens"]
        );
        let tokens = store.tokens(Some(&user)).await.unwrap();
        assert!(
            tokens
                .iter()
                .all(|token| token.grant.scopes == TokenScopes::ALL)
        );
    }
    let all_spent = read["users"]
        .as_object()
        .unwrap()
        .values()
        .map(|known| known["tokens_spent"].as_u64().unwrap());
    assert_eq!(
        store.spent(None, date(2026, 1, 1)).await.unwrap().tokens,
        all_spent.sum::<u64>()
    );
    let scope = MemoryScope {
        user: UserId::local(),
        vault: "/srv/ana/vault".to_owned(),
    };
    assert_eq!(
        store.newest(&scope, 9).await.unwrap().len(),
        read["memory_changes"]
    );
    assert_eq!(
        store.unsettled(&agent, None).await.unwrap().len(),
        UNSETTLED
    );
    assert_eq!(store.unsettled(&other, None).await.unwrap(), []);
    assert_eq!(store.check().await.unwrap(), []);
    keys
}

/// Deleting a conversation deletes its rows.
async fn deletes_with_everything<S: ConversationStore + Maintenance>(
    store: &S,
    keys: &[ConversationKey],
) {
    for key in keys {
        assert_eq!(
            ConversationStore::delete(store, key).await.unwrap(),
            Deleted::Yes
        );
    }
    assert_eq!(store.check().await.unwrap(), []);
    for table in store.status().await.unwrap().tables {
        let is_theirs = [
            "conversation",
            "inbox",
            "event",
            "blob",
            "decision",
            "tool_invocation",
        ];
        if is_theirs.contains(&table.name.as_str()) {
            assert_eq!(table.rows, 0, "{}", table.name);
        }
    }
}

async fn sqlite_of_first_version() -> (tempfile::TempDir, std::path::PathBuf) {
    let (folder, path) = place();
    let options = SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true);
    let mut hand = options.connect().await.unwrap();
    sqlx::raw_sql(SQLITE).execute(&mut hand).await.unwrap();
    hand.close().await.unwrap();
    (folder, path)
}

/// Every table, column, index and foreign key, in no order.
async fn sqlite_schema(path: &std::path::Path) -> BTreeSet<String> {
    let mut hand = SqliteConnectOptions::new()
        .filename(path)
        .connect()
        .await
        .unwrap();
    let parts = "
        SELECT 'column ' || t.name || ' ' || c.name || ' ' || c.type || ' ' || c.\"notnull\" || ' '
               || coalesce(c.dflt_value, '') || ' ' || c.pk || ' ' || c.hidden
        FROM sqlite_schema AS t JOIN pragma_table_xinfo(t.name) AS c WHERE t.type = 'table'
        UNION ALL
        SELECT 'key ' || t.name || ' ' || f.\"from\" || ' ' || f.\"table\" || ' ' || f.\"to\" || ' ' || f.on_delete
        FROM sqlite_schema AS t JOIN pragma_foreign_key_list(t.name) AS f WHERE t.type = 'table'
        UNION ALL
        SELECT 'index ' || i.name || ' ' || i.\"unique\" || ' ' || i.partial || ' '
               || (SELECT group_concat(name) FROM pragma_index_info(i.name))
        FROM sqlite_schema AS t JOIN pragma_index_list(t.name) AS i WHERE t.type = 'table'
        UNION ALL SELECT 'strict ' || name || ' ' || strict || ' ' || wr FROM pragma_table_list";
    let rows = sqlx::query(parts).fetch_all(&mut hand).await.unwrap();
    let parts = rows.iter().map(|row| row.get::<String, _>(0));
    parts
        .filter(|part| !part.contains("_sqlx_migrations"))
        .collect()
}

#[tokio::test]
async fn a_file_is_opened_and_holds_everything() {
    let (_folder, path) = sqlite_of_first_version().await;
    let store = sqlite::Store::open(&path).await.unwrap();
    holds_everything(&store, SQLITE_READ).await;
    store.close().await;

    let upgraded = sqlite_schema(&path).await;
    let store = sqlite::Store::open(&path).await.unwrap();
    let keys = holds_everything(&store, SQLITE_READ).await;
    assert_eq!(sqlite_schema(&path).await, upgraded);
    let (_other_folder, new) = place();
    sqlite::Store::open(&new).await.unwrap().close().await;
    assert_eq!(
        sqlite_schema(&new).await,
        upgraded,
        "a new database has the same schema"
    );
    deletes_with_everything(&store, &keys).await;
}

#[tokio::test]
async fn a_program_of_the_first_version_finds_a_newer_schema() {
    let (_folder, path) = sqlite_of_first_version().await;
    sqlite::Store::open(&path).await.unwrap().close().await;
    let mut hand = SqliteConnectOptions::new()
        .filename(&path)
        .connect()
        .await
        .unwrap();
    // What it looks at; it knows up to 8.
    let found: i64 = sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations")
        .fetch_one(&mut hand)
        .await
        .unwrap();
    assert_eq!(found, 9);
}

#[cfg(feature = "postgres")]
mod server {
    use adjutant_store::postgres;
    use sqlx::PgConnection;
    use sqlx::postgres::PgConnectOptions;

    use super::*;
    use crate::server::Server;

    const POSTGRES: &str = include_str!("../fixtures/first_version.postgres.sql");
    const POSTGRES_READ: &str = include_str!("../fixtures/first_version.postgres.json");

    async fn hand(url: &str) -> PgConnection {
        url.parse::<PgConnectOptions>()
            .unwrap()
            .connect()
            .await
            .unwrap()
    }

    async fn schema(url: &str) -> BTreeSet<String> {
        let parts = "
            SELECT concat_ws(' ', 'column', table_name, column_name, data_type, is_nullable, collation_name, column_default,
                   is_identity, generation_expression)
            FROM information_schema.columns WHERE table_schema = 'public'
            UNION ALL SELECT 'index ' || indexdef FROM pg_indexes WHERE schemaname = 'public'
            UNION ALL
            SELECT concat_ws(' ', 'constraint', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint
            WHERE connamespace = 'public'::regnamespace
            UNION ALL SELECT 'sequence ' || relname FROM pg_class
            WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace
            UNION ALL SELECT 'function ' || pg_get_functiondef(oid) FROM pg_proc
            WHERE pronamespace = 'public'::regnamespace";
        let rows = sqlx::query(parts)
            .fetch_all(&mut hand(url).await)
            .await
            .unwrap();
        let parts = rows.iter().map(|row| row.get::<String, _>(0));
        parts
            .filter(|part| !part.contains("_sqlx_migrations"))
            .collect()
    }

    #[tokio::test]
    async fn a_server_is_opened_and_holds_everything() {
        let Some(server) = Server::start() else {
            return;
        };
        let url = server.create_database("old").await;
        sqlx::raw_sql(POSTGRES)
            .execute(&mut hand(&url).await)
            .await
            .unwrap();
        let store = postgres::Store::connect(&url, 2).await.unwrap();
        holds_everything(&store, POSTGRES_READ).await;
        store.close().await;

        let upgraded = schema(&url).await;
        let store = postgres::Store::connect(&url, 2).await.unwrap();
        let keys = holds_everything(&store, POSTGRES_READ).await;
        assert_eq!(schema(&url).await, upgraded);
        let new = server.create_database("new").await;
        postgres::Store::connect(&new, 1)
            .await
            .unwrap()
            .close()
            .await;
        assert_eq!(
            schema(&new).await,
            upgraded,
            "a new database has the same schema"
        );
        deletes_with_everything(&store, &keys).await;
        store.close().await;
    }

    /// Tables of another program, and the records of its own `sqlx`, stay as they are.
    #[tokio::test]
    async fn other_programs_have_their_own_tables() {
        let Some(server) = Server::start() else {
            return;
        };
        let url = server.create_database("shared").await;
        let theirs = "
            CREATE TABLE task (mine TEXT);
            CREATE TABLE event (mine TEXT);
            CREATE TABLE _sqlx_migrations (version BIGINT PRIMARY KEY, description TEXT NOT NULL,
                installed_on TIMESTAMPTZ NOT NULL DEFAULT now(), success BOOLEAN NOT NULL, checksum BYTEA NOT NULL,
                execution_time BIGINT NOT NULL);
            INSERT INTO _sqlx_migrations VALUES (1, 'theirs', now(), TRUE, 'x', 1);
            INSERT INTO task VALUES ('wash the car');";
        sqlx::raw_sql(theirs)
            .execute(&mut hand(&url).await)
            .await
            .unwrap();
        let store = postgres::Store::connect(&url, 1).await.unwrap();
        assert_eq!(
            TaskStore::list(&store, &UserId::local(), TaskFilter::All)
                .await
                .unwrap(),
            []
        );
        assert_eq!(store.check().await.unwrap(), []);
        store.close().await;
        postgres::Store::connect(&url, 1)
            .await
            .unwrap()
            .close()
            .await;
        let kept = "SELECT (SELECT count(*) FROM task), (SELECT count(*) FROM _sqlx_migrations)";
        let kept: (i64, i64) = sqlx::query_as(kept)
            .fetch_one(&mut hand(&url).await)
            .await
            .unwrap();
        assert_eq!(kept, (1, 1));
    }
}
