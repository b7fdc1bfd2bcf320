//! The sources of settings of one process, loaded and laid over each other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use adjutant_providers::Provider;

use super::env_file::ProviderKeys;
use super::key::{KEYS, Section as _};
use super::layer::{Origin, Values};
use super::toml_file::{self, Owner};
use super::value::{Kind, Value};
use super::{Credentials, Dirs, Settings, mcp, trust, variables};
use crate::error::CliError;

/// The project's file, in the working directory.
pub(super) const PROJECT_FILE: &str = "adjutant.toml";

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
        Ok(Self {
            dirs: Dirs::from_process(&variables)?,
            project,
            variables,
            config: None,
            env_file: None,
            model: None,
            database: None,
            vault: None,
            serves: false,
        })
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

    /// Loads every source and lays them over each other.
    ///
    /// # Errors
    /// A file that was named cannot be read, or a setting is wrong in any of the sources, even if a
    /// stronger source has it too.
    pub(crate) fn load(&self) -> Result<Settings, CliError> {
        // From the weakest source to the strongest. Each is parsed whole, so that a mistake is
        // found where it is, and not only once the stronger source is gone.
        let mut values = Values::defaults(&KEYS, &self.dirs);
        let mut warnings = Vec::new();
        let user_file = self.user_file();
        let user_text = read_file(&user_file, self.config.is_some())?.unwrap_or_default();
        values.lay(toml_file::parse(&user_text, &user_file, Owner::User)?.layer);
        let project = self.read_project_file()?;
        if let Some(project) = &project {
            let parsed = toml_file::parse(&project.text, &project.path, project.owner)?;
            warnings.extend(parsed.not_trusted_warning(&project.path));
            values.lay_project(parsed.layer);
        }
        let env_file = self.read_env_file()?;
        warnings.extend(env_file.not_trusted.clone());
        values.lay(variables::parse(&env_file.variables, Some(&env_file.path))?);
        values.lay(variables::parse(&self.variables, None)?);
        self.lay_options(&mut values)?;
        let credentials = Credentials::load(&self.dirs.config)?;
        let keys = ProviderKeys {
            process: &self.variables,
            file: &env_file,
            credentials: &credentials,
            project_files: (project.iter().map(|project| project.path.clone()))
                .chain(env_file.of_project.then(|| env_file.path.clone()))
                .collect(),
        };
        // Only now it is known which source names the database.
        values.check_database(&keys)?;
        warnings.extend(credentials.warnings.iter().cloned());
        warnings.extend(variables::misspelt(&env_file.variables));
        warnings.extend(variables::misspelt(&self.variables));
        let mut settings = Settings::from_values("", &values)?;
        // A key has no place in a file of settings, so it is no setting and is added here.
        for provider in Provider::all() {
            let section = settings.providers.entry(provider.name).or_default();
            (section.key, section.withheld) = values.provider_key(provider, &keys);
        }
        settings.shown = values.shown(&keys);
        // Servers after the settings: their tables have names that users give.
        let lookup = mcp::Variables {
            process: &self.variables,
            file: &env_file.variables,
        };
        let mut servers = mcp::parse_servers(&user_text, &user_file, &lookup)?;
        if let Some(project) = project.filter(|project| project.owner == Owner::TrustedProject) {
            let of_project = mcp::parse_servers(&project.text, &project.path, &lookup)?;
            // One of the same name takes the other's place, as with every setting.
            let is_other =
                |a: &mcp::ServerTable, b: &mcp::ServerTable| a.config.name != b.config.name;
            servers.retain(|server| of_project.iter().all(|other| is_other(server, other)));
            servers.extend(of_project);
        }
        for server in servers {
            settings.mcp.push(server.config);
            settings.shown.extend(server.shown);
        }
        settings.dirs = self.dirs.clone();
        settings.warnings = warnings;
        Ok(settings)
    }

    /// Lays the options of the command line over the other sources.
    fn lay_options(&self, values: &mut Values) -> Result<(), CliError> {
        if let Some(model) = &self.model {
            // Whether there is such a model is checked where one is chosen.
            let value = Kind::Text
                .parse(model, false)
                .ok_or_else(|| CliError::usage("-m needs a model's name"))?;
            values.set("model", value, Origin::Flag("-m"));
        }
        if let Some(database) = &self.database {
            let value = Kind::Database.parse(database, false).ok_or_else(|| {
                CliError::usage(format!("--database needs {}", Kind::Database.expected()))
            })?;
            values.set("serve.database_url", value, Origin::Flag("--database"));
        }
        if let Some(vault) = &self.vault {
            let value = Value::Path(vault.clone());
            values.set("vault.path", value, Origin::Flag("--vault"));
        }
        Ok(())
    }
}

/// Reads a file's text. `None`: it does not exist and need not (`required`).
pub(super) fn read_file(path: &Path, required: bool) -> Result<Option<String>, CliError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !required => Ok(None),
        Err(error) => Err(
            CliError::configuration(format!("{} cannot be read", path.display()))
                .because(error.to_string()),
        ),
    }
}
