//! For tests that cannot run here. Nothing is left out in silence: it is said, and noted for
//! `cargo xtask test`, whose end lists it.

use std::io::Write as _;

/// Notes that the current test of a package is not run, in the file that `ADJUTANT_NOT_RUN` names,
/// if it names one. The test returns after it.
#[expect(
    clippy::disallowed_methods,
    reason = "whoever runs all tests says by a variable where to note it"
)]
pub(crate) fn not_run(package: &str, reason: &str) {
    let thread = std::thread::current();
    let name = format!(
        "{package} {}",
        thread.name().unwrap_or("a test without a name")
    );
    eprintln!("NOT RUN: {name}: {reason}");
    if let Some(file) = std::env::var_os("ADJUTANT_NOT_RUN") {
        let mut notes = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(file)
            .unwrap();
        // One write, because other tests append to the same file.
        notes
            .write_all(format!("{name}\t{reason}\n").as_bytes())
            .unwrap();
    }
}
