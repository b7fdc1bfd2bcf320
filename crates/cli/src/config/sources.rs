//! The sources of settings of one process: where they are, and which of a project's are trusted.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::dirs::Dirs;
use super::files::read_file;
use super::toml_file::Owner;
use super::trust::{self, PROJECT_FILE};
use crate::error::CliError;

/// The places that settings are loaded from.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    pub(crate) dirs: Dirs,
    /// The working directory.
    pub(crate) project: PathBuf,
    /// The process's variables.
    pub(crate) variables: BTreeMap<String, String>,
    /// `--config`.
    pub(crate) config: Option<PathBuf>,
    /// `--env-file`.
    pub(crate) env_file: Option<PathBuf>,
    /// `--model`.
    pub(crate) model: Option<String>,
    /// `--database`.
    pub(crate) database: Option<String>,
    /// `--vault`.
    pub(crate) vault: Option<PathBuf>,
    /// True if the command serves: it uses the working directory's `.env`, if that is trusted.
    pub(crate) serves: bool,
}

/// The text of the project's file.
pub(super) struct ProjectFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) owner: Owner,
}

impl Sources {
    /// Returns the sources of this process: its variables and its working directory, no options.
    ///
    /// # Errors
    /// There is no home directory.
    pub(crate) fn from_process() -> Result<Self, CliError> {
        let variables: BTreeMap<String, String> = std::env::vars_os()
            // A variable that is not Unicode is none of ours.
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            // On Windows a name is the same in any case (`Path`), and settings are in capitals.
            .map(|(name, value)| match cfg!(windows) {
                true => (name.to_ascii_uppercase(), value),
                false => (name, value),
            })
            .collect();
        // A working directory that was deleted has no files of a project, and stops no command.
        let project = std::env::current_dir().unwrap_or_default();
        Ok(Self::new(
            Dirs::from_process(&variables)?,
            project,
            variables,
        ))
    }

    /// Returns sources without options of the command line.
    pub(super) fn new(dirs: Dirs, project: PathBuf, variables: BTreeMap<String, String>) -> Self {
        Self {
            dirs,
            project,
            variables,
            config: None,
            env_file: None,
            model: None,
            database: None,
            vault: None,
            serves: false,
        }
    }

    /// Returns the path of the user's file: the named one, or the usual one.
    pub(crate) fn user_file(&self) -> PathBuf {
        self.config
            .clone()
            .unwrap_or_else(|| self.dirs.config.join("config.toml"))
    }

    /// Returns the path of the project's file, unless the user's file is the same one.
    pub(crate) fn project_file(&self) -> Option<PathBuf> {
        let file = self.project.join(PROJECT_FILE);
        // In the folder `~/.config/adjutant`, or with `-C adjutant.toml`, it is the user's own.
        let user_file = self.user_file().canonicalize();
        let same = user_file.is_ok_and(|user| file.canonicalize().is_ok_and(|file| file == user));
        (!same).then_some(file)
    }

    /// Reads the project's file. `None`: there is none.
    pub(super) fn read_project_file(&self) -> Result<Option<ProjectFile>, CliError> {
        let Some(path) = self.project_file() else {
            return Ok(None);
        };
        let Some(text) = read_file(&path, false)? else {
            return Ok(None);
        };
        let owner = match trust::is_trusted(&self.dirs.state, &path, text.as_bytes()) {
            true => Owner::TrustedProject,
            false => Owner::Project,
        };
        Ok(Some(ProjectFile { path, text, owner }))
    }
}
