//! `adjutant eval FILE...`: runs evaluation cases against models.
//!
//! Each case has a store of its own, so its tasks and conversations are seen by no other. The agent
//! is the task assistant, or with memory that of the terminal over an empty vault. Confirmations
//! are never given.

mod baseline; // comparison with an earlier run
mod bench; // the environment of a case
mod case; // parsing cases
mod expect; // the expected result of a case
mod facts; // comparing facts
mod help; // text below the options
mod judge; // comparing result and expectation
mod junit; // results as JUnit XML
mod load; // cases and baseline
mod matching; // one-to-one matching
mod outcome; // results of cases by model
mod report; // rows and totals
mod run; // one run of a case
mod side_by_side; // several models
mod statistics; // shares, intervals, percentiles
mod task_before; // the tasks of a case
mod tasks; // comparing tasks and their changes
mod verdict; // right, or the way in which it is not
mod wording; // expected descriptions

use std::sync::Arc;

use adjutant_core::LanguageModel;
use serde::Serialize;

use crate::args::Eval;
use crate::config::Settings;
use crate::error::{CliError, Exit};
use crate::model_choice;
use crate::terminal::display::clean_line;
use crate::terminal::screen::{Screen, dim};
use crate::terminal::session;
use baseline::{Comparison, OfModel, Results};
use bench::Bench;
pub(crate) use help::CASE_FIELDS;
pub(crate) use load::{Prepared, prepare};
use outcome::outcomes;
use report::{Bounds, CaseReport, Summary};
use run::{Place, run_case};
use side_by_side::Differing;

/// The totals of all models, the last line of `--json`.
#[derive(Debug, Serialize)]
struct Totals {
    #[serde(flatten)]
    total: Summary,
    /// The totals of each model.
    models: Vec<Summary>,
    /// Cases on which models have different verdicts.
    differing: Vec<Differing>,
    /// The comparison with the baseline, if there is one.
    baseline: Option<Comparison>,
}

/// Runs the cases one by one with each model and prints each result.
///
/// # Errors
/// A model cannot be called at all, or a file of results cannot be written.
pub(crate) async fn run(
    prepared: &Prepared,
    options: &Eval,
    screen: &Screen,
    settings: &Settings,
) -> Result<Exit, CliError> {
    // Without names it is the model of the settings.
    let names: Vec<Option<&String>> = match options.models.as_slice() {
        [] => vec![None],
        names => names.iter().map(Some).collect(),
    };
    let mut progress = Progress::new(prepared, options, names.len(), screen);
    let mut summaries = Vec::new();
    let mut models = Vec::new();
    let mut all = Vec::new();
    for name in names {
        let mut settings = settings.clone();
        if let Some(name) = name {
            settings.model = Some(name.clone());
        }
        let opened = model_choice::open_alone(&settings, screen).await?;
        screen.note_parts(&session::header(&*opened));
        let model = label(&*opened, name, &models);
        let environment = Environment {
            model: &opened,
            label: &model,
            settings: &settings,
        };
        let reports = run_model(prepared, options, &mut progress, environment).await?;
        summaries.push(Summary::sum(model.clone(), &reports, bounds(options)));
        let cases = outcomes(&reports);
        models.push(OfModel { model, cases });
        all.extend(reports);
    }
    progress.end();
    let differing = side_by_side::differing(&models);
    let results = Results::new(models);
    let compare = |earlier| results.compare(earlier, options.allow_worse);
    let mut totals = Totals {
        total: match summaries.as_slice() {
            [only] => only.clone(),
            several => Summary::total(several, &all),
        },
        models: summaries,
        differing,
        baseline: prepared.baseline.as_ref().map(compare),
    };
    totals.total.ok &= totals
        .baseline
        .as_ref()
        .is_none_or(|comparison| comparison.ok);
    print(&totals, screen);
    if let Some(file) = &options.save {
        results.write(file)?;
    }
    if let Some(file) = &options.junit {
        baseline::write_file(file, &junit::to_xml(&all))?;
    }
    Ok(if totals.total.ok {
        Exit::Ok
    } else {
        Exit::Failed
    })
}

fn bounds(options: &Eval) -> Bounds {
    // With one of these, not every case has to pass, else they would be of no use.
    let other_bound = options.baseline.is_some() || options.max_wrong_change.is_some();
    Bounds {
        min_pass: options.min_pass.or(other_bound.then_some(0)),
        max_wrong_change: options.max_wrong_change,
    }
}

/// Returns the name of a model in reports: its id, with the name it was chosen by if another one has
/// the same id.
fn label(model: &dyn LanguageModel, name: Option<&String>, others: &[OfModel]) -> String {
    let id = model.id().to_string();
    match name {
        Some(name) if others.iter().any(|other| other.model == id) => format!("{id} ({name})"),
        _ => id,
    }
}

/// A model with its settings.
#[derive(Clone, Copy)]
struct Environment<'a> {
    model: &'a Arc<dyn LanguageModel>,
    label: &'a str,
    settings: &'a Settings,
}

/// Runs all cases with one model.
async fn run_model(
    prepared: &Prepared,
    options: &Eval,
    progress: &mut Progress<'_>,
    environment: Environment<'_>,
) -> Result<Vec<CaseReport>, CliError> {
    let Environment {
        model,
        label,
        settings,
    } = environment;
    let mut reports = Vec::new();
    for (index, (file, case)) in prepared.cases.iter().enumerate() {
        for run in 1..=options.repeat {
            progress.step();
            // A new one for each run: no case may depend on what another one left.
            let bench = Bench::prepare(case, options.memory, settings, model).await?;
            let place = Place {
                file,
                model: label,
                index,
                run,
            };
            let report = run_case(place, case, &bench).await?;
            let row = || clean_line(&report.to_row(progress.id_width));
            progress.screen.result(&report, row);
            reports.push(report);
        }
    }
    Ok(reports)
}

/// The number of the run that is in progress, on standard error.
struct Progress<'a> {
    screen: &'a Screen,
    shows: bool,
    done: usize,
    total: usize,
    /// The width of the longest id.
    id_width: usize,
}

impl<'a> Progress<'a> {
    fn new(prepared: &Prepared, options: &Eval, models: usize, screen: &'a Screen) -> Self {
        let cases = &prepared.cases;
        let widths = cases.iter().map(|(_, case)| case.id.chars().count());
        Self {
            screen,
            // At a terminal the printed rows show the progress.
            shows: screen.shows_progress() && !screen.shows_answers_live(),
            done: 0,
            total: cases.len() * models * options.repeat as usize,
            id_width: widths.max().unwrap_or(0),
        }
    }

    fn step(&mut self) {
        self.done += 1;
        if self.shows {
            let step = dim(&format!("{}/{}", self.done, self.total));
            self.screen.side(&format!("\r{step}"));
        }
    }

    fn end(&self) {
        if self.shows {
            self.screen.side("\r");
        }
    }
}

fn print(totals: &Totals, screen: &Screen) {
    if screen.json() {
        screen.answer_json(totals);
        return;
    }
    let mut text = String::new();
    for model in &totals.models {
        text.push_str(&format!("\n{}", model.to_text()));
    }
    if totals.models.len() > 1 {
        let table = side_by_side::to_text(&totals.models, &totals.total, &totals.differing);
        text.push_str(&format!("\n{table}"));
    }
    if let Some(comparison) = &totals.baseline {
        text.push_str(&format!("\n{}", comparison.to_text()));
    }
    screen.answer(&text);
}
