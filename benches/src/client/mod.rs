//! A client that is measured, in a process of its own so that its CPU time and memory can be told
//! apart.
//!
//! It warms up and prints `warm`; after the parent's reply it runs turns for the given time, and
//! prints the results.

mod agent; // Adjutant's agent
mod bare; // HTTP clients without an agent
mod count; // SQLite statements and commits
mod long; // long conversations
#[cfg(feature = "rig")]
mod rig_agent; // rig's agent
mod rows; // rows without a journal

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::{Barrier, Notify};

use crate::{Result, process, usage};

/// Name of the tool that the model calls.
pub(crate) const TOOL: &str = "look_up";
/// System instruction of the agent.
const INSTRUCTION: &str =
    "You answer questions. Look up what you do not know, then answer in one sentence.";
/// The user's message in every turn.
const MESSAGE: &str = "What is the answer to question number one?";

/// Settings of a client.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// The kind of client.
    pub(crate) kind: Kind,
    /// Base URL of the model or URL of the service.
    pub(crate) address: String,
    /// True if answers are streamed.
    pub(crate) streamed: bool,
    /// Number of concurrent conversations.
    pub(crate) at_once: usize,
    /// Number of turns of every conversation before the measurement.
    pub(crate) warm: u32,
    /// Duration of the measurement, in seconds.
    pub(crate) seconds: f64,
    /// Number of turns of a long conversation.
    pub(crate) turns: u32,
    /// Limit of rounds (model answers with tool calls) in one turn.
    pub(crate) rounds_max: u32,
    /// Size of a tool result, in bytes.
    pub(crate) result_bytes: usize,
    /// Request bodies that bare clients send, in this order.
    pub(crate) bodies: Vec<String>,
    /// Bearer token of the requests.
    pub(crate) token: Option<String>,
    /// File or URL of the database.
    pub(crate) database: String,
    /// Database file with the rows of one turn.
    pub(crate) template: Option<PathBuf>,
}

/// A kind of client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// A bare hyper connection.
    Hyper,
    /// The client of reqwest.
    Reqwest,
    /// The agent of rig.
    Rig,
    /// Adjutant's agent with its store in memory.
    Memory,
    /// Adjutant's agent with its store in SQLite.
    Sqlite,
    /// Adjutant's agent with its store in PostgreSQL.
    Postgres,
    /// Only the rows of a turn, written to SQLite with many turns in a commit.
    Rows,
    /// A long conversation of Adjutant's agent in memory.
    LongMemory,
    /// A long conversation of Adjutant's agent on SQLite.
    LongSqlite,
    /// A long conversation of Adjutant's agent on PostgreSQL.
    LongPostgres,
}

/// Results of a client.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// Number of turns.
    pub(crate) turns: u64,
    /// Time of all turns, in seconds.
    pub(crate) seconds: f64,
    /// CPU time of all turns, in microseconds.
    pub(crate) cpu_us: i64,
    /// Peak memory of the process, in KiB.
    pub(crate) peak_kib: u64,
    /// SQLite transactions that wrote something.
    pub(crate) commits: Option<u64>,
    /// Statements that SQLite ran.
    pub(crate) statements: Option<u64>,
    /// CPU time of an early turn of a long conversation, in microseconds.
    pub(crate) early_us: Option<f64>,
    /// CPU time of one of its last turns, in microseconds.
    pub(crate) late_us: Option<f64>,
    /// Growth of the database, in bytes.
    pub(crate) bytes: Option<u64>,
}

/// A conversation that runs one turn after another.
pub(crate) trait Worker: Send + 'static {
    /// Runs one turn to its end.
    fn turn(&mut self) -> impl Future<Output = Result<()>> + Send;
}

/// Runs the client with a [`Setup`] given as JSON.
pub(crate) fn run(setup: &str) -> Result<()> {
    let setup: Setup = serde_json::from_str(setup)?;
    count::begin();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match setup.kind {
            Kind::Hyper => drive(&setup, bare::over_hyper(&setup).await?).await,
            Kind::Reqwest => drive(&setup, bare::over_reqwest(&setup)?).await,
            #[cfg(feature = "rig")]
            Kind::Rig => drive(&setup, rig_agent::workers(&setup)?).await,
            #[cfg(not(feature = "rig"))]
            Kind::Rig => Err("built without the feature `rig`".into()),
            Kind::Memory | Kind::Sqlite | Kind::Postgres => {
                drive(&setup, agent::workers(&setup).await?).await
            }
            Kind::Rows => drive(&setup, rows::workers(&setup)?).await,
            Kind::LongMemory | Kind::LongSqlite | Kind::LongPostgres => {
                long::converse(&setup).await
            }
        }
    })
}

/// Warms the workers up, waits for the parent process, and runs turns until the time is over.
async fn drive<W: Worker>(setup: &Setup, workers: Vec<W>) -> Result<()> {
    let ready = Arc::new(Barrier::new(workers.len() + 1));
    let go = Arc::new(Notify::new());
    let turns = Arc::new(AtomicU64::new(0));
    let mut running = tokio::task::JoinSet::new();
    for mut worker in workers {
        let (ready, go, turns) = (Arc::clone(&ready), Arc::clone(&go), Arc::clone(&turns));
        let (warm, lasts) = (setup.warm, Duration::from_secs_f64(setup.seconds));
        running.spawn(async move {
            for _ in 0..warm {
                worker.turn().await?;
            }
            let started = go.notified();
            tokio::pin!(started);
            started.as_mut().enable();
            ready.wait().await;
            started.await;
            let until = Instant::now() + lasts;
            while Instant::now() < until {
                worker.turn().await?;
                turns.fetch_add(1, Ordering::Relaxed);
            }
            Result::Ok(())
        });
    }
    tokio::select! {
        _ = ready.wait() => {}
        // Before the start, a worker can end only with an error.
        Some(ended) = running.join_next() => { ended??; }
    }
    process::say("warm")?;
    tokio::task::spawn_blocking(process::wait_for_word).await??;
    let (asked, began, cpu) = (count::so_far(), Instant::now(), usage::own_cpu_us()?);
    go.notify_waiters();
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    let cpu_us = usage::own_cpu_us()? - cpu;
    let seconds = began.elapsed().as_secs_f64();
    let now = count::so_far();
    let sqlite = matches!(setup.kind, Kind::Sqlite | Kind::Rows);
    report(&Measured {
        turns: turns.load(Ordering::Relaxed),
        seconds,
        cpu_us,
        peak_kib: usage::peak_kib("self")?,
        commits: sqlite.then(|| now.commits - asked.commits),
        statements: sqlite.then(|| now.statements - asked.statements),
        ..Measured::default()
    })
    .await
}

/// Prints the results, and keeps this process with its connections alive until the parent has read
/// the counters of the server.
async fn report(measured: &Measured) -> Result<()> {
    process::say(&serde_json::to_string(measured)?)?;
    tokio::task::spawn_blocking(process::wait_for_end).await?
}
