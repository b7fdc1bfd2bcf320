//! A cloned folder whose files are no files: every command ends at once and says why.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::harness::{Home, Run};

/// Bytes of memory that a command may take: a file that is read without a bound ends it.
const MEMORY_KIB: u64 = 3 * 1024 * 1024;

/// For machines that stand still; a command that waits for a pipe is ended by it.
const PATIENCE: Duration = Duration::from_secs(120);

const COMMANDS: [&[&str]; 6] = [
    &["tasks", "list"],
    &["config", "check"],
    &["config", "trust"],
    &["doctor"],
    &["serve", "-m", "demo"],
    &["-m", "demo", "hello"],
];

/// Runs a command with a bound of memory and of time.
#[track_caller]
fn bounded(home: &Home, args: &[&str]) -> Run {
    let command = home.command(args);
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", "ulimit -v \"$0\" && exec \"$@\""])
        .arg(MEMORY_KIB.to_string())
        .arg(command.get_program())
        .args(args)
        .env_clear()
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .current_dir(command.get_current_dir().unwrap())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = shell.spawn().unwrap();
    let process = child.id();
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(child.wait_with_output().unwrap()));
    match ended.recv_timeout(PATIENCE) {
        Ok(output) => Run::from(output),
        Err(_) => {
            Command::new("kill")
                .args(["-9", &process.to_string()])
                .status()
                .unwrap();
            panic!("{args:?} does not end");
        }
    }
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn huge(path: &Path) {
    std::fs::write(path, "# a comment\n").unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(300 * 1024 * 1024).unwrap();
}

fn endless(path: &Path) {
    symlink("/dev/zero", path).unwrap();
}

/// Puts something that is no file at a path.
type Make = fn(&Path);

/// Each kind of file that is none, with the reason that is told.
const KINDS: [(Make, &str); 3] = [
    (endless, "it is a device, not a file"),
    (pipe, "it is a pipe, not a file"),
    (huge, "it has more than 1048576 bytes"),
];

#[test]
fn settings_that_are_no_file_end_every_command_with_the_reason() {
    for (make, reason) in KINDS {
        let home = Home::new();
        make(&home.path("project/adjutant.toml"));
        for args in COMMANDS {
            let run = bounded(&home, args);
            assert_ne!(run.code, 0, "{run:?}");
            let said = format!("{}{}", run.stdout, run.stderr);
            assert!(
                said.contains("adjutant.toml") && said.contains(reason),
                "{args:?}: {run:#?}"
            );
        }
    }
}

#[test]
fn variables_and_instructions_that_are_no_file_are_not_trusted_and_not_used() {
    for (make, reason) in KINDS {
        for name in [".env", "AGENTS.md"] {
            let home = Home::new();
            make(&home.path("project").join(name));
            let trust = bounded(&home, &["config", "trust"]).ends_with(1);
            trust.says(reason);
            bounded(&home, &["-m", "demo", "hello"]).ends_with(0);
            bounded(&home, &["tasks", "list"]).ends_with(0);
        }
    }
}

#[test]
fn own_settings_notes_and_mentions_that_are_no_file_are_refused_with_the_reason() {
    for (make, reason) in KINDS {
        let home = Home::new();
        make(&home.path("config/adjutant/config.toml"));
        bounded(&home, &["tasks", "list"]).ends_with(3).says(reason);
    }
    for (make, reason) in [KINDS[0], KINDS[1]] {
        let home = Home::new();
        make(&home.path("project/notes.txt"));
        bounded(&home, &["-m", "demo", "show @notes.txt"])
            .ends_with(2)
            .says(reason);
    }
    let home = Home::new();
    endless(&home.path("project/notes.txt"));
    bounded(&home, &["-m", "demo", "show it", "-f", "notes.txt"])
        .ends_with(2)
        .says("is longer than 1048576 bytes");
}
