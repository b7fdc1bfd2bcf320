//! Names of the commands that the editor hands to its caller.

/// Ctrl-O: open an external editor.
pub(super) const EDIT: &str = "edit";
/// Ctrl-Z: suspend the process.
pub(super) const SUSPEND: &str = "suspend";
/// Alt-T: show or hide the model's thinking.
pub(super) const THINKING: &str = "thinking";
/// A paste longer than a message may be.
pub(super) const TOO_LONG: &str = "too long";
