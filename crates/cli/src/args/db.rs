//! `adjutant db`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Db {
    /// Which database it is, what is in it, and what it takes
    Status,
    /// Bring its schema up to date and do nothing else; makes it where there is none
    Migrate,
    /// Look for what is damaged or does not fit together; mends nothing
    Check,
    /// Write a copy of it while others go on working (SQLite; for PostgreSQL it says the command)
    Backup {
        /// Where to; what is there already is left alone
        file: PathBuf,
    },
    /// Copy everything to an empty database of the same kind or the other, such as from a file to
    /// PostgreSQL and back, while others go on working; then look whether the copy is whole
    #[command(
        after_help = "All of it is there at the end, or nothing. What others write meanwhile is not in it: to move, stop every adjutant before.\n\nExamples:\n  adjutant db copy --to postgres://adjutant@db.example/adjutant\n  adjutant db copy --database postgres://adjutant@db.example/adjutant --to sqlite:adjutant.db\n"
    )]
    Copy {
        /// postgres://USER@HOST:PORT/DATABASE, sqlite:FILE, or the path of an SQLite file; a file
        /// is made
        #[arg(long, value_name = "URL")]
        to: String,
    },
}
