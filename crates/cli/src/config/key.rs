//! The declaration of settings: `settings!` makes a struct whose fields are settings, and [`KEYS`]
//! lists them all.
//!
//! A field is everything there is to say about its setting: the doc comment is its description (in
//! `docs/configuration.md` and the JSON Schema), the type says which values fit, and the attribute
//! names it and says where it may come from.

use std::path::PathBuf;
use std::sync::LazyLock;

use super::toml_file::OLD_VAULT_SECTION;
use super::value::{Kind, SettingType, Value};
use super::{Dirs, Settings, Values};
use crate::error::CliError;

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

/// Settings that a struct is read from.
pub(super) trait Section: Sized {
    /// Appends the struct's settings, in the order in which they are shown. `prefix`: the beginning
    /// of their names, for a struct that several sections have in common.
    fn append_keys(prefix: &str, keys: &mut Vec<Key>);

    /// Reads the struct from the values that apply to the names with this prefix.
    ///
    /// # Errors
    /// A value cannot be converted into its field.
    fn from_values(prefix: &str, values: &Values) -> Result<Self, CliError>;
}

/// Declares a struct of settings, and implements [`Section`] for it. With `impl` in the place of
/// `struct`, the struct is one of another crate, whose fields have to be listed all.
///
/// Each field has one attribute:
/// - `#[setting("section.name", option = VALUE, ...)]`: a setting. The options are the fields of
///   [`Key`], `user_default = FUNCTION` for a default that depends on the user's folders, and
///   `range = MIN..=MAX` for its kind; without either, the type says which values fit.
/// - `#[setting(section)]`: settings of another struct, at this place of the list.
/// - `#[setting(skip)]`: no setting; its type's default, until loading sets it.
macro_rules! settings {
    // A doc comment arrives as `#[doc = ".."]`, so its text can be kept as the description too.
    ($(#[$attribute:meta])* pub(crate) struct $Name:ident {
        $($(#[doc = $doc:literal])* #[setting($($how:tt)*)]
          $(#[cfg_attr($($condition:tt)*)])? $(#[expect($($lint:tt)*)])?
          pub(crate) $field:ident: $Type:ty,)*
    }) => {
        $(#[$attribute])*
        pub(crate) struct $Name {
            $($(#[doc = $doc])* $(#[cfg_attr($($condition)*)])? $(#[expect($($lint)*)])?
              pub(crate) $field: $Type,)*
        }

        $crate::config::key::settings! {
            impl $Name { $($(#[doc = $doc])* #[setting($($how)*)] $field: $Type,)* }
        }
    };
    (impl $Name:ident {
        $($(#[doc = $doc:literal])* #[setting($($how:tt)*)] $field:ident: $Type:ty,)*
    }) => {
        impl $crate::config::key::Section for $Name {
            fn append_keys(prefix: &str, keys: &mut Vec<$crate::config::key::Key>) {
                $($crate::config::key::settings!(
                    @key prefix, keys, $Type, [$($doc),*], $($how)*
                );)*
            }

            fn from_values(
                prefix: &str,
                values: &$crate::config::Values,
            ) -> Result<Self, $crate::error::CliError> {
                Ok(Self { $(
                    $field: $crate::config::key::settings!(@read prefix, values, $Type, $($how)*),
                )* })
            }
        }
    };
    // The list of settings: nothing, those of a section, or one.
    (@key $prefix:ident, $keys:ident, $Type:ty, $doc:tt, skip) => {};
    (@key $prefix:ident, $keys:ident, $Type:ty, $doc:tt, section) => {
        <$Type as $crate::config::key::Section>::append_keys($prefix, $keys)
    };
    (@key $prefix:ident, $keys:ident, $Type:ty, $doc:tt,
        $name:literal $(, $option:ident $(= $value:expr)?)* $(,)?) => {
        $keys.push({
            #[allow(unused_mut, reason = "a setting may have no options")]
            let mut key = $crate::config::key::Key::new::<$Type>(format!("{}{}", $prefix, $name), &$doc);
            $($crate::config::key::settings!(@option key, $option $(= $value)?);)*
            key
        })
    };
    // One option: `range` is a kind, a name alone is a flag, and all others are fields.
    (@option $key:ident, default = $value:expr) => { $key.default = Some(|_| $value.into()) };
    (@option $key:ident, user_default = $value:expr) => { $key.default = Some($value) };
    (@option $key:ident, range = $range:expr) => { $key.kind = $range.into() };
    (@option $key:ident, $option:ident = $value:expr) => { $key.$option = $value.into() };
    (@option $key:ident, $flag:ident) => { $key.$flag = true };
    // The value of a field.
    (@read $prefix:ident, $values:ident, $Type:ty, skip) => { <$Type>::default() };
    (@read $prefix:ident, $values:ident, $Type:ty, section) => {
        <$Type as $crate::config::key::Section>::from_values($prefix, $values)?
    };
    (@read $prefix:ident, $values:ident, $Type:ty, $name:literal $($options:tt)*) => {
        $values.get::<$Type>(&format!("{}{}", $prefix, $name))?
    };
}
pub(super) use settings;

// A list made at run time: the names of providers' settings and of budgets are put together.
/// Every setting, in the order in which `adjutant config show` lists them.
pub(crate) static KEYS: LazyLock<Vec<Key>> = LazyLock::new(keys_of::<Settings>);

/// Returns the settings of a struct, in the order in which they are shown.
pub(super) fn keys_of<S: Section>() -> Vec<Key> {
    let mut keys = Vec::new();
    S::append_keys("", &mut keys);
    keys
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

    /// Returns the name of its variable: `ADJUTANT_SECTION_NAME`.
    pub(crate) fn own_variable(&self) -> String {
        format!(
            "ADJUTANT_{}",
            self.name.replace(['.', '-'], "_").to_uppercase()
        )
    }
}

/// Finds a setting by its section and name, or by its other spelling, which counts in the section
/// and at the top of the file.
pub(super) fn find_key(section: &str, name: &str) -> Option<&'static Key> {
    // Its keys are those of `[vault]`, so a file may have both sections.
    let section = if section == OLD_VAULT_SECTION {
        "vault"
    } else {
        section
    };
    KEYS.iter().find(|key| {
        let (own_section, own_name) = key.section_and_name();
        (own_section == section && own_name == name)
            || (key.alias == Some(name) && (own_section == section || section.is_empty()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_variables_are_unique() {
        let mut seen: Vec<String> = Vec::new();
        for key in KEYS.iter() {
            let (section, _) = key.section_and_name();
            seen.extend([key.name.to_string(), key.own_variable()]);
            seen.extend(key.alias.map(|alias| format!("{section}.{alias}")));
            // Providers of one vendor share its variables.
            seen.extend(key.variable.filter(|_| !key.quiet).map(str::to_owned));
        }
        let all = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), all);
    }
}
