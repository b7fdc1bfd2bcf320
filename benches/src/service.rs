//! The service `adjutant serve`, measured over HTTP: each request takes one model call.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::{Result, process, usage};

/// A running service, killed on drop.
pub(crate) struct Service {
    process: Child,
    /// URL of the chat endpoint.
    pub(crate) address: String,
    /// Bearer token of its user.
    pub(crate) token: String,
    _home: TempDir,
}

impl Service {
    /// Starts `adjutant serve` on an SQLite file of its own, or on a PostgreSQL database.
    pub(crate) fn start(adjutant: &Path, model: &str, database: Option<&str>) -> Result<Self> {
        let home = TempDir::new()?;
        let mut command = Command::new(adjutant);
        command.args([
            "serve",
            "--json",
            "--bind",
            "127.0.0.1:0",
            "-m",
            "openai-compatible/mock",
        ]);
        if let Some(database) = database {
            command.args(["--database", database]);
        }
        // All requests come from one user, so the limits per user are raised out of the way.
        command
            .current_dir(home.path())
            .env_clear()
            .env("HOME", home.path())
            .env("OPENAI_COMPATIBLE_BASE_URL", model)
            .env("ADJUTANT_SERVE_REQUESTS_PER_MINUTE", "1000000")
            .env("ADJUTANT_SERVE_TURNS_AT_ONCE", "10000");
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let announced = process.stdout.take().ok_or("no stdout").map(|output| {
            let mut line = String::new();
            // A read that fails leaves an empty line, which is reported below as a failed start.
            let _ = BufReader::new(output).read_line(&mut line);
            serde_json::from_str::<Value>(&line).unwrap_or_default()
        });
        let mut service = Self {
            process,
            address: String::new(),
            token: String::new(),
            _home: home,
        };
        let announced = announced?;
        let text = |key: &str| announced[key].as_str().map(str::to_owned);
        service.address = format!(
            "{}/v1/chat",
            text("url").ok_or("the service did not start")?
        );
        service.token = text("token").ok_or("the service has no token")?;
        Ok(service)
    }

    /// Returns the CPU time used so far, in microseconds, with a resolution of 10 ms.
    pub(crate) fn cpu_us(&self) -> i64 {
        usage::tree_cpu_us(self.process.id())
    }

    /// Returns the peak memory, in KiB.
    pub(crate) fn peak_kib(&self) -> Result<u64> {
        usage::peak_kib(&self.process.id().to_string())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Both fail only if the service has ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the path of the program: the given one, or else a release build of the workspace that
/// contains this one.
pub(crate) async fn program(named: Option<&PathBuf>) -> Result<PathBuf> {
    if let Some(named) = named {
        return Ok(std::path::absolute(named)?);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    eprintln!(
        "building {}",
        root.join("target/release/adjutant").display()
    );
    let manifest = root.join("Cargo.toml").display().to_string();
    let arguments = [
        "build",
        "--release",
        "--locked",
        "--package",
        "adjutant-cli",
        "--manifest-path",
        &manifest,
    ];
    process::output(Path::new("cargo"), &arguments).await?;
    Ok(root.join("target/release/adjutant"))
}
