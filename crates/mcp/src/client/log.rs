//! Bounds the lines that a server has logged: their length, and how many there are in a second.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::definition::one_line;
use super::{Log, ServerName};

/// Bytes of one line; the rest of it is left out.
pub(super) const LINE_BYTES_MAX: usize = 2_000;
/// Lines and bytes that go to the log in a second; the others are counted.
const LINES_MAX: u32 = 50;
const BYTES_MAX: usize = 16 * 1024;
const SECOND: Duration = Duration::from_secs(1);

/// The log of one server. Whatever it says goes through this one, however it says it.
#[derive(Clone)]
pub(super) struct ServerLog {
    server: ServerName,
    log: Log,
    heard: Arc<Mutex<Heard>>,
}

impl ServerLog {
    pub(super) fn new(server: ServerName, log: Log) -> Self {
        Self {
            server,
            log,
            heard: Arc::default(),
        }
    }

    /// Logs a line, if there is room for it in this second. Returns it as it is logged, `None` if
    /// nothing is left of it.
    pub(super) fn say(&self, words: &str) -> Option<String> {
        let text = one_line(&without_colours(
            &words[..words.floor_char_boundary(LINE_BYTES_MAX)],
        ));
        if text.is_empty() {
            return None;
        }
        let (told, takes) = self.heard().takes(text.len(), Instant::now());
        if let Some(told) = told {
            (self.log)(&self.server, &told);
        }
        if takes {
            (self.log)(&self.server, &text);
        }
        Some(text)
    }

    /// Tells what was left out at last.
    pub(super) fn end(&self) {
        let told = self.heard().tell();
        if let Some(told) = told {
            (self.log)(&self.server, &told);
        }
    }

    fn heard(&self) -> std::sync::MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts what is logged in a second, so that a server which says too much does not fill the log.
#[derive(Debug, Default)]
struct Heard {
    since: Option<Instant>,
    lines: u32,
    bytes: usize,
    /// Lines and bytes that were not logged since that was told last.
    left_out: (u64, u64),
}

impl Heard {
    /// Returns whether a line is logged; and before it, what is told of those that were not.
    fn takes(&mut self, bytes: usize, now: Instant) -> (Option<String>, bool) {
        let mut told = None;
        if self
            .since
            .is_none_or(|since| now.duration_since(since) >= SECOND)
        {
            told = self.tell();
            (self.since, self.lines, self.bytes) = (Some(now), 0, 0);
        }
        let takes = self.lines < LINES_MAX && self.bytes + bytes <= BYTES_MAX;
        if takes {
            self.lines += 1;
            self.bytes += bytes;
        } else {
            self.left_out.0 += 1;
            self.left_out.1 += u64::try_from(bytes).unwrap_or(u64::MAX);
        }
        (told, takes)
    }

    /// Returns what was left out, once.
    fn tell(&mut self) -> Option<String> {
        let (lines, bytes) = std::mem::take(&mut self.left_out);
        (lines > 0)
            .then(|| format!("… {lines} lines more ({bytes} bytes), which were too many at once"))
    }
}

/// The text without the sequences that colour a terminal: many programs colour what nobody looks
/// at.
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
    fn a_second_has_room_for_so_many_lines_and_bytes() {
        let (mut heard, start) = (Heard::default(), Instant::now());
        for _ in 0..LINES_MAX {
            assert_eq!(heard.takes(10, start), (None, true));
        }
        assert_eq!(
            [heard.takes(10, start), heard.takes(5, start)],
            [(None, false), (None, false)]
        );
        let next = start + SECOND;
        let told = "… 2 lines more (15 bytes), which were too many at once".to_owned();
        assert_eq!(heard.takes(BYTES_MAX, next), (Some(told), true));
        assert_eq!(heard.takes(1, next), (None, false));
        assert_eq!(
            heard.takes(1, next + SECOND).0.unwrap().split(' ').nth(1),
            Some("1")
        );
        assert_eq!(heard.tell(), None);
    }
}
