//! Options of every command.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options everywhere")]
pub(crate) struct Global {
    /// Read this file instead of the user's config.toml
    #[arg(short = 'C', long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Read keys and settings from this file instead of the configuration folder's .env
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) env_file: Option<PathBuf>,
    /// The model that answers, as PROVIDER or PROVIDER/MODEL
    #[arg(short, long, global = true, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The database: postgres://…, sqlite:FILE or a path
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) database: Option<String>,
    /// Continue the newest conversation
    #[arg(short, long = "continue", global = true)]
    pub(crate) continues: bool,
    /// Continue this conversation, given part of its id; without an id, pick one
    #[arg(
        short,
        long,
        global = true,
        value_name = "ID",
        num_args = 0..=1,
        conflicts_with_all = ["continues", "temp"]
    )]
    pub(crate) resume: Option<Option<String>>,
    /// Confirm every call, or with --yes=TOOL,TOOL only those of these tools
    #[arg(
        short,
        long,
        global = true,
        value_name = "TOOL",
        num_args = 0..=1,
        require_equals = true,
        value_delimiter = ',',
        default_missing_value = "*"
    )]
    pub(crate) yes: Vec<String>,
    /// Never ask; a call that needs a confirmation ends with exit code 4
    #[arg(long, global = true)]
    pub(crate) no_input: bool,
    /// Print one JSON object and nothing else on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print events as they happen, one JSON object a line; the last line is that of --json
    #[arg(long, global = true, conflicts_with = "json")]
    pub(crate) stream_json: bool,
    /// The folder of notes, in place of vault.path
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) vault: Option<PathBuf>,
    /// Leave nothing behind: read tasks, facts and notes, write none, and forget the conversation
    #[arg(long, global = true, conflicts_with_all = ["continues", "resume"])]
    pub(crate) temp: bool,
    /// Use no tools
    #[arg(long, global = true)]
    pub(crate) no_tools: bool,
    /// Tool rounds a turn may have [default: agent.max_tool_iterations]
    #[arg(
        long,
        global = true,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=100)
    )]
    pub(crate) max_iterations: Option<u32>,
    /// Show what the model thinks before it answers, or hide it [default: terminal.thinking, hide]
    #[arg(
        long,
        global = true,
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "show",
        value_name = "WHEN"
    )]
    pub(crate) thinking: Option<Thinking>,
    /// Print tools, tokens and the turn's id, terminal or not
    #[arg(short, long, global = true, action = ArgAction::SetTrue, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Print only answers, errors and questions
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Colours of the output
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "auto",
        value_name = "WHEN"
    )]
    pub(crate) color: Color,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Thinking {
    Show,
    Hide,
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
