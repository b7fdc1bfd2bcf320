//! A TOML file of settings, parsed by the table of settings; each error has line and column.

use std::fmt;
use std::path::{Path, PathBuf};

use adjutant_core::nearest;
use adjutant_providers::Provider;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::database::Database;
use super::dirs::expand_home;
use super::key::Key;
use super::layer::{Assignment, Layer, Origin};
use super::value::{Kind, Value};
use super::{KEYS, OLD_VAULT_SECTION, find_key};
use crate::error::CliError;

/// The table of all servers.
pub(super) const MCP_SECTION: &str = "mcp";

/// The owner of a file. A project's file may set less until the user has trusted it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Owner {
    User,
    TrustedProject,
    Project,
}

/// The settings in a file.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) layer: Layer,
    /// Names of settings that are ignored because the project is not trusted.
    pub(crate) unused: Vec<String>,
}

impl Parsed {
    /// Returns a warning about the settings that are ignored, if there are any.
    pub(crate) fn not_trusted_warning(&self, path: &Path) -> Option<String> {
        (!self.unused.is_empty()).then(|| {
            format!(
                "{} is not trusted, so this of it is not used: {} (adjutant config trust)",
                path.display(),
                self.unused.join(", ")
            )
        })
    }
}

/// Parses a TOML file's text.
///
/// # Errors
/// The text is not TOML, or has an unknown key or a value that does not fit: with file, line and
/// column.
pub(crate) fn parse(text: &str, path: &Path, owner: Owner) -> Result<Parsed, CliError> {
    let file = File { text, path };
    let table = DeTable::parse(text).map_err(|error| {
        let place = file.place(error.span().map_or(0, |span| span.start));
        CliError::configuration(format!("{place} is not TOML")).because(error.message().to_owned())
    })?;
    // Names are checked in a project that is not trusted too: a misspelt one stays an error.
    let mut parsed = Parsed::default();
    let set = |parsed: &mut Parsed, section: &str, name: &Name<'_>, value: &Spanned<_>| {
        let at = name.span().start;
        let key = find_key(section, name.get_ref())
            .ok_or_else(|| file.unknown_key(at, section, name.get_ref()))?;
        if owner == Owner::Project && !key.project {
            parsed.unused.push(key.name.clone());
            return Ok(());
        }
        // TOML refuses the same spelling twice; this is the other one.
        let before = parsed.layer.iter().find(|set| set.key.name == key.name);
        if let Some(alias) = key.alias
            && let Some(Origin::File { line, .. }) = before.map(|set| &set.origin)
        {
            return Err(
                CliError::configuration(format!("{} is set twice", key.name))
                    .because(format!(
                        "{} and line {line}: {alias} is another name of it",
                        file.place(at)
                    ))
                    .or_try("leave one of them out"),
            );
        }
        parsed.layer.push(file.assignment(key, "", at, value)?);
        Ok(())
    };
    for (name, value) in table.get_ref() {
        match value.get_ref() {
            // Servers are named by the user, so `mcp` parses them by itself.
            DeValue::Table(_) if name.get_ref() == MCP_SECTION => {
                if owner == Owner::Project {
                    parsed.unused.push("mcp.servers".to_owned());
                }
            }
            DeValue::Table(section) if is_section(name.get_ref()) => {
                for (key, value) in section {
                    set(&mut parsed, name.get_ref(), key, value)?;
                }
            }
            // A section that does not exist, or a section's name with no table, is an unknown key.
            _ => set(&mut parsed, "", name, value)?,
        }
    }
    Ok(parsed)
}

/// A key of a table, with its place in the text.
type Name<'a> = Spanned<std::borrow::Cow<'a, str>>;

fn is_section(name: &str) -> bool {
    name == OLD_VAULT_SECTION || KEYS.iter().any(|key| key.section_and_name().0 == name)
}

/// A file, for the places in errors.
pub(super) struct File<'a> {
    pub(super) text: &'a str,
    pub(super) path: &'a Path,
}

impl File<'_> {
    /// Parses the value of a setting. `table`: the beginning of the setting's name in errors, such
    /// as `mcp.servers.NAME.`.
    pub(super) fn assignment(
        &self,
        key: &'static Key,
        table: &str,
        key_at: usize,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Assignment, CliError> {
        let parsed = key.kind.parse_toml(value.get_ref()).map_err(|shown| {
            let not_text = |(_, text): &(_, &Spanned<DeValue<'_>>)| !text.get_ref().is_str();
            // One entry is named, because a table may have many.
            if let (Kind::Texts, DeValue::Table(texts)) = (key.kind, value.get_ref())
                && let Some((name, text)) = texts.iter().find(not_text)
            {
                let name = name.get_ref();
                let message = format!("{table}{}.{name} must be text", key.name);
                return self.error(text.span().start, message);
            }
            let expected = key.kind.expected();
            let expected = key.expected.unwrap_or(&expected);
            let name = format!("{table}{}", key.name);
            self.must(value.span().start, &name, expected, &shown)
        })?;
        // Resolved while the file is known: values of later layers have other starting points.
        let value = match parsed {
            Value::Path(path) => Value::Path(self.resolve(path)),
            Value::Paths(paths) => Value::Paths(
                paths
                    .into_iter()
                    .map(|(name, path)| (name, self.resolve(path)))
                    .collect(),
            ),
            Value::Database(Database::Sqlite(path)) => {
                Value::Database(Database::Sqlite(self.resolve(path)))
            }
            other => other,
        };
        Ok(Assignment {
            key,
            value,
            origin: self.origin(key_at),
        })
    }

    pub(super) fn origin(&self, at: usize) -> Origin {
        Origin::File {
            path: self.path.to_owned(),
            line: self.position(at).0,
        }
    }

    /// Resolves a path that stands in the file: a relative one starts at the file.
    pub(super) fn resolve(&self, path: PathBuf) -> PathBuf {
        self.path
            .parent()
            .unwrap_or(Path::new(""))
            .join(expand_home(path))
    }

    fn unknown_key(&self, at: usize, section: &str, name: &str) -> CliError {
        let in_section = |name: &str| match section {
            "" => name.to_owned(),
            section => format!("{section}.{name}"),
        };
        let error = self.unknown(at, &in_section(name));
        // The name in the files of other clients.
        if section.is_empty() && matches!(name, "mcpServers" | "mcp_servers") {
            return error.because("did you mean [mcp.servers.NAME]?").or_try(
                "adjutant mcp import FILE    takes the JSON that the pages of servers print",
            );
        }
        // An API key belongs in no file that is shown, shared or committed, so no setting is
        // meant.
        if name.to_lowercase().ends_with("key") {
            let provider = Provider::find(section)
                .and_then(|provider| Some((provider.name, provider.key_variable?)));
            let (name, variable) = provider.unwrap_or(("PROVIDER", "NAME_API_KEY"));
            return error
                .or_try(format!("adjutant keys set {name}"))
                .because("keys are not kept in this file")
                .or_try(format!(
                    "{variable} in the environment, or in the .env file beside the configuration"
                ));
        }
        // The nearest key of the same section; else a key of that name in another section; else the
        // nearest section.
        let keys = || KEYS.iter().map(Key::section_and_name);
        let of_section = keys().filter(|key| key.0 == section).map(|key| key.1);
        let near = nearest(name, of_section)
            .map(in_section)
            .or_else(|| {
                let elsewhere = KEYS.iter().find(|key| key.section_and_name().1 == name);
                elsewhere.map(|key| key.name.to_string())
            })
            .or_else(|| {
                let sections = keys().map(|key| key.0).filter(|name| !name.is_empty());
                nearest(name, sections).map(|section| format!("[{section}]"))
            });
        did_you_mean(error, near, "adjutant config show lists every key")
    }

    /// Returns the error about a key that does not exist.
    pub(super) fn unknown(&self, at: usize, name: &str) -> CliError {
        CliError::configuration(format!("{}: unknown key {name}", self.place(at)))
    }

    /// Returns the error about a value that does not fit.
    pub(super) fn must(&self, at: usize, name: &str, expected: &str, shown: &str) -> CliError {
        self.error(at, format!("{name} must be {expected}, not {shown}"))
    }

    /// Returns an error whose cause is the place of a byte.
    pub(super) fn error(&self, at: usize, message: impl Into<String>) -> CliError {
        CliError::configuration(message).because(self.place(at))
    }

    /// Formats a byte's place as `FILE:LINE:COLUMN`.
    pub(super) fn place(&self, at: usize) -> String {
        let (line, column) = self.position(at);
        format!("{}:{line}:{column}", self.path.display())
    }

    /// Returns line and column of a byte, from 1; columns count characters.
    fn position(&self, at: usize) -> (usize, usize) {
        // The parser has byte offsets only. A file of settings is short, so the text before is
        // counted again for each.
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        (before.matches('\n').count() + 1, line.chars().count() + 1)
    }
}

/// Adds to an error the name that was probably meant, or else a remedy.
pub(super) fn did_you_mean(
    error: CliError,
    near: Option<impl fmt::Display>,
    otherwise: &str,
) -> CliError {
    match near {
        Some(near) => error.because(format!("did you mean {near}?")),
        None => error.or_try(otherwise),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Layer, CliError> {
        super::parse(text, Path::new("/c/config.toml"), Owner::User).map(|parsed| parsed.layer)
    }

    #[track_caller]
    fn refused(text: &str, message: &str, cause: &str) {
        let error = parse(text).unwrap_err();
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
            "[mcpServers.files]\ncommand = \"npx\"\n",
            "/c/config.toml:1:2: unknown key mcpServers",
            "did you mean [mcp.servers.NAME]?",
        );
        refused(
            "timeout = \"3s\"\n",
            "/c/config.toml:1:1: unknown key timeout",
            "did you mean llm.timeout?",
        );
    }

    #[test]
    fn a_key_in_the_file_is_refused_with_the_right_place_for_it() {
        let error = parse("[gemini]\napi_key = \"secret-123\"\n").unwrap_err();
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
        let error = parse("model = \"demo\"\n[llm\n").unwrap_err();
        assert!(
            error.message.starts_with("/c/config.toml:2:"),
            "{}",
            error.message
        );
        assert!(error.cause.is_some());
    }

    #[test]
    fn a_project_that_is_not_trusted_may_bound_but_not_redirect() {
        let project =
            |text, owner| super::parse(text, Path::new("/p/adjutant.toml"), owner).unwrap();
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
            let parsed = project(text, Owner::TrustedProject);
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
            let (section, name) = key.section_and_name();
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
                assert_eq!(parse(&text).unwrap()[0].key.name, key.name, "{text}");
            }
            for text in [
                format!("{header}{alias} = {value}\n{name} = {value}\n"),
                format!("{alias} = {value}\n{header}{name} = {value}\n"),
            ] {
                let error = parse(&text).unwrap_err();
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
        let layer = parse("systemPromptPath = \"me.md\"\n").unwrap();
        assert_eq!(layer[0].key.name, "system_prompt_path");
        assert_eq!(layer[0].value, Value::Path(PathBuf::from("/c/me.md")));
        assert_eq!(
            layer[0].origin,
            Origin::File {
                path: "/c/config.toml".into(),
                line: 1
            }
        );
    }
}
