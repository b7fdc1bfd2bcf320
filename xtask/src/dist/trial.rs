//! Trying what was made, as a stranger uses it: the version, one request, and the service over
//! HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::system;
use crate::command::{Failure, output};

/// Number of the user, not root, that programs run as in another root folder.
pub(super) const USER: u32 = 65532;

/// A program in its place.
pub(super) struct Installed {
    /// Path of the program, as seen from the root folder.
    pub(super) program: PathBuf,
    /// The folder that is the root for it, if not this machine's own.
    pub(super) root: Option<PathBuf>,
    /// Home of whoever runs it, as seen from the root folder.
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

    /// Returns a program in another root folder, with a home there that belongs to [`USER`]. Needs
    /// root.
    ///
    /// # Errors
    /// If the home cannot be made.
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

    /// Starts with nothing in its environment but a home.
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

    /// Tries everything.
    ///
    /// # Errors
    /// If one thing fails, with what it said.
    pub(super) fn works(&self, version: &str) -> Result<(), Failure> {
        self.says_its_version(version)?;
        self.answers()?;
        self.serves()
    }

    /// Asks for the version.
    ///
    /// # Errors
    /// If it is another.
    pub(super) fn says_its_version(&self, version: &str) -> Result<(), Failure> {
        let said = output(&mut self.command(&["--version"])?)?;
        println!("    {}", said.trim());
        if said.trim() == format!("adjutant {version}") {
            Ok(())
        } else {
            Err(format!("not version {version}: {said:?}"))
        }
    }

    /// Adds a task with canned answers in the model's place, and finds it in the list.
    fn answers(&self) -> Result<(), Failure> {
        let said = output(&mut self.command(&["-m", "demo", "add buy milk"])?)?;
        println!("    {}", said.trim());
        let tasks = output(&mut self.command(&["tasks", "list", "--json"])?)?;
        if tasks.contains("buy milk") {
            Ok(())
        } else {
            Err(format!("the task was not added: {tasks}"))
        }
    }

    /// Starts the service on a loopback address, asks whether it lives, holds one turn, and stops
    /// it.
    fn serves(&self) -> Result<(), Failure> {
        let mut command =
            self.command(&["serve", "--json", "-m", "demo", "--bind", "127.0.0.1:0"])?;
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut service = Running(
            command
                .spawn()
                .map_err(|error| format!("the service: {error}"))?,
        );
        let asked = service.ask();
        let ended = service.stop();
        asked.and(ended)
    }
}

/// A service. It ends with this.
struct Running(Child);

impl Running {
    fn ask(&mut self) -> Result<(), Failure> {
        let said = self.0.stdout.take().ok_or("the service has no output")?;
        let mut line = String::new();
        BufReader::new(said)
            .read_line(&mut line)
            .map_err(|error| format!("the service: {error}"))?;
        let Ok(ready) = serde_json::from_str::<Value>(&line) else {
            return Err(format!(
                "the service did not start: {line:?} {}",
                self.complaint()
            ));
        };
        let text = |key: &str| ready[key].as_str().unwrap_or_default().to_owned();
        let address = text("url").trim_start_matches("http://").to_owned();
        let token = text("token");
        let lives = request(&address, "GET", "/healthz", &token, "")?;
        println!("    GET /healthz: {}", lives.trim());
        let answered = request(
            &address,
            "POST",
            "/v1/chat",
            &token,
            r#"{"message": "add buy bread"}"#,
        )?;
        println!("    POST /v1/chat: {}", answered.trim());
        if answered.contains("buy bread") {
            Ok(())
        } else {
            Err("the turn did not add the task".to_owned())
        }
    }

    /// Stops it as a service manager does, and waits for it.
    fn stop(mut self) -> Result<(), Failure> {
        let failed = |error: std::io::Error| format!("the service: {error}");
        if let Some(status) = self.0.try_wait().map_err(failed)? {
            return Err(format!(
                "the service ended by itself: {status} {}",
                self.complaint()
            ));
        }
        output(
            system::command("kill", "procps")?
                .arg("-TERM")
                .arg(self.0.id().to_string()),
        )?;
        // Bounded by the service itself: what runs may end for half a minute.
        let status = self.0.wait().map_err(failed)?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("told to stop, the service ended with {status}"))
        }
    }

    /// Returns what it wrote to standard error, after it was stopped.
    fn complaint(&mut self) -> String {
        // It may have ended by itself.
        let _ = self.0.kill();
        let mut text = String::new();
        if let Some(mut error) = self.0.stderr.take() {
            // What cannot be read is no complaint.
            let _ = error.read_to_string(&mut text);
        }
        text
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended by itself if it was stopped.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends one request over a connection of its own, and returns the body of the answer.
///
/// # Errors
/// If the status is not 200.
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
        .set_read_timeout(Some(Duration::from_secs(60)))
        .map_err(failed)?;
    let length = body.len();
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
