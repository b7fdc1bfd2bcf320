//! A standby of a PostgreSQL server for a test, and an address that leads from one to the other.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use tempfile::TempDir;

use crate::server::{Server, program, wait_for_line};

/// Time in which a server must have done what it was told.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A server that follows another one.
pub(crate) struct Standby {
    folder: TempDir,
    process: Child,
}

impl Standby {
    /// Copies a primary and follows it.
    fn of(primary: &Server) -> Self {
        let folder = TempDir::new().unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(folder.path(), open).unwrap();
        let data = folder.path().join("data");
        let copied = program("pg_basebackup")
            .args(["--no-sync", "--checkpoint=fast", "--write-recovery-conf"])
            .args(["--username=postgres", "--host"])
            .arg(socket(&primary.url("postgres")))
            .arg("--pgdata")
            .arg(&data)
            .status()
            .unwrap();
        assert!(copied.success());
        let mut process = program("postgres")
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(folder.path())
            .args(["-c", "listen_addresses=", "-c", "fsync=off"])
            .args(["-c", "max_connections=300", "-c", "log_min_messages=log"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_for_line(&mut process, "ready to accept");
        Self { folder, process }
    }

    fn url(&self, database: &str) -> String {
        let folder = self.folder.path().display();
        format!("postgres:///{database}?host={folder}&user=postgres")
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        let pid = self.process.id().to_string();
        let _ = Command::new("kill").args(["-QUIT", &pid]).status();
        let _ = self.process.wait();
    }
}

fn socket(url: &str) -> PathBuf {
    let options: PgConnectOptions = url.parse().unwrap();
    options.get_socket().unwrap().clone()
}

async fn connect(url: &str) -> PgConnection {
    let options: PgConnectOptions = url.parse().unwrap();
    options.connect().await.unwrap()
}

/// Waits until a query returns true.
async fn wait_for(connection: &mut PgConnection, query: &'static str) {
    let until = Instant::now() + PATIENCE;
    while !sqlx::query_scalar::<_, bool>(query)
        .fetch_one(&mut *connection)
        .await
        .unwrap()
    {
        assert!(Instant::now() < until, "never so: {query}");
        tokio::task::yield_now().await;
    }
}

/// A primary with a standby, and an address that leads to the one of them that is in use.
pub(crate) struct Pair {
    primary: Server,
    standby: Standby,
    folder: TempDir,
    at_primary: PgConnection,
    at_standby: PgConnection,
}

/// True once a standby has all that the primary has committed.
const CAUGHT_UP: &str =
    "SELECT count(*) = 1 FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_lsn()";

impl Pair {
    /// Starts both, with an empty database of the name `adjutant`.
    /// `None` without PostgreSQL on this machine.
    pub(crate) async fn start() -> Option<Self> {
        let primary = Server::start()?;
        primary.create_database("adjutant").await;
        let standby = Standby::of(&primary);
        let folder = TempDir::new().unwrap();
        let link = folder.path().join("server");
        std::os::unix::fs::symlink(socket(&primary.url("postgres")), link).unwrap();
        let at_primary = connect(&primary.url("adjutant")).await;
        let at_standby = connect(&standby.url("postgres")).await;
        Some(Self {
            primary,
            standby,
            folder,
            at_primary,
            at_standby,
        })
    }

    fn link(&self) -> PathBuf {
        self.folder.path().join("server")
    }

    /// Returns the address that stays the same.
    pub(crate) fn url(&self) -> String {
        format!(
            "postgres:///adjutant?host={}&user=postgres",
            self.link().display()
        )
    }

    /// Waits until the standby has all that was committed.
    pub(crate) async fn wait_until_caught_up(&mut self) {
        wait_for(&mut self.at_primary, CAUGHT_UP).await;
    }

    /// Cuts the standby off: it receives nothing more.
    pub(crate) async fn cut_off(&mut self) {
        self.wait_until_caught_up().await;
        for statement in [
            "ALTER SYSTEM SET primary_conninfo = ''",
            "SELECT pg_reload_conf()",
        ] {
            sqlx::raw_sql(statement)
                .execute(&mut self.at_standby)
                .await
                .unwrap();
        }
        wait_for(
            &mut self.at_primary,
            "SELECT count(*) = 0 FROM pg_stat_replication",
        )
        .await;
    }

    /// Kills the primary, and puts the standby in its place.
    pub(crate) async fn fail_over(&mut self) {
        self.primary.crash();
        sqlx::query("SELECT pg_promote()")
            .execute(&mut self.at_standby)
            .await
            .unwrap();
        std::fs::remove_file(self.link()).unwrap();
        std::os::unix::fs::symlink(self.standby.folder.path(), self.link()).unwrap();
    }
}
