//! `adjutant tools`: the assistant's tools, their origin, and the policy for each.

use std::sync::Arc;

use adjutant_core::{Annotations, Effect, Permission, UserId, nearest, visible};
use adjutant_mcp::client::{
    ChangedTool, ClientOptions, JoinedTool, PinnedTools, Pins, ServerConfig, ServerName,
    ServerReport, Servers,
};
use adjutant_runtime::Agent;
use serde_json::{Value, json};

use crate::config::Settings;
use crate::error::{CliError, Exit};
use crate::mcp_servers;
use crate::mcp_servers::pins::PinFiles;
use crate::mcp_servers::{client_options, log, state_of};
use crate::memory::UserMemory;
use crate::store;
use crate::terminal::display::{clean_line, clip, json_line, plural};
use crate::terminal::screen::Screen;
use crate::terminal::yes_no::ask_yes_no;
use crate::wiring;

/// Lists all tools and MCP servers.
///
/// # Errors
/// Settings or store cannot be used, or a required server does not start.
pub(crate) async fn run(settings: &Settings, screen: &Screen) -> Result<Exit, CliError> {
    let stores = store::open_for_session(settings).await?;
    let user_memory = UserMemory::open(settings, stores.kept.clone()).await?;
    let servers = mcp_servers::start(settings, screen).await?;
    // Servers with pinned tools start in the background; the list is complete when all have
    // settled.
    servers.settled().await;
    mcp_servers::print_news(&servers, screen);
    let (agent, _) = wiring::diana(
        settings,
        wiring::no_model(),
        &stores,
        Some(&servers),
        &user_memory,
    )?;
    let reports = servers.report();
    // Before the servers are stopped, because the policy asks them for their tools.
    let listed = listed(&agent, settings, Some(&servers), &reports)?;
    if screen.json() {
        let tools: Vec<Value> = listed.iter().map(Listed::json).collect();
        let servers: Vec<Value> = reports.iter().map(server_json).collect();
        screen.answer_json(&json!({ "tools": tools, "servers": servers }));
    } else {
        print_all(&listed, &reports, screen);
    }
    servers.stop().await;
    Ok(Exit::Ok)
}

/// Shows how a server's tools differ from the definitions the user agreed to, asks for
/// confirmation, and pins the current ones.
///
/// # Errors
/// There is no such server, it does not start, the user cannot be asked, or the pins cannot be
/// written.
pub(crate) async fn accept(
    settings: &Settings,
    screen: &Screen,
    server: &str,
    yes: bool,
) -> Result<Exit, CliError> {
    let mut configured = settings.mcp.iter();
    let Some(config) = configured.find(|config| config.name.as_str() == server) else {
        let names = settings.mcp.iter().map(|config| config.name.as_str());
        let remedy = match nearest(server, names) {
            Some(near) => format!("adjutant tools accept {near}, if that is what you mean"),
            None => "adjutant tools    lists them".to_owned(),
        };
        return Err(CliError::unknown(format!(
            "there is no MCP server {server:?} in the configuration"
        ))
        .or_try(remedy));
    };
    // Not required here: if it does not start, its report has the reason, and an error of the start
    // would have less.
    let config = ServerConfig {
        required: false,
        ..config.clone()
    };
    let (name, pins) = (config.name.clone(), PinFiles::listing(settings));
    let known = pins.load(&name);
    // Unreadable pins count as none, so all tools are shown as new.
    let comparable = known.is_ok().then(|| Arc::clone(&pins) as Arc<dyn Pins>);
    let options = client_options(std::slice::from_ref(&config), log(screen.verbose()), &pins)?;
    let options = ClientOptions {
        pins: comparable,
        ..options
    };
    let servers = Servers::start(vec![config], options).await?;
    servers.settled().await;
    let report = servers.report().pop();
    let found = servers.changes(&name);
    servers.stop().await;
    let Some((changes, now)) = found else {
        let health = report.map(|report| report.health.to_string());
        return Err(
            CliError::failed(format!("the MCP server {name} does not list its tools"))
                .because(health.unwrap_or_default()),
        );
    };
    // Pins of another program or address say nothing about the tools of this one.
    let is_known = matches!(&known, Ok(Some(known)) if known.place == now.place);
    let changes = if is_known { changes } else { all_new(&now) };
    if !screen.json() {
        print_changes(screen, &name, &changes);
    }
    let accepted = !changes.is_empty();
    if accepted && !yes {
        if !screen.asks() {
            return Err(CliError::confirmation_needed(
                "agreeing to changed tools needs your confirmation",
            )
            .or_try("run it again with -y"));
        }
        if !ask_yes_no(screen, "Agree to them as they are now?", false).await {
            screen.note("nothing was agreed to");
            return Ok(Exit::Ok);
        }
    }
    // Pins of another program or address are replaced even if no tool differs, so that the next
    // start compares with this one.
    if accepted || !is_known {
        pins.write(&name, &now).map_err(|reason| {
            CliError::failed("what was agreed to cannot be kept").because(reason)
        })?;
    }
    if screen.json() {
        let changes: Vec<Value> = changes.iter().map(change_json).collect();
        let (name, tools) = (name.as_str(), now.tools.len());
        screen.answer_json(
            &json!({ "server": name, "changes": changes, "tools": tools, "accepted": true }),
        );
    } else if accepted {
        screen.note(&format!(
            "agreed; MCP server {name} has {}. What waited for a yes to a changed one is cancelled.",
            plural(now.tools.len() as u64, "tool", "tools")
        ));
    }
    Ok(Exit::Ok)
}

fn all_new(now: &PinnedTools) -> Vec<ChangedTool> {
    let tools = now.tools.iter().map(|tool| ChangedTool {
        name: tool["name"].as_str().unwrap_or_default().to_owned(),
        before: None,
        now: Some(tool.clone()),
    });
    tools.collect()
}

fn change_json(change: &ChangedTool) -> Value {
    json!({ "name": change.name, "before": change.before, "now": change.now })
}

/// Prints each change in full, because a confirmation covers all of it.
fn print_changes(screen: &Screen, server: &ServerName, changes: &[ChangedTool]) {
    // A server's texts may hide characters from the reader, which the model would still obey.
    let print = |line: String| screen.answer_line(&clean_line(&visible(&line)));
    if changes.is_empty() {
        print(format!(
            "MCP server {server} has the tools that were agreed to."
        ));
    }
    let text = |value: &Value| match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => text.clone(),
        value => json_line(value),
    };
    for ChangedTool { name, before, now } in changes {
        let kind = match (before, now) {
            (None, _) => "new",
            (_, None) => "gone",
            (Some(_), Some(_)) => "changed",
        };
        print(format!("{kind}: {name}"));
        for field in ["title", "description", "annotations", "inputSchema"] {
            match (
                before.as_ref().map(|tool| &tool[field]),
                now.as_ref().map(|tool| &tool[field]),
            ) {
                (Some(before), Some(now)) if before != now => {
                    print(format!("  {field} was: {}", text(before)));
                    print(format!("  {field} now: {}", text(now)));
                }
                (None, Some(now)) if !now.is_null() => print(format!("  {field}: {}", text(now))),
                _ => {}
            }
        }
    }
}

/// Prints the tools of a running agent, as [`run`] does.
///
/// # Errors
/// Those of [`wiring::policy`].
pub(crate) fn list(
    agent: &Agent,
    settings: &Settings,
    servers: Option<&Servers>,
    screen: &Screen,
) -> Result<(), CliError> {
    let reports = servers.map(Servers::report).unwrap_or_default();
    let listed = listed(agent, settings, servers, &reports)?;
    print_all(&listed, &reports, screen);
    Ok(())
}

fn print_all(listed: &[Listed<'_>], reports: &[ServerReport], screen: &Screen) {
    let widths = listed.iter().map(|tool| tool.name.len());
    let width = widths.max().unwrap_or_default();
    listed.iter().for_each(|tool| tool.print(screen, width));
    reports
        .iter()
        .for_each(|report| print_server(screen, report));
}

fn listed<'a>(
    agent: &Agent,
    settings: &Settings,
    servers: Option<&Servers>,
    reports: &'a [ServerReport],
) -> Result<Vec<Listed<'a>>, CliError> {
    // The policy of a session, so that the list says what a call would really do.
    let policy = wiring::policy(settings, &wiring::tool_names(agent), servers)?;
    let user = UserId::local();
    let described = agent
        .tools()
        .definitions(None)
        .into_iter()
        .map(|definition| {
            let name = definition.name.as_str();
            let origin = reports.iter().find_map(|report| {
                let joined = report.tools.iter().find(|tool| tool.name == name)?;
                Some((report, joined))
            });
            Listed {
                permission: policy.permission(&user, &definition),
                name: definition.name.to_string(),
                description: definition.description,
                annotations: definition.annotations,
                origin,
            }
        });
    Ok(described.collect())
}

struct Listed<'a> {
    name: String,
    description: String,
    annotations: Annotations,
    permission: Permission,
    /// The MCP server of the tool; `None` for built-in ones.
    origin: Option<(&'a ServerReport, &'a JoinedTool)>,
}

impl Listed<'_> {
    fn json(&self) -> Value {
        let Annotations {
            read_only,
            destructive,
            idempotent,
            ..
        } = self.annotations;
        json!({
            "name": self.name,
            "description": self.description,
            "read_only": read_only,
            "destructive": destructive,
            "idempotent": idempotent,
            "permission": permission(self.permission),
            "server": self.origin.map(|(server, _)| server.name.as_str()),
            "original_name": self.origin.map(|(_, tool)| tool.original.as_str()),
            "title": self.origin.and_then(|(_, tool)| tool.title.as_deref()),
        })
    }

    fn print(&self, screen: &Screen, width: usize) {
        let first = self.description.lines().next().unwrap_or_default();
        let whose = match self.origin {
            Some((server, tool)) => format!("  [{}: {}]", server.name, clip(&tool.original, 60)),
            None => String::new(),
        };
        let line = format!(
            "{:width$}  {:10} {:6} {}{whose}",
            self.name,
            nature(self.annotations),
            permission(self.permission),
            clip(first, 80)
        );
        screen.answer_line(&clean_line(&line));
    }
}

/// Returns the effect class of a tool in one word.
fn nature(annotations: Annotations) -> &'static str {
    match annotations.effect() {
        Effect::None => "reads",
        _ if annotations.destructive => "destroys",
        Effect::Keyed => "repeatable",
        Effect::Once => "changes",
    }
}

/// Returns the policy for a tool in one word.
fn permission(permission: Permission) -> &'static str {
    match permission {
        Permission::Allow => "runs",
        Permission::Confirm => "asks",
        Permission::Deny => "denied",
    }
}

pub(super) fn server_json(report: &ServerReport) -> Value {
    let left_out: Vec<Value> = report
        .left_out
        .iter()
        .map(|tool| json!({ "original_name": tool.original, "reason": tool.reason, "by_configuration": tool.by_rule }))
        .collect();
    let (health, reason) = state_of(&report.health);
    json!({
        "name": report.name.as_str(),
        "place": report.place,
        "software": report.software,
        "health": health,
        "reason": reason,
        "tools": report.tools.len(),
        "tokens": report.tokens(),
        "left_out": left_out,
        "changed": report.changed,
        "warnings": report.warnings,
    })
}

pub(super) fn print_server(screen: &Screen, report: &ServerReport) {
    let print = |line: String| screen.answer_line(&clean_line(&line));
    let (name, health, place) = (&report.name, &report.health, &report.place);
    let software = report
        .software
        .iter()
        .map(|software| format!(" ({software})"));
    let software: String = software.collect();
    let tools = plural(report.tools.len() as u64, "tool", "tools");
    let cost = match report.tokens() {
        0 => String::new(),
        tokens => format!(" of about {tokens} tokens"),
    };
    print(format!(
        "MCP server {name}: {health}, {tools}{cost}, {place}{software}"
    ));
    if !report.changed.is_empty() {
        let changed = report.changed.join(", ");
        print(format!(
            "  changed, and not used until you agree: {changed} (adjutant tools accept {name})"
        ));
    }
    for tool in &report.left_out {
        print(format!("  left out: {} ({})", tool.original, tool.reason));
    }
}
