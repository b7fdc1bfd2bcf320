//! Definition of the command line with clap. Doc comments of its types are the texts of `--help`.

mod along; // attachments and instructions of ask and chat
mod check; // checks that clap cannot make
pub(crate) mod command_help; // help of one command
mod db; // adjutant db
mod eval; // adjutant eval
mod global; // options of every command
mod help; // texts below the options in --help
mod log; // adjutant log
mod mcp; // adjutant mcp
mod models; // adjutant models
mod report; // adjutant report
mod serve; // adjutant serve, token, turns
mod tasks; // adjutant tasks, tools, pending
#[cfg(test)]
mod tests;
pub(crate) mod usage_error; // errors and suggestions for a command line that was not understood
mod users; // adjutant users

use std::path::PathBuf;

use clap::{Parser, Subcommand};

pub(crate) use along::Along;
pub(crate) use check::OnFailure;
pub(crate) use db::Db;
pub(crate) use eval::Eval;
pub(crate) use global::{Global, Thinking};
use help::after_help;
pub(crate) use log::{By, Log, LogFilter};
pub(crate) use mcp::{Mcp, McpAdd, McpClient, McpCommand};
pub(crate) use models::{Call, Models};
pub(crate) use report::Report;
pub(crate) use serve::{Holds, Serve, Token, Turns};
#[cfg(test)]
pub(crate) use tasks::Status;
pub(crate) use tasks::{Pending, Tasks, Tools};
pub(crate) use users::Users;

/// An assistant for your tasks, in the terminal.
#[derive(Debug, Parser)]
#[command(name = "adjutant", version, about, after_help = after_help(), disable_help_subcommand = true)]
pub(crate) struct Cli {
    // The heading of the global options also applies to every option that is declared after them.
    /// The message. Standard input is attached if it is no terminal; `-` waits for its end. Without
    /// a message: chat at a terminal, else standard input is the prompt
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(flatten)]
    pub(crate) along: Along,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a conversation
    Chat,
    /// Ask one question
    Ask {
        /// The message. Standard input is attached if it is no terminal; `-` waits for its end.
        /// Without a message, it is the prompt
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
        /// A key for this change, for scripts: repeating the command with the same key has no
        /// further effect
        #[arg(long, global = true, value_name = "KEY")]
        idempotency_key: Option<String>,
    },
    /// List the tools of the assistant and of MCP servers, and which of them ask first
    Tools {
        #[command(subcommand)]
        command: Option<Tools>,
    },
    /// See and change what is remembered about you, in your vault
    #[command(subcommand)]
    Memory(crate::command::memory::Memory),
    /// Answer calls that wait for a yes or no, or that were interrupted
    #[command(subcommand)]
    Pending(Pending),
    /// List, give or take back permissions: tools that run without asking
    #[command(subcommand)]
    Policy(crate::command::policy::Policy),
    /// Turns that have not ended, of all users: which wait or were interrupted, and ending one
    #[command(subcommand)]
    Turns(Turns),
    /// Conversations: find, read, name, export or delete them
    #[command(subcommand)]
    Sessions(crate::command::sessions::Sessions),
    /// Show what was decided, and why
    #[command(subcommand)]
    Log(Log),
    /// List, fetch, delete and test models
    #[command(subcommand)]
    Models(Models),
    /// Check how well a model does, case by case
    Eval(Eval),
    /// Serve over HTTP until Ctrl-C
    Serve(Serve),
    /// Give the tools to an MCP client, over standard input and output; with a command: the servers
    /// whose tools the assistant uses
    Mcp(Box<Mcp>),
    /// Manage the tokens of a service's users
    #[command(subcommand)]
    Token(Token),
    /// Users with stored data: list them, export or delete the data of one
    #[command(subcommand)]
    Users(Users),
    /// The database: inspect it, check it, back it up or copy it. Each of these brings its schema
    /// up to date, as every start does
    #[command(subcommand)]
    Db(Db),
    /// Set up: three questions, then a working configuration
    Init(crate::command::init::Init),
    /// Print the completion script of a shell
    #[command(after_help = help::COMPLETIONS)]
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// The manual: its first page, or all pages into a folder
    Man {
        /// The folder for all pages
        dir: Option<PathBuf>,
    },
    /// Check that everything needed is there, and say how to fix what is not. Asks a provider over
    /// the network for one word
    #[command(
        after_help = "Exit codes: 0 ready · 3 something has to be mended\n\nExamples:\n  adjutant doctor\n  adjutant doctor --json | jq '.checks[] | select(.status == \"fail\")'\n"
    )]
    Doctor {
        /// Also look at this Restate server, whom it calls and whether it gets there, as serve --dispatch
        /// would have it [default: serve.dispatch]
        #[arg(long, value_name = "restate://HOST:PORT")]
        dispatch: Option<String>,
    },
    /// Collect what a report of a bug needs, without secrets and without what was said
    Report(Report),
    /// Store, list or remove the keys of providers
    #[command(subcommand)]
    Keys(crate::command::keys::Keys),
    /// Show and change settings
    #[command(subcommand)]
    Config(crate::command::config::Config),
}
