//! Every setting there is: its name, what it may be, and where it may come from.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use adjutant_core::{LogContent, limits};
use adjutant_providers::Provider;
use secrecy::{ExposeSecret as _, SecretString};

use super::{Database, Dirs, budget, memory, serve, talks};

/// One setting.
#[derive(Debug)]
pub(crate) struct Key {
    /// `section.key`, or just `key`.
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: Kind,
    /// The seeds' or vendors' variable, beside `ADJUTANT_SECTION_KEY`.
    pub(crate) variable: Option<&'static str>,
    /// Another spelling in TOML, in the same section.
    pub(crate) alias: Option<&'static str>,
    /// Shown only if it has a value: one of the many that every provider has.
    pub(crate) quiet: bool,
    /// Whether a project's `adjutant.toml` may set it. Nothing that sends data elsewhere or loosens
    /// what is asked.
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
    /// Names.
    List,
    /// Names, each with a path; a relative one starts at the configuration file it stands in.
    Paths,
    /// Yes or no.
    Truth,
    /// One of a few words.
    Word(&'static [&'static str]),
    /// An address of numbers, and a port.
    Address,
    /// Where a database is. Not shown where it does not fit, because it may hold a password.
    Database,
    /// A length of time, or [`FOREVER`].
    Keep,
    /// Not shown anywhere.
    Secret,
}

/// A time without end.
pub(crate) const FOREVER: &str = "forever";

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Path(PathBuf),
    Number(f64),
    Integer(u64),
    Duration(Duration),
    List(Vec<String>),
    Paths(BTreeMap<String, PathBuf>),
    Truth(bool),
    Database(Database),
    Secret(Secret),
}

/// Words that are not shown.
#[derive(Debug, Clone)]
pub(crate) struct Secret(pub(crate) SecretString);

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.0.expose_secret() == other.0.expose_secret()
    }
}

const SECOND: Duration = Duration::from_secs(1);
/// Attempts after the first.
pub(crate) const RETRIES: Kind = Kind::Integer { min: 0, max: 10 };
/// Time that nobody may write to an open pipe before a request goes without it.
const INPUT_WAIT: Duration = Duration::from_secs(10);
const DAY: Duration = Duration::from_secs(86_400);
const NONE: fn(&Dirs) -> Option<Value> = |_| None;

/// Every setting, in the order `adjutant config show` lists them.
pub(crate) static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let of_providers = Provider::all().flat_map(of_provider);
    common()
        .into_iter()
        .chain(memory::keys())
        .chain(talks::keys())
        .chain(serve::keys())
        .chain(budget::keys())
        .chain(of_providers)
        .collect()
});

/// Who answers.
pub(crate) const MODEL: &str = "model";

/// Where everything is kept, if not in a file of the usual place.
pub(crate) const DATABASE: &str = "serve.database_url";

/// Connections of one process to PostgreSQL.
const POOL_MAX: u64 = 10;

/// What each provider's section has; see [`of_provider`].
pub(crate) const OF_PROVIDER: [&str; 4] = ["model", "base_url", "timeout", "retries"];

/// The settings that do not belong to one provider.
fn common() -> Vec<Key> {
    vec![
        Key {
            unset: "a key in the environment, else Ollama, else embedded",
            ..key(MODEL, Kind::Text)
        },
        Key {
            unset: "no other model answers in its place",
            ..key("fallback", Kind::List)
        },
        Key {
            default: |dirs| Some(Value::Text(dirs.os_user.clone())),
            ..key("user_name", Kind::Text)
        },
        Key {
            alias: Some("systemPromptPath"),
            unset: "the built-in instruction",
            ..key("system_prompt_path", Kind::Path)
        },
        Key {
            variable: Some("LLM_TEMPERATURE"),
            project: true,
            unset: "0.0, where the model is known to take it",
            ..key("llm.temperature", Kind::Number { min: 0.0, max: 2.0 })
        },
        Key {
            variable: Some("LLM_MAX_TOKENS"),
            project: true,
            unset: "1024; 16384 for an unknown model behind a gateway",
            ..key(
                "llm.max_tokens",
                Kind::Integer {
                    min: 1,
                    max: 1_000_000,
                },
            )
        },
        Key {
            variable: Some("LLM_TIMEOUT"),
            project: true,
            unset: "cloud 30s, or 15m if the model may think; own servers 120s, and 10m before the answer begins",
            ..key(
                "llm.timeout",
                Kind::Duration {
                    min: SECOND,
                    max: DAY,
                },
            )
        },
        Key {
            project: true,
            unset: "cloud 1, Ollama 3, embedded 0",
            ..key("llm.retries", RETRIES)
        },
        Key {
            variable: Some("MAX_TOOL_ITERATIONS"),
            project: true,
            default: |_| Some(Value::Integer(limits::TOOL_ITERATIONS_MAX.into())),
            ..key(
                "agent.max_tool_iterations",
                Kind::Integer { min: 1, max: 100 },
            )
        },
        Key {
            project: true,
            default: |_| Some(Value::Duration(limits::TOOL_TIMEOUT)),
            ..key(
                "agent.tool_timeout",
                Kind::Duration {
                    min: Duration::from_millis(1),
                    max: DAY,
                },
            )
        },
        Key {
            project: true,
            unset: "cloud 120s; own models none",
            ..key(
                "agent.turn_deadline",
                Kind::Duration {
                    min: SECOND,
                    max: DAY,
                },
            )
        },
        Key {
            project: true,
            default: |_| Some(Value::Integer(limits::IDENTICAL_CALLS_MAX.into())),
            ..key(
                "agent.identical_calls_max",
                Kind::Integer { min: 1, max: 100 },
            )
        },
        // The bound of a service's assistant; whoever sets it has it in the terminal too.
        Key {
            project: true,
            unset: "4000; in the terminal what the model can read",
            ..key(
                "agent.message_chars_max",
                Kind::Integer {
                    min: 1,
                    max: 1_048_576,
                },
            )
        },
        Key {
            project: true,
            default: |_| Some(Value::Text("cut".to_owned())),
            ..key("agent.long_message", Kind::Word(&["cut", "refuse"]))
        },
        // 0: old turns are never summarised.
        Key {
            project: true,
            default: |_| Some(Value::Number(limits::SUMMARIZE_AT)),
            ..key("agent.summarize_at", Kind::Number { min: 0.0, max: 1.0 })
        },
        Key {
            project: true,
            default: |_| Some(Value::Duration(limits::CONFIRMATION_EXPIRY)),
            ..key(
                "agent.confirmation_expiry",
                Kind::Duration {
                    min: SECOND,
                    max: Duration::from_secs(365 * 86_400),
                },
            )
        },
        Key {
            default: |_| Some(Value::Truth(true)),
            ..key("agent.control_functions", Kind::Truth)
        },
        Key {
            project: true,
            unset: "destructive tools",
            ..key("agent.confirm", Kind::List)
        },
        Key {
            unset: "tools that are not destructive",
            ..key("agent.allow", Kind::List)
        },
        Key {
            project: true,
            unset: "none",
            ..key("agent.deny", Kind::List)
        },
        Key {
            default: |_| Some(Value::Truth(false)),
            ..key("turns.finish_with_any_model", Kind::Truth)
        },
        Key {
            unset: "the usual one (adjutant models list)",
            ..key("embedded.model", Kind::Text)
        },
        Key {
            quiet: true,
            unset: "localhost",
            ..key("ollama.host", Kind::Text)
        },
        Key {
            quiet: true,
            unset: "11434",
            ..key(
                "ollama.port",
                Kind::Integer {
                    min: 1,
                    max: 65_535,
                },
            )
        },
        Key {
            alias: Some("contextSize"),
            quiet: true,
            project: true,
            unset: "32768",
            ..key(
                "ollama.context_size",
                Kind::Integer {
                    min: 512,
                    max: 16_777_216,
                },
            )
        },
        Key {
            quiet: true,
            unset: "the server's own",
            ..key("ollama.keep_alive", Kind::Text)
        },
        Key {
            quiet: true,
            project: true,
            unset: "as the model likes",
            ..key(
                "ollama.think",
                Kind::Word(&["off", "on", "low", "medium", "high", "max"]),
            )
        },
        Key {
            default: |_| Some(Value::Duration(INPUT_WAIT)),
            ..key(
                "input.wait",
                Kind::Duration {
                    min: Duration::ZERO,
                    max: DAY,
                },
            )
        },
        Key {
            unset: "the built-in table",
            ..key("prices_file", Kind::Path)
        },
        Key {
            default: |dirs| Some(Value::Path(dirs.data.join("adjutant.db"))),
            ..key("store.path", Kind::Path)
        },
        Key {
            default: |_| Some(Value::Integer(POOL_MAX)),
            ..key(
                "database.pool_max",
                Kind::Integer {
                    min: 1,
                    max: 10_000,
                },
            )
        },
        Key {
            unset: "the database's address",
            ..key("database.listen_url", Kind::Database)
        },
        Key {
            project: true,
            default: |_| Some(Value::Text("hide".to_owned())),
            ..key("terminal.thinking", Kind::Word(&["hide", "show"]))
        },
        Key {
            default: |_| Some(Value::Text(FOREVER.to_owned())),
            ..key("log.keep", Kind::Keep)
        },
        Key {
            default: |_| Some(Value::Text(LogContent::Full.to_string())),
            ..key("log.content", Kind::Word(&["full", "redacted", "none"]))
        },
    ]
}

pub(super) fn key(name: &'static str, kind: Kind) -> Key {
    Key {
        name: Cow::Borrowed(name),
        kind,
        variable: None,
        alias: None,
        quiet: false,
        project: false,
        default: NONE,
        unset: "none",
    }
}

/// The settings of one provider, in a section of its name. None of them may stand in a project's
/// file: they say where what is asked goes, and who answers.
fn of_provider(provider: &'static Provider) -> [Key; OF_PROVIDER.len()] {
    OF_PROVIDER.map(|setting| {
        let (kind, variable) = match setting {
            "model" => (Kind::Text, provider.model_variable),
            "base_url" => (Kind::Text, provider.base_url_variable),
            "timeout" => (
                Kind::Duration {
                    min: SECOND,
                    max: DAY,
                },
                None,
            ),
            _ => (RETRIES, None),
        };
        let name = Cow::Owned(format!("{}.{setting}", provider.name));
        Key {
            name,
            variable,
            quiet: true,
            unset: "the provider's own",
            ..key("", kind)
        }
    })
}

impl Key {
    /// The section, empty for a key at the top, and the key in it.
    pub(crate) fn place(&self) -> (&str, &str) {
        self.name.split_once('.').unwrap_or(("", &self.name))
    }

    /// Whether this value is a path that a file reads as one beside itself.
    pub(crate) fn starts_at_its_file(&self, text: &str) -> bool {
        let path = PathBuf::from(text.trim());
        matches!(self.kind, Kind::Path) && path.is_relative() && !path.starts_with("~")
    }

    /// `ADJUTANT_SECTION_KEY`.
    pub(crate) fn own_variable(&self) -> String {
        format!(
            "ADJUTANT_{}",
            self.name.replace(['.', '-'], "_").to_uppercase()
        )
    }
}

impl Kind {
    /// What is expected, as the end of "must be …".
    pub(crate) fn expected(self) -> String {
        match self {
            Self::Text | Self::Secret => "text that is not empty".to_owned(),
            Self::Path => "a path".to_owned(),
            Self::Number { min, max } => format!("a number from {min:?} to {max:?}"),
            Self::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Self::Duration { min, max } => {
                format!(
                    "a time with its unit from {} to {}, such as \"30s\"",
                    duration(min),
                    duration(max)
                )
            }
            Self::List => "a list of names".to_owned(),
            Self::Paths => "a table of names and paths, in text NAME=PATH,NAME=PATH".to_owned(),
            Self::Truth => "true or false".to_owned(),
            Self::Word(words) => words.join(" or "),
            Self::Address => "an address and a port, such as 127.0.0.1:8080".to_owned(),
            Self::Database => Database::EXPECTED.to_owned(),
            Self::Keep => {
                format!("\"{FOREVER}\", or a time with its unit from 1d on, such as \"90d\"")
            }
        }
    }

    /// Returns whether a value can be nothing but a number, a time, or one of a few words.
    pub(crate) fn is_closed(self) -> bool {
        match self {
            Self::Number { .. }
            | Self::Integer { .. }
            | Self::Duration { .. }
            | Self::Truth
            | Self::Word(_)
            | Self::Keep => true,
            Self::Text
            | Self::Path
            | Self::List
            | Self::Paths
            | Self::Address
            | Self::Database
            | Self::Secret => false,
        }
    }

    /// A value that does not fit, as an error shows it.
    pub(crate) fn shown(self, value: &str) -> &str {
        if matches!(self, Self::Database | Self::Secret) {
            "what it is"
        } else {
            value
        }
    }

    /// Reads text, as variables hold it. `bare_seconds`: a number without a unit is seconds.
    pub(crate) fn read(self, text: &str, bare_seconds: bool) -> Option<Value> {
        let text = text.trim();
        let value = match self {
            Self::Text => Value::Text(text.to_owned()),
            Self::Secret => Value::Secret(Secret(text.into())),
            Self::Path => Value::Path(PathBuf::from(text)),
            Self::Number { .. } => Value::Number(text.parse().ok()?),
            Self::Integer { .. } => Value::Integer(text.parse().ok()?),
            Self::Truth => Value::Truth(text.parse().ok()?),
            Self::Duration { .. } if bare_seconds && text.parse::<u64>().is_ok() => {
                Value::Duration(Duration::from_secs(text.parse().ok()?))
            }
            Self::Keep if text != FOREVER => Value::Duration(read_duration(text)?),
            Self::Keep | Self::Word(_) | Self::Address => Value::Text(text.to_owned()),
            Self::Database => Value::Database(Database::parse(text)?),
            Self::Duration { .. } => Value::Duration(read_duration(text)?),
            Self::Paths => {
                let pairs = text
                    .split(',')
                    .filter(|pair| !pair.trim().is_empty())
                    .map(|pair| {
                        let (name, path) = pair.split_once('=')?;
                        Some((name.trim().to_owned(), PathBuf::from(path.trim())))
                    });
                Value::Paths(pairs.collect::<Option<_>>()?)
            }
            Self::List => Value::List(
                text.split(',')
                    .map(|name| name.trim().to_owned())
                    .filter(|name| !name.is_empty())
                    .collect(),
            ),
        };
        self.check(value)
    }

    /// The value, if it is in range.
    pub(crate) fn check(self, value: Value) -> Option<Value> {
        let fits = match (self, &value) {
            (Self::Text, Value::Text(text)) => !text.trim().is_empty(),
            (Self::Secret, Value::Secret(secret)) => !secret.0.expose_secret().trim().is_empty(),
            (Self::Path, Value::Path(path)) => !path.as_os_str().is_empty(),
            (Self::Number { min, max }, Value::Number(number)) => (min..=max).contains(number),
            (Self::Integer { min, max }, Value::Integer(number)) => (min..=max).contains(number),
            (Self::Duration { min, max }, Value::Duration(time)) => (min..=max).contains(time),
            (Self::Paths, Value::Paths(paths)) => paths
                .iter()
                .all(|(name, path)| !name.is_empty() && !path.as_os_str().is_empty()),
            (Self::List, Value::List(_))
            | (Self::Truth, Value::Truth(_))
            | (Self::Database, Value::Database(_)) => true,
            (Self::Word(words), Value::Text(text)) => words.contains(&text.as_str()),
            (Self::Address, Value::Text(text)) => text.parse::<SocketAddr>().is_ok(),
            (Self::Keep, Value::Duration(time)) => *time >= DAY,
            (Self::Keep, Value::Text(text)) => text == FOREVER,
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
            Self::Truth(truth) => write!(f, "{truth}"),
            Self::Duration(time) => f.write_str(&duration(*time)),
            Self::List(names) => f.write_str(&names.join(", ")),
            Self::Paths(paths) => {
                let pairs = paths
                    .iter()
                    .map(|(name, path)| format!("{name}={}", path.display()));
                f.write_str(&pairs.collect::<Vec<_>>().join(", "))
            }
            Self::Database(database) => write!(f, "{database}"),
            Self::Secret(_) => f.write_str("set, not shown"),
        }
    }
}

const UNITS: &[(&str, u64)] = &[
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("min", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// `30s`, `2m`, `7d`: a whole number and its unit.
fn read_duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, ms) = UNITS.iter().find(|(name, _)| *name == unit.trim())?;
    Some(Duration::from_millis(
        number.parse::<u64>().ok()?.checked_mul(*ms)?,
    ))
}

/// Reads a time with its unit, as an option says it.
///
/// # Errors
/// In words: it is none.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    read_duration(text).ok_or_else(|| "a time with its unit is needed, such as 30s".to_owned())
}

/// Returns a time with its unit, as it is read.
pub(crate) fn duration(time: Duration) -> String {
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
                kind.read(text, false),
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
            assert_eq!(kind.read(text, false), None, "{text}");
        }
        assert_eq!(
            kind.read("30", true),
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
        for key in KEYS.iter() {
            let (section, _) = key.place();
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
