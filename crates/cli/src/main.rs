//! `adjutant`: an assistant for your tasks, in the terminal. The one binary, and the one crate that knows every other.

mod args; // the command line
mod ask; // one request
mod bounded; // time-outs for models without
mod chat; // many requests
mod config; // settings
mod confirm; // yes or no
mod display; // text made safe for a terminal
mod error; // exit codes, and errors as people read them
mod eval; // how well a model does
mod input; // the prompt
mod lines; // what is typed
mod log; // what was decided
mod model_choice; // who answers
#[cfg(feature = "embedded")]
mod models; // models that run in this process
mod pending; // what waits for an answer
mod render; // a running turn
mod report; // an answer as JSON
mod screen; // where output goes
mod settings; // `adjutant config`
mod talk; // agent and person
mod tasks; // tasks without a model
#[cfg(feature = "embedded")]
mod threads; // how many the model uses
mod wiring; // the pieces put together

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser as _;
use clap::error::ErrorKind;

use args::{Cli, Command, Global};
use config::{Settings, Sources};
use error::{CliError, Exit};
use screen::{Screen, Verbosity};

fn main() -> ExitCode {
    // For whatever builds a TLS client without saying with what. An error means that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_parsed(&error),
    };
    let verbosity = match (cli.global.quiet, cli.global.verbose) {
        (true, _) => Verbosity::Quiet,
        (false, true) => Verbosity::Verbose,
        (false, false) => Verbosity::Normal,
    };
    let screen = Screen::new(cli.global.color.into(), verbosity, cli.global.no_input);
    let json = cli.global.json;
    #[cfg(feature = "embedded")]
    if cli.may_ask_a_model() {
        threads::choose();
    }
    let exit = runtime().and_then(|runtime| {
        let exit = runtime.block_on(run(cli, &screen));
        // A thread may still wait for a line nobody will type.
        runtime.shutdown_background();
        exit
    });
    exit.unwrap_or_else(|error| {
        if json {
            screen.answer_line(&display::json_line(&report::Report::of_error(&error)));
        }
        screen.error(&error);
        error.exit
    })
    .into()
}

fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| CliError::failed("cannot start").because(error.to_string()))
}

async fn run(cli: Cli, screen: &Screen) -> Result<Exit, CliError> {
    cli.check()?;
    let Cli { global, command, prompt } = cli;
    let Global { config, env_file, model, continues, yes, json, .. } = global;
    let sources = Sources::of_process(config, env_file, model)?;
    let load = || {
        let settings = sources.load()?;
        settings.warnings.iter().for_each(|warning| screen.note(warning));
        Ok::<Settings, CliError>(settings)
    };
    let stdin = std::io::stdin();
    let words = match command {
        None if prompt.is_empty() && stdin.is_terminal() && !json => {
            return chat::run(&load()?, screen, continues, yes).await;
        }
        Some(Command::Chat) => return chat::run(&load()?, screen, continues, yes).await,
        Some(Command::Tasks(command)) => return tasks::run(&load()?, screen, command, &yes, json).await,
        Some(Command::Pending(command)) => return pending::run(&load()?, screen, command, yes, json).await,
        Some(Command::Log(command)) => return log::run(&load()?, screen, command, json).await,
        #[cfg(feature = "embedded")]
        Some(Command::Models(command)) => return models::run(&load()?, screen, command, json).await,
        Some(Command::Eval { files, min_pass }) => {
            let cases = eval::read(&files, min_pass)?;
            let settings = load()?;
            let model = model_choice::open(&settings, screen).await?;
            screen.note(&talk::header(&*model));
            let agent = |store: &_| wiring::agent(&settings, Arc::clone(&model), Arc::clone(store));
            return eval::run(&cases, min_pass, json, screen, agent).await;
        }
        Some(Command::Config(command)) => return settings::run(&sources, screen, &command, json),
        Some(Command::Ask { prompt }) => prompt,
        None => prompt,
    };
    let settings = load()?;
    let prompt = input::prompt(&words, stdin.lock(), stdin.is_terminal())?;
    ask::run(&settings, screen, prompt, ask::Options { continues, json, yes }).await
}

/// Help and version are answers; anything else is a usage error, as JSON too if that was asked for.
fn not_parsed(error: &clap::Error) -> ExitCode {
    // A closed pipe is nobody's error.
    let _ = error.print();
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return Exit::Ok.into();
    }
    let json = std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json");
    if json {
        let screen = Screen::new(anstream::ColorChoice::Never, Verbosity::Quiet, true);
        let message = error.to_string();
        let first = message.lines().next().unwrap_or_default().trim_start_matches("error: ");
        screen.answer_line(&display::json_line(&report::Report::of_error(&CliError::usage(first))));
    }
    Exit::Usage.into()
}
