//! The `.env` file: which one is used, what it may name, and providers' keys in variables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use secrecy::SecretString;

use super::credentials::Credentials;
use super::files::read_file;
use super::layer::Origin;
use super::sources::Sources;
use super::trust::{self, ENV_FILE};
use crate::error::CliError;

/// The `.env` file that is used.
pub(super) struct EnvFile {
    pub(super) path: PathBuf,
    pub(super) variables: BTreeMap<String, String>,
    /// True if it is the working directory's.
    pub(super) of_project: bool,
    /// A warning about the working directory's file, if it is not used because it is not trusted.
    pub(super) not_trusted: Option<String>,
}

impl Sources {
    /// Returns the path of the `.env` file that is used: the named one; for `serve` the working
    /// directory's, once the user has trusted it; else the one beside the user's settings.
    pub(crate) fn env_file(&self) -> PathBuf {
        match self.project_env_file() {
            Some((path, Some(_))) => path,
            _ => self.user_env_file(),
        }
    }

    /// Reads the `.env` file that is used.
    ///
    /// # Errors
    /// It was named and cannot be read, it has a line that is not `NAME=VALUE`, or it is the
    /// working directory's and uses a variable of the process. No error shows what is in it.
    pub(super) fn read_env_file(&self) -> Result<EnvFile, CliError> {
        let mut not_trusted = None;
        let (path, text, of_project) = match self.project_env_file() {
            Some((path, Some(text))) => (path, text, true),
            project => {
                not_trusted = project.map(|(path, _)| format!(
                    "{} is not trusted, so nothing of it is used (adjutant config trust; or name it: --env-file)",
                    path.display()
                ));
                let path = self.user_env_file();
                let text = read_file(&path, self.env_file.is_some())?.unwrap_or_default();
                (path, text, false)
            }
        };
        // The `.env` library expands `${NAME}` from the process. A trusted file may name an
        // address, and with a variable in it the address would carry the user's key there.
        if of_project && let Some(name) = self.used_variable(&text) {
            let file = path.display();
            return Err(
                CliError::configuration(format!("{file} uses your variable {name}"))
                    .because(
                        "a folder's file could put what is in it, such as a key, into an address",
                    )
                    .or_try(format!(
                        "write the value itself, in the place of ${name} or ${{{name}}}"
                    ))
                    .or_try("--env-file .env, if the file is yours"),
            );
        }
        let variables = env_variables(&text, &path)?;
        Ok(EnvFile {
            path,
            variables,
            of_project,
            not_trusted,
        })
    }

    /// Returns a variable of the process whose value the text of a `.env` file may use. Text in
    /// single quotes, which would stay as it is, counts too.
    fn used_variable(&self, text: &str) -> Option<&str> {
        text.match_indices('$')
            .find_map(|(at, _)| {
                let rest = &text[at + 1..];
                let rest = rest.strip_prefix('{').unwrap_or(rest);
                // The library decides where a name ends (`$AB` may be A or AB), so any variable
                // that the text begins with counts.
                self.variables
                    .keys()
                    .find(|name| !name.is_empty() && rest.starts_with(name.as_str()))
            })
            .map(String::as_str)
    }

    fn user_env_file(&self) -> PathBuf {
        self.env_file
            .clone()
            .unwrap_or_else(|| self.dirs.config.join(ENV_FILE))
    }

    /// Returns the working directory's file, if there is one and this command would use it; and its
    /// text, if that is trusted.
    fn project_env_file(&self) -> Option<(PathBuf, Option<String>)> {
        let path = self.project.join(ENV_FILE);
        // In the configuration folder itself the user's file is found twice.
        let own = self.user_env_file().canonicalize().ok();
        if !self.serves
            || self.env_file.is_some()
            || !path.is_file()
            || path.canonicalize().ok() == own
        {
            return None;
        }
        // Read once: the text that is checked is the text that is used. One that cannot be read is
        // not trusted either.
        let text = read_file(&path, false).ok().flatten();
        let trusted =
            text.filter(|text| trust::is_trusted(&self.dirs.state, &path, text.as_bytes()));
        Some((path, trusted))
    }
}

fn env_variables(text: &str, path: &Path) -> Result<BTreeMap<String, String>, CliError> {
    // The library's error is dropped: its message quotes the line, and the line may hold a key.
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

/// The sources of providers' keys: the process's variables, then the `.env` file, then the
/// credentials.
pub(super) struct ProviderKeys<'a> {
    pub(super) credentials: &'a Credentials,
    pub(super) process: &'a BTreeMap<String, String>,
    pub(super) file: &'a EnvFile,
    /// The files of the working directory that settings are read from.
    pub(super) project_files: Vec<PathBuf>,
}

/// A provider's key with its source.
pub(super) struct FoundKey {
    pub(super) key: SecretString,
    /// The source, for people.
    pub(super) origin: String,
    /// True if the working directory's `.env` file has it.
    pub(super) of_project: bool,
}

impl ProviderKeys<'_> {
    /// Finds the key that stands under this variable's name.
    pub(super) fn find(&self, variable: &str) -> Option<FoundKey> {
        // An empty variable counts as none, as it does for settings.
        let key_of = |variables: &BTreeMap<String, String>| {
            let key = variables.get(variable)?.trim();
            (!key.is_empty()).then(|| SecretString::from(key))
        };
        let in_file = |path: &Path| format!("{variable} in {}", path.display());
        let found = |key, origin, of_project| FoundKey {
            key,
            origin,
            of_project,
        };
        if let Some(key) = key_of(self.process) {
            return Some(found(key, format!("variable {variable}"), false));
        }
        if let Some(key) = key_of(&self.file.variables) {
            return Some(found(key, in_file(&self.file.path), self.file.of_project));
        }
        let key = self.credentials.keys.get(variable)?.clone();
        Some(found(key, in_file(&self.credentials.path), false))
    }

    /// Returns true if a file of the working directory has the value.
    pub(super) fn is_of_project(&self, origin: &Origin) -> bool {
        let files = &self.project_files;
        origin
            .file()
            .is_some_and(|file| files.iter().any(|of_project| of_project == file))
    }
}
