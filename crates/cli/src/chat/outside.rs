//! What is outside the terminal's lines: the person's editor, and the clipboard.

use std::io::Write as _;

use adjutant_core::limits::MESSAGE_BYTES_MAX;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::process::Command;

use crate::error::CliError;
use crate::screen::Screen;
use crate::tty::Mode;

/// The longest text that terminals take into the clipboard: xterm and tmux forget sequences beyond
/// about 100 kB.
const CLIPBOARD_BYTES_MAX: usize = 74_000;

/// The command in `$VISUAL`, else in `$EDITOR`.
pub(crate) fn editor() -> Option<String> {
    ["VISUAL", "EDITOR"].into_iter().find_map(|name| {
        #[expect(
            clippy::disallowed_methods,
            reason = "the two variables belong to the terminal, and are no settings"
        )]
        std::env::var(name)
            .ok()
            .filter(|command| !command.trim().is_empty())
    })
}

/// Opens a text in `$VISUAL` or `$EDITOR`, and returns what it was when the editor ended. Dropped
/// before that, it kills the editor.
///
/// # Errors
/// No editor is named or it failed; then the text is as it was.
pub(crate) async fn edited(text: &str) -> Result<String, CliError> {
    let editor = editor().ok_or_else(|| {
        CliError::usage("no editor is named")
            .or_try("export EDITOR=nano    before adjutant is started")
    })?;
    let unusable = |reason: String| {
        CliError::failed(format!("{editor} did not edit the text")).because(reason)
    };
    let mut builder = tempfile::Builder::new();
    // The name tells editors that it is markdown; nobody else can read it.
    let mut file = builder
        .prefix("adjutant-")
        .suffix(".md")
        .tempfile()
        .map_err(|error| unusable(error.to_string()))?;
    file.write_all(text.as_bytes())
        .map_err(|error| unusable(error.to_string()))?;
    // The editor gets a terminal as programs expect it.
    let mode = Mode::line();
    // As git and others do it: a command with options is one too.
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
    let length = std::fs::metadata(file.path())
        .map_err(|error| unusable(error.to_string()))?
        .len();
    if length > MESSAGE_BYTES_MAX as u64 {
        return Err(unusable(format!(
            "{length} bytes are more than a message may have ({MESSAGE_BYTES_MAX})"
        )));
    }
    let bytes = std::fs::read(file.path()).map_err(|error| unusable(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| unusable("it is not UTF-8 text".to_owned()))?;
    Ok(text.trim_end().to_owned())
}

/// Has the terminal put a text into its clipboard (OSC 52), which works over SSH too. Whether it
/// does is not told: some terminals refuse.
///
/// # Errors
/// Standard output is no terminal, or the text is longer than terminals take.
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
    // Past the filter of colours, which drops such sequences. A terminal that is gone has no
    // clipboard either.
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "\x1b]52;c;{}\x07", STANDARD.encode(text)).and_then(|()| out.flush());
    Ok(())
}
