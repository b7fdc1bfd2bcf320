//! `adjutant config`: what is set, and where.

use adjutant_providers::Provider;
use serde_json::{Map, Value, json};

use crate::args::Config;
use crate::config::{Database, OF_MCP_SERVER, OF_PROVIDER, Sources};
use crate::display::{clean_line, json_line};
use crate::error::{CliError, Exit};
use crate::screen::Screen;

/// Shows settings or places.
///
/// # Errors
/// `show`: the configuration cannot be read. `path` tells where it is even then.
pub(crate) fn run(
    sources: &Sources,
    screen: &Screen,
    command: &Config,
    json: bool,
) -> Result<Exit, CliError> {
    match command {
        Config::Show { origin } => show(sources, screen, *origin, json)?,
        Config::Path => paths(sources, screen, json),
    }
    Ok(Exit::Ok)
}

fn show(sources: &Sources, screen: &Screen, origin: bool, json: bool) -> Result<(), CliError> {
    let settings = sources.load()?;
    let worth_a_line = || settings.shown.iter().filter(|shown| !shown.quiet || shown.value.is_some());
    if json {
        let all: Map<String, Value> = worth_a_line()
            .map(|shown| (shown.name.to_string(), json!({ "value": shown.value, "origin": shown.origin })))
            .collect();
        screen.answer_line(&json_line(&all));
        return Ok(());
    }
    for shown in worth_a_line() {
        let value = match &shown.value {
            Some(value) => clean_line(value),
            None => format!("({})", shown.unset),
        };
        let line = format!("{:28} {value}", shown.name);
        if origin {
            screen.answer_line(&format!("{line}    # {}", clean_line(&shown.origin)));
        } else {
            screen.answer_line(&line);
        }
    }
    let providers: Vec<&str> = Provider::all().map(|provider| provider.name).collect();
    screen.note(
        "[budget] per_turn_, per_day_ and everyone_per_day_ with usd, tokens, model_calls, tool_calls and time: shown where they \
         are set",
    );
    screen.note(&format!(
        "[PROVIDER] {}: shown where they are set. Providers: {}",
        OF_PROVIDER.join(", "),
        providers.join(", ")
    ));
    screen.note(&format!(
        "[mcp.servers.NAME] {}: in your own file only, shown where they are set",
        OF_MCP_SERVER.join(", ")
    ));
    Ok(())
}

fn paths(sources: &Sources, screen: &Screen, json: bool) {
    let mut places = vec![("config", sources.user_file()), ("env", sources.env_file())];
    places.extend(sources.project_file().map(|file| ("project", file)));
    // Where the store is can be set; if the settings are broken, this is where it would be.
    let usual = || Database::Sqlite(sources.dirs.data.join("adjutant.db"));
    let server = match sources.load().map_or_else(|_| usual(), |settings| settings.database) {
        Database::Sqlite(file) => {
            places.push(("store", file));
            None
        }
        server @ Database::Postgres(_) => Some(("store", server.to_string())),
    };
    places.push(("data", sources.dirs.data.clone()));
    places.push(("cache", sources.dirs.cache.clone()));
    places.push(("state", sources.dirs.state.clone()));
    let shown = places.into_iter().map(|(name, path)| {
        let there = if path.exists() { "" } else { "    (not there)" };
        (name, path.to_string_lossy().into_owned(), there)
    });
    let shown = shown.chain(server.map(|(name, address)| (name, address, "")));
    if json {
        let all: Map<String, Value> = shown.map(|(name, place, _)| (name.to_owned(), json!(place))).collect();
        screen.answer_line(&json_line(&all));
        return;
    }
    for (name, place, there) in shown {
        screen.answer_line(&format!("{name:8} {}{there}", clean_line(&place)));
    }
}
