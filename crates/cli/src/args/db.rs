//! Command-line arguments of `adjutant db`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Db {
    /// Show which database is used, its contents and its size
    Status,
    /// Bring the schema up to date and do nothing else; creates the database if there is none
    Migrate,
    /// Check the database for damage and inconsistencies; repairs nothing
    Check,
    /// Write a copy of it while it is in use (SQLite; for PostgreSQL it prints the command)
    Backup {
        /// The file to write; an existing one is left alone
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
