//! Messages to PostgreSQL, counted by a proxy between the store and the server.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use adjutant_core::port::{
    Begin, Begun, Change, Claim, ConversationIndex as _, Finished, Journal, Known, LogStore,
    StoreError,
};
use adjutant_core::{
    AgentName, ConversationKey, Event, Input, InputBody, InputId, Recorded, UserId,
};
use adjutant_store::{Maintenance as _, postgres::Store};
use adjutant_tools::{TaskChange, TaskDescription, TaskFilter, TaskStore};
use serde_json::{Value, json};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::task::{LocalSet, spawn_local, yield_now};

use crate::server::Server;

/// Only the name of its socket.
const PORT: u16 = 5433;

/// The counting proxy. Its threads end with the connections.
struct Counter {
    /// Messages that the server answers: queries, and the ends of what is sent in several parts.
    asked: Arc<AtomicU64>,
    /// The texts of the queries.
    queries: Arc<Mutex<Vec<String>>>,
    /// The query before which a client hangs, with its connection open.
    stands_still_at: Arc<OnceLock<&'static str>>,
}

impl Counter {
    fn start(server: &Server) -> Self {
        let folder = folder(server);
        let counter = Self {
            asked: Arc::default(),
            queries: Arc::default(),
            stands_still_at: Arc::default(),
        };
        let listener = UnixListener::bind(folder.join(format!(".s.PGSQL.{PORT}"))).unwrap();
        let (asked, queries) = (counter.asked.clone(), counter.queries.clone());
        let still = counter.stands_still_at.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (
                    client.unwrap(),
                    UnixStream::connect(folder.join(".s.PGSQL.5432")).unwrap(),
                );
                let (mut from_server, mut to_client) =
                    (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || {
                    // Either side may have ended.
                    let _ = std::io::copy(&mut from_server, &mut to_client);
                    let _ = to_client.shutdown(std::net::Shutdown::Both);
                });
                let (asked, queries, still) = (asked.clone(), queries.clone(), still.clone());
                std::thread::spawn(move || {
                    let _ = forward(client, &server, &asked, &queries, &still);
                    let _ = server.shutdown(std::net::Shutdown::Both);
                });
            }
        });
        counter
    }

    /// Returns the number of messages since the last call, and their queries.
    fn since(&self) -> (u64, Vec<String>) {
        (
            self.asked.swap(0, Ordering::SeqCst),
            std::mem::take(&mut *self.queries.lock().unwrap()),
        )
    }
}

/// Forwards and counts a client's messages.
///
/// Source: PostgreSQL 17 documentation, 53.7, "Message Formats" (checked 2026-11).
fn forward(
    mut client: UnixStream,
    mut server: &UnixStream,
    asked: &AtomicU64,
    queries: &Mutex<Vec<String>>,
    stands_still_at: &OnceLock<&str>,
) -> std::io::Result<()> {
    let mut is_started = false;
    loop {
        let mut kind = [0; 1];
        if is_started {
            client.read_exact(&mut kind)?;
        }
        let mut length = [0; 4];
        client.read_exact(&mut length)?;
        let mut body = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap() - 4];
        client.read_exact(&mut body)?;
        if is_started {
            match kind[0] {
                b'Q' => {
                    let query = String::from_utf8_lossy(&body);
                    let still = stands_still_at
                        .get()
                        .is_some_and(|text| query.contains(text));
                    asked.fetch_add(1, Ordering::SeqCst);
                    queries.lock().unwrap().push(query.into_owned());
                    if still {
                        // As long as the test runs.
                        loop {
                            std::thread::park();
                        }
                    }
                }
                b'S' => drop(asked.fetch_add(1, Ordering::SeqCst)),
                _ => {}
            }
            server.write_all(&kind)?;
        }
        // The message that begins a session has no kind, nor has the question for TLS before it.
        is_started |= body.get(..4) == Some(&196_608_u32.to_be_bytes());
        server.write_all(&length)?;
        server.write_all(&body)?;
    }
}

fn folder(server: &Server) -> PathBuf {
    let options: PgConnectOptions = server.url("postgres").parse().unwrap();
    options.get_socket().unwrap().clone()
}

fn at(seconds: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(1_767_225_600 + seconds).unwrap()
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

fn input(number: usize) -> Input {
    let body = InputBody::message(format!("message {number}"));
    Input::new(InputId::new(format!("i{number}")).unwrap(), at(0), body)
}

fn event(number: usize, mut body: Value) -> Event {
    body["turn"] = json!(format!("11111111-0000-7000-8000-{number:012}"));
    serde_json::from_value(body).unwrap()
}

fn started(number: usize) -> Event {
    event(
        number,
        json!({
            "event": "turn_started", "input": format!("i{number}"), "message": "drop the milk", "message_chars": 13,
            "model": {"provider": "scripted", "name": "demo"}, "limits": {},
        }),
    )
}

/// A turn's `call`th call of a model.
fn replied(number: usize, call: u32) -> Event {
    let reply = json!({
        "model": {"provider": "scripted", "name": "demo"}, "finish": "stop", "usage": {"input_tokens": 100},
        "parts": [{"type": "text", "text": "it's 5 o'clock \\ \u{0} 👋🏽"}],
    });
    event(
        number,
        json!({"event": "model_replied", "number": call, "ms": 250, "attempts": 1, "reply": {"Ok": reply}}),
    )
}

fn call_started(number: usize) -> Event {
    event(
        number,
        json!({
            "event": "call_started", "call": format!("call_{number}"), "tool": "delete_task", "arguments": {}, "key": "k",
            "effect": "once",
        }),
    )
}

fn call_finished(number: usize) -> Event {
    event(
        number,
        json!({
            "event": "call_finished", "call": format!("call_{number}"), "tool": "delete_task", "arguments": {},
            "result": {"success": true, "data": 0.1}, "summary": null, "ms": 7, "attempt": 1,
        }),
    )
}

fn finished(number: usize) -> Event {
    let decision = json!({
        "kind": "RESPOND_ONLY", "intent": "DELETE_TASK", "text": "Done.", "tool_calls": [], "pending": [],
    });
    let end = json!({
        "decision": decision, "outcome": "SUCCESS:RESPONSE_GIVEN", "usage": {"input_tokens": 200}, "iterations": 1,
        "error": null, "cost": 5, "notices": [],
    });
    event(number, json!({"event": "turn_finished", "end": end}))
}

fn begin<'a>(input: Option<&'a Input>, turn: &'a [Event], known: Option<Known>) -> Begin<'a> {
    let lease = std::time::Duration::from_secs(3600);
    Begin {
        input,
        turn,
        first: None,
        worker: "a".into(),
        lease,
        known,
        at: at(1),
    }
}

/// Runs a turn with a tool call that has an effect. Returns what the worker knows afterwards.
async fn take_a_turn(
    store: &Store,
    key: &ConversationKey,
    number: usize,
    known: Option<Known>,
) -> Known {
    let (input, turn) = (input(number), [started(number)]);
    let begun = store
        .begin(key, begin(Some(&input), &turn, known))
        .await
        .unwrap();
    let Begun::Started(newer) = begun else {
        panic!("{begun:?}")
    };
    let [Recorded { seq, .. }] = newer.events[..] else {
        panic!("{newer:?}")
    };
    assert_eq!(newer.events, Recorded::sequence(seq, at(1), &turn));
    let write = async |after: u64, events: &[Event]| {
        store
            .append(key, &Recorded::sequence(seq + after, at(2), events))
            .await
            .unwrap();
    };
    write(1, &[replied(number, 1), call_started(number)]).await;
    write(3, &[call_finished(number)]).await;
    let end = Recorded::sequence(seq + 4, at(3), &[replied(number, 2), finished(number)]);
    assert_eq!(
        store.finish(key, "a".into(), &end, None).await.unwrap(),
        Finished::Released
    );
    Known {
        seq: seq + 5,
        created_at: newer.created_at,
    }
}

/// A process that hangs in the middle of a transaction does not keep its row locks for long, and is
/// told that it may try again.
#[tokio::test]
async fn a_transaction_that_stands_still_is_ended_by_the_server() {
    let Some(server) = Server::start() else {
        return;
    };
    let counter = Counter::start(&server);
    let url = server.create_database("turns").await;
    let still = Store::connect(&format!("{url}&port={PORT}"), 1)
        .await
        .unwrap();
    let other = Store::connect(&url, 1).await.unwrap();
    counter.stands_still_at.set("COMMIT").unwrap();
    let add = |words: &str| TaskChange::Add {
        description: TaskDescription::new(words).unwrap(),
        from_others: false,
    };
    let (user, first, second) = (UserId::local(), add("first"), add("second"));
    let owner = user.clone();
    let standing = tokio::spawn(async move { still.apply(&owner, &first, None).await });
    while !counter
        .queries
        .lock()
        .unwrap()
        .iter()
        .any(|query| query.contains("COMMIT"))
    {
        yield_now().await;
    }
    other.apply(&user, &second, None).await.unwrap();
    let there = TaskStore::list(&other, &user, TaskFilter::All)
        .await
        .unwrap();
    assert_eq!(there.len(), 1, "{there:?}");
    let error = standing.await.unwrap().unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
}

/// A turn that one process accepts and another takes costs one message more, whatever came before.
#[tokio::test]
async fn a_turn_of_two_processes_is_five_messages() {
    let Some(server) = Server::start() else {
        return;
    };
    let counter = Counter::start(&server);
    let url = format!("{}&port={PORT}", server.create_database("turns").await);
    let (front, back) = (
        Store::connect(&url, 2).await.unwrap(),
        Store::connect(&url, 2).await.unwrap(),
    );
    front.release(&key(1), "b".into()).await.unwrap();
    back.release(&key(1), "a".into()).await.unwrap();
    counter.since();
    for number in 1..10 {
        front
            .submit_with_turn(&key(1), &input(number), &started(number))
            .await
            .unwrap();
        let begun = back.begin(&key(1), begin(None, &[], None)).await.unwrap();
        let Begun::Claimed {
            claim: Claim::Granted,
            newer,
        } = begun
        else {
            panic!("{begun:?}")
        };
        let Some(Recorded { seq, .. }) = newer.events.last() else {
            panic!("{newer:?}")
        };
        let write = async |after: u64, events: &[Event]| {
            back.append(&key(1), &Recorded::sequence(seq + after, at(2), events))
                .await
                .unwrap();
        };
        write(1, &[replied(number, 1), call_started(number)]).await;
        write(3, &[call_finished(number)]).await;
        let end = Recorded::sequence(seq + 4, at(3), &[replied(number, 2), finished(number)]);
        assert_eq!(
            back.finish(&key(1), "a".into(), &end, None).await.unwrap(),
            Finished::Released
        );
        let (asked, queries) = counter.since();
        assert_eq!((asked, queries.len()), (5, 5), "{queries:#?}");
    }
    assert_eq!(back.check().await.unwrap(), []);
}

#[tokio::test]
async fn a_turn_is_four_messages() {
    let Some(server) = Server::start() else {
        return;
    };
    let counter = Counter::start(&server);
    let url = format!("{}&port={PORT}", server.create_database("turns").await);
    let store = Store::connect(&url, 2).await.unwrap();
    // The first use of a connection may be its beginning.
    store.release(&key(1), "a".into()).await.unwrap();
    counter.since();
    let known = take_a_turn(&store, &key(1), 1, None).await;
    let (asked, queries) = counter.since();
    let functions = [
        "adjutant_begin_2",
        "adjutant_append_1",
        "adjutant_append_1",
        "adjutant_append_1",
    ];
    assert_eq!((asked, queries.len()), (4, 4), "{queries:#?}");
    assert!(
        functions
            .iter()
            .zip(&queries)
            .all(|(name, query)| query.contains(name)),
        "{queries:#?}"
    );
    // It does not depend on what came before.
    let mut known = known;
    for number in 2..10 {
        known = take_a_turn(&store, &key(1), number, Some(known)).await;
        assert_eq!(counter.since().0, 4);
    }
    for asks in [0, 1] {
        store.release(&key(1), "a".into()).await.unwrap();
        assert_eq!(
            store
                .claim(&key(1), "b", std::time::Duration::ZERO)
                .await
                .unwrap(),
            Claim::Granted
        );
        assert!(
            store
                .renew(&key(1), "b".into(), std::time::Duration::ZERO)
                .await
                .unwrap()
        );
        store.release(&key(1), "b".into()).await.unwrap();
        store.cancellation(&key(1)).await.unwrap();
        store.submit(&key(2 + asks), &input(1)).await.unwrap();
        assert_eq!(counter.since().0, 6);
    }
    assert_eq!(store.check().await.unwrap(), []);
    let turn = started(9).turn().unwrap();
    let decision = store
        .decision(&UserId::local(), turn)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (decision.model_calls, decision.model_ms, decision.tool_ms),
        (2, 500, 7)
    );
    assert_eq!(
        (decision.message.as_str(), decision.total_ms),
        ("drop the milk", Some(2000))
    );
    let invocations = store
        .tool_invocations(&UserId::local(), turn)
        .await
        .unwrap();
    assert_eq!(invocations.len(), 1);
}

/// Makes the store's only connection wait for a locked conversation, while calls come: a message
/// for each of twenty conversations, another request under a used id, an append if there are events
/// for it, and one whose caller is dropped. Returns the answers, and the messages.
async fn calls_that_wait(
    store: &Store,
    counter: &Counter,
    other: &mut sqlx::PgConnection,
    append: Option<Vec<Recorded>>,
) -> (Vec<Result<(), StoreError>>, Vec<String>) {
    let hold = "BEGIN; SELECT key FROM adjutant_conversation
                WHERE id = '00000000-0000-7000-8000-000000000000' FOR UPDATE";
    sqlx::raw_sql(hold).execute(&mut *other).await.unwrap();
    counter.since();
    let submit = |number: usize, input: Input| {
        let store = store.clone();
        spawn_local(async move { store.submit(&key(number), &input).await })
    };
    let run = async {
        let first = submit(0, input(1));
        // The server reports the lock, and the call waits.
        while counter.asked.load(Ordering::SeqCst) < 2 {
            yield_now().await;
        }
        let mut waiting: Vec<_> = (1..=20)
            .map(|number| submit(number, input(number)))
            .collect();
        waiting.push(submit(
            0,
            Input {
                fingerprint: Some("y".to_owned()),
                ..input(0)
            },
        ));
        if let Some(events) = append {
            let store = store.clone();
            waiting.push(spawn_local(
                async move { store.append(&key(50), &events).await },
            ));
        }
        let left = submit(40, input(40));
        // Each runs up to where it waits for a permit.
        yield_now().await;
        left.abort();
        yield_now().await;
        sqlx::raw_sql("COMMIT").execute(&mut *other).await.unwrap();
        first.await.unwrap().unwrap();
        let mut answers = Vec::new();
        for answer in waiting {
            answers.push(answer.await.unwrap());
        }
        answers
    };
    let answers = LocalSet::new().run_until(run).await;
    (answers, counter.since().1)
}

/// Calls that wait at the same moment are one message and one commit; a refusal concerns one call
/// only.
#[tokio::test]
async fn waiting_calls_share_a_message_and_fail_alone() {
    let Some(server) = Server::start() else {
        return;
    };
    let counter = Counter::start(&server);
    let direct = server.create_database("together").await;
    let store = Store::connect(&format!("{direct}&port={PORT}"), 1)
        .await
        .unwrap();
    let named = Input {
        fingerprint: Some("x".to_owned()),
        ..input(0)
    };
    store.submit(&key(0), &named).await.unwrap();
    let (i50, turn) = (input(50), [started(50)]);
    store
        .begin(&key(50), begin(Some(&i50), &turn, None))
        .await
        .unwrap();
    store
        .append(&key(50), &Recorded::sequence(2, at(1), &[replied(50, 1)]))
        .await
        .unwrap();
    let mut other = direct
        .parse::<PgConnectOptions>()
        .unwrap()
        .connect()
        .await
        .unwrap();

    let (answers, queries) = calls_that_wait(&store, &counter, &mut other, None).await;
    assert_eq!(queries.len(), 3, "{queries:#?}");
    assert_eq!(queries[2].matches("adjutant_begin_2").count(), 21);
    assert!(answers[..20].iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(answers[20..], [Err(StoreError::Reused)]);

    // A step that has its event already fails the whole message: each call is sent again, and one
    // fails.
    let events = Recorded::sequence(3, at(1), &[replied(50, 1)]);
    let (answers, queries) = calls_that_wait(&store, &counter, &mut other, Some(events)).await;
    assert_eq!(queries.len(), 3 + 22, "{queries:#?}");
    assert!(answers[..20].iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(
        answers[20..],
        [Err(StoreError::Reused), Err(StoreError::Conflict)]
    );

    assert_eq!(
        store.load(&key(40)).await.unwrap().inbox,
        [],
        "who left before it was sent left nothing"
    );
    assert_eq!(store.load(&key(50)).await.unwrap().events.len(), 2);
    for number in 1..=20 {
        assert_eq!(
            store.load(&key(number)).await.unwrap().inbox,
            [input(number)]
        );
    }
    // The turn goes on.
    store
        .append(&key(50), &Recorded::sequence(3, at(1), &[replied(50, 2)]))
        .await
        .unwrap();
    assert_eq!(store.check().await.unwrap(), []);
    other.close().await.unwrap();
}

/// A locked conversation blocks no other.
#[tokio::test]
async fn only_calls_about_a_locked_conversation_wait_for_it() {
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.create_database("locked").await;
    let store = Store::connect(&url, 4).await.unwrap();
    let begun = begin(None, &[], None);
    store.submit(&key(1), &input(1)).await.unwrap();
    let mut other = url
        .parse::<PgConnectOptions>()
        .unwrap()
        .connect()
        .await
        .unwrap();
    sqlx::raw_sql("BEGIN; SELECT key FROM adjutant_conversation FOR UPDATE")
        .execute(&mut other)
        .await
        .unwrap();
    let wanted = [store.clone(), store.clone()];
    let wanted = wanted.map(|store| tokio::spawn(async move { store.begin(&key(1), begun).await }));
    for number in 2..50 {
        store.submit(&key(number), &input(number)).await.unwrap();
    }
    assert!(wanted.iter().all(|wanted| !wanted.is_finished()));
    sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
    for wanted in wanted {
        let begun = wanted.await.unwrap().unwrap();
        assert!(
            matches!(
                begun,
                Begun::Claimed {
                    claim: Claim::Granted,
                    ..
                }
            ),
            "{begun:?}"
        );
    }
    other.close().await.unwrap();
}

/// A writer with an outdated cached state is refused, and continues from the current state.
#[tokio::test]
async fn of_two_processes_the_one_that_is_behind_is_refused() {
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.create_database("two").await;
    let (a, b) = (
        Store::connect(&url, 1).await.unwrap(),
        Store::connect(&url, 1).await.unwrap(),
    );
    let (key, input, turn) = (key(1), input(1), [started(1)]);
    let short = std::time::Duration::ZERO;
    let begun = a
        .begin(
            &key,
            Begin {
                lease: short,
                ..begin(Some(&input), &turn, None)
            },
        )
        .await
        .unwrap();
    assert!(matches!(begun, Begun::Started(_)), "{begun:?}");
    a.append(&key, &Recorded::sequence(2, at(2), &[replied(1, 1)]))
        .await
        .unwrap();
    let begun = b
        .begin(
            &key,
            Begin {
                worker: "b".into(),
                ..begin(None, &[], None)
            },
        )
        .await
        .unwrap();
    let Begun::Claimed {
        claim: Claim::TakenOver,
        newer,
    } = begun
    else {
        panic!("{begun:?}")
    };
    assert_eq!(newer.events.len(), 2);
    b.append(
        &key,
        &Recorded::sequence(3, at(3), &[call_started(1), call_finished(1)]),
    )
    .await
    .unwrap();
    for _ in 0..2 {
        let late = a
            .append(&key, &Recorded::sequence(3, at(3), &[call_started(1)]))
            .await;
        assert_eq!(late, Err(StoreError::Conflict));
    }
    // Writers are excluded by the sequence number only.
    a.append(&key, &Recorded::sequence(5, at(4), &[replied(1, 2)]))
        .await
        .unwrap();
    let late = b
        .finish(
            &key,
            "b".into(),
            &Recorded::sequence(5, at(4), &[finished(1)]),
            None,
        )
        .await;
    assert_eq!(late, Err(StoreError::Conflict));
    let end = Recorded::sequence(6, at(5), &[finished(1)]);
    assert_eq!(
        b.finish(&key, "b".into(), &end, None).await.unwrap(),
        Finished::Released
    );
    let decision = b
        .decision(&key.user, turn[0].turn().unwrap())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (decision.model_calls, decision.model_ms, decision.tool_ms),
        (2, 500, 7)
    );
    assert_eq!(a.check().await.unwrap(), []);
}

/// Looking for turns to index takes one message if there are none, and a turn costs the same with
/// an index.
#[tokio::test]
async fn an_index_that_has_everything_costs_one_message() {
    let Some(server) = Server::start() else {
        return;
    };
    let counter = Counter::start(&server);
    let url = format!("{}&port={PORT}", server.create_database("index").await);
    let store = Store::connect(&url, 2).await.unwrap();
    let agent = AgentName::adjutant();
    for number in [1, 2] {
        assert_eq!(store.unindexed(&agent, 9).await.unwrap(), []);
        counter.since();
        assert_eq!(store.unindexed(&agent, 9).await.unwrap(), []);
        let (asked, queries) = counter.since();
        assert_eq!((asked, queries.len()), (1, 1), "{queries:?}");
        take_a_turn(&store, &key(number), number, None).await;
        assert_eq!(counter.since().0, 4);
        let newer = store.unindexed(&agent, 9).await.unwrap();
        let parts: Vec<_> = newer
            .into_iter()
            .map(|part| (part.key, part.part, Vec::new()))
            .collect();
        assert_eq!(store.index(&parts).await.unwrap(), 1);
    }
}

/// No value can end its literal, whatever `standard_conforming_strings` is.
#[tokio::test]
async fn texts_come_back_whatever_characters_they_have() {
    let Some(server) = Server::start() else {
        return;
    };
    let words = [
        "it's",
        "''",
        "\\",
        "\\'",
        "\\\\'; DROP TABLE adjutant_task; --",
        "$1 $2",
        "$$",
        "E'x'",
        "a\nb\tc",
        "/* -- */",
        "\u{2019}\u{fffd}👋🏽",
        "\\u0041\\x41\\101",
        "NULL",
        "{a,\"b\"}",
        "%s",
    ];
    for conforming in ["on", "off"] {
        let name = format!("words_{conforming}");
        let url = server.create_database(&name).await;
        let mut hand = url
            .parse::<PgConnectOptions>()
            .unwrap()
            .connect()
            .await
            .unwrap();
        let set = format!("ALTER DATABASE {name} SET standard_conforming_strings = {conforming}");
        sqlx::query(sqlx::AssertSqlSafe(set))
            .execute(&mut hand)
            .await
            .unwrap();
        hand.close().await.unwrap();
        let store = Store::connect(&url, 1).await.unwrap();
        for (number, words) in words.iter().enumerate() {
            let user = UserId::new(format!("user {words}").replace(['\n', '\t'], " ")).unwrap();
            let description = TaskDescription::new(words).unwrap();
            let change = TaskChange::Add {
                description: description.clone(),
                from_others: false,
            };
            store.apply(&user, &change, None).await.unwrap();
            let tasks = TaskStore::list(&store, &user, TaskFilter::All)
                .await
                .unwrap();
            assert_eq!(
                tasks
                    .iter()
                    .map(|task| &task.description)
                    .collect::<Vec<_>>(),
                [&description]
            );
            let key = ConversationKey {
                user,
                ..key(number)
            };
            let input = Input {
                fingerprint: Some((*words).to_owned()),
                ..Input::new(
                    InputId::new(format!("i{number}")).unwrap(),
                    at(0),
                    InputBody::message(*words),
                )
            };
            store.submit(&key, &input).await.unwrap();
            store.submit(&key, &input).await.unwrap();
            assert_eq!(store.load(&key).await.unwrap().inbox, [input]);
        }
    }
}

/// A subscriber gets notifications without polling the server.
#[tokio::test]
async fn receiving_notifications_costs_no_message() {
    let Some(server) = Server::start() else {
        return;
    };
    let counter = Counter::start(&server);
    let direct = server.create_database("heard").await;
    let waits = Store::connect(&format!("{direct}&port={PORT}"), 2)
        .await
        .unwrap();
    let other = Store::connect(&direct, 2).await.unwrap();
    waits.submit(&key(1), &input(0)).await.unwrap();
    waits.begin(&key(1), begin(None, &[], None)).await.unwrap();
    let mut changes = waits.changes();
    let mut send = async |number: usize| {
        other.submit(&key(1), &input(number)).await.unwrap();
        assert_eq!(changes.next().await, Some(Change::Input(key(1))));
    };
    // It begins to listen, and looks for what came before.
    send(1).await;
    let mut queries = counter.since().1;
    assert!(queries.iter().any(|query| query.contains("LISTEN")));
    // The worker's session is recorded in the background, which is one more message.
    while !queries
        .iter()
        .any(|query| query.contains("INSERT INTO adjutant_worker_session"))
    {
        yield_now().await;
        queries.extend(counter.since().1);
    }
    for number in 2..20 {
        send(number).await;
    }
    assert_eq!(counter.since(), (0, Vec::new()));
}
