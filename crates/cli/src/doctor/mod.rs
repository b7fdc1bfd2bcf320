//! `adjutant doctor`: is everything there that is needed, and what to do about what is not.
//!
//! It changes nothing but what every start does: a database is brought up to date.

mod check; // one thing that was looked at
mod configuration; // files and variables
mod database; // where everything is kept
#[cfg(feature = "restate")]
mod dispatch; // who has conversations go on, if not the service
mod folders; // places on the disk
mod machine; // terminal, clock, network
mod model; // who answers
#[cfg(feature = "ollama")]
mod ollama; // a server on this machine
mod servers; // other people's tools
mod service; // the assistant over HTTP
mod vault; // notes and memory

pub(crate) use check::{Check, Status};

use crate::config::{Settings, Sources};
use crate::display::{clean_line, json_line};
use crate::error::{CliError, Exit};
use crate::screen::Screen;

const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const RED: &str = "\x1b[31m";
const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// What was looked at, and what could not be because of it.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) checks: Vec<Check>,
    /// Groups that were left out, because the settings cannot be read.
    left_out: bool,
}

impl Findings {
    /// Whether nothing has to be mended.
    pub(crate) fn ready(&self) -> bool {
        !self.checks.iter().any(|check| check.status == Status::Fail)
    }
}

/// Looks at everything and tells about it. Exit code 0 when ready, 3 when something has to be
/// mended.
///
/// # Errors
/// None of its own: what is wrong is a finding.
pub(crate) async fn run(
    sources: &Sources,
    screen: &Screen,
    dispatch: Option<&str>,
    json: bool,
) -> Result<Exit, CliError> {
    let findings = look(sources, dispatch).await;
    if json {
        let all = serde_json::json!({ "ok": findings.ready(), "checks": findings.checks });
        screen.answer_line(&json_line(&all));
    } else {
        tell(&findings, screen);
    }
    Ok(if findings.ready() {
        Exit::Ok
    } else {
        Exit::Configuration
    })
}

/// Looks at everything. With an address of Restate, at that; else at the one of the settings, if
/// there is one.
pub(crate) async fn look(sources: &Sources, dispatch: Option<&str>) -> Findings {
    let mut findings = Findings {
        checks: configuration::files(sources),
        left_out: false,
    };
    findings.checks.extend(machine::look(sources));
    if !findings.ready() {
        findings.left_out = true;
        return findings;
    }
    match sources.load() {
        Ok(settings) => findings
            .checks
            .extend(settled(sources, &settings, dispatch).await),
        Err(error) => {
            findings.left_out = true;
            findings.checks.push(Check::of_error(
                "configuration",
                "settings",
                &error,
                "adjutant config check",
            ));
        }
    }
    // In the order of the groups, each with what belongs to it.
    findings
        .checks
        .sort_by_key(|check| GROUPS.iter().position(|group| *group == check.group));
    findings
}

/// The groups in the order they are told.
const GROUPS: [&str; 9] = [
    "configuration",
    "model",
    "data",
    "memory",
    "tools",
    "service",
    "dispatch",
    "machine",
    "network",
];

/// What can be looked at when the settings are known.
async fn settled(sources: &Sources, settings: &Settings, dispatch: Option<&str>) -> Vec<Check> {
    let mut checks = vec![configuration::sensible(settings)];
    checks.extend(folders::look(settings));
    let (database, store) = database::look(settings).await;
    checks.extend(database);
    let (model, mut more) = tokio::join!(model::look(settings), servers::look(settings));
    checks.extend(model);
    checks.append(&mut more);
    checks.extend(vault::look(settings).await);
    checks.extend(service::look(sources, settings, store.as_deref()).await);
    if let Some(address) = dispatch.or(settings.serve.dispatch.as_deref()) {
        checks.extend(dispatch::look(address, settings, store.as_deref()).await);
    }
    checks
}

#[cfg(not(feature = "restate"))]
mod dispatch {
    use super::Check;
    use crate::config::Settings;
    use crate::store::Store;

    pub(super) async fn look(
        _address: &str,
        _settings: &Settings,
        _store: Option<&dyn Store>,
    ) -> Vec<Check> {
        let check = Check::fail(
            "dispatch",
            "serve.dispatch",
            "this adjutant was built without Restate",
        );
        vec![check.mend(
            "cargo build --release --features restate    (or take serve.dispatch out: adjutant config edit)",
        )]
    }
}

fn tell(findings: &Findings, screen: &Screen) {
    let mut group = "";
    for check in &findings.checks {
        if check.group != group {
            group = check.group;
            screen.answer_line(&format!("{BOLD}{group}{PLAIN}"));
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
        let more = [("cause", &check.cause), ("try", &check.remedy)];
        for (what, words) in more
            .into_iter()
            .filter_map(|(what, words)| Some((what, words.as_ref()?)))
        {
            screen.answer_line(&format!("      {DIM}{what}:{PLAIN} {}", clean_line(words)));
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
            "The rest (model, data, memory, tools, service) can be looked at when this is mended.",
        );
    }
    screen.answer_line(&match (failures, warnings) {
        (0, 0) => "Ready.".to_owned(),
        (0, 1) => "Ready, with 1 warning.".to_owned(),
        (0, warnings) => format!("Ready, with {warnings} warnings."),
        (1, _) => "Not ready: 1 thing has to be mended.".to_owned(),
        (failures, _) => format!("Not ready: {failures} things have to be mended."),
    });
}
