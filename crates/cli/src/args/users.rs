//! Command-line arguments of `adjutant users`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Users {
    /// List the users with stored data, with the totals of their turns
    List {
        /// The number of users
        #[arg(short = 'n', long, default_value_t = 50)]
        limit: u32,
        /// Only those after this name, in the order of the list
        #[arg(long, value_name = "USER")]
        after: Option<String>,
        /// Add up only turns started then or later: 2026-01-31, 2026-01-31T09:00:00Z, or 30d (ago)
        /// [default: all]
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
    },
    /// Write all data of a user, one JSON object a line, a manifest first
    #[command(
        after_help = "The secrets of tokens are not kept, and their hashes are not written. Files of a vault are no part of it.\n\nExamples:\n  adjutant users export ana -o ana.ndjson\n  adjutant users export ana | jq -r 'select(.kind == \"task\").description'\n"
    )]
    Export {
        /// The user
        user: String,
        /// The file; without: standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Replace an existing file
        #[arg(long, requires = "output")]
        force: bool,
    },
    /// Delete all data of a user, after you typed the name again; with -y without asking
    #[command(
        after_help = "Their tokens are refused first, and their running turns are stopped. What stays: files of a vault, backups, log files, and what\neverybody has spent together, which names nobody. Doing it again goes on where it broke off.\n\nExamples:\n  adjutant users export ana -o ana.ndjson && adjutant users delete ana\n  adjutant users delete ana -y --json\n"
    )]
    Delete {
        /// The user
        user: String,
    },
}
