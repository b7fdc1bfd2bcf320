//! `--open`: the page in the person's browser.

use std::process::{Command, Stdio};

/// What opens an address on this system.
const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

/// Has the system open the address. It gets it as an argument, which others who are logged in to
/// this machine may see while it starts.
///
/// # Errors
/// It cannot be started.
pub(super) fn open(url: &str) -> std::io::Result<()> {
    let mut command = Command::new(OPENER);
    command
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn()?;
    // Some browsers stay in front until they are closed.
    std::thread::spawn(move || child.wait());
    Ok(())
}
