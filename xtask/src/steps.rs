//! Steps of a run: commands with a name and a time. A step that fails does not keep the next from
//! running, and steps may run in parallel.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::command::{Failure, cpu_seconds, reset_cpu_seconds};
use crate::not_run::{self, NotRun};

/// The steps of one run with their results.
pub(crate) struct Steps {
    started: Instant,
    done: Mutex<Vec<Done>>,
}

struct Done {
    name: String,
    seconds: f64,
    cpu_seconds: f64,
    result: Result<Ended, Failure>,
}

/// The end of a step that did not fail.
pub(crate) enum Ended {
    /// It succeeded.
    Ok,
    /// It could not run here, for this reason. Not a failure, but always reported.
    NotRun(String),
}

impl Steps {
    /// Begins a run and discards the notes of earlier runs about tests that could not run.
    ///
    /// # Errors
    /// If the file for those notes cannot be created.
    pub(crate) fn begin() -> Result<Self, Failure> {
        not_run::clear()?;
        Ok(Self {
            started: Instant::now(),
            done: Mutex::default(),
        })
    }

    /// Runs one step.
    pub(crate) fn step(&self, name: &str, run: impl FnOnce() -> Result<(), Failure>) {
        self.may_be_skipped(name, || run().map(|()| Ended::Ok));
    }

    /// Runs one step that may find that it cannot run here.
    pub(crate) fn may_be_skipped(&self, name: &str, run: impl FnOnce() -> Result<Ended, Failure>) {
        println!("\n==> {name}");
        let start = Instant::now();
        reset_cpu_seconds();
        let result = run();
        match &result {
            Ok(Ended::Ok) => {}
            Ok(Ended::NotRun(reason)) => println!("NOT RUN: {name}: {reason}"),
            Err(failure) => println!("{name}: {failure}"),
        }
        self.done
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Done {
                name: name.to_owned(),
                seconds: start.elapsed().as_secs_f64(),
                cpu_seconds: cpu_seconds(),
                result,
            });
    }

    /// Prints every step with its time and the processor time of its commands, then what was not
    /// run and why.
    ///
    /// # Errors
    /// If a step failed, with their names; in CI also if something was not run that the list of
    /// [`not_run`] does not excuse.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let done = self
            .done
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        println!("\n{:>9} {:>9}", "time", "CPU");
        for step in &done {
            let word = match &step.result {
                Ok(Ended::Ok) => "ok",
                Ok(Ended::NotRun(_)) => "NOT RUN",
                Err(_) => "FAILED",
            };
            println!(
                "{:7.1} s {:7.1} s  {:40} {word}",
                step.seconds, step.cpu_seconds, step.name
            );
        }
        let cpu: f64 = done.iter().map(|step| step.cpu_seconds).sum();
        println!(
            "{:7.1} s {cpu:7.1} s  in all ({:.1} CPU minutes)",
            self.started.elapsed().as_secs_f64(),
            cpu / 60.0
        );

        let skipped = done.iter().filter_map(|step| match &step.result {
            Ok(Ended::NotRun(reason)) => Some(NotRun {
                name: step.name.clone(),
                reason: reason.clone(),
            }),
            Ok(Ended::Ok) | Err(_) => None,
        });
        let not_run = not_run::report(skipped.chain(not_run::noted()?).collect(), not_run::in_ci());
        let failed: Vec<&str> = done
            .iter()
            .filter(|step| step.result.is_err())
            .map(|step| step.name.as_str())
            .collect();
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
            done: Mutex::default(),
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
