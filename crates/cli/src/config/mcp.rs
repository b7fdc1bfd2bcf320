//! `[mcp.servers.NAME]`: MCP servers, a table for each, in the user's file or in a trusted
//! project's. A cloned repository that is not trusted must not start programs, nor send anything
//! anywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use adjutant_core::nearest;
use adjutant_mcp::client::{
    Child, Injected, Remote, ServerConfig, ServerName, ToolRules, Transport,
};
use secrecy::SecretString;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use url::Url;

use super::Shown;
use super::toml_file::{File, expand_home, show_toml};
use super::value::{Kind, SettingType};
use crate::error::CliError;

/// The table of all servers.
pub(super) const SECTION: &str = "mcp";

/// Keys of a server's table.
pub(crate) const SERVER_FIELDS: [&str; 18] = [
    "command",
    "env",
    "cwd",
    "url",
    "headers",
    "bearer_token_env",
    "allow",
    "deny",
    "confirm",
    "read_only",
    "destructive",
    "idempotent",
    "inject",
    "timeout",
    "start_timeout",
    "max_result_bytes",
    "required",
    "disabled",
];

/// Variables of this process that a server's process inherits: programs need them to run, and none
/// is a key. Those of the official SDKs, and others that name folders, languages, certificates and
/// proxies.
#[cfg(not(windows))]
const INHERITED: [&str; 21] = [
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "USER",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
];

/// Variables that a server's process inherits on Windows, where a program without them finds
/// neither its libraries nor the user's folders.
#[cfg(windows)]
const INHERITED: [&str; 19] = [
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
];

const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(3_600);
const RESULT_BYTES: RangeInclusive<u64> = 1_000..=16 * 1024 * 1024;

/// Variables that a table may name: the process's, then those of the `.env` file.
pub(super) struct Variables<'a> {
    pub(super) process: &'a BTreeMap<String, String>,
    pub(super) file: &'a BTreeMap<String, String>,
}

impl<'a> Variables<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        [self.process, self.file]
            .into_iter()
            .filter_map(|variables| variables.get(name))
            .find(|value| !value.is_empty())
            .map(String::as_str)
    }
}

/// A server's table, parsed.
pub(super) struct ServerTable {
    pub(super) config: ServerConfig,
    /// Lines of `config show`.
    pub(super) shown: Vec<Shown>,
    /// Variables that the table names, set or not.
    named: BTreeSet<String>,
}

/// Variables whose values are sent to a server's address.
#[derive(Debug)]
pub(crate) struct SentVariables {
    pub(crate) server: ServerName,
    pub(crate) url: String,
    pub(crate) names: BTreeSet<String>,
}

/// Returns the servers of a file that are sent the values of variables.
///
/// # Errors
/// A table has a mistake: with file, line and column.
pub(crate) fn sent_variables(text: &str, path: &Path) -> Result<Vec<SentVariables>, CliError> {
    let none = Variables {
        process: &BTreeMap::new(),
        file: &BTreeMap::new(),
    };
    let tables = parse_servers(text, path, &none)?;
    let sent = tables
        .into_iter()
        .filter_map(|ServerTable { config, named, .. }| match config.via {
            Transport::Remote(remote) if !named.is_empty() => Some(SentVariables {
                server: config.name,
                url: remote.url,
                names: named,
            }),
            Transport::Remote(_) | Transport::Child(_) => None,
        });
    Ok(sent.collect())
}

/// Parses the servers of the user's file, or of a trusted project's.
///
/// # Errors
/// A table has an unknown key, a value that does not fit, both or neither of `command` and `url`:
/// with file, line and column.
pub(super) fn parse_servers(
    text: &str,
    path: &Path,
    variables: &Variables<'_>,
) -> Result<Vec<ServerTable>, CliError> {
    let file = File { text, path };
    let mut tables = Vec::new();
    // Text that is not TOML was reported when the other settings of the file were parsed.
    let Ok(table) = DeTable::parse(text) else {
        return Ok(tables);
    };
    let Some(DeValue::Table(section)) = table.get_ref().get(SECTION).map(Spanned::get_ref) else {
        return Ok(tables);
    };
    for (key, value) in section {
        let at = key.span().start;
        if key.get_ref() != "servers" {
            let error = CliError::configuration(format!(
                "{}: unknown key mcp.{}",
                file.place(at),
                key.get_ref()
            ));
            return Err(error.because("did you mean [mcp.servers.NAME]?"));
        }
        let DeValue::Table(servers) = value.get_ref() else {
            let what = format!(
                "mcp.servers must be a table of servers, not {}",
                show_toml(value.get_ref())
            );
            return Err(file.error(value.span().start, what));
        };
        for (name, value) in servers {
            let at = name.span().start;
            let server = ServerName::new(name.get_ref().as_ref())
                .map_err(|error| file.error(at, error.to_string()))?;
            let DeValue::Table(table) = value.get_ref() else {
                let what = format!(
                    "mcp.servers.{server} must be a table, not {}",
                    show_toml(value.get_ref())
                );
                return Err(file.error(value.span().start, what));
            };
            let mut reader = Reader {
                file: &file,
                server,
                table,
                variables,
                named: BTreeSet::new(),
                unset: Vec::new(),
            };
            let config = reader.server(at)?;
            tables.push(ServerTable {
                config,
                shown: reader.shown(),
                named: reader.named,
            });
        }
    }
    Ok(tables)
}

/// Parses one server's table.
struct Reader<'a> {
    file: &'a File<'a>,
    server: ServerName,
    table: &'a DeTable<'a>,
    variables: &'a Variables<'a>,
    /// Variables that the table names.
    named: BTreeSet<String>,
    /// Variables that the table names and that have no value.
    unset: Vec<String>,
}

/// A value of the table, with its place in the text.
#[derive(Clone, Copy)]
struct Field<'a> {
    at: usize,
    value: &'a DeValue<'a>,
}

impl<'a> Reader<'a> {
    fn server(&mut self, at: usize) -> Result<ServerConfig, CliError> {
        for (key, _) in self.table {
            if !SERVER_FIELDS.contains(&key.get_ref().as_ref()) {
                return Err(self.unknown(key.span().start, key.get_ref()));
            }
        }
        let via = match (self.field("command"), self.field("url")) {
            (Some(command), None) => Transport::Child(self.child(command)?),
            (None, Some(url)) => Transport::Remote(self.remote(url)?),
            (Some(second), Some(_)) => {
                return Err(self.wrong(
                    "has both `command` and `url`: it is started here, or it runs elsewhere",
                    second.at,
                ));
            }
            (None, None) => {
                return Err(self
                    .wrong("needs `command` or `url`", at)
                    .or_try("command = [\"PROGRAM\", \"ARGUMENT\"]    for a server that is started here")
                    .or_try("url = \"https://…\"    for one that runs elsewhere"));
            }
        };
        let mut config = ServerConfig::new(self.server.clone(), via);
        config.rules = ToolRules {
            allow: self.get("allow")?,
            deny: self.get("deny")?.unwrap_or_default(),
            confirm: self.get("confirm")?.unwrap_or_default(),
            read_only: self.get("read_only")?.unwrap_or_default(),
            destructive: self.get("destructive")?.unwrap_or_default(),
            idempotent: self.get("idempotent")?.unwrap_or_default(),
            inject: self.inject()?,
        };
        config.timeout = self.get_within("timeout", TIMEOUT.into())?;
        if let Some(limit) = self.get_within("start_timeout", TIMEOUT.into())? {
            config.start_timeout = limit;
        }
        if let Some(bytes) = self.get_within::<u64>("max_result_bytes", RESULT_BYTES.into())? {
            config.result_bytes_max = usize::try_from(bytes).unwrap_or(config.result_bytes_max);
        }
        config.required = self.get("required")?.unwrap_or_default();
        config.disabled = self.get("disabled")?.unwrap_or_default();
        // No error: the other servers work, and this one is listed with the reason why it does not.
        if !self.unset.is_empty() {
            config.unusable = Some(format!(
                "not set in the environment: {}",
                self.unset.join(", ")
            ));
        }
        Ok(config)
    }

    fn child(&mut self, command: Field<'a>) -> Result<Child, CliError> {
        self.refuse(&["headers", "bearer_token_env"], "command", "url")?;
        let words = Kind::List.parse_toml(command.value).ok();
        let Some(words) = words.and_then(|words| <Vec<String>>::from_value(&words)) else {
            let expected = "a list of words, such as [\"gh-mcp\", \"--read-only\"]";
            return Err(self.must("command", expected, command));
        };
        let mut words = words.into_iter();
        let Some(program) = words.next().filter(|program| !program.trim().is_empty()) else {
            return Err(self.wrong("has an empty `command`", command.at));
        };
        let program = expand_home(PathBuf::from(program));
        // A bare name is looked for in PATH; a path starts at the file.
        let program = if program.components().count() > 1 {
            self.file.resolve(program)
        } else {
            program
        };
        let mut variables: BTreeMap<String, SecretString> = INHERITED
            .iter()
            .filter_map(|name| {
                Some((
                    (*name).to_owned(),
                    self.variables.process.get(*name)?.clone().into(),
                ))
            })
            .collect();
        // The table wins over the inherited variables.
        variables.extend(self.secrets("env")?);
        let directory: Option<PathBuf> = self.get("cwd")?;
        Ok(Child {
            program,
            arguments: words.collect(),
            variables,
            directory: directory.map(|path| self.file.resolve(path)),
        })
    }

    fn remote(&mut self, url: Field<'a>) -> Result<Remote, CliError> {
        self.refuse(&["env", "cwd"], "url", "command")?;
        let text = url.value.as_str().unwrap_or_default();
        let parsed = Url::parse(text)
            .ok()
            .filter(|url| matches!(url.scheme(), "https" | "http") && url.has_host())
            .ok_or_else(|| {
                self.must(
                    "url",
                    "an address that begins with https:// or http://",
                    url,
                )
            })?;
        // An address is shown, by `config show` and in errors.
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(self.wrong("has a user or a password in its `url`", url.at).or_try(
                "headers = { Authorization = \"Basic ${NAME}\" }, with the value in the environment or the .env file",
            ));
        }
        let bearer: Option<String> = self.get("bearer_token_env")?;
        let bearer = bearer.and_then(|name| self.variable(&name));
        Ok(Remote {
            url: text.to_owned(),
            bearer,
            headers: self.secrets("headers")?,
        })
    }

    /// Fails if the table has one of these keys, which belong to the other way to reach a server.
    fn refuse(&self, keys: &[&str], has: &str, other: &str) -> Result<(), CliError> {
        match keys.iter().find_map(|key| Some((key, self.field(key)?))) {
            Some((key, field)) => Err(self.wrong(
                &format!("has `{has}`, and `{key}` belongs to a server with `{other}`"),
                field.at,
            )),
            None => Ok(()),
        }
    }

    /// Parses a table of texts, in which `${NAME}` stands for a variable.
    fn secrets(&mut self, key: &str) -> Result<BTreeMap<String, SecretString>, CliError> {
        let mut secrets = BTreeMap::new();
        let Some(field) = self.field(key) else {
            return Ok(secrets);
        };
        let DeValue::Table(table) = field.value else {
            // The value may be a secret, so an error does not show it.
            let hidden = Field {
                value: &DeValue::Boolean(true),
                ..field
            };
            return Err(self.must(key, "a table, such as { NAME = \"${NAME}\" }", hidden));
        };
        for (name, value) in table {
            let Some(text) = value.get_ref().as_str() else {
                return Err(self.wrong(
                    &format!("{key}.{}: must be text", name.get_ref()),
                    value.span().start,
                ));
            };
            let text = self.expand(text);
            secrets.insert(name.get_ref().to_string(), text.into());
        }
        Ok(secrets)
    }

    /// Replaces each `${NAME}` by the value of the variable.
    fn expand(&mut self, text: &str) -> String {
        let mut whole = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            whole.push_str(before);
            // Without an end it is no variable, and stays as it is.
            let Some((name, behind)) = after.split_once('}') else {
                whole.push_str("${");
                rest = after;
                continue;
            };
            if let Some(value) = self.look_up(name) {
                whole.push_str(value);
            }
            rest = behind;
        }
        whole.push_str(rest);
        whole
    }

    fn variable(&mut self, name: &str) -> Option<SecretString> {
        // A token that was read from a file often ends in a line break, which no header may have.
        self.look_up(name)
            .map(|value| value.trim().to_owned().into())
    }

    /// Returns the value of a variable, and notes that the table names it.
    fn look_up(&mut self, name: &str) -> Option<&'a str> {
        self.named.insert(name.to_owned());
        let value = self.variables.get(name);
        if value.is_none() {
            self.unset.push(name.to_owned());
        }
        value
    }

    fn inject(&self) -> Result<BTreeMap<Injected, String>, CliError> {
        let mut inject = BTreeMap::new();
        let Some(field) = self.field("inject") else {
            return Ok(inject);
        };
        let expected = "a table, such as { user_id = \"ARGUMENT\" }";
        let DeValue::Table(table) = field.value else {
            return Err(self.must("inject", expected, field));
        };
        for (name, value) in table {
            let at = name.span().start;
            let injected = Injected::ALL
                .into_iter()
                .find(|injected| injected.name() == name.get_ref());
            let injected = injected.ok_or_else(|| {
                let name = name.get_ref();
                self.wrong(
                    &format!("inject: {name} is nothing that can be filled in"),
                    at,
                )
                .or_try(Injected::ALL.map(Injected::name).join(", "))
            })?;
            let value = value.get_ref();
            let argument = value
                .as_str()
                .filter(|argument| !argument.is_empty())
                .ok_or_else(|| self.must("inject", expected, Field { at, value }))?;
            inject.insert(injected, argument.to_owned());
        }
        Ok(inject)
    }

    fn field(&self, key: &str) -> Option<Field<'a>> {
        let value = self.table.get(key)?;
        Some(Field {
            at: value.span().start,
            value: value.get_ref(),
        })
    }

    fn get<T: SettingType>(&self, key: &str) -> Result<Option<T>, CliError> {
        self.get_within(key, T::KIND)
    }

    fn get_within<T: SettingType>(&self, key: &str, kind: Kind) -> Result<Option<T>, CliError> {
        let Some(field) = self.field(key) else {
            return Ok(None);
        };
        match kind.parse_toml(field.value) {
            Ok(value) => Ok(T::from_value(&value)),
            Err(_) => Err(self.must(key, &kind.expected(), field)),
        }
    }

    fn must(&self, key: &str, expected: &str, field: Field<'_>) -> CliError {
        let (server, shown) = (&self.server, show_toml(field.value));
        let message = format!("mcp.servers.{server}.{key} must be {expected}, not {shown}");
        self.file.error(field.at, message)
    }

    fn wrong(&self, what: &str, at: usize) -> CliError {
        self.file
            .error(at, format!("mcp.servers.{} {what}", self.server))
    }

    fn unknown(&self, at: usize, name: &str) -> CliError {
        let place = self.file.place(at);
        let error = CliError::configuration(format!(
            "{place}: unknown key mcp.servers.{}.{name}",
            self.server
        ));
        match nearest(name, SERVER_FIELDS.into_iter()) {
            Some(near) => error.because(format!("did you mean {near}?")),
            None => error.or_try(SERVER_FIELDS.join(", ")),
        }
    }

    /// Returns the lines of `config show`: the table as it stands in the file, without values that
    /// may be secret.
    fn shown(&self) -> Vec<Shown> {
        let mut shown = Vec::new();
        for (key, value) in self.table {
            let name = key.get_ref().as_ref();
            let value = match (name, value.get_ref()) {
                ("env" | "headers", DeValue::Table(table)) => join(
                    table
                        .iter()
                        .map(|(name, _)| format!("{} = (not shown)", name.get_ref())),
                ),
                ("url", DeValue::String(url)) => without_query(url),
                (_, value) => show_plain(value),
            };
            shown.push(Shown {
                name: format!("mcp.servers.{}.{name}", self.server).into(),
                value: Some(value),
                unset: "",
                quiet: true,
                origin: self.file.origin(key.span().start).to_string(),
            });
        }
        shown
    }
}

/// Removes the query of an address, which may hold a key.
fn without_query(url: &str) -> String {
    match url.split_once(['?', '#']) {
        Some((address, _)) => format!("{address}?(not shown)"),
        None => url.to_owned(),
    }
}

/// Formats a value of the file as `config show` has values.
fn show_plain(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Array(values) => join(values.iter().map(|value| show_plain(value.get_ref()))),
        DeValue::Table(table) => join(
            table
                .iter()
                .map(|(key, value)| format!("{} = {}", key.get_ref(), show_plain(value.get_ref()))),
        ),
        other => show_toml(other),
    }
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}
