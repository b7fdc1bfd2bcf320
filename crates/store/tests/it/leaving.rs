//! Callers that are dropped in the middle of a call.

use std::cell::Cell;
use std::future::ready;
use std::rc::Rc;

use adjutant_core::port::{ConversationFilter, ConversationStore, Journal};
use adjutant_core::{AgentName, ConversationKey, Input, InputBody, InputId, UserId};
use adjutant_tools::{TaskChange, TaskDescription, TaskFilter, TaskStore};
use tokio::task::{LocalSet, spawn_local, yield_now};

/// Clients that drop their calls, repeatedly.
const LEAVING: usize = 20;

/// Clients that stay, and what each of them calls.
const STAYING: usize = 10;
const CALLS: usize = 100;

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

fn input(number: usize) -> Input {
    let body = InputBody::message(format!("message {number}"));
    Input::new(
        InputId::new(format!("i{number}")).unwrap(),
        jiff::Timestamp::UNIX_EPOCH,
        body,
    )
}

/// Makes one of several calls, by number, and returns its error.
async fn call<S: Journal + ConversationStore + TaskStore>(
    store: &S,
    client: usize,
    number: usize,
) -> Option<String> {
    let (user, key) = (UserId::local(), key(client));
    let outcome = match number % 5 {
        0 => store.submit(&key, &input(number)).await,
        1 => store.load(&key).await.map(drop),
        2 => ConversationStore::list(
            store,
            &AgentName::adjutant(),
            &user,
            &ConversationFilter::newest(10),
        )
        .await
        .map(drop),
        3 => {
            let description = TaskDescription::new("buy milk").unwrap();
            store
                .apply(
                    &user,
                    &TaskChange::Add {
                        description,
                        from_others: false,
                    },
                    None,
                )
                .await
                .map(drop)
        }
        _ => TaskStore::list(store, &user, TaskFilter::Pending)
            .await
            .map(drop),
    };
    outcome.err().map(|error| error.to_string())
}

/// Runs a thousand calls beside clients that leave at a different moment each time, and beside a
/// probe that gives up at once; returns the errors of the thousand.
pub(crate) async fn errors_beside_leavers<S>(store: S) -> Vec<String>
where
    S: Journal + ConversationStore + TaskStore + Clone,
{
    let is_over = Rc::new(Cell::new(false));
    let local = LocalSet::new();
    let leavers = (0..LEAVING).map(|client| {
        let (store, is_over) = (store.clone(), is_over.clone());
        local.spawn_local(async move {
            let mut left: usize = 0;
            while !is_over.get() {
                let store = store.clone();
                let asked = spawn_local(async move {
                    for number in left.. {
                        call(&store, client, number).await;
                    }
                });
                // A multiplicative hash: another number of steps each time, and the same in every
                // run of the test.
                for _ in 0..(left * LEAVING + client).wrapping_mul(2_654_435_761) % 61 {
                    yield_now().await;
                }
                asked.abort();
                left += 1;
                yield_now().await;
            }
            left
        })
    });
    let leavers: Vec<_> = leavers.collect();
    let probe = {
        let (store, is_over, agent) = (store.clone(), is_over.clone(), AgentName::adjutant());
        local.spawn_local(async move {
            while !is_over.get() {
                tokio::select! {
                    biased;
                    _ = store.unsettled(&agent, None) => {}
                    () = ready(()) => {}
                }
                yield_now().await;
            }
        })
    };
    local
        .run_until(async move {
            let stayers = (0..STAYING).map(|client| {
                let store = store.clone();
                spawn_local(async move {
                    let mut errors = Vec::new();
                    for number in 0..CALLS {
                        errors.extend(call(&store, LEAVING + client, number).await);
                    }
                    errors
                })
            });
            let mut errors = Vec::new();
            for stayer in stayers.collect::<Vec<_>>() {
                errors.extend(stayer.await.unwrap());
            }
            is_over.set(true);
            probe.await.unwrap();
            for leaver in leavers {
                assert!(leaver.await.unwrap() > 0, "no caller was dropped");
            }
            errors
        })
        .await
}

#[tokio::test]
async fn dropped_callers_of_a_file_harm_no_other() {
    use sqlx::{ConnectOptions as _, Connection as _};

    let (_folder, path) = crate::place();
    let store = adjutant_store::sqlite::Store::open(&path).await.unwrap();
    assert_eq!(
        errors_beside_leavers(store.clone()).await,
        Vec::<String>::new()
    );
    // What was begun ends, and then no caller is inside a transaction: the log can be written back as
    // a whole and emptied, which neither a writer nor a reader of an older state would allow.
    let mut other = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&path)
        .connect()
        .await
        .unwrap();
    let (busy, ..): (i64, i64, i64) = sqlx::query_as("PRAGMA wal_checkpoint(TRUNCATE)")
        .fetch_one(&mut other)
        .await
        .unwrap();
    assert_eq!(busy, 0);
    other.close().await.unwrap();
    assert_eq!(call(&store, 0, 0).await, None);
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn dropped_callers_of_a_server_harm_no_other() {
    use sqlx::{ConnectOptions as _, Connection as _};

    let Some(server) = crate::server::Server::start() else {
        return;
    };
    let url = server.create_database("leaving").await;
    let store = adjutant_store::postgres::Store::connect(&url, 4)
        .await
        .unwrap();
    assert_eq!(
        errors_beside_leavers(store.clone()).await,
        Vec::<String>::new()
    );
    let options: sqlx::postgres::PgConnectOptions = url.parse().unwrap();
    let mut other = options.connect().await.unwrap();
    // Running transactions end by themselves; one that was leaked would be there after any number
    // of checks.
    let mut inside = -1;
    for _ in 0..1000 {
        inside = sqlx::query_scalar(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = 'leaving' AND pid <> pg_backend_pid()
             AND (state <> 'idle' OR xact_start IS NOT NULL)",
        )
        .fetch_one(&mut other)
        .await
        .unwrap();
        if inside == 0 {
            break;
        }
    }
    assert_eq!(inside, 0_i64, "connections inside a transaction");
    other.close().await.unwrap();
    assert_eq!(call(&store, 0, 0).await, None);
}
