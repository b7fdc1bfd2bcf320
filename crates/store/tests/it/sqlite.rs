use adjutant_core::port::{ConversationFilter, ConversationStore, StoreError};
use adjutant_core::{AgentName, LogContent, UserId};
use adjutant_store::{contract, sqlite::Store};
use adjutant_tools::{TaskChange, TaskDescription, TaskFilter, TaskStore};

use crate::place;

async fn in_memory() -> Store {
    Store::in_memory().await.unwrap()
}

#[tokio::test]
async fn memory_keeps_the_task_contract() {
    contract::task_store(in_memory).await;
}

#[tokio::test]
async fn memory_keeps_the_token_contract() {
    contract::token_store(in_memory).await;
}

#[tokio::test]
async fn memory_keeps_the_budget_contract() {
    contract::budget_store(in_memory).await;
}

#[tokio::test]
async fn memory_keeps_the_memory_ledger_contract() {
    contract::memory_ledger(in_memory).await;
    contract::fact_store(in_memory).await;
    contract::user_setting_store(in_memory).await;
    contract::task_index(in_memory).await;
}

#[tokio::test]
async fn memory_keeps_the_contract_of_past_conversations() {
    contract::past_conversations(in_memory).await;
}

#[tokio::test]
async fn memory_keeps_the_journal_contract() {
    contract::journal(in_memory).await;
    contract::a_change_is_written_with_its_events(&in_memory().await).await;
    contract::a_change_is_undone_with_its_events(&in_memory().await).await;
    contract::snapshots(in_memory).await;
    for content in [LogContent::Redacted, LogContent::None] {
        contract::logs_have_the_content_that_the_store_allows(
            &in_memory().await.with_log_content(content),
        )
        .await;
    }
}

#[tokio::test]
async fn a_file_keeps_the_task_contract() {
    let (folder, _) = place();
    let number = std::cell::Cell::new(0);
    contract::task_store(async || {
        number.set(number.get() + 1);
        Store::open(folder.path().join(format!("{}.db", number.get())))
            .await
            .unwrap()
    })
    .await;
}

#[tokio::test]
async fn a_file_keeps_the_journal_contract() {
    let (folder, _) = place();
    let number = std::cell::Cell::new(0);
    contract::journal(async || {
        number.set(number.get() + 1);
        Store::open(folder.path().join(format!("{}.db", number.get())))
            .await
            .unwrap()
    })
    .await;
}

#[tokio::test]
async fn a_file_is_there_after_reopening() {
    let (_folder, path) = place();
    contract::all_rows_are_there_after_reopening(
        Store::open(&path).await.unwrap(),
        async |store| {
            store.close().await;
            Store::open(&path).await.unwrap()
        },
    )
    .await;
}

/// Several connections of one file exclude each other as several processes do.
#[tokio::test]
async fn of_many_stores_opened_at_once_one_creates_the_schema() {
    for _ in 0..5 {
        let (_folder, path) = place();
        let open = || Store::open(&path);
        let (a, b, c, d, e, f) = tokio::join!(open(), open(), open(), open(), open(), open());
        let stores: Vec<_> = [a, b, c, d, e, f].into_iter().map(Result::unwrap).collect();
        let user = UserId::local();
        let change = TaskChange::Add {
            description: TaskDescription::new("buy milk").unwrap(),
            from_others: false,
        };
        let add = |at: usize| stores[at].apply(&user, &change, None);
        let (a, b, c, d, e, f) = tokio::join!(add(0), add(1), add(2), add(3), add(4), add(5));
        for added in [a, b, c, d, e, f] {
            added.unwrap();
        }
        let tasks = TaskStore::list(&stores[0], &user, TaskFilter::All)
            .await
            .unwrap();
        assert_eq!(
            tasks.iter().map(|task| task.id.get()).collect::<Vec<_>>(),
            [1, 2, 3, 4, 5, 6]
        );
    }
}

#[tokio::test]
async fn a_store_returns_its_path_and_the_version_of_sqlite() {
    let (folder, path) = place();
    let store = Store::open(&path).await.unwrap();
    assert_eq!(store.path(), Some(path.as_path()));
    assert!(store.version().starts_with("3."), "{}", store.version());
    let memory = in_memory().await;
    assert_eq!((memory.path(), memory.version()), (None, store.version()));
    // A name is a name, not a URI with options.
    let odd = folder.path().join("file:a b?mode=ro%20#é.db");
    Store::open(&odd).await.unwrap().close().await;
    assert!(odd.is_file());
}

#[tokio::test]
async fn a_closed_store_answers_with_an_error() {
    let store = in_memory().await;
    let clone = store.clone();
    store.close().await;
    let answer = ConversationStore::list(
        &clone,
        &AgentName::adjutant(),
        &UserId::local(),
        &ConversationFilter::newest(10),
    )
    .await;
    assert!(
        matches!(answer, Err(StoreError::Unavailable { .. })),
        "{answer:?}"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn what_is_made_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;

    let (folder, _) = place();
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = folder.path().join("data/adjutant/adjutant.db");
    let store = Store::open(&path).await.unwrap();
    let change = TaskChange::Add {
        description: TaskDescription::new("buy milk").unwrap(),
        from_others: false,
    };
    store.apply(&UserId::local(), &change, None).await.unwrap();
    for name in ["adjutant.db", "adjutant.db-wal", "adjutant.db-shm"] {
        assert_eq!(mode(&path.with_file_name(name)), 0o600, "{name}");
    }
    assert_eq!(
        (
            mode(&folder.path().join("data")),
            mode(&folder.path().join("data/adjutant"))
        ),
        (0o700, 0o700)
    );
    store.close().await;

    // Permissions that were given to others stay.
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
    std::fs::set_permissions(path.parent().unwrap(), PermissionsExt::from_mode(0o750)).unwrap();
    Store::open(&path).await.unwrap().close().await;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o640, 0o750));
}

#[tokio::test]
async fn subscribers_notice_writes_of_other_processes() {
    let (_folder, path) = place();
    let (one, two) = (
        Store::open(&path).await.unwrap(),
        Store::open(&path).await.unwrap(),
    );
    contract::changes_are_told_to_other_processes(&one, &two).await;
    contract::nobody_else_is_heard(&one).await;
}

#[tokio::test]
async fn the_drivers_error_is_the_source_of_ours() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    std::fs::write(
        &path,
        "no database, but long enough to be read as one".repeat(100),
    )
    .unwrap();
    let refused = Store::open(&path).await.unwrap_err();
    let cause = std::error::Error::source(&refused).expect("SQLite said what is wrong");
    let cause = cause.downcast_ref::<rusqlite::Error>().unwrap();
    assert_eq!(
        cause.sqlite_error_code(),
        Some(rusqlite::ErrorCode::NotADatabase)
    );

    let occupied = path.join("below").join("adjutant.db");
    let refused = Store::open(&occupied).await.unwrap_err();
    let cause = std::error::Error::source(&refused).expect("the system said what is wrong");
    let cause = cause.downcast_ref::<std::io::Error>().unwrap();
    assert_eq!(cause.kind(), std::io::ErrorKind::NotADirectory);
}
