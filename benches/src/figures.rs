//! Results of a run, stored as one JSON object per line.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::client::Measured;

/// A line of the file of results.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub(crate) enum Line {
    /// Date, commit and machine.
    About(About),
    /// The result of one run of one row.
    Figure(Box<Figure>),
    /// A row that this machine cannot measure.
    NotRun(NotRun),
    /// A row whose measurement failed.
    Failed(NotRun),
}

/// Date, commit and machine of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct About {
    /// Date in UTC.
    pub(crate) day: String,
    /// Short hash of the repository's commit; empty outside a repository.
    pub(crate) commit: String,
    /// Number of CPU cores.
    pub(crate) cores: usize,
    /// Model name of the CPU, from `/proc/cpuinfo`.
    pub(crate) processor: String,
    /// Load average of one minute before the run, caused by other programs.
    pub(crate) load: String,
    /// Duration of one run of one row, in seconds.
    pub(crate) seconds: f64,
}

/// The result of one run of one row.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Figure {
    /// The workload, which selects the table.
    pub(crate) case: Case,
    /// Name of the row: the client that was measured.
    pub(crate) row: String,
    /// Number of the run. Rows with the same number were measured one after the other.
    pub(crate) run: u32,
    /// The client's own measurements.
    #[serde(flatten)]
    pub(crate) measured: Measured,
    /// CPU time of the database server, in microseconds.
    pub(crate) server_cpu_us: Option<i64>,
}

/// A workload.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "case", rename_all = "snake_case")]
pub(crate) enum Case {
    /// Turns with two model calls and one tool call.
    Turn {
        /// Latency of the model, in milliseconds.
        delay_ms: u64,
        /// True if answers are sent whole instead of streamed.
        whole: bool,
        /// Number of concurrent conversations.
        at_once: usize,
    },
    /// Only the database rows of such turns.
    Rows {
        /// Number of turns that wait for a commit at the same time.
        at_once: usize,
    },
    /// Requests to `adjutant serve`, with one model call each.
    Service {
        /// Latency of the model, in milliseconds.
        delay_ms: u64,
        /// Number of concurrent conversations.
        at_once: usize,
    },
    /// A conversation with many turns.
    Long {
        /// Number of turns.
        turns: u32,
    },
    /// A turn with many tool calls.
    Calls {
        /// Number of tool calls.
        calls: u32,
        /// Number of tool calls in one answer of the model.
        at_once: u32,
        /// Size of each tool result, in bytes.
        result_bytes: usize,
    },
}

/// A row without a result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct NotRun {
    /// Name of the row or group of rows.
    pub(crate) row: String,
    /// Reason for the missing result.
    pub(crate) reason: String,
}

impl Figure {
    /// Returns the number of turns per second.
    #[expect(clippy::cast_precision_loss, reason = "counts of a run")]
    pub(crate) fn per_second(&self) -> f64 {
        self.measured.turns as f64 / self.measured.seconds
    }

    /// Divides a total of the run by its number of turns.
    #[expect(clippy::cast_precision_loss, reason = "counts of a run")]
    pub(crate) fn per_turn(&self, whole: f64) -> f64 {
        whole / self.measured.turns.max(1) as f64
    }
}

/// Collects lines, and writes each at once to a file if there is one.
#[derive(Debug)]
pub(crate) struct Lines {
    file: Option<File>,
    /// All lines so far.
    pub(crate) all: Vec<Line>,
}

impl Lines {
    /// Creates an empty collection, and the file.
    pub(crate) fn begin(file: Option<&Path>) -> Result<Self> {
        Ok(Self {
            file: file.map(File::create).transpose()?,
            all: Vec::new(),
        })
    }

    /// Adds a line, and writes it to the file.
    pub(crate) fn add(&mut self, line: Line) -> Result<()> {
        if let Some(file) = &mut self.file {
            writeln!(file, "{}", serde_json::to_string(&line)?)?;
        }
        self.all.push(line);
        Ok(())
    }
}

/// Reads the lines of a file of results.
pub(crate) fn read(file: &Path) -> Result<Vec<Line>> {
    let lines = BufReader::new(File::open(file)?).lines();
    lines
        .map(|line| Ok(serde_json::from_str(&line?)?))
        .collect()
}
