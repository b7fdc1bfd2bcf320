//! Named, timed steps of one command. A failed step does not stop the next one, and steps may run
//! in parallel; [`Steps::finish`] prints the summary and decides the exit code.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::check::budget;
use crate::command::{Failure, cpu_seconds, reset_cpu_seconds};
use crate::not_run::{self, NotRun};

/// The steps of one command, with their results so far.
pub(crate) struct Steps {
    started: Instant,
    finished: Mutex<Vec<FinishedStep>>,
}

struct FinishedStep {
    name: String,
    seconds: f64,
    cpu_seconds: f64,
    result: Result<Outcome, Failure>,
}

/// The result of a step that did not fail.
pub(crate) enum Outcome {
    /// All of it ran and passed.
    Passed,
    /// It could not run on this machine, for this reason. This is no failure, but it is always
    /// reported.
    NotRun(String),
}

impl Steps {
    /// Starts the clock and discards the notes of earlier runs about tests that could not run.
    ///
    /// # Errors
    /// The file for those notes cannot be created.
    pub(crate) fn begin() -> Result<Self, Failure> {
        not_run::clear()?;
        Ok(Self {
            started: Instant::now(),
            finished: Mutex::default(),
        })
    }

    /// Runs a step and records its result, wall time and CPU time.
    pub(crate) fn step(&self, name: &str, run: impl FnOnce() -> Result<(), Failure>) {
        self.skippable_step(name, || run().map(|()| Outcome::Passed));
    }

    /// Runs a step that may turn out not to be possible on this machine, such as one that needs a
    /// missing program.
    pub(crate) fn skippable_step(
        &self,
        name: &str,
        run: impl FnOnce() -> Result<Outcome, Failure>,
    ) {
        println!("\n==> {name}");
        let start = Instant::now();
        reset_cpu_seconds();
        let result = run();
        match &result {
            Ok(Outcome::Passed) => {}
            Ok(Outcome::NotRun(reason)) => println!("NOT RUN: {name}: {reason}"),
            Err(failure) => println!("{name}: {failure}"),
        }
        self.finished
            .lock()
            // A panic in another step must not discard the results so far.
            .unwrap_or_else(PoisonError::into_inner)
            .push(FinishedStep {
                name: name.to_owned(),
                seconds: start.elapsed().as_secs_f64(),
                cpu_seconds: cpu_seconds(),
                result,
            });
    }

    /// Prints a table of all steps with their wall and CPU time, then the list of tests that were
    /// not run.
    ///
    /// # Errors
    /// One or more steps failed or, in CI, took far longer than their suite may (the message has their
    /// names), or, in CI, a test was not run that the list in [`not_run`] does not excuse.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let finished = self
            .finished
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        println!("\n{:>9} {:>9}", "time", "CPU");
        let is_ci = not_run::is_ci();
        let mut too_slow = Vec::new();
        for step in &finished {
            let mut verdict = match &step.result {
                Ok(Outcome::Passed) => "ok".to_owned(),
                Ok(Outcome::NotRun(_)) => "NOT RUN".to_owned(),
                Err(_) => "FAILED".to_owned(),
            };
            // On a developer's machine other work may go on, so only CI is held to the minutes.
            if is_ci
                && let Some((over, fails)) =
                    budget::over_minutes(&step.name, step.seconds, step.cpu_seconds)
            {
                verdict = format!("{verdict}, {over}");
                too_slow.extend(fails.then_some(step.name.as_str()));
            }
            println!(
                "{:7.1} s {:7.1} s  {:40} {verdict}",
                step.seconds, step.cpu_seconds, step.name
            );
        }
        let cpu: f64 = finished.iter().map(|step| step.cpu_seconds).sum();
        println!(
            "{:7.1} s {cpu:7.1} s  in all ({:.1} CPU minutes)",
            self.started.elapsed().as_secs_f64(),
            cpu / 60.0
        );

        let skipped = finished.iter().filter_map(|step| match &step.result {
            Ok(Outcome::NotRun(reason)) => Some(NotRun {
                name: step.name.clone(),
                reason: reason.clone(),
            }),
            Ok(Outcome::Passed) | Err(_) => None,
        });
        // The notes are read only now, because the tests of every step append to the same file.
        let not_run = not_run::report(
            skipped.chain(not_run::take_notes()?).collect(),
            not_run::is_ci(),
        );
        let mut failed: Vec<&str> = finished
            .iter()
            .filter(|step| step.result.is_err())
            .map(|step| step.name.as_str())
            .collect();
        failed.extend(too_slow);
        if failed.is_empty() {
            not_run
        } else {
            Err(format!("failed: {}", failed.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps() -> Steps {
        Steps {
            started: Instant::now(),
            finished: Mutex::default(),
        }
    }

    #[test]
    fn a_failed_step_fails_the_run_and_the_next_one_still_runs() {
        let steps = steps();
        let mut ran = false;
        steps.step("first", || Err("broken".to_owned()));
        steps.step("second", || {
            ran = true;
            Ok(())
        });
        assert_eq!(steps.finish(), Err("failed: first".to_owned()));
        assert!(ran);
    }
}
