//! The log of a server's output, bounded in line length and lines per second.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use super::config::ServerName;
use super::definition::one_line;
use crate::lock::lock;

/// A function that receives the servers' output: standard error, and log messages.
pub type Log = Arc<dyn Fn(&ServerName, &str) + Send + Sync>;

/// Most bytes of a line; the rest is dropped.
pub(super) const LINE_BYTES_MAX: usize = 2_000;
/// Most lines and bytes that are logged in a second; others are counted.
const LINES_MAX: u32 = 50;
const BYTES_MAX: usize = 16 * 1024;
const SECOND: Duration = Duration::from_secs(1);

/// The log of one server, for all of its output.
#[derive(Clone)]
pub(super) struct ServerLog {
    server: ServerName,
    log: Log,
    limit: Arc<Mutex<RateLimit>>,
}

impl ServerLog {
    pub(super) fn new(server: ServerName, log: Log) -> Self {
        Self {
            server,
            log,
            limit: Arc::default(),
        }
    }

    /// Logs a line, unless the limit of this second is reached. Returns the cleaned line, or `None`
    /// if it is empty.
    pub(super) fn write(&self, text: &str) -> Option<String> {
        let text = one_line(&without_colours(
            &text[..text.floor_char_boundary(LINE_BYTES_MAX)],
        ));
        if text.is_empty() {
            return None;
        }
        // The lock is released before the callbacks, which may be slow.
        let (summary, is_admitted) = lock(&self.limit).admit(text.len(), Instant::now());
        if let Some(summary) = summary {
            (self.log)(&self.server, &summary);
        }
        if is_admitted {
            (self.log)(&self.server, &text);
        }
        Some(text)
    }

    /// Logs a summary of the lines that were dropped last.
    pub(super) fn end(&self) {
        let summary = lock(&self.limit).take_summary();
        if let Some(summary) = summary {
            (self.log)(&self.server, &summary);
        }
    }
}

/// Limits what is logged in a second, so that a noisy server does not fill the log.
#[derive(Debug, Default)]
struct RateLimit {
    since: Option<Instant>,
    lines: u32,
    bytes: usize,
    /// Lines and bytes dropped since the last summary.
    left_out: (u64, u64),
}

impl RateLimit {
    /// Returns true if a line is to be logged, and a summary to log before it.
    fn admit(&mut self, bytes: usize, now: Instant) -> (Option<String>, bool) {
        let mut summary = None;
        if self
            .since
            .is_none_or(|since| now.duration_since(since) >= SECOND)
        {
            summary = self.take_summary();
            (self.since, self.lines, self.bytes) = (Some(now), 0, 0);
        }
        let is_admitted = self.lines < LINES_MAX && self.bytes + bytes <= BYTES_MAX;
        if is_admitted {
            self.lines += 1;
            self.bytes += bytes;
        } else {
            self.left_out.0 += 1;
            self.left_out.1 += u64::try_from(bytes).unwrap_or(u64::MAX);
        }
        (summary, is_admitted)
    }

    /// Returns a summary of the dropped lines, and resets it.
    fn take_summary(&mut self) -> Option<String> {
        let (lines, bytes) = std::mem::take(&mut self.left_out);
        (lines > 0)
            .then(|| format!("… {lines} lines more ({bytes} bytes), which were too many at once"))
    }
}

/// Removes terminal escape sequences: many programs colour their output even without a terminal.
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        let end = after.find(|letter: char| ('@'..='~').contains(&letter));
        rest = end.map_or("", |end| &after[end + 1..]);
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_no_words() {
        assert_eq!(
            without_colours("\u{1b}[1;31mfatal\u{1b}[0m: no \u{1b}[2Ktoken"),
            "fatal: no token"
        );
        assert_eq!(
            without_colours("plain, cut off \u{1b}[31"),
            "plain, cut off "
        );
    }

    #[test]
    fn lines_and_bytes_of_a_second_are_bounded() {
        let (mut limit, start) = (RateLimit::default(), Instant::now());
        for _ in 0..LINES_MAX {
            assert_eq!(limit.admit(10, start), (None, true));
        }
        assert_eq!(
            [limit.admit(10, start), limit.admit(5, start)],
            [(None, false), (None, false)]
        );
        let next = start + SECOND;
        let summary = "… 2 lines more (15 bytes), which were too many at once".to_owned();
        assert_eq!(limit.admit(BYTES_MAX, next), (Some(summary), true));
        assert_eq!(limit.admit(1, next), (None, false));
        assert_eq!(
            limit.admit(1, next + SECOND).0.unwrap().split(' ').nth(1),
            Some("1")
        );
        assert_eq!(limit.take_summary(), None);
    }
}
