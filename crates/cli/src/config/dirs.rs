//! Where things are: configuration, data and cache apart, as the XDG base directory specification
//! wants it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use etcetera::base_strategy::{BaseStrategy as _, Xdg};

use crate::error::CliError;

/// The person's name where nobody says one.
pub(crate) const NAMELESS: &str = "you";

/// The folders of one user. None of them needs to exist.
#[derive(Debug, Clone)]
pub(crate) struct Dirs {
    /// `config.toml` and `.env`.
    pub(crate) config: PathBuf,
    /// `adjutant.db` and `models/`.
    pub(crate) data: PathBuf,
    /// What can be computed again.
    pub(crate) cache: PathBuf,
    /// What tells of processes that run now.
    pub(crate) state: PathBuf,
    /// What the operating system calls the user.
    pub(crate) os_user: String,
}

impl Dirs {
    /// The folders of whoever runs this process, `XDG_CONFIG_HOME` and its sisters honoured.
    ///
    /// # Errors
    /// There is no home directory.
    pub(crate) fn of_process(variables: &BTreeMap<String, String>) -> Result<Self, CliError> {
        let base = Xdg::new().map_err(|error| {
            CliError::configuration("there is no home directory")
                .because(error.to_string())
                .or_try("set HOME")
        })?;
        let user = ["USER", "LOGNAME", "USERNAME"]
            .into_iter()
            .find_map(|name| variables.get(name).cloned());
        Ok(Self {
            config: base.config_dir().join("adjutant"),
            data: base.data_dir().join("adjutant"),
            cache: base.cache_dir().join("adjutant"),
            state: base
                .state_dir()
                .unwrap_or_else(|| base.data_dir())
                .join("adjutant"),
            os_user: user
                .filter(|name| !name.trim().is_empty())
                .unwrap_or_else(|| NAMELESS.to_owned()),
        })
    }

    /// Downloaded models.
    #[cfg(feature = "embedded")]
    pub(crate) fn models(&self) -> PathBuf {
        self.data.join("models")
    }
}
