//! Loads what a run needs before it begins, so that a mistake shows at once.

use std::fs;
use std::io::Read as _;

use super::baseline::{self, Results};
use super::case::{self, Case};
use crate::args::Eval;
use crate::error::CliError;

/// Cases and bounds of a run, loaded before anything runs.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Cases of all files, in order, each with the name of its file.
    pub(super) cases: Vec<(String, Case)>,
    /// The results to compare with.
    pub(super) baseline: Option<Results>,
}

/// Loads the cases of all files (`-` is standard input) and the baseline. Nothing runs before all
/// of them are valid.
///
/// # Errors
/// A file cannot be read, a line is no case, there are no cases, `min_pass` exceeds the number of
/// runs, or there is no place for a file of results.
pub(crate) fn prepare(options: &Eval) -> Result<Prepared, CliError> {
    let files = &options.files;
    // The second reader would find it empty, and the run would pass without its cases.
    if files.iter().filter(|file| *file == "-").count() > 1 {
        return Err(CliError::usage("standard input can be read once only"));
    }
    let mut cases = Vec::new();
    for file in files {
        let text = read_file(file).map_err(|error| {
            CliError::usage(format!("{file} cannot be read")).because(error.to_string())
        })?;
        let read = case::parse(file, &text).map_err(|bad| {
            CliError::usage(bad.to_string())
                .or_try("adjutant eval --help    has the fields of a case")
        })?;
        cases.extend(read.into_iter().map(|case| (file.clone(), case)));
    }
    if cases.is_empty() {
        return Err(CliError::usage(format!(
            "there is no case in {}",
            files.join(", ")
        )));
    }
    let runs = cases.len() * options.repeat as usize;
    if let Some(min) = options.min_pass.filter(|min| *min > runs) {
        let unit = if options.repeat == 1 { "cases" } else { "runs" };
        return Err(CliError::usage(format!(
            "--min-pass is {min}, and there are only {runs} {unit}"
        )));
    }
    for (option, file) in [("--save", &options.save), ("--junit", &options.junit)] {
        if let Some(file) = file {
            baseline::check_place(option, file)?;
        }
    }
    Ok(Prepared {
        cases,
        baseline: options.baseline.as_deref().map(Results::read).transpose()?,
    })
}

fn read_file(file: &str) -> std::io::Result<String> {
    if file == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        Ok(text)
    } else {
        fs::read_to_string(file)
    }
}
