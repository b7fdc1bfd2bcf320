//! The slash commands: one table that help, completion and dispatch read.

use adjutant_core::nearest;

use crate::error::CliError;
use crate::memory;
use crate::terminal::display::clip;

/// Width of the column of command names, in characters.
const TITLE_WIDTH: usize = 18;

/// A slash command and its line of help.
pub(crate) struct Command {
    /// The name with its slash, such as `/model`.
    pub(crate) name: &'static str,
    /// The argument as help shows it; empty if the command takes none.
    pub(crate) argument: &'static str,
    /// A short description, shown by `/help` and by completion.
    pub(crate) meaning: &'static str,
    /// The implementation that is run.
    pub(super) action: Action,
}

/// The implementations of the slash commands, see `actions.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Help,
    Model,
    Tools,
    Memory,
    Remember,
    Forget,
    Undo,
    Context,
    Compact,
    Usage,
    Retry,
    Rewind,
    Branches,
    Edit,
    Copy,
    Good,
    Bad,
    Export,
    Sessions,
    Resume,
    Rename,
    New,
    Trace,
    Thinking,
    Doctor,
    Quit,
}

/// All slash commands, in the order of `/help`.
pub(crate) const COMMANDS: &[Command] = &[
    command("/help", "", "this list", Action::Help),
    command(
        "/model",
        "[NAME]",
        "show which model answers, or switch to another",
        Action::Model,
    ),
    command(
        "/tools",
        "",
        "list the tools, and which of them ask first",
        Action::Tools,
    ),
    command(
        "/memory",
        memory::ARGUMENT,
        "list what is remembered, or the facts that match",
        Action::Memory,
    ),
    command(
        "/remember",
        "FACT",
        "remember this; so does #FACT",
        Action::Remember,
    ),
    command(
        "/forget",
        "FACT",
        "forget the fact of this id or these words",
        Action::Forget,
    ),
    command(
        "/undo",
        "",
        "take back the last change of a fact or a note",
        Action::Undo,
    ),
    command(
        "/context",
        "",
        "show what fills the model's context window",
        Action::Context,
    ),
    command(
        "/compact",
        "[FOCUS]",
        "summarize the conversation so far",
        Action::Compact,
    ),
    command(
        "/usage",
        "",
        "show turns and tokens of this session",
        Action::Usage,
    ),
    command(
        "/retry",
        "",
        "another answer to the last message",
        Action::Retry,
    ),
    command(
        "/rewind",
        "[N]",
        "change the last message, or the Nth last",
        Action::Rewind,
    ),
    command(
        "/branches",
        "[N]",
        "list the branches of the conversation, or switch to one",
        Action::Branches,
    ),
    command(
        "/edit",
        "[TEXT]",
        "write a message in $EDITOR; so does Ctrl-O",
        Action::Edit,
    ),
    command(
        "/copy",
        "",
        "the last answer into the clipboard",
        Action::Copy,
    ),
    command(
        "/good",
        "[WHY]",
        "rate the last answer as helpful",
        Action::Good,
    ),
    command(
        "/bad",
        "[WHY]",
        "say that the last answer was of no use",
        Action::Bad,
    ),
    command(
        "/export",
        "[FILE]",
        "this conversation as markdown",
        Action::Export,
    ),
    command(
        "/sessions",
        "[WORDS]",
        "list conversations",
        Action::Sessions,
    ),
    command("/resume", "[ID]", "go on with one of them", Action::Resume),
    command(
        "/rename",
        "TITLE",
        "rename this conversation",
        Action::Rename,
    ),
    command("/new", "", "start a new conversation", Action::New),
    command(
        "/trace",
        "",
        "show the last turn step by step",
        Action::Trace,
    ),
    command(
        "/thinking",
        "[show|hide]",
        "what the model thinks; so does Alt-T",
        Action::Thinking,
    ),
    command(
        "/doctor",
        "",
        "check that everything is set up",
        Action::Doctor,
    ),
    command(
        "/quit",
        "",
        "end; so does Ctrl-D, or Ctrl-C twice",
        Action::Quit,
    ),
    command("/exit", "", "the same", Action::Quit),
];

const fn command(
    name: &'static str,
    argument: &'static str,
    meaning: &'static str,
    action: Action,
) -> Command {
    Command {
        name,
        argument,
        meaning,
        action,
    }
}

/// Parses the command at the beginning of a line and returns it with the text after it.
///
/// # Errors
/// There is no such command (the nearest name is suggested), or it takes no argument.
pub(super) fn parse(line: &str) -> Result<(Action, &str), CliError> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let Some(command) = COMMANDS.iter().find(|command| command.name == word) else {
        let error = CliError::usage(format!("there is no command {}", clip(word, 40)));
        let near = nearest(word, COMMANDS.iter().map(|command| command.name));
        return Err(error.or_try(near.unwrap_or("/help")));
    };
    if command.argument.is_empty() && !rest.is_empty() {
        return Err(CliError::usage(format!("{word} takes no argument")).or_try(word));
    }
    Ok((command.action, rest))
}

/// Other input and keys that `/help` explains.
const KEYS: &[(&str, &str)] = &[
    (
        "@NOTE, @PATH",
        "attach a note of the vault or a text file; Tab completes it",
    ),
    ("#FACT", "remember this"),
    ("Enter", "send"),
    ("Alt-Enter, Ctrl-J", "a new line"),
    (
        "Tab",
        "complete a command, its argument, or the name of a note",
    ),
    ("Up, Ctrl-R", "earlier messages; search them"),
    ("Alt-T", "show what the model thinks, or hide it"),
    ("Ctrl-O", "write the message in $EDITOR"),
    ("Ctrl-C", "clear the line, or stop an answer; twice: quit"),
    ("Ctrl-D", "quit"),
];

/// Formats the table for `/help`. A name too long for its column gets a line of its own.
pub(super) fn help() -> Vec<String> {
    let mut lines = Vec::new();
    for command in COMMANDS {
        let mut title = format!("{} {}", command.name, command.argument);
        if title.len() > TITLE_WIDTH {
            lines.push(format!("  {title}"));
            title.clear();
        }
        lines.push(format!("  {title:TITLE_WIDTH$} {}", command.meaning));
    }
    lines.push(String::new());
    lines.extend(
        KEYS.iter()
            .map(|(keys, meaning)| format!("  {keys:TITLE_WIDTH$} {meaning}")),
    );
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_parsed_with_its_argument() {
        assert_eq!(
            parse("/model ollama/qwen3:8b").unwrap(),
            (Action::Model, "ollama/qwen3:8b")
        );
        assert_eq!(parse("/model\n x").unwrap(), (Action::Model, "x"));
        assert_eq!(parse("/quit").unwrap().0, Action::Quit);
    }

    #[test]
    fn a_wrong_command_names_the_nearest() {
        assert_eq!(parse("/hlep").unwrap_err().tries, ["/help"]);
        assert_eq!(parse("/zzzzzz").unwrap_err().tries, ["/help"]);
        assert!(
            parse("/quit now")
                .unwrap_err()
                .message
                .contains("no argument")
        );
        assert!(parse("/").is_err());
    }

    #[test]
    fn every_command_stands_in_help_once() {
        let help = help().join("\n");
        for command in COMMANDS {
            assert_eq!(
                help.lines()
                    .filter(|line| line.trim_start().starts_with(command.name))
                    .count(),
                1
            );
        }
    }
}
