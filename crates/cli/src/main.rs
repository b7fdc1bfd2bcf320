//! `adjutant`: an assistant for tasks and notes, in the terminal and as an HTTP service.
//!
//! The only binary of the workspace, and the only crate that depends on all others.

mod args; // clap definitions of the command line
mod clock; // the time
mod command; // one module per subcommand
mod config; // settings: files, environment variables, command line
#[cfg(feature = "embedded")]
mod embedded; // models that run in this process
mod error; // exit codes and error messages
mod id_prefix; // ids abbreviated to a part of them
mod instructions; // the user's own instructions file
mod logging; // the log of `serve`
mod mcp_servers; // MCP servers whose tools the assistant may use
mod memory; // facts and notes: stores, tools, automatic recall
mod model_choice; // choosing and opening the model of a run
#[cfg(feature = "ollama")]
mod ollama; // finding an Ollama server and pulling models
mod policy; // permissions for tools that run without confirmation
mod private_file; // files that only their owner may read
mod role; // `--role` and `--system`
mod search_index; // keeps the full-text index of conversations up to date
mod store; // opening the database
mod terminal; // conversations of one person at a terminal
mod wiring; // builds the agent from settings, model, store and tools

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;

use args::{Cli, OnFailure};
use command::{completions, models::call};
use error::{CliError, Exit};
use terminal::json_answer::JsonAnswer;
use terminal::screen::{self, Format, Screen, Verbosity};

fn main() -> ExitCode {
    // TLS clients that name no provider of cryptography get this one. It fails only if one is set
    // already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if completions::answer_shell() {
        return Exit::Ok.into();
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_parsed(error),
    };
    let verbosity = match (cli.global.quiet, cli.global.verbose) {
        (true, _) => Verbosity::Quiet,
        (false, true) => Verbosity::Verbose,
        (false, false) => Verbosity::Normal,
    };
    let format = match (cli.global.stream_json, cli.global.json) {
        (true, _) => Format::JsonEvents,
        (false, true) => Format::Json,
        (false, false) => Format::Text,
    };
    let screen =
        Screen::new(cli.global.color.into(), verbosity, cli.global.no_input).with_format(format);
    let on_failure = cli.on_failure();
    #[cfg(feature = "embedded")]
    if cli.may_ask_a_model() {
        embedded::threads::choose();
    }
    let exit = runtime().and_then(|runtime| {
        let exit = runtime.block_on(command::run(cli, &screen));
        // A thread may still block on standard input, and would delay the exit.
        runtime.shutdown_background();
        exit
    });
    let ended = exit.unwrap_or_else(|error| {
        screen.error(&error);
        print_failure(&screen, on_failure, &error);
        error.exit
    });
    match screen.lost_output() {
        Some(lost) if ended == Exit::Ok => {
            screen.error(&lost);
            lost.exit
        }
        _ => ended,
    }
    .into()
}

/// Prints the JSON object of a failure, if one is expected.
fn print_failure(screen: &Screen, on_failure: OnFailure, error: &CliError) {
    match on_failure {
        OnFailure::Nothing => {}
        OnFailure::Report => screen.answer_json(&JsonAnswer::from_error(error)),
        OnFailure::Call => screen.answer_json(&call::Answer::from_error(error)),
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| CliError::failed("cannot start").because(error.to_string()))
}

/// Prints help, version, or a usage error, also as JSON if that was asked for.
fn not_parsed(error: clap::Error) -> ExitCode {
    let args = || std::env::args_os().skip(1);
    let (error, tips) = args::usage_error::for_display(error, args());
    let help = (error.kind() == ErrorKind::DisplayHelp)
        .then(|| {
            let args = args().map(|arg| arg.to_string_lossy().into_owned());
            args::command_help::of_command(args)
        })
        .flatten();
    let printed = match help {
        Some(help) => write!(anstream::stdout(), "{}", help.ansi()),
        None => error.print(),
    };
    let screen = Screen::new(anstream::ColorChoice::Never, Verbosity::Quiet, true);
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        return match printed {
            // A closed pipe is no error.
            Err(lost) if lost.kind() != std::io::ErrorKind::BrokenPipe => {
                screen.error(&screen::output_lost(&lost));
                Exit::Failed.into()
            }
            _ => Exit::Ok.into(),
        };
    }
    let message = error.to_string();
    let first = message
        .lines()
        .next()
        .unwrap_or_default()
        .trim_start_matches("error: ");
    let error = tips
        .into_iter()
        .fold(CliError::usage(first), CliError::or_try);
    print_failure(&screen, OnFailure::from_arguments(args()), &error);
    Exit::Usage.into()
}
