//! Checks of MCP servers: each is started and lists its tools.

use adjutant_mcp::client::{Health, ServerConfig, Servers};

use super::{Check, Group};
use crate::config::Settings;
use crate::mcp_servers::pins::PinFiles;
use crate::mcp_servers::{log, surroundings};
use crate::terminal::display::plural;

const GROUP: Group = Group("tools");

/// Returns one check for each server.
pub(super) async fn checks(settings: &Settings) -> Vec<Check> {
    if settings.mcp.is_empty() {
        return Vec::new();
    }
    // Each server is reported by itself, so a required one must not stop the others.
    let configs: Vec<ServerConfig> = settings
        .mcp
        .iter()
        .cloned()
        .map(|server| ServerConfig {
            required: false,
            ..server
        })
        .collect();
    let surroundings = match surroundings(&configs, log(false), PinFiles::looking(settings)) {
        Ok(surroundings) => surroundings,
        Err(error) => return vec![GROUP.fail("mcp", error.message)],
    };
    let servers = match Servers::start(configs, surroundings).await {
        Ok(servers) => servers,
        Err(error) => {
            return vec![
                GROUP
                    .fail(error.server.as_str(), error.reason)
                    .with_remedy("adjutant -v tools"),
            ];
        }
    };
    servers.settled().await;
    let checks = servers.report().into_iter().map(|report| {
        let name = format!("mcp {}", report.name);
        match report.health {
            Health::Connected => {
                let left_out = report.left_out.iter().filter(|tool| !tool.by_rule).count();
                let shown =
                    format!("{} · {}", report.place, plural(report.tools.len() as u64, "tool", "tools"));
                if !report.changed.is_empty() {
                    return GROUP.warn( name, shown)
                        .because(format!("changed since they were agreed to: {}", report.changed.join(", ")))
                        .with_remedy(format!("adjutant tools accept {}", report.name));
                }
                match (left_out, report.warnings.first()) {
                    (0, None) => GROUP.ok( name, shown),
                    (0, Some(warning)) => GROUP.warn( name, shown)
                        .because(warning.clone())
                        .with_remedy(format!("adjutant config edit    ([mcp.servers.{}])", report.name)),
                    (n, _) => GROUP.warn( name, shown)
                        .because(format!("{n} of its tools cannot be used"))
                        .with_remedy("adjutant tools"),
                }
            }
            Health::Disabled => GROUP.ok( name, "switched off"),
            Health::Failed { reason } | Health::Restarting { reason } => GROUP.fail(name,
                format!("{} did not start", report.place),
            )
            .because(reason)
            .with_remedy(format!(
                "correct [mcp.servers.{}] (adjutant config edit), or switch it off there: disabled = true",
                report.name
            )),
            Health::Starting | Health::Stopped => {
                GROUP.fail( name, "it has ended").with_remedy("adjutant -v tools")
            }
        }
    });
    let checks = checks.collect();
    servers.stop().await;
    checks
}
