//! Child processes of the steps: the directory they run in, their output, and the CPU time they
//! use.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// A failure message for the developer.
pub(crate) type Failure = String;

/// The environment variable that names the file in which tests note that they could not run.
const NOT_RUN_VARIABLE: &str = "ADJUTANT_NOT_RUN";

/// Returns the file in which the tests of this process note that they could not run.
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
    // Known at compile time, so it does not depend on the current directory.
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest
        .parent()
        .map_or_else(|| manifest.clone(), PathBuf::from)
}

/// Returns cargo's target folder.
pub(crate) fn target() -> PathBuf {
    // An absolute path replaces the root, a relative one is relative to it, as for cargo.
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Returns a `cargo` command that runs in the workspace root without standard input.
pub(crate) fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    // Cargo sets `CARGO` to its own path, so `cargo +toolchain xtask` uses that toolchain here too.
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(arguments)
        .current_dir(root())
        .stdin(Stdio::null());
    // Cargo sets these variables for the package that it runs, which is `xtask`. Build scripts that
    // depend on them (`ring`'s does) would rerun whenever a command of ours follows one that a
    // developer typed, and everything above them would be rebuilt.
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
    /// CPU time of the commands that the current step has run. Steps may run in parallel, each in
    /// its own thread.
    static CPU_SECONDS: Cell<f64> = const { Cell::new(0.0) };
}

/// Returns the CPU time of this thread's commands since [`reset_cpu_seconds`].
pub(crate) fn cpu_seconds() -> f64 {
    CPU_SECONDS.get()
}

/// Sets the CPU time of this thread's commands to zero, before a step begins.
pub(crate) fn reset_cpu_seconds() {
    CPU_SECONDS.set(0.0);
}

/// The interval at which [`wait`] checks for the end of a process: a short step is delayed by at
/// most this.
const POLL: Duration = Duration::from_millis(20);

/// Runs a command with its output on the terminal, and adds its CPU time to the current step. Tests
/// in it may note that they could not run.
///
/// # Errors
/// The command cannot be started, or its exit code is not 0.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    println!("    {}", command_line(command));
    let status = command
        .env(NOT_RUN_VARIABLE, not_run_file())
        .spawn()
        .and_then(|mut child| wait(&mut child));
    let status =
        status.map_err(|error| format!("{} cannot be run: {error}", command_line(command)))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{}: {status}", command_line(command)))
    }
}

/// Waits until a process ends, and reads its CPU time just before the exit status.
fn wait(child: &mut Child) -> std::io::Result<ExitStatus> {
    // The kernel keeps the times of a finished process (a zombie) only until its exit status is
    // collected, so they are read before `Child::wait`.
    // Without `/proc` the loop ends at once, and `Child::wait` does all the waiting.
    while let Some(times) = Times::of_process(child.id()) {
        if times.ended {
            times.add_to_step();
            break;
        }
        std::thread::sleep(POLL);
    }
    child.wait()
}

/// Kills a process, and adds the CPU time it has used to the current step.
pub(crate) fn kill(child: &mut Child) {
    // Before the end of the process, because its times go with it.
    if let Some(times) = Times::of_process(child.id()) {
        times.add_to_step();
    }
    // Killing and waiting fail only if the process has ended by itself, which is fine.
    let _ = child.kill();
    let _ = child.wait();
}

/// CPU time of a process as Linux reports it. Other systems have no `/proc`, so theirs counts as 0.
#[derive(Debug, PartialEq)]
struct Times {
    ended: bool,
    cpu_seconds: f64,
}

impl Times {
    fn of_process(process: u32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }

    /// Parses `/proc/PID/stat`: the time of the process and of the children it has waited for, see
    /// proc_pid_stat(5).
    fn parse(stat: &str) -> Option<Self> {
        // The second field is the program's name in parentheses, which may itself contain spaces
        // and parentheses.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks: Option<u32> = fields
            .get(11..15)?
            .iter()
            .map(|ticks| ticks.parse::<u32>().ok())
            .sum();
        // `USER_HZ`, the unit of these fields, is 100 on every architecture.
        Some(Self {
            ended: *fields.first()? == "Z",
            cpu_seconds: f64::from(ticks?) / 100.0,
        })
    }

    fn add_to_step(&self) {
        CPU_SECONDS.set(CPU_SECONDS.get() + self.cpu_seconds);
    }
}

/// Runs a command without showing its output, and returns its standard output.
///
/// # Errors
/// The command cannot be started, or its exit code is not 0; the message then includes its standard
/// error.
pub(crate) fn output(command: &mut Command) -> Result<String, Failure> {
    let output = command
        .output()
        .map_err(|error| format!("{} cannot be started: {error}", command_line(command)))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{}: {}\n{}",
        command_line(command),
        output.status,
        stderr.trim()
    ))
}

/// Returns a `pip install` command that puts packages into a folder of their own.
pub(crate) fn pip_install(folder: &Path) -> Command {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet"])
        .args(["--disable-pip-version-check", "--target"])
        .arg(folder)
        .stdin(Stdio::null());
    pip
}

/// Returns an error with one failure per line, or success if there are none.
pub(crate) fn fail_with(failures: Vec<Failure>) -> Result<(), Failure> {
    if failures.is_empty() {
        Ok(())
    } else {
        Err(failures.join("\n"))
    }
}

fn command_line(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let name = program
        .file_name()
        .unwrap_or(command.get_program())
        .to_string_lossy()
        .into_owned();
    let arguments = command
        .get_args()
        .map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(name)
        .chain(arguments)
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
    fn several_failures_are_one_with_a_line_each() {
        assert_eq!(fail_with(Vec::new()), Ok(()));
        assert_eq!(
            fail_with(vec!["a".to_owned(), "b".to_owned()]),
            Err("a\nb".to_owned())
        );
    }

    #[test]
    fn variables_of_the_running_package_are_not_inherited() {
        let command = cargo(["check"]);
        let removed = |name| {
            command
                .get_envs()
                .any(|(given, value)| given == name && value.is_none())
        };
        assert!(removed("CARGO_MANIFEST_DIR") && removed("CARGO_PKG_VERSION_MAJOR"));
    }

    #[test]
    fn cpu_time_includes_the_children() {
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
    fn cpu_time_of_a_grandchild_is_counted() {
        let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        CPU_SECONDS.set(0.0);
        run(Command::new("sh").args(["-c", &format!("sh -c '{busy}'; true")])).expect("a shell");
        assert!(CPU_SECONDS.get() > 0.0);
    }
}
