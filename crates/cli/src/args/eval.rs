//! Command-line arguments of `adjutant eval`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = crate::command::eval::CASE_FIELDS)]
pub(crate) struct Eval {
    /// Files of cases, one JSON object a line; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// Succeed if at least so many cases pass; without: all of them
    #[arg(long, value_name = "N")]
    pub(crate) min_pass: Option<usize>,
    /// Fail if more wrong changes are made than this
    #[arg(long, value_name = "N")]
    pub(crate) max_wrong_change: Option<usize>,
    /// Run every case with the assistant of the terminal, over an empty vault
    #[arg(long)]
    pub(crate) memory: bool,
    /// Run every case so many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: u32,
    /// Run every case with each of these models, in the place of -m: PROVIDER or PROVIDER/MODEL,
    /// separated by commas
    #[arg(
        long,
        value_name = "MODEL,...",
        value_delimiter = ',',
        conflicts_with = "model"
    )]
    pub(crate) models: Vec<String>,
    /// Write the verdicts to this file, as a baseline of later runs
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Compare with the verdicts in this file, and fail if cases got worse
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Succeed if at most so many cases are worse than in the baseline
    #[arg(long, value_name = "N", default_value_t = 0, requires = "baseline")]
    pub(crate) allow_worse: usize,
    /// Write the results as JUnit XML to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}
