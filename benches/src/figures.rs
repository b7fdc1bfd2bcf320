//! What a run measured: one JSON object a line, one for each run of a row.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::client::Measured;

/// A line of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub(crate) enum Line {
    /// Where and when it was measured.
    About(About),
    /// One run of one row.
    Figure(Box<Figure>),
    /// What could not be measured here.
    NotRun(NotRun),
    /// What failed while it was measured.
    Failed(NotRun),
}

/// Where and when.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct About {
    /// The day, in UTC.
    pub(crate) day: String,
    /// The commit of the repository, if there is one.
    pub(crate) commit: String,
    /// Processors.
    pub(crate) cores: usize,
    /// What the processor calls itself.
    pub(crate) processor: String,
    /// The load before the run: what else was going on.
    pub(crate) load: String,
    /// Seconds of one run of one row.
    pub(crate) seconds: f64,
}

/// One run of one row.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Figure {
    /// Its place in the table.
    pub(crate) case: Case,
    /// Who was measured.
    pub(crate) row: String,
    /// The number of the run: rows of the same number were measured beside each other.
    pub(crate) run: u32,
    /// What the process measured of itself.
    #[serde(flatten)]
    pub(crate) measured: Measured,
    /// Processor time of the database's server, in microseconds.
    pub(crate) server_cpu_us: Option<i64>,
}

/// What is done.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "case", rename_all = "snake_case")]
pub(crate) enum Case {
    /// Turns of two model calls and one tool call.
    Turn {
        /// Milliseconds the model takes.
        delay_ms: u64,
        /// Answers come whole, and not as a stream.
        whole: bool,
        /// Conversations at once.
        at_once: usize,
    },
    /// The rows of such turns.
    Rows {
        /// Turns that wait at once.
        at_once: usize,
    },
    /// Requests to the program, with one model call each.
    Service {
        /// Milliseconds the model takes.
        delay_ms: u64,
        /// Conversations at once.
        at_once: usize,
    },
    /// One conversation of so many turns.
    Long {
        /// Turns.
        turns: u32,
    },
    /// One turn of so many calls.
    Calls {
        /// Tool calls.
        calls: u32,
        /// Of these in one answer of the model.
        at_once: u32,
        /// Bytes of each result.
        result_bytes: usize,
    },
}

/// What could not be measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct NotRun {
    /// Which rows.
    pub(crate) row: String,
    /// Why.
    pub(crate) reason: String,
}

impl Figure {
    /// Turns a second.
    #[expect(clippy::cast_precision_loss, reason = "counts of a run")]
    pub(crate) fn per_second(&self) -> f64 {
        self.measured.turns as f64 / self.measured.seconds
    }

    /// Something of the whole run as a share of one turn.
    #[expect(clippy::cast_precision_loss, reason = "counts of a run")]
    pub(crate) fn per_turn(&self, whole: f64) -> f64 {
        whole / self.measured.turns.max(1) as f64
    }
}

/// Takes lines as they come, and keeps them in a file if there is one.
#[derive(Debug)]
pub(crate) struct Lines {
    file: Option<File>,
    /// All of them.
    pub(crate) all: Vec<Line>,
}

impl Lines {
    /// Begins without lines.
    pub(crate) fn begin(file: Option<&Path>) -> Result<Self> {
        Ok(Self {
            file: file.map(File::create).transpose()?,
            all: Vec::new(),
        })
    }

    /// Adds one.
    pub(crate) fn add(&mut self, line: Line) -> Result<()> {
        if let Some(file) = &mut self.file {
            writeln!(file, "{}", serde_json::to_string(&line)?)?;
        }
        self.all.push(line);
        Ok(())
    }
}

/// Reads a file of lines.
pub(crate) fn read(file: &Path) -> Result<Vec<Line>> {
    let lines = BufReader::new(File::open(file)?).lines();
    lines
        .map(|line| Ok(serde_json::from_str(&line?)?))
        .collect()
}
