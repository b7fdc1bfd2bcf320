//! One client: a process of its own, so that its processor time and memory are its own.
//!
//! It gets ready, warms up and says so; told to go on, it runs turns until its time is over, and
//! says what they took.

mod agent; // Adjutant
mod bare; // HTTP without an agent
mod count; // what SQLite is asked
mod long; // one conversation of many turns
#[cfg(feature = "rig")]
mod rig_agent; // the same turn by rig
mod rows; // the same rows without a journal

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::{Barrier, Notify};

use crate::{Result, process, usage};

/// The tool that the model calls.
pub(crate) const TOOL: &str = "look_up";
/// How the agent is told to behave.
const INSTRUCTION: &str =
    "You answer questions. Look up what you do not know, then answer in one sentence.";
/// What the person says.
const MESSAGE: &str = "What is the answer to question number one?";

/// What a client does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// Who it is.
    pub(crate) kind: Kind,
    /// Where the model is, or the service.
    pub(crate) address: String,
    /// Answers come as a stream.
    pub(crate) streamed: bool,
    /// Conversations at once.
    pub(crate) at_once: usize,
    /// Turns of every conversation before the measured ones.
    pub(crate) warm: u32,
    /// How long it goes on, in seconds.
    pub(crate) seconds: f64,
    /// Turns of a long conversation, or of a recording.
    pub(crate) turns: u32,
    /// Model answers with calls of a tool, in one turn.
    pub(crate) rounds_max: u32,
    /// Bytes of a tool's result.
    pub(crate) result_bytes: usize,
    /// Bodies that bare clients send, one after the other.
    pub(crate) bodies: Vec<String>,
    /// A token that goes with them.
    pub(crate) token: Option<String>,
    /// The database's file or address.
    pub(crate) database: String,
    /// A database with the rows of one turn.
    pub(crate) template: Option<PathBuf>,
}

/// Who a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// hyper's connection, with nothing around it.
    Hyper,
    /// reqwest's client.
    Reqwest,
    /// rig's agent.
    Rig,
    /// Adjutant's agent in memory.
    Memory,
    /// Adjutant's agent on SQLite.
    Sqlite,
    /// Adjutant's agent on PostgreSQL.
    Postgres,
    /// The rows of a turn in SQLite, many turns in one commit.
    Rows,
    /// One conversation of Adjutant's, in memory.
    LongMemory,
    /// One conversation of Adjutant's, on SQLite.
    LongSqlite,
    /// One conversation of Adjutant's, on PostgreSQL.
    LongPostgres,
}

/// What a client measured.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// Turns.
    pub(crate) turns: u64,
    /// How long they took.
    pub(crate) seconds: f64,
    /// Processor time of all of them, in microseconds.
    pub(crate) cpu_us: i64,
    /// The most memory the process ever held, in KiB.
    pub(crate) peak_kib: u64,
    /// Commits that wrote, in SQLite.
    pub(crate) commits: Option<u64>,
    /// Statements that SQLite ran.
    pub(crate) statements: Option<u64>,
    /// Processor time of one turn near the beginning of a long conversation, in microseconds.
    pub(crate) early_us: Option<f64>,
    /// The same near its end.
    pub(crate) late_us: Option<f64>,
    /// Bytes the database took for what was measured.
    pub(crate) bytes: Option<u64>,
}

/// One conversation: whatever runs turn after turn.
pub(crate) trait Worker: Send + 'static {
    /// Runs one turn.
    fn turn(&mut self) -> impl Future<Output = Result<()>> + Send;
}

/// Runs the client that `setup` describes.
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

/// Warms the workers up, waits for the word to go on, and runs turns until the time is over.
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
            let told = go.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            ready.wait().await;
            told.await;
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
        // Only a failure ends before the word was given.
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

/// Says what was measured, and stays until the run has looked at everything it wants to.
async fn report(measured: &Measured) -> Result<()> {
    process::say(&serde_json::to_string(measured)?)?;
    tokio::task::spawn_blocking(process::wait_for_end).await?
}
