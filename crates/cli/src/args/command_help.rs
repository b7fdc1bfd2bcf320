//! `--help` of a command without the options that every command has: they would be most of it.

use clap::builder::StyledStr;
use clap::{Arg, CommandFactory as _};

use super::Cli;

/// The last line of such a help.
const EVERYWHERE: &str = "Options of every command, such as --json and -m MODEL: adjutant --help";

/// Returns the help of the command that the arguments name. `None` for that of `adjutant` itself.
pub(crate) fn of_command(args: impl Iterator<Item = String>) -> Option<StyledStr> {
    let mut command = Cli::command();
    // Only now the commands know the options of all, and their own whole names.
    command.build();
    let mut named: Option<&clap::Command> = None;
    for arg in args {
        named = named.unwrap_or(&command).find_subcommand(&arg).or(named);
    }
    let hide = |arg: Arg| {
        let is_global = arg.is_global_set();
        arg.hide(is_global)
    };
    let command = named?.clone().mut_args(hide);
    let after = match command.get_after_help() {
        Some(own) => format!("{own}\n\n{EVERYWHERE}"),
        None => EVERYWHERE.to_owned(),
    };
    Some(command.after_help(after).render_long_help())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help(args: &[&str]) -> Option<String> {
        let args = args.iter().map(|arg| (*arg).to_owned());
        of_command(args).map(|help| help.to_string())
    }

    #[test]
    fn the_help_of_a_command_has_its_own_options_and_a_hint() {
        let list = help(&["tasks", "list", "--help"]).unwrap();
        assert!(list.contains("Usage: adjutant tasks list"), "{list}");
        assert!(
            list.contains("--status") && list.contains(EVERYWHERE),
            "{list}"
        );
        assert!(!list.contains("--no-input"), "{list}");
        assert!(list.lines().count() < 30, "{list}");
        assert!(
            help(&["-m", "demo", "tasks", "--help"])
                .unwrap()
                .contains("list")
        );
        assert_eq!(help(&["--help"]), None);
    }
}
