//! Adjutant's agent with one tool and one of its stores. Every turn is a new conversation.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use adjutant::port::DeltaStream;
use adjutant::prelude::*;
use adjutant::{
    BoxFuture, Capabilities, GenerateRequest, GenerateResponse, HttpModel, ModelError, ModelId,
};
use adjutant::{Connection, OutcomeCategory, Transport, TurnLimits};
use adjutant::{openai, postgres, sqlite, worker_id};

use super::{INSTRUCTION, Kind, MESSAGE, Setup, Worker};
use crate::Result;

/// Number of PostgreSQL connections; 0 selects the store's default, which `adjutant serve` uses.
const CONNECTIONS: u32 = 0;

/// Size of the context window, in tokens.
const WINDOW: u32 = 16_000_000;

static RESULT_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Looks up a fact.
#[tool]
async fn look_up(number: u32) -> String {
    let fact = format!("Fact {number}: forty-two.");
    let more = RESULT_BYTES
        .load(Ordering::Relaxed)
        .saturating_sub(fact.len());
    fact + &letters(number, more)
}

/// Returns pseudo-random letters, which a database cannot compress much; the same ones for the same
/// number.
fn letters(number: u32, count: usize) -> String {
    let mut state = u64::from(number) + 1;
    let letter = |_| {
        // A linear congruential generator (Knuth, The Art of Computer Programming, 3.3.4): only its
        // high bits look random.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        char::from(b"abcdefghijklmnopqrstuvwxyzABCDEF"[usize::from((state >> 59) as u8)])
    };
    (0..count).map(letter).collect()
}

/// Builds the agent that `setup` describes. Also returns an SQLite store, which must be closed at
/// the end.
pub(super) async fn agent(setup: &Setup) -> Result<(Agent, Option<Arc<sqlite::Store>>)> {
    RESULT_BYTES.store(setup.result_bytes, Ordering::Relaxed);
    let connection = Connection {
        base_url: Some(setup.address.parse()?),
        ..Connection::new(Transport::new()?)
    };
    let model = openai::compatible("mock", connection)?;
    let capabilities = Capabilities {
        context_window: WINDOW,
        ..model.capabilities().clone()
    };
    let model = Wide {
        model,
        capabilities,
    };
    let limits = TurnLimits {
        tool_iterations_max: setup.rounds_max,
        ..TurnLimits::for_model(model.capabilities())
    };
    let builder = Agent::builder("bench")
        .model(model)
        .instruction(INSTRUCTION)
        .limits(limits)
        .tool(look_up);
    match setup.kind {
        Kind::Sqlite | Kind::LongSqlite => {
            let store = Arc::new(sqlite::Store::open(Path::new(&setup.database)).await?);
            Ok((
                builder.journal(Arc::clone(&store), worker_id()).build()?,
                Some(store),
            ))
        }
        Kind::Postgres | Kind::LongPostgres => {
            let store = postgres::Store::connect(&setup.database, CONNECTIONS).await?;
            Ok((builder.journal(Arc::new(store), worker_id()).build()?, None))
        }
        _ => Ok((builder.build()?, None)),
    }
}

/// A model with a context window of [`WINDOW`], so that a turn with many calls does not exceed it.
struct Wide {
    model: HttpModel,
    capabilities: Capabilities,
}

impl LanguageModel for Wide {
    fn id(&self) -> &ModelId {
        self.model.id()
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn generate<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, std::result::Result<GenerateResponse, ModelError>> {
        self.model.generate(request)
    }

    fn stream<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, std::result::Result<DeltaStream, ModelError>> {
        self.model.stream(request)
    }
}

/// Runs one conversation after another.
pub(super) struct Conversations(Agent);

/// Creates the workers, which share one agent.
pub(super) async fn workers(setup: &Setup) -> Result<Vec<Conversations>> {
    let (agent, _) = agent(setup).await?;
    Ok((0..setup.at_once)
        .map(|_| Conversations(agent.clone()))
        .collect())
}

impl Worker for Conversations {
    async fn turn(&mut self) -> Result<()> {
        done(&self.0.run(MESSAGE).await?)
    }
}

/// Returns an error unless the turn has called the tool and ended with the model's text.
pub(super) fn done(response: &AgentResponse) -> Result<()> {
    let good = response.outcome == OutcomeCategory::TaskCompleted
        && response.content.ends_with("forty-two.");
    if good && !response.tools_used.is_empty() {
        return Ok(());
    }
    let content: String = response.content.chars().take(200).collect();
    Err(format!("{}: {content} ({:?})", response.outcome, response.error).into())
}
