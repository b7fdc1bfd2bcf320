//! Restate's server: its own data, its own ports, gone afterwards.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// The server under test. Its licence (BSL) allows running it for one's own services, but not
/// bundling it here.
const PACKAGE: &str = "@restatedev/restate-server";
const VERSION: &str = "1.7.12";

/// Between two looks at what happens by itself.
const LOOK: Duration = Duration::from_millis(20);

/// A running server.
pub(crate) struct Restate {
    program: PathBuf,
    folder: TempDir,
    /// The port where calls are made.
    pub(crate) ingress: u16,
    admin: u16,
    process: Option<Child>,
}

impl Restate {
    pub(crate) fn start() -> Self {
        Self::start_with("", |_| {})
    }

    /// The same with another setting and what it needs in the server's folder.
    pub(crate) fn start_with(setting: &str, prepare: impl FnOnce(&Path)) -> Self {
        let (ingress, admin, node) = (free_port(), free_port(), free_port());
        let folder = TempDir::new().unwrap();
        prepare(folder.path());
        let config = format!(
            r#"
            node-name = "test"
            bind-address = "127.0.0.1:{node}"
            advertised-address = "http://127.0.0.1:{node}/"
            listen-mode = "tcp"
            default-num-partitions = 2
            rocksdb-total-memory-size = "128 MiB"
            disable-telemetry = true
            log-format = "compact"
            log-disable-ansi-codes = true
            [ingress]
            bind-address = "127.0.0.1:{ingress}"
            [admin]
            bind-address = "127.0.0.1:{admin}"
            disable-web-ui = true
            {setting}
            "#
        );
        fs::write(folder.path().join("restate.toml"), config).unwrap();
        let mut restate = Self {
            program: program(),
            folder,
            ingress,
            admin,
            process: None,
        };
        restate.run();
        restate
    }

    /// Starts the server's process and waits until it listens.
    pub(crate) fn run(&mut self) {
        let mut process = Command::new(&self.program)
            .arg("--config-file")
            .arg(self.folder.path().join("restate.toml"))
            .arg("--base-dir")
            .arg(self.folder.path().join("data"))
            .arg("--no-logo")
            .current_dir(self.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut words = BufReader::new(process.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap);
        let mut missing = vec!["Ingress HTTP listening", "server_name=admin-api-server"];
        let mut said = String::new();
        while !missing.is_empty() {
            let line = words
                .next()
                .unwrap_or_else(|| panic!("Restate ended before it was ready: {said}"));
            missing.retain(|mark| !line.contains(mark));
            said += &line;
        }
        // Its words are read on, so that it never waits for a reader.
        std::thread::spawn(move || words.for_each(drop));
        self.process = Some(process);
    }

    /// SIGKILL.
    pub(crate) fn crash(&mut self) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// Its address for a worker that listens on this port.
    pub(crate) fn address(&self, worker: u16) -> String {
        format!(
            "restate://127.0.0.1:{}?admin=127.0.0.1:{}&listen=127.0.0.1:{worker}",
            self.ingress, self.admin
        )
    }

    /// Waits until it knows a worker.
    pub(crate) fn wait_for_worker(&self) {
        while self.ask("GET /services/Conversation", "").0 != 200 {
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until so many calls were made in the name of an input, and all have ended. An answer
    /// is there before Restate knows that.
    pub(crate) fn wait_for_ends(&self, calls: usize) {
        loop {
            let found = self.calls();
            assert!(found.len() <= calls, "{found:?}");
            if found.len() == calls && found.iter().all(|status| status == "completed") {
                return;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Returns the states of the calls made with the ids of inputs, completed ones included.
    pub(crate) fn calls(&self) -> Vec<String> {
        let query = "select status from sys_invocation where idempotency_key is not null and \
                     idempotency_key not like 'again-%'";
        let (status, answer) = self.ask("POST /query", &json!({ "query": query }).to_string());
        assert_eq!(status, 200, "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let rows = answer["rows"].as_array().unwrap().iter();
        rows.map(|row| row["status"].as_str().unwrap().to_owned())
            .collect()
    }

    pub(crate) fn ask(&self, what: &str, body: &str) -> (u16, String) {
        let mut connection = TcpStream::connect(("127.0.0.1", self.admin)).unwrap();
        let length = body.len();
        let head = "Host: restate\r\nAccept: application/json\r\nContent-Type: application/json";
        // The older version: no answer in chunks.
        write!(
            connection,
            "{what} HTTP/1.0\r\n{head}\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (
            head.split_whitespace().nth(1).unwrap().parse().unwrap(),
            body.to_owned(),
        )
    }
}

impl Drop for Restate {
    fn drop(&mut self) {
        self.crash();
    }
}

/// A port nobody listens on, and below those that the system gives to connections, so that none
/// takes it before a server does.
pub(crate) fn free_port() -> u16 {
    const PORTS: std::ops::Range<u32> = 20_000..32_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Each process of the tests begins somewhere else.
    let begin = std::process::id().wrapping_mul(97);
    loop {
        let number = begin.wrapping_add(NEXT.fetch_add(1, Ordering::SeqCst));
        let port = u16::try_from(PORTS.start + number % (PORTS.end - PORTS.start)).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// The server's program, from its npm package, kept in the target folder.
fn program() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("restate-server-{VERSION}"));
    fs::create_dir_all(&folder).unwrap();
    // One process gets it, the others wait.
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    if let Some(program) = installed(&folder) {
        return program;
    }
    let package = format!("{PACKAGE}@{VERSION}");
    let npm = Command::new("npm")
        .args([
            "install",
            "--no-save",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--prefix",
        ])
        .arg(&folder)
        .arg(&package)
        .output();
    let why = match npm {
        Ok(output) if output.status.success() => {
            "the package has no program for this machine".to_owned()
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => format!("npm: {error}"),
    };
    installed(&folder).unwrap_or_else(|| {
        panic!("Restate's server is needed for this test (npm install {package}): {why}")
    })
}

/// The package brings one package for each kind of machine, of which npm takes the one that fits.
fn installed(folder: &Path) -> Option<PathBuf> {
    let packages = fs::read_dir(folder.join("node_modules/@restatedev"))
        .ok()?
        .flatten();
    packages
        .map(|package| package.path().join("bin/restate-server"))
        .find(|program| program.is_file())
}
