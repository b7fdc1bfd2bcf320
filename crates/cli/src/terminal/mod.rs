//! The assistant at a terminal: reading what a person types, running their turns, and printing
//! events and answers so that no text can control the terminal.

pub(crate) mod chat; // the interactive conversation: editor, slash commands, sessions
pub(crate) mod confirm; // asking for confirmation of a tool call
pub(crate) mod display; // text made safe for a terminal: escapes, lengths, JSON lines
pub(crate) mod input; // the prompt of a command: arguments, standard input, attached files
pub(crate) mod json_answer; // `--json`: an answer as one JSON object
mod keys; // a single key, or a short line, read at the terminal
pub(crate) mod lines; // lines and answers read from standard input
pub(crate) mod notify; // the program that is run when a question waits
pub(crate) mod open_turns; // recovering turns that an earlier process left open
#[cfg(any(feature = "embedded", feature = "ollama"))]
pub(crate) mod progress; // progress bars of downloads
pub(crate) mod render; // Markdown, tool calls and footers of a running turn
pub(crate) mod screen; // standard output and standard error
pub(crate) mod session; // submits messages, shows turns, asks for confirmations
pub(crate) mod signals; // signals that stop a process
pub(crate) mod stream_json; // `--stream-json`: events of a turn as JSON lines
pub(crate) mod tty; // terminal modes: echo, raw mode, pending input
pub(crate) mod yes_no; // questions that y or n answers
