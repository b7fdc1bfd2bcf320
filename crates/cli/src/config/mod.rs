//! Settings: defaults, files, variables and options of the command line, laid over each other; each
//! value knows where it came from.
//!
//! A setting is a field of a struct that is declared with `settings!`: [`Settings`] and the structs
//! of its sections. To add one, add the field.
//!
//! Later sources win: default, the user's file, the project's file, `.env`, variables of the
//! process, options. For keys of providers: credentials, `.env`, variables of the process.

pub(crate) mod attachment_folders; // folders whose files may be attached to a message
mod budget; // [budget]
mod check; // `config check`: each source by itself
mod credentials; // credentials.toml: keys of providers
mod database; // the address of a database
mod dirs; // the user's folders
mod edit; // `config set`: changes to the user's file
mod env_file; // the .env file, and keys of providers in variables
mod files; // the user's files: read; written whole or not at all, readable for their owner alone
mod key; // one setting
mod layer; // what one source sets, and which value applies
mod load; // all sources, loaded and laid over each other
mod mcp; // [mcp.servers.NAME]
mod memory; // [vault] and [memory]
mod provider_key; // a provider's key, withheld from addresses that a project's file names
mod schema; // JSON Schema of the file, for editors
mod section; // the declaration of settings: `settings!`
mod serve; // [serve]
mod sources; // where settings come from
mod toml_file; // a TOML file, parsed with line and column
pub(crate) mod trust; // project files that the user has trusted
mod value; // types of settings and their values
mod variables; // settings from environment variables

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use adjutant_core::{
    Budgets, LogContent, LongMessage, MaxTokens, Temperature, WindowShare, limits,
};
use adjutant_mcp::client::ServerConfig;
use adjutant_providers::Provider;
use secrecy::SecretString;

pub(crate) use check::Checked;
pub(crate) use credentials::{Credentials, key_ending};
pub(crate) use database::Database;
pub(crate) use dirs::{DEFAULT_USER_NAME, Dirs, expand_home};
pub(crate) use edit::{Draft, find_setting};
pub(crate) use files::{FILE_BYTES_MAX, read_named_text, write_keeping_permissions, write_private};
use key::Key;
pub(crate) use layer::Shown;
use layer::Values;
pub(crate) use mcp::{SentVariables, sent_variables, server_fields};
pub(crate) use memory::{MemorySettings, TaskStorage};
pub(crate) use schema::schema;
use section::{Section, keys_of, settings};
pub(crate) use serve::{Authentication, Serve};
pub(crate) use sources::Sources;
use value::{DAY, Kind, SECOND, choices};
pub(crate) use value::{FOREVER, format_duration, parse_duration};

use crate::args::Thinking;
use crate::error::CliError;

// A list made at run time: the names of providers' settings and of budgets are put together.
/// Every setting, in the order in which `adjutant config show` lists them.
static KEYS: LazyLock<Vec<Key>> = LazyLock::new(keys_of::<Settings>);

/// The section `[vault]` as older programs call it.
const OLD_VAULT_SECTION: &str = "obsidian";

/// Finds a setting by its section and name, or by its other spelling, which counts in the section
/// and at the top of the file.
fn find_key(section: &str, name: &str) -> Option<&'static Key> {
    // Its keys are those of `[vault]`, so a file may have both sections.
    let section = if section == OLD_VAULT_SECTION {
        "vault"
    } else {
        section
    };
    KEYS.iter().find(|key| {
        let (own_section, own_name) = key.section_and_name();
        (own_section == section && own_name == name)
            || (key.alias == Some(name) && (own_section == section || section.is_empty()))
    })
}

/// Returns the name of every setting.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.name.as_str())
}

/// Attempts of a model call after the first.
const RETRIES: RangeInclusive<u64> = 0..=10;

// The order of the fields is the order of `config show` and of docs/configuration.md.
settings! {
    /// Every setting as it applies to this process.
    #[derive(Debug, Clone)]
    pub(crate) struct Settings {
        /// The model that answers: `PROVIDER/MODEL`.
        #[setting("model", unset = "a key in the environment, else Ollama, else embedded")]
        pub(crate) model: Option<String>,
        /// Models that answer, in this order, if the first one is not available.
        #[setting("fallback", unset = "no other model answers in its place")]
        pub(crate) fallback: Vec<String>,
        /// The user's name, as the model is given it.
        #[setting("user_name", user_default = |dirs| dirs.os_user.clone().into())]
        pub(crate) user_name: String,
        // Not for a project's file: its author could have the model do anything.
        /// A file with the instruction of the model, in the place of the built-in one.
        #[setting("system_prompt_path", alias = "systemPromptPath",
            unset = "the built-in instruction")]
        pub(crate) system_prompt_path: Option<PathBuf>,
        #[setting(section)]
        pub(crate) llm: Llm,
        #[setting(section)]
        pub(crate) agent: AgentSettings,
        /// True if any model in use finishes a turn whose own model cannot go on, without asking.
        #[setting("turns.finish_with_any_model", default = false)]
        pub(crate) finish_with_any_model: bool,
        /// The embedded model, by its name in the catalogue.
        #[setting("embedded.model", unset = "the default one (adjutant models list)")]
        pub(crate) embedded_model: Option<String>,
        #[setting(section)]
        pub(crate) ollama: OllamaSettings,
        /// Time that a command with a prompt waits for the first byte of standard input, before it
        /// goes on without it. `0s`: it does not wait.
        #[setting("input.wait", range = Duration::ZERO..=DAY, default = 10 * SECOND)]
        pub(crate) input_wait: Duration,
        /// A file with prices of models, which win over the built-in ones.
        #[setting("prices_file", unset = "the built-in table")]
        pub(crate) prices_file: Option<PathBuf>,
        /// The database with all data: `serve.database_url`, else the file of `store.path`.
        #[setting(section)]
        pub(crate) database: Database,
        /// Connections of one process to PostgreSQL, at most.
        #[setting("database.pool_max", range = 1..=10_000, default = 10_u32)]
        #[cfg_attr(
            not(feature = "postgres"),
            expect(dead_code, reason = "only PostgreSQL has a connection pool")
        )]
        pub(crate) pool_max: u32,
        /// The address of the same database without a connection pooler in between, for LISTEN.
        #[setting("database.listen_url", unset = "the database's address")]
        #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "only PostgreSQL has it"))]
        pub(crate) listen: Option<Database>,
        /// Shows or hides a model's thinking while it answers.
        #[setting("terminal.thinking", project, default = "hide")]
        pub(crate) thinking: Thinking,
        /// The keys of the line editor in a conversation.
        #[setting("terminal.keys", default = "emacs")]
        pub(crate) editor_keys: EditorKeys,
        /// Time that conversations and their logs are kept after the last message.
        // `forever` is no duration, so the field is `None` then.
        #[setting("log.keep", kind = Kind::DurationOrForever, default = FOREVER)]
        pub(crate) keep: Option<Duration>,
        /// The share of messages, arguments and results that is written into the logs: all but
        /// secrets, only lengths and digests, or nothing.
        #[setting("log.content", default = "full")]
        pub(crate) log_content: LogContent,
        #[setting(section)]
        pub(crate) memory: MemorySettings,
        // Neither of these two for a project's file: one decides what the user goes on with, and
        // the other runs a program.
        /// The conversations among which `-c` takes the newest: all, or those that began in the
        /// working directory.
        #[setting("sessions.continue", default = "global")]
        pub(crate) scope: Scope,
        /// A program with its arguments that is run when a question waits for an answer.
        #[setting("notify.command", unset = "nothing is run")]
        pub(crate) notify: Vec<String>,
        #[setting(section)]
        pub(crate) serve: Serve,
        #[setting(section)]
        pub(crate) budgets: Budgets,
        /// Sections of providers, by the provider's name.
        #[setting(section)]
        pub(crate) providers: Providers,
        /// Instructions for this run alone (`--role`, `--system`), added to the system prompt.
        #[setting(skip)]
        pub(crate) extra_instructions: Option<String>,
        /// Restrictions of this run alone.
        #[setting(skip)]
        pub(crate) bounds: RunBounds,
        /// MCP servers of the user's file and of a trusted project's.
        #[setting(skip)]
        pub(crate) mcp: Vec<ServerConfig>,
        #[setting(skip)]
        pub(crate) dirs: Dirs,
        /// Every setting's name, value and origin, for `config show`.
        #[setting(skip)]
        pub(crate) shown: Vec<Shown>,
        /// Probable mistakes in the sources; none of them stops a command.
        #[setting(skip)]
        pub(crate) warnings: Vec<String>,
    }
}

// A project's file may set these: none of them sends anything elsewhere or loosens the policy.
settings! {
    /// `[llm]`: how answers are generated, by whichever provider. `None`: the provider's default.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct Llm {
        /// Sampling temperature; at 0.0 the same request gets much the same answer.
        #[setting("llm.temperature", variable = "LLM_TEMPERATURE", project,
            unset = "0.0, where the model is known to take it")]
        pub(crate) temperature: Option<Temperature>,
        /// Tokens of one answer, at most.
        #[setting("llm.max_tokens", variable = "LLM_MAX_TOKENS", project,
            unset = "1024; 16384 for an unknown model behind a gateway")]
        pub(crate) max_tokens: Option<MaxTokens>,
        /// Time that one model call may take.
        #[setting("llm.timeout", variable = "LLM_TIMEOUT", project,
            unset = "cloud 30s, or 15m if the model may think; own servers 120s, and 10m before the answer begins")]
        pub(crate) timeout: Option<Duration>,
        /// Attempts of a failed model call after the first.
        #[setting("llm.retries", range = RETRIES, project, unset = "cloud 1, Ollama 3, embedded 0")]
        pub(crate) retries: Option<u32>,
        /// The way of calling tools: "free" by the model itself, "constrained" in one round of actions
        /// that fit a schema and the words of the message, "auto" in the second way by models whose
        /// name says that they have at most 3 billion parameters, if there is no `fallback`.
        #[setting("llm.tool_calling", project, default = "auto")]
        pub(crate) tool_calling: ToolCalling,
    }
}

settings! {
    /// `[agent]`: limits of a turn, and the policy for tool calls.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct AgentSettings {
        /// Rounds of tool calls in one turn, at most.
        #[setting("agent.max_tool_iterations", range = 1..=100, variable = "MAX_TOOL_ITERATIONS",
            project, default = limits::TOOL_ITERATIONS_MAX)]
        pub(crate) max_tool_iterations: Option<u32>,
        /// Tool calls of one answer that run at the same time, at most.
        #[setting("agent.max_parallel_tools", range = 1..=100, project,
            default = limits::PARALLEL_TOOLS_MAX)]
        pub(crate) max_parallel_tools: Option<NonZeroU32>,
        /// Time that one tool call may take.
        #[setting("agent.tool_timeout", range = Duration::from_millis(1)..=DAY, project,
            default = limits::TOOL_TIMEOUT)]
        pub(crate) tool_timeout: Option<Duration>,
        /// Time that a turn may take; time in which it waits for a person does not count.
        #[setting("agent.turn_deadline", project, unset = "cloud 120s; own models none")]
        pub(crate) turn_deadline: Option<Duration>,
        /// Executions of the same tool with the same arguments in one turn, at most.
        #[setting("agent.identical_calls_max", range = 1..=100, project,
            default = limits::IDENTICAL_CALLS_MAX)]
        pub(crate) identical_calls_max: Option<u32>,
        /// Characters of one message, at most.
        ///
        /// The default is for the service's assistant; a value applies in the terminal too.
        #[setting("agent.message_chars_max", range = 1..=1_048_576, project,
            unset = "half of what the model can read, at most 100000, and 8000 with constrained tool calling; 4000 for POST /v1/chat; in the terminal what the model can read")]
        pub(crate) message_chars_max: Option<u32>,
        /// The treatment of a longer message: cut it, or refuse it.
        #[setting("agent.long_message", project, default = "cut")]
        pub(crate) long_message: LongMessage,
        /// Messages of history that a request contains, at most. 0: what the model can read.
        ///
        /// The default is for the service's assistant; a value applies in the terminal too.
        #[setting("agent.history_messages_max", range = 0..=10_000, project,
            unset = "20; in the terminal what the model can read")]
        pub(crate) history_messages_max: Option<u32>,
        /// The share of the context window at which old turns are summarised, and with them what `agent.history_messages_max` leaves out. 0: never.
        #[setting("agent.summarize_at", project, default = limits::SUMMARIZE_AT)]
        pub(crate) summarize_at: Option<WindowShare>,
        /// Time in which a call can be approved or denied.
        #[setting("agent.confirmation_expiry", range = SECOND..=365 * DAY, project,
            default = limits::CONFIRMATION_EXPIRY)]
        pub(crate) confirmation_expiry: Option<Duration>,
        /// Time for which every call that must not be repeated is asked about, after PostgreSQL has
        /// lost commits in a fail-over. 0: none is.
        #[setting("agent.ask_after_lost_commits", range = Duration::ZERO..=DAY,
            default = limits::ASK_AFTER_LOST_COMMITS)]
        pub(crate) ask_after_lost_commits: Duration,
        /// True if the model can ask a question or refuse by a function call.
        #[setting("agent.control_functions", default = true)]
        pub(crate) control_functions: bool,
        /// Tools whose calls a person has to confirm.
        #[setting("agent.confirm", project, unset = "destructive tools")]
        pub(crate) confirm: Vec<String>,
        // Not for a project's file, unlike the lists above and below: a project may have more calls
        // confirmed or denied, and none fewer.
        /// Tools that run without a confirmation.
        #[setting("agent.allow", unset = "tools that are not destructive")]
        pub(crate) allow: Vec<String>,
        /// Tools that never run.
        #[setting("agent.deny", project, unset = "none")]
        pub(crate) deny: Vec<String>,
    }
}

settings! {
    /// `[ollama]`: settings of Ollama beside those that every provider has.
    #[derive(Debug, Clone, Default)]
    #[cfg_attr(
        not(feature = "ollama"),
        expect(dead_code, reason = "settings are checked in every build")
    )]
    pub(crate) struct OllamaSettings {
        /// The host of the server.
        #[setting("ollama.host", quiet, unset = "localhost")]
        pub(crate) host: Option<String>,
        /// The port of the server.
        #[setting("ollama.port", range = 1..=65_535, quiet, unset = "11434")]
        pub(crate) port: Option<u16>,
        /// Tokens of the context window that the server is asked for.
        #[setting("ollama.context_size", range = 512..=16_777_216, alias = "contextSize", quiet,
            project, unset = "32768")]
        pub(crate) context_size: Option<u32>,
        /// Time that the server keeps the model in memory, as Ollama's `keep_alive` has it.
        #[setting("ollama.keep_alive", quiet, unset = "the server's default")]
        pub(crate) keep_alive: Option<String>,
        /// Thinking of models that can: off, on, or a level.
        #[setting("ollama.think",
            kind = Kind::OneOf(&["off", "on", "low", "medium", "high", "max"]), quiet, project,
            unset = "the model's own default")]
        pub(crate) think: Option<String>,
    }
}

/// The keys of the line editor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum EditorKeys {
    #[default]
    Emacs,
    Vi,
}

/// The way in which a model calls tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ToolCalling {
    /// Constrained for small models without fallbacks and MCP servers.
    #[default]
    Auto,
    Free,
    Constrained,
}

/// The conversations among which `-c` takes the newest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Scope {
    #[default]
    Global,
    /// Conversations that began in the working directory.
    Folder,
}

choices! {
    LogContent { "full" => Full, "redacted" => Redacted, "none" => None }
    LongMessage { "cut" => Cut, "refuse" => Refuse }
    Scope { "global" => Global, "folder" => Folder }
    ToolCalling { "auto" => Auto, "free" => Free, "constrained" => Constrained }
    EditorKeys { "emacs" => Emacs, "vi" => Vi }
    Thinking { "hide" => Hide, "show" => Show }
}

/// Restrictions of one run, whatever the settings say.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunBounds {
    /// `--temp`: nothing is stored.
    pub(crate) temp: bool,
    /// `--no-tools`: the model is offered no tools.
    pub(crate) no_tools: bool,
    /// True in a conversation at the terminal, in which commands such as `/undo` can be typed.
    pub(crate) in_chat: bool,
}

// Not declared with `settings!`: the sections' names are those of the providers, known at run time.
/// Sections of providers, by the provider's name.
pub(crate) type Providers = BTreeMap<&'static str, ProviderSettings>;

// None of these may stand in a project's file that is not trusted: they say where messages are
// sent, and who answers.
settings! {
    /// A provider's section, and its key from the environment.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct ProviderSettings {
        /// The model that answers if none is named.
        #[setting("model", quiet, unset = PROVIDER_DEFAULT)]
        pub(crate) model: Option<String>,
        /// The address of the provider's API.
        #[setting("base_url", quiet, unset = PROVIDER_DEFAULT)]
        pub(crate) base_url: Option<String>,
        /// As `llm.timeout`, for this provider.
        #[setting("timeout", quiet, unset = PROVIDER_DEFAULT)]
        pub(crate) timeout: Option<Duration>,
        /// As `llm.retries`, for this provider.
        #[setting("retries", range = RETRIES, quiet, unset = PROVIDER_DEFAULT)]
        pub(crate) retries: Option<u32>,
        #[setting(skip)]
        pub(crate) key: Option<SecretString>,
        /// A key that is not sent unless the user agrees, because a file of the working directory
        /// names the address it would go to. `key` is `None` then.
        #[setting(skip)]
        pub(crate) withheld: Option<WithheldKey>,
    }
}

/// A key that is not from the working directory, while the address that it would be sent to is.
#[derive(Debug, Clone)]
pub(crate) struct WithheldKey {
    pub(crate) key: SecretString,
    /// The source of the key.
    pub(crate) origin: String,
    pub(crate) address: String,
    /// The source of the address.
    pub(crate) address_origin: String,
    /// Set once the user has agreed that the key is sent to this address.
    pub(crate) agreed: Arc<OnceLock<()>>,
}

impl ProviderSettings {
    /// Returns the key, withheld or not.
    pub(crate) fn any_key(&self) -> Option<&SecretString> {
        self.key
            .as_ref()
            .or(self.withheld.as_ref().map(|withheld| &withheld.key))
    }
}

/// Names of the settings that each provider's section has.
pub(crate) const PROVIDER_SETTINGS: [&str; 4] = ["model", "base_url", "timeout", "retries"];

const PROVIDER_DEFAULT: &str = "the provider's default";

impl Section for Database {
    fn append_keys(_prefix: &str, keys: &mut Vec<Key>) {
        keys.push(Key {
            default: Some(|dirs| dirs.database_file().into()),
            ..Key::new::<PathBuf>("store.path".to_owned(), &["The SQLite file with all data."])
        });
    }

    fn from_values(_prefix: &str, values: &Values) -> Result<Self, CliError> {
        match values.get("serve.database_url")? {
            Some(database) => Ok(database),
            None => values.get("store.path").map(Self::Sqlite),
        }
    }
}

impl Section for Providers {
    fn append_keys(_prefix: &str, keys: &mut Vec<Key>) {
        for provider in Provider::all() {
            let before = keys.len();
            ProviderSettings::append_keys(&format!("{}.", provider.name), keys);
            for key in &mut keys[before..] {
                // Each vendor has variables of its own for these two, beside ours.
                key.variable = match key.section_and_name().1 {
                    "model" => provider.model_variable,
                    "base_url" => provider.base_url_variable,
                    _ => None,
                };
            }
        }
    }

    /// Reads the sections; keys of providers come from elsewhere and are added while loading.
    fn from_values(_prefix: &str, values: &Values) -> Result<Self, CliError> {
        let section = |provider: &Provider| {
            ProviderSettings::from_values(&format!("{}.", provider.name), values)
        };
        Provider::all()
            .map(|provider| Ok((provider.name, section(provider)?)))
            .collect()
    }
}

#[cfg(test)]
mod tests;
