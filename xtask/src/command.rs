//! Commands that the steps of a run start: where they run, their output, and the processor time
//! that they take.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// A failure, as a message for the developer.
pub(crate) type Failure = String;

/// The variable that names the file in which tests note that they could not run.
const NOT_RUN_VARIABLE: &str = "ADJUTANT_NOT_RUN";

/// Returns the file in which tests of this run note that they could not run.
pub(crate) fn not_run_file() -> &'static Path {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    FILE.get_or_init(|| {
        target()
            .join("xtask")
            .join(format!("not-run-{}.txt", std::process::id()))
    })
}

/// Returns the root folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest
        .parent()
        .map_or_else(|| manifest.clone(), PathBuf::from)
}

/// Returns cargo's target folder.
pub(crate) fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Returns a `cargo` command with these arguments that runs in the root of the workspace, without
/// standard input.
pub(crate) fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    // The one that runs us, so that `cargo +toolchain xtask` means that toolchain.
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(arguments)
        .current_dir(root())
        .stdin(Stdio::null());
    // What cargo says of the package whose program it runs, which is this one. Build scripts that
    // look at it (`ring`'s) would run again whenever a command of ours follows one of cargo's own,
    // and all that depends on them would be built again.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        }) {
            command.env_remove(name);
        }
    }
    command
}

thread_local! {
    /// Processor time of the commands of this thread's step.
    static CPU_SECONDS: Cell<f64> = const { Cell::new(0.0) };
}

/// Returns the processor time of this thread's commands since [`reset_cpu_seconds`], in seconds.
pub(crate) fn cpu_seconds() -> f64 {
    CPU_SECONDS.get()
}

/// Sets the processor time of this thread's commands to zero, before a step begins.
pub(crate) fn reset_cpu_seconds() {
    CPU_SECONDS.set(0.0);
}

/// The interval at which the processor time of a running command is read.
const POLL: Duration = Duration::from_millis(20);

/// Runs a command whose output is shown, and counts its processor time. Tests in it may note that
/// they cannot be run.
///
/// # Errors
/// If it cannot be started or does not end with 0.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    println!("    {}", shown(command));
    let failed = |error: std::io::Error| format!("{error}");
    let status = command
        .env(NOT_RUN_VARIABLE, not_run_file())
        .spawn()
        .and_then(|mut child| wait(&mut child));
    let status = status
        .map_err(failed)
        .map_err(|error| format!("{} cannot be run: {error}", shown(command)))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{}: {status}", shown(command)))
    }
}

/// Waits until a process ends.
fn wait(child: &mut Child) -> std::io::Result<ExitStatus> {
    // The system keeps the times of what has ended until it is asked for the exit status, and not
    // longer.
    while let Some(times) = Times::of(child.id()) {
        if times.ended {
            times.count();
            break;
        }
        std::thread::sleep(POLL);
    }
    child.wait()
}

/// Ends a process, and counts its processor time to the step.
pub(crate) fn end(child: &mut Child) {
    if let Some(times) = Times::of(child.id()) {
        times.count();
    }
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

/// The processor time of a process as Linux reports it; other systems count as 0.
#[derive(Debug, PartialEq)]
struct Times {
    ended: bool,
    cpu_seconds: f64,
}

impl Times {
    fn of(process: u32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }

    /// Reads `/proc/PID/stat`: its own time and that of the children it waited for. Source:
    /// proc_pid_stat(5).
    fn parse(stat: &str) -> Option<Self> {
        // The second field is a name in brackets, which may hold anything.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks: Option<u32> = fields
            .get(11..15)?
            .iter()
            .map(|ticks| ticks.parse::<u32>().ok())
            .sum();
        // The kernel reports ticks of 1/100 second to programs on every architecture.
        Some(Self {
            ended: *fields.first()? == "Z",
            cpu_seconds: f64::from(ticks?) / 100.0,
        })
    }

    fn count(&self) {
        CPU_SECONDS.set(CPU_SECONDS.get() + self.cpu_seconds);
    }
}

/// Runs a command and returns its standard output.
///
/// # Errors
/// If it cannot be started or does not end with 0; with its standard error.
pub(crate) fn output(command: &mut Command) -> Result<String, Failure> {
    let output = command
        .output()
        .map_err(|error| format!("{} cannot be started: {error}", shown(command)))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{}: {}\n{}",
        shown(command),
        output.status,
        said.trim()
    ))
}

fn shown(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let name = program
        .file_name()
        .unwrap_or(command.get_program())
        .to_string_lossy()
        .into_owned();
    let words = command
        .get_args()
        .map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(name)
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_is_a_failure() {
        assert_eq!(
            output(&mut cargo(["--version"])).map(|text| text.starts_with("cargo ")),
            Ok(true)
        );
        assert!(output(&mut cargo(["no-such-command-of-cargo"])).is_err());
        assert!(run(Command::new("no-such-program-anywhere").arg("x")).is_err());
        assert!(run(Command::new("sh").args(["-c", "exit 3"])).is_err());
    }

    #[test]
    fn what_cargo_says_of_this_package_is_not_handed_on() {
        let command = cargo(["check"]);
        let removed = |name| {
            command
                .get_envs()
                .any(|(given, value)| given == name && value.is_none())
        };
        assert!(removed("CARGO_MANIFEST_DIR") && removed("CARGO_PKG_VERSION_MAJOR"));
    }

    #[test]
    fn times_are_those_of_a_process_and_its_children() {
        let stat = "7 (a (b) c) Z 1 7 7 0 -1 4194304 1 2 3 4 150 25 200 25 20 0 1 0 9 0 0";
        assert_eq!(
            Times::parse(stat),
            Some(Times {
                ended: true,
                cpu_seconds: 4.0
            })
        );
        assert_eq!(
            Times::parse(&stat.replace(") Z", ") S")),
            Some(Times {
                ended: false,
                cpu_seconds: 4.0
            })
        );
        assert_eq!(Times::parse("7 (a) Z 1"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_a_command_of_a_command_costs_is_counted() {
        let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        CPU_SECONDS.set(0.0);
        run(Command::new("sh").args(["-c", &format!("sh -c '{busy}'; true")])).expect("a shell");
        assert!(CPU_SECONDS.get() > 0.0);
    }
}
