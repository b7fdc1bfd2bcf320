//! Command-line arguments of `adjutant tasks`, `tools` and `pending`, which need no language model.

use adjutant_core::Verdict;
use adjutant_tools::TaskFilter;
use clap::{Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum Tasks {
    /// List tasks
    List {
        /// The tasks to list
        #[arg(long, value_enum, default_value = "all")]
        status: Status,
    },
    /// Add a task
    Add {
        /// The text of the task
        #[arg(required = true)]
        description: Vec<String>,
    },
    /// Change the text of a task
    Update {
        /// Its number, or some of its words in quotes
        task: String,
        /// The new text
        #[arg(required = true)]
        description: Vec<String>,
    },
    /// Mark a task as done
    Done {
        /// Its number, or some of its words
        #[arg(required = true)]
        task: Vec<String>,
    },
    /// Delete a task; asks first, or needs -y
    Rm {
        /// Its number, or some of its words
        #[arg(required = true)]
        task: Vec<String>,
    },
    /// Bring back a task that was deleted in the last 30 days
    Restore {
        /// Its number
        task: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Tools {
    /// Show what an MCP server changed since its tools were agreed to, and agree to it; asks first,
    /// or needs -y
    Accept {
        /// The server's name in the configuration
        server: String,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Status {
    Pending,
    Completed,
    All,
}

impl From<Status> for TaskFilter {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => Self::Pending,
            Status::Completed => Self::Completed,
            Status::All => Self::All,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Pending {
    /// List what waits, oldest first
    List {
        /// Continue: print each question when it begins to wait, until Ctrl-C; with --json one
        /// object a line
        #[arg(short, long)]
        watch: bool,
    },
    /// Approve a call
    Approve {
        /// The id shown by `pending list`, or enough of its beginning or end to be unique
        id: String,
        /// Run it with these arguments instead, a JSON object; they are checked like any others
        #[arg(long, value_name = "JSON")]
        args: Option<String>,
    },
    /// Deny a call
    Deny {
        /// The id shown by `pending list`, or enough of its beginning or end to be unique
        id: String,
    },
    /// Say whether an interrupted call was done
    Resolve {
        /// The id shown by `pending list`, or enough of its beginning or end to be unique
        id: String,
        /// The answer
        #[arg(value_enum)]
        how: Resolution,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Resolution {
    /// It was done
    Done,
    /// It was not done: try again, with the same key
    Retry,
    /// Nobody knows: leave it, and do not try again
    Leave,
}

impl From<Resolution> for Verdict {
    fn from(how: Resolution) -> Self {
        match how {
            Resolution::Done => Self::Done,
            Resolution::Retry => Self::Retry,
            Resolution::Leave => Self::Leave,
        }
    }
}
