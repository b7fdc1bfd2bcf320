//! MCP servers of the configuration: starting them and printing their state.

pub(crate) mod cost; // what declarations of tools take of a context window
pub(crate) mod pins; // tool definitions the user agreed to

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::LanguageModel;
use adjutant_mcp::client::{
    ClientOptions, Health, Log, ServerConfig, ServerName, Servers, StartError, Transport,
};

use crate::config::Settings;
use crate::error::CliError;
use crate::mcp_servers::pins::PinFiles;
use crate::terminal::display::{clean_line, plural};
use crate::terminal::render::live::Status;
use crate::terminal::screen::Screen;
use crate::terminal::yes_no::ask_yes_no;

/// Minimum interval between two prints: a server may change its tools all the time.
const NEWS_PAUSE: Duration = Duration::from_secs(1);

/// Starts the configured servers for this model, and prints failures and tools that are left out.
///
/// # Errors
/// A required server did not start.
pub(crate) async fn start_for(
    model: &dyn LanguageModel,
    settings: &Settings,
    screen: &Screen,
) -> Result<Servers, CliError> {
    let mut servers = start(settings, screen).await?;
    ask_about_reads(&mut servers, screen).await;
    cost::warnings(model, &servers.report())
        .iter()
        .for_each(|warning| screen.note(warning));
    Ok(servers)
}

/// Asks once for each server that leaves it open which of its tools only read, whether those may run
/// without asking whose names say so. Without a terminal it is said how to answer.
async fn ask_about_reads(servers: &mut Servers, screen: &Screen) {
    for reads in servers.unannotated_reads() {
        let (name, tools) = (&reads.server, reads.tools.join(", "));
        if !screen.asks() {
            screen.note(&format!(
                "MCP server {name} does not say which of its tools only read, so these ask each time: {tools} (adjutant mcp trust-reads {name} lets them run)"
            ));
            continue;
        }
        let question = format!(
            "The MCP server {name} does not say which of its tools only read. Let these run without asking? {tools}"
        );
        let trusted = ask_yes_no(screen, &question, false).await;
        match servers.answer_reads(&reads, trusted) {
            Ok(()) if trusted => screen.note(&format!(
                "adjutant mcp trust-reads {name} --revoke takes it back"
            )),
            Ok(()) => {}
            Err(reason) => screen.note(&format!("the answer cannot be kept: {reason}")),
        }
    }
}

/// Starts the configured servers, and prints failures and tools that are left out. Servers with
/// pinned tools start in the background ([`Servers::settled`]).
///
/// # Errors
/// A required server did not start.
pub(crate) async fn start(settings: &Settings, screen: &Screen) -> Result<Servers, CliError> {
    let pins = PinFiles::pinning(settings);
    let options = client_options(&settings.mcp, server_log(screen), &pins)?;
    let enabled = settings.mcp.iter().filter(|server| !server.disabled);
    let starting = enabled.count();
    // With -v, output of the servers would be mixed into a live line.
    if starting > 0 && !screen.verbose() {
        let servers = plural(starting as u64, "MCP server", "MCP servers");
        screen.live(&Status::new(format!("starting {servers}")), "");
    }
    // The live line is removed before the error of a required server is printed.
    let started = Servers::start(settings.mcp.clone(), options).await;
    screen.end_live();
    let servers = started?;
    for server in servers.report() {
        let name = &server.name;
        if let Health::Failed { reason } = &server.health {
            screen.note(&format!(
                "MCP server {name} did not start, its tools are missing: {reason}"
            ));
        }
        for warning in &server.warnings {
            screen.note(&format!("mcp.servers.{name}: {warning}"));
        }
        // Those that the user's own rules leave out are no news.
        for tool in server.left_out.iter().filter(|tool| !tool.by_rule) {
            screen.note(&format!(
                "MCP server {name}: the tool {:?} is left out: {}",
                tool.original, tool.reason
            ));
        }
    }
    print_news(&servers, screen);
    Ok(servers)
}

/// Returns the options that servers are started with.
///
/// # Errors
/// The HTTP client for remote servers cannot be created.
pub(crate) fn client_options(
    servers: &[ServerConfig],
    log: Log,
    pins: &Arc<PinFiles>,
) -> Result<ClientOptions, CliError> {
    let mut enabled = servers.iter().filter(|server| !server.disabled);
    // Creating the client loads the system's certificates, which only remote servers need.
    let http = match enabled.any(|server| matches!(server.via, Transport::Remote(_))) {
        true => {
            let transport = adjutant_providers::Transport::new()
                .map_err(|error| CliError::failed(error.to_string()))?;
            Some(transport.client().clone())
        }
        false => None,
    };
    Ok(ClientOptions {
        http,
        log,
        pins: Some(pins.clone()),
    })
}

/// Returns the state of a connection as JSON has it, with the reason of a failure.
pub(crate) fn state_of(health: &Health) -> (&'static str, Option<&str>) {
    match health {
        Health::Starting => ("starting", None),
        Health::Connected => ("connected", None),
        Health::Restarting { reason } => ("restarting", Some(reason)),
        Health::Failed { reason } => ("failed", Some(reason)),
        Health::Disabled => ("disabled", None),
        Health::Stopped => ("stopped", None),
    }
}

/// Prints changes of the servers since the last call.
pub(crate) fn print_news(servers: &Servers, screen: &Screen) {
    print(servers.notices(), screen);
}

/// Prints changes of the servers for as long as it is polled.
pub(crate) async fn print_news_forever(servers: &Servers, screen: &Screen) {
    loop {
        print(servers.next_notices().await, screen);
        // Notices that arrive meanwhile are printed together at the next turn of the loop.
        tokio::time::sleep(NEWS_PAUSE).await;
    }
}

fn print(news: Vec<(ServerName, String)>, screen: &Screen) {
    for (name, news) in news {
        screen.note(&format!("MCP server {name}: {news}"));
    }
}

/// Returns the log of the servers' output: standard error with `-v`, and for a service the level
/// DEBUG, because the output may contain message texts.
fn server_log(screen: &Screen) -> Log {
    if screen.logs() {
        Arc::new(|server, words| tracing::debug!(target: "adjutant::servers", %server, "{words}"))
    } else {
        log(screen.verbose())
    }
}

/// Returns a log that prints the servers' output on standard error, or drops it. Never on standard
/// output, which may carry a protocol.
pub(crate) fn log(prints: bool) -> Log {
    Arc::new(move |server, words| {
        if prints {
            let line = clean_line(&format!("{server}: {words}"));
            // If standard error is closed, the output has no reader.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    })
}

impl From<StartError> for CliError {
    fn from(error: StartError) -> Self {
        Self::configuration(format!(
            "the MCP server {} is required and did not start",
            error.server
        ))
        .because(error.reason)
        .or_try("adjutant -v tools    shows what it says")
        .or_try(format!(
            "required = false in [mcp.servers.{}], to go on without its tools",
            error.server
        ))
    }
}
