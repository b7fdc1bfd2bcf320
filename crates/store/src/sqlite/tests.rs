//! Tests that need access to the store's internals: a full disk, locks with short timeouts, files
//! that may not be written to, and the batching of the writer thread.

mod migrations;
mod query_plans;

use std::time::Duration;

use adjutant_core::port::{
    Beat, Begin, Begun, Claim, ConversationFilter, ConversationStore, GroupBy, Journal as _,
    StoreError, Worker,
};
use adjutant_core::{
    AgentName, BoxFuture, ConversationKey, DecisionFilter, Event, Input, InputBody, InputId,
    Recorded, UserId, port::LogStore as _,
};
use adjutant_tools::{TaskChange, TaskDescription, TaskStore as _};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{ConnectOptions as _, Connection as _, SqlStr};
use tempfile::TempDir;

use super::*;
use crate::Maintenance as _;
use crate::sql::Connection as _;
use crate::sql::migrate::Migrations;

fn input(number: usize) -> Input {
    let text = format!("{number} {}", "long ".repeat(2000));
    let at = jiff::Timestamp::UNIX_EPOCH;
    Input::new(
        InputId::new(format!("i{number}")).unwrap(),
        at,
        InputBody::message(text),
    )
}

/// Limits the file to this many more pages.
async fn limit(store: &Store, more: i64) {
    let limited = store.backend.writer.visit(move |rows| {
        let pages: i64 = rows
            .raw
            .query_row("PRAGMA page_count", [], |row| row.get(0))?;
        let limit = format!("PRAGMA max_page_count = {}", pages + more);
        Ok(rows.raw.query_row(&limit, [], |_| Ok(()))?)
    });
    limited.await.unwrap();
}

fn one_conversation() -> ConversationKey {
    let conversation = "00000000-0000-7000-8000-000000000001".parse().unwrap();
    ConversationKey {
        agent: AgentName::adjutant(),
        user: UserId::local(),
        conversation,
    }
}

#[tokio::test]
async fn a_full_disk_refuses_and_keeps_what_was_accepted() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path().join("adjutant.db"))
        .await
        .unwrap();
    limit(&store, 20).await;

    let mut accepted = Vec::new();
    let refused = loop {
        let input = input(accepted.len());
        match store.submit(&one_conversation(), &input).await {
            Ok(()) => accepted.push(input),
            Err(error) => break error,
        }
    };
    let StoreError::Full { message, .. } = &refused else {
        panic!("{refused:?}")
    };
    assert!(
        message.contains("no space left") && message.contains("adjutant.db"),
        "{message}"
    );
    assert!(!accepted.is_empty());
    assert_eq!(
        store.load(&one_conversation()).await.unwrap().inbox,
        accepted
    );

    limit(&store, 1000).await;
    let again = input(accepted.len());
    store.submit(&one_conversation(), &again).await.unwrap();
    accepted.push(again);
    assert_eq!(
        store.load(&one_conversation()).await.unwrap().inbox,
        accepted
    );
}

/// A process that was suspended for longer than a lease goes on, unless another worker has taken a
/// lease of its epoch.
#[tokio::test]
async fn an_epoch_that_ran_out_goes_on_unless_one_of_its_leases_was_taken() {
    let store = Store::in_memory().await.unwrap();
    let key = one_conversation();
    store.submit(&key, &input(1)).await.unwrap();
    let worker = Worker {
        id: crate::worker_id(),
        epoch: 7,
    };
    let begin = |worker, lease| Begin {
        input: None,
        turn: &[],
        first: None,
        worker,
        lease,
        known: None,
        at: jiff::Timestamp::UNIX_EPOCH,
    };
    let beat = |is_first| Beat {
        agent: &key.agent,
        worker,
        lease: Duration::ZERO,
        is_first,
    };
    store
        .begin(&key, begin(worker, Duration::ZERO))
        .await
        .unwrap();
    for is_first in [true, false, false] {
        assert!(store.beat(beat(is_first)).await.unwrap().is_some());
    }
    let other = Worker {
        id: "another",
        epoch: 8,
    };
    let begun = store.begin(&key, begin(other, Duration::from_secs(60)));
    assert!(matches!(
        begun.await.unwrap(),
        Begun::Claimed {
            claim: Claim::TakenOver,
            ..
        }
    ));
    assert_eq!(store.beat(beat(false)).await.unwrap(), None);
}

/// Keeps the writer thread busy until this is dropped.
struct Busy(#[expect(dead_code, reason = "held until it is dropped")] std::sync::mpsc::Sender<()>);

async fn busy(store: &Store) -> Busy {
    let (free, is_free) = std::sync::mpsc::channel();
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let store = store.clone();
    tokio::spawn(async move {
        let held = store.backend.writer.visit(move |_| {
            begun.send(()).unwrap();
            // An error: the other end was dropped.
            is_free.recv().unwrap_err();
            Ok(())
        });
        held.await.unwrap();
    });
    has_begun.await.unwrap();
    Busy(free)
}

/// Submits calls while the writer thread is busy, in this order, and returns their results.
async fn together<T: Send + 'static>(store: &Store, calls: Vec<BoxFuture<'static, T>>) -> Vec<T> {
    let busy = busy(store).await;
    let expected = calls.len();
    let calls: Vec<_> = calls.into_iter().map(tokio::spawn).collect();
    while store.backend.writer.waiting() < expected {
        tokio::task::yield_now().await;
    }
    drop(busy);
    let mut ended = Vec::new();
    for call in calls {
        ended.push(call.await.unwrap());
    }
    ended
}

fn key(number: usize) -> ConversationKey {
    let conversation = format!("00000000-0000-7000-8000-{number:012}")
        .parse()
        .unwrap();
    ConversationKey {
        agent: AgentName::adjutant(),
        user: UserId::local(),
        conversation,
    }
}

fn submitted(
    store: &Store,
    number: usize,
    bytes: usize,
) -> BoxFuture<'static, Result<(), StoreError>> {
    let store = store.clone();
    let body = InputBody::message("x".repeat(bytes));
    let input = Input::new(
        InputId::new("i1").unwrap(),
        jiff::Timestamp::UNIX_EPOCH,
        body,
    );
    Box::pin(async move { store.submit(&key(number), &input).await })
}

/// Returns the conversations that were created.
async fn begun(store: &Store, numbers: std::ops::Range<usize>) -> Vec<usize> {
    let mut begun = Vec::new();
    for number in numbers {
        if !store.load(&key(number)).await.unwrap().inbox.is_empty() {
            begun.push(number);
        }
    }
    begun
}

/// Counts the commits in a WAL that was not written back since (sqlite.org/fileformat2.html, 4).
fn commits(path: &Path) -> usize {
    let log = std::fs::read(format!("{}-wal", path.display())).unwrap();
    let page = usize::try_from(u32::from_be_bytes(log[8..12].try_into().unwrap())).unwrap();
    let frames = log[32..].chunks_exact(24 + page);
    frames
        .filter(|frame| frame[8..16] == log[16..24] && frame[4..8] != [0; 4])
        .count()
}

#[tokio::test]
async fn waiting_calls_share_a_commit_and_fail_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("adjutant.db");
    let store = Store::open(&path).await.unwrap();
    submitted(&store, 0, 10).await.unwrap();
    let before = commits(&path);
    let mut calls: Vec<_> = (1..20)
        .map(|number| submitted(&store, number, 10))
        .collect();
    let late = store.clone();
    // A step has one event of a kind: the changes before the conflict are rolled back.
    calls.insert(7, {
        Box::pin(async move {
            let event = || {
                let turn = adjutant_core::TurnId(key(0).conversation.0);
                Event::InputQueued {
                    turn,
                    input: InputId::new("i1").unwrap(),
                }
            };
            let twice = Recorded::sequence(1, jiff::Timestamp::UNIX_EPOCH, &[event(), event()]);
            late.append(&key(0), &twice).await
        })
    });
    let ended = together(&store, calls).await;
    for (number, ended) in ended.iter().enumerate() {
        let expected = if number == 7 {
            Err(StoreError::Conflict)
        } else {
            Ok(())
        };
        assert_eq!(ended, &expected, "{number}");
    }
    assert_eq!(begun(&store, 0..20).await, (0..20).collect::<Vec<_>>());
    assert_eq!(commits(&path) - before, 1);
    assert_eq!(store.check().await.unwrap(), []);
}

#[tokio::test]
async fn more_than_fits_into_one_commit_is_committed_in_several() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("adjutant.db");
    let store = Store::open(&path).await.unwrap();
    submitted(&store, 0, 10).await.unwrap();
    let before = commits(&path);
    let ended = together(
        &store,
        (1..130)
            .map(|number| submitted(&store, number, 10))
            .collect(),
    )
    .await;
    assert!(ended.iter().all(Result::is_ok));
    // 64, 64, and the last one.
    assert_eq!(commits(&path) - before, 3);
    let before = commits(&path);
    let ended = together(
        &store,
        (130..134)
            .map(|number| submitted(&store, number, 600 * 1024))
            .collect(),
    )
    .await;
    assert!(ended.iter().all(Result::is_ok));
    assert_eq!(commits(&path) - before, 2);
}

#[tokio::test]
async fn where_the_disk_is_full_each_call_is_judged_alone() {
    for at in 0..6 {
        let folder = TempDir::new().unwrap();
        let store = Store::open(folder.path().join("adjutant.db"))
            .await
            .unwrap();
        limit(&store, 40).await;
        let size = |number| if number == at { 300_000 } else { 1000 };
        let calls = (0..6)
            .map(|number| submitted(&store, number, size(number)))
            .collect();
        for (number, ended) in together(&store, calls).await.into_iter().enumerate() {
            match ended {
                Ok(()) => assert_ne!(number, at),
                Err(StoreError::Full { .. }) => assert_eq!(number, at),
                Err(other) => panic!("{number}: {other:?}"),
            }
        }
        let others: Vec<_> = (0..6).filter(|number| *number != at).collect();
        assert_eq!(begun(&store, 0..6).await, others);
        assert_eq!(store.check().await.unwrap(), []);
    }
}

#[tokio::test]
async fn a_lock_at_the_commit_is_an_error_for_every_caller() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("adjutant.db");
    let store = Store::open_location(Location::File(path.clone()), Duration::from_millis(1))
        .await
        .unwrap();
    // In rollback-journal mode a reader blocks the commit, and nothing before it.
    let visited = store.backend.writer.visit(|rows| {
        Ok(rows
            .raw
            .query_row("PRAGMA journal_mode = DELETE", [], |row| {
                row.get::<_, String>(0)
            })?)
    });
    assert_eq!(visited.await.unwrap(), "delete");
    let mut other = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&path)
        .connect()
        .await
        .unwrap();
    let mut reading = other.begin().await.unwrap();
    sqlx::query("SELECT * FROM adjutant_task")
        .fetch_all(&mut *reading)
        .await
        .unwrap();
    let calls = || (0..3).map(|number| submitted(&store, number, 10)).collect();
    for ended in together(&store, calls()).await {
        assert!(
            matches!(ended, Err(StoreError::Unavailable { .. })),
            "{ended:?}"
        );
    }
    assert_eq!(begun(&store, 0..3).await, Vec::<usize>::new());
    reading.rollback().await.unwrap();
    assert!(together(&store, calls()).await.iter().all(Result::is_ok));
    assert_eq!(begun(&store, 0..3).await, [0, 1, 2]);
}

#[tokio::test]
async fn a_failed_commit_fails_all_calls_in_it() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path().join("adjutant.db"))
        .await
        .unwrap();
    let lost = store.clone();
    let mut calls = vec![submitted(&store, 0, 10), submitted(&store, 1, 10)];
    // Foreign keys are checked when the transaction ends: the call succeeds and the commit does
    // not.
    calls.insert(1, {
        Box::pin(async move {
            let done = lost.backend.write((), |rows, ()| {
                Box::pin(async move {
                    rows.script("PRAGMA defer_foreign_keys = ON").await?;
                    let lost =
                        "INSERT INTO adjutant_inbox (conversation, id, v, body, at) VALUES (7, 'i', 1, '{}', '')";
                    rows.execute(lost, &[]).await.map(drop)
                })
            });
            done.await.map_err(|failure| lost.backend.explain(failure))
        })
    });
    for ended in together(&store, calls).await {
        let Err(StoreError::Unusable { message, .. }) = &ended else {
            panic!("{ended:?}")
        };
        assert!(message.contains("FOREIGN KEY"), "{message}");
    }
    assert_eq!(begun(&store, 0..2).await, Vec::<usize>::new());
    submitted(&store, 0, 10).await.unwrap();
}

#[tokio::test]
async fn a_caller_dropped_while_it_waits_changes_nothing() {
    let store = Store::in_memory().await.unwrap();
    let busy = busy(&store).await;
    let left = tokio::spawn(submitted(&store, 0, 10));
    let stays = tokio::spawn(submitted(&store, 1, 10));
    while store.backend.writer.waiting() < 2 {
        tokio::task::yield_now().await;
    }
    left.abort();
    assert!(left.await.unwrap_err().is_cancelled());
    drop(busy);
    stays.await.unwrap().unwrap();
    assert_eq!(begun(&store, 0..2).await, [1]);
}

#[tokio::test]
async fn work_with_a_defect_ends_alone() {
    let folder = TempDir::new().unwrap();
    for store in [
        Store::in_memory().await.unwrap(),
        Store::open(folder.path().join("adjutant.db"))
            .await
            .unwrap(),
    ] {
        let broken = store.clone();
        let waiting = store.clone();
        let calls: Vec<BoxFuture<'static, Result<(), StoreError>>> = vec![
            submitted(&store, 0, 10),
            Box::pin(async move {
                let ended = broken
                    .backend
                    .write((), |_, ()| Box::pin(async { panic!("a defect") }))
                    .await;
                ended.map_err(|failure| broken.backend.explain(failure))
            }),
            Box::pin(async move {
                let ended = waiting
                    .backend
                    .write((), |_, ()| Box::pin(std::future::pending()))
                    .await;
                ended.map_err(|failure| waiting.backend.explain(failure))
            }),
            submitted(&store, 1, 10),
        ];
        let ended = together(&store, calls).await;
        assert!(ended[0].is_ok() && ended[3].is_ok(), "{ended:?}");
        for ended in &ended[1..3] {
            assert!(
                matches!(ended, Err(StoreError::Unusable { .. })),
                "{ended:?}"
            );
        }
        let read: Result<(), _> = store
            .backend
            .read((), |_, ()| Box::pin(async { panic!("a defect") }))
            .await;
        assert!(read.is_err());
        assert_eq!(begun(&store, 0..2).await, [0, 1]);
    }
}

#[tokio::test]
async fn what_a_call_changed_before_it_failed_is_undone_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("adjutant.db");
    let store = Store::open(&path).await.unwrap();
    submitted(&store, 0, 10).await.unwrap();
    let before = commits(&path);
    let broken = store.clone();
    let mut calls: Vec<_> = (1..11)
        .map(|number| submitted(&store, number, 10))
        .collect();
    calls.insert(5, {
        Box::pin(async move {
            let ended = broken.backend.write((), |rows, ()| {
                Box::pin(async move {
                    let counter =
                        "INSERT INTO adjutant_task_counter (user_id, last_id) VALUES ('broken', 1)";
                    rows.execute(counter, &[]).await?;
                    Err::<(), _>(StoreError::Conflict.into())
                })
            });
            ended
                .await
                .map_err(|failure| broken.backend.explain(failure))
        })
    });
    let ended = together(&store, calls).await;
    for (number, ended) in ended.iter().enumerate() {
        let expected = if number == 5 {
            Err(StoreError::Conflict)
        } else {
            Ok(())
        };
        assert_eq!(ended, &expected, "{number}");
    }
    assert_eq!(begun(&store, 0..11).await, (0..11).collect::<Vec<_>>());
    assert_eq!(commits(&path) - before, 1);
    let counters = store
        .backend
        .fetch_all("SELECT user_id FROM adjutant_task_counter", &[])
        .await;
    assert!(
        counters
            .unwrap_or_else(|_| panic!("it can be read"))
            .is_empty()
    );
}

#[tokio::test]
async fn a_lock_of_another_process_is_an_error_that_passes() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("adjutant.db");
    let open = || Store::open_location(Location::File(path.clone()), Duration::from_millis(1));
    let store = open().await.unwrap();
    store.submit(&one_conversation(), &input(0)).await.unwrap();

    let mut other = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&path)
        .connect()
        .await
        .unwrap();
    let lock = other.begin_with("BEGIN EXCLUSIVE").await.unwrap();
    let refused = store
        .submit(&one_conversation(), &input(1))
        .await
        .unwrap_err();
    let StoreError::Unavailable { message, .. } = &refused else {
        panic!("{refused:?}")
    };
    assert!(
        message.contains("locked by another process") && message.contains("adjutant.db"),
        "{message}"
    );
    // Reading goes on beside a writer, and so does opening.
    assert_eq!(
        store.load(&one_conversation()).await.unwrap().inbox.len(),
        1
    );
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
async fn a_lock_during_the_creation_of_the_schema_is_an_error() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("adjutant.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true);
    let mut other = options.connect().await.unwrap();
    let lock = other.begin_with("BEGIN EXCLUSIVE").await.unwrap();
    let open = || Store::open_location(Location::File(path.clone()), Duration::from_millis(1));
    let refused = open().await.unwrap_err();
    assert!(
        matches!(refused, StoreError::Unavailable { .. }),
        "{refused:?}"
    );
    lock.rollback().await.unwrap();
    open().await.unwrap();
}

/// Permissions do not apply to root, so SQLite is opened with `query_only`: the error is the same.
#[tokio::test]
async fn every_port_reports_a_refused_write() {
    let store = Store::in_memory().await.unwrap();
    let visited = store
        .backend
        .writer
        .visit(|rows| Ok(rows.raw.pragma_update(None, "query_only", true)?));
    visited.await.unwrap();
    let user = UserId::local();
    let change = TaskChange::Add {
        description: TaskDescription::new("x").unwrap(),
        from_others: false,
    };
    let key = one_conversation();
    let refusals = [
        store.apply(&user, &change, None).await.map(drop),
        store.submit(&key, &input(0)).await,
        store.rename(&key, "x").await.map(drop),
        store.delete(&key).await.map(drop),
        store.release(&key, "a".into()).await,
    ];
    for refused in refusals {
        let Err(StoreError::ReadOnly { message, .. }) = &refused else {
            panic!("{refused:?}")
        };
        assert!(message.contains("may not be written to"), "{message}");
    }
    assert_eq!(
        store
            .decisions(&user, &DecisionFilter::default())
            .await
            .unwrap(),
        []
    );
}
