//! Official clients of other languages, a browser and third-party test tools against the running
//! binary: the programs in `tests/clients/` and `tests/browser`.
//!
//! Each folder has a `package.json` with its lock file, a `requirements.txt`, or both, and the
//! programs `run.mjs` or `run.py`. Each program gets its own service with an empty home and the
//! scripted model `script.jsonl` (the model `demo` if there is none). Exit code 0 means that all
//! its checks passed.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::command::{Failure, cargo, kill, output, pip_install, root, run as run_command, target};
use crate::file_system::{create_empty, entries};
use crate::steps::{Outcome, Steps};

/// Programs that a folder may contain, each with its interpreter.
const PROGRAMS: &[(&str, &str)] = &[("run.mjs", "node"), ("run.py", "python3")];

/// Runs the programs in `tests/clients/NAME`, or all programs, with the binary that `ADJUTANT_BIN`
/// names, or else a debug build.
///
/// # Errors
/// A program fails, or there is no folder of that name.
pub(crate) fn run(name: Option<&str>) -> Result<(), Failure> {
    let adjutant = match std::env::var_os("ADJUTANT_BIN").map(PathBuf::from) {
        Some(file) => file,
        None => {
            run_command(&mut cargo([
                "build",
                "--locked",
                "--package",
                "adjutant-cli",
            ]))?;
            target()
                .join("debug")
                .join(format!("adjutant{}", std::env::consts::EXE_SUFFIX))
        }
    };
    let mut folders = folders()?;
    if let Some(name) = name {
        folders.retain(|folder| folder.file_name() == Some(OsStr::new(name)));
        if folders.is_empty() {
            return Err(format!("there is no tests/clients/{name}"));
        }
    }
    let steps = Steps::begin()?;
    let ready = install_dependencies(&steps, folders);
    run_programs(&steps, &ready, &adjutant, None, &[]);
    steps.finish()
}

/// Installs the dependencies of all folders, and returns the folders whose programs can run.
pub(crate) fn prepare(steps: &Steps) -> Vec<PathBuf> {
    match folders() {
        Ok(folders) => install_dependencies(steps, folders),
        Err(failure) => {
            steps.step("clients", || Err(failure));
            Vec::new()
        }
    }
}

fn install_dependencies(steps: &Steps, folders: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut ready = Vec::new();
    for folder in folders {
        let name = folder_name(&folder);
        steps.skippable_step(&format!("{name}: dependencies"), || {
            let outcome = install(&folder, &name)?;
            if matches!(outcome, Outcome::Passed) {
                ready.push(folder);
            }
            Ok(outcome)
        });
    }
    ready
}

/// Runs the programs of these folders with additional environment variables. `examples` is the
/// folder of the compiled examples, which some programs start.
pub(crate) fn run_programs(
    steps: &Steps,
    folders: &[PathBuf],
    adjutant: &Path,
    examples: Option<&Path>,
    environment: &[(&str, &str)],
) {
    for folder in folders {
        let name = folder_name(folder);
        for (program, interpreter) in PROGRAMS
            .iter()
            .filter(|(program, _)| folder.join(program).is_file())
        {
            steps.step(&format!("{name}: {program}"), || {
                let mut command = Command::new(interpreter);
                command.arg(program).envs(environment.iter().copied());
                if let Some(examples) = examples {
                    command.env("ADJUTANT_EXAMPLES", examples);
                }
                if *interpreter == "python3" {
                    // Without the second variable Python writes `__pycache__` folders into the
                    // repository.
                    command
                        .env("PYTHONPATH", python_packages(&name))
                        .env("PYTHONDONTWRITEBYTECODE", "1");
                }
                run_with_service(adjutant, folder, &name, &mut command)
            });
        }
    }
}

fn folder_name(folder: &Path) -> String {
    folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Returns true if this folder's programs test the web page in a browser.
pub(crate) fn is_browser(folder: &Path) -> bool {
    folder.ends_with("browser")
}

/// Returns every folder that has programs: the clients in alphabetical order, then the browser.
fn folders() -> Result<Vec<PathBuf>, Failure> {
    let tests = root().join("tests");
    let mut folders = entries(&tests.join("clients"))?;
    folders.push(tests.join("browser"));
    folders.retain(|folder| {
        PROGRAMS
            .iter()
            .any(|(program, _)| folder.join(program).is_file())
    });
    if folders.is_empty() {
        Err("tests/clients holds no program".to_owned())
    } else {
        Ok(folders)
    }
}

/// Returns the folder into which a client's Python packages are installed.
fn python_packages(name: &str) -> PathBuf {
    target().join("xtask").join("clients").join(name)
}

/// Installs the dependencies of a folder, in the versions that its lock file pins.
fn install(folder: &Path, name: &str) -> Result<Outcome, Failure> {
    if folder.join("package.json").is_file() {
        if output(Command::new("npm").arg("--version")).is_err() {
            return Ok(Outcome::NotRun("it needs Node.js with npm".to_owned()));
        }
        let arguments = [
            "ci",
            // No third-party install script runs on this machine; the clients do not need theirs.
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
        ];
        run_command(
            Command::new("npm")
                .args(arguments)
                .current_dir(folder)
                .stdin(Stdio::null()),
        )?;
    }
    let requirements = folder.join("requirements.txt");
    if requirements.is_file() {
        let python = python_packages(name);
        // pip does not remove the old version of a package in a `--target` folder, so the two would
        // mix.
        create_empty(&python)?;
        if output(Command::new("python3").args(["-m", "pip", "--version"])).is_err() {
            return Ok(Outcome::NotRun("it needs Python with pip".to_owned()));
        }
        run_command(pip_install(&python).arg("-r").arg(&requirements))?;
    }
    Ok(Outcome::Passed)
}

/// Starts a service in an empty home and runs a client program against it.
fn run_with_service(
    adjutant: &Path,
    folder: &Path,
    name: &str,
    command: &mut Command,
) -> Result<(), Failure> {
    let home = target().join("xtask").join("homes").join(name);
    create_empty(&home)?;
    let script = folder.join("script.jsonl");
    let model = match script.is_file() {
        true => format!("scripted:{}", script.display()),
        false => "demo".to_owned(),
    };
    let service = Service::start(adjutant, &home, &model)?;
    command
        .current_dir(folder)
        .stdin(Stdio::null())
        .env("ADJUTANT_URL", &service.url)
        .env("ADJUTANT_TOKEN", &service.token)
        .env("ADJUTANT_BIN", adjutant);
    run_command(command)
}

/// A running service, killed on drop.
struct Service {
    process: Child,
    url: String,
    token: String,
}

impl Service {
    /// Starts the service and waits until it listens.
    fn start(adjutant: &Path, home: &Path, model: &str) -> Result<Self, Failure> {
        let mut command = Command::new(adjutant);
        command
            .args(["serve", "--json", "--bind", "127.0.0.1:0", "-m", model])
            .current_dir(home)
            .env_clear();
        // Only `PATH` is passed on: settings and keys of the developer must not reach the service.
        for (name, value) in std::env::vars_os().filter(|(name, _)| name == "PATH") {
            command.env(name, value);
        }
        let failed = |error: std::io::Error| format!("the service cannot be started: {error}");
        // All requests of a program come from one user, so the rate limit is raised out of the way.
        command.env("ADJUTANT_SERVE_REQUESTS_PER_MINUTE", "100000");
        command
            .env("HOME", home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let process = command.spawn().map_err(failed)?;
        let mut service = Self {
            process,
            url: String::new(),
            token: String::new(),
        };
        let stdout = service
            .process
            .stdout
            .take()
            .ok_or("the service has no output")?;
        let mut line = String::new();
        BufReader::new(stdout)
            .read_line(&mut line)
            .map_err(failed)?;
        (service.url, service.token) = parse_announcement(&line)
            .ok_or_else(|| format!("the service printed no address and token: {line:?}"))?;
        Ok(service)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        kill(&mut self.process);
    }
}

/// Returns address and token from the line that `adjutant serve --json` prints.
fn parse_announcement(line: &str) -> Option<(String, String)> {
    let announcement: Value = serde_json::from_str(line).ok()?;
    Some((
        announcement["url"].as_str()?.to_owned(),
        announcement["token"].as_str()?.to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_and_token_are_parsed() {
        let line = r#"{"url":"http://127.0.0.1:1","token":"t","model":"demo"}"#;
        assert_eq!(
            parse_announcement(line),
            Some(("http://127.0.0.1:1".to_owned(), "t".to_owned()))
        );
        assert_eq!(
            parse_announcement(r#"{"url":"http://127.0.0.1:1","token":null}"#),
            None
        );
        assert_eq!(parse_announcement("nothing"), None);
    }
}
