//! Each source of settings by itself, so that whoever looks for a mistake finds it where it is.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::layers::{self, Owner};
use super::{Credentials, Sources, mcp, read};
use crate::error::CliError;

/// What was found at one source.
#[derive(Debug)]
pub(crate) struct Checked {
    /// `config.toml`, `.env`, ...
    pub(crate) name: &'static str,
    /// `None`: the process's variables.
    pub(crate) path: Option<PathBuf>,
    /// Whether it is there at all.
    pub(crate) there: bool,
    /// What looks like a mistake and stops nothing; or what has to be mended first.
    pub(crate) found: Result<Vec<String>, CliError>,
}

impl Sources {
    /// Looks at every source there may be.
    pub(crate) fn check(&self) -> Vec<Checked> {
        let mut all = vec![self.check_user_file()];
        all.extend(self.check_project_file());
        all.push(self.check_env_file());
        let credentials = Credentials::read(&self.dirs.config);
        let path = Credentials::path_in(&self.dirs.config);
        all.push(Checked {
            name: "credentials.toml",
            there: path.exists(),
            path: Some(path),
            found: credentials.map(|credentials| credentials.warnings),
        });
        let found =
            layers::variables(&self.variables, None).map(|_| layers::misspelt(&self.variables));
        all.push(Checked {
            name: "variables",
            path: None,
            there: true,
            found,
        });
        all
    }

    fn check_user_file(&self) -> Checked {
        let path = self.user_file();
        let found = read(&path, self.config.is_some()).and_then(|text| {
            let text = text.unwrap_or_default();
            layers::toml(&text, &path, Owner::User)?;
            self.check_servers(&text, &path)
        });
        Checked {
            name: "config.toml",
            there: path.exists(),
            path: Some(path),
            found,
        }
    }

    fn check_project_file(&self) -> Option<Checked> {
        let path = self.project_file().filter(|path| path.exists())?;
        let found = self.project_text().and_then(|project| {
            let Some((path, text, owner)) = project else {
                return Ok(Vec::new());
            };
            let parsed = layers::toml(&text, &path, owner)?;
            if owner == Owner::Trusted {
                return self.check_servers(&text, &path);
            }
            Ok(parsed.not_trusted(&path).into_iter().collect())
        });
        Some(Checked {
            name: "adjutant.toml",
            there: true,
            path: Some(path),
            found,
        })
    }

    fn check_env_file(&self) -> Checked {
        let path = self.env_file();
        let found = self.read_env_file().and_then(|file| {
            let variables = file.variables;
            layers::variables(&variables, Some(&path))?;
            let mut warnings = layers::misspelt(&variables);
            if super::write::others_can_read(&path)
                && variables.keys().any(|name| name.ends_with("_KEY"))
            {
                warnings.push(format!(
                    "{0} holds keys, and others on this machine can read it: chmod 600 {0}",
                    path.display()
                ));
            }
            Ok(warnings)
        });
        Checked {
            name: ".env",
            there: path.exists(),
            path: Some(path),
            found,
        }
    }

    /// Whether the servers can be read; their variables are looked at where they are started.
    fn check_servers(&self, text: &str, path: &std::path::Path) -> Result<Vec<String>, CliError> {
        let none = BTreeMap::new();
        mcp::servers(
            text,
            path,
            &mcp::Variables {
                process: &self.variables,
                file: &none,
            },
        )?;
        Ok(Vec::new())
    }
}
