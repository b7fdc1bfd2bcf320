//! Options that add to the prompt or to the instruction.

use clap::Args;

/// Attachments and additional instructions, for commands that call a model.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options everywhere")]
pub(crate) struct Along {
    /// Attach the text of this file; may be given several times, and `-` is standard input
    #[arg(short = 'f', long = "file", global = true, value_name = "FILE")]
    pub(crate) attached: Vec<String>,
    /// Add this to the assistant's instruction for this run; with @FILE, the text of a file
    #[arg(long, global = true, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// Add roles/NAME.md of the configuration folder to the instruction
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) role: Option<String>,
}
