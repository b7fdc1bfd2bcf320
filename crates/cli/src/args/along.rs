//! What goes along with a request.

use clap::Args;

/// Text beside the prompt, and how the assistant is to be. Of commands that talk to a model.
#[derive(Debug, Args)]
pub(crate) struct Along {
    /// Attach the text of this file; may be given several times, and `-` is standard input
    #[arg(
        short = 'f',
        long = "file",
        global = true,
        value_name = "FILE",
        help_heading = "Options everywhere"
    )]
    pub(crate) attached: Vec<String>,
    /// Tell the assistant this in addition to its instruction, for this run; with @FILE, the text
    /// of a file
    #[arg(
        long,
        global = true,
        value_name = "TEXT",
        help_heading = "Options everywhere"
    )]
    pub(crate) system: Option<String>,
    /// The same with what is in roles/NAME.md of the configuration folder
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        help_heading = "Options everywhere"
    )]
    pub(crate) role: Option<String>,
}
