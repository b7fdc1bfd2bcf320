use clap::Subcommand;
use serde_json::json;

use crate::clock::now;
use crate::command::output::{kind, lines, parse_arguments, print_list};
use crate::config::Settings;
use crate::error::{CliError, Exit};
use crate::id_prefix::{Kind, the_one};
use crate::memory;
use crate::policy::{Grant, file, new_id};
use crate::store;
use crate::terminal::confirm::approved;
use crate::terminal::display::{clip, rough};
use crate::terminal::screen::Screen;
use crate::terminal::yes_no::require_yes;
use crate::wiring;

const GRANTS: Kind = kind("permission", "permissions", "adjutant policy list");

/// `adjutant policy ...`
#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// List what you have allowed, oldest first
    List,
    /// Allow a tool of Adjutant's own for good; one of an MCP server is allowed at its question,
    /// with `a`
    Allow {
        /// The tool's name, as `adjutant tools` lists it
        tool: String,
        /// Only with exactly these arguments, a JSON object
        #[arg(long, value_name = "JSON")]
        args: Option<String>,
    },
    /// Revoke permissions, so that you are asked again; asks first, or needs -y
    Rm {
        /// Their ids, or enough of the beginning or end of each to be unique
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

/// Lists, adds or removes permissions.
///
/// # Errors
/// There is no such permission or tool, a confirmation was needed and not given, or the file cannot
/// be read or written.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    command: Policy,
    yes: &[String],
) -> Result<Exit, CliError> {
    match command {
        Policy::List => list(settings, screen)?,
        Policy::Allow { tool, args } => allow(settings, screen, &tool, args.as_deref()).await?,
        Policy::Rm { ids } => remove(settings, screen, &ids, yes).await?,
    }
    Ok(Exit::Ok)
}

fn list(settings: &Settings, screen: &Screen) -> Result<(), CliError> {
    let grants = file::load(&settings.dirs)?;
    let none = "No permissions are saved: every such call asks first.";
    print_list(screen, &grants, none, || lines(&grants, line));
    Ok(())
}

fn line(grant: &Grant) -> String {
    let age = rough(now().as_second() - grant.granted_at.as_second());
    let place = match (&grant.conversation, &grant.foreign) {
        (Some(conversation), _) => format!(", conversation {conversation}"),
        (None, Some(tool)) => format!(", of the server {}", clip(&tool.server, 64)),
        (None, None) => String::new(),
    };
    format!(
        "{}  {}  (allowed {age} ago{place})",
        clip(&grant.id, 16),
        grant.describe()
    )
}

async fn allow(
    settings: &Settings,
    screen: &Screen,
    tool: &str,
    args: Option<&str>,
) -> Result<(), CliError> {
    // Only names of MCP servers' tools contain this.
    if tool.contains("__") {
        return Err(CliError::usage(format!("{} is a tool of an MCP server", clip(tool, 64)))
            .because("a tool of an MCP server can only be allowed at its question, because its exact definition is what you allow")
            .or_try("answer a at its next question"));
    }
    // Only an agent knows its tools; it is built for their names and calls no model.
    let agent = wiring::agent_without_model(settings, store::open(settings).await?).await?;
    let mut known = wiring::tool_names(&agent);
    known.extend(memory::TOOL_NAMES);
    // `*` means all tools in settings; a permission is for one that the user knows.
    if tool == "*" || !known.contains(&tool) {
        return Err(match wiring::known_tool(tool, &known) {
            Err(error) => CliError {
                exit: Exit::Usage,
                code: "usage",
                ..error
            },
            Ok(()) => CliError::usage("name one tool").or_try("adjutant tools    lists them"),
        });
    }
    let arguments = args.map(parse_arguments).transpose()?;
    let grant = Grant {
        id: new_id(),
        tool: tool.to_owned(),
        arguments,
        conversation: None,
        foreign: None,
        granted_at: now(),
    };
    file::change(&settings.dirs, |grants| grants.push(grant.clone()))?;
    screen.result(&grant, || {
        let (grant, id) = (grant.describe(), &grant.id);
        format!("Allowed: {grant}. Take it back: adjutant policy rm {id}")
    });
    Ok(())
}

async fn remove(
    settings: &Settings,
    screen: &Screen,
    ids: &[String],
    yes: &[String],
) -> Result<(), CliError> {
    let grants = file::load(&settings.dirs)?;
    // All ids are resolved before anything is removed: one wrong id changes nothing.
    let mut meant: Vec<Grant> = Vec::new();
    for id in ids {
        let grant = the_one(
            grants.iter().cloned(),
            id,
            |grant| grant.id.clone(),
            &GRANTS,
        )?;
        if !meant.contains(&grant) {
            meant.push(grant);
        }
    }
    // A plain `-y`: `--yes=TOOL` names tools and does not cover this.
    if !approved(yes, "") {
        let needed = CliError::confirmation_needed(
            "revoking a permission needs your confirmation, and this is not a terminal",
        )
        .or_try("adjutant policy rm -y ID");
        if screen.asks() {
            screen.side_line(&lines(&meant, line));
        }
        require_yes(screen, "? revoke", needed, "nothing was changed").await?;
    }
    // Those of the file now: another process may have changed it while the user was asked.
    file::change(&settings.dirs, |grants| {
        grants.retain(|grant| !meant.iter().any(|one| one.id == grant.id));
    })?;
    screen.result(&json!({ "removed": meant }), || {
        lines(&meant, |grant| format!("Taken back: {}", grant.describe()))
    });
    Ok(())
}
