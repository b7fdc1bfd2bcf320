//! Measures what a turn costs: two calls of a model and one tool call, by Adjutant, by bare HTTP
//! clients, by rig, and what a bare database takes for the same rows. Everything in one run and on
//! one machine, because only ratios are worth comparing.
//!
//! Every client is a process of its own, so that its processor time and its memory are its own; so
//! is the model, a server that answers with canned bytes. This program starts itself for each of
//! them.

mod client; // one client: the process that is measured
mod database; // a PostgreSQL server of the bench's own
mod figures; // one measured row
mod mock; // the model
mod process; // children, their lines, their end
mod run; // the whole run
mod service; // the program as it ships
mod table; // figures as Markdown
mod usage; // processor time and memory

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What goes wrong ends the run, in words.
type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// What a turn costs: Adjutant, bare HTTP clients, rig and a bare database, measured in one run.
#[derive(Debug, Parser)]
#[command(
    name = "adjutant-bench",
    args_conflicts_with_subcommands = true,
    max_term_width = 100
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: run::Plan,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the Markdown tables of a file written by --json
    Table {
        /// The file
        file: PathBuf,
        /// Write them into this Markdown file, between `<!-- bench:begin -->` and
        /// `<!-- bench:end -->`
        #[arg(long, value_name = "FILE")]
        write: Option<PathBuf>,
    },
    /// The model (started by the run)
    #[command(hide = true)]
    Mock(mock::Setup),
    /// One client (started by the run)
    #[command(hide = true)]
    Client {
        /// What it does, as JSON
        setup: String,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // An error means that there is a provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let done = match arguments.command {
        None => run::run(&arguments.run),
        Some(Command::Table { file, write }) => table::command(&file, write.as_deref()),
        Some(Command::Mock(setup)) => mock::serve(setup),
        // Whoever started it wants to know why.
        Some(Command::Client { setup }) => client::run(&setup)
            .or_else(|error| process::say(&format!("{}{error}", process::FAILED))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("adjutant-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
