//! Copies of everything in another database.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};

use adjutant_core::UserId;
use adjutant_core::port::StoreError;
use adjutant_store::{Maintenance as _, contract, copy, sqlite};
use adjutant_tools::{TaskChange, TaskDescription, TaskStore as _};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _, SqliteConnection};

use crate::place;

/// Tables that are not copied.
const LEFT_OUT: &str = "('adjutant_migration', 'adjutant_worker', 'adjutant_worker_session', 'adjutant_passage_words', \
    'adjutant_passage_words_config', 'adjutant_passage_words_data', 'adjutant_passage_words_docsize', 'adjutant_passage_words_idx')";

/// JSON that must not be parsed on the way: an escaped NUL, a number beyond doubles, a repeated
/// name, half a surrogate pair.
const ODD: &str = r#"{"nul": "\u0000", "large": 1e400, "twice": 1, "twice": 2, "half": "\ud800", "quotes": "'\\'' $1 E'\\n'"}"#;

async fn hand(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new()
        .filename(path)
        .foreign_keys(false)
        .connect()
        .await
        .unwrap()
}

/// Changes a file over a second connection.
async fn change(path: &Path, statements: &str) {
    let mut connection = hand(path).await;
    sqlx::raw_sql(AssertSqlSafe(statements))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
}

/// Returns every row of the copied tables, each value as an SQL literal.
async fn rows(path: &Path) -> Vec<String> {
    let mut connection = hand(path).await;
    let tables = format!(
        "SELECT tables.name, group_concat('quote(' || columns.name || ')', ' || '','' || ')
         FROM sqlite_schema AS tables JOIN pragma_table_xinfo(tables.name) AS columns
         WHERE tables.type = 'table' AND tables.name LIKE 'adjutant%' AND tables.name NOT IN {LEFT_OUT}
         GROUP BY tables.name ORDER BY tables.name"
    );
    let tables = sqlx::query(AssertSqlSafe(tables))
        .fetch_all(&mut connection)
        .await
        .unwrap();
    let mut found = Vec::new();
    for table in tables {
        let (name, values): (String, String) = (table.get(0), table.get(1));
        let statement = format!("SELECT '{name}: ' || {values} FROM {name} ORDER BY 1");
        let rows = sqlx::query(AssertSqlSafe(statement))
            .fetch_all(&mut connection)
            .await
            .unwrap();
        found.extend(rows.iter().map(|row| row.get::<String, _>(0)));
    }
    connection.close().await.unwrap();
    found
}

/// Creates a database with unusual rows in each table: more than a page, branches older than their
/// origins, and texts of all kinds.
async fn odd(path: &Path) -> sqlite::Store {
    let store = sqlite::Store::open(path).await.unwrap();
    let odd = ODD.replace('\'', "''");
    let long = "ä😀\u{fffd}'\\".repeat(60_000).replace('\'', "''");
    change(
        path,
        &format!(
            "INSERT INTO adjutant_conversation (key, agent, user_id, id, title, created_at, updated_at, next_seq, waiting, branched_from_key,
               branched_from_seq, parent, lease_by, lease_until, turn, parked_seq, wake_at)
             VALUES (3, 'a', 'ana', 'c3', '', 't', 't', 9, '[]', 7, 4, '{odd}', 'w', 't', 'turn', 8, 't'),
                    (7, 'a', 'ana ', 'c7', '{odd}', 't', 't', 9, '{odd}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
                    (9, 'b', 'ana', 'c3', '', 't', 't', 9, '[]', 3, 8, NULL, NULL, NULL, NULL, NULL, NULL);
             WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 1203)
             INSERT INTO adjutant_event SELECT 7, n, 1, 'k', NULL, 's' || n, '{odd}', 't', NULL FROM number;
             INSERT INTO adjutant_event VALUES (3, 5, 1, 'k', 'turn', NULL, '', 't', 'hash');
             INSERT INTO adjutant_blob VALUES (3, 'hash', '{long}'), (7, 'hash', '{odd}');
             INSERT INTO adjutant_snapshot VALUES (7, 600, 12, 1, 'digest', '{odd}');
             INSERT INTO adjutant_passage VALUES (5, 7, 3, 0, 'turn', 't', 2, '@m en:one {odd}'), (8, 3, 5, 1, 'turn', 't', 1, 'en:one');
             INSERT INTO adjutant_inbox VALUES (41, 7, 'i', 1, '{odd}', 't', 3, 'r', 'f', 2), (43, 3, 'i', 1, '{{}}', 't', NULL, NULL, NULL, NULL);
             INSERT INTO adjutant_decision (conversation, conversation_id, user_id, id, started_at, message, message_chars, model_provider,
               model_name, model_calls, iterations, cost_usd, model_ms, tool_ms)
             VALUES (7, 'c7', 'ana', 'd1', 't', '{odd}', 9, 'p', 'm', 1, 1, 0.1, 5, 5), (7, 'c7', 'ana', 'd2', 't', '', 0, 'p', 'm', 0, 0, 1e-300, 0, 0),
                    (7, 'c7', 'ana', 'd3', 't', '', 0, 'p', 'm', 0, 0, NULL, 0, 0);
             INSERT INTO adjutant_tool_invocation (number, conversation, user_id, decision, id, tool, arguments, success, data, ms, attempt, at)
             VALUES (5, NULL, 'ana', 'd', 'i', 't', '{odd}', 1, '{odd}', 1, 1, 't'), (6, 7, 'ana', 'd', 'j', 't', '', 0, NULL, 1, 1, 't');
             INSERT INTO adjutant_task VALUES ('ana', 9223372036854775807, 'x', 't', 't', NULL, 1), ('ana ', 1, '{odd}', 't', 't', 't', 0);
             INSERT INTO adjutant_deleted_task VALUES ('ana', 7, '{odd}', 't', 't', NULL, 't', 0), ('ana ', 7, 'x', 't', 't', 't', 't', 1);
             INSERT INTO adjutant_task_number VALUES ('s', 9, 'ana', '/v', 't', 1, '{odd}'), ('s', 10, 'ana', '/v', 't', 1, '');
             INSERT INTO adjutant_task_counter VALUES ('ana', 9223372036854775807), ('ana ', 12);
             INSERT INTO adjutant_applied_change VALUES ('ana', 'k', '{odd}', 't'), ('', 'k', '', 't');
             INSERT INTO adjutant_token VALUES ('t', 'digest', 'ana', 'n', 't', NULL, 'user', 'session', 't', 't', NULL, 'p', 'read write');
             INSERT INTO adjutant_budget VALUES ('', '2026-11-24', 0, 0, 0, 0, 0), ('ana', '2026-11-24', 1, 2, 3, 4, 5);
             INSERT INTO adjutant_budget_block VALUES ('b1', '2026-11-24', 'ana', 'w', 7, 't', 1, 2, 3, 4, 5, 0, 1, 2, 3, 4);
             INSERT INTO adjutant_budget_booking VALUES ('k', '2026-11-24', 'ana', NULL, 'b1', 0, 1, 1, 2, 3, 4, 5, 0);
             INSERT INTO adjutant_fact VALUES (5, 'ana', 'h', '{odd}', 1, 't', 't', NULL, NULL, NULL, 0), (9, 'ana ', 'h', 'x', 0, 't', 't', 'c7', 't', 'c', 9223372036854775807);
             INSERT INTO adjutant_fact_revision VALUES ('ana', 9223372036854775807), ('ana ', 0);
             INSERT INTO adjutant_user_setting VALUES ('ana', '{odd}', NULL), ('ana ', NULL, '{{}}');
             INSERT INTO adjutant_memory_change VALUES (17, 's', 'ana', '/v', 'i', 't', NULL, 'st', 'b', 'a', 1, '{odd}');"
        ),
    )
    .await;
    store
}

#[tokio::test]
async fn a_copy_in_a_file_is_the_same() {
    let (folder, path) = place();
    let (from, there) = (odd(&path).await, folder.path().join("copy.db"));
    let to = sqlite::Store::open(&there).await.unwrap();
    let reported = RefCell::new(Vec::new());
    let copied = copy(&from, &to, |rows| {
        reported.borrow_mut().push((rows.name.clone(), rows.rows))
    })
    .await
    .unwrap();
    assert_eq!(rows(&there).await, rows(&path).await);
    // What is made from other rows is made there.
    let found = "SELECT count(*) FROM adjutant_passage_words WHERE adjutant_passage_words MATCH '\"en:one\"'";
    let found: i64 = sqlx::query_scalar(found)
        .fetch_one(&mut hand(&there).await)
        .await
        .unwrap();
    assert_eq!(found, 2);
    assert_eq!(
        copied
            .iter()
            .find(|table| table.name == "event")
            .unwrap()
            .rows,
        1204
    );
    let events: Vec<u64> = reported
        .take()
        .into_iter()
        .filter(|(name, _)| name == "event")
        .map(|(_, rows)| rows)
        .collect();
    assert_eq!(events, [500, 1000, 1204]);
}

#[tokio::test]
async fn what_has_something_in_it_is_left_as_it_is() {
    let (folder, path) = place();
    let (from, there) = (odd(&path).await, folder.path().join("copy.db"));
    let to = sqlite::Store::open(&there).await.unwrap();
    let description = TaskDescription::new("mine").unwrap();
    to.apply(
        &UserId::local(),
        &TaskChange::Add {
            description,
            from_others: false,
        },
        None,
    )
    .await
    .unwrap();
    let before = rows(&there).await;
    let refused = copy(&from, &to, |_| {}).await.unwrap_err();
    let StoreError::Unusable { message, .. } = refused else {
        panic!("{refused:?}")
    };
    assert!(
        message.contains("copy.db") && message.contains("it is not empty (adjutant_task)"),
        "{message}"
    );
    assert_eq!(rows(&there).await, before);
    // And nothing can be copied onto itself.
    assert!(copy(&from, &from, |_| {}).await.is_err());
}

#[tokio::test]
async fn a_copy_that_breaks_off_leaves_nothing() {
    let (folder, path) = place();
    let (from, there) = (odd(&path).await, folder.path().join("copy.db"));
    let to = sqlite::Store::open(&there).await.unwrap();
    // What cannot be read stands in the last of several tables.
    change(&path, "INSERT INTO adjutant_memory_change VALUES (99, 's', 'ana', '/v', 'j', 't', NULL, 'st', 'b', 'a', 1, CAST(x'ff' AS TEXT))").await;
    let broken = copy(&from, &to, |_| {}).await.unwrap_err();
    assert!(
        matches!(&broken, StoreError::Unreadable { message, .. } if message.contains("adjutant.db")),
        "{broken:?}"
    );
    assert_eq!(rows(&there).await, [""; 0]);
    change(&path, "DELETE FROM adjutant_memory_change WHERE seq = 99").await;
    // Or what cannot be written.
    change(
        &there,
        "CREATE TRIGGER full BEFORE INSERT ON adjutant_token BEGIN SELECT RAISE(ABORT, 'no more'); END",
    )
    .await;
    let broken = copy(&from, &to, |_| {}).await.unwrap_err().to_string();
    assert!(
        broken.contains("copy.db") && broken.contains("no more"),
        "{broken}"
    );
    assert_eq!(rows(&there).await, [""; 0]);
    change(&there, "DROP TRIGGER full").await;
    copy(&from, &to, |_| {}).await.unwrap();
    assert_eq!(rows(&there).await, rows(&path).await);
}

#[tokio::test]
async fn the_copy_has_what_was_there_when_it_began() {
    let (folder, path) = place();
    let from = odd(&path).await;
    let before = rows(&path).await;
    let there = folder.path().join("copy.db");
    let to = sqlite::Store::open(&there).await.unwrap();
    let written = Cell::new(false);
    let user = UserId::local();
    let copying = copy(&from, &to, |rows| {
        // Everything else is still to be read.
        if rows.name == "conversation" {
            written.set(true);
        }
    });
    let writing = async {
        while !written.get() {
            tokio::task::yield_now().await;
        }
        let description = TaskDescription::new("later").unwrap();
        from.apply(
            &user,
            &TaskChange::Add {
                description,
                from_others: false,
            },
            None,
        )
        .await
        .unwrap();
        change(
            &path,
            "DELETE FROM adjutant_event WHERE seq > 600; DELETE FROM adjutant_memory_change",
        )
        .await;
    };
    let (copied, ()) = tokio::join!(copying, writing);
    copied.unwrap();
    assert_eq!(rows(&there).await, before);
    assert_ne!(rows(&path).await, before);
}

#[cfg(feature = "postgres")]
mod server {
    use adjutant_core::port::Journal as _;
    use adjutant_store::postgres;
    use sqlx::PgConnection;
    use sqlx::postgres::PgConnectOptions;

    use super::*;
    use crate::server::Server;

    async fn connect(url: &str) -> PgConnection {
        let options: PgConnectOptions = url.parse().unwrap();
        options.connect().await.unwrap()
    }

    /// Copies a file to a server and back; the place of the file there is then.
    async fn there_and_back(middle: &postgres::Store, from: &sqlite::Store) -> PathBuf {
        let there = copy(from, middle, |_| {}).await.unwrap();
        let path = from.path().unwrap().with_extension("back");
        let back = sqlite::Store::open(&path).await.unwrap();
        assert_eq!(copy(middle, &back, |_| {}).await.unwrap(), there);
        back.close().await;
        path
    }

    #[tokio::test]
    async fn to_a_server_and_back_is_the_same() {
        let Some(server) = Server::start() else {
            return;
        };
        let (_folder, path) = place();
        let from = odd(&path).await;
        let middle = postgres::Store::connect(&server.create_database("odd").await, 2)
            .await
            .unwrap();
        let back = there_and_back(&middle, &from).await;
        assert_eq!(rows(&back).await, rows(&path).await);

        let mut connection = connect(&server.url("odd")).await;
        let body: String = sqlx::query_scalar(
            "SELECT body FROM adjutant_event WHERE conversation = 7 AND seq = 1203",
        )
        .fetch_one(&mut connection)
        .await
        .unwrap();
        assert_eq!(body, ODD);
        // Whatever comes next has the next number.
        let key = contract_key();
        let input = adjutant_core::Input::new(
            adjutant_core::InputId::new("next").unwrap(),
            jiff::Timestamp::UNIX_EPOCH,
            adjutant_core::InputBody::message("hello"),
        );
        middle.submit(&key, &input).await.unwrap();
        let numbers: (i64, i64) = sqlx::query_as(
            "SELECT max(key), (SELECT max(accepted) FROM adjutant_inbox) FROM adjutant_conversation",
        )
        .fetch_one(&mut connection)
        .await
        .unwrap();
        assert_eq!(numbers, (10, 44));

        // Both schemas have the same columns, so that what is checked for one holds for the other.
        let of_server = format!(
            "SELECT table_name || '.' || column_name FROM information_schema.columns
             WHERE table_name LIKE 'adjutant%' AND table_name NOT IN {LEFT_OUT} AND is_generated = 'NEVER' ORDER BY 1"
        );
        let mut of_server: Vec<String> = sqlx::query_scalar(AssertSqlSafe(of_server))
            .fetch_all(&mut connection)
            .await
            .unwrap();
        let of_file = format!(
            "SELECT tables.name || '.' || columns.name FROM sqlite_schema AS tables JOIN pragma_table_xinfo(tables.name) AS columns
             WHERE tables.type = 'table' AND tables.name LIKE 'adjutant%' AND tables.name NOT IN {LEFT_OUT} AND columns.hidden = 0"
        );
        let mut of_file: Vec<String> = sqlx::query_scalar(AssertSqlSafe(of_file))
            .fetch_all(&mut hand(&path).await)
            .await
            .unwrap();
        of_server.sort();
        of_file.sort();
        assert_eq!(of_server, of_file);
    }

    fn contract_key() -> adjutant_core::ConversationKey {
        adjutant_core::ConversationKey {
            agent: adjutant_core::AgentName::adjutant(),
            user: UserId::local(),
            conversation: "00000000-0000-7000-8000-000000000001".parse().unwrap(),
        }
    }

    #[tokio::test]
    async fn whatever_a_store_holds_is_copied() {
        let Some(server) = Server::start() else {
            return;
        };
        let (folder, _) = place();
        let made = RefCell::new(Vec::new());
        let make = async || {
            let path = folder.path().join(format!("{}.db", made.borrow().len()));
            let store = sqlite::Store::open(&path).await.unwrap();
            made.borrow_mut().push((path, store.clone()));
            store
        };
        contract::task_store(make).await;
        contract::journal(make).await;
        contract::token_store(make).await;
        contract::budget_store(make).await;
        contract::memory_ledger(make).await;
        contract::fact_store(make).await;
        contract::user_setting_store(make).await;
        contract::past_conversations(make).await;
        let made = made.take();
        assert!(made.len() > 30, "{}", made.len());
        let url = server.create_database("made").await;
        let middle = postgres::Store::connect(&url, 2).await.unwrap();
        let mut connection = connect(&url).await;
        for (path, store) in made {
            let back = there_and_back(&middle, &store).await;
            assert_eq!(rows(&back).await, rows(&path).await);
            assert_eq!(middle.check().await.unwrap(), store.check().await.unwrap());
            store.close().await;
            let empty = "TRUNCATE adjutant_task, adjutant_deleted_task, adjutant_task_number, adjutant_task_counter, adjutant_applied_change, adjutant_conversation, adjutant_inbox,
                         adjutant_event, adjutant_blob, adjutant_decision, adjutant_tool_invocation, adjutant_token, adjutant_budget,
                         adjutant_budget_block, adjutant_budget_booking, adjutant_memory_change, adjutant_snapshot, adjutant_passage, adjutant_fact, adjutant_fact_revision, adjutant_user_setting";
            sqlx::raw_sql(empty).execute(&mut connection).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_server_that_refuses_keeps_nothing_of_it() {
        let Some(server) = Server::start() else {
            return;
        };
        let (_folder, path) = place();
        let from = odd(&path).await;
        let url = server.create_database("refusing").await;
        let to = postgres::Store::connect(&url, 2).await.unwrap();
        let mut connection = connect(&url).await;
        let refuse = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no more'; END $$;
                      CREATE TRIGGER refuse BEFORE INSERT ON adjutant_token FOR EACH ROW EXECUTE FUNCTION refuse()";
        sqlx::raw_sql(refuse)
            .execute(&mut connection)
            .await
            .unwrap();
        let broken = copy(&from, &to, |_| {}).await.unwrap_err().to_string();
        assert!(
            broken.contains("refusing") && broken.contains("no more"),
            "{broken}"
        );
        let left: i64 = sqlx::query_scalar(
            "SELECT (SELECT count(*) FROM adjutant_conversation) + (SELECT count(*) FROM adjutant_task)",
        )
        .fetch_one(&mut connection)
        .await
        .unwrap();
        assert_eq!(left, 0);
        sqlx::raw_sql("DROP TRIGGER refuse ON adjutant_token")
            .execute(&mut connection)
            .await
            .unwrap();
        copy(&from, &to, |_| {}).await.unwrap();
        let refused = copy(&from, &to, |_| {}).await.unwrap_err().to_string();
        assert!(
            refused.contains("it is not empty (adjutant_task)"),
            "{refused}"
        );
    }
}
