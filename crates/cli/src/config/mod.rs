//! Settings: defaults, files, variables and options, laid over each other; each value knows where
//! it came from.
//!
//! Later wins: default, user's file, project's file, `.env`, process, option; for keys:
//! credentials, `.env`, process.

mod access; // who is let in for how long, and where people sign in
pub(crate) mod attachable; // whose files may go along with a message
mod budget; // what may be spent
mod check; // each source by itself
mod credentials; // keys that are kept for their person
mod database; // where everything is kept
mod dirs; // where things are
mod edit; // the person's file, changed
mod env; // variables and keys in files
mod key; // which settings there are
mod layers; // one source at a time
mod mcp; // other people's tools
mod memory; // a person's notes, and what is remembered
mod schema; // the file, for editors
mod serve; // how the service is reached
mod talks; // which conversation goes on, and who is told of a question
pub(crate) mod trust; // whose project files count
mod withheld; // keys that do not go where a folder says
mod write; // files that are the person's

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use adjutant_core::{Budgets, LogContent, LongMessage, MaxTokens, Temperature, WindowShare};
use adjutant_mcp::client::ServerConfig;
use adjutant_providers::Provider;
use secrecy::SecretString;

pub(crate) use check::Checked;
pub(crate) use credentials::{Credentials, end_of};
pub(crate) use database::Database;
pub(crate) use dirs::{Dirs, NAMELESS};
pub(crate) use edit::{Draft, setting};
pub(crate) use env::ENV_FILE;
use env::Secrets;
use key::{DATABASE, KEYS, Kind, MODEL, Value};
pub(crate) use key::{FOREVER, OF_PROVIDER, duration, time};
pub(crate) use layers::home;
use layers::{Layer, Origin, Owner};
pub(crate) use mcp::{FIELDS as OF_MCP_SERVER, SentVariables, variables_sent};
pub(crate) use memory::MemorySettings;
pub(crate) use schema::schema;
pub(crate) use serve::{Authentication, Serve};
pub(crate) use talks::Scope;
pub(crate) use withheld::Withheld;
pub(crate) use write::{write_kept, write_private};

use crate::error::CliError;

/// Returns the name of every setting.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.name.as_ref())
}

/// The project's file, in the working directory.
const PROJECT_FILE: &str = "adjutant.toml";

/// Where settings are looked for.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    pub(crate) dirs: Dirs,
    /// The working directory.
    pub(crate) project: PathBuf,
    /// The process's variables.
    pub(crate) variables: BTreeMap<String, String>,
    /// `--config`.
    pub(crate) config: Option<PathBuf>,
    /// `--env-file`.
    pub(crate) env_file: Option<PathBuf>,
    /// `--model`.
    pub(crate) model: Option<String>,
    /// `--database`.
    pub(crate) database: Option<String>,
    /// `--vault`.
    pub(crate) vault: Option<PathBuf>,
    /// Whether the command serves: it takes the working directory's `.env`, if that is trusted.
    pub(crate) serves: bool,
}

/// Every setting as it applies.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Who answers, if it was said.
    pub(crate) model: Option<String>,
    /// Who answers if that one cannot be had, in this order.
    pub(crate) fallback: Vec<String>,
    pub(crate) user_name: String,
    pub(crate) system_prompt_path: Option<PathBuf>,
    pub(crate) llm: Llm,
    pub(crate) agent: AgentSettings,
    /// Whether a turn whose own model cannot go on is finished by the one in use, wherever that is,
    /// without a question.
    pub(crate) finish_with_any_model: bool,
    /// By the provider's name.
    pub(crate) providers: BTreeMap<&'static str, ProviderSettings>,
    pub(crate) ollama: OllamaSettings,
    /// Prices that hold before the built-in ones.
    pub(crate) prices_file: Option<PathBuf>,
    /// The embedded model's name in the catalogue.
    pub(crate) embedded_model: Option<String>,
    /// Where everything is kept.
    pub(crate) database: Database,
    /// Connections of this process to it, at most, if it is a server. 0: the store's own number.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(dead_code, reason = "only a server has several connections")
    )]
    pub(crate) pool_max: u32,
    /// The same database without a pooler in between, to hear what other processes tell.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(dead_code, reason = "only a server tells")
    )]
    pub(crate) listen: Option<Database>,
    pub(crate) serve: Serve,
    pub(crate) budgets: Budgets,
    pub(crate) memory: MemorySettings,
    /// Time that a command with a prompt waits for the first byte of standard input; zero: not at
    /// all.
    pub(crate) input_wait: Duration,
    /// What this run tells the assistant in addition to its instruction.
    pub(crate) told: Option<String>,
    /// The conversations among which `-c` looks for the newest.
    pub(crate) scope: Scope,
    /// The program, with its arguments, that is run when a question waits; empty: none.
    pub(crate) notify: Vec<String>,
    /// How this run differs from what they say.
    pub(crate) bounds: RunBounds,
    /// Other people's tools.
    pub(crate) mcp: Vec<ServerConfig>,
    /// How long conversations and their logs are kept after the last message; `None`: for ever.
    pub(crate) keep: Option<Duration>,
    /// Whether a model's thinking is shown while it comes.
    pub(crate) shows_thinking: bool,
    /// How much of what is said is written into the logs.
    pub(crate) log_content: LogContent,
    pub(crate) dirs: Dirs,
    /// Every setting's name, value and origin, for showing.
    pub(crate) shown: Vec<Shown>,
    /// What looks like a mistake and stops nothing.
    pub(crate) warnings: Vec<String>,
}

/// `[llm]`: how answers are generated, whoever does. `None`: the provider's own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Llm {
    pub(crate) temperature: Option<Temperature>,
    pub(crate) max_tokens: Option<MaxTokens>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) retries: Option<u32>,
}

/// `[agent]`: the bounds of a turn, and who may do what.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgentSettings {
    pub(crate) max_tool_iterations: Option<u32>,
    pub(crate) tool_timeout: Option<Duration>,
    pub(crate) turn_deadline: Option<Duration>,
    pub(crate) identical_calls_max: Option<u32>,
    /// Characters of a message. `None`: what is usual for the assistant.
    pub(crate) message_chars_max: Option<u32>,
    pub(crate) long_message: LongMessage,
    /// `None`: never.
    pub(crate) summarize_at: Option<WindowShare>,
    pub(crate) confirmation_expiry: Option<Duration>,
    pub(crate) control_functions: bool,
    pub(crate) confirm: Vec<String>,
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
}

/// How this one run differs from what the settings say.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunBounds {
    /// `--temp`: it leaves nothing behind.
    pub(crate) temp: bool,
    /// `--no-tools`: it only talks.
    pub(crate) no_tools: bool,
    /// A conversation is held, in which commands such as `/undo` can be typed.
    pub(crate) in_chat: bool,
}

/// A provider's section, and its key from the environment.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProviderSettings {
    pub(crate) model: Option<String>,
    pub(crate) base_url: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) retries: Option<u32>,
    pub(crate) key: Option<SecretString>,
    /// A key in its place that the working directory's address does not get unasked.
    pub(crate) withheld: Option<Withheld>,
}

/// What `[ollama]` has besides a provider's usual settings.
#[derive(Debug, Clone, Default)]
#[cfg_attr(
    not(feature = "ollama"),
    expect(dead_code, reason = "settings are checked in every build")
)]
pub(crate) struct OllamaSettings {
    pub(crate) host: Option<String>,
    pub(crate) port: Option<u16>,
    pub(crate) context_size: Option<u32>,
    pub(crate) keep_alive: Option<String>,
    /// One of the words of its key.
    pub(crate) think: Option<String>,
}

/// One line of `adjutant config show`.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) name: Cow<'static, str>,
    /// `None`: it has no value; what applies then is in `unset`.
    pub(crate) value: Option<String>,
    pub(crate) unset: &'static str,
    /// Not worth a line without a value.
    pub(crate) quiet: bool,
    pub(crate) origin: String,
}

impl Sources {
    /// What this process was started with.
    ///
    /// # Errors
    /// No home directory.
    pub(crate) fn of_process(
        config: Option<PathBuf>,
        env_file: Option<PathBuf>,
        model: Option<String>,
        database: Option<String>,
        vault: Option<PathBuf>,
    ) -> Result<Self, CliError> {
        let variables: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            // There a name is the same in capitals and without (`Path`).
            .map(|(name, value)| {
                (
                    if cfg!(windows) {
                        name.to_ascii_uppercase()
                    } else {
                        name
                    },
                    value,
                )
            })
            .collect();
        let project = std::env::current_dir().unwrap_or_default();
        Ok(Self {
            dirs: Dirs::of_process(&variables)?,
            project,
            variables,
            config,
            env_file,
            model,
            database,
            vault,
            serves: false,
        })
    }

    /// The user's file: the named one, or the usual one.
    pub(crate) fn user_file(&self) -> PathBuf {
        self.config
            .clone()
            .unwrap_or_else(|| self.dirs.config.join("config.toml"))
    }

    /// The project's file, unless it is the user's anyway.
    pub(crate) fn project_file(&self) -> Option<PathBuf> {
        let file = self.project.join(PROJECT_FILE);
        let same = |other: &Path| matches!((other.canonicalize(), file.canonicalize()), (Ok(a), Ok(b)) if a == b);
        (!same(&self.user_file())).then_some(file)
    }

    /// The project's file, its text, and what it may set.
    fn project_text(&self) -> Result<Option<(PathBuf, String, Owner)>, CliError> {
        let Some(file) = self.project_file() else {
            return Ok(None);
        };
        let Some(text) = read(&file, false)? else {
            return Ok(None);
        };
        let trusted = trust::is_trusted(&self.dirs.state, &file, text.as_bytes());
        Ok(Some((
            file,
            text,
            if trusted {
                Owner::Trusted
            } else {
                Owner::Project
            },
        )))
    }

    /// Reads everything and lays it over each other.
    ///
    /// # Errors
    /// A file that was named and cannot be read, or any setting that is wrong, wherever it is.
    pub(crate) fn load(&self) -> Result<Settings, CliError> {
        let mut values = Values::new(&self.dirs);
        let mut warnings = Vec::new();
        let user_file = self.user_file();
        let user_text = read(&user_file, self.config.is_some())?;
        if let Some(text) = &user_text {
            values.lay(layers::toml(text, &user_file, Owner::User)?.layer);
        }
        let project = self.project_text()?;
        if let Some((file, text, owner)) = &project {
            let parsed = layers::toml(text, file, *owner)?;
            warnings.extend(parsed.not_trusted(file));
            values.lay(stricter(parsed.layer, &values));
        }
        let env_file = self.read_env_file()?;
        warnings.extend(env_file.not_trusted.clone());
        values.lay(layers::variables(
            &env_file.variables,
            Some(&env_file.path),
        )?);
        values.lay(layers::variables(&self.variables, None)?);
        if let Some(model) = &self.model {
            let value = Kind::Text
                .read(model, false)
                .ok_or_else(|| CliError::usage("-m needs a model's name"))?;
            values.set(MODEL, value, Origin::Flag("-m"));
        }
        if let Some(database) = &self.database {
            let value = Kind::Database.read(database, false).ok_or_else(|| {
                CliError::usage(format!("--database needs {}", Kind::Database.expected()))
            })?;
            values.set(DATABASE, value, Origin::Flag("--database"));
        }
        if let Some(vault) = &self.vault {
            values.set(
                memory::VAULT,
                Value::Path(vault.clone()),
                Origin::Flag("--vault"),
            );
        }
        let credentials = Credentials::read(&self.dirs.config)?;
        let of_folder = project.iter().map(|(file, ..)| file.clone());
        let of_folder = of_folder
            .chain(env_file.of_folder.then(|| env_file.path.clone()))
            .collect();
        let secrets = Secrets {
            process: &self.variables,
            file: &env_file,
            credentials: &credentials,
            of_folder,
        };
        values.check_database(&secrets)?;
        warnings.extend(credentials.warnings.iter().cloned());
        warnings.extend(layers::misspelt(&env_file.variables));
        warnings.extend(layers::misspelt(&self.variables));
        let variables = mcp::Variables {
            process: &self.variables,
            file: &env_file.variables,
        };
        let mut servers = mcp::servers(
            user_text.as_deref().unwrap_or_default(),
            &user_file,
            &variables,
        )?;
        if let Some((file, text, Owner::Trusted)) = &project {
            let of_project = mcp::servers(text, file, &variables)?;
            // One of the same name takes the other's place, as with every setting.
            servers.retain(|server| {
                of_project
                    .iter()
                    .all(|other| other.config.name != server.config.name)
            });
            servers.extend(of_project);
        }
        let mut settings = values.settle(&self.dirs, &secrets, warnings);
        for server in servers {
            settings.mcp.push(server.config);
            settings.shown.extend(server.lines);
        }
        Ok(settings)
    }
}

/// A project's lists add to what the user has confirmed or denied; they take nothing away.
fn stricter(layer: Layer, below: &Values) -> Layer {
    let add = |(key, value, origin): (&'static key::Key, Value, Origin)| match value {
        Value::List(names) => {
            let mut all = below.list(&key.name);
            all.extend(
                names
                    .into_iter()
                    .filter(|name| !below.list(&key.name).contains(name)),
            );
            (key, Value::List(all), origin)
        }
        value => (key, value, origin),
    };
    layer.into_iter().map(add).collect()
}

/// A file's text; `None` if it is not there and need not be.
fn read(path: &Path, needed: bool) -> Result<Option<String>, CliError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !needed => Ok(None),
        Err(error) => Err(
            CliError::configuration(format!("{} cannot be read", path.display()))
                .because(error.to_string()),
        ),
    }
}

/// Settings by name while they are collected.
struct Values(Vec<(&'static key::Key, Option<Value>, Origin)>);

impl Values {
    fn new(dirs: &Dirs) -> Self {
        Self(
            KEYS.iter()
                .map(|key| (key, (key.default)(dirs), Origin::Default))
                .collect(),
        )
    }

    fn lay(&mut self, layer: Layer) {
        for (key, value, origin) in layer {
            self.set(&key.name, value, origin);
        }
    }

    fn set(&mut self, name: &str, value: Value, origin: Origin) {
        for slot in self.0.iter_mut().filter(|slot| slot.0.name == name) {
            slot.1 = Some(value.clone());
            slot.2 = origin.clone();
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|slot| slot.0.name == name)?.1.as_ref()
    }

    fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(Value::to_string)
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        if let Some(Value::Path(path)) = self.get(name) {
            Some(path.clone())
        } else {
            None
        }
    }

    fn time(&self, name: &str) -> Option<Duration> {
        if let Some(Value::Duration(time)) = self.get(name) {
            Some(*time)
        } else {
            None
        }
    }

    fn integer(&self, name: &str) -> Option<u32> {
        if let Some(Value::Integer(number)) = self.get(name) {
            u32::try_from(*number).ok()
        } else {
            None
        }
    }

    fn number(&self, name: &str) -> Option<f64> {
        if let Some(Value::Number(number)) = self.get(name) {
            Some(*number)
        } else {
            None
        }
    }

    fn truth(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Value::Truth(true)))
    }

    fn list(&self, name: &str) -> Vec<String> {
        if let Some(Value::List(names)) = self.get(name) {
            names.clone()
        } else {
            Vec::new()
        }
    }

    fn paths(&self, name: &str) -> BTreeMap<String, PathBuf> {
        if let Some(Value::Paths(paths)) = self.get(name) {
            paths.clone()
        } else {
            BTreeMap::new()
        }
    }

    /// The database's address, else the file.
    fn database(&self) -> Option<Database> {
        match self.get(DATABASE) {
            Some(Value::Database(database)) => Some(database.clone()),
            _ => self.path("store.path").map(Database::Sqlite),
        }
    }

    fn secret(&self, name: &str) -> Option<SecretString> {
        if let Some(Value::Secret(secret)) = self.get(name) {
            Some(secret.0.clone())
        } else {
            None
        }
    }

    fn provider(&self, provider: &Provider, secrets: &Secrets<'_>) -> ProviderSettings {
        let name = |setting: &str| format!("{}.{setting}", provider.name);
        let (key, withheld) = self.key(provider, secrets);
        ProviderSettings {
            model: self.text(&name("model")),
            base_url: self.text(&name("base_url")),
            timeout: self.time(&name("timeout")),
            retries: self.integer(&name("retries")),
            key,
            withheld,
        }
    }

    fn settle(self, dirs: &Dirs, secrets: &Secrets<'_>, warnings: Vec<String>) -> Settings {
        let mut shown: Vec<Shown> = self
            .0
            .iter()
            .map(|(key, value, origin)| Shown {
                name: Cow::Borrowed(&key.name),
                value: value.as_ref().map(Value::to_string),
                unset: key.unset,
                quiet: key.quiet,
                origin: origin.to_string(),
            })
            .collect();
        for variable in Provider::all().filter_map(|provider| provider.key_variable) {
            // Providers of one vendor share its key.
            if shown.iter().any(|shown| shown.name == variable) {
                continue;
            }
            let key = secrets.get(variable);
            shown.push(Shown {
                name: Cow::Borrowed(variable),
                value: key.as_ref().map(|_| "set, not shown".to_owned()),
                unset: "none",
                quiet: true,
                origin: key.map_or_else(|| Origin::Default.to_string(), |found| found.origin),
            });
        }
        Settings {
            model: self.text("model"),
            fallback: self.list("fallback"),
            user_name: self.text("user_name").unwrap_or_default(),
            system_prompt_path: self.path("system_prompt_path"),
            llm: Llm {
                temperature: self
                    .number("llm.temperature")
                    .and_then(|value| Temperature::new(value).ok()),
                max_tokens: self
                    .integer("llm.max_tokens")
                    .and_then(|value| MaxTokens::new(value).ok()),
                timeout: self.time("llm.timeout"),
                retries: self.integer("llm.retries"),
            },
            agent: AgentSettings {
                max_tool_iterations: self.integer("agent.max_tool_iterations"),
                tool_timeout: self.time("agent.tool_timeout"),
                turn_deadline: self.time("agent.turn_deadline"),
                identical_calls_max: self.integer("agent.identical_calls_max"),
                message_chars_max: self.integer("agent.message_chars_max"),
                long_message: match self.text("agent.long_message").as_deref() {
                    Some("refuse") => LongMessage::Refuse,
                    Some(_) | None => LongMessage::Cut,
                },
                summarize_at: self
                    .number("agent.summarize_at")
                    .filter(|at| *at > 0.0)
                    .and_then(|at| WindowShare::new(at.max(0.1)).ok()),
                confirmation_expiry: self.time("agent.confirmation_expiry"),
                control_functions: self.truth("agent.control_functions"),
                confirm: self.list("agent.confirm"),
                allow: self.list("agent.allow"),
                deny: self.list("agent.deny"),
            },
            finish_with_any_model: self.truth("turns.finish_with_any_model"),
            providers: Provider::all()
                .map(|provider| (provider.name, self.provider(provider, secrets)))
                .collect(),
            ollama: OllamaSettings {
                host: self.text("ollama.host"),
                port: self
                    .integer("ollama.port")
                    .and_then(|port| u16::try_from(port).ok()),
                context_size: self.integer("ollama.context_size"),
                keep_alive: self.text("ollama.keep_alive"),
                think: self.text("ollama.think"),
            },
            prices_file: self.path("prices_file"),
            embedded_model: self.text("embedded.model"),
            database: self
                .database()
                .unwrap_or_else(|| Database::Sqlite(dirs.data.join("adjutant.db"))),
            pool_max: self.integer("database.pool_max").unwrap_or_default(),
            listen: match self.get("database.listen_url") {
                Some(Value::Database(database)) => Some(database.clone()),
                _ => None,
            },
            serve: serve::serve(&self),
            budgets: budget::budgets(&self),
            memory: memory::memory(&self),
            input_wait: self.time("input.wait").unwrap_or_default(),
            told: None,
            scope: talks::scope(&self),
            notify: self.list("notify.command"),
            bounds: RunBounds::default(),
            mcp: Vec::new(),
            keep: self.time("log.keep"),
            shows_thinking: self
                .text("terminal.thinking")
                .is_some_and(|word| word == "show"),
            log_content: self
                .text("log.content")
                .and_then(|word| word.parse().ok())
                .unwrap_or_default(),
            dirs: dirs.clone(),
            shown,
            warnings,
        }
    }
}

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
