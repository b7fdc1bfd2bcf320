//! `[mcp.servers.NAME]`: MCP servers, a table for each, in the user's file or in a trusted
//! project's. A cloned repository that is not trusted must not start programs, nor send anything
//! anywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use adjutant_core::nearest;
use adjutant_mcp::client::{
    Child, Injected, Remote, ServerConfig, ServerName, ToolRules, Transport,
};
use secrecy::SecretString;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use url::Url;

use super::dirs::{Dirs, expand_home};
use super::key::Key;
use super::layer::{Assignment, Shown, Values};
use super::section::{Section as _, keys_of, settings};
use super::toml_file::{File, MCP_SECTION, did_you_mean};
use super::value::{Value, show_toml};
use crate::error::CliError;

const PROGRAM: &str = "a program, or a list of words, such as [\"gh-mcp\", \"--read-only\"]";
const WORDS: &str = "a list of words, such as [\"gh-mcp\", \"--read-only\"]";
const ADDRESS: &str = "an address that begins with https:// or http://";
const SECRETS: &str = "a table, such as { NAME = \"${NAME}\" }";
const ARGUMENTS: &str = "a table, such as { user_id = \"ARGUMENT\" }";
const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(3_600);

settings! {
    /// A server's table.
    pub(crate) struct ServerSettings {
        /// The program that is started here, and its arguments.
        #[setting("command", expected = PROGRAM)]
        pub(crate) command: Option<Vec<String>>,
        /// Further arguments of the program.
        #[setting("args", expected = WORDS)]
        pub(crate) args: Vec<String>,
        /// Variables of the program, in which `${NAME}` stands for a variable of this process.
        #[setting("env", expected = SECRETS)]
        pub(crate) env: BTreeMap<String, String>,
        /// The working directory of the program.
        #[setting("cwd")]
        pub(crate) directory: Option<PathBuf>,
        /// The address of a server that runs elsewhere.
        #[setting("url", expected = ADDRESS)]
        pub(crate) url: Option<String>,
        /// The way to reach it: `stdio` for a program, `http` for an address.
        #[setting("type")]
        pub(crate) transport: Option<String>,
        /// Headers of each request, in which `${NAME}` stands for a variable of this process.
        #[setting("headers", expected = SECRETS)]
        pub(crate) headers: BTreeMap<String, String>,
        /// The variable with the token for `Authorization: Bearer …`.
        #[setting("bearer_token_env")]
        pub(crate) bearer: Option<String>,
        #[setting(section)]
        pub(crate) rules: ToolRules,
        /// Arguments that are hidden from the model, by the value that is filled in.
        #[setting("inject", expected = ARGUMENTS)]
        pub(crate) inject: BTreeMap<String, String>,
        /// Time that one call may take without progress.
        #[setting("timeout", range = TIMEOUT)]
        pub(crate) timeout: Option<Duration>,
        /// Time that one call may take with progress.
        #[setting("max_timeout", range = TIMEOUT)]
        pub(crate) timeout_max: Option<Duration>,
        /// Time without a sign of life after which the start is not waited for.
        #[setting("start_timeout", range = TIMEOUT)]
        pub(crate) start_timeout: Option<Duration>,
        /// Bytes of one result, at most.
        #[setting("max_result_bytes", range = 1_000..=16 * 1024 * 1024)]
        pub(crate) result_bytes_max: Option<u32>,
        /// True if no command runs without this server.
        #[setting("required", default = false)]
        pub(crate) required: bool,
        /// True if the server is not started.
        #[setting("disabled", default = false)]
        pub(crate) disabled: bool,
    }
}

settings! {
    impl ToolRules {
        /// Tools that are offered.
        #[setting("allow")]
        allow: Option<Vec<String>>,
        /// Tools that are not offered.
        #[setting("deny")]
        deny: Vec<String>,
        /// Tools whose calls a person has to confirm.
        #[setting("confirm")]
        confirm: Vec<String>,
        /// Tools that change nothing.
        #[setting("read_only")]
        read_only: Vec<String>,
        /// Tools that are destructive.
        #[setting("destructive")]
        destructive: Vec<String>,
        /// Tools for which a repeated call has no further effect.
        #[setting("idempotent")]
        idempotent: Vec<String>,
        // Its names are checked where their place in the file is known.
        #[setting(skip)]
        inject: BTreeMap<Injected, String>,
    }
}

/// Keys of a server's table.
pub(super) static SERVER_KEYS: LazyLock<Vec<Key>> = LazyLock::new(keys_of::<ServerSettings>);

/// Returns the names of the keys of a server's table.
pub(crate) fn server_fields() -> Vec<&'static str> {
    SERVER_KEYS.iter().map(|key| key.name.as_str()).collect()
}

/// Variables of this process that a server's process inherits on every system: programs need them
/// to run, and none is a key.
const INHERITED: [&str; 7] = [
    "PATH",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
];

/// Further variables that it inherits: those of the official SDKs, and others that name folders and
/// languages.
#[cfg(not(windows))]
const INHERITED_HERE: [&str; 14] = [
    "HOME",
    "LOGNAME",
    "SHELL",
    "TERM",
    "USER",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// Further variables that it inherits on Windows, where a program without them finds neither its
/// libraries nor the user's folders.
#[cfg(windows)]
const INHERITED_HERE: [&str; 12] = [
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
];

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
    let Some(DeValue::Table(section)) = table.get_ref().get(MCP_SECTION).map(Spanned::get_ref)
    else {
        return Ok(tables);
    };
    for (key, value) in section {
        if key.get_ref() != "servers" {
            let error = file.unknown(key.span().start, &format!("mcp.{}", key.get_ref()));
            return Err(error.because("did you mean [mcp.servers.NAME]?"));
        }
        for (name, value) in file.table("mcp.servers", "a table of servers", value)? {
            let at = name.span().start;
            let server = ServerName::new(name.get_ref().as_ref())
                .map_err(|error| file.error(at, error.to_string()))?;
            let name = format!("mcp.servers.{server}");
            let reader = Reader {
                file: &file,
                server,
                table: file.table(&name, "a table", value)?,
                name,
                variables,
                named: BTreeSet::new(),
                unset: Vec::new(),
            };
            tables.push(reader.parse(at)?);
        }
    }
    Ok(tables)
}

impl File<'_> {
    /// Returns the table that a value is.
    fn table<'a>(
        &self,
        name: &str,
        expected: &str,
        value: &'a Spanned<DeValue<'a>>,
    ) -> Result<&'a DeTable<'a>, CliError> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(table),
            other => Err(self.must(value.span().start, name, expected, &show_toml(other))),
        }
    }
}

/// Parses one server's table.
struct Reader<'a> {
    file: &'a File<'a>,
    server: ServerName,
    /// `mcp.servers.NAME`.
    name: String,
    table: &'a DeTable<'a>,
    variables: &'a Variables<'a>,
    /// Variables that the table names.
    named: BTreeSet<String>,
    /// Variables that the table names and that have no value.
    unset: Vec<String>,
}

impl<'a> Reader<'a> {
    /// Parses the table. `at`: the place of its name.
    fn parse(mut self, at: usize) -> Result<ServerTable, CliError> {
        let mut shown = Vec::new();
        let mut values = Values::defaults(&SERVER_KEYS, &Dirs::default());
        for (name, value) in self.table {
            let at = name.span().start;
            let key = SERVER_KEYS.iter().find(|key| key.name == *name.get_ref());
            let key = key.ok_or_else(|| self.unknown(at, name.get_ref()))?;
            let table = format!("{}.", self.name);
            let assignment = match value.get_ref() {
                // A program alone, as other clients have it, with `args` beside it.
                DeValue::String(program) if key.name == "command" => {
                    self.check_program(program, value.span().start)?;
                    Assignment {
                        key,
                        value: Value::List(vec![program.to_string()]),
                        origin: self.file.origin(at),
                    }
                }
                _ => self.file.assignment(key, &table, at, value)?,
            };
            values.lay(vec![assignment]);
            shown.push(self.shown(key, at, value.get_ref()));
        }
        let settings = ServerSettings::from_values("", &values)?;
        self.check_transport(settings.transport.as_deref())?;
        let via = match (settings.command, settings.url) {
            (Some(mut command), None) => {
                command.extend(settings.args);
                self.refuse(&["headers", "bearer_token_env"], "command", "url")?;
                let variables = self.secrets(settings.env);
                Transport::Child(self.child(command, variables, settings.directory)?)
            }
            (None, Some(url)) => {
                self.refuse(&["env", "cwd", "args"], "url", "command")?;
                self.check_url(&url)?;
                Transport::Remote(Remote {
                    url,
                    // A token that was read from a file often ends in a line break, which no
                    // header may have.
                    bearer: (settings.bearer)
                        .and_then(|name| self.look_up(&name))
                        .map(|token| token.trim().into()),
                    headers: self.secrets(settings.headers),
                })
            }
            (Some(_), Some(_)) => {
                return Err(self.wrong(
                    "has both `command` and `url`: it is started here, or it runs elsewhere",
                    self.place_of("command"),
                ));
            }
            (None, None) => {
                return Err(self
                    .wrong("needs `command` or `url`", at)
                    .or_try("command = [\"PROGRAM\", \"ARGUMENT\"]    for a server that is started here")
                    .or_try("url = \"https://…\"    for one that runs elsewhere"));
            }
        };
        let defaults = ServerConfig::new(self.server.clone(), via);
        let config = ServerConfig {
            rules: ToolRules {
                inject: self.inject(settings.inject)?,
                ..settings.rules
            },
            timeout: settings.timeout,
            timeout_max: settings.timeout_max,
            start_timeout: settings.start_timeout.unwrap_or(defaults.start_timeout),
            result_bytes_max: (settings.result_bytes_max)
                .map_or(defaults.result_bytes_max, |bytes| bytes as usize),
            required: settings.required,
            disabled: settings.disabled,
            // No error: the other servers work, and this one is listed with the reason why it does
            // not.
            unusable: (!self.unset.is_empty())
                .then(|| format!("not set in the environment: {}", self.unset.join(", "))),
            ..defaults
        };
        Ok(ServerTable {
            config,
            shown,
            named: self.named,
        })
    }

    fn child(
        &self,
        command: Vec<String>,
        own: BTreeMap<String, SecretString>,
        directory: Option<PathBuf>,
    ) -> Result<Child, CliError> {
        let mut words = command.into_iter();
        let Some(program) = words.next().filter(|program| !program.trim().is_empty()) else {
            return Err(self.wrong("has an empty `command`", self.place_of("command")));
        };
        let mut program = expand_home(PathBuf::from(program));
        // A bare name is looked for in PATH; a path starts at the file.
        if program.components().count() > 1 {
            program = self.file.resolve(program);
        }
        let inherited = INHERITED.iter().chain(&INHERITED_HERE).filter_map(|name| {
            let value = self.variables.process.get(*name)?;
            Some(((*name).to_owned(), value.clone().into()))
        });
        Ok(Child {
            program,
            arguments: words.collect(),
            // The table wins over the inherited variables.
            variables: inherited.chain(own).collect(),
            directory,
        })
    }

    /// Fails if a program that is given as one text has its arguments in it.
    fn check_program(&self, text: &str, at: usize) -> Result<(), CliError> {
        match text.split_once(char::is_whitespace) {
            // The path of a program may have spaces.
            Some((program, _)) if !program.contains(['/', '\\']) => {
                let words: Vec<String> = text
                    .split_whitespace()
                    .map(|word| format!("{word:?}"))
                    .collect();
                let error = self.wrong(
                    "has a program and its arguments in one text as `command`",
                    at,
                );
                Err(error.or_try(format!("command = [{}]", words.join(", "))))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Checks that `type` says the same as `command` or `url`.
    fn check_transport(&self, transport: Option<&str>) -> Result<(), CliError> {
        let Some(transport) = transport else {
            return Ok(());
        };
        let at = self.place_of("type");
        let needed = match transport {
            "stdio" => "command",
            "http" | "streamable-http" | "streamable_http" | "streamableHttp" => "url",
            "sse" => {
                return Err(self
                    .wrong("has the type \"sse\", the older HTTP+SSE, which is not supported", at)
                    .or_try("type = \"http\", and the server's address for Streamable HTTP, often one that ends in /mcp"));
            }
            other => return Err(self.must("type", "stdio or http", other, at)),
        };
        if self.table.contains_key(needed) {
            return Ok(());
        }
        let problem = format!("has the type {transport:?}, which needs `{needed}`");
        Err(self.wrong(&problem, at))
    }

    fn check_url(&self, text: &str) -> Result<(), CliError> {
        let at = self.place_of("url");
        let url = Url::parse(text)
            .ok()
            .filter(|url| matches!(url.scheme(), "https" | "http") && url.has_host())
            .ok_or_else(|| self.must("url", ADDRESS, text, at))?;
        // An address is shown, by `config show` and in errors.
        if !url.username().is_empty() || url.password().is_some() {
            return Err(self.wrong("has a user or a password in its `url`", at).or_try(
                "headers = { Authorization = \"Basic ${NAME}\" }, with the value in the environment or the .env file",
            ));
        }
        Ok(())
    }

    /// Fails if the table has one of these keys, which belong to the other way to reach a server.
    fn refuse(&self, keys: &[&str], has: &str, other: &str) -> Result<(), CliError> {
        match keys.iter().find(|key| self.table.contains_key(**key)) {
            Some(key) => {
                let problem =
                    format!("has `{has}`, and `{key}` belongs to a server with `{other}`");
                Err(self.wrong(&problem, self.place_of(key)))
            }
            None => Ok(()),
        }
    }

    /// Replaces `${NAME}` in texts by the value of the variable.
    fn secrets(&mut self, texts: BTreeMap<String, String>) -> BTreeMap<String, SecretString> {
        texts
            .into_iter()
            .map(|(name, text)| (name, self.expand(&text).into()))
            .collect()
    }

    /// Replaces each `${NAME}` by the value of the variable.
    fn expand(&mut self, text: &str) -> String {
        let mut whole = String::new();
        let mut rest = text;
        // Without an end it is no variable, and stays as it is.
        while let Some((before, (name, after))) = rest
            .split_once("${")
            .and_then(|(before, after)| Some((before, after.split_once('}')?)))
        {
            whole.push_str(before);
            whole.push_str(self.look_up(name).unwrap_or_default());
            rest = after;
        }
        whole + rest
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

    fn inject(
        &self,
        named: BTreeMap<String, String>,
    ) -> Result<BTreeMap<Injected, String>, CliError> {
        let entries = self.table.get("inject").map(Spanned::get_ref);
        let check = |(name, argument): (String, String)| {
            let key = entries.and_then(|table| table.as_table()?.get_key_value(name.as_str()));
            let at = key.map_or(0, |(key, _)| key.span().start);
            let injected = Injected::ALL.into_iter().find(|known| known.name() == name);
            let injected = injected.ok_or_else(|| {
                let problem = format!("inject: {name} is nothing that can be filled in");
                self.wrong(&problem, at)
                    .or_try(Injected::ALL.map(Injected::name).join(", "))
            })?;
            if argument.is_empty() {
                return Err(self.must("inject", ARGUMENTS, &argument, at));
            }
            Ok((injected, argument))
        };
        named.into_iter().map(check).collect()
    }

    /// Returns the place of a key's value, or the beginning of the file.
    fn place_of(&self, key: &str) -> usize {
        self.table.get(key).map_or(0, |value| value.span().start)
    }

    fn must(&self, key: &str, expected: &str, text: &str, at: usize) -> CliError {
        let name = format!("{}.{key}", self.name);
        self.file.must(at, &name, expected, &format!("{text:?}"))
    }

    fn wrong(&self, problem: &str, at: usize) -> CliError {
        self.file.error(at, format!("{} {problem}", self.name))
    }

    fn unknown(&self, at: usize, name: &str) -> CliError {
        let error = self.file.unknown(at, &format!("{}.{name}", self.name));
        let fields = server_fields();
        let near = nearest(name, fields.iter().copied());
        did_you_mean(error, near, &fields.join(", "))
    }

    /// Returns the line of `config show` for a key: the value as it stands in the file, without
    /// what may be secret.
    fn shown(&self, key: &Key, at: usize, value: &DeValue<'_>) -> Shown {
        let value = key
            .kind
            .convert_toml(value)
            .map(|value| match (key.name.as_str(), value) {
                ("env" | "headers", Value::Texts(texts)) => {
                    let names = texts.keys().map(|name| format!("{name} = (not shown)"));
                    names.collect::<Vec<_>>().join(", ")
                }
                ("url", Value::Text(url)) => without_query(&url),
                (_, value) => value.to_string(),
            });
        Shown {
            name: format!("{}.{}", self.name, key.name),
            value,
            unset: "",
            quiet: true,
            origin: self.file.origin(at).to_string(),
        }
    }
}

/// Checks that no tool of a server can have the name of another server's tool: a rule for it would
/// be one for the other.
///
/// # Errors
/// Two servers have names that differ in case, `-` and `_` only, or one name is the other's with
/// `__` and more.
pub(super) fn check_names(servers: &[ServerConfig]) -> Result<(), CliError> {
    let prefix = |server: &ServerConfig| {
        format!(
            "{}__",
            server.name.as_str().to_ascii_lowercase().replace('-', "_")
        )
    };
    for (number, server) in servers.iter().enumerate() {
        for other in &servers[number + 1..] {
            let (a, b) = (prefix(server), prefix(other));
            if a.starts_with(&b) || b.starts_with(&a) {
                return Err(CliError::configuration(format!(
                    "the MCP servers {} and {} cannot be told apart by the names of their tools, {a}… and {b}…",
                    server.name, other.name
                ))
                .or_try("give one of them another name"));
            }
        }
    }
    Ok(())
}

/// Removes the query of an address, which may hold a key.
fn without_query(url: &str) -> String {
    match url.split_once(['?', '#']) {
        Some((address, _)) => format!("{address}?(not shown)"),
        None => url.to_owned(),
    }
}
