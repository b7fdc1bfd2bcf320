//! Layers: what one source sets, and the values that apply once all are laid over each other.

use std::fmt;
use std::path::{Path, PathBuf};

use super::dirs::Dirs;
use super::key::Key;
use super::value::{SettingType, Value};
use crate::error::CliError;

/// The source of a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Origin {
    Default,
    File {
        path: PathBuf,
        line: usize,
    },
    /// A variable of the process, or of a `.env` file.
    Variable {
        name: String,
        file: Option<PathBuf>,
    },
    /// An option of the command line.
    Flag(&'static str),
}

impl Origin {
    /// Returns the file that has the value, if one has.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::File { path, .. } => Some(path),
            Self::Variable { file, .. } => file.as_deref(),
            Self::Default | Self::Flag(_) => None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable { name, file: None } => write!(f, "variable {name}"),
            Self::Variable {
                name,
                file: Some(path),
            } => write!(f, "{name} in {}", path.display()),
            Self::Flag(flag) => write!(f, "option {flag}"),
        }
    }
}

/// A setting with its value and the source of it.
#[derive(Debug, Clone)]
pub(crate) struct Assignment<V = Value> {
    pub(crate) key: &'static Key,
    pub(crate) value: V,
    pub(crate) origin: Origin,
}

/// The settings of one source.
pub(crate) type Layer = Vec<Assignment>;

// A list and not a map: `config show` needs the order, and a lookup in 200 entries costs nothing.
/// Every setting with the value that applies, while layers are laid over each other.
pub(super) struct Values(pub(super) Vec<Assignment<Option<Value>>>);

impl Values {
    /// Begins with the defaults of these settings.
    pub(super) fn defaults(keys: &'static [Key], dirs: &Dirs) -> Self {
        let default = |key: &'static Key| Assignment {
            key,
            value: key.default_value(dirs),
            origin: Origin::Default,
        };
        Self(keys.iter().map(default).collect())
    }

    /// Lays the settings of a stronger source over these.
    pub(super) fn lay(&mut self, layer: Layer) {
        for set in layer {
            self.set(&set.key.name, set.value, set.origin);
        }
    }

    /// Lays a project's settings over these. Its lists add to the user's: a project may have more
    /// calls confirmed or denied, and none fewer.
    pub(super) fn lay_project(&mut self, layer: Layer) {
        for mut set in layer {
            let below = self
                .find(&set.key.name)
                .and_then(|below| below.value.as_ref());
            if let (Value::List(names), Some(Value::List(below))) = (&mut set.value, below) {
                // Twice in the project's own list stays twice.
                names.retain(|name| !below.contains(name));
                names.splice(0..0, below.iter().cloned());
            }
            self.set(&set.key.name, set.value, set.origin);
        }
    }

    pub(super) fn set(&mut self, name: &str, value: Value, origin: Origin) {
        if let Some(slot) = self.0.iter_mut().find(|slot| slot.key.name == name) {
            slot.value = Some(value);
            slot.origin = origin;
        }
    }

    pub(super) fn find(&self, name: &str) -> Option<&Assignment<Option<Value>>> {
        self.0.iter().find(|slot| slot.key.name == name)
    }

    /// Reads a setting into a field.
    ///
    /// # Errors
    /// The setting has no value and its field needs one, or the value cannot be converted.
    pub(super) fn get<T: SettingType>(&self, name: &str) -> Result<T, CliError> {
        match self.find(name).and_then(|slot| slot.value.as_ref()) {
            Some(value) => T::from_value(value),
            None => T::from_unset(),
        }
        .ok_or_else(|| CliError::configuration(format!("{name} has no value that can be used")))
    }
}

/// One line of `adjutant config show`.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) name: String,
    /// `None`: no source has a value, and `unset` says what applies.
    pub(crate) value: Option<String>,
    pub(crate) unset: &'static str,
    /// True if the line is left out when there is no value.
    pub(crate) quiet: bool,
    pub(crate) origin: String,
}
