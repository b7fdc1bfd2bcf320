//! Checks of the command line that clap cannot make, and the output of a failed command.

use std::ffi::OsString;

use adjutant_core::nearest;
use clap::CommandFactory as _;

use super::{Cli, Command, Models};
use crate::error::CliError;

/// The object printed on standard output when a command fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnFailure {
    /// Nothing; the error goes to standard error only.
    Nothing,
    /// The object of `--json`.
    Report,
    /// The object of `models call`.
    Call,
}

impl OnFailure {
    /// Returns the output for a command line that could not be parsed.
    pub(crate) fn from_arguments(words: impl Iterator<Item = OsString>) -> Self {
        // What follows `--` is the prompt.
        let words: Vec<OsString> = words.take_while(|word| word != "--").collect();
        if words
            .windows(2)
            .any(|pair| pair[0] == "models" && pair[1] == "call")
        {
            Self::Call
        } else if words
            .iter()
            .any(|word| word == "--json" || word == "--stream-json")
        {
            Self::Report
        } else {
            Self::Nothing
        }
    }
}

impl Cli {
    /// Returns true if the command may call a model.
    #[cfg(feature = "embedded")]
    pub(crate) fn may_ask_a_model(&self) -> bool {
        match &self.command {
            Some(Command::Models(command)) => {
                matches!(command, Models::Test { .. } | Models::Call(_))
            }
            Some(
                Command::Tasks { .. }
                | Command::Memory(_)
                | Command::Mcp(_)
                | Command::Log(_)
                | Command::Sessions(_)
                | Command::Token(_)
                | Command::Users(_)
                | Command::Report(_)
                | Command::Tools { .. }
                | Command::Policy(_)
                | Command::Db(_)
                | Command::Turns(_)
                | Command::Doctor { .. }
                | Command::Init(_)
                | Command::Completions { .. }
                | Command::Man { .. }
                | Command::Keys(_)
                | Command::Config(_),
            ) => false,
            Some(
                Command::Chat
                | Command::Ask { .. }
                | Command::Serve(_)
                | Command::Pending(_)
                | Command::Eval(_),
            )
            | None => true,
        }
    }

    /// Returns the output of a failure of this command.
    pub(crate) fn on_failure(&self) -> OnFailure {
        match &self.command {
            Some(Command::Models(Models::Call(_))) => OnFailure::Call,
            // Standard output carries the MCP protocol.
            Some(Command::Mcp(options)) if options.command.is_none() => OnFailure::Nothing,
            _ if self.global.json || self.global.stream_json => OnFailure::Report,
            _ => OnFailure::Nothing,
        }
    }

    /// Rejects misspelt commands, which would be taken for a prompt, and options without a meaning
    /// for the command.
    ///
    /// # Errors
    /// The command line is rejected, with a suggestion.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        // In a continued conversation a single word is a likely message.
        if let (None, [word], false) = (
            &self.command,
            self.prompt.as_slice(),
            self.global.continues || self.global.resume.is_some(),
        ) && let Some(near) = misspelt(word)
        {
            return Err(CliError::usage(format!(
                "there is no command {word:?}; did you mean {near:?}?"
            ))
            .or_try(format!("adjutant {near}"))
            .or_try(format!("adjutant ask {word}    if you mean it as a prompt")));
        }
        let talks = matches!(
            self.command,
            None | Some(Command::Ask { .. } | Command::Chat)
        );
        let of_talks = [
            (self.global.continues, "-c/--continue"),
            (self.global.resume.is_some(), "-r/--resume"),
            (self.global.temp, "--temp"),
            (self.global.no_tools, "--no-tools"),
            (!self.along.attached.is_empty(), "-f/--file"),
            (self.along.system.is_some(), "--system"),
            (self.along.role.is_some(), "--role"),
        ];
        for (given, option) in of_talks {
            if given && !talks {
                return Err(CliError::usage(format!("{option} belongs to chat and ask")));
            }
        }
        let asks = matches!(self.command, None | Some(Command::Ask { .. }));
        if self.global.stream_json && !asks {
            return Err(CliError::usage("--stream-json belongs to ask")
                .or_try("adjutant ask --stream-json PROMPT"));
        }
        if self.global.max_iterations.is_some() && !talks {
            return Err(CliError::usage("--max-iterations belongs to chat and ask")
                .or_try("max_tool_iterations under [agent] in config.toml"));
        }
        if self.global.json && matches!(self.command, Some(Command::Chat)) {
            return Err(CliError::usage("chat has no --json").or_try("adjutant ask --json PROMPT"));
        }
        Ok(())
    }
}

/// Returns the command of which a single word is probably a misspelling: similar, of about the same
/// length, and with the same first letter. `basket` is no `ask`, and `what` no `chat`.
fn misspelt(word: &str) -> Option<String> {
    let command = Cli::command();
    let first = word.to_lowercase().chars().next();
    let alike = command
        .get_subcommands()
        .map(clap::Command::get_name)
        .filter(|name| {
            name.chars().next() == first && word.chars().count().abs_diff(name.chars().count()) <= 1
        });
    nearest(word, alike).map(str::to_owned)
}
