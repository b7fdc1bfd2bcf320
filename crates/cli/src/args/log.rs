//! Command-line arguments of `adjutant log`.

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum Log {
    /// List the newest decisions
    List {
        /// The number of decisions
        #[arg(short = 'n', long, default_value_t = 20)]
        limit: u32,
        #[command(flatten)]
        filter: LogFilter,
    },
    /// Show one decision with its tool calls and where the time went
    Show {
        /// The turn's id, or enough of its beginning or end to be unique, whoever's it is; without:
        /// your newest
        id: Option<String>,
        /// Only among those of this user
        #[arg(long, value_name = "USER")]
        user: Option<String>,
        /// The one that this request over HTTP started, by the id that its answer named
        /// (X-Request-Id)
        #[arg(long, value_name = "ID", conflicts_with_all = ["id", "user"])]
        request: Option<String>,
    },
    /// The last decisions, and each further one when it ends or waits, until Ctrl-C
    Tail {
        /// The number of earlier decisions to show
        #[arg(short = 'n', long, default_value_t = 10)]
        limit: u32,
        #[command(flatten)]
        filter: LogFilter,
    },
    /// Count decisions by outcome, with tokens, cost and times, day by day; or by something else
    Stats {
        /// The key to add up by [default of --all-users: day]
        #[arg(long, value_enum, value_name = "WHAT")]
        by: Option<By>,
        /// The number of lines: the latest days, or with another --by those with the most turns
        /// [default: 50; all days of one user]
        #[arg(short = 'n', long)]
        limit: Option<u32>,
        #[command(flatten)]
        filter: LogFilter,
    },
    /// All decisions with their tool calls, newest first, one JSON object a line
    Export {
        #[command(flatten)]
        filter: LogFilter,
    },
}

/// The key by which turns are summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    User,
    Model,
    Day,
    Outcome,
    /// The code of their error, of those that have one
    Error,
}

/// Options that select decisions.
#[derive(Debug, Args)]
pub(crate) struct LogFilter {
    /// Only this outcome, such as ERROR:LLM_FAILURE
    #[arg(long)]
    pub(crate) outcome: Option<String>,
    /// Only those started then or later: 2026-01-31, 2026-01-31T09:00:00Z, or 24h (ago)
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only those started before then
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Only this conversation
    #[arg(long, value_name = "ID")]
    pub(crate) thread: Option<String>,
    /// Only those in which this tool was executed
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only those of this agent [default: of all]
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Only those whose answer was rated so
    #[arg(long, value_name = "RATING", value_parser = ["up", "down"])]
    pub(crate) feedback: Option<String>,
    /// The user they belong to [default: local, you]
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Those of all users
    #[arg(long, conflicts_with = "user")]
    pub(crate) all_users: bool,
    /// With --all-users: only those with an error's code
    #[arg(long, requires = "all_users")]
    pub(crate) failed: bool,
}
