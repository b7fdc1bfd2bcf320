//! Other people's tools: the MCP servers of the configuration, started and told about.

use std::future::pending;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::Capabilities;
use adjutant_mcp::client::{
    Health, Log, ServerConfig, ServerName, Servers, StartError, Surroundings, Via,
};
use adjutant_providers::Transport;

use crate::config::Settings;
use crate::display::{clean_line, plural};
use crate::error::CliError;
use crate::pins::PinFiles;
use crate::render::live::Status;
use crate::screen::Screen;

/// A server may change its tools all the time; nobody reads more often.
const NEWS_PAUSE: Duration = Duration::from_secs(1);

/// Starts what is configured for this model, and says which of it did not come, and which tools are
/// left out.
///
/// A model that cannot be trusted with free tool calls gets none: its way of calling tools is made
/// for few and simple ones.
///
/// # Errors
/// A server that is required did not start.
pub(crate) async fn start_for(
    model: &Capabilities,
    settings: &Settings,
    screen: &Screen,
) -> Result<Option<Servers>, CliError> {
    if model.weak_tools {
        if settings.mcp.iter().any(|server| !server.disabled) {
            screen.note("this model is too small for the tools of MCP servers: it works without them (another: -m MODEL)");
        }
        return Ok(None);
    }
    start(settings, screen).await.map(Some)
}

/// Starts what is configured, and says which of it did not come, and which tools are left out.
/// Servers whose tools the person agreed to before are not waited for ([`Servers::settled`]).
///
/// # Errors
/// A server that is required did not start.
pub(crate) async fn start(settings: &Settings, screen: &Screen) -> Result<Servers, CliError> {
    let surroundings = surroundings(
        &settings.mcp,
        words_of(screen),
        PinFiles::agreeing(settings),
    )?;
    let starting = settings
        .mcp
        .iter()
        .filter(|server| !server.disabled)
        .count();
    // With -v, what the servers say comes beside the screen's own order.
    if starting > 0 && !screen.verbose() {
        let servers = plural(starting as u64, "MCP server", "MCP servers");
        screen.live(&Status::new(format!("starting {servers}")), "");
    }
    let started = Servers::start(settings.mcp.clone(), surroundings).await;
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
        for tool in server.left_out.iter().filter(|tool| !tool.by_rule) {
            screen.note(&format!(
                "MCP server {name}: the tool {:?} is left out: {}",
                tool.original, tool.reason
            ));
        }
    }
    tell_news(&servers, screen);
    Ok(servers)
}

/// What servers are started with.
///
/// # Errors
/// There is nothing to reach remote servers with.
pub(crate) fn surroundings(
    servers: &[ServerConfig],
    log: Log,
    pins: Arc<PinFiles>,
) -> Result<Surroundings, CliError> {
    let remote = servers
        .iter()
        .any(|server| matches!(server.via, Via::Remote(_)) && !server.disabled);
    let http = if remote {
        let transport = Transport::new().map_err(|error| CliError::failed(error.to_string()))?;
        Some(transport.client().clone())
    } else {
        None
    };
    Ok(Surroundings {
        http,
        log,
        pins: Some(pins),
    })
}

/// Tells what changed at the servers since it was told last.
pub(crate) fn tell_news(servers: &Servers, screen: &Screen) {
    tell(servers.news(), screen);
}

/// Tells what changes at the servers, for as long as it is polled.
pub(crate) async fn keep_telling(servers: Option<&Servers>, screen: &Screen) {
    let Some(servers) = servers else {
        return pending().await;
    };
    loop {
        tell(servers.next_news().await, screen);
        tokio::time::sleep(NEWS_PAUSE).await;
    }
}

fn tell(news: Vec<(ServerName, String)>, screen: &Screen) {
    for (name, news) in news {
        screen.note(&format!("MCP server {name}: {news}"));
    }
}

/// Returns where the servers' own words go: to standard error with `-v`, and from a service to the
/// log at the level DEBUG, since they may have in them what somebody said.
fn words_of(screen: &Screen) -> Log {
    if screen.logs() {
        Arc::new(|server, words| tracing::debug!(%server, "{words}"))
    } else {
        log(screen.verbose())
    }
}

/// Where the servers' own words go: to standard error with `-v`, else nowhere. Never to standard
/// output.
pub(crate) fn log(tells: bool) -> Log {
    Arc::new(move |server, words| {
        if tells {
            let line = clean_line(&format!("{server}: {words}"));
            // Whoever closed the pipe does not want to hear more.
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
