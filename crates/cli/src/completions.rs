//! `adjutant completions`: what a shell needs to complete commands and options.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Cli;
use crate::screen::Screen;

/// How to have them read; for the help.
pub(crate) const HELP: &str = "\
Examples:
  adjutant completions bash > ~/.local/share/bash-completion/completions/adjutant
  adjutant completions zsh > ~/.zfunc/_adjutant          (with fpath+=~/.zfunc in .zshrc)
  adjutant completions fish > ~/.config/fish/completions/adjutant.fish
";

/// Prints the script.
pub(crate) fn run(screen: &Screen, shell: Shell) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "adjutant", &mut script);
    screen.answer(&String::from_utf8_lossy(&script));
}
