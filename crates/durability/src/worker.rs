//! The worker process: answers requests until its input ends, each in its own task.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::port::{ConversationStore, Journal, LogStore, StoreError};
use adjutant_core::{Content, Message, Part, TurnLimits, WindowShare};
use adjutant_providers::{Connection, Transport, openai};
use adjutant_runtime::{Agent, RunContext};
use adjutant_store::{postgres, sqlite, worker_id};
use adjutant_tools::TaskStore;
use adjutant_tools::task_tools;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::tool::{Remote, Style};
use crate::{EFFECTS, Reply, Request, Response, Setup};

/// Connections to PostgreSQL.
const CONNECTIONS: u32 = 4;

/// Runs the worker until its standard input ends.
///
/// # Errors
/// A message: the setup is invalid, or the database cannot be opened.
pub fn work() -> Result<(), String> {
    let setup = std::env::args()
        .nth(1)
        .ok_or("usage: durability-worker SETUP")?;
    let setup: Setup =
        serde_json::from_str(&setup).map_err(|error| format!("the setup: {error}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(|error| error.to_string())?.block_on(async {
        if setup.database.starts_with("postgres://") {
            serve(
                agent(
                    &setup,
                    postgres::Store::connect(&setup.database, CONNECTIONS).await,
                )?,
                &setup,
            )
            .await
        } else {
            serve(
                agent(
                    &setup,
                    sqlite::Store::open(Path::new(&setup.database)).await,
                )?,
                &setup,
            )
            .await
        }
    })
}

fn agent<J: Journal + LogStore + ConversationStore + TaskStore>(
    setup: &Setup,
    store: Result<J, StoreError>,
) -> Result<Agent, String> {
    let store = Arc::new(store.map_err(|error| error.to_string())?);
    let transport = Transport::new().map_err(|error| error.to_string())?;
    let url = format!("http://{}", setup.model).parse();
    let connection = Connection {
        base_url: url.ok(),
        ..Connection::new(transport)
    };
    let model = openai::compatible("mock", connection).map_err(|error| error.to_string())?;
    let mut builder = Agent::builder(setup.agent.as_str())
        .model(model)
        .instruction("Work.")
        .limits(TurnLimits {
            // The tools time out before that.
            tool_timeout: setup.patience + Duration::from_secs(30),
            confirmation_expiry: setup.confirmation_expiry,
            // Only a long history exceeds this.
            summarize_at: WindowShare::new(0.1).ok(),
            ..TurnLimits::default()
        })
        .tools(task_tools(store.clone()))
        .journal(
            store,
            setup.name.clone().unwrap_or_else(|| worker_id().to_owned()),
        );
    for effect in EFFECTS {
        for style in Style::ALL {
            let tool =
                Remote::new(effect, style, setup.tools).map_err(|error| error.to_string())?;
            builder = builder.tool(tool.that_waits(setup.patience, setup.probe));
        }
    }
    builder.build().map_err(|error| error.to_string())
}

async fn serve(agent: Agent, setup: &Setup) -> Result<(), String> {
    if setup.resumes {
        agent
            .recover(None)
            .await
            .map_err(|error| error.to_string())?;
    }
    let (lines, mut to_read) = mpsc::unbounded_channel::<String>();
    // Ends with the standard input, or with the process.
    std::thread::spawn(move || {
        std::io::stdin()
            .lines()
            .map_while(Result::ok)
            .try_for_each(|line| lines.send(line))
    });
    let (agent, mut running) = (Arc::new(agent), JoinSet::new());
    while let Some(line) = to_read.recv().await {
        let request: Request =
            serde_json::from_str(&line).map_err(|error| format!("the request: {error}"))?;
        let agent = Arc::clone(&agent);
        running.spawn(async move {
            let number = request.number;
            let result = answer(&agent, request).await;
            // The test may not wait any more; then the standard input has ended too.
            let _ = write_reply(&Reply { number, result });
        });
    }
    running.join_all().await;
    Ok(())
}

fn write_reply(reply: &Reply) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

async fn answer(agent: &Agent, request: Request) -> Result<Response, String> {
    let mut context = RunContext {
        conversation: request.conversation,
        history: if request.long { history() } else { Vec::new() },
        ..RunContext::new(request.user)
    };
    let response = agent
        .run_input(&mut context, Some(request.input), request.body)
        .await;
    let response = response.map_err(|error| error.to_string())?;
    Ok(Response {
        outcome: response.outcome,
        content: response.content,
        pending: response.decision.pending,
    })
}

/// Returns a history that is longer than a turn is given, and long enough that it is summarised.
#[must_use]
pub fn history() -> Vec<Message> {
    (0..30)
        .flat_map(|n| {
            let said = Message::user(format!("Question {n}"));
            let text = Content::Text {
                text: format!("Answer {n} {}", "and so on ".repeat(1_500)),
            };
            [
                said,
                Message::assistant(vec![Part {
                    content: text,
                    state: None,
                }]),
            ]
        })
        .flatten()
        .collect()
}
