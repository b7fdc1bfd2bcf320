//! Types of settings: which values fit, how they are parsed from text and from TOML, how they are
//! shown, and how a field of a settings struct is read from them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use adjutant_core::{Cost, MaxTokens, Temperature, WindowShare};
use adjutant_memory::{Daily, LOCALES, Locale};
use secrecy::{ExposeSecret as _, SecretString};
use toml::de::DeValue;

use super::database::Database;
use super::dirs::expand_home;

/// The values that a setting may have.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Text,
    /// A path; a relative one starts at the configuration file it stands in.
    Path,
    Number {
        min: f64,
        max: f64,
    },
    Integer {
        min: u64,
        max: u64,
    },
    /// A length of time with its unit.
    Duration {
        min: Duration,
        max: Duration,
    },
    /// A length of time of a day or more, or [`FOREVER`].
    DurationOrForever,
    /// A list of names.
    List,
    /// Names, each with a path; a relative one starts at the configuration file it stands in.
    Paths,
    /// Names, each with a text. Errors do not show the texts, because they may be secret.
    Texts,
    Boolean,
    /// One of these names.
    OneOf(&'static [&'static str]),
    /// An IP address and a port.
    Address,
    /// The address of a database. Errors do not show it, because it may hold a password.
    Database,
    /// Text that is never shown.
    Secret,
}

/// The text for a length of time without end.
pub(crate) const FOREVER: &str = "forever";

/// The value of one setting, before it becomes a field of its own type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Path(PathBuf),
    Number(f64),
    Integer(u64),
    Duration(Duration),
    List(Vec<String>),
    // Sorted, so that it is shown in the same order each time.
    Paths(BTreeMap<String, PathBuf>),
    Texts(BTreeMap<String, String>),
    Boolean(bool),
    Database(Database),
    Secret(Secret),
}

/// Text that is never shown.
#[derive(Debug, Clone)]
pub(crate) struct Secret(pub(crate) SecretString);

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.0.expose_secret() == other.0.expose_secret()
    }
}

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const DAY: Duration = Duration::from_secs(86_400);

impl Kind {
    /// Describes the values that fit, as the end of "must be …".
    pub(crate) fn expected(self) -> String {
        match self {
            Self::Text | Self::Secret => "text that is not empty".to_owned(),
            Self::Path => "a path".to_owned(),
            Self::Number { min, max } => format!("a number from {min:?} to {max:?}"),
            Self::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Self::Duration { min, max } => format!(
                "a time with its unit from {} to {}, such as \"30s\"",
                format_duration(min),
                format_duration(max)
            ),
            Self::DurationOrForever => {
                format!("\"{FOREVER}\", or a time with its unit from 1d on, such as \"90d\"")
            }
            Self::List => "a list of names".to_owned(),
            Self::Paths => "a table of names and paths, in text NAME=PATH,NAME=PATH".to_owned(),
            Self::Texts => "a table of names and texts".to_owned(),
            Self::Boolean => "true or false".to_owned(),
            Self::OneOf(names) => names.join(" or "),
            Self::Address => "an address and a port, such as 127.0.0.1:8080".to_owned(),
            Self::Database => Database::EXPECTED.to_owned(),
        }
    }

    /// Returns true if every value that fits is a number, a time, or one of a few names: such a
    /// value tells nothing private and may stand in a bug report.
    pub(crate) fn is_closed(self) -> bool {
        matches!(
            self,
            Self::Number { .. }
                | Self::Integer { .. }
                | Self::Duration { .. }
                | Self::DurationOrForever
                | Self::Boolean
                | Self::OneOf(_)
        )
    }

    /// Returns a value that does not fit as an error may show it: nothing of what may be secret.
    pub(crate) fn show_rejected(self, value: &str) -> &str {
        if matches!(self, Self::Database | Self::Secret | Self::Texts) {
            "what it is"
        } else {
            value
        }
    }

    /// Parses the text of a variable or of the command line. `None`: it does not fit.
    ///
    /// `bare_seconds`: a number without a unit is a number of seconds.
    pub(crate) fn parse(self, text: &str, bare_seconds: bool) -> Option<Value> {
        // A line of a `.env` file or a shell script easily ends in a blank.
        let text = text.trim();
        self.fit(match self {
            Self::Number { .. } => Value::Number(text.parse().ok()?),
            Self::Integer { .. } => Value::Integer(text.parse().ok()?),
            Self::Boolean => Value::Boolean(text.parse().ok()?),
            Self::List => Value::List(names(text).map(str::to_owned).collect()),
            Self::Duration { .. } if bare_seconds && text.parse::<u64>().is_ok() => {
                Value::Text(format!("{}s", text.trim_start_matches('+')))
            }
            _ => Value::Text(text.to_owned()),
        })
    }

    /// Converts a value of a TOML file. `Err`: it does not fit; the value as an error may show it.
    pub(super) fn parse_toml(self, value: &DeValue<'_>) -> Result<Value, String> {
        self.convert_toml(value)
            .and_then(|value| self.fit(value))
            .ok_or_else(|| self.show_rejected(&show_toml(value)).to_owned())
    }

    /// Converts a value of a TOML file by its own type. `None`: no setting has such values.
    pub(super) fn convert_toml(self, value: &DeValue<'_>) -> Option<Value> {
        Some(match value {
            // Blanks in the quotes of a text or a path are meant, which they are not in a variable.
            DeValue::String(text) if matches!(self, Self::Text | Self::Path) => {
                Value::Text(text.to_string())
            }
            DeValue::String(text) => Value::Text(text.trim().to_owned()),
            DeValue::Float(number) => Value::Number(number.as_str().parse().ok()?),
            // `1` is a number too; `0x1` for a temperature is most likely a mistake.
            DeValue::Integer(number)
                if matches!(self, Self::Number { .. }) && number.radix() == 10 =>
            {
                Value::Number(number.as_str().parse().ok()?)
            }
            // The parser keeps the digits as text, with the base (`0x10`) apart.
            DeValue::Integer(number) => {
                Value::Integer(u64::from_str_radix(number.as_str(), number.radix()).ok()?)
            }
            DeValue::Boolean(value) => Value::Boolean(*value),
            DeValue::Array(names) => Value::List(
                names
                    .iter()
                    .map(|name| Some(name.get_ref().as_str()?.to_owned()))
                    .collect::<Option<_>>()?,
            ),
            DeValue::Table(texts) => Value::Texts(
                texts
                    .iter()
                    .map(|(name, text)| {
                        Some((
                            name.get_ref().to_string(),
                            text.get_ref().as_str()?.to_owned(),
                        ))
                    })
                    .collect::<Option<_>>()?,
            ),
            DeValue::Datetime(_) => return None,
        })
    }

    /// Checks that a value is of this kind and in range; text becomes what it stands for. `None`:
    /// it does not fit.
    fn fit(self, value: Value) -> Option<Value> {
        let fits = match (self, &value) {
            (Self::Text, Value::Text(text)) => !text.trim().is_empty(),
            (Self::OneOf(names), Value::Text(text)) => names.contains(&text.as_str()),
            (Self::Address, Value::Text(text)) => text.parse::<SocketAddr>().is_ok(),
            (Self::Number { min, max }, Value::Number(number)) => (min..=max).contains(number),
            (Self::Integer { min, max }, Value::Integer(number)) => (min..=max).contains(number),
            (Self::DurationOrForever, Value::Text(text)) if text == FOREVER => true,
            (Self::List, Value::List(_))
            | (Self::Texts, Value::Texts(_))
            | (Self::Boolean, Value::Boolean(_)) => true,
            (Self::Paths, Value::Texts(texts)) => {
                let path = |(name, path): (&String, &String)| (name.clone(), path.into());
                let empty = |(name, path): (&String, &String)| name.is_empty() || path.is_empty();
                let paths = texts.iter().map(path).collect();
                return (!texts.iter().any(empty)).then_some(Value::Paths(paths));
            }
            (_, Value::Text(text)) => return self.fit_text(text),
            _ => false,
        };
        fits.then_some(value)
    }

    /// Converts text that stands for a value of another type.
    fn fit_text(self, text: &str) -> Option<Value> {
        match self {
            Self::Path => (!text.is_empty()).then(|| Value::Path(text.into())),
            Self::Secret => (!text.is_empty()).then(|| Value::Secret(Secret(text.into()))),
            Self::Database => Database::parse(text).map(Value::Database),
            Self::Duration { min, max } => duration_with_unit(text)
                .filter(|time| (min..=max).contains(time))
                .map(Value::Duration),
            Self::DurationOrForever => duration_with_unit(text)
                .filter(|time| *time >= DAY)
                .map(Value::Duration),
            Self::Paths => {
                let pairs = names(text).map(|pair| {
                    let (name, path) = pair.split_once('=')?;
                    Some((name.trim().to_owned(), path.trim().to_owned()))
                });
                self.fit(Value::Texts(pairs.collect::<Option<_>>()?))
            }
            _ => None,
        }
    }
}

/// Formats a value for an error.
pub(super) fn show_toml(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(_) => "this list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// Splits text at its commas; empty parts count for nothing.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Path(path) => write!(f, "{}", path.display()),
            // With a point even if it is whole, as it is written into a file.
            Self::Number(number) => write!(f, "{number:?}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Duration(time) => f.write_str(&format_duration(*time)),
            Self::List(names) => f.write_str(&names.join(", ")),
            Self::Paths(paths) => {
                let pairs = paths
                    .iter()
                    .map(|(name, path)| format!("{name}={}", path.display()));
                f.write_str(&pairs.collect::<Vec<_>>().join(", "))
            }
            Self::Texts(texts) => {
                let pairs = texts.iter().map(|(name, text)| format!("{name} = {text}"));
                f.write_str(&pairs.collect::<Vec<_>>().join(", "))
            }
            Self::Database(database) => write!(f, "{database}"),
            Self::Secret(_) => f.write_str("set, not shown"),
        }
    }
}

/// The type of a field that a setting is read into.
pub(super) trait SettingType: Sized {
    /// The values that fit, unless the setting says it more narrowly (`range`, `kind`).
    const KIND: Kind;

    /// Converts a value that fits the setting. `None`: it stands for no value of this type, as
    /// `forever` does for a time and `auto` for a language.
    fn from_value(value: &Value) -> Option<Self>;

    /// Returns what the field is without a value. `None`: the setting has to have a default.
    fn from_unset() -> Option<Self> {
        None
    }
}

impl<T: SettingType> SettingType for Option<T> {
    const KIND: Kind = T::KIND;

    fn from_value(value: &Value) -> Option<Self> {
        Some(T::from_value(value))
    }

    fn from_unset() -> Option<Self> {
        Some(None)
    }
}

/// Implements [`SettingType`] for a type: its kind, and the value that becomes one.
macro_rules! setting_type {
    ($type:ty, $kind:expr, $pattern:pat => $value:expr $(, unset $unset:expr)?) => {
        impl $crate::config::value::SettingType for $type {
            const KIND: $crate::config::value::Kind = $kind;

            fn from_value(value: &$crate::config::value::Value) -> Option<Self> {
                if let $pattern = value { $value } else { None }
            }

            $(fn from_unset() -> Option<Self> {
                Some($unset)
            })?
        }
    };
}

pub(super) use setting_type;

// The bound of a `u32` for all: there is no setting that needs more.
const WHOLE: Kind = Kind::Integer {
    min: 0,
    max: u32::MAX as u64,
};

setting_type!(String, Kind::Text, Value::Text(text) => Some(text.clone()));
setting_type!(PathBuf, Kind::Path, Value::Path(path) => Some(path.clone()));
setting_type!(u16, WHOLE, Value::Integer(number) => u16::try_from(*number).ok());
setting_type!(u32, WHOLE, Value::Integer(number) => u32::try_from(*number).ok());
setting_type!(u64, WHOLE, Value::Integer(number) => Some(*number));
setting_type!(bool, Kind::Boolean, Value::Boolean(value) => Some(*value));
setting_type!(Database, Kind::Database, Value::Database(database) => Some(database.clone()));
setting_type!(SecretString, Kind::Secret, Value::Secret(secret) => Some(secret.0.clone()));
setting_type!(SocketAddr, Kind::Address, Value::Text(text) => text.parse().ok());
setting_type!(Daily, Kind::Text, Value::Text(text) => text.parse().ok());
setting_type!(Locale, Kind::OneOf(&LANGUAGES), Value::Text(code) => code.parse().ok());
setting_type!(
    NonZeroU32, Kind::Integer { min: 1, max: 1_000_000 },
    Value::Integer(number) => u32::try_from(*number).ok().and_then(Self::new)
);
setting_type!(
    Duration, Kind::Duration { min: SECOND, max: DAY },
    Value::Duration(time) => Some(*time)
);
setting_type!(
    Temperature, Kind::Number { min: 0.0, max: 2.0 },
    Value::Number(number) => Self::new(*number).ok()
);
setting_type!(
    MaxTokens, Kind::Integer { min: 1, max: 1_000_000 },
    Value::Integer(number) => u32::try_from(*number).ok().and_then(|max| Self::new(max).ok())
);
// 0 stands for never. A share that is smaller than the smallest useful one is taken for that one.
setting_type!(
    WindowShare, Kind::Number { min: 0.0, max: 1.0 },
    Value::Number(share) => (*share > 0.0).then(|| Self::new(share.max(0.1)).ok()).flatten()
);
setting_type!(
    Cost, Kind::Number { min: 0.0, max: 1e9 },
    Value::Number(dollars) => Self::from_usd(*dollars)
);
setting_type!(
    Vec<String>, Kind::List,
    Value::List(names) => Some(names.clone()), unset Self::new()
);
setting_type!(
    BTreeMap<String, String>, Kind::Texts,
    Value::Texts(texts) => Some(texts.clone()), unset Self::new()
);
setting_type!(
    BTreeMap<String, PathBuf>, Kind::Paths,
    // Paths of a file are expanded when the file is read, those of a variable are not.
    Value::Paths(paths) => Some(
        paths.iter().map(|(name, path)| (name.clone(), expand_home(path.clone()))).collect()
    ),
    unset Self::new()
);

// A loop, because a `const` cannot call an iterator.
/// Values of a setting of type [`Locale`]: a language, or the one that the notes are named in.
const LANGUAGES: [&str; LOCALES.len() + 1] = {
    let mut names = ["auto"; LOCALES.len() + 1];
    let mut at = 0;
    while at < LOCALES.len() {
        names[at + 1] = LOCALES[at];
        at += 1;
    }
    names
};

/// Implements [`SettingType`] for an enum: the name of each variant. The names are part of the
/// settings' interface: a variant may be renamed, its name may not.
macro_rules! choices {
    ($($type:ty { $($name:literal => $variant:ident),+ })+) => { $(
        $crate::config::value::setting_type!(
            $type, $crate::config::value::Kind::OneOf(&[$($name),+]),
            $crate::config::value::Value::Text(text) => match text.as_str() {
                $($name => Some(Self::$variant),)+
                _ => None,
            }
        );
    )+ };
}

pub(super) use choices;

/// Implements the conversion of defaults, as they stand in a settings struct, into values.
macro_rules! default_value {
    ($($type:ty => $variant:ident),+) => { $(
        impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        }
    )+ };
}

default_value!(&str => Text, String => Text, PathBuf => Path, f64 => Number, u32 => Integer);
default_value!(u64 => Integer, Duration => Duration, bool => Boolean);

impl From<NonZeroU32> for Value {
    fn from(number: NonZeroU32) -> Self {
        number.get().into()
    }
}

/// Implements the conversion of ranges, as they stand in a settings struct, into kinds.
macro_rules! range_kind {
    ($($type:ty => $variant:ident),+) => { $(
        impl From<RangeInclusive<$type>> for Kind {
            fn from(range: RangeInclusive<$type>) -> Self {
                let (min, max) = range.into_inner();
                Self::$variant { min, max }
            }
        }
    )+ };
}

range_kind!(f64 => Number, u64 => Integer, Duration => Duration);

/// Units of time and their milliseconds. Of two names of a unit, the later one is written.
const UNITS: &[(&str, u64)] = &[
    ("ms", 1),
    ("s", 1_000),
    ("min", 60_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// Parses a whole number and its unit, such as `30s`, `2m` and `7d`.
fn duration_with_unit(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    // `30 s` is accepted as well as `30s`; a sign or a fraction is not.
    let (number, unit) = text.split_at(digits);
    let (_, ms) = UNITS.iter().find(|(name, _)| *name == unit.trim())?;
    let ms = number.parse::<u64>().ok()?.checked_mul(*ms)?;
    Some(Duration::from_millis(ms))
}

/// Parses a length of time with its unit, as options of the command line have it.
///
/// # Errors
/// The text is not a whole number and a unit; the error is the message for the person.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    duration_with_unit(text).ok_or_else(|| "a time with its unit is needed, such as 30s".to_owned())
}

/// Formats a length of time in the largest unit that it is a whole number of, as it is parsed.
pub(crate) fn format_duration(time: Duration) -> String {
    // Settings are parsed from milliseconds in a `u64`, so a greater time comes from nowhere.
    let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    if ms == 0 {
        // It is a whole number of days too, and `0d` is odd.
        return "0s".to_owned();
    }
    let unit = UNITS.iter().rev().find(|(_, unit)| ms % unit == 0);
    let (name, unit) = unit.unwrap_or(&("ms", 1));
    format!("{}{name}", ms / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_carry_a_unit() {
        let kind = Kind::Duration {
            min: SECOND,
            max: DAY,
        };
        for (text, seconds) in [
            ("30s", 30),
            ("2m", 120),
            ("2 min", 120),
            ("1h", 3600),
            ("1d", 86_400),
        ] {
            assert_eq!(
                kind.parse(text, false),
                Some(Value::Duration(Duration::from_secs(seconds))),
                "{text}"
            );
        }
        for text in [
            "30",
            "",
            "s",
            "-1s",
            "1.5s",
            "999ms",
            "2d",
            "1w",
            "99999999999999999999s",
        ] {
            assert_eq!(kind.parse(text, false), None, "{text}");
        }
        assert_eq!(
            kind.parse("30", true),
            Some(Value::Duration(Duration::from_secs(30)))
        );
    }

    #[test]
    fn times_are_shown_as_they_are_written() {
        let kind = Kind::Duration {
            min: Duration::ZERO,
            max: DAY * 7,
        };
        for text in ["30s", "2m", "1h", "7d", "1500ms", "90s"] {
            assert_eq!(kind.parse(text, false).unwrap().to_string(), text);
        }
    }

    #[test]
    fn numbers_keep_their_range() {
        let kind = Kind::Number { min: 0.0, max: 2.0 };
        assert_eq!(kind.parse("0.5", false), Some(Value::Number(0.5)));
        for text in ["2.1", "-0.1", "NaN", "warm"] {
            assert_eq!(kind.parse(text, false), None, "{text}");
        }
    }
}
