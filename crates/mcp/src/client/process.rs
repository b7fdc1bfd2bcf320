//! A server in a child process.
//!
//! Standard output carries messages, one JSON object a line; other lines are logged instead of
//! breaking the connection. Standard error is logged, and its last lines explain a failed start.
//!
//! The child has its own process group, so Ctrl-C at the terminal does not reach it.
//! [`super::process_group`] ends it.

use std::collections::VecDeque;
use std::io;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use secrecy::ExposeSecret as _;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::process::{ChildStdin, Command};
use tokio::sync::watch;

use super::config::Child;
use super::log::{LINE_BYTES_MAX, ServerLog};
use super::process_group::ProcessGroup;
use super::server_message::keep_execution;
use super::throttle::Throttle;
use crate::lock::lock;

/// Most bytes of a message, as many as over HTTP.
const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Number of last lines of output that are kept.
const TAIL_LINES: usize = 8;
/// Size of the pipe between the reader of standard output and the protocol.
const PIPE_BYTES: usize = 64 * 1024;
/// Time for a server to end by itself, and again after SIGTERM.
const END_TIMEOUT: Duration = Duration::from_millis(1_000);
/// Time for reading the last output of a server that has ended.
const OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);

/// All child processes, so that none is left behind.
#[derive(Debug, Default)]
pub(super) struct Children(Mutex<Running>);

#[derive(Debug, Default)]
struct Running {
    groups: Vec<Weak<ProcessGroup>>,
    closed: bool,
}

impl Children {
    /// Kills all children, and those that are being started at this moment.
    pub(super) fn kill(&self) {
        let mut running_groups = lock(&self.0);
        running_groups.closed = true;
        running_groups
            .groups
            .drain(..)
            .filter_map(|group| group.upgrade())
            .for_each(|group| group.kill());
    }

    fn register(&self, group: &Arc<ProcessGroup>) {
        let mut running_groups = lock(&self.0);
        running_groups
            .groups
            .retain(|group| group.strong_count() > 0);
        // It was spawned while the others were killed.
        if running_groups.closed {
            group.kill();
        } else {
            running_groups.groups.push(Arc::downgrade(group));
        }
    }
}

/// A running server process. It is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Process {
    group: Arc<ProcessGroup>,
    tail: Arc<Mutex<Tail>>,
    /// The exit status, once it has ended.
    ended: watch::Receiver<Option<String>>,
    /// True once standard error was read to its end.
    output_read: watch::Receiver<bool>,
    /// Lines that it has written.
    lines: Arc<AtomicU64>,
}

/// The pipes for the protocol: its input and its output.
pub(super) type Pipes = (DuplexStream, ChildStdin);

impl Process {
    /// Starts the process.
    ///
    /// # Errors
    /// The program does not exist or cannot be run.
    pub(super) fn spawn(
        child: &Child,
        log: &ServerLog,
        children: &Children,
    ) -> io::Result<(Self, Pipes)> {
        let mut command = Command::new(&child.program);
        command
            .args(&child.arguments)
            // The variables of this process may contain other services' keys.
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
        ProcessGroup::prepare(&mut command);
        let mut running = command.spawn()?;
        let group = Arc::new(ProcessGroup::new(&running));
        children.register(&group);
        let missing = || io::Error::other("it has no standard input or output");
        // All three are piped above.
        let stdin = running.stdin.take().ok_or_else(missing)?;
        let stdout = running.stdout.take().ok_or_else(missing)?;
        let stderr = running.stderr.take().ok_or_else(missing)?;

        let tail = Arc::<Mutex<Tail>>::default();
        let output = Output {
            log: log.clone(),
            tail: tail.clone(),
            lines: Arc::default(),
        };
        let lines = output.lines.clone();
        // The protocol reads from this pipe and not from the child, so that other lines can be
        // filtered out.
        let (messages, ours) = tokio::io::duplex(PIPE_BYTES);
        // Lines on standard output that are no messages are logged like standard error.
        let noise = output.clone();
        tokio::spawn(async move { forward(stdout, messages, &noise).await });
        let (all_read, output_read) = watch::channel(false);
        tokio::spawn(async move {
            log_lines(stderr, &output).await;
            // Even without a receiver: the connection may be closed by now.
            all_read.send_replace(true);
        });
        let (status, ended) = watch::channel(None);
        let watched = group.clone();
        tokio::spawn(async move {
            status.send_replace(Some(watched.wait(running).await));
        });
        Ok((
            Self {
                group,
                tail,
                ended,
                output_read,
                lines,
            },
            (ours, stdin),
        ))
    }

    /// Returns a number that changes as long as the process does something: it writes a line, or,
    /// on Linux, it or a descendant uses the processor.
    pub(super) fn activity(&self) -> u64 {
        let lines = self.lines.load(Ordering::Relaxed);
        lines.wrapping_add(self.group.processor_time())
    }

    /// Waits for the end, and returns it as text, such as `exit status: 1`.
    pub(super) async fn wait_for_end(&mut self) -> String {
        match self.ended.wait_for(Option::is_some).await {
            Ok(status) => status.clone().unwrap_or_default(),
            Err(_) => "unknown".to_owned(),
        }
    }

    /// Describes the state of the process with its last output, for explaining a failure.
    pub(super) async fn explain(&mut self) -> String {
        let gone = tokio::time::timeout(OUTPUT_TIMEOUT, self.wait_for_end())
            .await
            .ok();
        // The end may be noticed before the last output was read.
        let _ = tokio::time::timeout(OUTPUT_TIMEOUT, async {
            if gone.is_some() {
                let _ = self.output_read.wait_for(|output_read| *output_read).await;
            }
        })
        .await;
        let mut text = match gone {
            Some(status) => format!("it ended ({status})"),
            None => "it still runs".to_owned(),
        };
        let tail = lock(&self.tail);
        if tail.lines.is_empty() {
            text.push_str(" and said nothing on standard error");
        } else if let Some(reason) = &tail.reason {
            text.push_str(&format!("; it said: {reason}"));
        } else {
            let lines: Vec<&str> = tail.lines.iter().map(String::as_str).collect();
            text.push_str(&format!("; its last words: {}", lines.join(" | ")));
        }
        text
    }

    /// Waits for the process to end after its input was closed, then sends SIGTERM, then kills it.
    pub(super) async fn finish(mut self) {
        // The protocol's order for a child process: close its input, wait, SIGTERM, SIGKILL
        // (modelcontextprotocol.io, "Lifecycle", shutdown).
        for end in [ProcessGroup::terminate, ProcessGroup::kill] {
            let ended = tokio::time::timeout(END_TIMEOUT, self.wait_for_end()).await;
            if ended.is_ok() {
                return;
            }
            end(&self.group);
        }
        // A process in an uninterruptible wait cannot be killed.
        let _ = tokio::time::timeout(END_TIMEOUT, self.wait_for_end()).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.group.kill();
    }
}

/// The last lines of output.
#[derive(Debug, Default)]
struct Tail {
    lines: VecDeque<String>,
    /// The last line that names an error. Many programs print a long stack trace after it.
    reason: Option<String>,
}

/// The destination of output that is no message.
#[derive(Clone)]
struct Output {
    log: ServerLog,
    tail: Arc<Mutex<Tail>>,
    /// Lines that were read, messages too.
    lines: Arc<AtomicU64>,
}

/// Returns true if a line names an error, such as `Error: Cannot find module 'x'`,
/// `ModuleNotFoundError: …` or `thread 'main' panicked at …`. A position in a program or a line of
/// source does not.
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

impl Output {
    fn log_line(&self, line: &[u8]) {
        let Some(text) = self.log.write(&String::from_utf8_lossy(line)) else {
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

/// Logs all lines of a stream.
async fn log_lines(stream: impl AsyncRead + Unpin, output: &Output) {
    let mut lines = Lines::new(stream, LINE_BYTES_MAX);
    while let Ok(Some(line)) = lines.next().await {
        output.lines.fetch_add(1, Ordering::Relaxed);
        output.log_line(line.bytes);
    }
    output.log.end();
}

/// Forwards messages, and logs other lines. A message that is too large ends the connection,
/// because its request would wait for the answer forever.
async fn forward(stream: impl AsyncRead + Unpin, mut messages: DuplexStream, output: &Output) {
    let mut lines = Lines::new(stream, MESSAGE_BYTES_MAX);
    let throttle = Throttle::default();
    while let Ok(Some(line)) = lines.next().await {
        output.lines.fetch_add(1, Ordering::Relaxed);
        let message = line.bytes.trim_ascii_start().first() == Some(&b'{');
        if !message {
            output.log_line(line.bytes);
            continue;
        }
        if line.cut {
            output.log_line(
                format!("sent a message of more than {MESSAGE_BYTES_MAX} bytes; disconnected")
                    .as_bytes(),
            );
            return;
        }
        throttle.admit(line.bytes).await;
        let sent = async {
            messages.write_all(&keep_execution(line.bytes)).await?;
            messages.write_all(b"\n").await
        };
        // The protocol has ended, so its reader is gone.
        if sent.await.is_err() {
            return;
        }
    }
}

/// A reader of lines of bounded length.
struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    bytes_max: usize,
}

struct Line<'a> {
    bytes: &'a [u8],
    /// True if the end of the line was dropped.
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

    /// Returns the next line without its end, `None` at the end of the stream. The last line needs
    /// no line break.
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
            let remaining = self.bytes_max - self.line.len();
            cut |= piece.len() > remaining;
            self.line
                .extend_from_slice(&piece[..piece.len().min(remaining)]);
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

#[cfg(test)]
mod tests {
    use super::super::ServerName;
    use super::*;

    #[tokio::test]
    async fn of_a_flood_of_lines_the_dropped_are_counted_and_the_last_kept() {
        let logged = Arc::new(Mutex::new(Vec::new()));
        let log = logged.clone();
        let output = Output {
            log: ServerLog::new(
                ServerName::new("flood").unwrap(),
                Arc::new(move |_, line: &str| lock(&log).push(line.to_owned())),
            ),
            tail: Arc::default(),
            lines: Arc::default(),
        };
        let flood: String = (0..100_000)
            .map(|number| format!("line {number}\n"))
            .collect();
        log_lines(flood.as_bytes(), &output).await;
        let (logged, tail) = (lock(&logged), lock(&output.tail));
        let summaries = logged.iter().filter(|line| line.starts_with('…'));
        let left_out: usize = summaries
            .map(|line| line.split(' ').nth(1).unwrap().parse::<usize>().unwrap() - 1)
            .sum();
        assert_eq!(logged.len() + left_out, 100_000);
        assert!(logged.last().unwrap().starts_with('…'), "{logged:?}");
        assert_eq!(tail.lines.back().unwrap(), "line 99999");
        assert_eq!(tail.reason, None);
    }

    #[test]
    fn a_line_that_names_an_error_is_a_reason_and_a_position_is_none() {
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
