//! `[mcp.servers.NAME]`: other people's tools. A table for each server, in the user's file or in a
//! project's that is trusted: a cloned repository must not start programs, nor send anything
//! anywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use adjutant_core::nearest;
use adjutant_mcp::client::{Child, Injected, Remote, ServerConfig, ServerName, ToolRules, Via};
use secrecy::SecretString;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use url::Url;

use super::Shown;
use super::key::{Kind, Value};
use super::layers::{File, Origin, convert, home, shown};
use crate::error::CliError;

/// The table all servers are in.
pub(super) const SECTION: &str = "mcp";

/// What a server's table has.
pub(crate) const FIELDS: [&str; 18] = [
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

/// Of this process's variables, those that a child gets: what programs need to run, and nothing
/// that is a key. As the official SDKs have it, and what names folders, languages and certificates.
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

/// The same for Windows, where a program without these finds neither its libraries nor its person's
/// folders.
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

const TIMEOUT: Kind = Kind::Duration {
    min: Duration::from_millis(100),
    max: Duration::from_secs(3_600),
};
const RESULT_BYTES: Kind = Kind::Integer {
    min: 1_000,
    max: 16 * 1024 * 1024,
};

/// What variables hold: the process's, then those of the `.env` file.
pub(super) struct Variables<'a> {
    pub(super) process: &'a BTreeMap<String, String>,
    pub(super) file: &'a BTreeMap<String, String>,
}

impl<'a> Variables<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        let of = |variables: &'a BTreeMap<String, String>| {
            variables.get(name).filter(|value| !value.is_empty())
        };
        of(self.process)
            .or_else(|| of(self.file))
            .map(String::as_str)
    }
}

/// A server's table.
pub(super) struct ServerTable {
    pub(super) config: ServerConfig,
    /// Its lines in `config show`.
    pub(super) lines: Vec<Shown>,
    /// The variables that it names, whether they are set or not.
    named: BTreeSet<String>,
}

/// Variables that a server's table sends to an address.
#[derive(Debug)]
pub(crate) struct SentVariables {
    pub(crate) server: ServerName,
    pub(crate) url: String,
    pub(crate) names: BTreeSet<String>,
}

/// Returns the servers of a file that are sent variables.
///
/// # Errors
/// A table is wrong: with file, line and column.
pub(crate) fn variables_sent(text: &str, path: &Path) -> Result<Vec<SentVariables>, CliError> {
    let none = BTreeMap::new();
    let tables = servers(
        text,
        path,
        &Variables {
            process: &none,
            file: &none,
        },
    )?;
    let sent = tables
        .into_iter()
        .filter_map(|ServerTable { config, named, .. }| match config.via {
            Via::Remote(remote) if !named.is_empty() => Some(SentVariables {
                server: config.name,
                url: remote.url,
                names: named,
            }),
            Via::Remote(_) | Via::Child(_) => None,
        });
    Ok(sent.collect())
}

/// Reads the servers of the user's file, or of a project's that is trusted.
///
/// # Errors
/// An unknown key, a value that does not fit, a server without or with two ways to reach it: with
/// file, line and column.
pub(super) fn servers(
    text: &str,
    path: &Path,
    variables: &Variables<'_>,
) -> Result<Vec<ServerTable>, CliError> {
    let file = File { text, path };
    let mut tables = Vec::new();
    // What is no TOML, or no table, was told before.
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
                shown(value.get_ref())
            );
            return Err(CliError::configuration(what).because(file.place(value.span().start)));
        };
        for (name, value) in servers {
            let at = name.span().start;
            let server = ServerName::new(name.get_ref().as_ref()).map_err(|error| {
                CliError::configuration(error.to_string()).because(file.place(at))
            })?;
            let DeValue::Table(table) = value.get_ref() else {
                let what = format!(
                    "mcp.servers.{server} must be a table, not {}",
                    shown(value.get_ref())
                );
                return Err(CliError::configuration(what).because(file.place(value.span().start)));
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
                lines: reader.lines(),
                named: reader.named,
            });
        }
    }
    Ok(tables)
}

/// One server's table.
struct Reader<'a> {
    file: &'a File<'a>,
    server: ServerName,
    table: &'a DeTable<'a>,
    variables: &'a Variables<'a>,
    /// Variables that are named.
    named: BTreeSet<String>,
    /// Those of them that have no value.
    unset: Vec<String>,
}

type Field<'a> = (usize, &'a DeValue<'a>);

impl<'a> Reader<'a> {
    fn server(&mut self, at: usize) -> Result<ServerConfig, CliError> {
        for (key, _) in self.table {
            if !FIELDS.contains(&key.get_ref().as_ref()) {
                return Err(self.unknown(key.span().start, key.get_ref()));
            }
        }
        let via = match (self.field("command"), self.field("url")) {
            (Some(command), None) => Via::Child(self.child(command)?),
            (None, Some(url)) => Via::Remote(self.remote(url)?),
            (Some((second, _)), Some(_)) => {
                return Err(self.wrong(
                    "has both `command` and `url`: it is started here, or it runs elsewhere",
                    second,
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
            allow: self.names("allow")?,
            deny: self.names("deny")?.unwrap_or_default(),
            confirm: self.names("confirm")?.unwrap_or_default(),
            read_only: self.names("read_only")?.unwrap_or_default(),
            destructive: self.names("destructive")?.unwrap_or_default(),
            idempotent: self.names("idempotent")?.unwrap_or_default(),
            inject: self.inject()?,
        };
        config.timeout = self.time("timeout")?;
        if let Some(limit) = self.time("start_timeout")? {
            config.start_timeout = limit;
        }
        if let Some(Value::Integer(bytes)) = self.value("max_result_bytes", RESULT_BYTES)? {
            config.result_bytes_max = usize::try_from(bytes).unwrap_or(config.result_bytes_max);
        }
        config.required = self.truth("required")?;
        config.disabled = self.truth("disabled")?;
        if !self.unset.is_empty() {
            config.unusable = Some(format!(
                "not set in the environment: {}",
                self.unset.join(", ")
            ));
        }
        Ok(config)
    }

    fn child(&mut self, (at, value): Field<'a>) -> Result<Child, CliError> {
        for key in ["headers", "bearer_token_env"] {
            if let Some((at, _)) = self.field(key) {
                return Err(self.wrong(
                    &format!("has `command`, and `{key}` belongs to a server with `url`"),
                    at,
                ));
            }
        }
        let words = convert(Kind::List, value);
        let Some(Value::List(words)) = words else {
            return Err(self.must(
                "command",
                "a list of words, such as [\"gh-mcp\", \"--read-only\"]",
                at,
                value,
            ));
        };
        let mut words = words.into_iter();
        let Some(program) = words.next().filter(|program| !program.trim().is_empty()) else {
            return Err(self.wrong("has an empty `command`", at));
        };
        let program = home(PathBuf::from(program));
        // A bare name is looked for in PATH; a path starts at the file.
        let program = if program.components().count() > 1 {
            self.file.beside(program)
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
        variables.extend(self.secrets("env")?);
        let directory = match self.value("cwd", Kind::Path)? {
            Some(Value::Path(path)) => Some(self.file.beside(path)),
            _ => None,
        };
        Ok(Child {
            program,
            arguments: words.collect(),
            variables,
            directory,
        })
    }

    fn remote(&mut self, (at, value): Field<'a>) -> Result<Remote, CliError> {
        for key in ["env", "cwd"] {
            if let Some((at, _)) = self.field(key) {
                return Err(self.wrong(
                    &format!("has `url`, and `{key}` belongs to a server with `command`"),
                    at,
                ));
            }
        }
        let expected = "an address that begins with https:// or http://";
        let text = value.as_str().unwrap_or_default();
        let url = Url::parse(text)
            .ok()
            .filter(|url| matches!(url.scheme(), "https" | "http") && url.has_host())
            .ok_or_else(|| self.must("url", expected, at, value))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(self.wrong("has a user or a password in its `url`", at).or_try(
                "headers = { Authorization = \"Basic ${NAME}\" }, with the value in the environment or the .env file",
            ));
        }
        let bearer = match self.value("bearer_token_env", Kind::Text)? {
            Some(Value::Text(name)) => self.variable(&name),
            _ => None,
        };
        Ok(Remote {
            url: text.to_owned(),
            bearer,
            headers: self.secrets("headers")?,
        })
    }

    /// A table of texts, in which `${NAME}` stands for a variable.
    fn secrets(&mut self, key: &str) -> Result<BTreeMap<String, SecretString>, CliError> {
        let mut secrets = BTreeMap::new();
        let Some((at, value)) = self.field(key) else {
            return Ok(secrets);
        };
        let DeValue::Table(table) = value else {
            return Err(self.must(
                key,
                "a table, such as { NAME = \"${NAME}\" }",
                at,
                &DeValue::Boolean(true),
            ));
        };
        for (name, value) in table {
            // The value may be a secret, so an error does not show it.
            let Some(text) = value.get_ref().as_str() else {
                return Err(self.wrong(
                    &format!("{key}.{}: must be text", name.get_ref()),
                    value.span().start,
                ));
            };
            let text = self.expanded(text);
            secrets.insert(name.get_ref().to_string(), text.into());
        }
        Ok(secrets)
    }

    /// The text with the values of the variables it names.
    fn expanded(&mut self, text: &str) -> String {
        let mut whole = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            whole.push_str(before);
            let Some((name, behind)) = after.split_once('}') else {
                whole.push_str("${");
                rest = after;
                continue;
            };
            if let Some(value) = self.named(name) {
                whole.push_str(value);
            }
            rest = behind;
        }
        whole.push_str(rest);
        whole
    }

    fn variable(&mut self, name: &str) -> Option<SecretString> {
        self.named(name).map(|value| value.trim().to_owned().into())
    }

    /// Returns the value of a variable that the table names.
    fn named(&mut self, name: &str) -> Option<&'a str> {
        self.named.insert(name.to_owned());
        let value = self.variables.get(name);
        if value.is_none() {
            self.unset.push(name.to_owned());
        }
        value
    }

    fn inject(&self) -> Result<BTreeMap<Injected, String>, CliError> {
        let mut inject = BTreeMap::new();
        let Some((at, value)) = self.field("inject") else {
            return Ok(inject);
        };
        let expected = "a table, such as { user_id = \"ARGUMENT\" }";
        let DeValue::Table(table) = value else {
            return Err(self.must("inject", expected, at, value));
        };
        for (name, value) in table {
            let at = name.span().start;
            let what = Injected::ALL
                .into_iter()
                .find(|what| what.name() == name.get_ref());
            let names = Injected::ALL.map(Injected::name).join(", ");
            let what = what.ok_or_else(|| {
                self.wrong(
                    &format!(
                        "inject: {} is nothing that can be filled in",
                        name.get_ref()
                    ),
                    at,
                )
                .or_try(names)
            })?;
            let argument = value
                .get_ref()
                .as_str()
                .filter(|argument| !argument.is_empty());
            let argument =
                argument.ok_or_else(|| self.must("inject", expected, at, value.get_ref()))?;
            inject.insert(what, argument.to_owned());
        }
        Ok(inject)
    }

    fn field(&self, key: &str) -> Option<Field<'a>> {
        self.table
            .get(key)
            .map(|value| (value.span().start, value.get_ref()))
    }

    fn value(&self, key: &str, kind: Kind) -> Result<Option<Value>, CliError> {
        let Some((at, value)) = self.field(key) else {
            return Ok(None);
        };
        let read = convert(kind, value).and_then(|value| kind.check(value));
        read.map(Some)
            .ok_or_else(|| self.must(key, &kind.expected(), at, value))
    }

    fn names(&self, key: &str) -> Result<Option<Vec<String>>, CliError> {
        let value = self.value(key, Kind::List)?;
        Ok(value.and_then(|value| {
            if let Value::List(names) = value {
                Some(names)
            } else {
                None
            }
        }))
    }

    fn time(&self, key: &str) -> Result<Option<Duration>, CliError> {
        let value = self.value(key, TIMEOUT)?;
        Ok(value.and_then(|value| {
            if let Value::Duration(time) = value {
                Some(time)
            } else {
                None
            }
        }))
    }

    fn truth(&self, key: &str) -> Result<bool, CliError> {
        match self.field(key) {
            None => Ok(false),
            Some((_, DeValue::Boolean(truth))) => Ok(*truth),
            Some((at, other)) => Err(self.must(key, "true or false", at, other)),
        }
    }

    fn must(&self, key: &str, expected: &str, at: usize, value: &DeValue<'_>) -> CliError {
        let server = &self.server;
        CliError::configuration(format!(
            "mcp.servers.{server}.{key} must be {expected}, not {}",
            shown(value)
        ))
        .because(self.file.place(at))
    }

    fn wrong(&self, what: &str, at: usize) -> CliError {
        CliError::configuration(format!("mcp.servers.{} {what}", self.server))
            .because(self.file.place(at))
    }

    fn unknown(&self, at: usize, name: &str) -> CliError {
        let place = self.file.place(at);
        let error = CliError::configuration(format!(
            "{place}: unknown key mcp.servers.{}.{name}",
            self.server
        ));
        match nearest(name, FIELDS.into_iter()) {
            Some(near) => error.because(format!("did you mean {near}?")),
            None => error.or_try(FIELDS.join(", ")),
        }
    }

    /// The lines of `config show`: what stands in the file, without what may be secret.
    fn lines(&self) -> Vec<Shown> {
        let line = |(key, value): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
            let name = key.get_ref().as_ref();
            let value = match (name, value.get_ref()) {
                ("env" | "headers", DeValue::Table(table)) => {
                    let names = table
                        .iter()
                        .map(|(name, _)| format!("{} = (not shown)", name.get_ref()));
                    names.collect::<Vec<_>>().join(", ")
                }
                ("url", DeValue::String(url)) => without_query(url),
                (_, value) => plain(value),
            };
            let (line, _) = self.file.position(key.span().start);
            Shown {
                name: format!("mcp.servers.{}.{name}", self.server).into(),
                value: Some(value),
                unset: "",
                quiet: true,
                origin: Origin::File {
                    path: self.file.path.to_owned(),
                    line,
                }
                .to_string(),
            }
        };
        self.table.iter().map(line).collect()
    }
}

/// An address without what may be a key in it.
fn without_query(url: &str) -> String {
    match url.split_once(['?', '#']) {
        Some((address, _)) => format!("{address}?(not shown)"),
        None => url.to_owned(),
    }
}

/// A value of the file as `config show` has values.
fn plain(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Array(values) => values
            .iter()
            .map(|value| plain(value.get_ref()))
            .collect::<Vec<_>>()
            .join(", "),
        DeValue::Table(table) => {
            let pairs = table
                .iter()
                .map(|(key, value)| format!("{} = {}", key.get_ref(), plain(value.get_ref())));
            pairs.collect::<Vec<_>>().join(", ")
        }
        other => shown(other),
    }
}
