//! Facts and entries from standard input into a vault, one a line: the smallest program over this
//! crate.
//!
//! ```text
//! cargo run -p adjutant-memory --example vault -- VAULT WORK_FOLDER remember|log < lines
//! cargo run -p adjutant-memory --example vault -- VAULT WORK_FOLDER complete|delete < words of tasks
//! cargo run -p adjutant-memory --example vault -- VAULT WORK_FOLDER list
//! cargo run -p adjutant-memory --example vault -- VAULT WORK_FOLDER search WORDS
//! cargo run -p adjutant-memory --example vault -- VAULT WORK_FOLDER notes FOLDER
//! ```
//!
//! The tests run it as the second process, and as the one that is killed.

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::time::Instant;

use adjutant_core::UserId;
use adjutant_memory::{
    Cause, InMemoryLedger, Memory, MemoryError, MemoryOptions, NoteFilter, Vault, VaultError,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [vault, work, command, rest @ ..] = arguments.as_slice() else {
        return Err(
            "usage: vault VAULT WORK_FOLDER remember|log|complete|delete|list|search|notes".into(),
        );
    };
    let vault = Vault::open(vault)?.with_work_folder(work);
    #[expect(
        clippy::disallowed_methods,
        reason = "a program hands the time in; here it is a program"
    )]
    let clock = Arc::new(jiff::Zoned::now);
    let options = MemoryOptions {
        max_facts: 10_000,
        ..MemoryOptions::default()
    };
    let memory = Memory::new(
        vault,
        UserId::local(),
        options,
        Arc::new(InMemoryLedger::new()),
        clock,
    )?;
    let mut out = io::stdout().lock();
    match command.as_str() {
        "remember" => {
            for line in io::stdin().lock().lines() {
                let change = memory.facts().add(&line?, false, &Cause::person()).await?;
                writeln!(out, "{}", change.message())?;
                out.flush()?;
            }
        }
        "log" => {
            for line in io::stdin().lock().lines() {
                let written = memory
                    .notes()
                    .ok_or("there is a vault")?
                    .write_daily(&line?, None, &Cause::person())
                    .await?;
                writeln!(out, "{}", written.message())?;
                out.flush()?;
            }
        }
        "complete" | "delete" => {
            for line in io::stdin().lock().lines() {
                let words = line?;
                let tasks = memory.tasks().ok_or("there is a vault")?;
                let done = loop {
                    let found = tasks
                        .list()
                        .await?
                        .tasks
                        .into_iter()
                        .find(|task| task.words == words);
                    let task = found.ok_or("there is no such task")?.address;
                    let done = match command.as_str() {
                        "complete" => tasks.complete(&task, &Cause::person()).await,
                        _ => tasks.delete(&task, &Cause::person()).await,
                    };
                    match done {
                        // Another program writes to the note all the time.
                        Err(MemoryError::Vault(VaultError::Busy { .. })) => {}
                        done => break done?,
                    }
                };
                writeln!(out, "{}", done.task.address.line)?;
                out.flush()?;
            }
        }
        "list" => {
            for fact in memory.facts().list().await? {
                writeln!(out, "{}  {}", fact.id, fact.content)?;
            }
        }
        "search" => {
            let begun = Instant::now();
            let found = memory
                .notes()
                .ok_or("there is a vault")?
                .search(
                    &rest.join(" "),
                    &NoteFilter {
                        limit: 20,
                        ..NoteFilter::default()
                    },
                )
                .await?;
            for note in found.notes {
                writeln!(out, "{}", note.path)?;
            }
            writeln!(
                out,
                "{} notes, {} ms",
                found.total,
                begun.elapsed().as_millis()
            )?;
        }
        "notes" => {
            let begun = Instant::now();
            let filter = NoteFilter {
                folder: rest.join(" "),
                limit: 20,
                ..NoteFilter::default()
            };
            let found = memory
                .notes()
                .ok_or("there is a vault")?
                .list(&filter)
                .await?;
            for note in found.notes {
                writeln!(out, "{}", note.path)?;
            }
            writeln!(
                out,
                "{} notes, {} ms",
                found.total,
                begun.elapsed().as_millis()
            )?;
        }
        other => return Err(format!("there is no command {other:?}").into()),
    }
    Ok(())
}
