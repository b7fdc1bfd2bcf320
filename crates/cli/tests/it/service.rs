//! A running `adjutant serve`, and a client of few words.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::harness::Home;

/// A process that serves. Killed when it is dropped.
pub(crate) struct Serving {
    child: Child,
    /// The service's announcement.
    pub(crate) announced: Value,
    pub(crate) address: String,
}

/// The response to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Home {
    /// Returns the command `serve --json` with a model, on a free port.
    pub(crate) fn serve_command(&self, model: &str) -> Command {
        self.command(&["serve", "--json", "-m", model, "--bind", "127.0.0.1:0"])
    }
}

impl Serving {
    /// Starts `serve --json` and waits until it listens.
    pub(crate) fn start(command: &mut Command) -> Self {
        let (serving, mut words) = Self::start_with_stderr(command);
        // Its words are read on, so that it never waits for a reader.
        std::thread::spawn(move || std::io::copy(&mut words, &mut std::io::sink()));
        serving
    }

    /// The same, with its standard error.
    pub(crate) fn start_with_stderr(command: &mut Command) -> (Self, ChildStderr) {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let announced: Value = serde_json::from_str(&line).unwrap_or_else(|error| {
            let mut words = String::new();
            child
                .stderr
                .take()
                .unwrap()
                .read_to_string(&mut words)
                .unwrap();
            panic!("it does not serve ({error}): {line}{words}")
        });
        let address = announced["url"]
            .as_str()
            .unwrap()
            .strip_prefix("http://")
            .unwrap()
            .to_owned();
        let words = child.stderr.take().unwrap();
        (
            Self {
                child,
                announced,
                address,
            },
            words,
        )
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The token of whoever started it.
    pub(crate) fn token(&self) -> &str {
        self.announced["token"].as_str().unwrap()
    }

    /// `POST /v1/chat`.
    pub(crate) fn chat(&self, token: &str, body: &Value) -> Answer {
        chat(&self.address, token, None, body).unwrap()
    }

    pub(crate) fn signal(&self, name: &str) {
        assert!(
            Command::new("kill")
                .arg(name)
                .arg(self.child.id().to_string())
                .status()
                .unwrap()
                .success()
        );
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Any answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    /// Empty where the body is no text.
    pub(crate) text: String,
}

impl Reply {
    /// The value of a header; the last, if there are several.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let is_it = |line: &&str| {
            line.split(':')
                .next()
                .is_some_and(|it| it.eq_ignore_ascii_case(name))
        };
        self.head
            .lines()
            .rfind(is_it)?
            .split_once(':')
            .map(|(_, value)| value.trim())
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// It is a problem document of this code for this path, with everything that one has.
    #[track_caller]
    pub(crate) fn is_problem(&self, code: &str, path: &str) {
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json"),
            "{self:?}"
        );
        let problem = self.json();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(
            problem["type"],
            format!("urn:adjutant:error:{code}"),
            "{problem}"
        );
        assert_eq!(problem["status"], self.status, "{problem}");
        assert_eq!(problem["instance"], path, "{problem}");
        assert_eq!(
            problem["request_id"].as_str(),
            self.header("x-request-id"),
            "{problem}"
        );
        assert!(
            problem["request_id"].is_string() && problem["title"].is_string(),
            "{problem}"
        );
        assert!(problem["detail"].is_string(), "{problem}");
    }
}

/// One request, and the whole answer to it.
pub(crate) fn send(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> std::io::Result<Reply> {
    let broken = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n",
        body.len()
    );
    if !headers.iter().any(|(name, _)| *name == "Host") {
        head += &format!("Host: {address}\r\n");
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    let mut connection = TcpStream::connect(address)?;
    connection.set_read_timeout(Some(Duration::from_secs(180)))?;
    connection.write_all(format!("{head}\r\n").as_bytes())?;
    // It may have been refused by its head alone.
    let _ = connection.write_all(body.as_bytes());
    let mut answer = Vec::new();
    let read = connection.read_to_end(&mut answer);
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let end = match (end, read) {
        (Some(end), _) => end,
        (None, Err(error)) => return Err(error),
        (None, Ok(_)) => return Err(broken()),
    };
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .ok_or_else(broken)?;
    let mut body = answer.split_off(end + 4);
    if head
        .to_ascii_lowercase()
        .contains("\r\ntransfer-encoding: chunked")
    {
        body = dechunked(&body).ok_or_else(broken)?;
    }
    Ok(Reply {
        status,
        head,
        text: String::from_utf8(body).unwrap_or_default(),
    })
}

/// A body without the marks of its chunks. `None`: it is not whole.
fn dechunked(mut body: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = body.windows(2).position(|two| two == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&body[..end]).ok()?, 16).ok()?;
        let chunk = body.get(end + 2..end + 2 + size)?;
        if size == 0 {
            return Some(whole);
        }
        whole.extend_from_slice(chunk);
        body = body.get(end + 4 + size..)?;
    }
}

/// One `POST /v1/chat`. An error: no whole answer came, and nobody knows whether it was taken.
pub(crate) fn chat(
    address: &str,
    token: &str,
    name: Option<&str>,
    body: &Value,
) -> std::io::Result<Answer> {
    let broken = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
    let body = body.to_string();
    let name = name
        .map(|name| format!("Idempotency-Key: {name}\r\n"))
        .unwrap_or_default();
    let head = format!(
        "POST /v1/chat HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n{name}\r\n",
        body.len()
    );
    let mut connection = TcpStream::connect(address)?;
    connection.set_read_timeout(Some(Duration::from_secs(180)))?;
    connection.write_all(format!("{head}{body}").as_bytes())?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(broken)?;
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .ok_or_else(broken)?;
    Ok(Answer {
        status,
        body: serde_json::from_str(body).map_err(|_| broken())?,
    })
}
