//! Command-line arguments of `adjutant sessions`.

use std::path::PathBuf;

use clap::Subcommand;

/// `adjutant sessions ...`
#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List conversations, the one with the newest message first
    List {
        /// The most to list
        #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// Only those with these words in their title, in upper or lower case
        #[arg(long, value_name = "WORDS")]
        search: Option<String>,
        /// Only those that began in this folder
        #[arg(long)]
        here: bool,
    },
    /// Search what was said in all conversations, by what is meant: any form of the words, the best
    /// first
    Search {
        /// The words; several "in quotes" have to stand there as they are
        #[arg(required = true)]
        words: Vec<String>,
        /// The most conversations to show
        #[arg(short = 'n', long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
        limit: u32,
    },
    /// Show the state of a conversation and its last turns
    Show {
        /// Its id, or enough of its beginning or end to be unique
        id: String,
        /// The number of turns to show
        #[arg(short = 'n', long, default_value_t = 3)]
        turns: usize,
    },
    /// Export a conversation as Markdown, or with --json as JSON: every message, call and result
    Export {
        /// Its id, or enough of its beginning or end to be unique
        id: String,
        /// Write it to this file; without: to standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Replace the file if there is one
        #[arg(long, requires = "output")]
        force: bool,
    },
    /// Rename a conversation
    Rename {
        /// Its id, or enough of its beginning or end to be unique
        id: String,
        /// The new title
        #[arg(required = true)]
        title: Vec<String>,
    },
    /// Delete conversations with everything said and logged in them; asks first, or needs -y
    Rm {
        /// Their ids, or enough of the beginning or end of each to be unique
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}
