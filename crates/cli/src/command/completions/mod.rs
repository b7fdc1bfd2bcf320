//! `adjutant completions`: shell completion of commands, options and names.
//!
//! The scripts of bash, zsh and fish are small: at each Tab they call this program.

mod candidates; // names of conversations, tasks, models and so on
mod shell; // protocols of the shells

use clap::{Arg, Command, CommandFactory as _, ValueHint};
use clap_complete::engine::ArgValueCandidates;
use clap_complete::{CompleteEnv, Shell};

use crate::args::Cli;
use crate::config::Settings;
use crate::error::{CliError, Exit};
use crate::terminal::screen::Screen;

pub(crate) use candidates::{Candidate, conversations_of, models_of};

use candidates::with_settings;

/// Variable in which a script names its shell. Without the prefix `ADJUTANT_`, because it is no
/// setting.
const VARIABLE: &str = "_ADJUTANT_COMPLETE";

/// Prints the completion script of a shell.
///
/// # Errors
/// The script cannot be generated.
pub(crate) fn run(screen: &Screen, shell: Shell) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    match shell::SHELLS.completer(&shell.to_string()) {
        Some(asking) => asking
            .write_registration(VARIABLE, "adjutant", "adjutant", "adjutant", &mut script)
            .map_err(|error| CliError::failed(error.to_string()))?,
        // The others, such as PowerShell, get clap's static script, which knows no names.
        None => clap_complete::generate(shell, &mut Cli::command(), "adjutant", &mut script),
    }
    screen.answer(&String::from_utf8_lossy(&script));
    Ok(Exit::Ok)
}

/// Answers a shell that asks for completions. Returns false if this process was started for
/// something else.
pub(crate) fn answer_shell() -> bool {
    let folder = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(command)
        .var(VARIABLE)
        .shells(shell::SHELLS)
        .try_complete(std::env::args_os(), folder.as_deref());
    // A malformed request is not answered with an error, which the shell would mix into the command
    // line.
    asked.unwrap_or(true)
}

/// Returns the command-line definition with completers for values.
fn command() -> Command {
    type List = fn(&Settings) -> Vec<Candidate>;
    // The closures run only when a shell asks, because most processes complete nothing.
    let from_settings = |list: List| ArgValueCandidates::new(move || offered(with_settings(list)));
    let fixed = |list: fn() -> Vec<Candidate>| ArgValueCandidates::new(move || offered(list()));
    let add = |name: &'static str, candidates: ArgValueCandidates| {
        move |command: Command| with(command, name, |arg| arg.add(candidates.clone()))
    };
    let one = |name: &'static str, list: List| add(name, from_settings(list));
    let provider = || add("provider", fixed(candidates::providers));
    let key = || add("key", fixed(candidates::settings));
    let conversations = || one("id", conversations_of);
    let pending = || one("id", candidates::pending);
    Cli::command()
        .mut_arg("model", |arg| arg.add(from_settings(models_of)))
        .mut_arg("resume", |arg| arg.add(from_settings(conversations_of)))
        .mut_arg("vault", |arg| arg.value_hint(ValueHint::DirPath))
        .mut_subcommand("sessions", |sessions| {
            sessions
                .mut_subcommand("show", conversations())
                .mut_subcommand("export", conversations())
                .mut_subcommand("rename", conversations())
                .mut_subcommand("rm", one("ids", conversations_of))
        })
        .mut_subcommand("pending", |command| {
            command
                .mut_subcommand("approve", pending())
                .mut_subcommand("deny", pending())
                .mut_subcommand("resolve", pending())
        })
        .mut_subcommand("tasks", |tasks| {
            tasks
                .mut_subcommand("done", one("task", candidates::open_tasks))
                .mut_subcommand("update", one("task", candidates::tasks))
                .mut_subcommand("rm", one("task", candidates::tasks))
        })
        .mut_subcommand("models", |models| {
            models
                .mut_subcommand("pull", one("name", candidates::embedded))
                .mut_subcommand("rm", one("name", candidates::installed))
        })
        .mut_subcommand("keys", |keys| {
            keys.mut_subcommand("set", provider())
                .mut_subcommand("rm", provider())
        })
        .mut_subcommand("config", |config| {
            config
                .mut_subcommand("get", key())
                .mut_subcommand("set", key())
        })
        .mut_subcommand("policy", |policy| {
            policy.mut_subcommand("rm", one("ids", candidates::permissions))
        })
        .mut_subcommand("tools", |tools| {
            tools.mut_subcommand("accept", one("server", candidates::servers))
        })
        .mut_subcommand("eval", |eval| {
            ["files", "save", "baseline", "junit"]
                .into_iter()
                .fold(eval, |eval, name| {
                    with(eval, name, |arg| arg.value_hint(ValueHint::FilePath))
                })
        })
}

/// Changes an argument in place. clap's `mut_arg` would move a positional argument behind the
/// others.
fn with(command: Command, name: &str, change: impl Fn(Arg) -> Arg) -> Command {
    debug_assert!(
        command.get_arguments().any(|arg| arg.get_id() == name),
        "no {name} in {}",
        command.get_name()
    );
    command.mut_args(|arg| {
        if arg.get_id() == name {
            change(arg)
        } else {
            arg
        }
    })
}

fn offered(candidates: Vec<Candidate>) -> Vec<clap_complete::CompletionCandidate> {
    let offer = |Candidate { value, help }| {
        let help = Some(help).filter(|help| !help.is_empty());
        clap_complete::CompletionCandidate::new(value).help(help.map(Into::into))
    };
    candidates.into_iter().map(offer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_that_is_completed_is_there() {
        command().debug_assert();
    }
}
