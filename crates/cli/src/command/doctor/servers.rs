//! Checks of MCP servers: each is started and lists its tools.

use adjutant_mcp::client::{Health, ServerConfig, Servers};

use super::{Check, Group};
use crate::config::Settings;
use crate::mcp_servers::pins::PinFiles;
use crate::mcp_servers::{client_options, log};
use crate::terminal::display::plural;

const GROUP: Group = Group("tools");

/// Returns one check for each server.
pub(super) async fn checks(settings: &Settings) -> Vec<Check> {
    if settings.mcp.is_empty() {
        return Vec::new();
    }
    check_all(settings)
        .await
        .unwrap_or_else(|check| vec![check])
}

/// Starts all servers, and stops them again. `Err` is the only check.
async fn check_all(settings: &Settings) -> Result<Vec<Check>, Check> {
    // Each server is reported by itself, so a required one must not stop the others.
    let optional = settings.mcp.iter().cloned().map(|server| ServerConfig {
        required: false,
        ..server
    });
    let configs: Vec<ServerConfig> = optional.collect();
    // Their output would be mixed into the findings, and a check must not pin new tools.
    let options = client_options(&configs, log(false), &PinFiles::listing(settings))
        .map_err(|error| GROUP.fail("mcp", error.message))?;
    let servers = Servers::start(configs, options).await.map_err(|error| {
        let check = GROUP.fail(error.server.as_str(), error.reason);
        check.with_remedy("adjutant -v tools")
    })?;
    servers.settled().await;
    let checks = servers.report().into_iter().map(|report| {
        let name = format!("mcp {}", report.name);
        match report.health {
            Health::Connected => {
                let left_out = report.left_out.iter().filter(|tool| !tool.by_rule).count();
                let shown =
                    format!("{} · {}", report.place, plural(report.tools.len() as u64, "tool", "tools"));
                if !report.changed.is_empty() {
                    return GROUP.warn(name, shown)
                        .because(format!("changed since they were agreed to: {}", report.changed.join(", ")))
                        .with_remedy(format!("adjutant tools accept {}", report.name));
                }
                match (left_out, report.warnings.first()) {
                    (0, None) => GROUP.ok(name, shown),
                    (0, Some(warning)) => GROUP.warn(name, shown)
                        .because(warning.clone())
                        .with_remedy(format!("adjutant config edit    ([mcp.servers.{}])", report.name)),
                    (n, _) => GROUP.warn(name, shown)
                        .because(format!("{n} of its tools cannot be used"))
                        .with_remedy("adjutant tools"),
                }
            }
            Health::Disabled => GROUP.ok(name, "switched off"),
            Health::Failed { reason } | Health::Restarting { reason } => GROUP.fail(name,
                format!("{} did not start", report.place),
            )
            .because(reason)
            .with_remedy(format!(
                "correct [mcp.servers.{}] (adjutant config edit), or switch it off there: disabled = true",
                report.name
            )),
            Health::Starting | Health::Stopped => {
                GROUP.fail(name, "it has ended").with_remedy("adjutant -v tools")
            }
        }
    });
    let checks = checks.collect();
    servers.stop().await;
    Ok(checks)
}
