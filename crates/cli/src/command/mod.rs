//! The subcommands, one module each, and the dispatch of a parsed command line to them.

pub(crate) mod ask; // adjutant PROMPT, adjutant ask
pub(crate) mod completions; // adjutant completions
pub(crate) mod config; // adjutant config
pub(crate) mod db; // adjutant db
pub(crate) mod doctor; // adjutant doctor
pub(crate) mod eval; // adjutant eval
pub(crate) mod init; // adjutant init
pub(crate) mod keys; // adjutant keys
pub(crate) mod log; // adjutant log
pub(crate) mod man; // adjutant man
pub(crate) mod mcp; // adjutant mcp
pub(crate) mod memory; // adjutant memory
pub(crate) mod models; // adjutant models
mod output; // tables, lists and errors of files, for all commands
pub(crate) mod pending; // adjutant pending
pub(crate) mod policy; // adjutant policy
pub(crate) mod report; // adjutant report
pub(crate) mod serve; // adjutant serve
pub(crate) mod sessions; // adjutant sessions
pub(crate) mod tasks; // adjutant tasks
pub(crate) mod token; // adjutant token
pub(crate) mod tools; // adjutant tools
pub(crate) mod turns; // adjutant turns
pub(crate) mod users; // adjutant users

use std::cell::OnceCell;
use std::io::IsTerminal as _;

use crate::args::{self, Along, Cli, Command, Global, Models, Tools};
use crate::config::{RunBounds, Settings, Sources};
use crate::error::{CliError, Exit};
use crate::logging;
use crate::role;
use crate::terminal::screen::Screen;
use crate::terminal::{chat, input, session};

/// Runs the command of a parsed command line.
///
/// # Errors
/// The options contradict each other, the settings cannot be loaded, or the command fails.
pub(crate) async fn run(cli: Cli, screen: &Screen) -> Result<Exit, CliError> {
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
    let resume = sessions::Resume::from_options(continues, resume);
    let serves = matches!(command, Some(Command::Serve(_)));
    let launch = mcp::LaunchOptions {
        config: config.clone(),
        env_file: env_file.clone(),
        database: database.clone(),
        model: model.clone(),
    };
    let sources = Sources {
        config,
        env_file,
        model,
        database,
        vault,
        serves,
        ..Sources::from_process()?
    };
    // The line editor of a chat needs a terminal; a pipe or `--json` means a single message.
    let in_chat = match &command {
        None => prompt.is_empty() && std::io::stdin().is_terminal() && !screen.json(),
        Some(command) => matches!(command, Command::Chat),
    };
    let log = OnceCell::new();
    // Each command calls it when it needs settings: those that repair or explain a broken
    // configuration must not fail because of it.
    let load = || {
        let mut settings = sources.load()?;
        // `serve` always has a log, with settings of its own.
        if !serves {
            // Already set only if a command loads twice; the first log is in use then.
            let _ = log.set(logging::start_if_asked(
                &sources, &settings, screen, in_chat,
            )?);
        }
        settings.agent.max_tool_iterations = max_iterations.or(settings.agent.max_tool_iterations);
        settings.bounds = RunBounds {
            temp,
            no_tools,
            in_chat,
        };
        screen.show_thinking(thinking.unwrap_or(settings.thinking) == args::Thinking::Show);
        settings.extra_instructions =
            role::additional_instruction(role.as_deref(), system.as_deref(), &settings.dirs)?;
        output::note_warnings(&settings, screen);
        Ok::<Settings, CliError>(settings)
    };
    let any_yes = !yes.is_empty();
    let (words, schema, command) = match command {
        Some(Command::Ask { prompt, schema }) => (prompt, schema, None),
        command => (prompt, None, command),
    };
    match command {
        None | Some(Command::Chat) if in_chat => {
            let options = chat::Options { resume, yes, files };
            chat::run(&sources, &load()?, screen, options).await
        }
        // `chat` is always a conversation, see `in_chat`, and `ask` was taken apart above.
        None | Some(Command::Chat | Command::Ask { .. }) => {
            // Before the settings: a schema that cannot be used fails without a prompt being read.
            let schema = schema.as_deref().map(ask::schema).transpose()?;
            let settings = load()?;
            // From here on Ctrl-C is a signal to this program, so that reading can be given up.
            let mut startup = session::Startup::listen()?;
            let given = input::PromptSources { words, files };
            let stdin = input::Stdin::of_process();
            let prompt = input::prompt(given, stdin, settings.input_wait, screen);
            let prompt = startup.read_input(prompt).await?;
            let options = ask::Options {
                resume,
                yes,
                schema,
            };
            ask::run(&settings, screen, prompt, options, startup).await
        }
        Some(Command::Serve(options)) => serve::run(&load()?, screen, options).await,
        Some(Command::Db(command)) => db::run(&load()?, screen, command).await,
        // An error of the settings is passed on, because the client that started this process shows
        // it to its user.
        Some(Command::Mcp(mut options)) => match options.command.take() {
            Some(command) => mcp::manage(&sources, load, screen, command, any_yes).await,
            None => mcp::run(load(), screen, *options, launch).await,
        },
        Some(Command::Tools { command: None }) => tools::run(&load()?, screen).await,
        Some(Command::Tools {
            command: Some(Tools::Accept { server }),
        }) => tools::accept(&load()?, screen, &server, any_yes).await,
        Some(Command::Token(command)) => token::run(&load()?, screen, command).await,
        Some(Command::Report(options)) => report::run(&sources, screen, options).await,
        Some(Command::Users(command)) => users::run(&load()?, screen, command, &yes).await,
        Some(Command::Tasks {
            command,
            idempotency_key,
        }) => tasks::run(&load()?, screen, command, idempotency_key, &yes).await,
        Some(Command::Memory(command)) => memory::run(&load()?, screen, command, &yes).await,
        Some(Command::Turns(command)) => turns::run(&load()?, screen, command, &yes).await,
        Some(Command::Pending(command)) => pending::run(&load()?, screen, command, yes).await,
        Some(Command::Policy(command)) => policy::run(&load()?, screen, command, &yes).await,
        Some(Command::Sessions(command)) => sessions::run(&load()?, screen, command, &yes).await,
        Some(Command::Log(command)) => log::run(&load()?, screen, command).await,
        Some(Command::Models(Models::Call(options))) => {
            models::call::run(&sources, screen, options).await
        }
        Some(Command::Models(command)) => models::run(&load()?, screen, command, any_yes).await,
        Some(Command::Eval(options)) => {
            // Before a model is opened, which may take long: a mistake in a case should show at
            // once.
            let prepared = eval::prepare(&options)?;
            eval::run(&prepared, &options, screen, &load()?).await
        }
        Some(Command::Init(options)) => {
            let vault = sources.vault.clone();
            init::run(&sources, screen, options, vault, any_yes).await
        }
        Some(Command::Completions { shell }) => completions::run(screen, shell),
        Some(Command::Man { dir }) => man::run(screen, dir.as_deref()),
        Some(Command::Doctor { dispatch }) => {
            doctor::run(&sources, screen, dispatch.as_deref()).await
        }
        Some(Command::Keys(command)) => keys::run(&sources, screen, command),
        Some(Command::Config(command)) => config::run(&sources, screen, command).await,
    }
}
