//! Measures the cost of a turn with two model calls and one tool call: with Adjutant, with bare
//! HTTP clients, with rig, and with a bare database that writes the same rows. All rows are
//! measured in one run on one machine, because only their ratios can be compared.
//!
//! Every client is a process of its own, so that its CPU time and memory can be told apart. So is
//! the model, a server that returns canned bytes. This program starts itself again for each of
//! them.

mod client; // a measured client process
mod database; // PostgreSQL server and its counters
mod figures; // file of results
mod mock; // mock model
mod process; // child processes
mod run; // the whole run
mod service; // `adjutant serve`
mod table; // tables in Markdown
mod usage; // CPU time and memory

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Any error ends the run with its message.
type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Cost of a turn: Adjutant, bare HTTP clients, rig and a bare database, measured in one run.
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
        /// The file that --json wrote
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
        /// The setup, as JSON
        setup: String,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // An error means that a default provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let done = match arguments.command {
        None => run::run(&arguments.run),
        Some(Command::Table { file, write }) => table::command(&file, write.as_deref()),
        Some(Command::Mock(setup)) => mock::serve(setup),
        // The parent process reports the error, so it is printed as a line of the protocol.
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
