//! `--open`: opens the page in the user's browser.

use std::process::{Command, Stdio};

/// The program that opens an address on this system.
const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

/// Opens the address. It is passed as an argument, which other users of the machine may see while
/// the program starts.
///
/// # Errors
/// The program cannot be started.
pub(super) fn open(url: &str) -> std::io::Result<()> {
    let mut command = Command::new(OPENER);
    command
        .arg(url)
        // The browser must not read the terminal, nor write into the log of the service.
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn()?;
    // Some browsers run in the foreground until they are closed; waiting avoids a zombie process.
    std::thread::spawn(move || child.wait());
    Ok(())
}
