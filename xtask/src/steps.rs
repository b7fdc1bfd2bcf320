//! Running commands: every step has a name, is timed, and a failed one does not keep the next from running.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

/// What went wrong, in words for a developer.
pub(crate) type Failure = String;

/// The steps of one run, and how they ended.
#[derive(Default)]
pub(crate) struct Steps {
    done: Vec<Done>,
}

struct Done {
    name: String,
    seconds: f64,
    result: Result<Ended, Failure>,
}

/// How a step ended that did not fail.
pub(crate) enum Ended {
    /// It did what it is for.
    Ok,
    /// It could not be run here, and why; not a failure, but never silent.
    NotRun(String),
}

impl Steps {
    /// Runs one step.
    pub(crate) fn step(&mut self, name: &str, run: impl FnOnce() -> Result<(), Failure>) {
        self.may_be_skipped(name, || run().map(|()| Ended::Ok));
    }

    /// Runs one step that may find that it cannot run here.
    pub(crate) fn may_be_skipped(&mut self, name: &str, run: impl FnOnce() -> Result<Ended, Failure>) {
        println!("\n==> {name}");
        let start = Instant::now();
        let result = run();
        match &result {
            Ok(Ended::Ok) => {}
            Ok(Ended::NotRun(cause)) => println!("{}", not_run(name, cause)),
            Err(failure) => println!("{failure}"),
        }
        self.done.push(Done { name: name.to_owned(), seconds: start.elapsed().as_secs_f64(), result });
    }

    /// Prints every step with its time.
    ///
    /// # Errors
    /// If one of them failed, with their names.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        println!();
        for step in &self.done {
            let word = match &step.result {
                Ok(Ended::Ok) => "ok".to_owned(),
                Ok(Ended::NotRun(cause)) => not_run(&step.name, cause),
                Err(_) => "FAILED".to_owned(),
            };
            println!("{:7.1} s  {:34} {word}", step.seconds, step.name);
        }
        let failed: Vec<&str> =
            self.done.iter().filter(|step| step.result.is_err()).map(|step| step.name.as_str()).collect();
        if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
    }
}

fn not_run(name: &str, cause: &str) -> String {
    format!("NOT RUN: {name}: {cause}")
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().map_or_else(|| manifest.clone(), PathBuf::from)
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// `cargo` with these arguments, in the root of the workspace, without a terminal to ask.
pub(crate) fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    // The one that runs us, so that `cargo +toolchain xtask` means that toolchain.
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root()).stdin(Stdio::null());
    command
}

/// Runs a command whose output is shown.
///
/// # Errors
/// If it cannot be started or does not end with 0.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    println!("    {}", shown(command));
    let status =
        command.status().map_err(|error| format!("{} cannot be started: {error}", shown(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", shown(command))) }
}

/// Runs a command and gives what it wrote to its standard output.
///
/// # Errors
/// If it cannot be started or does not end with 0; with what it said.
pub(crate) fn output(command: &mut Command) -> Result<String, Failure> {
    let output =
        command.output().map_err(|error| format!("{} cannot be started: {error}", shown(command)))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}: {}\n{}", shown(command), output.status, said.trim()))
}

fn shown(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program()).to_string_lossy().into_owned();
    let words = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(name).chain(words).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_fails_the_run_and_the_next_one_still_runs() {
        let mut steps = Steps::default();
        let mut ran = false;
        steps.step("first", || Err("broken".to_owned()));
        steps.step("second", || {
            ran = true;
            Ok(())
        });
        assert_eq!(steps.finish(), Err("failed: first".to_owned()));
        assert!(ran);
    }

    #[test]
    fn what_cannot_run_here_is_no_failure() {
        let mut steps = Steps::default();
        steps.may_be_skipped("model", || Ok(Ended::NotRun("no model".to_owned())));
        assert_eq!(steps.finish(), Ok(()));
        assert_eq!(not_run("model", "no model"), "NOT RUN: model: no model");
    }

    #[test]
    fn a_command_that_fails_is_a_failure() {
        assert_eq!(output(&mut cargo(["--version"])).map(|text| text.starts_with("cargo ")), Ok(true));
        assert!(output(&mut cargo(["no-such-command-of-cargo"])).is_err());
        assert!(run(Command::new("no-such-program-anywhere").arg("x")).is_err());
    }
}
