//! The declaration of settings: `settings!` makes a struct whose fields are settings.
//!
//! A field is everything there is to say about its setting: the doc comment is its description (in
//! `docs/configuration.md` and the JSON Schema), the type says which values fit, and the attribute
//! names it and says where it may come from.

use super::key::Key;
use super::layer::Values;
use crate::error::CliError;

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

        $crate::config::section::settings! {
            impl $Name { $($(#[doc = $doc])* #[setting($($how)*)] $field: $Type,)* }
        }
    };
    (impl $Name:ident {
        $($(#[doc = $doc:literal])* #[setting($($how:tt)*)] $field:ident: $Type:ty,)*
    }) => {
        impl $crate::config::section::Section for $Name {
            fn append_keys(prefix: &str, keys: &mut Vec<$crate::config::key::Key>) {
                $($crate::config::section::settings!(
                    @key prefix, keys, $Type, [$($doc),*], $($how)*
                );)*
            }

            fn from_values(
                prefix: &str,
                values: &$crate::config::layer::Values,
            ) -> Result<Self, $crate::error::CliError> {
                Ok(Self { $(
                    $field: $crate::config::section::settings!(
                        @read prefix, values, $Type, $($how)*
                    ),
                )* })
            }
        }
    };
    // The list of settings: nothing, those of a section, or one.
    (@key $prefix:ident, $keys:ident, $Type:ty, $doc:tt, skip) => {};
    (@key $prefix:ident, $keys:ident, $Type:ty, $doc:tt, section) => {
        <$Type as $crate::config::section::Section>::append_keys($prefix, $keys)
    };
    (@key $prefix:ident, $keys:ident, $Type:ty, $doc:tt,
        $name:literal $(, $option:ident $(= $value:expr)?)* $(,)?) => {
        $keys.push({
            #[allow(unused_mut, reason = "a setting may have no options")]
            let mut key = $crate::config::key::Key::new::<$Type>(format!("{}{}", $prefix, $name), &$doc);
            $($crate::config::section::settings!(@option key, $option $(= $value)?);)*
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
        <$Type as $crate::config::section::Section>::from_values($prefix, $values)?
    };
    (@read $prefix:ident, $values:ident, $Type:ty, $name:literal $($options:tt)*) => {
        $values.get::<$Type>(&format!("{}{}", $prefix, $name))?
    };
}
pub(super) use settings;

/// Returns the settings of a struct, in the order in which they are shown.
pub(super) fn keys_of<S: Section>() -> Vec<Key> {
    let mut keys = Vec::new();
    S::append_keys("", &mut keys);
    keys
}
