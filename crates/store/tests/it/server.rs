//! A PostgreSQL server for a test: its own data, its own socket, no port, gone afterwards.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use sqlx::{ConnectOptions as _, Connection as _};
use tempfile::TempDir;

use crate::not_run::not_run;

/// Waits until a process writes a line with these words to its standard error.
pub(crate) fn wait_for_line(process: &mut Child, words: &str) {
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let found = lines
        .by_ref()
        .map(Result::unwrap)
        .any(|line| line.contains(words));
    assert!(found, "the process ended before it wrote: {words}");
    // Its output is read, so that it never blocks.
    std::thread::spawn(move || lines.for_each(drop));
}

/// A running server.
pub(crate) struct Server {
    folder: TempDir,
    process: Option<Child>,
    /// True if commits survive a power failure.
    durable: bool,
}

impl Server {
    /// Starts a server. Returns `None`, with a note for the list of tests that did not run, if
    /// PostgreSQL's programs are missing.
    ///
    /// Without `fsync`: a test has no power failures, and a killed process leaves its writes with
    /// the system.
    pub(crate) fn start() -> Option<Self> {
        if program("initdb")
            .arg("--version")
            .output()
            .is_ok_and(|asked| asked.status.success())
        {
            return Some(Self::start_as(false));
        }
        not_run(
            env!("CARGO_PKG_NAME"),
            "it needs PostgreSQL (Debian: apt-get install postgresql)",
        );
        None
    }

    /// Starts a server, with `fsync` if it is to be `durable`. Needs PostgreSQL's programs; if run
    /// by root, they run as the user `postgres`, because the server refuses root.
    pub(crate) fn start_as(durable: bool) -> Self {
        let folder = TempDir::new().unwrap();
        #[cfg(unix)]
        std::fs::set_permissions(
            folder.path(),
            std::os::unix::fs::PermissionsExt::from_mode(0o777),
        )
        .unwrap();
        let mut server = Self {
            folder,
            process: None,
            durable,
        };
        let made = program("initdb")
            .args([
                "--no-sync",
                "--auth=trust",
                "--username=postgres",
                "--encoding=UTF8",
                "--locale=C",
                "-D",
            ])
            .arg(server.data())
            .stdout(Stdio::null())
            .status();
        let made = made.unwrap_or_else(|error| {
            panic!("PostgreSQL is needed for this test (Debian: apt-get install postgresql): initdb: {error}")
        });
        assert!(made.success());
        server.run();
        server
    }

    /// Starts the server's process and waits until it takes connections.
    pub(crate) fn run(&mut self) {
        let mut process = program("postgres")
            .arg("-D")
            .arg(self.data())
            .arg("-k")
            .arg(self.folder.path())
            // A test has many databases, and a pool for each.
            .args([
                "-c",
                "listen_addresses=",
                "-c",
                "log_min_messages=log",
                "-c",
                "max_connections=300",
                "-c",
            ])
            .arg(if self.durable {
                "fsync=on"
            } else {
                "fsync=off"
            })
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_for_line(&mut process, "ready to accept connections");
        self.process = Some(process);
    }

    /// Kills the server, as a crash would.
    pub(crate) fn crash(&mut self) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        Command::new("kill")
            .arg("-QUIT")
            .arg(process.id().to_string())
            .status()
            .unwrap();
        process.wait().unwrap();
    }

    /// The address of one of its databases.
    pub(crate) fn url(&self, database: &str) -> String {
        format!(
            "postgres:///{database}?host={}&user=postgres",
            self.folder.path().display()
        )
    }

    /// An empty database; its address.
    pub(crate) async fn create_database(&self, name: &str) -> String {
        let options: sqlx::postgres::PgConnectOptions = self.url("postgres").parse().unwrap();
        let mut connection = options.connect().await.unwrap();
        let create = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"));
        sqlx::query(create).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        self.url(name)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.crash();
    }
}

/// Returns one of PostgreSQL's programs, or another that refuses root: from the path, or where
/// Debian keeps them.
pub(crate) fn program(name: &str) -> Command {
    let debian = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut places: Vec<PathBuf> = debian
        .map(|version| version.path().join("bin").join(name))
        .collect();
    places.sort();
    let place = places
        .pop()
        .filter(|place| place.is_file())
        .unwrap_or_else(|| Path::new(name).to_owned());
    let me = Command::new("id").arg("-u").output().unwrap().stdout;
    if me.trim_ascii() != b"0" {
        return Command::new(place);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=postgres", "--regid=postgres", "--clear-groups"])
        .arg(place);
    command
}
