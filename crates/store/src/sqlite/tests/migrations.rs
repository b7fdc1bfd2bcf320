//! Migrations of databases that an older version wrote.

use super::*;

#[tokio::test]
async fn a_database_of_the_first_schema_is_brought_up_to_date_and_keeps_its_rows() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("adjutant.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true);
    let mut old = options.connect().await.unwrap();
    let first = Migration::new(
        1,
        "initial".into(),
        MigrationType::Simple,
        SqlStr::from_static(include_str!("../migrations/0001_initial.sql")),
        false,
    );
    Migrator::with_migrations(vec![first])
        .run(&mut old)
        .await
        .unwrap();
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
    let decisions = store
        .decisions(&UserId::local(), &DecisionFilter::default())
        .await
        .unwrap();
    assert_eq!(decisions.len(), 1);
    assert_eq!(
        (
            decisions[0].message.as_str(),
            decisions[0].usage.input_tokens
        ),
        ("add milk", Some(12))
    );
    // An older version did not record the cost: it is unknown, not zero.
    assert_eq!((decisions[0].cost, decisions[0].notices.len()), (None, 0));
}

/// Returns the statements that made the schema, and the number of rows.
async fn whole(path: &Path) -> (Vec<String>, i64) {
    let mut hand = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(path)
        .connect()
        .await
        .unwrap();
    let schema = "SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY type, name";
    let schema = sqlx::query_scalar(schema)
        .fetch_all(&mut hand)
        .await
        .unwrap();
    let rows = "SELECT (SELECT count(*) FROM event) + (SELECT count(*) FROM conversation) + (SELECT count(*) FROM _sqlx_migrations)";
    let rows = sqlx::query_scalar(rows).fetch_one(&mut hand).await.unwrap();
    hand.close().await.unwrap();
    (schema, rows)
}

#[tokio::test]
async fn a_migration_that_breaks_off_leaves_the_first_version_as_it_was() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("adjutant.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true);
    let mut hand = options.connect().await.unwrap();
    let old = include_str!("../../../tests/fixtures/first_version.sqlite.sql");
    sqlx::raw_sql(old).execute(&mut hand).await.unwrap();
    let before = whole(&path).await;
    // Everything is done but the last statement.
    let statements = concat!(
        include_str!("../migrations/0009_agent.sql"),
        "INSERT INTO nowhere VALUES (1);"
    );
    let breaks_off = Migrations {
        prefix: (9, "agent", statements),
        ..open::MIGRATIONS
    };
    hand.close().await.unwrap();
    let mut rows = SqliteConnection::new(rusqlite::Connection::open(&path).unwrap());
    let failure = open::run_migrations(&mut rows, &breaks_off).unwrap_err();
    assert!(format!("{failure:?}").contains("nowhere"), "{failure:?}");
    assert_eq!(whole(&path).await, before);

    let store = Store::open(&path).await.unwrap();
    assert_eq!(
        store
            .unsettled(&AgentName::adjutant(), None)
            .await
            .unwrap()
            .len(),
        2
    );
}

/// A row with a broken reference fails the migration, and the database stays as it was.
#[tokio::test]
async fn a_migration_checks_what_refers_to_what() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("adjutant.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true);
    let mut hand = options.foreign_keys(false).connect().await.unwrap();
    let old = include_str!("../../../tests/fixtures/first_version.sqlite.sql");
    sqlx::raw_sql(old).execute(&mut hand).await.unwrap();
    sqlx::raw_sql("UPDATE inbox SET conversation = 99 WHERE accepted = 1")
        .execute(&mut hand)
        .await
        .unwrap();
    hand.close().await.unwrap();
    let before = whole(&path).await;
    let refused = Store::open(&path).await.unwrap_err();
    let StoreError::Unreadable { message, .. } = &refused else {
        panic!("{refused:?}")
    };
    assert!(message.contains("1 of its rows"), "{message}");
    assert_eq!(whole(&path).await, before);
}
