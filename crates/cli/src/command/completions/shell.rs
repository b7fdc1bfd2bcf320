use std::ffi::OsString;
use std::io::{Error, Write};
use std::path::Path;

use clap::Command;
use clap_complete::engine;
use clap_complete::env::{EnvCompleter, Fish, Shells, Zsh};

use crate::terminal::display::clip;

/// The completion script of bash.
const SCRIPT: &str = include_str!("adjutant.bash");

/// Appended for a file in zsh's `fpath`: the file is loaded at the first Tab and has to complete
/// that one too.
const ZSH_FIRST_TAB: &str =
    "if [ \"$funcstack[1]\" = \"_adjutant\" ]; then _clap_dynamic_completer_adjutant \"$@\"; fi\n";

/// Characters of a description at most.
const HELP_CHARS: usize = 60;

/// Value of `COMP_TYPE` for which bash lists the candidates without inserting one.
const LISTS: &str = "63";

/// The shells that call this program for completions.
pub(super) const SHELLS: Shells<'static> =
    Shells(&[&OwnShell::Bash, &OwnShell::Fish, &OwnShell::Zsh]);

/// A shell whose script or protocol differs from clap's.
#[derive(Debug)]
enum OwnShell {
    /// With descriptions in its list, and words that are not split at colons.
    Bash,
    /// With clap's protocol, but the candidates of [`fitting`].
    Fish,
    /// From a file that zsh finds by name in `fpath`.
    Zsh,
}

impl EnvCompleter for OwnShell {
    fn name(&self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Fish => "fish",
            Self::Zsh => "zsh",
        }
    }

    fn is(&self, name: &str) -> bool {
        name == self.name()
    }

    fn write_registration(
        &self,
        var: &str,
        name: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> Result<(), Error> {
        match self {
            Self::Bash => buf.write_all(SCRIPT.as_bytes()),
            Self::Fish => Fish.write_registration(var, name, bin, completer, buf),
            Self::Zsh => {
                Zsh.write_registration(var, name, bin, completer, buf)?;
                buf.write_all(ZSH_FIRST_TAB.as_bytes())
            }
        }
    }

    fn write_complete(
        &self,
        command: &mut Command,
        mut words: Vec<OsString>,
        folder: Option<&Path>,
        buf: &mut dyn Write,
    ) -> Result<(), Error> {
        if let Self::Zsh = self {
            let index = variable("_CLAP_COMPLETE_INDEX").and_then(|index| index.parse().ok());
            // Zsh does not pass an empty last word.
            words.resize(index.unwrap_or(0_usize) + 1, OsString::new());
        }
        let candidates = fitting(command, words, folder)?;
        // Bash inserts what a line says, so descriptions are only for a list that it prints.
        let lists = variable("_ADJUTANT_COMPLETE_TYPE").is_some_and(|kind| kind == LISTS)
            && candidates.len() > 1;
        for (value, help) in candidates {
            // Zsh separates value and description by a colon.
            let value = match self {
                Self::Zsh => value.replace('\\', "\\\\").replace(':', "\\:"),
                Self::Bash | Self::Fish => value,
            };
            match (self, help) {
                (Self::Bash, Some(help)) if lists => writeln!(buf, "{value}  ({help})")?,
                (Self::Fish, Some(help)) => writeln!(buf, "{value}\t{help}")?,
                (Self::Zsh, Some(help)) => writeln!(buf, "{value}:{}", help.replace('\\', "\\\\"))?,
                (_, _) => writeln!(buf, "{value}")?,
            }
        }
        Ok(())
    }
}

/// Returns completions of the last word with their descriptions. Options are offered only for a
/// word that begins with a dash.
fn fitting(
    command: &mut Command,
    words: Vec<OsString>,
    folder: Option<&Path>,
) -> Result<Vec<(String, Option<String>)>, Error> {
    let index = words.len().saturating_sub(1);
    let is_empty = words.last().is_none_or(|word| word.is_empty());
    // Commands may follow an optional id; offering them together with ids would bury the ids.
    let takes_id = words
        .iter()
        .rev()
        .nth(1)
        .is_some_and(|before| before == "-r" || before == "--resume");
    let commands: Vec<String> = match is_empty && takes_id {
        true => command
            .get_subcommands()
            .map(|command| command.get_name().to_owned())
            .collect(),
        false => Vec::new(),
    };
    let candidates = engine::complete(command, words, index, folder)?.into_iter();
    let shown = candidates.map(|candidate| {
        let help = candidate
            .get_help()
            .map(|help| clip(&help.to_string(), HELP_CHARS));
        (candidate.get_value().to_string_lossy().into_owned(), help)
    });
    let is_option = |value: &String| is_empty && value.starts_with('-');
    Ok(shown
        .filter(|(value, _)| !is_option(value) && !commands.contains(value))
        .collect())
}

#[expect(
    clippy::disallowed_methods,
    reason = "it is set by the script for this call, and is no setting"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
