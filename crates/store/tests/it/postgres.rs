//! The store in PostgreSQL, against a real server.

use std::cell::Cell;
use std::time::Duration;

use adjutant_core::port::{
    Begin, Begun, Claim, ConversationFilter, ConversationStore, Journal as _, StoreError, Worker,
};
use adjutant_core::{AgentName, ConversationKey, Input, InputBody, InputId, LogContent, UserId};
use adjutant_store::{Maintenance as _, contract, postgres::Store};
use adjutant_tools::{TaskChange, TaskDescription, TaskFilter, TaskStore};
use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;

use crate::server::Server;

fn key() -> ConversationKey {
    let conversation = "00000000-0000-7000-8000-000000000001".parse().unwrap();
    ConversationKey {
        agent: AgentName::adjutant(),
        user: UserId::local(),
        conversation,
    }
}

fn input(number: usize) -> Input {
    let body = InputBody::message(format!("message {number} \0 end"));
    Input::new(
        InputId::new(format!("i{number}")).unwrap(),
        jiff::Timestamp::UNIX_EPOCH,
        body,
    )
}

fn add(words: &str) -> TaskChange {
    TaskChange::Add {
        description: TaskDescription::new(words).unwrap(),
        from_others: false,
    }
}

#[tokio::test]
async fn it_keeps_both_contracts() {
    let Some(server) = Server::start() else {
        return;
    };
    let number = Cell::new(0);
    let fresh = async || {
        number.set(number.get() + 1);
        Store::connect(
            &server.create_database(&format!("d{}", number.get())).await,
            4,
        )
        .await
        .unwrap()
    };
    contract::task_store(&fresh).await;
    contract::journal(&fresh).await;
    contract::a_change_is_written_with_its_events(&fresh().await).await;
    contract::a_change_is_undone_with_its_events(&fresh().await).await;
    contract::snapshots(&fresh).await;
    for content in [LogContent::Redacted, LogContent::None] {
        contract::logs_have_the_content_that_the_store_allows(
            &fresh().await.with_log_content(content),
        )
        .await;
    }
    contract::token_store(&fresh).await;
    contract::budget_store(&fresh).await;
    contract::memory_ledger(&fresh).await;
    contract::fact_store(&fresh).await;
    contract::user_setting_store(&fresh).await;
    contract::task_index(&fresh).await;
    contract::past_conversations(&fresh).await;
    let url = server.create_database("reopened").await;
    contract::all_rows_are_there_after_reopening(
        Store::connect(&url, 2).await.unwrap(),
        async |store| {
            store.close().await;
            Store::connect(&url, 2).await.unwrap()
        },
    )
    .await;
}

#[tokio::test]
async fn of_many_processes_started_at_once_one_creates_the_schema_and_all_can_write() {
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.create_database("shared").await;
    let open = || Store::connect(&url, 2);
    let (a, b, c, d) = tokio::join!(open(), open(), open(), open());
    let stores: Vec<Store> = [a, b, c, d].into_iter().map(Result::unwrap).collect();
    let user = UserId::local();
    let change = add("buy milk");
    let repeated = adjutant_core::IdempotencyKey::new("once").unwrap();
    let write = async |store: &Store| {
        // The same key from everywhere is one change, and every caller gets its outcome.
        store.apply(&user, &change, Some(&repeated)).await.unwrap();
        store.apply(&user, &change, None).await.unwrap();
        // A conversation that all of them begin at once begins once.
        store.submit(&key(), &input(1)).await.unwrap();
    };
    tokio::join!(
        write(&stores[0]),
        write(&stores[1]),
        write(&stores[2]),
        write(&stores[3])
    );
    let tasks = TaskStore::list(&stores[0], &user, TaskFilter::All)
        .await
        .unwrap();
    assert_eq!(
        tasks.iter().map(|task| task.id.get()).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5]
    );
    assert_eq!(stores[1].load(&key()).await.unwrap().inbox, [input(1)]);
}

#[tokio::test]
async fn a_lost_connection_is_an_error_that_passes() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let url = server.create_database("lost").await;
    let store = Store::connect(&url, 2).await.unwrap();
    store.submit(&key(), &input(1)).await.unwrap();
    server.crash();
    let refused = store.submit(&key(), &input(2)).await.unwrap_err();
    let StoreError::Unavailable { message, .. } = &refused else {
        panic!("{refused:?}")
    };
    assert!(message.contains("PostgreSQL database lost"), "{message}");
    server.run();
    store.submit(&key(), &input(2)).await.unwrap();
    assert_eq!(
        store.load(&key()).await.unwrap().inbox,
        [input(1), input(2)]
    );
}

#[tokio::test]
async fn its_sessions_have_the_name_that_the_address_gives() {
    use sqlx::Connection as _;

    let Some(server) = Server::start() else {
        return;
    };
    let url = server.create_database("named").await;
    let mut other = sqlx::PgConnection::connect(&url).await.unwrap();
    for (address, name) in [
        (url.clone(), "adjutant"),
        (format!("{url}&application_name=team"), "team"),
    ] {
        let store = Store::connect(&address, 1).await.unwrap();
        TaskStore::list(&store, &UserId::local(), TaskFilter::All)
            .await
            .unwrap();
        let named = sqlx::query_scalar(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = 'named' AND application_name = $1",
        );
        let sessions: i64 = named.bind(name).fetch_one(&mut other).await.unwrap();
        assert!(sessions > 0, "no session is called {name}");
    }
    other.close().await.unwrap();
}

#[tokio::test]
async fn an_unusable_database_is_an_error_with_the_reason() {
    let Some(server) = Server::start() else {
        return;
    };
    let refused = async |url: String| match Store::connect(&url, 1).await.unwrap_err() {
        StoreError::Unusable { message, .. }
        | StoreError::Unavailable { message, .. }
        | StoreError::Unreadable { message, .. } => message,
        other => panic!("{other:?}"),
    };
    let missing = refused(server.url("nowhere")).await;
    assert!(
        missing.contains("nowhere") && missing.contains("does not exist"),
        "{missing}"
    );
    let error = Store::connect(&server.url("nowhere"), 1).await.unwrap_err();
    let cause = std::error::Error::source(&error).expect("the server said what is wrong");
    let cause = cause.downcast_ref::<sqlx::Error>().unwrap();
    let code = cause.as_database_error().and_then(|error| error.code());
    assert_eq!(
        code.as_deref(),
        Some("3D000"),
        "the SQLSTATE of a missing database"
    );
    let none = refused("postgres//user:secret@x".to_owned()).await;
    assert!(
        none.contains("postgres://") && !none.contains("secret"),
        "{none}"
    );
    let unreachable = refused("postgres://user:secret@127.0.0.1:9/x".to_owned()).await;
    assert!(
        unreachable.contains("127.0.0.1:9") && !unreachable.contains("secret"),
        "{unreachable}"
    );
    // Tables of another program are not touched.
    let url = server.create_database("others").await;
    let options: sqlx::postgres::PgConnectOptions = url.parse().unwrap();
    let pool = sqlx::PgPool::connect_with(options).await.unwrap();
    sqlx::query("CREATE TABLE adjutant_task (mine text)")
        .execute(&pool)
        .await
        .unwrap();
    pool.close().await;
    let foreign = refused(url).await;
    assert!(foreign.contains("another program"), "{foreign}");
    let store = Store::connect(&server.create_database("closed").await, 1)
        .await
        .unwrap();
    store.close().await;
    let closed = ConversationStore::list(
        &store,
        &AgentName::adjutant(),
        &UserId::local(),
        &ConversationFilter::newest(1),
    )
    .await;
    assert!(
        matches!(closed, Err(StoreError::Unavailable { .. })),
        "{closed:?}"
    );
}

#[tokio::test]
async fn subscribers_notice_writes_of_other_processes() {
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.create_database("told").await;
    let (one, two) = (
        Store::connect(&url, 2).await.unwrap(),
        Store::connect(&url, 2).await.unwrap(),
    );
    assert!(one.receives_notifications().await);
    contract::changes_are_told_to_other_processes(&one, &two).await;
    contract::relayed_messages_reach_other_processes(&one, &two).await;
}

/// Takes the lease of a conversation with work, for an hour, under this name.
async fn begin(store: &Store, worker: &str, id: &str) -> Begun {
    let conversation = format!("00000000-0000-7000-8000-{id:0>12}")
        .parse()
        .unwrap();
    let begin = Begin {
        input: Some(&input(1)),
        turn: &[],
        first: None,
        worker: Worker {
            id: worker,
            epoch: 1,
        },
        lease: Duration::from_secs(3600),
        known: None,
        at: jiff::Timestamp::UNIX_EPOCH,
    };
    store
        .begin(
            &ConversationKey {
                conversation,
                ..key()
            },
            begin,
        )
        .await
        .unwrap()
}

#[tokio::test]
async fn what_a_process_had_that_is_gone_is_free_at_once() {
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.create_database("gone").await;
    let [one, silent, other] = [(); 3].map(|()| Store::connect(&url, 2));
    let (one, silent, other) = (
        one.await.unwrap(),
        silent.await.unwrap(),
        other.await.unwrap(),
    );
    let changes = one.changes();
    while one.relay().name().is_none() {
        tokio::task::yield_now().await;
    }
    let mut hand = url
        .parse::<PgConnectOptions>()
        .unwrap()
        .connect()
        .await
        .unwrap();
    assert!(matches!(
        begin(&one, "one", "1").await,
        Begun::Claimed {
            claim: Claim::Granted,
            ..
        }
    ));
    assert!(matches!(
        begin(&silent, "silent", "2").await,
        Begun::Claimed {
            claim: Claim::Granted,
            ..
        }
    ));
    // Recorded in the background.
    let noted = "SELECT count(*) FROM adjutant_worker_session WHERE worker = 'one'";
    while sqlx::query_scalar::<_, i64>(noted)
        .fetch_one(&mut hand)
        .await
        .unwrap()
        == 0
    {
        tokio::task::yield_now().await;
    }
    for conversation in ["1", "2"] {
        assert!(matches!(
            begin(&other, "other", conversation).await,
            Begun::Elsewhere
        ));
    }
    drop((changes, one, silent));
    let taken = loop {
        match begin(&other, "other", "1").await {
            Begun::Elsewhere => tokio::task::yield_now().await,
            taken => break taken,
        }
    };
    assert!(
        matches!(
            taken,
            Begun::Claimed {
                claim: Claim::TakenOver,
                ..
            }
        ),
        "{taken:?}"
    );
    // The death of a worker that did not listen is unknown before its lease ends.
    assert!(matches!(
        begin(&other, "other", "2").await,
        Begun::Elsewhere
    ));
}
