//! One source of settings at a time: a TOML file, a set of variables. Each value knows where it
//! came from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use adjutant_core::nearest;
use adjutant_providers::Provider;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::key::{KEYS, Key, Kind, Value};
use super::{Database, mcp, memory};
use crate::error::CliError;

/// Where a value came from.
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
    Flag(&'static str),
}

impl Origin {
    /// Returns the file it is from, if it is from one.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::File { path, .. }
            | Self::Variable {
                file: Some(path), ..
            } => Some(path),
            Self::Default | Self::Variable { file: None, .. } | Self::Flag(_) => None,
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

/// What one source says.
pub(crate) type Layer = Vec<(&'static Key, Value, Origin)>;

/// Whose file it is: a project's may set less, until its person has trusted it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Owner {
    User,
    Trusted,
    Project,
}

/// What a file says.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) layer: Layer,
    /// What it says and may not, because nobody has trusted it.
    pub(crate) unused: Vec<String>,
}

impl Parsed {
    /// What its person should know about what is not used.
    pub(crate) fn not_trusted(&self, path: &Path) -> Option<String> {
        (!self.unused.is_empty()).then(|| {
            format!(
                "{} is not trusted, so this of it is not used: {} (adjutant config trust)",
                path.display(),
                self.unused.join(", ")
            )
        })
    }
}

/// Reads a TOML file's text.
///
/// # Errors
/// Not TOML, an unknown key, a value that does not fit: with file, line and column.
pub(crate) fn toml(text: &str, path: &Path, owner: Owner) -> Result<Parsed, CliError> {
    let file = File { text, path };
    let table = DeTable::parse(text).map_err(|error| {
        let (line, column) = error
            .span()
            .map_or((1, 1), |span| file.position(span.start));
        CliError::configuration(format!("{}:{line}:{column} is not TOML", path.display()))
            .because(error.message().to_owned())
    })?;
    let mut parsed = Parsed::default();
    for (name, value) in table.get_ref() {
        let at = name.span().start;
        match value.get_ref() {
            // Servers have names of their own: they are read apart.
            DeValue::Table(_) if name.get_ref() == mcp::SECTION => {
                if owner == Owner::Project {
                    parsed.unused.push("mcp.servers".to_owned());
                }
            }
            DeValue::Table(section) if is_section(name.get_ref()) => {
                for (key, value) in section {
                    let at = key.span().start;
                    let known = find(name.get_ref(), key.get_ref())
                        .ok_or_else(|| file.unknown(at, name.get_ref(), key.get_ref()))?;
                    file.read(&mut parsed, known, at, value, owner)?;
                }
            }
            _ => {
                let known =
                    find("", name.get_ref()).ok_or_else(|| file.unknown(at, "", name.get_ref()))?;
                file.read(&mut parsed, known, at, value, owner)?;
            }
        }
    }
    Ok(parsed)
}

/// Takes settings from variables. `file`: where they are from, if not from the process.
///
/// # Errors
/// A value that does not fit, with the variable's name and what it may be.
pub(crate) fn variables(
    variables: &BTreeMap<String, String>,
    file: Option<&Path>,
) -> Result<Layer, CliError> {
    let mut layer = Layer::new();
    for key in KEYS.iter() {
        let own = key.own_variable();
        // Our own name is the more specific one, so it wins; an empty variable is as good as none.
        let names = [Some(own.as_str()), key.variable];
        let Some((name, text)) = names.into_iter().flatten().find_map(|name| {
            let text = variables.get(name)?;
            (!text.trim().is_empty()).then_some((name, text))
        }) else {
            continue;
        };
        let bare_seconds = key.variable == Some(name);
        let origin = Origin::Variable {
            name: name.to_owned(),
            file: file.map(Path::to_owned),
        };
        let value = key.kind.read(text, bare_seconds).ok_or_else(|| {
            let expected = match key.kind {
                Kind::Duration { .. } if bare_seconds => key
                    .kind
                    .expected()
                    .replace("a time with its unit", "a number of seconds"),
                kind => kind.expected(),
            };
            let shown = format!("{text:?}");
            CliError::configuration(format!(
                "{name} must be {expected}, not {}",
                key.kind.shown(&shown)
            ))
            .because(format!("from {origin}"))
        })?;
        layer.push((key, value, origin));
    }
    Ok(layer)
}

/// Variables of ours that name no setting, each with the nearest that does.
pub(crate) fn misspelt(variables: &BTreeMap<String, String>) -> Vec<String> {
    let own = KEYS.iter().map(Key::own_variable);
    let known: Vec<String> = own
        .chain(
            KEYS.iter()
                .filter_map(|key| key.variable.map(str::to_owned)),
        )
        .collect();
    variables
        .keys()
        // Read by the crash tests, in builds that have them.
        .filter(|name| name.starts_with("ADJUTANT_") && *name != "ADJUTANT_KILL_AT")
        .filter(|name| !known.contains(name))
        .map(
            |name| match nearest(name, known.iter().map(String::as_str)) {
                Some(near) => format!("variable {name} is no setting; did you mean {near}?"),
                None => format!("variable {name} is no setting (adjutant config show)"),
            },
        )
        .collect()
}

fn is_section(name: &str) -> bool {
    name == memory::OLD_SECTION || KEYS.iter().any(|key| key.place().0 == name)
}

/// The setting that a file calls so. The seeds' spellings count in their section and at the top,
/// where the seeds have them.
pub(super) fn find(section: &str, name: &str) -> Option<&'static Key> {
    let section = if section == memory::OLD_SECTION {
        "vault"
    } else {
        section
    };
    KEYS.iter().find(|key| {
        let (of, plain) = key.place();
        (of == section && plain == name)
            || (key.alias == Some(name) && (of == section || section.is_empty()))
    })
}

/// A file as errors name it.
pub(super) struct File<'a> {
    pub(super) text: &'a str,
    pub(super) path: &'a Path,
}

impl File<'_> {
    fn read(
        &self,
        parsed: &mut Parsed,
        key: &'static Key,
        key_at: usize,
        value: &Spanned<DeValue<'_>>,
        owner: Owner,
    ) -> Result<(), CliError> {
        if owner == Owner::Project && !key.project {
            parsed.unused.push(key.name.to_string());
            return Ok(());
        }
        let line = self.position(key_at).0;
        // TOML refuses the same spelling twice; this is the other one.
        let before = parsed
            .layer
            .iter()
            .find(|(other, ..)| other.name == key.name);
        if let (Some((_, _, Origin::File { line, .. })), Some(alias)) = (before, key.alias) {
            return Err(
                CliError::configuration(format!("{} is set twice", key.name))
                    .because(format!(
                        "{} and line {line}: {alias} is another name of it",
                        self.place(key_at)
                    ))
                    .or_try("leave one of them out"),
            );
        }
        let read = convert(key.kind, value.get_ref()).and_then(|value| key.kind.check(value));
        let Some(read) = read else {
            return Err(CliError::configuration(format!(
                "{} must be {}, not {}",
                key.name,
                key.kind.expected(),
                key.kind.shown(&shown(value.get_ref()))
            ))
            .because(self.place(value.span().start)));
        };
        let read = match read {
            Value::Path(path) => Value::Path(self.beside(path)),
            Value::Paths(paths) => Value::Paths(
                paths
                    .into_iter()
                    .map(|(name, path)| (name, self.beside(path)))
                    .collect(),
            ),
            Value::Database(Database::Sqlite(path)) => {
                Value::Database(Database::Sqlite(self.beside(path)))
            }
            other => other,
        };
        parsed.layer.push((
            key,
            read,
            Origin::File {
                path: self.path.to_owned(),
                line,
            },
        ));
        Ok(())
    }

    /// A path in the file: a relative one starts at the file.
    pub(super) fn beside(&self, path: PathBuf) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(home(path))
    }

    fn unknown(&self, at: usize, section: &str, name: &str) -> CliError {
        let full = if section.is_empty() {
            name.to_owned()
        } else {
            format!("{section}.{name}")
        };
        let error = CliError::configuration(format!("{}: unknown key {full}", self.place(at)));
        if name.to_lowercase().ends_with("key") {
            let error = match Provider::find(section) {
                Some(provider) if provider.key_variable.is_some() => {
                    error.or_try(format!("adjutant keys set {}", provider.name))
                }
                _ => error.or_try("adjutant keys set PROVIDER"),
            };
            return error
                .because("keys are not kept in this file")
                .or_try(format!(
                    "{} in the environment, or in the .env file beside the configuration",
                    key_variable(section)
                ));
        }
        // A key of the same section first; then one that stands in another section; then a section.
        let of_section = KEYS
            .iter()
            .filter(|key| key.place().0 == section)
            .map(|key| key.place().1);
        let elsewhere = KEYS
            .iter()
            .find(|key| key.place().1 == name)
            .map(|key| key.name.as_ref());
        let near = nearest(name, of_section)
            .map(|near| {
                if section.is_empty() {
                    near.to_owned()
                } else {
                    format!("{section}.{near}")
                }
            })
            .or_else(|| elsewhere.map(str::to_owned))
            .or_else(|| {
                nearest(
                    name,
                    KEYS.iter()
                        .map(|key| key.place().0)
                        .filter(|name| !name.is_empty()),
                )
                .map(|section| format!("[{section}]"))
            });
        match near {
            Some(near) => error.because(format!("did you mean {near}?")),
            None => error.or_try("adjutant config show lists every key"),
        }
    }

    pub(super) fn place(&self, at: usize) -> String {
        let (line, column) = self.position(at);
        format!("{}:{line}:{column}", self.path.display())
    }

    /// Line and column of a byte, from 1; columns count characters.
    pub(super) fn position(&self, at: usize) -> (usize, usize) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before
            .get(line_start..)
            .map_or(0, |line| line.chars().count());
        (before.matches('\n').count() + 1, column + 1)
    }
}

/// The variable for the key of the provider whose section this is.
fn key_variable(section: &str) -> &'static str {
    Provider::find(section)
        .and_then(|provider| provider.key_variable)
        .unwrap_or("NAME_API_KEY")
}

pub(super) fn convert(kind: Kind, value: &DeValue<'_>) -> Option<Value> {
    Some(match (kind, value) {
        (Kind::Text, DeValue::String(text)) => Value::Text(text.to_string()),
        (Kind::Path, DeValue::String(text)) => Value::Path(PathBuf::from(text.as_ref())),
        (
            Kind::Duration { .. }
            | Kind::Word(_)
            | Kind::Address
            | Kind::Database
            | Kind::Keep
            | Kind::Secret,
            DeValue::String(text),
        ) => return kind.read(text, false),
        (Kind::Number { .. }, DeValue::Float(number)) => {
            Value::Number(number.as_str().parse().ok()?)
        }
        (Kind::Number { .. }, DeValue::Integer(number)) if number.radix() == 10 => {
            Value::Number(number.as_str().parse().ok()?)
        }
        (Kind::Integer { .. }, DeValue::Integer(number)) => {
            Value::Integer(u64::from_str_radix(number.as_str(), number.radix()).ok()?)
        }
        (Kind::Truth, DeValue::Boolean(truth)) => Value::Truth(*truth),
        (Kind::List, DeValue::Array(names)) => Value::List(
            names
                .iter()
                .map(|name| Some(name.get_ref().as_str()?.to_owned()))
                .collect::<Option<_>>()?,
        ),
        (Kind::Paths, DeValue::Table(paths)) => Value::Paths(
            paths
                .iter()
                .map(|(name, path)| {
                    Some((
                        name.get_ref().to_string(),
                        PathBuf::from(path.get_ref().as_str()?),
                    ))
                })
                .collect::<Option<_>>()?,
        ),
        (Kind::Paths, DeValue::String(text)) => return kind.read(text, false),
        _ => return None,
    })
}

/// A value as an error shows it.
pub(super) fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(_) => "this list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// `~/…` as a shell reads it.
pub(crate) fn home(path: PathBuf) -> PathBuf {
    match (path.strip_prefix("~"), etcetera::home_dir()) {
        (Ok(rest), Ok(home)) => home.join(rest),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Layer, CliError> {
        toml(text, Path::new("/c/config.toml"), Owner::User).map(|parsed| parsed.layer)
    }

    #[track_caller]
    fn refused(text: &str, message: &str, cause: &str) {
        let error = read(text).unwrap_err();
        assert_eq!(
            (error.message.as_str(), error.cause.as_deref()),
            (message, Some(cause))
        );
        assert_eq!(error.exit as u8, 3);
    }

    #[test]
    fn a_misspelt_key_is_named_with_its_place_and_the_nearest() {
        refused(
            "model = \"demo\"\n[llm]\n  temprature = 0.5\n",
            "/c/config.toml:3:3: unknown key llm.temprature",
            "did you mean llm.temperature?",
        );
        refused(
            "modle = \"x\"\n",
            "/c/config.toml:1:1: unknown key modle",
            "did you mean model?",
        );
        refused(
            "[agnet]\nconfirm = []\n",
            "/c/config.toml:1:2: unknown key agnet",
            "did you mean [agent]?",
        );
        refused(
            "timeout = \"3s\"\n",
            "/c/config.toml:1:1: unknown key timeout",
            "did you mean llm.timeout?",
        );
    }

    #[test]
    fn a_key_in_the_file_is_refused_with_the_right_place_for_it() {
        let error = read("[gemini]\napi_key = \"secret-123\"\n").unwrap_err();
        assert_eq!(error.tries[0], "adjutant keys set gemini");
        assert!(error.tries[1].contains("GEMINI_API_KEY"));
        assert!(!format!("{error:?}").contains("secret-123"));
    }

    #[test]
    fn a_value_that_does_not_fit_is_named_with_its_range_and_place() {
        refused(
            "[llm]\ntemperature = 3.5\n",
            "llm.temperature must be a number from 0.0 to 2.0, not 3.5",
            "/c/config.toml:2:15",
        );
        refused(
            "[llm]\ntimeout = 30\n",
            "llm.timeout must be a time with its unit from 1s to 1d, such as \"30s\", not 30",
            "/c/config.toml:2:11",
        );
        refused(
            "model = 1\n",
            "model must be text that is not empty, not 1",
            "/c/config.toml:1:9",
        );
        refused(
            "llm = 1\n",
            "/c/config.toml:1:1: unknown key llm",
            "did you mean [llm]?",
        );
    }

    #[test]
    fn broken_toml_is_named_with_its_place() {
        let error = read("model = \"demo\"\n[llm\n").unwrap_err();
        assert!(
            error.message.starts_with("/c/config.toml:2:"),
            "{}",
            error.message
        );
        assert!(error.cause.is_some());
    }

    #[test]
    fn a_project_nobody_trusts_may_bound_but_not_redirect() {
        let project = |text, owner| toml(text, Path::new("/p/adjutant.toml"), owner).unwrap();
        let bounds = project(
            "[agent]\nmax_tool_iterations = 2\ndeny = [\"delete_task\"]\n",
            Owner::Project,
        );
        assert_eq!((bounds.layer.len(), bounds.unused.len()), (2, 0));
        for (text, name, lines) in [
            ("model = \"gemini\"\n", "model", 1),
            ("system_prompt_path = \"x\"\n", "system_prompt_path", 1),
            ("[agent]\nallow = [\"delete_task\"]\n", "agent.allow", 1),
            (
                "[gemini]\nbase_url = \"http://evil\"\n",
                "gemini.base_url",
                1,
            ),
            ("[store]\npath = \"x\"\n", "store.path", 1),
            ("[mcp.servers.x]\ncommand = [\"evil\"]\n", "mcp.servers", 0),
        ] {
            let parsed = project(text, Owner::Project);
            assert_eq!(
                (parsed.layer.len(), parsed.unused),
                (0, vec![name.to_owned()])
            );
            let parsed = project(text, Owner::Trusted);
            assert_eq!(
                (parsed.layer.len(), parsed.unused.len()),
                (lines, 0),
                "{text}"
            );
        }
    }

    #[test]
    fn every_other_spelling_counts_and_both_at_once_are_an_error() {
        for key in KEYS.iter() {
            let Some(alias) = key.alias else { continue };
            let (section, name) = key.place();
            let header = if section.is_empty() {
                String::new()
            } else {
                format!("[{section}]\n")
            };
            let value = match key.kind {
                Kind::Integer { max, .. } => max.to_string(),
                _ => "\"word\"".to_owned(),
            };
            for text in [
                format!("{alias} = {value}\n"),
                format!("{header}{alias} = {value}\n"),
            ] {
                assert_eq!(read(&text).unwrap()[0].0.name, key.name, "{text}");
            }
            for text in [
                format!("{header}{alias} = {value}\n{name} = {value}\n"),
                format!("{alias} = {value}\n{header}{name} = {value}\n"),
            ] {
                let error = read(&text).unwrap_err();
                assert_eq!(
                    error.message,
                    format!("{} is set twice", key.name),
                    "{text}"
                );
                assert!(error.cause.unwrap().contains(alias));
            }
        }
    }

    #[test]
    fn paths_start_at_their_file_and_the_old_spelling_counts() {
        let layer = read("systemPromptPath = \"me.md\"\n").unwrap();
        assert_eq!(layer[0].0.name, "system_prompt_path");
        assert_eq!(layer[0].1, Value::Path(PathBuf::from("/c/me.md")));
        assert_eq!(
            layer[0].2,
            Origin::File {
                path: "/c/config.toml".into(),
                line: 1
            }
        );
    }

    fn set(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn the_seeds_timeout_is_seconds_and_ours_has_a_unit() {
        let layer = variables(&set(&[("LLM_TIMEOUT", "7")]), None).unwrap();
        assert_eq!(layer[0].1.to_string(), "7s");
        let layer = variables(
            &set(&[("LLM_TIMEOUT", "7"), ("ADJUTANT_LLM_TIMEOUT", "9s")]),
            None,
        )
        .unwrap();
        assert_eq!(layer[0].1.to_string(), "9s");
        assert!(variables(&set(&[("ADJUTANT_LLM_TIMEOUT", "7")]), None).is_err());
        let error = variables(&set(&[("LLM_TIMEOUT", "soon")]), None).unwrap_err();
        assert!(
            error
                .message
                .starts_with("LLM_TIMEOUT must be a number of seconds from 1s"),
            "{}",
            error.message
        );
    }

    #[test]
    fn an_empty_variable_is_none_and_a_misspelt_one_is_told() {
        assert!(
            variables(&set(&[("LLM_TIMEOUT", " ")]), None)
                .unwrap()
                .is_empty()
        );
        let told = misspelt(&set(&[
            ("ADJUTANT_LLM_TIMOUT", "1"),
            ("OTHER", "x"),
            ("ADJUTANT_MODEL", "demo"),
        ]));
        assert_eq!(
            told,
            ["variable ADJUTANT_LLM_TIMOUT is no setting; did you mean ADJUTANT_LLM_TIMEOUT?"]
        );
    }
}
