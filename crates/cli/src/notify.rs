//! `notify.command`: a program of the person's that is run when a question waits for them.

use std::process::Stdio;
use std::time::Duration;

use adjutant_core::{ConversationId, PendingCall, PendingKind};
use adjutant_providers::Provider;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::task::JoinHandle;

use crate::confirm::preview;
use crate::display::{clip, json_line};
use crate::screen::Screen;

/// Stands for the question among the arguments.
const TEXT: &str = "{text}";

/// The longest time that the program may run.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest text, in characters.
const TEXT_CHARS: usize = 200;

/// A turn that took this long before its question: who asked may be looking elsewhere, at a
/// terminal too.
pub(crate) const LOOKS_ELSEWHERE: Duration = Duration::from_secs(10);

/// Runs the person's command, once for each question.
pub(crate) struct Notifier {
    /// The program and its arguments; empty: none.
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

    /// Begins to tell of a call that waits. The answer may come meanwhile.
    pub(crate) fn tell(&mut self, call: &PendingCall, conversation: ConversationId) {
        let Some((program, arguments)) = self.command.split_first() else {
            return;
        };
        let text = text(call);
        let mut command = Command::new(program);
        command
            .args(
                arguments
                    .iter()
                    .map(|argument| argument.replace(TEXT, &text)),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        // Keys of providers are none of its business.
        for variable in Provider::all().filter_map(|provider| provider.key_variable) {
            command.env_remove(variable);
        }
        let told = json_line(&json!({
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
            let run = run(command, format!("{told}\n"));
            let ended = match tokio::time::timeout(PATIENCE, run).await {
                Ok(ended) => ended,
                Err(_) => Err(format!("it was ended after {} s", PATIENCE.as_secs())),
            };
            ended.map_err(|reason| {
                format!("notify.command ({}): {reason}", clip(&program, TEXT_CHARS))
            })
        }));
    }

    /// Waits until all of them have ended, each within its time, and tells which went wrong.
    pub(crate) async fn settle(&mut self, screen: &Screen) {
        for running in self.running.drain(..) {
            if let Ok(Err(reason)) = running.await {
                screen.note(&reason);
            }
        }
    }
}

/// Returns the question in one line. It begins with the tool's name, so that no program takes it
/// for an option or a file.
fn text(call: &PendingCall) -> String {
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

async fn run(mut command: Command, told: String) -> Result<(), String> {
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read it is no worse for that.
        let _ = stdin.write_all(told.as_bytes()).await;
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
            text(&call),
            "fx__send: @/etc/passwd [2J--help (waits for a yes)"
        );
    }
}
