//! Every setting there is: its name, what it may be, and where it may come from.

use std::path::PathBuf;
use std::time::Duration;

use adjutant_core::limits;

use super::Dirs;

/// One setting.
#[derive(Debug)]
pub(crate) struct Key {
    /// `section.key`, or just `key`.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// The seeds' or vendors' variable, beside `ADJUTANT_SECTION_KEY`.
    pub(crate) variable: Option<&'static str>,
    /// Another spelling in TOML.
    pub(crate) alias: Option<&'static str>,
    /// Whether a project's `adjutant.toml` may set it. Nothing that sends data elsewhere or loosens what is asked.
    pub(crate) project: bool,
    pub(crate) default: fn(&Dirs) -> Option<Value>,
    /// What applies if there is no value, in words.
    pub(crate) unset: &'static str,
}

/// What a value may be.
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
    /// Names of tools.
    List,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Path(PathBuf),
    Number(f64),
    Integer(u64),
    Duration(Duration),
    List(Vec<String>),
}

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);
const NONE: fn(&Dirs) -> Option<Value> = |_| None;

/// Every setting, in the order `adjutant config show` lists them.
pub(crate) const KEYS: &[Key] = &[
    Key { unset: "a key in the environment, else embedded", ..key("model", Kind::Text) },
    Key { default: |dirs| Some(Value::Text(dirs.os_user.clone())), ..key("user_name", Kind::Text) },
    Key {
        alias: Some("systemPromptPath"),
        unset: "the built-in instruction",
        ..key("system_prompt_path", Kind::Path)
    },
    Key {
        variable: Some("LLM_TEMPERATURE"),
        project: true,
        unset: "0.0, where the model takes it",
        ..key("llm.temperature", Kind::Number { min: 0.0, max: 2.0 })
    },
    Key {
        variable: Some("LLM_MAX_TOKENS"),
        project: true,
        unset: "1024",
        ..key("llm.max_tokens", Kind::Integer { min: 1, max: 1_000_000 })
    },
    Key {
        variable: Some("LLM_TIMEOUT"),
        project: true,
        unset: "cloud 30s, embedded 120s",
        ..key("llm.timeout", Kind::Duration { min: SECOND, max: DAY })
    },
    Key {
        project: true,
        unset: "cloud 1, embedded 0",
        ..key("llm.retries", Kind::Integer { min: 0, max: 10 })
    },
    Key {
        variable: Some("MAX_TOOL_ITERATIONS"),
        project: true,
        default: |_| Some(Value::Integer(limits::TOOL_ITERATIONS_MAX.into())),
        ..key("agent.max_tool_iterations", Kind::Integer { min: 1, max: 100 })
    },
    Key {
        project: true,
        default: |_| Some(Value::Duration(limits::TOOL_TIMEOUT)),
        ..key("agent.tool_timeout", Kind::Duration { min: Duration::from_millis(1), max: DAY })
    },
    Key {
        project: true,
        unset: "120s; on this machine's own models 600s",
        ..key("agent.turn_deadline", Kind::Duration { min: SECOND, max: DAY })
    },
    Key {
        project: true,
        default: |_| Some(Value::Integer(limits::IDENTICAL_CALLS_MAX.into())),
        ..key("agent.identical_calls_max", Kind::Integer { min: 1, max: 100 })
    },
    Key {
        project: true,
        default: |_| Some(Value::Duration(limits::CONFIRMATION_EXPIRY)),
        ..key(
            "agent.confirmation_expiry",
            Kind::Duration { min: SECOND, max: Duration::from_secs(365 * 86_400) },
        )
    },
    Key { project: true, unset: "destructive tools", ..key("agent.confirm", Kind::List) },
    Key { unset: "tools that are not destructive", ..key("agent.allow", Kind::List) },
    Key { project: true, unset: "none", ..key("agent.deny", Kind::List) },
    Key {
        variable: Some("GEMINI_MODEL"),
        unset: "the vendor's current Flash model",
        ..key("gemini.model", Kind::Text)
    },
    Key {
        variable: Some("GEMINI_BASE_URL"),
        unset: "the vendor's own",
        ..key("gemini.base_url", Kind::Text)
    },
    Key { unset: "the usual one (adjutant models list)", ..key("embedded.model", Kind::Text) },
    Key { default: |dirs| Some(Value::Path(dirs.data.join("adjutant.db"))), ..key("store.path", Kind::Path) },
];

const fn key(name: &'static str, kind: Kind) -> Key {
    Key { name, kind, variable: None, alias: None, project: false, default: NONE, unset: "none" }
}

impl Key {
    /// The section, empty for a key at the top, and the key in it.
    pub(crate) fn place(&self) -> (&'static str, &'static str) {
        self.name.split_once('.').unwrap_or(("", self.name))
    }

    /// `ADJUTANT_SECTION_KEY`.
    pub(crate) fn own_variable(&self) -> String {
        format!("ADJUTANT_{}", self.name.replace('.', "_").to_uppercase())
    }
}

impl Kind {
    /// What is expected, as the end of "must be …".
    pub(crate) fn expected(self) -> String {
        match self {
            Self::Text => "text that is not empty".to_owned(),
            Self::Path => "a path".to_owned(),
            Self::Number { min, max } => format!("a number from {min:?} to {max:?}"),
            Self::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Self::Duration { min, max } => {
                format!("a time with its unit from {} to {}, such as \"30s\"", duration(min), duration(max))
            }
            Self::List => "a list of tool names".to_owned(),
        }
    }

    /// Reads text, as variables hold it. `bare_seconds`: a number without a unit is seconds.
    pub(crate) fn read(self, text: &str, bare_seconds: bool) -> Option<Value> {
        let text = text.trim();
        let value = match self {
            Self::Text => Value::Text(text.to_owned()),
            Self::Path => Value::Path(PathBuf::from(text)),
            Self::Number { .. } => Value::Number(text.parse().ok()?),
            Self::Integer { .. } => Value::Integer(text.parse().ok()?),
            Self::Duration { .. } if bare_seconds && text.parse::<u64>().is_ok() => {
                Value::Duration(Duration::from_secs(text.parse().ok()?))
            }
            Self::Duration { .. } => Value::Duration(read_duration(text)?),
            Self::List => Value::List(
                text.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect(),
            ),
        };
        self.check(value)
    }

    /// The value, if it is in range.
    pub(crate) fn check(self, value: Value) -> Option<Value> {
        let fits = match (self, &value) {
            (Self::Text, Value::Text(text)) => !text.trim().is_empty(),
            (Self::Path, Value::Path(path)) => !path.as_os_str().is_empty(),
            (Self::Number { min, max }, Value::Number(number)) => (min..=max).contains(number),
            (Self::Integer { min, max }, Value::Integer(number)) => (min..=max).contains(number),
            (Self::Duration { min, max }, Value::Duration(time)) => (min..=max).contains(time),
            (Self::List, Value::List(_)) => true,
            _ => false,
        };
        fits.then_some(value)
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Number(number) => write!(f, "{number:?}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Duration(time) => f.write_str(&duration(*time)),
            Self::List(names) => f.write_str(&names.join(", ")),
        }
    }
}

const UNITS: &[(&str, u64)] =
    &[("ms", 1), ("s", 1_000), ("m", 60_000), ("min", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// `30s`, `2m`, `7d`: a whole number and its unit.
fn read_duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, ms) = UNITS.iter().find(|(name, _)| *name == unit.trim())?;
    Some(Duration::from_millis(number.parse::<u64>().ok()?.checked_mul(*ms)?))
}

fn duration(time: Duration) -> String {
    let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    match ms {
        0 => "0s".to_owned(),
        _ if ms % 86_400_000 == 0 => format!("{}d", ms / 86_400_000),
        _ if ms % 3_600_000 == 0 => format!("{}h", ms / 3_600_000),
        _ if ms % 60_000 == 0 => format!("{}m", ms / 60_000),
        _ if ms % 1_000 == 0 => format!("{}s", ms / 1_000),
        _ => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_carry_a_unit() {
        let kind = Kind::Duration { min: SECOND, max: DAY };
        for (text, seconds) in [("30s", 30), ("2m", 120), ("2 min", 120), ("1h", 3600), ("1d", 86_400)] {
            assert_eq!(kind.read(text, false), Some(Value::Duration(Duration::from_secs(seconds))), "{text}");
        }
        for text in ["30", "", "s", "-1s", "1.5s", "999ms", "2d", "1w", "99999999999999999999s"] {
            assert_eq!(kind.read(text, false), None, "{text}");
        }
        assert_eq!(kind.read("30", true), Some(Value::Duration(Duration::from_secs(30))));
    }

    #[test]
    fn times_are_shown_as_they_are_written() {
        let kind = Kind::Duration { min: Duration::ZERO, max: DAY * 7 };
        for text in ["30s", "2m", "1h", "7d", "1500ms", "90s"] {
            assert_eq!(kind.read(text, false).unwrap().to_string(), text);
        }
    }

    #[test]
    fn numbers_keep_their_range() {
        let kind = Kind::Number { min: 0.0, max: 2.0 };
        assert_eq!(kind.read("0.5", false), Some(Value::Number(0.5)));
        for text in ["2.1", "-0.1", "NaN", "warm"] {
            assert_eq!(kind.read(text, false), None, "{text}");
        }
    }

    #[test]
    fn names_and_variables_are_unique() {
        let mut seen: Vec<String> = Vec::new();
        for key in KEYS {
            seen.extend([key.name.to_owned(), key.own_variable()]);
            seen.extend(key.variable.into_iter().chain(key.alias).map(str::to_owned));
        }
        let all = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), all);
    }
}
