//! `adjutant config`: what is set, and where.

use serde_json::{Map, Value, json};

use crate::args::Config;
use crate::config::Sources;
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
    if json {
        let all: Map<String, Value> = settings
            .shown
            .iter()
            .map(|shown| (shown.name.to_owned(), json!({ "value": shown.value, "origin": shown.origin })))
            .collect();
        screen.answer_line(&json_line(&all));
        return Ok(());
    }
    for shown in &settings.shown {
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
    Ok(())
}

fn paths(sources: &Sources, screen: &Screen, json: bool) {
    let mut places = vec![("config", sources.user_file()), ("env", sources.env_file())];
    places.extend(sources.project_file().map(|file| ("project", file)));
    // Where the store is can be set; if the settings are broken, this is where it would be.
    let store =
        sources.load().map_or_else(|_| sources.dirs.data.join("adjutant.db"), |settings| settings.store_path);
    places.push(("store", store));
    places.push(("data", sources.dirs.data.clone()));
    places.push(("cache", sources.dirs.cache.clone()));
    if json {
        let all: Map<String, Value> =
            places.iter().map(|(name, path)| ((*name).to_owned(), json!(path.to_string_lossy()))).collect();
        screen.answer_line(&json_line(&all));
        return;
    }
    for (name, path) in places {
        let there = if path.exists() { "" } else { "    (not there)" };
        screen.answer_line(&format!("{name:8} {}{there}", clean_line(&path.to_string_lossy())));
    }
}
