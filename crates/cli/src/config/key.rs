//! One setting: its name, the values that fit, and the sources it may come from.

use std::path::PathBuf;

use super::dirs::Dirs;
use super::value::{Kind, SettingType, Value};

/// One setting.
#[derive(Debug)]
pub(crate) struct Key {
    /// `section.name`, or just `name`.
    pub(crate) name: String,
    /// The first paragraph of the field's doc comment.
    pub(crate) description: String,
    pub(crate) kind: Kind,
    /// The values that fit, as the end of "must be …", if the kind says it too generally.
    pub(super) expected: Option<&'static str>,
    /// The variable of a vendor or of older programs, beside `ADJUTANT_SECTION_NAME`.
    pub(crate) variable: Option<&'static str>,
    /// Another spelling in TOML, in the same section and at the top of the file.
    pub(crate) alias: Option<&'static str>,
    /// True if `adjutant config show` lists it only when it has a value.
    pub(crate) quiet: bool,
    /// True if a project's `adjutant.toml` may set it before it is trusted. Never true for a
    /// setting that sends data elsewhere, or has fewer calls confirmed by a person.
    pub(crate) project: bool,
    /// Returns the value that applies if no source has one. It may depend on the user's folders and
    /// name.
    pub(super) default: Option<fn(&Dirs) -> Value>,
    /// The behaviour without a value, for people.
    pub(crate) unset: &'static str,
}

impl Key {
    /// Describes a setting that is read into a field of type `T`.
    pub(super) fn new<T: SettingType>(name: String, doc: &[&str]) -> Self {
        // Further paragraphs are for readers of the code.
        let paragraph = doc
            .iter()
            .map(|line| line.trim())
            .take_while(|line| !line.is_empty());
        Self {
            name,
            description: paragraph.collect::<Vec<_>>().join(" "),
            kind: T::KIND,
            expected: None,
            variable: None,
            alias: None,
            quiet: false,
            project: false,
            default: None,
            unset: "none",
        }
    }

    /// Returns the value that applies if no source has one.
    pub(super) fn default_value(&self, dirs: &Dirs) -> Option<Value> {
        self.default.map(|default| default(dirs))
    }

    /// Returns the error's text about a value that does not fit. `name`: the setting's name in the
    /// source, and `shown` the value.
    pub(super) fn must(&self, name: &str, shown: &str) -> String {
        let shown = self.kind.show_rejected(shown);
        format!("{name} must be {}, not {shown}", self.kind.expected())
    }

    /// Splits the name into the section, empty for a setting at the top, and the name in it.
    pub(crate) fn section_and_name(&self) -> (&str, &str) {
        self.name.split_once('.').unwrap_or(("", &self.name))
    }

    /// Returns true if the text is a path that would start at the configuration file if it stood
    /// there.
    pub(crate) fn is_relative_path(&self, text: &str) -> bool {
        let path = PathBuf::from(text.trim());
        matches!(self.kind, Kind::Path) && path.is_relative() && !path.starts_with("~")
    }

    /// Returns the names of its variables: its own one, which wins, and the one of a vendor or of
    /// older programs.
    pub(super) fn variables(&self) -> Vec<String> {
        let other = self.variable.map(str::to_owned);
        [Some(self.own_variable()), other]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Returns the name of its variable: `ADJUTANT_SECTION_NAME`.
    pub(crate) fn own_variable(&self) -> String {
        format!(
            "ADJUTANT_{}",
            self.name.replace(['.', '-'], "_").to_uppercase()
        )
    }
}
