//! Reports tests that cannot run on this machine. No test is skipped silently: `cargo xtask test`
//! lists these at its end.

use std::io::Write as _;

/// Reports that the current test cannot run: prints the reason, and appends it to the file that
/// `ADJUTANT_NOT_RUN` names, if it is set. The caller then returns from the test.
#[expect(
    clippy::disallowed_methods,
    reason = "`cargo xtask test` passes the file of notes in a variable"
)]
pub(crate) fn not_run(package: &str, reason: &str) {
    let thread = std::thread::current();
    let name = format!("{package} {}", thread.name().unwrap_or("an unnamed test"));
    eprintln!("NOT RUN: {name}: {reason}");
    if let Some(file) = std::env::var_os("ADJUTANT_NOT_RUN") {
        let mut notes = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(file)
            .unwrap();
        // A single write, because tests in other threads and processes append to the same file.
        notes
            .write_all(format!("{name}\t{reason}\n").as_bytes())
            .unwrap();
    }
}
