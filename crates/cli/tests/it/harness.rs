//! One person's machine in a folder, and runs of the binary on it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// A home of its own: nothing of whoever runs the tests is seen or touched.
pub(crate) struct Home {
    root: tempfile::TempDir,
}

/// Output and exit status of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["home", "config/adjutant", "project"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        Self { root }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn config(&self, text: &str) {
        self.file("config/adjutant/config.toml", text);
    }

    /// A scripted model, as `-m` takes it. Each script is a file of its own.
    pub(crate) fn script(&self, lines: &[&str]) -> String {
        let number = std::fs::read_dir(self.root.path()).unwrap().count();
        let path = self.file(&format!("script-{number}.jsonl"), lines.join("\n"));
        format!("scripted:{}", path.display())
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_adjutant")), args)
    }

    /// The same for a copy of the binary.
    pub(crate) fn command_of(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .env("HOME", self.path("home"))
            .env("USER", "ana")
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_DATA_HOME", self.path("data"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("XDG_STATE_HOME", self.path("state"))
            // Nobody listens there, whatever runs on the machine.
            .env("OLLAMA_HOST", "127.0.0.1:1")
            .current_dir(self.path("project"))
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Run {
        Run::of(&mut self.command(args))
    }

    /// Runs with bytes on standard input.
    pub(crate) fn pipe(&self, args: &[&str], stdin: &[u8]) -> Run {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let stdin = stdin.to_owned();
        let writer = std::thread::spawn(move || {
            // A command may stop reading early; what it does with that is what the test looks at.
            let _ = pipe.write_all(&stdin);
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        Run::from(output)
    }

    /// Runs with `--json` and reads the one object on standard output.
    pub(crate) fn json(&self, args: &[&str]) -> (i32, Value) {
        let run = self.run(&[args, &["--json"]].concat());
        (run.code, run.json())
    }

    pub(crate) fn ask(&self, model: &str, prompt: &str) -> (i32, Value) {
        self.json(&["ask", "-m", model, prompt])
    }

    pub(crate) fn tasks(&self) -> Vec<String> {
        let (_, list) = self.json(&["tasks", "list"]);
        let tasks = list["result"]["data"]["tasks"].as_array().unwrap();
        tasks
            .iter()
            .map(|task| task["description"].as_str().unwrap().to_owned())
            .collect()
    }

    pub(crate) fn add_task(&self, words: &str) {
        self.run(&["tasks", "add", words]).succeeds();
    }
}

impl Run {
    pub(crate) fn of(command: &mut Command) -> Self {
        Self::from(command.output().unwrap())
    }

    #[track_caller]
    pub(crate) fn succeeds(self) -> Self {
        self.ends_with(0)
    }

    #[track_caller]
    pub(crate) fn ends_with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn says(self, words: &str) -> Self {
        assert!(self.stderr.contains(words), "no {words:?} in {self:#?}");
        self
    }

    /// Standard output as one JSON value on one line, and nothing else.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stdout.matches('\n').count(), 1, "{self:#?}");
        assert!(self.stdout.ends_with('\n'), "{self:#?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

impl From<std::process::Output> for Run {
    fn from(output: std::process::Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// A path as an argument.
pub(crate) fn arg(path: &Path) -> &str {
    path.to_str().unwrap()
}
