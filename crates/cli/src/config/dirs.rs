//! The user's folders of configuration, data, cache and state, by the XDG base directory
//! specification on every system.

use std::collections::BTreeMap;
use std::path::PathBuf;

use etcetera::base_strategy::{BaseStrategy as _, Xdg};

use crate::error::CliError;

/// The user's name if the operating system has none.
pub(crate) const DEFAULT_USER_NAME: &str = "you";

/// The folders of one user. None of them needs to exist.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dirs {
    /// `config.toml` and `.env`.
    pub(crate) config: PathBuf,
    /// `adjutant.db` and `models/`.
    pub(crate) data: PathBuf,
    /// Files that can be computed again.
    pub(crate) cache: PathBuf,
    /// Files about running processes, and the lists of trusted files and folders.
    pub(crate) state: PathBuf,
    /// The user's name in the operating system.
    pub(crate) os_user: String,
}

impl Dirs {
    /// Finds the folders of the user who runs this process: `XDG_CONFIG_HOME`, `XDG_DATA_HOME` and
    /// so on, else the usual ones in the home directory.
    ///
    /// # Errors
    /// There is no home directory.
    pub(crate) fn from_process(variables: &BTreeMap<String, String>) -> Result<Self, CliError> {
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
                .unwrap_or_else(|| DEFAULT_USER_NAME.to_owned()),
        })
    }

    /// Returns the SQLite file that is used if no setting names another database.
    pub(crate) fn database_file(&self) -> PathBuf {
        self.data.join("adjutant.db")
    }

    /// Returns the folder of downloaded models.
    #[cfg(feature = "embedded")]
    pub(crate) fn models(&self) -> PathBuf {
        self.data.join("models")
    }
}

/// Expands `~/…` to a path in the home directory, as a shell does.
pub(crate) fn expand_home(path: PathBuf) -> PathBuf {
    match (path.strip_prefix("~"), etcetera::home_dir()) {
        (Ok(rest), Ok(home)) => home.join(rest),
        _ => path,
    }
}
