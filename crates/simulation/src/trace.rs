//! The trace of a run: what happened, in order.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

/// Lines that are kept to be shown with a failure.
const KEPT: usize = 80;

/// The lines of one run: a digest of all, and the last of them. They contain no random ids of the
/// engine, so that the same seed gives the same digest.
#[derive(Debug)]
pub(crate) struct Trace {
    digest: u64,
    lines: u64,
    last: VecDeque<String>,
    /// Keeps every line.
    all: bool,
}

impl Trace {
    pub(crate) fn new(all: bool) -> Self {
        Self {
            digest: 0xcbf2_9ce4_8422_2325,
            lines: 0,
            last: VecDeque::new(),
            all,
        }
    }

    pub(crate) fn line(&mut self, at: Duration, who: &str, what: std::fmt::Arguments<'_>) {
        if self.last.len() >= KEPT && !self.all {
            self.last.pop_front();
        }
        let mut line = String::new();
        // Writing into a string does not fail.
        let _ = write!(line, "{:10.3} {who:6} {what}", at.as_secs_f64());
        // FNV-1a: the same on every machine, in every version.
        for byte in line.bytes().chain([b'\n']) {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self.lines += 1;
        self.last.push_back(line);
    }

    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    pub(crate) fn last(&self) -> Vec<String> {
        self.last.iter().cloned().collect()
    }
}
