//! Official clients, a browser and other people's test tools against the binary as it ships: the
//! programs of `tests/clients/` and `tests/browser`.
//!
//! A folder holds `package.json` with its lock, or `requirements.txt`, or both, and the programs
//! `run.mjs`, `run.py`. Each program gets a service of its own, in an empty home, with the model
//! `script.jsonl` (without one: `demo`), and says with its exit code whether all is well.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::command::{Failure, cargo, end, output, root, run as run_command, target};
use crate::steps::{Ended, Steps};

/// The programs a folder may hold, and what runs them.
const PROGRAMS: &[(&str, &str)] = &[("run.mjs", "node"), ("run.py", "python3")];

/// Runs those of this name, or all, with the binary that `ADJUTANT_BIN` names, else one that is
/// built.
///
/// # Errors
/// If one fails, or there is none of that name.
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
    let ready = install_each(&steps, folders);
    ask_each(&steps, &ready, &adjutant, None, &[]);
    steps.finish()
}

/// Installs what all of them need. The folders whose programs can be run.
pub(crate) fn prepare(steps: &Steps) -> Vec<PathBuf> {
    match folders() {
        Ok(folders) => install_each(steps, folders),
        Err(failure) => {
            steps.step("clients", || Err(failure));
            Vec::new()
        }
    }
}

fn install_each(steps: &Steps, folders: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut ready = Vec::new();
    for folder in folders {
        let name = name_of(&folder);
        steps.may_be_skipped(&format!("{name}: what it needs"), || {
            let ended = install(&folder, &name)?;
            if matches!(ended, Ended::Ok) {
                ready.push(folder);
            }
            Ok(ended)
        });
    }
    ready
}

/// Runs the programs of these folders, beside examples of the workspace that were built a moment
/// ago, where they were, and with these variables.
pub(crate) fn ask_each(
    steps: &Steps,
    folders: &[PathBuf],
    adjutant: &Path,
    examples: Option<&Path>,
    environment: &[(&str, &str)],
) {
    for folder in folders {
        let name = name_of(folder);
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
                    command
                        .env("PYTHONPATH", python_of(&name))
                        .env("PYTHONDONTWRITEBYTECODE", "1");
                }
                ask(adjutant, folder, &name, &mut command)
            });
        }
    }
}

fn name_of(folder: &Path) -> String {
    folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Returns whether a folder's programs look at the page.
pub(crate) fn is_browser(folder: &Path) -> bool {
    folder.ends_with("browser")
}

/// Returns every folder with programs: those of clients by name, then the browser's.
fn folders() -> Result<Vec<PathBuf>, Failure> {
    let tests = root().join("tests");
    let read = |error: std::io::Error| format!("tests/clients cannot be read: {error}");
    let mut folders = Vec::new();
    for entry in fs::read_dir(tests.join("clients")).map_err(read)? {
        folders.push(entry.map_err(read)?.path());
    }
    folders.sort();
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

/// Returns the folder of the Python packages that a client's folder needs.
fn python_of(name: &str) -> PathBuf {
    target().join("xtask").join("clients").join(name)
}

/// Installs what a folder's programs need, in exactly the versions it names.
fn install(folder: &Path, name: &str) -> Result<Ended, Failure> {
    if folder.join("package.json").is_file() {
        if output(Command::new("npm").arg("--version")).is_err() {
            return Ok(Ended::NotRun("it needs Node.js with npm".to_owned()));
        }
        let arguments = [
            "ci",
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
        let python = python_of(name);
        // Installing over what is there mixes versions.
        if python.is_dir() {
            fs::remove_dir_all(&python)
                .map_err(|error| format!("{}: {error}", python.display()))?;
        }
        let mut pip = Command::new("python3");
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--target",
        ]);
        pip.arg(&python).arg("-r").arg(&requirements);
        if output(Command::new("python3").args(["-m", "pip", "--version"])).is_err() {
            return Ok(Ended::NotRun("it needs Python with pip".to_owned()));
        }
        run_command(pip.stdin(Stdio::null()))?;
    }
    Ok(Ended::Ok)
}

/// Runs a program beside a service of its own.
fn ask(adjutant: &Path, folder: &Path, name: &str, command: &mut Command) -> Result<(), Failure> {
    let home = target().join("xtask").join("homes").join(name);
    if home.is_dir() {
        fs::remove_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
    }
    fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
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

/// A running service. It ends with this.
struct Service {
    process: Child,
    url: String,
    token: String,
}

impl Service {
    /// Waits until it listens.
    fn start(adjutant: &Path, home: &Path, model: &str) -> Result<Self, Failure> {
        let mut command = Command::new(adjutant);
        command
            .args(["serve", "--json", "--bind", "127.0.0.1:0", "-m", model])
            .current_dir(home)
            .env_clear();
        for (name, value) in std::env::vars_os().filter(|(name, _)| name == "PATH") {
            command.env(name, value);
        }
        let failed = |error: std::io::Error| format!("the service cannot be started: {error}");
        // One user asks as often as all checks of a program need it.
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
        let said = service
            .process
            .stdout
            .take()
            .ok_or("the service has no output")?;
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line).map_err(failed)?;
        (service.url, service.token) = announced(&line)
            .ok_or_else(|| format!("the service gives no address and token: {line:?}"))?;
        Ok(service)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// Address and token in what `adjutant serve --json` prints.
fn announced(line: &str) -> Option<(String, String)> {
    let said: Value = serde_json::from_str(line).ok()?;
    Some((
        said["url"].as_str()?.to_owned(),
        said["token"].as_str()?.to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_and_token_are_read() {
        let line = r#"{"url":"http://127.0.0.1:1","token":"t","model":"demo"}"#;
        assert_eq!(
            announced(line),
            Some(("http://127.0.0.1:1".to_owned(), "t".to_owned()))
        );
        assert_eq!(
            announced(r#"{"url":"http://127.0.0.1:1","token":null}"#),
            None
        );
        assert_eq!(announced("nothing"), None);
    }
}
