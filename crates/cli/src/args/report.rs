//! Command-line arguments of `adjutant report`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Nothing is sent anywhere: look at it, then attach it yourself. What it holds is printed. Left out are keys, addresses, paths, names of\nusers, and what people, models and tools said.\n\nExamples:\n  adjutant report --folder /tmp/report        to look first\n  adjutant report --turn 0199d5b6 --log adjutant.log\n"
)]
pub(crate) struct Report {
    /// The ZIP file that is made [default: adjutant-report-TIME.zip, here]
    #[arg(short, long, value_name = "FILE", conflicts_with = "folder")]
    pub(crate) output: Option<PathBuf>,
    /// Write its files into a new folder instead, to look at them first
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Also the steps of this turn, whoever's it is
    #[arg(long, value_name = "ID")]
    pub(crate) turn: Option<String>,
    /// With what was said in the turn, as far as the log has it
    #[arg(long, requires = "turn")]
    pub(crate) with_words: bool,
    /// Also the end of this log of a service: of its JSON lines, the fields that say what happened
    /// and not to whom
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
}
