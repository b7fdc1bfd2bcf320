//! `adjutant mcp add`, `import`, `list` and `rm`: servers in the user's configuration.

use std::io::Read as _;
use std::path::Path;

use adjutant_mcp::client::{ServerName, Transport};
use serde_json::{Value, json};

use super::entry::Entry;
use super::server_json::{self, Found};
use crate::args::McpAdd;
use crate::command::output::{print_list, table};
use crate::config::{Draft, Settings, Sources, read_named_text};
use crate::error::{CliError, Exit};
use crate::mcp_servers::pins::PinFiles;
use crate::terminal::screen::Screen;

/// Most bytes that are read of standard input.
const IMPORT_BYTES_MAX: u64 = 1024 * 1024;

/// Adds a server.
///
/// # Errors
/// The name is taken or cannot be one, or the entry has a mistake.
pub(super) fn add(sources: &Sources, screen: &Screen, server: McpAdd) -> Result<Exit, CliError> {
    let name = server_name(&server.name)?;
    let entry = Entry {
        command: server.command,
        url: server.url,
        env: pairs("--env", "=", server.env)?,
        headers: pairs("--header", ":", server.header)?,
        bearer_token_env: server.bearer_token_env,
        ..Entry::default()
    };
    let mut draft = Draft::open(&sources.user_file())?;
    if draft.has_server(name.as_str()) {
        return Err(
            CliError::usage(format!("there is an MCP server {name} already"))
                .or_try(format!("adjutant mcp rm {name}    removes it")),
        );
    }
    draft.add_server(name.as_str(), entry.table(), entry.has_secret())?;
    draft.write()?;
    let file = draft.path().display().to_string();
    screen.result(&json!({ "added": [name.as_str()], "file": file }), || {
        format!("[mcp.servers.{name}] is in {file}.")
    });
    screen.note(&format!(
        "adjutant mcp test {name}    starts it and shows its tools"
    ));
    Ok(Exit::Ok)
}

/// Adds the servers of a file with `mcpServers` JSON. Those that cannot be added are named with the
/// reason.
///
/// # Errors
/// The file cannot be read, has no servers, or none of them could be added.
pub(super) fn import(sources: &Sources, screen: &Screen, file: &Path) -> Result<Exit, CliError> {
    let text = read(file)?;
    let found = server_json::parse(&text).map_err(|reason| {
        CliError::usage(format!("{} has no MCP servers to import", file.display()))
            .because(reason)
            .or_try("{\"mcpServers\": {\"NAME\": {\"command\": \"npx\", \"args\": [\"-y\", \"PACKAGE\"]}}}")
    })?;
    let mut draft = Draft::open(&sources.user_file())?;
    let mut added = Vec::new();
    let mut skipped = Vec::new();
    for Found { name, entry, notes } in found {
        let outcome = entry.and_then(|entry| {
            let name = ServerName::new(name.as_str()).map_err(|error| error.to_string())?;
            if draft.has_server(name.as_str()) {
                return Err("there is a server of this name already".to_owned());
            }
            let added = draft.add_server(name.as_str(), entry.table(), entry.has_secret());
            added.map_err(|error| {
                draft.remove_server(name.as_str());
                error.message
            })
        });
        match outcome {
            Ok(()) => {
                notes
                    .iter()
                    .for_each(|note| screen.note(&format!("{name}: {note}")));
                added.push(name);
            }
            Err(reason) => skipped.push((name, reason)),
        }
    }
    for (name, reason) in &skipped {
        screen.note(&format!("{name} was not added: {reason}"));
    }
    if added.is_empty() {
        return Err(CliError::failed("no MCP server was added"));
    }
    draft.write()?;
    let file = draft.path().display().to_string();
    let left_out: Vec<Value> = skipped
        .iter()
        .map(|(name, reason)| json!({ "name": name, "reason": reason }))
        .collect();
    screen.result(
        &json!({ "added": added, "left_out": left_out, "file": file }),
        || format!("Added to {file}: {}.", added.join(", ")),
    );
    screen.note("adjutant mcp test NAME    starts one and shows its tools");
    Ok(Exit::Ok)
}

/// Lists the configured servers, without starting them.
pub(super) fn list(settings: &Settings, screen: &Screen) -> Result<Exit, CliError> {
    let servers: Vec<Value> = settings
        .mcp
        .iter()
        .map(|server| {
            let place = match &server.via {
                Transport::Child(child) => {
                    let program = child.program.display().to_string();
                    let words = [program].into_iter().chain(child.arguments.iter().cloned());
                    words.collect::<Vec<_>>().join(" ")
                }
                // A query may hold a key.
                Transport::Remote(remote) => {
                    let address = remote.url.split(['?', '#']).next();
                    address.unwrap_or_default().to_owned()
                }
            };
            let state = match (&server.unusable, server.disabled) {
                (_, true) => "disabled",
                (Some(reason), false) => reason,
                (None, false) => "enabled",
            };
            json!({ "name": server.name.as_str(), "place": place, "state": state })
        })
        .collect();
    let none = "No MCP servers: adjutant mcp add NAME -- COMMAND, or adjutant mcp add NAME URL.";
    print_list(screen, &servers, none, || {
        let cell = |server: &Value, key: &str| server[key].as_str().unwrap_or_default().to_owned();
        let rows = servers
            .iter()
            .map(|server| ["name", "state", "place"].map(|key| cell(server, key)));
        table(&[], rows)
    });
    Ok(Exit::Ok)
}

/// Removes a server and what was agreed to of its tools.
///
/// # Errors
/// The user's file has no such server.
pub(super) fn remove(sources: &Sources, screen: &Screen, server: &str) -> Result<Exit, CliError> {
    let name = server_name(server)?;
    let mut draft = Draft::open(&sources.user_file())?;
    let file = draft.path().display().to_string();
    if !draft.remove_server(name.as_str()) {
        return Err(
            CliError::unknown(format!("there is no MCP server {name} in {file}"))
                .or_try("adjutant mcp list    lists them"),
        );
    }
    draft.write()?;
    PinFiles::of(&sources.dirs)
        .remove(&name)
        .map_err(|reason| {
            CliError::failed("what was agreed to of its tools cannot be removed").because(reason)
        })?;
    screen.result(&json!({ "removed": name.as_str(), "file": file }), || {
        format!("[mcp.servers.{name}] is no longer in {file}.")
    });
    Ok(Exit::Ok)
}

fn server_name(name: &str) -> Result<ServerName, CliError> {
    ServerName::new(name).map_err(|error| CliError::usage(error.to_string()))
}

/// Splits options of the form `NAME=VALUE`.
fn pairs(
    option: &str,
    separator: &str,
    given: Vec<String>,
) -> Result<Vec<(String, String)>, CliError> {
    let split = |text: String| match text.split_once(separator) {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(CliError::usage(format!(
            "{option} needs a name and a value with {separator:?} between them"
        ))),
    };
    given.into_iter().map(split).collect()
}

fn read(file: &Path) -> Result<String, CliError> {
    let unreadable = |error: std::io::Error| {
        CliError::usage(format!("{} cannot be read", file.display())).because(error.to_string())
    };
    if file.to_str() == Some("-") {
        let mut text = String::new();
        std::io::stdin()
            .take(IMPORT_BYTES_MAX)
            .read_to_string(&mut text)
            .map_err(unreadable)?;
        return Ok(text);
    }
    read_named_text(file).map_err(unreadable)
}
