//! `credentials.toml`: keys that `adjutant keys` stores, each under the name of the variable it
//! stands in for. The weakest source: a variable of the process or of the `.env` file wins.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use adjutant_core::nearest;
use adjutant_providers::Provider;
use secrecy::{ExposeSecret as _, SecretString};
use toml_edit::{DocumentMut, Item};

use super::edit::set_value;
use super::files::{read_file, warn_if_others_can_read, write_private};
use crate::error::CliError;

/// The file, beside `config.toml`.
const FILE: &str = "credentials.toml";

/// The comment at the beginning of a new file.
const HEAD: &str =
    "# Keys of language models. Written by `adjutant keys`; readable for you alone.\n";

/// Keys of providers that the file has.
#[derive(Debug, Default)]
pub(crate) struct Credentials {
    pub(crate) path: PathBuf,
    /// Keys by the name of their variable.
    pub(super) keys: BTreeMap<String, SecretString>,
    /// Probable mistakes; none of them stops a command.
    pub(crate) warnings: Vec<String>,
}

impl Credentials {
    /// Returns the path of the file in a configuration folder.
    pub(crate) fn path_in(config: &Path) -> PathBuf {
        config.join(FILE)
    }

    /// Loads the file of a configuration folder; one that does not exist has no keys.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, or has a key that is not text. No error shows what is
    /// in it.
    pub(crate) fn load(config: &Path) -> Result<Self, CliError> {
        let path = Self::path_in(config);
        let mut credentials = Self {
            path: path.clone(),
            ..Self::default()
        };
        let Some(document) = read_document(&path)? else {
            return Ok(credentials);
        };
        // A warning and no error: refusing the keys would not make them any more private.
        credentials.warnings.extend(warn_if_others_can_read(&path));
        for (name, item) in document.iter() {
            let Some(key) = item.as_str() else {
                return Err(CliError::configuration(format!(
                    "{}: {name} is no key",
                    path.display()
                ))
                .because("a key is text")
                .or_try("adjutant keys set PROVIDER    writes it"));
            };
            // No error: another version of the program may know the provider.
            if !key_variables().any(|known| known == name) {
                let near =
                    nearest(name, key_variables()).map(|near| format!("; did you mean {near}?"));
                credentials.warnings.push(format!(
                    "{}: {name} is no key of a provider{}",
                    path.display(),
                    near.unwrap_or_default()
                ));
            }
            let key = key.trim();
            if !key.is_empty() {
                credentials.keys.insert(name.to_owned(), key.into());
            }
        }
        Ok(credentials)
    }

    /// Stores a key in the file of a configuration folder, which is made if it does not exist.
    ///
    /// # Errors
    /// The file is not TOML, or cannot be written.
    pub(crate) fn set(
        config: &Path,
        variable: &str,
        key: &SecretString,
    ) -> Result<PathBuf, CliError> {
        let path = Self::path_in(config);
        let document = read_document(&path)?;
        let mut document = document.unwrap_or_else(|| HEAD.parse().unwrap_or_default());
        let item = document.entry(variable).or_insert(Item::None);
        set_value(item, key.expose_secret().into());
        write_private(&path, &document.to_string())?;
        Ok(path)
    }

    /// Removes a key from the file. Returns false if the file does not have it.
    ///
    /// # Errors
    /// The file is not TOML, or cannot be written.
    pub(crate) fn remove(config: &Path, variable: &str) -> Result<bool, CliError> {
        let path = Self::path_in(config);
        let Some(mut document) = read_document(&path)? else {
            return Ok(false);
        };
        let found = document.remove(variable).is_some();
        if found {
            write_private(&path, &document.to_string())?;
        }
        Ok(found)
    }
}

/// Returns the last four characters of a key, if the key is so long that the rest of it cannot be
/// guessed.
pub(crate) fn key_ending(key: &SecretString) -> String {
    let key = key.expose_secret().trim();
    let length = key.chars().count();
    let shown = if length < 12 { 0 } else { 4 };
    format!("…{}", key.chars().skip(length - shown).collect::<String>())
}

fn key_variables() -> impl Iterator<Item = &'static str> {
    Provider::all().filter_map(|provider| provider.key_variable)
}

fn read_document(path: &Path) -> Result<Option<DocumentMut>, CliError> {
    const REMEDY: &str = "move it away, then adjutant keys set PROVIDER";
    let Some(text) = read_file(path, false).map_err(|error| error.or_try(REMEDY))? else {
        return Ok(None);
    };
    // The library's error is dropped: its message quotes the line, and the line may hold a key.
    let document = text.parse::<DocumentMut>().map_err(|error| {
        let line = error
            .span()
            .and_then(|span| text.get(..span.start))
            .map_or(1, |before| before.matches('\n').count() + 1);
        CliError::configuration(format!("{} cannot be read", path.display()))
            .because(format!("line {line} is not TOML"))
            .or_try(REMEDY)
    })?;
    Ok(Some(document))
}
