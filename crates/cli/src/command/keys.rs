//! `adjutant keys`: API keys of model providers, in a file that only their owner may read.

use std::io::{IsTerminal as _, Read as _};

use adjutant_core::nearest;
use adjutant_providers::Provider;
use clap::Subcommand;
use inquire::{InquireError, Password, PasswordDisplayMode};
use secrecy::SecretString;
use serde::Serialize;
use serde_json::json;

use crate::command::output::load_settings;
use crate::config::{Credentials, Sources};
use crate::error::{CliError, Exit};
use crate::terminal::display::{clean_line, shown_path};
use crate::terminal::screen::Screen;

/// Bytes read as a key at most; more than any provider's keys have.
const KEY_BYTES_MAX: u64 = 64 * 1024;

#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// Store a key; it is asked for without being shown, or read from standard input
    #[command(
        after_help = "Examples:\n  adjutant keys set gemini\n  pass show gemini | adjutant keys set gemini\n"
    )]
    Set {
        /// The provider: gemini, openai, anthropic, ...
        provider: String,
    },
    /// List the keys, where each comes from, and its last characters
    List,
    /// Remove a key
    Rm {
        /// The provider
        provider: String,
    },
}

/// Stores, lists or removes keys.
///
/// # Errors
/// There is no such provider or key, no key was given, or a file cannot be read or written.
pub(crate) fn run(sources: &Sources, screen: &Screen, command: Keys) -> Result<Exit, CliError> {
    match command {
        Keys::Set { provider } => set(sources, screen, &provider),
        Keys::List => list(sources, screen),
        Keys::Rm { provider } => remove(sources, screen, &provider),
    }
}

fn set(sources: &Sources, screen: &Screen, name: &str) -> Result<Exit, CliError> {
    let (provider, variable) = with_key(name)?;
    let key = if screen.asks() {
        if !provider.key_advice.is_empty() {
            screen.note(provider.key_advice);
        }
        ask(provider)?
    } else {
        from_stdin(provider)?
    };
    let path = Credentials::set(&sources.dirs.config, variable, &check_key(&key)?)?;
    screen.result(
        &json!({ "provider": provider.name, "variable": variable, "file": path.to_string_lossy() }),
        || format!("The key for {} is in {}.", provider.name, shown_path(&path)),
    );
    // A variable that overrides the stored key would make the change seem lost, so a note
    // says so.
    if sources
        .variables
        .get(variable)
        .is_some_and(|value| !value.trim().is_empty())
    {
        screen.note(&format!(
            "{variable} is set in the environment too, and wins"
        ));
    }
    Ok(Exit::Ok)
}

/// Asks for a key without echoing it.
///
/// # Errors
/// The user cancels with Ctrl-C or Esc, or there is no terminal to ask at.
pub(crate) fn ask(provider: &Provider) -> Result<String, CliError> {
    let question = format!("Key for {}:", provider.name);
    let answer = Password::new(&question)
        .with_display_mode(PasswordDisplayMode::Hidden)
        .without_confirmation()
        .prompt();
    answer.map_err(|error| match error {
        InquireError::OperationCanceled | InquireError::OperationInterrupted => {
            CliError::interrupted("nothing was written")
        }
        // Any other error is one of the terminal, which the cause names.
        error => CliError::failed("the key cannot be asked for").because(error.to_string()),
    })
}

fn from_stdin(provider: &Provider) -> Result<String, CliError> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(
            CliError::usage("the key has to be typed, and this is not a terminal")
                .or_try(format!("adjutant keys set {} < FILE", provider.name)),
        );
    }
    let mut bytes = Vec::new();
    stdin
        .lock()
        // One byte more than allowed, so that a longer input is refused instead of cut.
        .take(KEY_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| {
            CliError::failed("standard input cannot be read").because(error.to_string())
        })?;
    String::from_utf8(bytes)
        // The error holds the bytes of the key, so it is dropped.
        .map_err(|_| CliError::usage("this is not a key").because("it is not UTF-8"))
}

/// Checks that a key can be sent in an HTTP header.
///
/// # Errors
/// It cannot; the error does not contain the key.
pub(crate) fn check_key(key: &str) -> Result<SecretString, CliError> {
    let key = key.trim();
    let unusable = |cause: &str| CliError::usage("this is not a key").because(cause.to_owned());
    if key.is_empty() {
        return Err(unusable("it is empty"));
    }
    if key.len() as u64 > KEY_BYTES_MAX {
        return Err(unusable("it is longer than 64 KiB"));
    }
    match malformed(key) {
        Some(cause) => Err(unusable(cause)),
        None => Ok(key.into()),
    }
}

/// Returns the reason why a text cannot be a key, if there is one.
pub(crate) fn malformed(key: &str) -> Option<&'static str> {
    if key.contains(char::is_whitespace) {
        Some("there is a blank or a line break in it")
    } else if !key.chars().all(|c| c.is_ascii_graphic()) {
        Some("there are characters in it that no key has")
    } else if key.starts_with(['"', '\'']) {
        Some("it begins with a quote")
    } else if key.contains("API_KEY=") {
        Some("it is a whole line NAME=VALUE; the key is what follows the =")
    } else {
        None
    }
}

/// A stored key, as a row of `--json`.
#[derive(Serialize)]
struct KeyRow<'a> {
    variable: &'a str,
    /// Providers of one vendor share its key.
    providers: Vec<&'a str>,
    /// The last characters of the key, to tell keys apart.
    end: String,
    origin: &'a str,
}

fn list(sources: &Sources, screen: &Screen) -> Result<Exit, CliError> {
    let settings = load_settings(sources, screen)?;
    let mut rows: Vec<KeyRow<'_>> = Vec::new();
    for provider in Provider::all() {
        let Some(variable) = provider.key_variable else {
            continue;
        };
        // Providers of one vendor share its key, which is listed once.
        if let Some(row) = rows.iter_mut().find(|row| row.variable == variable) {
            row.providers.push(provider.name);
            continue;
        }
        let shown = settings.shown.iter().find(|shown| shown.name == variable);
        if let (Some(shown), Some(key)) = (shown, settings.provider(provider).any_key()) {
            rows.push(KeyRow {
                variable,
                providers: vec![provider.name],
                end: crate::config::key_ending(key),
                origin: &shown.origin,
            });
        }
    }
    if screen.json() {
        screen.answer_json(&rows);
        return Ok(Exit::Ok);
    }
    for row in &rows {
        let (names, end, origin) = (row.providers.join(", "), &row.end, clean_line(row.origin));
        screen.answer_line(&format!("{names:28} {end:8} {origin}"));
    }
    if rows.is_empty() {
        screen.note("there is no key yet: adjutant keys set PROVIDER");
    }
    Ok(Exit::Ok)
}

fn remove(sources: &Sources, screen: &Screen, name: &str) -> Result<Exit, CliError> {
    let (provider, variable) = with_key(name)?;
    if !Credentials::remove(&sources.dirs.config, variable)? {
        let error = CliError::unknown(format!(
            "there is no key for {} in {}",
            provider.name,
            Credentials::path_in(&sources.dirs.config).display()
        ));
        return Err(match sources.variables.contains_key(variable) {
            true => error.because(format!(
                "{variable} is a variable of the environment: unset it there"
            )),
            false => error.or_try("adjutant keys list"),
        });
    }
    screen.result(
        &json!({ "provider": provider.name, "variable": variable }),
        || format!("The key for {} is gone.", provider.name),
    );
    Ok(Exit::Ok)
}

/// Finds a provider that takes a key, by any of its names, with the variable of its key.
fn with_key(name: &str) -> Result<(&'static Provider, &'static str), CliError> {
    let takes = || Provider::all().filter(|provider| provider.key_variable.is_some());
    let Some(provider) = Provider::find(name) else {
        // The name is not repeated: the user may have typed the key in its place.
        let error = CliError::usage("there is no provider of that name");
        let names: Vec<&str> = takes().map(|provider| provider.name).collect();
        return Err(match nearest(name, takes().flat_map(Provider::names)) {
            Some(near) => error.because(format!("did you mean {near}?")),
            None => error.because(format!("there are {}", names.join(", "))),
        });
    };
    match provider.key_variable {
        Some(variable) => Ok((provider, variable)),
        None => Err(CliError::usage(format!("{} takes no key", provider.name))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_key_is_refused_without_showing_it() {
        for text in [
            "",
            " \n",
            "two words",
            "sk-1\nsk-2",
            "ключ",
            "\"sk-123\"",
            "OPENAI_API_KEY=sk-123",
            "a\u{7}b",
        ] {
            let error = check_key(text).unwrap_err();
            assert_eq!(error.exit as u8, 2, "{text:?}");
            assert!(
                text.trim().is_empty() || !format!("{error:?}").contains(text.trim()),
                "{error:?}"
            );
        }
        check_key(" sk-123\n").unwrap();
    }
}
