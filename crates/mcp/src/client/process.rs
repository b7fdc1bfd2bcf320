//! A server in a child process: its words are kept apart from its messages, and it does not outlive
//! us.
//!
//! Standard output carries messages, one JSON object a line; whatever else is printed there goes to
//! the log instead of breaking the connection. Standard error goes to the log; its last lines
//! explain a start that failed.
//!
//! The child has a process group of its own: Ctrl-C at the terminal does not hit it. See
//! [`super::group`] for how it goes.

use std::collections::VecDeque;
use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use secrecy::ExposeSecret as _;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::process::{ChildStdin, Command};
use tokio::sync::watch;

use super::config::Child;
use super::group::Group;
use super::log::{LINE_BYTES_MAX, ServerLog};

/// Bytes of one message. As many as over HTTP.
const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Last lines that are kept.
const TAIL_LINES: usize = 8;
/// Between the reader of standard output and the protocol.
const PIPE_BYTES: usize = 64 * 1024;
/// How long a server may take to end by itself, and then after SIGTERM.
const PATIENCE: Duration = Duration::from_millis(1_000);
/// How long is waited for the last words of a server that has gone.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// All children of an agent, so that none is forgotten.
#[derive(Debug, Default)]
pub(super) struct Children(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    groups: Vec<Weak<Group>>,
    closed: bool,
}

impl Children {
    /// Kills those there are, and those that are just being started.
    pub(super) fn kill(&self) {
        let mut kept = lock(&self.0);
        kept.closed = true;
        kept.groups
            .drain(..)
            .filter_map(|group| group.upgrade())
            .for_each(|group| group.kill());
    }

    fn keep(&self, group: &Arc<Group>) {
        let mut kept = lock(&self.0);
        kept.groups.retain(|group| group.strong_count() > 0);
        if kept.closed {
            group.kill();
        } else {
            kept.groups.push(Arc::downgrade(group));
        }
    }
}

/// A server that runs here. Dropped, it is killed.
#[derive(Debug)]
pub(super) struct Process {
    group: Arc<Group>,
    tail: Arc<Mutex<Tail>>,
    /// How it ended, once it has.
    ended: watch::Receiver<Option<String>>,
    /// Whether everything it said on standard error was read.
    heard: watch::Receiver<bool>,
}

/// What the protocol reads and writes.
pub(super) type Pipes = (DuplexStream, ChildStdin);

impl Process {
    /// Starts it.
    ///
    /// # Errors
    /// The program is not there, or cannot be run.
    pub(super) fn spawn(
        child: &Child,
        log: &ServerLog,
        children: &Children,
    ) -> io::Result<(Self, Pipes)> {
        let mut command = Command::new(&child.program);
        command
            .args(&child.arguments)
            .env_clear()
            .envs(
                child
                    .variables
                    .iter()
                    .map(|(name, value)| (name, value.expose_secret())),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(directory) = &child.directory {
            command.current_dir(directory);
        }
        Group::prepare(&mut command);
        let mut running = command.spawn()?;
        let group = Arc::new(Group::of(&running));
        children.keep(&group);
        let missing = || io::Error::other("it has no standard input or output");
        let stdin = running.stdin.take().ok_or_else(missing)?;
        let stdout = running.stdout.take().ok_or_else(missing)?;
        let stderr = running.stderr.take().ok_or_else(missing)?;

        let tail = Arc::<Mutex<Tail>>::default();
        let words = Words {
            log: log.clone(),
            tail: tail.clone(),
        };
        let (messages, ours) = tokio::io::duplex(PIPE_BYTES);
        let noise = words.clone();
        tokio::spawn(async move { forward(stdout, messages, &noise).await });
        let (all_heard, heard) = watch::channel(false);
        tokio::spawn(async move {
            listen(stderr, &words).await;
            all_heard.send_replace(true);
        });
        let (how, ended) = watch::channel(None);
        let watched = group.clone();
        tokio::spawn(async move {
            how.send_replace(Some(watched.wait(running).await));
        });
        Ok((
            Self {
                group,
                tail,
                ended,
                heard,
            },
            (ours, stdin),
        ))
    }

    /// Waits until it has ended, and says how: `exit status: 1`.
    pub(super) async fn ended(&mut self) -> String {
        match self.ended.wait_for(Option::is_some).await {
            Ok(how) => how.clone().unwrap_or_default(),
            Err(_) => "unknown".to_owned(),
        }
    }

    /// What is known of it, for whoever has to find out why it does not work.
    pub(super) async fn explain(&mut self) -> String {
        let gone = tokio::time::timeout(LAST_WORDS, self.ended()).await.ok();
        // Its end, or a wait, may come before its last words were read.
        let _ = tokio::time::timeout(LAST_WORDS, async {
            if gone.is_some() {
                let _ = self.heard.wait_for(|heard| *heard).await;
            }
        })
        .await;
        let mut words = match gone {
            Some(how) => format!("it ended ({how})"),
            None => "it still runs".to_owned(),
        };
        let tail = lock(&self.tail);
        if tail.lines.is_empty() {
            words.push_str(" and said nothing on standard error");
        } else if let Some(reason) = &tail.reason {
            words.push_str(&format!("; it said: {reason}"));
        } else {
            let lines: Vec<&str> = tail.lines.iter().map(String::as_str).collect();
            words.push_str(&format!("; its last words: {}", lines.join(" | ")));
        }
        words
    }

    /// Waits for an end that was asked for by closing its input; then asks again, then does not
    /// ask.
    pub(super) async fn finish(mut self) {
        if tokio::time::timeout(PATIENCE, self.ended()).await.is_ok() {
            return;
        }
        self.group.ask_to_end();
        if tokio::time::timeout(PATIENCE, self.ended()).await.is_ok() {
            return;
        }
        self.group.kill();
        // A process in an uninterruptible wait cannot be waited for.
        let _ = tokio::time::timeout(PATIENCE, self.ended()).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.group.kill();
    }
}

/// The last lines that a server said.
#[derive(Debug, Default)]
struct Tail {
    lines: VecDeque<String>,
    /// The last line that names what is wrong. Behind it, many programs say where they were, at
    /// length.
    reason: Option<String>,
}

/// Where words go that are no messages.
#[derive(Clone)]
struct Words {
    log: ServerLog,
    tail: Arc<Mutex<Tail>>,
}

/// Returns whether a line says what is wrong: `Error: Cannot find module 'x'`,
/// `ModuleNotFoundError: …`, `thread 'main' panicked at …`. A place in a program, or a line of its
/// source, is none.
fn is_reason(line: &str) -> bool {
    let line = line.trim_start();
    let head = line.split(':').next().unwrap_or_default();
    let names_error = line.len() > head.len() + 1
        && !head.contains(char::is_whitespace)
        && (head.ends_with("Error")
            || head.ends_with("Exception")
            || head.eq_ignore_ascii_case("error"));
    names_error
        || ["fatal: ", "fatal error: ", "panic: "]
            .iter()
            .any(|start| line.starts_with(start))
        || line.contains(" panicked at ")
        || line.ends_with("command not found")
        || line.ends_with("No such file or directory")
}

impl Words {
    fn say(&self, line: &[u8]) {
        let Some(text) = self.log.say(&String::from_utf8_lossy(line)) else {
            return;
        };
        let mut tail = lock(&self.tail);
        if is_reason(&text) {
            tail.reason = Some(text.clone());
        }
        if tail.lines.len() == TAIL_LINES {
            tail.lines.pop_front();
        }
        tail.lines.push_back(text);
    }
}

/// Reads lines of words to the end.
async fn listen(stream: impl AsyncRead + Unpin, words: &Words) {
    let mut lines = Lines::new(stream, LINE_BYTES_MAX);
    while let Ok(Some(line)) = lines.next().await {
        words.say(line.bytes);
    }
    words.log.end();
}

/// Hands messages on; what is none is words. A message that is too large ends the connection:
/// nobody may wait for an answer that was thrown away.
async fn forward(stream: impl AsyncRead + Unpin, mut messages: DuplexStream, words: &Words) {
    let mut lines = Lines::new(stream, MESSAGE_BYTES_MAX);
    while let Ok(Some(line)) = lines.next().await {
        let message = line.bytes.trim_ascii_start().first() == Some(&b'{');
        if !message {
            words.say(line.bytes);
            continue;
        }
        if line.cut {
            words.say(
                format!("sent a message of more than {MESSAGE_BYTES_MAX} bytes; disconnected")
                    .as_bytes(),
            );
            return;
        }
        let sent = async {
            messages.write_all(line.bytes).await?;
            messages.write_all(b"\n").await
        };
        if sent.await.is_err() {
            return;
        }
    }
}

/// Lines of bounded length.
struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    bytes_max: usize,
}

struct Line<'a> {
    bytes: &'a [u8],
    /// Whether its end was thrown away.
    cut: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    fn new(stream: R, bytes_max: usize) -> Self {
        Self {
            reader: BufReader::new(stream),
            line: Vec::new(),
            bytes_max,
        }
    }

    /// The next line without its end; `None` at the end. A last line without an end counts.
    async fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        let mut cut = false;
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                return Ok((!self.line.is_empty()).then_some(Line {
                    bytes: &self.line,
                    cut,
                }));
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let piece = &available[..end.unwrap_or(available.len())];
            let room = self.bytes_max - self.line.len();
            cut |= piece.len() > room;
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            let used = end.map_or(available.len(), |end| end + 1);
            self.reader.consume(used);
            if end.is_some() {
                return Ok(Some(Line {
                    bytes: &self.line,
                    cut,
                }));
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::ServerName;
    use super::*;

    #[tokio::test]
    async fn a_flood_of_words_is_counted_and_the_last_of_them_are_kept() {
        let logged = Arc::new(Mutex::new(Vec::new()));
        let log = logged.clone();
        let words = Words {
            log: ServerLog::new(
                ServerName::new("flood").unwrap(),
                Arc::new(move |_, line: &str| lock(&log).push(line.to_owned())),
            ),
            tail: Arc::default(),
        };
        let flood: String = (0..100_000)
            .map(|number| format!("line {number}\n"))
            .collect();
        listen(flood.as_bytes(), &words).await;
        let (logged, tail) = (lock(&logged), lock(&words.tail));
        let told = logged.iter().filter(|line| line.starts_with('…'));
        let left_out: usize = told
            .map(|line| line.split(' ').nth(1).unwrap().parse::<usize>().unwrap() - 1)
            .sum();
        assert_eq!(logged.len() + left_out, 100_000);
        assert!(logged.last().unwrap().starts_with('…'), "{logged:?}");
        assert_eq!(tail.lines.back().unwrap(), "line 99999");
        assert_eq!(tail.reason, None);
    }

    #[test]
    fn a_reason_is_told_from_where_it_happened() {
        for reason in [
            "Error: Cannot find module '/srv/server.js'",
            "ModuleNotFoundError: No module named 'mcp'",
            "java.lang.IllegalStateException: no key",
            "error: unknown option '--root'",
            "fatal: not a git repository",
            "thread 'main' panicked at src/main.rs:3:5:",
            "sh: 1: uvx: command not found",
        ] {
            assert!(is_reason(reason), "{reason}");
        }
        for place in [
            "node:internal/modules/cjs/loader:1210",
            "    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)",
            "  throw err;",
            "  code: 'MODULE_NOT_FOUND',",
            "Node.js v20.20.2",
            "Traceback (most recent call last):",
            "  File \"server.py\", line 3, in <module>",
            "Error:",
            "0 errors: all is well",
        ] {
            assert!(!is_reason(place), "{place}");
        }
    }

    #[tokio::test]
    async fn lines_are_bounded_and_the_last_needs_no_end() {
        let text: &[u8] = b"one\nmuch too long\n\ntwo";
        let mut lines = Lines::new(text, 5);
        let mut read = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            read.push((String::from_utf8_lossy(line.bytes).into_owned(), line.cut));
        }
        let expected = [("one", false), ("much ", true), ("", false), ("two", false)];
        assert_eq!(read, expected.map(|(line, cut)| (line.to_owned(), cut)));
    }
}
