//! `credentials.toml`: keys that `adjutant keys` keeps, each under the name of the variable it
//! stands in for. The lowest source: a variable of the process or of the `.env` file wins.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use adjutant_core::nearest;
use adjutant_providers::Provider;
use secrecy::{ExposeSecret as _, SecretString};
use toml_edit::{DocumentMut, value};

use super::write::{others_can_read, write_private};
use crate::error::CliError;

/// The file, beside `config.toml`.
const FILE: &str = "credentials.toml";

/// The file's first lines, when it is made.
const HEAD: &str =
    "# Keys of language models. Written by `adjutant keys`; readable for you alone.\n";

/// What the file holds.
#[derive(Debug, Default)]
pub(crate) struct Credentials {
    pub(crate) path: PathBuf,
    /// By variable.
    pub(super) keys: BTreeMap<String, SecretString>,
    /// What looks like a mistake and stops nothing.
    pub(crate) warnings: Vec<String>,
}

impl Credentials {
    /// Where the file of a configuration folder is.
    pub(crate) fn path_in(config: &Path) -> PathBuf {
        config.join(FILE)
    }

    /// Reads the file of a configuration folder; one that is not there holds nothing.
    ///
    /// # Errors
    /// It cannot be read, or is not what this module writes. No error shows what is in it.
    pub(crate) fn read(config: &Path) -> Result<Self, CliError> {
        let path = Self::path_in(config);
        let mut credentials = Self {
            path: path.clone(),
            ..Self::default()
        };
        let Some(document) = document(&path)? else {
            return Ok(credentials);
        };
        if others_can_read(&path) {
            credentials.warnings.push(format!(
                "{0} holds keys, and others on this machine can read it: chmod 600 {0}",
                path.display()
            ));
        }
        for (name, item) in document.iter() {
            let Some(key) = item.as_str() else {
                return Err(CliError::configuration(format!(
                    "{}: {name} is no key",
                    path.display()
                ))
                .because("a key is text")
                .or_try("adjutant keys set PROVIDER    writes it"));
            };
            if !variables().any(|known| known == name) {
                let near = nearest(name, variables()).map(|near| format!("; did you mean {near}?"));
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

    /// Puts a key into the file of a configuration folder, which is made if it is not there.
    ///
    /// # Errors
    /// The file is not TOML, or cannot be written.
    pub(crate) fn set(
        config: &Path,
        variable: &str,
        key: &SecretString,
    ) -> Result<PathBuf, CliError> {
        let path = Self::path_in(config);
        let mut document = match document(&path)? {
            Some(document) => document,
            None => HEAD.parse().unwrap_or_default(),
        };
        // A comment beside the old key stays.
        match document
            .get_mut(variable)
            .and_then(toml_edit::Item::as_value_mut)
        {
            Some(old) => {
                let decor = old.decor().clone();
                *old = key.expose_secret().into();
                *old.decor_mut() = decor;
            }
            None => document[variable] = value(key.expose_secret()),
        }
        write_private(&path, &document.to_string())?;
        Ok(path)
    }

    /// Takes a key out of the file. `false`: it has none.
    ///
    /// # Errors
    /// The file is not TOML, or cannot be written.
    pub(crate) fn remove(config: &Path, variable: &str) -> Result<bool, CliError> {
        let path = Self::path_in(config);
        let Some(mut document) = document(&path)? else {
            return Ok(false);
        };
        if document.remove(variable).is_none() {
            return Ok(false);
        }
        write_private(&path, &document.to_string())?;
        Ok(true)
    }
}

/// The last four characters of a key that is long enough to lose them.
pub(crate) fn end_of(key: &SecretString) -> String {
    let characters: Vec<char> = key.expose_secret().trim().chars().collect();
    match characters.len() {
        12.. => format!(
            "…{}",
            characters[characters.len() - 4..]
                .iter()
                .collect::<String>()
        ),
        _ => "…".to_owned(),
    }
}

/// The variables that keys stand in.
fn variables() -> impl Iterator<Item = &'static str> {
    Provider::all().filter_map(|provider| provider.key_variable)
}

fn document(path: &Path) -> Result<Option<DocumentMut>, CliError> {
    let unusable = |cause: String| {
        CliError::configuration(format!("{} cannot be read", path.display()))
            .because(cause)
            .or_try("move it away, then adjutant keys set PROVIDER")
    };
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(error.to_string())),
    };
    // The error's own words quote the line, and the line may hold a key.
    let document = text.parse::<DocumentMut>().map_err(|error| {
        let line = error
            .span()
            .and_then(|span| text.get(..span.start))
            .map_or(1, |before| before.matches('\n').count() + 1);
        unusable(format!("line {line} is not TOML"))
    })?;
    Ok(Some(document))
}
