//! `adjutant tools`: what the assistant can do, whose tools these are, and what happens when it wants to.

use adjutant_core::{Annotations, Effect, Permission, UserId};
use adjutant_mcp::client::{Health, JoinedTool, ServerReport, Servers};
use adjutant_runtime::Agent;
use serde_json::{Value, json};

use crate::config::Settings;
use crate::display::{clean_line, clip, json_line};
use crate::error::{CliError, Exit};
use crate::memory::Desk;
use crate::screen::Screen;
use crate::{servers, store, wiring};

/// Lists every tool and every server.
///
/// # Errors
/// Configuration or store; a server that is required and does not start.
pub(crate) async fn run(settings: &Settings, screen: &Screen, json: bool) -> Result<Exit, CliError> {
    let stores = store::for_talk(settings).await?;
    let desk = Desk::open(settings, stores.kept.clone()).await?;
    let servers = servers::start(settings, screen).await?;
    let (agent, _) = wiring::diana(settings, wiring::no_model(), &stores, Some(&servers), &desk)?;
    let reports = servers.report();
    let listed = listed(&agent, settings, Some(&servers), &reports)?;
    if json {
        let tools: Vec<Value> = listed.iter().map(Listed::json).collect();
        let servers: Vec<Value> = reports.iter().map(server_json).collect();
        screen.answer_line(&json_line(&json!({ "tools": tools, "servers": servers })));
    } else {
        let width = listed.iter().map(|tool| tool.name.len()).max().unwrap_or_default();
        listed.iter().for_each(|tool| tool.tell(screen, width));
        reports.iter().for_each(|report| tell_server(screen, report));
    }
    servers.stop().await;
    Ok(Exit::Ok)
}

/// The tools of an agent that runs, as [`run`] tells them.
///
/// # Errors
/// As [`wiring::policy`].
pub(crate) fn list(
    agent: &Agent,
    settings: &Settings,
    servers: Option<&Servers>,
    screen: &Screen,
) -> Result<(), CliError> {
    let reports = servers.map(Servers::report).unwrap_or_default();
    let listed = listed(agent, settings, servers, &reports)?;
    let width = listed.iter().map(|tool| tool.name.len()).max().unwrap_or_default();
    listed.iter().for_each(|tool| tool.tell(screen, width));
    reports.iter().for_each(|report| tell_server(screen, report));
    Ok(())
}

fn listed<'a>(
    agent: &Agent,
    settings: &Settings,
    servers: Option<&Servers>,
    reports: &'a [ServerReport],
) -> Result<Vec<Listed<'a>>, CliError> {
    let policy = wiring::policy(settings, &wiring::tool_names(agent), servers)?;
    let user = UserId::local();
    let described = agent.tools().definitions(None).into_iter().map(|definition| {
        let origin = reports.iter().find_map(|report| {
            let joined = report.tools.iter().find(|tool| tool.name == definition.name.as_str())?;
            Some((report, joined))
        });
        let permission = policy.permission(&user, &definition);
        Listed {
            name: definition.name.to_string(),
            description: definition.description,
            annotations: definition.annotations,
            permission,
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
    /// Whose it is, if it is not our own.
    origin: Option<(&'a ServerReport, &'a JoinedTool)>,
}

impl Listed<'_> {
    fn json(&self) -> Value {
        let Annotations { read_only, destructive, idempotent, .. } = self.annotations;
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

    fn tell(&self, screen: &Screen, width: usize) {
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

/// What it does to the world, in one word.
fn nature(annotations: Annotations) -> &'static str {
    match annotations.effect() {
        Effect::None => "reads",
        _ if annotations.destructive => "destroys",
        Effect::Keyed => "repeatable",
        Effect::Once => "changes",
    }
}

/// What happens when the assistant wants to call it.
fn permission(permission: Permission) -> &'static str {
    match permission {
        Permission::Allow => "runs",
        Permission::Confirm => "asks",
        Permission::Deny => "denied",
    }
}

fn server_json(report: &ServerReport) -> Value {
    let left_out: Vec<Value> = report
        .left_out
        .iter()
        .map(|tool| json!({ "original_name": tool.original, "reason": tool.reason, "by_configuration": tool.by_rule }))
        .collect();
    let (health, reason) = match &report.health {
        Health::Connected => ("connected", None),
        Health::Restarting { reason } => ("restarting", Some(reason.as_str())),
        Health::Failed { reason } => ("failed", Some(reason.as_str())),
        Health::Disabled => ("disabled", None),
        Health::Stopped => ("stopped", None),
    };
    json!({
        "name": report.name.as_str(),
        "place": report.place,
        "software": report.software,
        "health": health,
        "reason": reason,
        "tools": report.tools.len(),
        "left_out": left_out,
        "changed": report.changed,
        "warnings": report.warnings,
    })
}

fn tell_server(screen: &Screen, report: &ServerReport) {
    let software = report.software.as_ref().map(|software| format!(" ({software})")).unwrap_or_default();
    let tools = match report.tools.len() {
        1 => "1 tool".to_owned(),
        number => format!("{number} tools"),
    };
    let line = format!("MCP server {}: {}, {tools}, {}{software}", report.name, report.health, report.place);
    screen.answer_line(&clean_line(&line));
    for tool in &report.left_out {
        screen.answer_line(&clean_line(&format!("  left out: {} ({})", tool.original, tool.reason)));
    }
}
