//! A PostgreSQL server for the benchmark, with durable commits as in production, and its counters.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tempfile::TempDir;

use crate::{Result, usage};

/// A running server, stopped on drop.
pub(crate) struct Server {
    process: Child,
    port: u16,
    asked: PgConnection,
    number: u32,
    _folder: TempDir,
}

/// The server's counters at one point in time.
pub(crate) struct Moment {
    place: String,
    statements: i64,
    bytes: i64,
    cpu_us: i64,
}

/// The difference between two points in time.
pub(crate) struct Spent {
    /// Transactions with a commit record in the write-ahead log.
    pub(crate) commits: u64,
    /// Statements, including `BEGIN` and `COMMIT`.
    pub(crate) statements: u64,
    /// Growth of the databases in bytes, without the write-ahead log.
    pub(crate) bytes: u64,
    /// CPU time of all processes of the server, in microseconds.
    pub(crate) cpu_us: i64,
}

impl Server {
    /// Creates a database cluster and starts a server on a free loopback port.
    ///
    /// # Errors
    /// PostgreSQL's programs are missing (the message names the Debian package) or fail.
    pub(crate) async fn start() -> Result<Self> {
        let folder = TempDir::new()?;
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777))?;
        let data = folder.path().join("data");
        let made = program("initdb")?
            .args([
                "--no-sync",
                "--auth=trust",
                "--username=postgres",
                "--encoding=UTF8",
                "--locale=C",
                "-D",
            ])
            .arg(&data)
            .stdout(Stdio::null())
            .status()
            .map_err(|error| format!("initdb: {error} (Debian: apt-get install postgresql)"))?;
        if !made.success() {
            return Err(format!("initdb: {made}").into());
        }
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
            .local_addr()?
            .port();
        let mut command = program("postgres")?;
        command
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(folder.path())
            .args(["-p", &port.to_string()]);
        for setting in [
            "listen_addresses=127.0.0.1",
            "log_min_messages=log",
            "fsync=on",
            "synchronous_commit=on",
            "max_connections=100",
            "shared_preload_libraries=pg_stat_statements",
            "pg_stat_statements.track_utility=on",
            // Commits are counted in the write-ahead log, so it must keep all records of a
            // measurement.
            "max_wal_size=4GB",
            "wal_keep_size=4GB",
        ] {
            command.args(["-c", setting]);
        }
        let mut process = command.stderr(Stdio::piped()).spawn()?;
        let mut words = BufReader::new(process.stderr.take().ok_or("no stderr")?).lines();
        let ready = words
            .by_ref()
            .map_while(|line| line.ok())
            .any(|line| line.contains("ready to accept connections"));
        // The log is read to its end by a thread: a full pipe would block the server.
        std::thread::spawn(move || words.for_each(drop));
        if !ready {
            // Killing fails only if the server has ended by itself.
            let _ = process.kill();
            return Err("PostgreSQL ended before it was ready".into());
        }
        let mut asked = match PgConnection::connect(&address(port, "postgres")).await {
            Ok(connection) => connection,
            Err(error) => {
                stop(&mut process);
                return Err(error.into());
            }
        };
        for extension in ["pg_stat_statements", "pg_walinspect"] {
            let create = AssertSqlSafe(format!("CREATE EXTENSION {extension}"));
            if let Err(error) = sqlx::query(create).execute(&mut asked).await {
                stop(&mut process);
                return Err(
                    format!("{extension}: {error} (Debian: in the package postgresql)").into(),
                );
            }
        }
        Ok(Self {
            process,
            port,
            asked,
            number: 0,
            _folder: folder,
        })
    }

    /// Creates an empty database and returns its URL.
    pub(crate) async fn create(&mut self) -> Result<String> {
        self.number += 1;
        let name = format!("bench{}", self.number);
        sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .execute(&mut self.asked)
            .await?;
        Ok(address(self.port, &name))
    }

    /// Returns the current counters.
    pub(crate) async fn moment(&mut self) -> Result<Moment> {
        let query = "SELECT pg_current_wal_flush_lsn()::text, coalesce(sum(calls), 0)::bigint,
             (SELECT sum(pg_database_size(oid)) FROM pg_database WHERE datname LIKE 'bench%')::bigint
             FROM pg_stat_statements s JOIN pg_database d ON s.dbid = d.oid WHERE d.datname LIKE 'bench%'";
        let (place, statements, bytes) = sqlx::query_as(query).fetch_one(&mut self.asked).await?;
        Ok(Moment {
            place,
            statements,
            bytes,
            cpu_us: usage::tree_cpu_us(self.process.id()),
        })
    }

    /// Returns the difference to earlier counters. Commits are counted in the write-ahead log,
    /// which has a record of each.
    pub(crate) async fn since(&mut self, then: &Moment) -> Result<Spent> {
        let now = self.moment().await?;
        let query = "SELECT count(*) FROM pg_get_wal_records_info($1::pg_lsn, $2::pg_lsn)
             WHERE resource_manager = 'Transaction' AND record_type LIKE 'COMMIT%'";
        let (commits,): (i64,) = sqlx::query_as(query)
            .bind(&then.place)
            .bind(&now.place)
            .fetch_one(&mut self.asked)
            .await?;
        Ok(Spent {
            commits: commits.unsigned_abs(),
            statements: (now.statements - then.statements).unsigned_abs(),
            bytes: (now.bytes - then.bytes).max(0).unsigned_abs(),
            cpu_us: now.cpu_us - then.cpu_us,
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        stop(&mut self.process);
    }
}

/// Stops the server immediately, without a checkpoint: the data is not needed any more.
fn stop(process: &mut Child) {
    // The signal fails only if the server has ended by itself.
    let id = i32::try_from(process.id()).unwrap_or(i32::MAX);
    let _ = kill(Pid::from_raw(id), Signal::SIGQUIT);
    let _ = process.wait();
}

fn address(port: u16, database: &str) -> String {
    format!("postgres://postgres@127.0.0.1:{port}/{database}")
}

/// Returns a command for one of PostgreSQL's programs, from Debian's folder or the `PATH`. They
/// refuse to run as root, so root runs them as the user `postgres`.
fn program(name: &str) -> Result<Command> {
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
    if !nix::unistd::Uid::effective().is_root() {
        return Ok(Command::new(place));
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=postgres", "--regid=postgres", "--clear-groups"])
        .arg(place);
    Ok(command)
}
