//! `adjutant mcp`: offers the tools, and optionally the agent, to one MCP client over standard
//! input and output.
//!
//! Standard output carries the protocol only. Errors go to standard error, and also as the response
//! to `initialize` to a client that waits for it: most clients show that, few show standard error.

mod client; // configuration of clients
mod configure; // servers in the user's configuration
mod entry; // a server's entry in it
mod inspect; // one server: its tools, prompts and resources
mod server_json; // servers in the format of other clients

pub(crate) use client::LaunchOptions;

use std::time::Duration;

use adjutant_core::{CancellationToken, UserId};
use adjutant_mcp::server::{McpServer, StdioError, serve_stdio};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use crate::args::{Mcp, McpCommand};
use crate::config::{Settings, Sources};
use crate::error::{CliError, Exit};
use crate::memory;
use crate::model_choice;
use crate::store;
use crate::store::Stores;
use crate::terminal::display::json_line;
use crate::terminal::screen::Screen;
use crate::terminal::signals::StopSignals;
use crate::wiring;

/// Time a client has to send `initialize` after startup failed.
const PATIENCE: Duration = Duration::from_secs(5);
/// Size of a first message in bytes at most.
const FIRST_MESSAGE_MAX: u64 = 1024 * 1024;

/// Serves until standard input is closed or a stop signal comes, or prints a client's
/// configuration.
///
/// # Errors
/// Settings, database or user cannot be used, or the client violates the protocol.
pub(crate) async fn run(
    settings: Result<Settings, CliError>,
    screen: &Screen,
    options: Mcp,
    place: LaunchOptions,
) -> Result<Exit, CliError> {
    let user = options.user.as_deref().map(UserId::new).transpose();
    let user = user.map_err(|error| CliError::usage(format!("--user: {error}")));
    if let Some(client) = options.print_config {
        user?;
        screen.answer_line(&client.configuration(&options, &place)?);
        screen.note(&format!("paste this {}", client.location()));
        // The started process needs no token; a client of the service does, and keeps it in a file
        // that its model may read.
        screen.note(
            "a client that connects to `adjutant serve` instead needs a token; one that cannot answer the client's own questions: \
             adjutant token create --user USER --scope read --scope write",
        );
        return Ok(Exit::Ok);
    }
    match open_server(settings, screen, user, options.agent).await {
        Ok((server, user)) => serve(&server, user).await,
        Err(error) => {
            answer_first_request(&error).await;
            Err(error)
        }
    }
}

/// Changes or looks at the servers whose tools the assistant uses.
///
/// # Errors
/// The configuration cannot be used, there is no such server, or it does not answer.
pub(crate) async fn manage(
    sources: &Sources,
    load: impl Fn() -> Result<Settings, CliError>,
    screen: &Screen,
    command: McpCommand,
    yes: bool,
) -> Result<Exit, CliError> {
    match command {
        // These work without the settings, which may be what is to be mended.
        McpCommand::Add(server) => configure::add(sources, screen, server),
        McpCommand::Import { file } => configure::import(sources, screen, &file),
        McpCommand::Rm { server } => configure::remove(sources, screen, &server),
        McpCommand::List => configure::list(&load()?, screen),
        McpCommand::Test { server } => inspect::test(&load()?, screen, &server).await,
        McpCommand::TrustReads { server, revoke } => {
            inspect::trust_reads(&load()?, screen, &server, revoke, yes).await
        }
        McpCommand::Prompts {
            server,
            prompt,
            arguments,
        } => inspect::prompts(&load()?, screen, &server, prompt, &arguments).await,
        McpCommand::Resources { server, uri } => {
            inspect::resources(&load()?, screen, &server, uri).await
        }
    }
}

/// Creates the server and its user. `asks` offers the agent itself as a tool. The agent uses no MCP
/// servers, so that none of them can start this one again.
async fn open_server(
    settings: Result<Settings, CliError>,
    screen: &Screen,
    user: Result<Option<UserId>, CliError>,
    asks: bool,
) -> Result<(McpServer, UserId), CliError> {
    let (settings, user) = (settings?, user?.unwrap_or_else(UserId::local));
    let store = store::open(&settings).await?;
    let agent = match asks {
        true => {
            let tasks = memory::own_task_store(&settings, &Stores::shared(store.clone())).await?;
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
        // If standard error is closed, the message has no reader.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{error}\n").as_bytes());
    });
    let server = match asks {
        // With a single client, a blocking callback delays no one else.
        true => server
            .offer_agent(Box::new(|_| Ok(Box::new(|_, _| {}))))
            .build(),
        false => server.build(),
    };
    Ok((server, user))
}

async fn serve(server: &McpServer, user: UserId) -> Result<Exit, CliError> {
    let mut stops = StopSignals::new()?;
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
        let shown = Self::failed(error.to_string());
        match error {
            StdioError::Handshake(_) => {
                shown.or_try("adjutant mcp --print-config CLIENT, for a client that speaks MCP")
            }
            _ => shown,
        }
    }
}

/// Answers the first request with the error.
async fn answer_first_request(error: &CliError) {
    let mut line = Vec::new();
    let mut input = BufReader::new(tokio::io::stdin()).take(FIRST_MESSAGE_MAX);
    let read = tokio::time::timeout(PATIENCE, input.read_until(b'\n', &mut line)).await;
    // A client that sends nothing in time, or is gone, gets the error on standard error only.
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
    let cause = error.cause.iter().map(|cause| format!(": {cause}"));
    let message = error.message.clone() + &cause.collect::<String>();
    let answer = serde_json::json!({
        "jsonrpc": "2.0",
        "id": id,
        "error": { "code": -32603, "message": message },
    });
    let mut output = tokio::io::stdout();
    // A client that is gone needs no answer.
    let _ = output
        .write_all(format!("{}\n", json_line(&answer)).as_bytes())
        .await;
    let _ = output.flush().await;
}
