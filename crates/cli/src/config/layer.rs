//! Layers: what one source sets, and the values that apply once all are laid over each other.

use std::fmt;
use std::path::{Path, PathBuf};

use adjutant_providers::Provider;

use super::env_file::ProviderKeys;
use super::key::Key;
use super::value::{SettingType, Value};
use super::{Dirs, Shown};
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
pub(super) struct Values(Vec<Assignment<Option<Value>>>);

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

    /// Returns the lines of `adjutant config show`: every setting, then every provider's key.
    pub(super) fn shown(&self, keys: &ProviderKeys<'_>) -> Vec<Shown> {
        let line = |slot: &Assignment<Option<Value>>| Shown {
            name: slot.key.name.clone(),
            value: slot.value.as_ref().map(Value::to_string),
            unset: slot.key.unset,
            quiet: slot.key.quiet,
            origin: slot.origin.to_string(),
        };
        let mut shown: Vec<Shown> = self.0.iter().map(line).collect();
        for variable in Provider::all().filter_map(|provider| provider.key_variable) {
            // Providers of one vendor share its key.
            if shown.iter().any(|shown| shown.name == variable) {
                continue;
            }
            let key = keys.find(variable);
            shown.push(Shown {
                name: variable.to_owned(),
                value: key.as_ref().map(|_| "set, not shown".to_owned()),
                unset: "none",
                quiet: true,
                origin: key.map_or_else(|| Origin::Default.to_string(), |found| found.origin),
            });
        }
        shown
    }
}
