//! Programs outside of the conversation: the user's `$EDITOR`, and the terminal's clipboard.

use std::io::Write as _;

use adjutant_core::limits::MESSAGE_BYTES_MAX;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::process::Command;

use crate::error::CliError;
use crate::terminal::screen::Screen;
use crate::terminal::tty::Mode;

/// The longest text to copy, in bytes: xterm and tmux drop sequences of more than about 100 kB.
const CLIPBOARD_BYTES_MAX: usize = 74_000;

/// Returns the command in `$VISUAL`, else in `$EDITOR`.
pub(crate) fn editor() -> Option<String> {
    ["VISUAL", "EDITOR"].into_iter().find_map(|name| {
        #[expect(
            clippy::disallowed_methods,
            reason = "VISUAL and EDITOR are conventions of the shell, and no settings"
        )]
        std::env::var(name)
            .ok()
            .filter(|command| !command.trim().is_empty())
    })
}

/// Opens a text in `$VISUAL` or `$EDITOR` and returns the edited text. Dropping the future kills
/// the editor.
///
/// # Errors
/// No editor is set, or it failed; the text is unchanged then.
pub(crate) async fn edited(text: &str) -> Result<String, CliError> {
    let editor = editor().ok_or_else(|| {
        CliError::usage("no editor is named")
            .or_try("export EDITOR=nano    before adjutant is started")
    })?;
    let unusable = |reason: String| {
        CliError::failed(format!("{editor} did not edit the text")).because(reason)
    };
    let mut builder = tempfile::Builder::new();
    // The suffix tells editors that it is Markdown. Temporary files are readable by their owner
    // only.
    let mut file = builder
        .prefix("adjutant-")
        .suffix(".md")
        .tempfile()
        .map_err(|error| unusable(error.to_string()))?;
    file.write_all(text.as_bytes())
        .map_err(|error| unusable(error.to_string()))?;
    // Editors expect a terminal in line mode.
    let mode = Mode::line();
    // Through a shell, as git does it: `$EDITOR` may contain options.
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("adjutant")
        .arg(file.path())
        .kill_on_drop(true)
        .status()
        .await
        .map_err(|error| unusable(error.to_string()))?;
    drop(mode);
    if !status.success() {
        return Err(unusable(format!("it ended with {status}")));
    }
    // Before it is read: an editor may have written a file of any size.
    let length = std::fs::metadata(file.path())
        .map_err(|error| unusable(error.to_string()))?
        .len();
    if length > MESSAGE_BYTES_MAX as u64 {
        return Err(unusable(format!(
            "{length} bytes are more than a message may have ({MESSAGE_BYTES_MAX})"
        )));
    }
    let bytes = std::fs::read(file.path()).map_err(|error| unusable(error.to_string()))?;
    let text = String::from_utf8(bytes)
        .map_err(|error| unusable(format!("it is not UTF-8 text: {error}")))?;
    Ok(text.trim_end().to_owned())
}

/// Copies a text to the clipboard through the terminal (OSC 52), which works over SSH too. Some
/// terminals refuse without an answer, so success is unknown.
///
/// # Errors
/// Standard output is no terminal, or the text is longer than terminals accept.
pub(crate) fn copy(screen: &Screen, text: &str) -> Result<(), CliError> {
    if !screen.shows_answers_live() {
        return Err(CliError::failed(
            "there is no clipboard: standard output is not a terminal",
        ));
    }
    if text.len() > CLIPBOARD_BYTES_MAX {
        return Err(CliError::failed(format!(
            "the answer has {} bytes; terminals take {CLIPBOARD_BYTES_MAX} into the clipboard",
            text.len()
        )));
    }
    // Written past `Screen`, whose filter drops such sequences. If the terminal is gone, there is
    // no clipboard to copy to.
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "\x1b]52;c;{}\x07", STANDARD.encode(text)).and_then(|()| out.flush());
    Ok(())
}
