//! `adjutant doctor`: checks everything the assistant needs, with a remedy for each failure.
//!
//! It changes nothing except what every start does: migrating the database.

mod check; // the result of one check
mod configuration; // files and variables
mod database; // database
#[cfg(feature = "restate")]
mod dispatch; // dispatch through Restate
mod folders; // folders and free space
mod machine; // terminal, clock, network
mod model; // the model in use
#[cfg(feature = "ollama")]
mod ollama; // an Ollama server
mod servers; // MCP servers
mod service; // the HTTP service
mod vault; // notes and memory

#[cfg(feature = "ollama")]
pub(crate) use machine::connect;

use check::{Check, GROUPS, Group, Status};

use crate::config::{Settings, Sources};
use crate::error::{CliError, Exit};
use crate::terminal::display::clean_line;
use crate::terminal::screen::Screen;

const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const RED: &str = "\x1b[31m";
const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Results of all checks.
pub(crate) struct Findings {
    pub(crate) checks: Vec<Check>,
    /// True if checks were skipped because the settings cannot be read.
    left_out: bool,
}

impl Findings {
    /// Returns true if nothing failed.
    pub(crate) fn ready(&self) -> bool {
        !self.checks.iter().any(|check| check.status == Status::Fail)
    }
}

/// Runs all checks and prints them. The exit code is 0 if nothing failed, else 3.
///
/// # Errors
/// None of its own: every problem is a finding.
pub(crate) async fn run(
    sources: &Sources,
    screen: &Screen,
    dispatch: Option<&str>,
) -> Result<Exit, CliError> {
    let findings = run_checks(sources, dispatch).await;
    if screen.json() {
        let all = serde_json::json!({ "ok": findings.ready(), "checks": findings.checks });
        screen.answer_json(&all);
    } else {
        print(&findings, screen);
    }
    Ok(if findings.ready() {
        Exit::Ok
    } else {
        Exit::Configuration
    })
}

/// Runs all checks. `dispatch` is the address of a Restate server; by default the one in the
/// settings, if there is one.
pub(crate) async fn run_checks(sources: &Sources, dispatch: Option<&str>) -> Findings {
    let mut checks = configuration::files(sources);
    checks.extend(machine::checks(sources));
    // With a broken source the settings would be partly those of other sources, and every later
    // check would judge what the user never chose.
    if checks.iter().any(|check| check.status == Status::Fail) {
        return Findings {
            checks,
            left_out: true,
        };
    }
    let loaded = sources.load();
    let left_out = loaded.is_err();
    match loaded {
        Ok(settings) => checks.extend(settled(sources, &settings, dispatch).await),
        Err(error) => checks.push(configuration::not_loaded(&error)),
    }
    // Sorted by group; the order within a group stays.
    checks.sort_by_key(|check| GROUPS.iter().position(|group| *group == check.group));
    Findings { checks, left_out }
}

/// Runs the checks that need valid settings.
async fn settled(sources: &Sources, settings: &Settings, dispatch: Option<&str>) -> Vec<Check> {
    let mut checks = vec![configuration::consistency(settings)];
    checks.extend(folders::checks(settings));
    let (database, store) = database::checks(settings).await;
    checks.extend(database);
    // Together, because both wait for other programs, each for many seconds at worst.
    let (model, servers) = tokio::join!(model::checks(settings), servers::checks(settings));
    checks.extend(model.into_iter().chain(servers));
    checks.extend(vault::checks(settings).await);
    checks.extend(service::checks(sources, settings, store.as_deref()).await);
    let address = dispatch.or(settings.serve.dispatch.as_deref());
    #[cfg(feature = "restate")]
    if let Some(address) = address {
        checks.extend(dispatch::checks(address, settings, store.as_deref()).await);
    }
    #[cfg(not(feature = "restate"))]
    checks.extend(address.map(|_| {
        Group("dispatch")
            .fail("serve.dispatch", "this adjutant was built without Restate")
            .with_remedy("cargo build --release --features restate    (or take serve.dispatch out: adjutant config edit)")
    }));
    checks
}

fn print(findings: &Findings, screen: &Screen) {
    let mut group = None;
    for check in &findings.checks {
        if group != Some(check.group) {
            group = Some(check.group);
            screen.answer_line(&format!("{BOLD}{}{PLAIN}", check.group.0));
        }
        let sign = match check.status {
            Status::Ok => format!("{GREEN}✓{PLAIN}"),
            Status::Warn => format!("{YELLOW}⚠{PLAIN}"),
            Status::Fail => format!("{RED}✗{PLAIN}"),
        };
        screen.answer_line(&format!(
            "  {sign} {:18} {}",
            clean_line(&check.name),
            clean_line(&check.message)
        ));
        for (label, text) in [("cause", &check.cause), ("try", &check.remedy)] {
            if let Some(text) = text {
                screen.answer_line(&format!("      {DIM}{label}:{PLAIN} {}", clean_line(text)));
            }
        }
    }
    let count = |status| {
        findings
            .checks
            .iter()
            .filter(|check| check.status == status)
            .count()
    };
    let (warnings, failures) = (count(Status::Warn), count(Status::Fail));
    if findings.left_out {
        screen.answer_line(
            "The rest (model, data, memory, tools, service) can be checked when this is solved.",
        );
    }
    screen.answer_line(&match (failures, warnings) {
        (0, 0) => "Ready.".to_owned(),
        (0, 1) => "Ready, with 1 warning.".to_owned(),
        (0, warnings) => format!("Ready, with {warnings} warnings."),
        (1, _) => "Not ready: 1 problem has to be solved.".to_owned(),
        (failures, _) => format!("Not ready: {failures} problems have to be solved."),
    });
}
