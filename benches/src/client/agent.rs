//! Adjutant: an agent with one tool, on one of its stores. Every turn is a conversation of its own.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use adjutant::prelude::*;
use adjutant::{Connection, OutcomeCategory, Transport, TurnLimits};
use adjutant::{openai, postgres, sqlite, worker_id};

use super::{INSTRUCTION, Kind, MESSAGE, Setup, Worker};
use crate::Result;

/// Connections to PostgreSQL: the store's own number, as `adjutant serve` has it.
const CONNECTIONS: u32 = 0;

static RESULT_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Looks up a fact.
#[tool]
async fn look_up(number: u32) -> String {
    let fact = format!("Fact {number}: forty-two.");
    let more = RESULT_BYTES.load(Ordering::Relaxed).saturating_sub(fact.len());
    if more == 0 { fact } else { fact + &"and so on ".repeat(more.div_ceil(10)) }
}

/// Builds the agent that `setup` describes, and returns what its store needs to be closed.
pub(super) async fn agent(setup: &Setup) -> Result<(Agent, Option<Arc<sqlite::Store>>)> {
    RESULT_BYTES.store(setup.result_bytes, Ordering::Relaxed);
    let connection =
        Connection { base_url: Some(setup.address.parse()?), ..Connection::new(Transport::new()?) };
    let model = openai::compatible("mock", connection)?;
    let limits =
        TurnLimits { tool_iterations_max: setup.rounds_max, ..TurnLimits::for_model(model.capabilities()) };
    let builder = Agent::builder("bench").model(model).instruction(INSTRUCTION).limits(limits).tool(look_up);
    match setup.kind {
        Kind::Sqlite | Kind::LongSqlite => {
            let store = Arc::new(sqlite::Store::open(Path::new(&setup.database)).await?);
            Ok((builder.journal(Arc::clone(&store), worker_id()).build()?, Some(store)))
        }
        Kind::Postgres | Kind::LongPostgres => {
            let store = postgres::Store::connect(&setup.database, CONNECTIONS).await?;
            Ok((builder.journal(Arc::new(store), worker_id()).build()?, None))
        }
        _ => Ok((builder.build()?, None)),
    }
}

/// A conversation after the other.
pub(super) struct Conversations(Agent);

/// Makes one agent for all of them.
pub(super) async fn workers(setup: &Setup) -> Result<Vec<Conversations>> {
    let (agent, _) = agent(setup).await?;
    Ok((0..setup.at_once).map(|_| Conversations(agent.clone())).collect())
}

impl Worker for Conversations {
    async fn turn(&mut self) -> Result<()> {
        done(&self.0.run(MESSAGE).await?)
    }
}

/// Refuses an answer that is not what the model said.
pub(super) fn done(response: &AgentResponse) -> Result<()> {
    let good = response.outcome == OutcomeCategory::TaskCompleted && response.content.ends_with("forty-two.");
    if good && !response.tools_used.is_empty() {
        return Ok(());
    }
    Err(format!("{}: {} ({:?})", response.outcome, response.content, response.error).into())
}
