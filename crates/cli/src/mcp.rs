//! `adjutant mcp`: the tools, and if it is wanted the agent, for one MCP client, over standard
//! input and output.
//!
//! Standard output belongs to the protocol alone. Whatever goes wrong is told on standard error,
//! and to a client that is waiting for its session also as the error of its `initialize`: most
//! clients show that, and few show standard error.

mod client; // what other programs want to be told

pub(crate) use client::Place;

use std::time::Duration;

use adjutant_core::{CancellationToken, UserId};
use adjutant_mcp::server::{McpServer, StdioError, serve_stdio};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use crate::args::Mcp;
use crate::config::Settings;
use crate::display::json_line;
use crate::error::{CliError, Exit};
use crate::lines::Stops;
use crate::screen::Screen;
use crate::store::Stores;
use crate::{memory, model_choice, store, wiring};

/// How long a client has to ask for the session that cannot be opened.
const PATIENCE: Duration = Duration::from_secs(5);
/// A first message, in bytes.
const FIRST_MESSAGE_MAX: u64 = 1024 * 1024;

/// Serves until standard input is closed or the process is told to end, or prints what a client has
/// to be told.
///
/// # Errors
/// Settings, database or user cannot be used; the client does not speak the protocol.
pub(crate) async fn run(
    settings: Result<Settings, CliError>,
    screen: &Screen,
    options: Mcp,
    place: Place,
) -> Result<Exit, CliError> {
    let user = options.user.as_deref().map(UserId::new).transpose();
    let user = user.map_err(|error| CliError::usage(format!("--user: {error}")));
    if let Some(client) = options.print_config {
        user?;
        screen.answer_line(&client.configuration(&options, &place)?);
        screen.note(&format!("paste this {}", client.place()));
        return Ok(Exit::Ok);
    }
    match opened(settings, screen, (user, options.agent)).await {
        Ok((server, user)) => serve(&server, user).await,
        Err(error) => {
            tell(&error).await;
            Err(error)
        }
    }
}

/// The server and its user. `asks`: the agent itself is a tool. It has no MCP servers of its own,
/// so that none starts this one again.
async fn opened(
    settings: Result<Settings, CliError>,
    screen: &Screen,
    (user, asks): (Result<Option<UserId>, CliError>, bool),
) -> Result<(McpServer, UserId), CliError> {
    let (settings, user) = (settings?, user?.unwrap_or_else(UserId::local));
    let store = store::open(&settings).await?;
    let agent = match asks {
        true => {
            let tasks = memory::own_task_store(&settings, &Stores::one(store.clone())).await?;
            wiring::agent(
                &settings,
                model_choice::open(&settings, screen).await?,
                tasks,
                store,
            )?
        }
        false => wiring::agent_without_model(&settings, store).await?,
    };
    let server = McpServer::builder(agent).report(|error| {
        // Standard error may be closed; then nobody wants to know.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{error}\n").as_bytes());
    });
    let server = match asks {
        // One person's client: nobody else is held up by it.
        true => server.asked(Box::new(|_| Ok(Box::new(|_, _| {})))).build(),
        false => server.build(),
    };
    Ok((server, user))
}

async fn serve(server: &McpServer, user: UserId) -> Result<Exit, CliError> {
    let mut stops = Stops::new()?;
    let stop = CancellationToken::new();
    let serving = serve_stdio(server, user, stop.clone());
    let mut serving = std::pin::pin!(serving);
    let ended = tokio::select! {
        ended = &mut serving => ended,
        _ = stops.next() => {
            stop.cancel();
            serving.await
        }
    };
    ended.map(|()| Exit::Ok).map_err(CliError::from)
}

impl From<StdioError> for CliError {
    fn from(error: StdioError) -> Self {
        let told = Self::failed(error.to_string());
        match error {
            StdioError::Handshake(_) => {
                told.or_try("adjutant mcp --print-config CLIENT, for a client that speaks MCP")
            }
            _ => told,
        }
    }
}

/// Answers the first request with the error.
async fn tell(error: &CliError) {
    let mut line = Vec::new();
    let mut input = BufReader::new(tokio::io::stdin()).take(FIRST_MESSAGE_MAX);
    let read = tokio::time::timeout(PATIENCE, input.read_until(b'\n', &mut line)).await;
    let Ok(Ok(1..)) = read else { return };
    let Ok(request) = serde_json::from_slice::<serde_json::Value>(&line) else {
        return;
    };
    let Some(id) = request
        .get("id")
        .filter(|id| id.is_string() || id.is_number())
    else {
        return;
    };
    let message = error
        .cause
        .iter()
        .fold(error.message.clone(), |message, cause| {
            format!("{message}: {cause}")
        });
    let answer = serde_json::json!({
        "jsonrpc": "2.0",
        "id": id,
        "error": { "code": -32603, "message": message },
    });
    let mut output = tokio::io::stdout();
    // A client that is gone hears nothing.
    let _ = output
        .write_all(format!("{}\n", json_line(&answer)).as_bytes())
        .await;
    let _ = output.flush().await;
}
