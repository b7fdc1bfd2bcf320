//! The command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use adjutant_core::{TaskFilter, Verdict, nearest};
use adjutant_providers::Provider;
use clap::{ArgAction, Args, CommandFactory as _, Parser, Subcommand, ValueEnum};

use crate::config::{Authentication, time};
use crate::error::CliError;

const EXAMPLES: &str = "\
Examples:
  adjutant                            talk
  adjutant add buy milk tomorrow      one request, one answer
  echo \"what is open?\" | adjutant     the request from a pipe
  adjutant -c \"and the milk?\"         go on with the last conversation
  adjutant -r 5aaa5c0d                go on with that one (adjutant sessions list)
  adjutant ask --json \"list my tasks\" | jq .content
  adjutant -- -m is part of this request
  adjutant tasks list                 without a language model
";

// No line break after the quote: it would take the blanks along.
const OTHER_MODELS: &str = "  embedded | embedded/NAME            runs in this process, downloaded once
  embedded:FILE.gguf                  the same, from a file you have
  demo | scripted:FILE                no language model: canned answers, for demos and tests
";

const CODES_AND_FILES: &str = "\
Exit codes:
  0 answered · 1 failed · 2 unusable command line or prompt · 3 configuration, key or data folder
  4 needs a yes (adjutant pending list) · 5 provider unavailable or rate limited · 6 a limit was hit · 130 Ctrl-C

Files:
  ~/.config/adjutant/                       config.toml, .env, credentials.toml (adjutant config show, config path)
  ~/.local/share/adjutant/                  adjutant.db (tasks, conversations, logs) and models/

A screen that stands still, for screen readers: NO_COLOR=1, or TERM=dumb (docs/screen-readers.md)
";

/// What the table of providers says, between what never changes.
fn after_help() -> String {
    let mut models =
        "Models (-m, ADJUTANT_MODEL, or `model` in the configuration; `adjutant models list`):\n".to_owned();
    for provider in Provider::all() {
        let names = match provider.default_model {
            Some(_) => format!("{0} | {0}/NAME", provider.name),
            None if provider.local => format!("{0} | {0}/NAME", provider.name),
            None => format!("{}/NAME", provider.name),
        };
        let note = match (provider.key_variable, provider.needs_key, provider.local) {
            (Some(variable), true, _) => format!("needs {variable}"),
            (_, _, true) => "a server on this machine".to_owned(),
            (Some(variable), false, false) => format!("another server; its key, if any, in {variable}"),
            (None, ..) => "another server".to_owned(),
        };
        models.push_str(&format!("  {names:35} {note}\n"));
    }
    let order: Vec<&str> = Provider::by_preference()
        .filter(|provider| provider.key_variable.is_some() && provider.default_model.is_some())
        .map(|provider| provider.name)
        .collect();
    let usual = format!(
        "  Without one: the first with a key ({}), else Ollama if it runs, else embedded.\n",
        order.join(", ")
    );
    [EXAMPLES, "\n", &models, OTHER_MODELS, &usual, "\n", CODES_AND_FILES].concat()
}

/// An assistant for your tasks, in the terminal.
#[derive(Debug, Parser)]
#[command(name = "adjutant", version, about, after_help = after_help(), disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// What to ask; `-` reads it from standard input. Without: chat at a terminal, else standard input
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,
}

/// What every command understands.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Read this file instead of the user's config.toml
    #[arg(short = 'C', long, global = true, value_name = "FILE", help_heading = "Options everywhere")]
    pub(crate) config: Option<PathBuf>,
    /// Read keys and settings from this file instead of the configuration folder's .env
    #[arg(long, global = true, value_name = "FILE", help_heading = "Options everywhere")]
    pub(crate) env_file: Option<PathBuf>,
    /// Who answers, as PROVIDER or PROVIDER/MODEL
    #[arg(short, long, global = true, value_name = "MODEL", help_heading = "Options everywhere")]
    pub(crate) model: Option<String>,
    /// Where everything is kept: postgres://…, sqlite:FILE or a path
    #[arg(long, global = true, value_name = "URL", help_heading = "Options everywhere")]
    pub(crate) database: Option<String>,
    /// Go on with the newest conversation
    #[arg(short, long = "continue", global = true, help_heading = "Options everywhere")]
    pub(crate) continues: bool,
    /// Go on with this conversation, named by a part of its id; without: pick one
    #[arg(
        short,
        long,
        global = true,
        value_name = "ID",
        num_args = 0..=1,
        conflicts_with_all = ["continues", "temp"],
        help_heading = "Options everywhere"
    )]
    pub(crate) resume: Option<Option<String>>,
    /// Say yes to every confirmation, or with --yes=TOOL,TOOL to those of these tools
    #[arg(
        short,
        long,
        global = true,
        value_name = "TOOL",
        num_args = 0..=1,
        require_equals = true,
        value_delimiter = ',',
        default_missing_value = "*",
        help_heading = "Options everywhere"
    )]
    pub(crate) yes: Vec<String>,
    /// Never ask; what needs a yes ends with exit code 4
    #[arg(long, global = true, help_heading = "Options everywhere")]
    pub(crate) no_input: bool,
    /// Print one JSON object and nothing else on standard output
    #[arg(long, global = true, help_heading = "Options everywhere")]
    pub(crate) json: bool,
    /// Print what happens as it happens, one JSON object a line; the last line is that of --json
    #[arg(long, global = true, conflicts_with = "json", help_heading = "Options everywhere")]
    pub(crate) stream_json: bool,
    /// The folder of notes, in place of vault.path
    #[arg(long, global = true, value_name = "DIR", help_heading = "Options everywhere")]
    pub(crate) vault: Option<PathBuf>,
    /// Leave nothing behind: read tasks, facts and notes, write none, and forget the conversation
    #[arg(long, global = true, conflicts_with_all = ["continues", "resume"], help_heading = "Options everywhere")]
    pub(crate) temp: bool,
    /// Only talk
    #[arg(long, global = true, help_heading = "Options everywhere")]
    pub(crate) no_tools: bool,
    /// Tool rounds a turn may have [default: agent.max_tool_iterations]
    #[arg(
        long,
        global = true,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=100),
        help_heading = "Options everywhere"
    )]
    pub(crate) max_iterations: Option<u32>,
    /// Tell tools, tokens and the turn's id, terminal or not
    #[arg(short, long, global = true, action = ArgAction::SetTrue, conflicts_with = "quiet", help_heading = "Options everywhere")]
    pub(crate) verbose: bool,
    /// Only answers, errors and questions
    #[arg(short, long, global = true, help_heading = "Options everywhere")]
    pub(crate) quiet: bool,
    /// Colours
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "auto",
        value_name = "WHEN",
        help_heading = "Options everywhere"
    )]
    pub(crate) color: Color,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Color {
    /// At a terminal, unless NO_COLOR or TERM=dumb says no
    Auto,
    Always,
    Never,
}

impl From<Color> for anstream::ColorChoice {
    fn from(color: Color) -> Self {
        match color {
            Color::Auto => Self::Auto,
            Color::Always => Self::Always,
            Color::Never => Self::Never,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Talk
    Chat,
    /// Ask once
    Ask {
        /// What to ask; `-` or nothing reads it from standard input
        #[arg(value_name = "PROMPT")]
        prompt: Vec<String>,
        /// The answer is JSON that fits the JSON Schema in this file
        #[arg(long, value_name = "FILE")]
        schema: Option<PathBuf>,
    },
    /// See and change tasks, without a language model
    Tasks {
        #[command(subcommand)]
        command: Tasks,
        /// A name for this change, for scripts: the same command with the same name again does nothing twice
        #[arg(long, global = true, value_name = "KEY")]
        idempotency_key: Option<String>,
    },
    /// What the assistant can do: its own tools, those of MCP servers, and what is asked before they run
    Tools {
        #[command(subcommand)]
        command: Option<Tools>,
    },
    /// See and change what is remembered of you, in your vault
    #[command(subcommand)]
    Memory(crate::memory::Command),
    /// Answer what waits for a yes or no, or for what became of it
    #[command(subcommand)]
    Pending(Pending),
    /// List, give or take back permissions: tools that run without asking
    #[command(subcommand)]
    Policy(crate::policy::Policy),
    /// Open turns of all users, for whoever runs a service: which wait or are left, and ending one that cannot go on
    #[command(subcommand)]
    Turns(Turns),
    /// Conversations: find, read, name, export or delete them
    #[command(subcommand)]
    Sessions(crate::sessions::Sessions),
    /// What was decided, and why
    #[command(subcommand)]
    Log(Log),
    /// Who can answer, and whether they do
    #[command(subcommand)]
    Models(Models),
    /// Check how well a model does, case by case
    #[command(after_help = crate::eval::CASE_FIELDS)]
    Eval {
        /// Files of cases, one JSON object a line; `-` is standard input
        #[arg(required = true, value_name = "FILE")]
        files: Vec<String>,
        /// Succeed if at least so many cases pass; without: all of them
        #[arg(long, value_name = "N")]
        min_pass: Option<usize>,
    },
    /// Answer over HTTP, until Ctrl-C
    Serve(Serve),
    /// Give the tools to an MCP client, over standard input and output
    Mcp(Mcp),
    /// Who may ask a service
    #[command(subcommand)]
    Token(Token),
    /// The database: how it is, whether it is whole, a copy of it. Each of these brings its schema up to date, as every start does
    #[command(subcommand)]
    Db(Db),
    /// Set things up: three questions, then a configuration that works
    Init(crate::init::Init),
    /// What a shell needs to complete commands and options
    #[command(after_help = crate::completions::HELP)]
    Completions {
        /// Which
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// The manual: its first page, or all pages into a folder
    Man {
        /// Where to
        dir: Option<PathBuf>,
    },
    /// Look whether everything is there that is needed, and say what to do about what is not. Asks a provider over the network
    /// for one word
    #[command(
        after_help = "Exit codes: 0 ready · 3 something has to be mended\n\nExamples:\n  adjutant doctor\n  adjutant doctor --json | jq '.checks[] | select(.status == \"fail\")'\n"
    )]
    Doctor {
        /// Also look at this Restate server, whom it calls and whether it gets there, as serve --dispatch would have it
        /// [default: serve.dispatch]
        #[arg(long, value_name = "restate://HOST:PORT")]
        dispatch: Option<String>,
    },
    /// Keys of language models: keep, list or forget them
    #[command(subcommand)]
    Keys(crate::keys::Keys),
    /// Settings
    #[command(subcommand)]
    Config(crate::settings::Config),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Db {
    /// Which database it is, what is in it, and what it takes
    Status,
    /// Bring its schema up to date and do nothing else; makes it where there is none
    Migrate,
    /// Look for what is damaged or does not fit together; mends nothing
    Check,
    /// Write a copy of it while others go on working (SQLite; for PostgreSQL it says the command)
    Backup {
        /// Where to; what is there already is left alone
        file: PathBuf,
    },
    /// Copy everything to an empty database of the same kind or the other, such as from a file to PostgreSQL and back, while others go
    /// on working; then look whether the copy is whole
    #[command(
        after_help = "All of it is there at the end, or nothing. What others write meanwhile is not in it: to move, stop every adjutant before.\n\nExamples:\n  adjutant db copy --to postgres://adjutant@db.example/adjutant\n  adjutant db copy --database postgres://adjutant@db.example/adjutant --to sqlite:adjutant.db\n"
    )]
    Copy {
        /// postgres://USER@HOST:PORT/DATABASE, sqlite:FILE, or the path of an SQLite file; a file is made
        #[arg(long, value_name = "URL")]
        to: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen; port 0 takes a free one [default: serve.bind, 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) bind: Option<SocketAddr>,
    /// How clients say who they are [default: serve.auth, token]
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) auth: Option<Authentication>,
    /// Open the page in the browser
    #[arg(long, conflicts_with = "no_ui")]
    pub(crate) open: bool,
    /// Without the page: the interfaces for programs only
    #[arg(long)]
    pub(crate) no_ui: bool,
    /// Who has conversations go on, if not this process: a Restate server, over TLS with restates://. Behind `?` stand admin=,
    /// token_file=, listen=, advertise= and key= where they differ (docs/restate.md) [default: serve.dispatch]
    #[arg(long, value_name = "restate://HOST:PORT")]
    pub(crate) dispatch: Option<String>,
    /// How long it still answers after SIGTERM, so that a load balancer notices; such as 30s [default: serve.drain_delay, 10s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) drain_delay: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// Whose tasks they are [default: local, whose those of the terminal are]
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Print what this client has to be told to start it, and end
    #[arg(long, value_enum, value_name = "CLIENT")]
    pub(crate) print_config: Option<McpClient>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum McpClient {
    /// Claude Desktop and Claude Code
    Claude,
    Codex,
    Cursor,
    Goose,
    Vscode,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Make one, and show it this once
    Create {
        /// Whom it stands for; it opens this user's tasks and conversations, and no others
        #[arg(long, value_name = "USER")]
        user: String,
        /// What you call it
        #[arg(long, value_name = "NAME", default_value = "")]
        name: String,
    },
    /// All of them, without their secrets
    List,
    /// Refuse one from now on
    Revoke {
        /// Its id, or a part of its beginning or end that fits no other
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Turns {
    /// Those that wait for a person, and those that nobody works on
    List,
    /// The steps of one, without what was said
    Show {
        /// Its id, or a part of its beginning or end that fits no other
        id: String,
    },
    /// End one: what has not begun is not done; asks first, or needs -y
    Drop {
        /// Its id, or a part of its beginning or end that fits no other
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Tasks {
    /// List tasks
    List {
        /// Which
        #[arg(long, value_enum, default_value = "all")]
        status: Status,
    },
    /// Add a task
    Add {
        /// Its words
        #[arg(required = true)]
        description: Vec<String>,
    },
    /// Give a task other words
    Update {
        /// Its number, or some of its words in quotes
        task: String,
        /// The new words
        #[arg(required = true)]
        description: Vec<String>,
    },
    /// Mark a task as done
    Done {
        /// Its number, or some of its words
        #[arg(required = true)]
        task: Vec<String>,
    },
    /// Delete a task; asks first, or needs -y
    Rm {
        /// Its number, or some of its words
        #[arg(required = true)]
        task: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Tools {
    /// Show what an MCP server changed since its tools were agreed to, and agree to it; asks first, or needs -y
    Accept {
        /// The server's name in the configuration
        server: String,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Status {
    Pending,
    Completed,
    All,
}

impl From<Status> for TaskFilter {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => Self::Pending,
            Status::Completed => Self::Completed,
            Status::All => Self::All,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Pending {
    /// List what waits, oldest first
    List {
        /// Go on: print each question when it begins to wait, until Ctrl-C; with --json one object a line
        #[arg(short, long)]
        watch: bool,
    },
    /// Say yes
    Approve {
        /// The id shown by `pending list`, or a part of its beginning or end that fits no other
        id: String,
        /// Run it with these arguments instead, a JSON object; they are checked like any others
        #[arg(long, value_name = "JSON")]
        args: Option<String>,
    },
    /// Say no
    Deny {
        /// The id shown by `pending list`, or a part of its beginning or end that fits no other
        id: String,
    },
    /// Say what became of a call that was interrupted
    Resolve {
        /// The id shown by `pending list`, or a part of its beginning or end that fits no other
        id: String,
        /// What became of it
        #[arg(value_enum)]
        how: Resolution,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Resolution {
    /// It was done
    Done,
    /// It was not done: try again, with the same key
    Retry,
    /// Nobody knows: leave it, and do not try again
    Leave,
}

impl From<Resolution> for Verdict {
    fn from(how: Resolution) -> Self {
        match how {
            Resolution::Done => Self::Done,
            Resolution::Retry => Self::Retry,
            Resolution::Leave => Self::Leave,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Log {
    /// The newest decisions
    List {
        /// How many
        #[arg(short = 'n', long, default_value_t = 20)]
        limit: u32,
        #[command(flatten)]
        filter: LogFilter,
    },
    /// One decision with its tool calls, and where the time went
    Show {
        /// The turn's id, or a part of its beginning or end that fits no other; without: the newest
        id: Option<String>,
        /// Whose it is [default: local, you]
        #[arg(long, value_name = "USER")]
        user: Option<String>,
    },
    /// The last decisions, and each further one when it ends or waits, until Ctrl-C
    Tail {
        /// How many of those there are
        #[arg(short = 'n', long, default_value_t = 10)]
        limit: u32,
        #[command(flatten)]
        filter: LogFilter,
    },
    /// How many there were of which outcome, with tokens, cost and times, day by day
    Stats {
        #[command(flatten)]
        filter: LogFilter,
    },
    /// All decisions with their tool calls, newest first, one JSON object a line
    Export {
        #[command(flatten)]
        filter: LogFilter,
    },
}

/// Which decisions.
#[derive(Debug, Args)]
pub(crate) struct LogFilter {
    /// Only this outcome, such as ERROR:LLM_FAILURE
    #[arg(long)]
    pub(crate) outcome: Option<String>,
    /// Only those started then or later: 2026-01-31, 2026-01-31T09:00:00Z, or 24h (ago)
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only those started before then
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Only this conversation
    #[arg(long, value_name = "ID")]
    pub(crate) thread: Option<String>,
    /// Only those in which this tool was executed
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only those of this agent [default: of all]
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Whose they are [default: local, you]
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Models {
    /// Every provider, whether its key is set, and the models that run in this process
    List,
    /// Download a model that runs in this process, or have an Ollama server fetch one; Ctrl-C stops, and the next time it goes on
    #[command(
        after_help = "Examples:\n  adjutant models pull                the model that runs in this process\n  adjutant models pull qwen3:8b       a model of Ollama\n"
    )]
    Pull {
        /// Which: NAME, embedded/NAME or ollama/NAME; without: the one in use, else the usual one
        name: Option<String>,
    },
    /// Delete a downloaded model; asks first, or needs -y
    Rm {
        /// Which: NAME, embedded/NAME or ollama/NAME
        name: String,
    },
    /// Ask for one word: do key, address and the model's name work?
    Test {
        /// Another host with the provider's API
        #[arg(long, value_name = "URL")]
        base_url: Option<String>,
    },
    /// Make one request as it is, and print the answer as one JSON object
    #[command(after_help = crate::call::HELP)]
    Call(Call),
}

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// The root of another host with the provider's API; its version segment may be there already
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Have the answer streamed, whatever the input says
    #[arg(long)]
    pub(crate) stream: bool,
    /// Read the request from this file; without or with `-`, from standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
    /// Attempts after the first
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10))]
    pub(crate) retries: u32,
}

/// What is printed on standard output when a command fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnFailure {
    /// Standard error says it all.
    Nothing,
    /// The object of `--json`.
    Report,
    /// The object of `models call`.
    Call,
}

impl OnFailure {
    /// The same for a command line that could not be read.
    pub(crate) fn of_words(words: impl Iterator<Item = OsString>) -> Self {
        let words: Vec<OsString> = words.take_while(|word| word != "--").collect();
        if words.windows(2).any(|pair| pair[0] == "models" && pair[1] == "call") {
            Self::Call
        } else if words.iter().any(|word| word == "--json" || word == "--stream-json") {
            Self::Report
        } else {
            Self::Nothing
        }
    }
}

impl Cli {
    /// Whether the command needs an answer of a model.
    #[cfg(feature = "embedded")]
    pub(crate) fn may_ask_a_model(&self) -> bool {
        match &self.command {
            Some(Command::Models(command)) => matches!(command, Models::Test { .. } | Models::Call(_)),
            Some(
                Command::Tasks { .. }
                | Command::Memory(_)
                | Command::Mcp(_)
                | Command::Log(_)
                | Command::Sessions(_)
                | Command::Token(_)
                | Command::Tools { .. }
                | Command::Policy(_)
                | Command::Db(_)
                | Command::Turns(_)
                | Command::Doctor { .. }
                | Command::Init(_)
                | Command::Completions { .. }
                | Command::Man { .. }
                | Command::Keys(_)
                | Command::Config(_),
            ) => false,
            Some(
                Command::Chat
                | Command::Ask { .. }
                | Command::Serve(_)
                | Command::Pending(_)
                | Command::Eval { .. },
            )
            | None => true,
        }
    }

    /// What is printed on standard output if the command fails.
    pub(crate) fn on_failure(&self) -> OnFailure {
        match &self.command {
            Some(Command::Models(Models::Call(_))) => OnFailure::Call,
            // Standard output is the protocol's.
            Some(Command::Mcp(_)) => OnFailure::Nothing,
            _ if self.global.json || self.global.stream_json => OnFailure::Report,
            _ => OnFailure::Nothing,
        }
    }

    /// What clap cannot know: a misspelt command that would be taken for a prompt, options without a meaning.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        // In a conversation a lone word is an answer.
        if let (None, [word], false) =
            (&self.command, self.prompt.as_slice(), self.global.continues || self.global.resume.is_some())
            && let Some(near) = misspelt(word)
        {
            return Err(CliError::usage(format!("there is no command {word:?}; did you mean {near:?}?"))
                .or_try(format!("adjutant {near}"))
                .or_try(format!("adjutant ask {word}    if you mean it as a prompt")));
        }
        let talks = matches!(self.command, None | Some(Command::Ask { .. } | Command::Chat));
        if self.global.continues && !talks {
            return Err(CliError::usage("-c/--continue belongs to chat and ask"));
        }
        if self.global.resume.is_some() && !talks {
            return Err(CliError::usage("-r/--resume belongs to chat and ask"));
        }
        for (given, option) in [(self.global.temp, "--temp"), (self.global.no_tools, "--no-tools")] {
            if given && !talks {
                return Err(CliError::usage(format!("{option} belongs to chat and ask")));
            }
        }
        let asks = matches!(self.command, None | Some(Command::Ask { .. }));
        if self.global.stream_json && !asks {
            return Err(
                CliError::usage("--stream-json belongs to ask").or_try("adjutant ask --stream-json PROMPT")
            );
        }
        if self.global.max_iterations.is_some() && !talks {
            return Err(CliError::usage("--max-iterations belongs to chat and ask")
                .or_try("max_tool_iterations under [agent] in config.toml"));
        }
        if self.global.json && matches!(self.command, Some(Command::Chat)) {
            return Err(CliError::usage("chat has no --json").or_try("adjutant ask --json PROMPT"));
        }
        Ok(())
    }
}

/// The command a lone word is probably a misspelling of: near, about as long, and with the same first letter. `basket`
/// is no `ask`, and `what` no `chat`.
fn misspelt(word: &str) -> Option<String> {
    let command = Cli::command();
    let first = word.to_lowercase().chars().next();
    let alike = command.get_subcommands().map(clap::Command::get_name).filter(|name| {
        name.chars().next() == first && word.chars().count().abs_diff(name.chars().count()) <= 1
    });
    nearest(word, alike).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &[&str]) -> Cli {
        Cli::try_parse_from(std::iter::once("adjutant").chain(line.iter().copied())).unwrap()
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn words_that_are_no_command_are_a_prompt_even_if_a_command_follows() {
        assert_eq!(parse(&["add", "buy", "milk"]).prompt, ["add", "buy", "milk"]);
        assert_eq!(parse(&["what", "tasks", "list"]).prompt, ["what", "tasks", "list"]);
        assert!(parse(&["what", "tasks"]).command.is_none());
        assert_eq!(parse(&["-m", "demo", "hello", "--json"]).prompt, ["hello"]);
    }

    #[test]
    fn what_follows_two_dashes_is_never_an_option() {
        let cli = parse(&["--", "-m", "tasks"]);
        assert_eq!(cli.prompt, ["-m", "tasks"]);
        assert!(cli.command.is_none() && cli.global.model.is_none());
    }

    #[test]
    fn yes_takes_no_word_of_the_prompt() {
        let cli = parse(&["-y", "delete", "milk"]);
        assert_eq!((cli.global.yes.as_slice(), cli.prompt.len()), (&["*".to_owned()][..], 2));
        assert_eq!(
            parse(&["ask", "--yes=delete_task,add_task", "x"]).global.yes,
            ["delete_task", "add_task"]
        );
        assert!(parse(&["x"]).global.yes.is_empty());
    }

    #[test]
    fn options_stand_before_or_behind_the_command() {
        assert!(parse(&["-c", "ask", "x"]).global.continues);
        assert!(parse(&["ask", "-c", "x"]).global.continues);
        assert!(parse(&["tasks", "list", "--json"]).global.json);
    }

    #[test]
    fn a_lone_misspelt_command_is_no_prompt() {
        for word in ["taks", "task", "caht", "pendin", "logs"] {
            let error = parse(&[word]).check().unwrap_err();
            assert_eq!(error.exit as u8, 2, "{word}");
            assert!(error.message.contains("did you mean"), "{}", error.message);
        }
        for word in ["hello", "groceries", "basket", "logistics", "what", "yes", "no"] {
            parse(&[word]).check().unwrap();
        }
        parse(&["taks", "are", "many"]).check().unwrap();
        parse(&["-c", "taks"]).check().unwrap();
    }

    #[test]
    fn options_that_mean_nothing_are_refused() {
        assert!(parse(&["tasks", "list", "-c"]).check().is_err());
        assert!(parse(&["chat", "--json"]).check().is_err());
        assert!(parse(&["chat", "--stream-json"]).check().is_err());
        assert!(parse(&["tasks", "list", "--max-iterations", "3"]).check().is_err());
        assert!(parse(&["x", "--stream-json", "--max-iterations=3"]).check().is_ok());
        for line in [["x", "--json", "--stream-json"], ["x", "--max-iterations", "0"]] {
            assert!(Cli::try_parse_from(std::iter::once("adjutant").chain(line)).is_err());
        }
    }
}
