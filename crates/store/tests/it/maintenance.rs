//! Maintenance of a database: status, check, backup and retention.

use std::cell::Cell;
use std::path::Path;

use adjutant_core::port::{ConversationFilter, ConversationStore, Journal as _, StoreError};
use adjutant_core::{AgentName, UserId};
use adjutant_store::{Maintenance as _, contract, sqlite};
use adjutant_tools::{TaskChange, TaskDescription, TaskFilter, TaskStore};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use tempfile::TempDir;

use crate::place;

/// Changes a file over a second connection.
async fn hand(path: &Path, sql: &'static str) {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .foreign_keys(false);
    let mut connection = options.connect().await.unwrap();
    sqlx::query(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

const AGE: &str = "UPDATE adjutant_applied_change SET at = '2020-01-01T00:00:00.000000000Z'";

async fn add_tasks(store: &sqlite::Store, number: usize) {
    for number in 0..number {
        let description = TaskDescription::new(&format!("{number} {}", "x".repeat(900))).unwrap();
        store
            .apply(
                &UserId::local(),
                &TaskChange::Add {
                    description,
                    from_others: false,
                },
                None,
            )
            .await
            .unwrap();
    }
}

async fn tasks(path: &Path) -> usize {
    let store = sqlite::Store::open(path).await.unwrap();
    let tasks = TaskStore::list(&store, &UserId::local(), TaskFilter::All)
        .await
        .unwrap()
        .len();
    store.close().await;
    tasks
}

#[tokio::test]
async fn a_file_keeps_the_maintenance_contract() {
    let memory = async || sqlite::Store::in_memory().await.unwrap();
    contract::what_is_old_goes_and_what_is_pending_never(&memory().await).await;
    contract::many_old_conversations_go(&memory().await).await;
    contract::why_a_fact_is_there_stays(&memory().await).await;
    contract::the_status_counts_what_is_there(&memory().await).await;
    contract::users_are_those_who_have_something(&memory().await).await;
    let (folder, path) = place();
    let store = sqlite::Store::open(&path).await.unwrap();
    let status = store.status().await.unwrap();
    assert_eq!(status.journal_mode.as_deref(), Some("wal"));
    assert!(
        status.product.starts_with("SQLite 3.") && status.place.contains("adjutant.db"),
        "{status:?}"
    );
    contract::a_change_is_remembered_while_it_may_be_repeated(&store, async || {
        hand(&path, AGE).await
    })
    .await;
    let number = Cell::new(0);
    contract::what_does_not_fit_together_is_found(async || {
        number.set(number.get() + 1);
        let path = folder.path().join(format!("{}.db", number.get()));
        let store = sqlite::Store::open(&path).await.unwrap();
        (store, async move |sql| hand(&path, sql).await)
    })
    .await;
    contract::a_snapshot_that_does_not_fit_is_found(async || {
        number.set(number.get() + 1);
        let path = folder.path().join(format!("{}.db", number.get()));
        let store = sqlite::Store::open(&path).await.unwrap();
        (store, async move |sql| hand(&path, sql).await)
    })
    .await;
    contract::branches_are_checked_and_removed(async || {
        number.set(number.get() + 1);
        let path = folder.path().join(format!("{}.db", number.get()));
        let store = sqlite::Store::open(&path).await.unwrap();
        (store, async move |sql| hand(&path, sql).await)
    })
    .await;
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_server_keeps_the_maintenance_contract() {
    use adjutant_store::postgres::Store;

    let Some(server) = crate::server::Server::start() else {
        return;
    };
    let number = Cell::new(0);
    let fresh = async || {
        number.set(number.get() + 1);
        let url = server.create_database(&format!("m{}", number.get())).await;
        (Store::connect(&url, 2).await.unwrap(), url)
    };
    let hand = async |url: &str, sql: &'static str| {
        let options: sqlx::postgres::PgConnectOptions = url.parse().unwrap();
        let mut connection = options.connect().await.unwrap();
        sqlx::query(sql).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    };
    contract::what_is_old_goes_and_what_is_pending_never(&fresh().await.0).await;
    contract::many_old_conversations_go(&fresh().await.0).await;
    contract::why_a_fact_is_there_stays(&fresh().await.0).await;
    contract::the_status_counts_what_is_there(&fresh().await.0).await;
    contract::users_are_those_who_have_something(&fresh().await.0).await;
    let (store, url) = fresh().await;
    contract::a_change_is_remembered_while_it_may_be_repeated(&store, async || {
        hand(&url, AGE).await
    })
    .await;
    let refused = store
        .backup(Path::new("copy.dump"))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("pg_dump") && refused.contains("--file=copy.dump"),
        "{refused}"
    );
    assert!(
        store
            .status()
            .await
            .unwrap()
            .product
            .starts_with("PostgreSQL 1")
    );
    contract::what_does_not_fit_together_is_found(async || {
        let (store, url) = fresh().await;
        (store, async move |sql| hand(&url, sql).await)
    })
    .await;
    contract::a_snapshot_that_does_not_fit_is_found(async || {
        let (store, url) = fresh().await;
        (store, async move |sql| hand(&url, sql).await)
    })
    .await;
    contract::branches_are_checked_and_removed(async || {
        let (store, url) = fresh().await;
        (store, async move |sql| hand(&url, sql).await)
    })
    .await;
}

#[tokio::test]
async fn a_row_that_refers_to_nothing_is_found() {
    let (_folder, path) = place();
    let store = sqlite::Store::open(&path).await.unwrap();
    hand(&path, "INSERT INTO adjutant_inbox (conversation, id, v, body, at) VALUES (7, 'i', 1, '{}', 'now')")
        .await;
    let findings = store.check().await.unwrap();
    assert_eq!(findings.len(), 1);
    assert!(
        findings[0]
            .to_string()
            .contains("row 1 of adjutant_inbox refers to a row of adjutant_conversation"),
        "{findings:?}"
    );
}

#[tokio::test]
async fn a_copy_is_whole_sound_private_and_never_in_the_way() {
    let (folder, path) = place();
    let store = sqlite::Store::open(&path).await.unwrap();
    add_tasks(&store, 50).await;
    let copy = folder.path().join("copy.db");
    // Another task writes all the while.
    let (copied, ()) = tokio::join!(store.backup(&copy), add_tasks(&store, 20));
    copied.unwrap();
    let there = tasks(&copy).await;
    assert!((50..=70).contains(&there), "{there}");
    let other = sqlite::Store::open(&copy).await.unwrap();
    assert_eq!(other.check().await.unwrap(), []);
    assert_eq!(
        other.status().await.unwrap().journal_mode.as_deref(),
        Some("wal")
    );
    other.close().await;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(
            std::fs::metadata(&copy).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
    let before = std::fs::read(&copy).unwrap();
    let StoreError::Unusable { message, .. } = store.backup(&copy).await.unwrap_err() else {
        panic!()
    };
    assert!(message.contains("copy.db is there already"), "{message}");
    assert_eq!(std::fs::read(&copy).unwrap(), before);

    let nowhere = store
        .backup(&folder.path().join("no/such/folder.db"))
        .await
        .unwrap_err();
    assert!(
        matches!(nowhere, StoreError::Unusable { .. }),
        "{nowhere:?}"
    );
    let memory = sqlite::Store::in_memory().await.unwrap();
    let refused = memory
        .backup(&folder.path().join("memory.db"))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("the database in memory: it is gone with this process"),
        "{refused}"
    );
    store.close().await;
    assert_eq!(names(&folder), ["adjutant.db", "copy.db"]);
}

#[tokio::test]
async fn a_damaged_file_is_found_out_and_not_copied() {
    let (folder, path) = place();
    let store = sqlite::Store::open(&path).await.unwrap();
    add_tasks(&store, 500).await;
    store.close().await;
    let mut bytes = std::fs::read(&path).unwrap();
    // What lies in the middle of 500 tasks is tasks.
    let (middle, end) = (bytes.len() / 2, bytes.len() / 2 + 8192);
    bytes[middle..end].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();

    let store = sqlite::Store::open(&path).await.unwrap();
    let findings = store.check().await.unwrap();
    assert!(
        !findings.is_empty() && findings[0].place.contains("adjutant.db"),
        "{findings:?}"
    );
    let refused = store
        .backup(&folder.path().join("copy.db"))
        .await
        .unwrap_err();
    assert!(
        matches!(refused, StoreError::Unreadable { .. }),
        "{refused:?}"
    );
    // What is not damaged is still there.
    assert_eq!(
        store.unsettled(&AgentName::adjutant(), None).await.unwrap(),
        []
    );
    assert_eq!(
        ConversationStore::list(
            &store,
            &AgentName::adjutant(),
            &UserId::local(),
            &ConversationFilter::newest(1)
        )
        .await
        .unwrap(),
        []
    );
    store.close().await;
    assert_eq!(names(&folder), ["adjutant.db"]);
}

fn names(folder: &TempDir) -> Vec<String> {
    let files = std::fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
