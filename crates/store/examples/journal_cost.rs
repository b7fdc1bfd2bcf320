//! Measures the cost of the journal: turns with one tool call, as the runtime journals them,
//! against the same rows inserted by hand with the same number of commits into tables of the same
//! schema. Both alternate in one run, on SQLite and on PostgreSQL. Then as many turns at once as
//! there are writers, with the number of commits.
//!
//! `cargo run --release -p adjutant-store --example journal_cost [TURNS]`
//!
//! Needs PostgreSQL's programs; starts its own server, with `fsync` on, and stops it.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a measurement that cannot go on stops"
)]
#![expect(clippy::print_stdout, reason = "a program for a terminal")]

#[path = "../../../tests/not_run.rs"]
mod not_run;
#[expect(
    dead_code,
    reason = "a test crashes and restarts it; here it only runs"
)]
#[path = "../tests/it/server.rs"]
mod server;

use std::path::Path;
use std::time::Instant;

use adjutant_core::port::Journal;
use adjutant_core::{
    AgentName, ConversationKey, Event, Input, InputBody, InputId, Recorded, UserId,
};
use adjutant_store::{postgres, sqlite};
use jiff::Timestamp;
use serde_json::{Value, json};
use sqlx::{ConnectOptions as _, Connection as _, PgPool, SqlitePool};

/// Turns before the measurement, to warm up both.
const WARM: u32 = 20;

/// Turns that are journaled at the same time, each in a conversation of its own.
const WRITERS: u32 = 64;

/// Calls in one turn: the input, and the appends.
const CALLS: u32 = 7;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let turns: u32 = std::env::args()
        .nth(1)
        .map_or(400, |turns| turns.parse().unwrap());
    println!(
        "{turns} one-tool turns each, taking turns; milliseconds a turn: median (quarter to three quarters)"
    );

    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("journal.db");
    let store = sqlite::Store::open(&path).await.unwrap();
    let bare = folder.path().join("bare.db");
    sqlite::Store::open(&bare).await.unwrap().close().await;
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&bare)
        .synchronous(sqlx::sqlite::SqliteSynchronous::Full);
    let pool = sqlx::sqlite::SqlitePoolOptions::new()
        .max_connections(1)
        .connect_with(options)
        .await
        .unwrap();
    measure(
        "SQLite",
        &store,
        async |number| bare_sqlite(&pool, number).await,
        turns,
    )
    .await;
    at_once("SQLite", &store, 10_000, turns.div_ceil(WRITERS)).await;
    // A reader of an older state keeps the WAL from being restarted, so that it holds every commit.
    journaled(&store, 90_000).await;
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path);
    let mut reader = options.connect().await.unwrap();
    let mut reading = reader.begin().await.unwrap();
    sqlx::query("SELECT count(*) FROM event")
        .execute(&mut *reading)
        .await
        .unwrap();
    let before = commits_in_log(&path);
    together(&store, 100_000, 1).await;
    let commits = commits_in_log(&path) - before;
    println!(
        "SQLite      {commits} commits for {} calls of {WRITERS} writers",
        WRITERS * CALLS
    );
    drop(reading);

    let server = server::Server::start_as(true);
    let url = server.create_database("journal").await;
    let store = postgres::Store::connect(&url, 1).await.unwrap();
    let bare = server.create_database("bare").await;
    postgres::Store::connect(&bare, 1)
        .await
        .unwrap()
        .close()
        .await;
    let options: sqlx::postgres::PgConnectOptions = bare.parse().unwrap();
    let pool = sqlx::postgres::PgPoolOptions::new()
        .max_connections(1)
        .connect_with(options)
        .await
        .unwrap();
    measure(
        "PostgreSQL",
        &store,
        async |number| bare_postgres(&pool, number).await,
        turns,
    )
    .await;
    let store = postgres::Store::connect(&url, 10).await.unwrap();
    at_once("PostgreSQL", &store, 10_000, turns.div_ceil(WRITERS)).await;
}

/// Prints how many calls a second many concurrent writers complete.
async fn at_once<S: Journal + Clone>(name: &str, store: &S, first: u32, turns: u32) {
    let began = Instant::now();
    together(store, first, turns).await;
    let (calls, took) = (WRITERS * turns * CALLS, began.elapsed().as_secs_f64());
    println!(
        "{name:10}  {WRITERS} writers: {:.0} calls a second ({calls} in {took:.1} s)",
        f64::from(calls) / took
    );
}

async fn together<S: Journal + Clone>(store: &S, first: u32, turns: u32) {
    let writers = (0..WRITERS).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            for turn in 0..turns {
                journaled(&store, first + writer * turns + turn).await;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
}

/// Counts the commits in a WAL (sqlite.org/fileformat2.html, 4).
fn commits_in_log(path: &Path) -> usize {
    let log = std::fs::read(format!("{}-wal", path.display())).unwrap();
    let page = usize::try_from(u32::from_be_bytes(log[8..12].try_into().unwrap())).unwrap();
    let frames = log[32..].chunks_exact(24 + page);
    frames
        .filter(|frame| frame[8..16] == log[16..24] && frame[4..8] != [0; 4])
        .count()
}

/// Prints the times of both and the ratio of their medians: other load on the machine affects both.
async fn measure(name: &str, store: &impl Journal, bare: impl AsyncFn(u32), turns: u32) {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for number in 1..=WARM + turns {
        let began = Instant::now();
        journaled(store, number).await;
        let journal = began.elapsed();
        let began = Instant::now();
        bare(number).await;
        let inserts = began.elapsed();
        if number > WARM {
            with.push(journal.as_secs_f64() * 1000.0);
            without.push(inserts.as_secs_f64() * 1000.0);
        }
    }
    let (with, without) = (quarters(with), quarters(without));
    let said = |[low, median, high]: [f64; 3]| format!("{median:.2} ({low:.2} to {high:.2})");
    println!(
        "{name:10}  journal {}  bare {}  ratio {:.2}",
        said(with),
        said(without),
        with[1] / without[1]
    );
}

fn quarters(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[values.len() * quarter / 4])
}

fn at() -> Timestamp {
    Timestamp::new(1_790_000_000, 123_456_789).unwrap()
}

fn conversation(number: u32) -> ConversationKey {
    let conversation = format!("00000000-0000-7000-8000-{number:012}")
        .parse()
        .unwrap();
    ConversationKey {
        agent: AgentName::adjutant(),
        user: UserId::local(),
        conversation,
    }
}

/// Journals a turn with one tool call: the input, then the appends, one commit each.
async fn journaled(store: &impl Journal, number: u32) {
    let (key, body) = (
        conversation(number),
        InputBody::message("add buy milk to my list"),
    );
    let input = Input::new(InputId::new("i1").unwrap(), at(), body);
    store.submit(&key, &input).await.unwrap();
    let mut next = 1;
    for events in commits(number) {
        store
            .append(&key, &Recorded::sequence(next, at(), &events))
            .await
            .unwrap();
        next += u64::try_from(events.len()).unwrap();
    }
}

/// Returns the events that the runtime appends in a turn with one tool call, commit by commit.
fn commits(number: u32) -> Vec<Vec<Event>> {
    let turn = format!("11111111-0000-7000-8000-{number:012}");
    let call = format!("call_{number}");
    let model = json!({"provider": "scripted", "name": "demo"});
    let arguments = json!({"description": "buy milk"});
    let added = json!({"success": true, "data": {"id": "1", "description": "buy milk", "completed": false}});
    let replied = |count: u32, parts: Value, finish: &str| {
        json!({"event": "model_replied", "turn": turn, "number": count, "ms": 900, "attempts": 1, "reply": {"Ok": {
            "model": model, "finish": finish, "parts": parts, "cost": 812_000,
            "usage": {"input_tokens": 812, "output_tokens": 41},
        }}})
    };
    let said = json!([{"type": "text", "text": "I added \"buy milk\" to your list."}]);
    let asked =
        json!([{"type": "tool_call", "id": call, "name": "add_task", "arguments": arguments}]);
    let end = json!({
        "decision": {"kind": "INVOKE_TOOL", "intent": "CREATE_TASK", "text": "I added \"buy milk\" to your list.",
            "tool_calls": [{"id": call, "name": "add_task", "arguments": arguments}], "pending": []},
        "outcome": "SUCCESS:TASK_COMPLETED", "usage": {"input_tokens": 1700, "output_tokens": 60}, "cost": 1_700_000,
        "iterations": 1, "error": null, "notices": [],
        "tools_used": [{"tool": "add_task", "arguments": arguments, "result": added}],
        "messages": [
            {"role": "user", "parts": [{"type": "text", "text": "add buy milk to my list"}]},
            {"role": "assistant", "parts": asked},
            {"role": "assistant", "parts": said},
        ],
    });
    let commits = [
        vec![
            json!({"event": "turn_started", "turn": turn, "input": "i1", "message": "add buy milk to my list",
            "message_chars": 23, "model": model, "limits": {}}),
        ],
        vec![replied(1, asked, "tool_calls")],
        vec![
            json!({"event": "call_checked", "turn": turn, "call": call,
                "verdict": {"gate": "run", "arguments": arguments}}),
            json!({"event": "call_started", "turn": turn, "call": call, "tool": "add_task", "arguments": arguments,
                "key": format!("c/{turn}/{call}"), "effect": "keyed"}),
        ],
        vec![
            json!({"event": "call_finished", "turn": turn, "call": call, "tool": "add_task", "arguments": arguments,
            "result": added, "summary": "Added \"buy milk\".", "ms": 3, "attempt": 1}),
        ],
        vec![replied(2, said, "stop")],
        vec![json!({"event": "turn_finished", "turn": turn, "end": end})],
    ];
    let event = |body: Value| serde_json::from_value(body).unwrap();
    commits
        .into_iter()
        .map(|events| events.into_iter().map(event).collect())
        .collect()
}

/// Inserts the same rows without a journal, in as many transactions and without reads.
macro_rules! bare {
    ($name:ident, $pool:ty, $begin:literal) => {
        async fn $name(pool: &$pool, number: u32) {
            let (id, time) = (conversation(number).conversation.to_string(), format!("{:.9}", at()));
            let mut rows = pool.begin_with($begin).await.unwrap();
            let (key,): (i64,) = sqlx::query_as(
                "INSERT INTO adjutant_conversation (user_id, id, title, created_at, updated_at) VALUES ($1, $2, $3, $4, $5)
                 RETURNING key",
            )
            .bind("local")
            .bind(&id)
            .bind("add buy milk to my list")
            .bind(&time)
            .bind(&time)
            .fetch_one(&mut *rows)
            .await
            .unwrap();
            let body = serde_json::to_string(&InputBody::message("add buy milk to my list")).unwrap();
            sqlx::query("INSERT INTO adjutant_inbox (conversation, id, v, body, at) VALUES ($1, $2, $3, $4, $5)")
                .bind(key)
                .bind("i1")
                .bind(1_i64)
                .bind(body)
                .bind(&time)
                .execute(&mut *rows)
                .await
                .unwrap();
            rows.commit().await.unwrap();
            let mut seq = 0_i64;
            for events in commits(number) {
                let mut rows = pool.begin_with($begin).await.unwrap();
                for event in events {
                    seq += 1;
                    let turn = event.turn().unwrap().to_string();
                    sqlx::query(
                        "INSERT INTO adjutant_event (conversation, seq, v, kind, turn, step, body, at)
                         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
                    )
                    .bind(key)
                    .bind(seq)
                    .bind(1_i64)
                    .bind(event.kind())
                    .bind(&turn)
                    .bind(event.step().map(|step| step.to_string()))
                    .bind(serde_json::to_string(&event).unwrap())
                    .bind(&time)
                    .execute(&mut *rows)
                    .await
                    .unwrap();
                    if event.kind() == "turn_started" {
                        sqlx::query(
                            "INSERT INTO adjutant_decision (conversation, conversation_id, user_id, id, started_at, message,
                             message_chars, model_provider, model_name, model_calls, iterations, model_ms, tool_ms)
                             VALUES ($1, $2, $3, $4, $5, $6, 23, $7, $8, 0, 0, 0, 0)",
                        )
                        .bind(key)
                        .bind(&id)
                        .bind("local")
                        .bind(&turn)
                        .bind(&time)
                        .bind("add buy milk to my list")
                        .bind("scripted")
                        .bind("demo")
                        .execute(&mut *rows)
                        .await
                        .unwrap();
                    }
                    if event.kind() == "call_finished" {
                        sqlx::query(
                            "INSERT INTO adjutant_tool_invocation (conversation, user_id, decision, id, tool, arguments, success,
                             data, ms, attempt, at) VALUES ($1, $2, $3, $4, $5, $6, 1, $7, 3, 1, $8)",
                        )
                        .bind(key)
                        .bind("local")
                        .bind(&turn)
                        .bind(format!("call_{number}"))
                        .bind("add_task")
                        .bind(r#"{"description":"buy milk"}"#)
                        .bind(r#"{"id":"1","description":"buy milk","completed":false}"#)
                        .bind(&time)
                        .execute(&mut *rows)
                        .await
                        .unwrap();
                    }
                }
                rows.commit().await.unwrap();
            }
        }
    };
}

bare!(bare_sqlite, SqlitePool, "BEGIN IMMEDIATE");
bare!(bare_postgres, PgPool, "BEGIN");
