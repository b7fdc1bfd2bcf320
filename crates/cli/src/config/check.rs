//! `config check`: each source of settings by itself, so that a mistake is reported with the source
//! it is in, even if a stronger source hides it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::credentials::Credentials;
use super::files::{read_file, warn_if_others_can_read};
use super::sources::Sources;
use super::toml_file::{self, Owner};
use super::{mcp, variables};
use crate::error::CliError;

/// The result of checking one source.
#[derive(Debug)]
pub(crate) struct Checked {
    /// `config.toml`, `adjutant.toml`, `.env`, `credentials.toml` or `variables`.
    pub(crate) name: &'static str,
    /// `None`: the process's variables.
    pub(crate) path: Option<PathBuf>,
    /// True if the file exists; always true for variables.
    pub(crate) exists: bool,
    /// Warnings that stop nothing; or the mistake that stops every command.
    pub(crate) result: Result<Vec<String>, CliError>,
}

impl Sources {
    /// Checks every source.
    pub(crate) fn check(&self) -> Vec<Checked> {
        let file = |name, path: PathBuf, result| Checked {
            name,
            exists: path.exists(),
            path: Some(path),
            result,
        };
        let mut all = vec![file(
            "config.toml",
            self.user_file(),
            self.check_user_file(),
        )];
        let project = self.project_file().filter(|path| path.exists());
        all.extend(project.map(|path| file("adjutant.toml", path, self.check_project_file())));
        all.push(file(".env", self.env_file(), self.check_env_file()));
        all.push(file(
            "credentials.toml",
            Credentials::path_in(&self.dirs.config),
            Credentials::load(&self.dirs.config).map(|credentials| credentials.warnings),
        ));
        all.push(Checked {
            name: "variables",
            path: None,
            exists: true,
            result: variables::parse(&self.variables, None)
                .map(|_| variables::misspelt(&self.variables)),
        });
        all
    }

    fn check_user_file(&self) -> Result<Vec<String>, CliError> {
        let path = self.user_file();
        let text = read_file(&path, self.config.is_some())?.unwrap_or_default();
        toml_file::parse(&text, &path, Owner::User)?;
        self.check_servers(&text, &path)
    }

    fn check_project_file(&self) -> Result<Vec<String>, CliError> {
        let Some(project) = self.read_project_file()? else {
            return Ok(Vec::new());
        };
        let parsed = toml_file::parse(&project.text, &project.path, project.owner)?;
        if project.owner == Owner::TrustedProject {
            return self.check_servers(&project.text, &project.path);
        }
        Ok(parsed
            .not_trusted_warning(&project.path)
            .into_iter()
            .collect())
    }

    fn check_env_file(&self) -> Result<Vec<String>, CliError> {
        let path = self.env_file();
        let variables = self.read_env_file()?.variables;
        variables::parse(&variables, Some(&path))?;
        let mut warnings = variables::misspelt(&variables);
        // Only keys are worth the warning; other settings are no secret.
        if variables.keys().any(|name| name.ends_with("_KEY")) {
            warnings.extend(warn_if_others_can_read(&path));
        }
        Ok(warnings)
    }

    /// Checks that the servers can be parsed. Variables that they name are not looked up: a missing
    /// one stops its server only, when that is started.
    fn check_servers(&self, text: &str, path: &Path) -> Result<Vec<String>, CliError> {
        let variables = mcp::Variables {
            process: &self.variables,
            file: &BTreeMap::new(),
        };
        mcp::parse_servers(text, path, &variables)?;
        Ok(Vec::new())
    }
}
