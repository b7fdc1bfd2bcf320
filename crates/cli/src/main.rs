//! `adjutant`: an assistant for your tasks, in the terminal. The one binary, and the one crate that
//! knows every other.

mod args; // the command line
mod ask; // one request
mod begun; // turns that were left open
mod bundle; // what a report of a bug needs
mod call; // one raw model call
mod chat; // many requests
mod completions; // what shells need
mod config; // settings
mod confirm; // yes or no
mod db; // how the database is
mod display; // text made safe for a terminal
mod doctor; // is everything there
#[cfg(feature = "embedded")]
mod embedded; // models that run in this process
mod error; // exit codes, and errors as people read them
mod eval; // how well a model does
mod init; // the first configuration
mod input; // what is asked, and what goes along
mod instructions; // how a person wants to be helped
mod keys; // keys of language models
mod lines; // what is typed
mod log; // what was decided
mod logging; // what `serve` tells its operator
mod man; // the manual
mod mcp; // the tools for other programs
mod meant; // ids in part
mod memory; // what is remembered of a person
#[cfg(any(feature = "embedded", feature = "ollama"))]
mod meter; // how far a download is
mod model_choice; // who answers
mod models; // who can answer
mod notify; // a program that tells of a question
#[cfg(feature = "ollama")]
mod ollama; // a server on this machine
mod past; // the index of past conversations
mod pending; // what waits for an answer
mod pins; // the tools of others that the person agreed to
mod policy; // what runs without asking
mod private; // files for their owner alone
mod render; // a running turn
mod report; // an answer as JSON
mod role; // how the assistant is to be in one run
mod screen; // where output goes
mod serve; // the assistant over HTTP
mod servers; // other people's tools
mod sessions; // conversations, to be taken up again
mod settings; // `adjutant config`
mod store; // the database everything is in
mod stream_json; // a run as JSON, event by event
mod talk; // agent and person
mod tasks; // tasks without a model
#[cfg(feature = "embedded")]
mod threads; // how many the model uses
mod token; // who may ask a service
mod tools; // what the assistant can do
mod tty; // how the terminal treats what is typed
mod turns; // open turns of all users
mod usage; // what was typed wrong
mod users; // everybody of whom something is kept
mod wiring; // the pieces put together

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;

use args::{Along, Cli, Command, Global, Models, OnFailure, Tools};
use config::{RunBounds, Settings, Sources};
use error::{CliError, Exit};
use screen::{Screen, Verbosity};

fn main() -> ExitCode {
    // For whatever builds a TLS client without saying with what. An error means that there is one
    // already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if completions::answered() {
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
    let screen = Screen::new(cli.global.color.into(), verbosity, cli.global.no_input)
        .streaming_events(cli.global.stream_json);
    let on_failure = cli.on_failure();
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
    let ended = exit.unwrap_or_else(|error| {
        screen.error(&error);
        tell(&screen, on_failure, &error);
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

/// The JSON object of a failure, if one is expected.
fn tell(screen: &Screen, on_failure: OnFailure, error: &CliError) {
    match on_failure {
        OnFailure::Nothing => {}
        OnFailure::Report => {
            screen.answer_line(&display::json_line(&report::Report::of_error(error)))
        }
        OnFailure::Call => screen.answer_line(&display::json_line(&call::Answer::of_error(error))),
    }
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
    let Cli {
        global,
        along: Along {
            attached: files,
            system,
            role,
        },
        command,
        prompt,
    } = cli;
    let Global {
        config,
        env_file,
        model,
        database,
        continues,
        resume,
        yes,
        json,
        stream_json,
        max_iterations,
        ..
    } = global;
    let Global {
        vault,
        temp,
        no_tools,
        thinking,
        ..
    } = global;
    let take_up = sessions::TakeUp::of(continues, resume);
    // Both leave standard output to programs.
    let json = json || stream_json;
    let serves = matches!(command, Some(Command::Serve(_)));
    let place = mcp::Place {
        config: config.clone(),
        env_file: env_file.clone(),
        database: database.clone(),
        model: model.clone(),
    };
    let sources = Sources {
        serves,
        ..Sources::of_process(config, env_file, model, database, vault)?
    };
    let in_chat = match &command {
        None => prompt.is_empty() && std::io::stdin().is_terminal() && !json,
        Some(command) => matches!(command, Command::Chat),
    };
    let load = || {
        let mut settings = sources.load()?;
        settings.agent.max_tool_iterations = max_iterations.or(settings.agent.max_tool_iterations);
        settings.bounds = RunBounds {
            temp,
            no_tools,
            in_chat,
        };
        screen.show_thinking(
            thinking.map_or(settings.shows_thinking, |word| word == args::Thinking::Show),
        );
        settings.told = role::told(role.as_deref(), system.as_deref(), &settings.dirs)?;
        settings
            .warnings
            .iter()
            .for_each(|warning| screen.note(warning));
        Ok::<Settings, CliError>(settings)
    };
    let mut schema = None;
    let words = match command {
        None if in_chat => {
            return chat::run(
                &sources,
                &load()?,
                screen,
                chat::Options {
                    take_up,
                    yes,
                    files,
                },
            )
            .await;
        }
        Some(Command::Chat) => {
            return chat::run(
                &sources,
                &load()?,
                screen,
                chat::Options {
                    take_up,
                    yes,
                    files,
                },
            )
            .await;
        }
        Some(Command::Serve(options)) => return serve::run(&load()?, screen, options, json).await,
        Some(Command::Db(command)) => return db::run(&load()?, screen, command, json).await,
        Some(Command::Mcp(options)) => return mcp::run(load(), screen, options, place).await,
        Some(Command::Tools { command: None }) => return tools::run(&load()?, screen, json).await,
        Some(Command::Tools {
            command: Some(Tools::Accept { server }),
        }) => {
            return tools::accept(&load()?, screen, &server, !yes.is_empty(), json).await;
        }
        Some(Command::Token(command)) => return token::run(&load()?, screen, command, json).await,
        Some(Command::Report(options)) => {
            return bundle::run(&sources, screen, options, json).await;
        }
        Some(Command::Users(command)) => {
            return users::run(&load()?, screen, command, &yes, json).await;
        }
        Some(Command::Tasks {
            command,
            idempotency_key,
        }) => {
            return tasks::run(&load()?, screen, (command, idempotency_key), &yes, json).await;
        }
        Some(Command::Memory(command)) => {
            return memory::run(&load()?, screen, command, &yes, json).await;
        }
        Some(Command::Turns(command)) => {
            return turns::run(&load()?, screen, command, &yes, json).await;
        }
        Some(Command::Pending(command)) => {
            return pending::run(&load()?, screen, command, yes, json).await;
        }
        Some(Command::Policy(command)) => {
            return policy::run(&load()?, screen, command, &yes, json).await;
        }
        Some(Command::Sessions(command)) => {
            return sessions::run(&load()?, screen, command, &yes, json).await;
        }
        Some(Command::Log(command)) => return log::run(&load()?, screen, command, json).await,
        Some(Command::Models(Models::Call(options))) => {
            return call::run(&sources, screen, options).await;
        }
        Some(Command::Models(command)) => {
            return models::run(&load()?, screen, command, !yes.is_empty(), json).await;
        }
        Some(Command::Eval {
            files,
            min_pass,
            memory,
        }) => {
            let cases = eval::read(&files, min_pass)?;
            let settings = load()?;
            let model = model_choice::open_alone(&settings, screen).await?;
            screen.note(&talk::header(&*model));
            return eval::run(&cases, min_pass, (memory, json), screen, (&settings, model)).await;
        }
        Some(Command::Init(options)) => {
            return init::run(
                &sources,
                screen,
                options,
                sources.vault.clone(),
                !yes.is_empty(),
            )
            .await;
        }
        Some(Command::Completions { shell }) => {
            return completions::run(screen, shell).map(|()| Exit::Ok);
        }
        Some(Command::Man { dir }) => {
            return man::run(screen, dir.as_deref(), json).map(|()| Exit::Ok);
        }
        Some(Command::Doctor { dispatch }) => {
            return doctor::run(&sources, screen, dispatch.as_deref(), json).await;
        }
        Some(Command::Keys(command)) => return keys::run(&sources, screen, command, json),
        Some(Command::Config(command)) => {
            return settings::run(&sources, screen, command, json).await;
        }
        Some(Command::Ask {
            prompt,
            schema: file,
        }) => {
            schema = file;
            prompt
        }
        None => prompt,
    };
    let schema = schema.as_deref().map(ask::schema).transpose()?;
    let settings = load()?;
    let mut opening = talk::Opening::begin()?;
    let given = input::Given { words, files };
    let prompt = input::prompt(
        given,
        input::Stdin::of_process(),
        settings.input_wait,
        screen,
    );
    let prompt = opening.input(prompt).await?;
    ask::run(
        &settings,
        screen,
        prompt,
        ask::Options {
            take_up,
            json,
            yes,
            schema,
        },
        opening,
    )
    .await
}

/// Help and version are answers; anything else is a usage error, as JSON too if that was asked for.
fn not_parsed(error: clap::Error) -> ExitCode {
    let args = || std::env::args_os().skip(1);
    let (error, tips) = usage::shown(error, args());
    let printed = error.print();
    let screen = Screen::new(anstream::ColorChoice::Never, Verbosity::Quiet, true);
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        return match printed {
            // A closed pipe is nobody's error.
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
    let told = tips
        .into_iter()
        .fold(CliError::usage(first), CliError::or_try);
    tell(&screen, OnFailure::of_words(args()), &told);
    Exit::Usage.into()
}
