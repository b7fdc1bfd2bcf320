//! Variables and keys that are kept in files: which `.env` file counts, and where a key is from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use secrecy::SecretString;

use super::{Credentials, Sources, layers, read, trust};
use crate::error::CliError;

/// The file's name, wherever it is.
pub(crate) const ENV_FILE: &str = ".env";

/// The variables of the file that counts.
pub(super) struct EnvFile {
    pub(super) path: PathBuf,
    pub(super) variables: BTreeMap<String, String>,
    /// Whether it is the working directory's.
    pub(super) of_folder: bool,
    /// What its person should know about the one that does not count.
    pub(super) not_trusted: Option<String>,
}

impl Sources {
    /// Returns the `.env` file that counts: the named one; for `serve` the working directory's,
    /// once its person has trusted it; else the one beside their settings.
    pub(crate) fn env_file(&self) -> PathBuf {
        match self.folder_env() {
            Some((path, Some(_))) => path,
            _ => self.own_env_file(),
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// It was named and cannot be read, or has a line that is none. No error shows what is in it.
    pub(super) fn read_env_file(&self) -> Result<EnvFile, CliError> {
        let folder = self.folder_env();
        let not_trusted = match &folder {
            Some((path, None)) => Some(format!(
                "{} is not trusted, so nothing of it is used (adjutant config trust; or name it: --env-file)",
                path.display()
            )),
            _ => None,
        };
        let (path, text, of_folder) = match folder {
            Some((path, Some(text))) => (path, Some(text), true),
            _ => {
                let path = self.own_env_file();
                let text = read(&path, self.env_file.is_some())?;
                (path, text, false)
            }
        };
        if of_folder && let Some(name) = text.as_deref().and_then(|text| self.named_variable(text))
        {
            return Err(CliError::configuration(format!(
                "{} uses your variable {name}",
                path.display()
            ))
            .because("a folder's file could put what is in it, such as a key, into an address")
            .or_try(format!(
                "write the value itself, in the place of ${name} or ${{{name}}}"
            ))
            .or_try("--env-file .env, if the file is yours"));
        }
        let variables = env_variables(&text.unwrap_or_default(), &path)?;
        Ok(EnvFile {
            path,
            variables,
            of_folder,
            not_trusted,
        })
    }

    /// Returns a variable of the process that the text of a `.env` file may take the value of. What
    /// is quoted so that it stays as it is counts too.
    fn named_variable(&self, text: &str) -> Option<&str> {
        text.match_indices('$')
            .find_map(|(at, _)| {
                let rest = &text[at + 1..];
                let rest = rest.strip_prefix('{').unwrap_or(rest);
                // Where a name ends is for the library to say.
                self.variables
                    .keys()
                    .find(|name| !name.is_empty() && rest.starts_with(name.as_str()))
            })
            .map(String::as_str)
    }

    fn own_env_file(&self) -> PathBuf {
        self.env_file
            .clone()
            .unwrap_or_else(|| self.dirs.config.join(ENV_FILE))
    }

    /// Returns the working directory's file, if there is one and this command would take it; and
    /// its text, if that is trusted.
    fn folder_env(&self) -> Option<(PathBuf, Option<String>)> {
        let path = self.project.join(ENV_FILE);
        let own = self.own_env_file().canonicalize().ok();
        if !self.serves
            || self.env_file.is_some()
            || !path.is_file()
            || path.canonicalize().ok() == own
        {
            return None;
        }
        let text = std::fs::read_to_string(&path).ok();
        let trusted =
            text.filter(|text| trust::is_trusted(&self.dirs.state, &path, text.as_bytes()));
        Some((path, trusted))
    }
}

fn env_variables(text: &str, path: &Path) -> Result<BTreeMap<String, String>, CliError> {
    // The error's own words quote the line, and the line may hold a key.
    dotenvy::from_read_iter(text.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|_| {
            CliError::configuration(format!(
                "{} has a line that is not NAME=VALUE",
                path.display()
            ))
            .or_try("put a value with spaces or # into quotes")
        })
}

/// Where keys are: the process's variables, then the `.env` file, then the credentials.
pub(super) struct Secrets<'a> {
    pub(super) credentials: &'a Credentials,
    pub(super) process: &'a BTreeMap<String, String>,
    pub(super) file: &'a EnvFile,
    /// The files of the working directory that say anything.
    pub(super) of_folder: Vec<PathBuf>,
}

/// A key that was found.
pub(super) struct FoundKey {
    pub(super) key: SecretString,
    /// Where, as a person reads it.
    pub(super) origin: String,
    /// Whether the working directory's file has it.
    pub(super) of_folder: bool,
}

impl Secrets<'_> {
    /// Returns a key and where it was found.
    pub(super) fn get(&self, variable: &str) -> Option<FoundKey> {
        let of = |variables: &BTreeMap<String, String>| {
            variables
                .get(variable)
                .map(|key| key.trim().to_owned())
                .filter(|key| !key.is_empty())
        };
        let in_file = |path: &Path| format!("{variable} in {}", path.display());
        let found = |key: SecretString, origin: String, of_folder: bool| FoundKey {
            key,
            origin,
            of_folder,
        };
        match (of(self.process), of(&self.file.variables)) {
            (Some(key), _) => Some(found(key.into(), format!("variable {variable}"), false)),
            (None, Some(key)) => Some(found(
                key.into(),
                in_file(&self.file.path),
                self.file.of_folder,
            )),
            (None, None) => {
                let key = self.credentials.keys.get(variable)?;
                Some(found(key.clone(), in_file(&self.credentials.path), false))
            }
        }
    }

    /// Returns whether the working directory says so, in whichever of its files.
    pub(super) fn is_of_folder(&self, origin: &layers::Origin) -> bool {
        origin
            .file()
            .is_some_and(|file| self.of_folder.iter().any(|of_folder| of_folder == file))
    }
}
