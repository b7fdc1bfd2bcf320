//! Smoke test of an installed program: its version, one message on the command line, and the
//! service over HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::system;
use crate::command::{Failure, output};

/// The numeric id of the unprivileged user that runs programs in another root file system.
pub(super) const USER: u32 = 65532;

/// A program installed on this machine or in another root file system.
pub(super) struct Installed {
    /// Path of the program inside the root file system.
    pub(super) program: PathBuf,
    /// The root file system to `chroot` into; `None` for this machine's own.
    pub(super) root: Option<PathBuf>,
    /// The user's home inside the root file system.
    pub(super) home: PathBuf,
}

impl Installed {
    /// Returns a program on this machine.
    pub(super) fn here(program: &Path, home: &Path) -> Self {
        Self {
            program: program.to_owned(),
            root: None,
            home: home.to_owned(),
        }
    }

    /// Returns a program in another root file system, and creates a home there that belongs to
    /// [`USER`]. Only root can do this.
    ///
    /// # Errors
    /// The home cannot be created.
    pub(super) fn inside(root: &Path, program: &str, home: &str) -> Result<Self, Failure> {
        let outside = root.join(home.trim_start_matches('/'));
        let failed = |error: std::io::Error| format!("{}: {error}", outside.display());
        std::fs::create_dir_all(&outside).map_err(failed)?;
        std::os::unix::fs::chown(&outside, Some(USER), Some(USER)).map_err(failed)?;
        Ok(Self {
            program: program.into(),
            root: Some(root.to_owned()),
            home: home.into(),
        })
    }

    /// Returns a command with an empty environment except for `HOME`.
    fn command(&self, arguments: &[&str]) -> Result<Command, Failure> {
        let mut command = match &self.root {
            None => Command::new(&self.program),
            Some(root) => {
                let mut chroot = Command::new(system::program("chroot", "coreutils")?);
                chroot
                    .arg(format!("--userspec={USER}:{USER}"))
                    .arg(root)
                    .arg(&self.program);
                chroot
            }
        };
        command
            .args(arguments)
            .env_clear()
            .env("HOME", &self.home)
            .stdin(Stdio::null());
        Ok(command)
    }

    /// Runs all checks.
    ///
    /// # Errors
    /// A check fails; the message has the program's output.
    pub(super) fn test(&self, version: &str) -> Result<(), Failure> {
        self.check_version(version)?;
        self.check_task()?;
        self.check_service()
    }

    /// Checks the output of `--version`.
    ///
    /// # Errors
    /// The program reports another version.
    pub(super) fn check_version(&self, version: &str) -> Result<(), Failure> {
        let answer = output(&mut self.command(&["--version"])?)?;
        println!("    {}", answer.trim());
        if answer.trim() == format!("adjutant {version}") {
            Ok(())
        } else {
            Err(format!("not version {version}: {answer:?}"))
        }
    }

    /// Adds a task with the scripted model `demo`, and checks that it is listed.
    fn check_task(&self) -> Result<(), Failure> {
        let answer = output(&mut self.command(&["-m", "demo", "add buy milk"])?)?;
        println!("    {}", answer.trim());
        let tasks = output(&mut self.command(&["tasks", "list", "--json"])?)?;
        if tasks.contains("buy milk") {
            Ok(())
        } else {
            Err(format!("the task was not added: {tasks}"))
        }
    }

    /// Starts the service on a loopback port, checks `/healthz` and one turn, and stops it with
    /// SIGTERM.
    fn check_service(&self) -> Result<(), Failure> {
        let mut command =
            self.command(&["serve", "--json", "-m", "demo", "--bind", "127.0.0.1:0"])?;
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut service = Service(
            command
                .spawn()
                .map_err(|error| format!("the service: {error}"))?,
        );
        // The service is stopped even if a request has failed, so that both results are known.
        let checked = service.check_requests();
        let stopped = service.stop();
        checked.and(stopped)
    }
}

/// A running service, killed on drop.
struct Service(Child);

impl Service {
    fn check_requests(&mut self) -> Result<(), Failure> {
        let stdout = self.0.stdout.take().ok_or("the service has no output")?;
        let mut line = String::new();
        BufReader::new(stdout)
            .read_line(&mut line)
            .map_err(|error| format!("the service: {error}"))?;
        let Ok(ready) = serde_json::from_str::<Value>(&line) else {
            return Err(format!(
                "the service did not start: {line:?} {}",
                self.kill_and_read_stderr()
            ));
        };
        let text = |key: &str| ready[key].as_str().unwrap_or_default().to_owned();
        let address = text("url").trim_start_matches("http://").to_owned();
        let token = text("token");
        let health = request(&address, "GET", "/healthz", &token, "")?;
        println!("    GET /healthz: {}", health.trim());
        let answer = request(
            &address,
            "POST",
            "/v1/chat",
            &token,
            r#"{"message": "add buy bread"}"#,
        )?;
        println!("    POST /v1/chat: {}", answer.trim());
        if answer.contains("buy bread") {
            Ok(())
        } else {
            Err("the turn did not add the task".to_owned())
        }
    }

    /// Stops the service with SIGTERM, as a service manager does, and waits for its exit code.
    fn stop(mut self) -> Result<(), Failure> {
        let failed = |error: std::io::Error| format!("the service: {error}");
        if let Some(status) = self.0.try_wait().map_err(failed)? {
            return Err(format!(
                "the service ended by itself: {status} {}",
                self.kill_and_read_stderr()
            ));
        }
        output(
            system::command("kill", "procps")?
                .arg("-TERM")
                .arg(self.0.id().to_string()),
        )?;
        // The service limits the wait itself: running turns get at most half a minute.
        let status = self.0.wait().map_err(failed)?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("after SIGTERM, the service ended with {status}"))
        }
    }

    /// Kills the service and returns its standard error.
    fn kill_and_read_stderr(&mut self) -> String {
        // Killing fails only if the service has already ended.
        let _ = self.0.kill();
        let mut text = String::new();
        if let Some(mut error) = self.0.stderr.take() {
            // This text only completes another error message, so a failed read is not worth
            // reporting.
            let _ = error.read_to_string(&mut text);
        }
        text
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Both fail only if [`Self::stop`] has already ended the service.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends one HTTP request on a new connection, and returns the body of the answer.
///
/// # Errors
/// The connection fails, or the status is not 200.
fn request(
    address: &str,
    method: &str,
    path: &str,
    token: &str,
    body: &str,
) -> Result<String, Failure> {
    let failed = |error: std::io::Error| format!("{method} {path}: {error}");
    let mut stream = TcpStream::connect(address).map_err(failed)?;
    stream
        // A service that hangs must fail the step instead of blocking it.
        .set_read_timeout(Some(Duration::from_secs(60)))
        .map_err(failed)?;
    let length = body.len();
    // `Connection: close` makes the service end the connection, which ends the read below.
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(failed)?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .unwrap_or((answer.as_str(), ""));
    if head.starts_with("HTTP/1.1 200 ") {
        Ok(body.to_owned())
    } else {
        Err(format!(
            "{method} {path}: {}\n{body}",
            head.lines().next().unwrap_or("no answer")
        ))
    }
}
