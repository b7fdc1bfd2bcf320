//! Data that may be read and not written: a disk mounted so, or the files of somebody else.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Home, Run, arg};
use crate::not_run::not_run;
use crate::service::Serving;

/// Permissions do not bind root, so its tests are run for somebody else.
const NOBODY: u32 = 65534;

/// A home whose data may only be read.
struct ReadOnly {
    home: Home,
    program: PathBuf,
    as_nobody: bool,
}

impl ReadOnly {
    /// Takes the right to write away. `None`: there is nobody here whom permissions bind.
    fn new(home: Home) -> Option<Self> {
        let root = home.path("");
        for folder in [root.clone(), home.path("project"), home.path("home")] {
            fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
        }
        // Whoever runs the tests may have built the binary where nobody else can reach it.
        let program = home.path("adjutant");
        fs::hard_link(env!("CARGO_BIN_EXE_adjutant"), &program)
            .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_adjutant"), &program).map(drop))
            .unwrap();
        set_modes(&home.path("data"), 0o555, 0o444);
        let unbound = fs::write(home.path("data/probe"), "").is_ok();
        let _ = fs::remove_file(home.path("data/probe"));
        let there = Self {
            home,
            program,
            as_nobody: unbound,
        };
        match there.command(&["--version"]).output() {
            Ok(output) if output.status.success() => Some(there),
            found => {
                not_run(
                    "cli",
                    &format!("no process that permissions bind can be started: {found:?}"),
                );
                None
            }
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.command_of(&self.program, args);
        if self.as_nobody {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    fn run(&self, args: &[&str]) -> Run {
        Run::of(&mut self.command(args))
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        set_modes(&self.home.path("data"), 0o755, 0o644);
    }
}

fn set_modes(folder: &Path, of_folders: u32, of_files: u32) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            set_modes(&path, of_folders, of_files);
        } else {
            fs::set_permissions(path, Permissions::from_mode(of_files)).unwrap();
        }
    }
    fs::set_permissions(folder, Permissions::from_mode(of_folders)).unwrap();
}

/// Every file of the data with its bytes.
fn files(home: &Home) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = home.path("data/adjutant");
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

/// A home with a task and a conversation in which something waits for a yes.
fn filled() -> Home {
    let home = Home::new();
    fill(&home);
    home
}

fn fill(home: &Home) {
    home.add_task("buy milk");
    let model = home.script(&[
        r#"{"match": "drop", "calls": [{"name": "delete_task", "args": {"task_id": "1"}}]}"#,
    ]);
    home.run(&["-m", &model, "drop it"]).ends_with(4);
}

/// The same, with all of it in the one file: as a copy is, or what a program leaves that closed it.
fn filled_and_closed() -> Home {
    let home = filled();
    let copy = home.path("copy.db");
    home.run(&["db", "backup", arg(&copy)]).succeeds();
    let folder = home.path("data/adjutant");
    fs::remove_dir_all(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    fs::rename(copy, folder.join("adjutant.db")).unwrap();
    home
}

/// The same, as a program leaves it that ended while it closed the database.
fn filled_and_half_closed() -> Home {
    let home = Home::new();
    // The last program that closes a database empties its log. One that is killed does not.
    let serving = Serving::start(&mut home.serve_command("demo"));
    fill(&home);
    drop(serving);
    let folder = home.path("data/adjutant");
    assert!(folder.join("adjutant.db-wal").metadata().unwrap().len() > 0);
    fs::remove_file(folder.join("adjutant.db-shm")).unwrap();
    home
}

#[test]
fn what_only_reads_works_where_nothing_may_be_written() {
    for home in [filled(), filled_and_closed()] {
        let before = files(&home);
        let Some(there) = ReadOnly::new(home) else {
            return;
        };
        let reading: [(&[&str], &str); 10] = [
            (&["tasks", "list"], "buy milk"),
            (&["tasks", "list", "--json"], "buy milk"),
            (&["sessions", "list"], "drop it"),
            (&["pending", "list"], "Delete “buy milk”"),
            (&["turns", "list"], "waiting, begun"),
            (&["log", "list"], "PENDING:CONFIRMATION"),
            (&["log", "stats"], "all"),
            (&["token", "list"], "There are no tokens."),
            (&["db", "status"], "1 wait for a person"),
            (&["db", "check"], "All is well."),
        ];
        for (args, words) in reading {
            let run = there.run(args).succeeds();
            assert!(
                run.stdout.contains(words),
                "{args:?}: no {words:?} in {run:#?}"
            );
        }
        assert!(files(&there.home) == before, "nothing was written");
    }
}

#[test]
fn what_writes_says_why_it_cannot_and_what_to_do() {
    for home in [filled(), filled_and_closed(), filled_and_half_closed()] {
        let Some(there) = ReadOnly::new(home) else {
            return;
        };
        let writing: [&[&str]; 4] = [
            &["tasks", "add", "buy oats"],
            &["tasks", "done", "1"],
            &["-m", "demo", "hello"],
            &["token", "create", "--user", "ana"],
        ];
        for args in writing {
            there
                .run(args)
                .ends_with(3)
                .says("the data can only be read")
                .says("adjutant.db may not be written to; make the file and its folder writable")
                .says("ADJUTANT_STORE_PATH=FILE");
        }
        let run = there
            .run(&["tasks", "add", "buy oats", "--json"])
            .ends_with(3);
        assert_eq!(run.json()["error"]["code"], "read_only");
    }
}
