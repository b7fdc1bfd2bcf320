//! The store in PostgreSQL behind PgBouncer in transaction mode: every transaction may run on
//! another of its two connections to the server, and nothing of a session outlives one.

use std::cell::Cell;
use std::path::Path;
use std::process::{Child, Stdio};

use adjutant_core::LogContent;
use adjutant_store::{Maintenance as _, contract, postgres::Store};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use crate::leaving::errors_beside_leavers;
use crate::not_run::not_run;
use crate::server::{Server, program, wait_for_line};

/// Only the name of its socket.
const PORT: u16 = 6432;

struct Pooler<'a> {
    server: &'a Server,
    process: Child,
}

impl<'a> Pooler<'a> {
    /// Starts PgBouncer in front of a server. `None`, with a note, if it is not installed (Debian:
    /// `apt-get install pgbouncer`).
    fn start(server: &'a Server) -> Option<Self> {
        let options: PgConnectOptions = server.url("postgres").parse().unwrap();
        let folder = options.get_socket().unwrap();
        let settings = format!(
            "[databases]\n* = host={0} port=5432 user=postgres\n\
             [pgbouncer]\nlisten_addr =\nunix_socket_dir = {0}\nlisten_port = {PORT}\nauth_type = any\n\
             pool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 500\nmax_prepared_statements = 0\n",
            folder.display()
        );
        // Debian's place for it is on the path of root only.
        let debian = "/usr/sbin/pgbouncer";
        let name = if Path::new(debian).is_file() {
            debian
        } else {
            "pgbouncer"
        };
        let asked = program(name).arg("--version").output();
        let version = asked.map_or_else(
            |_| String::new(),
            |output| String::from_utf8_lossy(&output.stdout).into_owned(),
        );
        if !version.contains("PgBouncer") {
            not_run(
                env!("CARGO_PKG_NAME"),
                "needs PgBouncer (Debian: apt-get install pgbouncer)",
            );
            return None;
        }
        // Versions before 1.21 do not know named statements in this mode at all, and later ones
        // only if they are told to.
        let settings = match minor(&version) {
            Some(21..) => settings,
            _ => settings.replace("max_prepared_statements = 0\n", ""),
        };
        let file = folder.join("pgbouncer.ini");
        std::fs::write(&file, settings).unwrap();
        let mut process = program(name)
            .arg(&file)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_for_line(&mut process, "process up");
        Some(Self { server, process })
    }

    /// Counts the channels that each of the two sessions of the pooler listens to. Their
    /// notifications could reach any client.
    async fn listening_sessions(&self, database: &str) -> [i64; 2] {
        let url = format!("{}&port={PORT}", self.server.url(database));
        let options: PgConnectOptions = url.parse().unwrap();
        let options = options.statement_cache_capacity(0).extra_float_digits(None);
        let pool = PgPoolOptions::new()
            .max_connections(2)
            .connect_with(options)
            .await
            .unwrap();
        // Both at once, so that each has its own.
        let (mut one, mut two) = (pool.begin().await.unwrap(), pool.begin().await.unwrap());
        let mut counts = [0; 2];
        for (transaction, count) in [&mut one, &mut two].into_iter().zip(&mut counts) {
            let channels = sqlx::query_scalar("select count(*) from pg_listening_channels()")
                .persistent(false);
            *count = channels.fetch_one(&mut **transaction).await.unwrap();
        }
        counts
    }

    /// An empty database; its address through the pooler.
    async fn create_database(&self, name: &str) -> String {
        format!("{}&port={PORT}", self.server.create_database(name).await)
    }
}

impl Drop for Pooler<'_> {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// The second number of `PgBouncer 1.18.0`.
fn minor(version: &str) -> Option<u32> {
    version
        .split_whitespace()
        .nth(1)?
        .split('.')
        .nth(1)?
        .parse()
        .ok()
}

#[tokio::test]
async fn it_keeps_the_contracts() {
    let Some(server) = Server::start() else {
        return;
    };
    let Some(pooler) = Pooler::start(&server) else {
        return;
    };
    let number = Cell::new(0);
    let fresh = async || {
        number.set(number.get() + 1);
        Store::connect(
            &pooler.create_database(&format!("d{}", number.get())).await,
            4,
        )
        .await
        .unwrap()
    };
    contract::task_store(&fresh).await;
    contract::journal(&fresh).await;
    contract::logs_have_the_content_that_the_store_allows(
        &fresh().await.with_log_content(LogContent::Redacted),
    )
    .await;
    contract::token_store(&fresh).await;
    contract::budget_store(&fresh).await;
    contract::memory_ledger(&fresh).await;
    contract::fact_store(&fresh).await;
    contract::user_setting_store(&fresh).await;
    contract::task_index(&fresh).await;
    contract::past_conversations(&fresh).await;
    contract::what_is_old_goes_and_what_is_pending_never(&fresh().await).await;
    let store = fresh().await;
    assert!(
        store
            .status()
            .await
            .unwrap()
            .product
            .starts_with("PostgreSQL 1")
    );
    assert_eq!(store.check().await.unwrap(), []);
}

#[tokio::test]
async fn many_clients_of_several_processes_share_two_connections() {
    let Some(server) = Server::start() else {
        return;
    };
    let Some(pooler) = Pooler::start(&server) else {
        return;
    };
    let url = pooler.create_database("shared").await;
    let open = || Store::connect(&url, 20);
    let (a, b) = tokio::join!(open(), open());
    let (a, b) = (a.unwrap(), b.unwrap());
    let errors = tokio::join!(errors_beside_leavers(a.clone()), errors_beside_leavers(b));
    assert_eq!(errors, (Vec::new(), Vec::new()));
    assert_eq!(a.check().await.unwrap(), []);
}

#[tokio::test]
async fn writes_of_other_processes_are_found_by_polling() {
    let Some(server) = Server::start() else {
        return;
    };
    let Some(pooler) = Pooler::start(&server) else {
        return;
    };
    let url = pooler.create_database("told").await;
    let (one, two) = (
        Store::connect(&url, 2).await.unwrap(),
        Store::connect(&url, 2).await.unwrap(),
    );
    assert!(!one.receives_notifications().await);
    assert_eq!(pooler.listening_sessions("told").await, [0, 0]);
    contract::changes_are_told_to_other_processes(&one, &two).await;
    let direct = Store::connect_and_listen(&url, &server.url("told"), 2)
        .await
        .unwrap();
    assert!(direct.receives_notifications().await);
    let other = Store::connect_and_listen(&url, &server.url("told"), 2)
        .await
        .unwrap();
    contract::relayed_messages_reach_other_processes(&direct, &other).await;
}
