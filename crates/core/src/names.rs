//! Names of enum values: the words by which settings, JSON, databases and logs know them.

/// Implements the conversions between the values of an enum and their names. `$error` is the error
/// for a text that is no name of the enum.
macro_rules! impl_names {
    ($name:ident, $error:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the name in settings, JSON, databases and logs.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $error;
            fn from_str(text: &str) -> Result<Self, $error> {
                let found = Self::ALL.iter().find(|value| value.as_str() == text);
                found.copied().ok_or_else(|| $error(text.to_owned()))
            }
        }
    };
}

pub(crate) use impl_names;
