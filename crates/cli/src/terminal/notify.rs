//! `notify.command`: a program of the user's that is run when a call waits for confirmation.

use std::process::Stdio;
use std::time::Duration;

use adjutant_core::{ConversationId, PendingCall, PendingKind};
use adjutant_providers::Provider;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::task::JoinHandle;

use crate::terminal::confirm::preview;
use crate::terminal::display::{clip, json_line};
use crate::terminal::screen::Screen;

/// Placeholder for the question in the program's arguments.
const TEXT: &str = "{text}";

/// Time the program may run at most.
const PATIENCE: Duration = Duration::from_secs(10);

/// Characters of the question at most.
const TEXT_CHARS: usize = 200;

/// After a turn of this length, the user may be looking elsewhere even at a terminal.
pub(crate) const UNATTENDED_AFTER: Duration = Duration::from_secs(10);

/// Runs the notification command, once for each pending call.
pub(crate) struct Notifier {
    /// The program and its arguments; empty if none is set.
    command: Vec<String>,
    running: Vec<JoinHandle<Result<(), String>>>,
}

impl Notifier {
    pub(crate) fn new(command: Vec<String>) -> Self {
        Self {
            command,
            running: Vec::new(),
        }
    }

    /// Starts the notification command for a pending call, without waiting for it.
    pub(crate) fn notify(&mut self, call: &PendingCall, conversation: ConversationId) {
        let Some((program, arguments)) = self.command.split_first() else {
            return;
        };
        let text = question_line(call);
        // Without a shell, so that no text of a tool can be a command.
        let mut command = Command::new(program);
        command
            .args(
                arguments
                    .iter()
                    .map(|argument| argument.replace(TEXT, &text)),
            )
            .stdin(Stdio::piped())
            // Its output would stand between the lines of the turn, or in the answer of a script.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Dropped when its time is up.
            .kill_on_drop(true);
        // The program has no need for the keys of model providers.
        for variable in Provider::all().filter_map(|provider| provider.key_variable) {
            command.env_remove(variable);
        }
        let question = json_line(&json!({
            "event": "question",
            "id": call.short_id(),
            "conversation": conversation,
            "tool": call.tool,
            "arguments": call.arguments,
            "preview": call.preview,
            "doubt": call.doubt.is_some(),
            "text": text,
        }));
        let program = program.clone();
        self.running.push(tokio::spawn(async move {
            let run = run(command, format!("{question}\n"));
            let ended = match tokio::time::timeout(PATIENCE, run).await {
                Ok(ended) => ended,
                Err(_) => Err(format!("it was ended after {} s", PATIENCE.as_secs())),
            };
            ended.map_err(|reason| {
                format!("notify.command ({}): {reason}", clip(&program, TEXT_CHARS))
            })
        }));
    }

    /// Waits until all started commands have ended, each within its time, and prints the failures.
    pub(crate) async fn wait(&mut self, screen: &Screen) {
        // A task that panicked has printed that already.
        for running in self.running.drain(..) {
            if let Ok(Err(reason)) = running.await {
                screen.note(&reason);
            }
        }
    }
}

/// Formats the question as one line. It begins with the tool's name, so that no program takes it
/// for an option or a file.
fn question_line(call: &PendingCall) -> String {
    let kind = match call.kind() {
        PendingKind::Doubt => "was it done?",
        PendingKind::Confirmation => "waits for a yes",
        PendingKind::Result => "waits for the program that asked",
    };
    clip(
        &format!("{}: {} ({kind})", call.tool, preview(call)),
        TEXT_CHARS,
    )
}

async fn run(mut command: Command, question: String) -> Result<(), String> {
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program may ignore its standard input.
        let _ = stdin.write_all(question.as_bytes()).await;
    }
    let status = child.wait().await.map_err(|error| error.to_string())?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("it failed ({status})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_one_line_that_begins_with_the_tool() {
        let call: PendingCall = serde_json::from_value(json!({
            "call_id": "c", "tool": "fx__send", "arguments": {}, "preview": "@/etc/passwd\n\u{1b}[2J--help", "digest": "d",
            "requested_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-02T00:00:00Z",
        }))
        .unwrap();
        assert_eq!(
            question_line(&call),
            "fx__send: @/etc/passwd [2J--help (waits for a yes)"
        );
    }
}
