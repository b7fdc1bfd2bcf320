//! Renaming and deletion of conversations.

use adjutant_core::port::{ConversationStore, ConversationSummary, Deleted, StoreError};
use adjutant_core::{
    ConversationId, ConversationKey, Role, TITLE_CHARS_MAX, UserId, conversation, given_title,
    transcript,
};
use serde::Serialize;
use serde_json::json;

use super::find;
use super::list::{short, title, turns};
use crate::clock::{ago, now};
use crate::config::Dirs;
use crate::error::{CliError, Exit};
use crate::policy;
use crate::store::{self, Store};
use crate::terminal::confirm::approved;
use crate::terminal::display::{clip, plural};
use crate::terminal::screen::Screen;
use crate::terminal::yes_no::require_yes;

/// Contents of a conversation that is deleted.
#[derive(Debug, Serialize)]
pub(crate) struct Removal {
    pub(crate) id: ConversationId,
    pub(crate) title: String,
    pub(crate) turns: u64,
    /// Messages of user, model and tools; `None` if they cannot be read.
    pub(crate) messages: Option<usize>,
    /// Tool calls among them.
    pub(crate) tool_calls: Option<usize>,
    /// Calls that wait for an answer and were not executed.
    pub(crate) waiting: Vec<String>,
    /// Messages that were accepted and have no turn yet.
    pub(crate) unanswered: usize,
    /// True if a turn is open and does not wait: it was interrupted.
    pub(crate) unfinished: bool,
}

/// Renames a conversation and returns the stored title, on one line and without control characters.
///
/// # Errors
/// The title is empty or too long, there is no such conversation, or the store cannot be written
/// to.
pub(crate) async fn rename(
    store: &dyn Store,
    key: &ConversationKey,
    words: &str,
) -> Result<String, CliError> {
    let title = given_title(words)
        .ok_or_else(|| CliError::usage(format!("a title has 1 to {TITLE_CHARS_MAX} characters")))?;
    if ConversationStore::rename(store, key, &title).await? {
        // Stored unchanged; printed without characters that reorder text.
        Ok(clip(&title, TITLE_CHARS_MAX))
    } else {
        Err(no_such_conversation())
    }
}

/// Deletes a conversation with its messages and logs, and returns what it contained.
///
/// # Errors
/// A turn runs in it, and nothing was deleted; it does not exist any more; or the store cannot be
/// written to.
pub(super) async fn remove(
    store: &dyn Store,
    user: &UserId,
    summary: &ConversationSummary,
) -> Result<Removal, CliError> {
    // Again: the conversation may have changed while the user was asked.
    let removal = inspect(store, user, summary).await?;
    let key = store::key_of(user, summary.id);
    match ConversationStore::delete(store, &key).await? {
        Deleted::Yes => Ok(removal),
        Deleted::NoSuchConversation => Err(no_such_conversation()),
        Deleted::Running => Err(CliError::failed(format!(
            "a turn runs in “{}”; nothing of it was removed",
            title(summary)
        ))
        .or_try("stop it or wait for its end, then again")),
    }
}

/// Returns what a deletion would remove.
async fn inspect(
    store: &dyn Store,
    user: &UserId,
    summary: &ConversationSummary,
) -> Result<Removal, CliError> {
    let key = store::key_of(user, summary.id);
    let mut removal = Removal {
        id: summary.id,
        title: title(summary),
        turns: summary.turns,
        messages: None,
        tool_calls: None,
        waiting: Vec::new(),
        unanswered: 0,
        unfinished: false,
    };
    match store.load(&key).await {
        Ok(known) => {
            let transcript = transcript(&known.events);
            let messages = || {
                transcript
                    .iter()
                    .filter(|message| message.role != Role::System)
            };
            removal.messages = Some(messages().count());
            removal.tool_calls = Some(messages().map(|message| message.tool_calls.len()).sum());
            removal.waiting = conversation::pending(&known.events)
                .iter()
                .map(|call| clip(&call.preview, 200))
                .collect();
            removal.unanswered = known.inbox.len();
            removal.unfinished = conversation::Status::from_events(&known.events).runs();
        }
        // A damaged conversation can be deleted too.
        Err(StoreError::Unreadable { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(removal)
}

fn no_such_conversation() -> CliError {
    CliError::unknown("the conversation is gone").or_try("adjutant sessions list")
}

impl Removal {
    /// Describes the contents in one line.
    fn describe(&self) -> String {
        let (title, id, turns) = (&self.title, short(self.id), turns(self.turns));
        let contents = match (self.messages, self.tool_calls) {
            (Some(messages), Some(calls)) => {
                let messages = plural(messages as u64, "message", "messages");
                format!(
                    "{messages}, {}",
                    plural(calls as u64, "tool call", "tool calls")
                )
            }
            _ => "messages that cannot be read".to_owned(),
        };
        format!("“{title}” ({id}: {turns}, {contents}, and their logs)")
    }

    /// Returns warnings about what would be lost.
    fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self
            .waiting
            .iter()
            .map(|call| format!("waits in it and is not done: {call}"))
            .collect();
        if self.unanswered > 0 {
            warnings.push(format!(
                "not answered yet: {} of yours",
                plural(self.unanswered as u64, "message", "messages")
            ));
        }
        if self.unfinished {
            warnings.push("a turn in it was broken off and is not finished".to_owned());
        }
        warnings
    }
}

/// Runs `sessions rm`: finds all conversations before the first is deleted.
pub(super) async fn ask_and_remove(
    store: &dyn Store,
    screen: &Screen,
    user: &UserId,
    dirs: &Dirs,
    ids: &[String],
    yes: &[String],
) -> Result<Exit, CliError> {
    let mut found: Vec<ConversationSummary> = Vec::new();
    for id in ids {
        let one = find(store, user, id).await?;
        if found.iter().all(|known| known.id != one.id) {
            found.push(one);
        }
    }
    let now = now();
    let mut shown = Vec::new();
    for summary in &found {
        // Before the question, because the user confirms what is listed.
        let removal = inspect(store, user, summary).await?;
        let (contents, last) = (removal.describe(), ago(summary.last_activity, now));
        shown.push(format!("{contents}, last active {last}"));
        let warnings = removal.warnings().into_iter();
        shown.extend(warnings.map(|warning| format!("  ! {warning}")));
    }
    // A plain `-y`: `--yes=TOOL` names tools and does not cover this.
    if !approved(yes, "") {
        confirm(screen, &shown).await?;
    }
    let (mut removed, mut kept) = (Vec::new(), Vec::new());
    for summary in &found {
        match remove(store, user, summary).await {
            Ok(removal) => {
                // The conversation is deleted already; a permission left behind has no effect.
                if let Err(error) = policy::forget_conversation(dirs, summary.id) {
                    screen.note(&error.message);
                }
                removed.push(removal);
            }
            // The others are removed all the same; the exit code is that of the first error.
            Err(error) => kept.push((summary, error)),
        }
    }
    for removal in &removed {
        if !screen.json() {
            screen.answer_line(&format!("Removed {}.", removal.describe()));
        }
        for warning in removal.warnings() {
            screen.side_line(&format!("  ! {warning}"));
        }
    }
    for (_, error) in &kept {
        screen.error(error);
    }
    if screen.json() {
        let kept: Vec<_> = kept
            .iter()
            .map(|(summary, error)| json!({ "id": summary.id, "title": title(summary), "reason": error.message }))
            .collect();
        screen.answer_json(&json!({ "removed": removed, "kept": kept }));
    }
    Ok(kept.first().map_or(Exit::Ok, |(_, error)| error.exit))
}

/// Asks for confirmation.
async fn confirm(screen: &Screen, shown: &[String]) -> Result<(), CliError> {
    let needed = CliError::confirmation_needed(format!(
        "removing {} needs your confirmation, and this is not a terminal",
        shown.join("; ")
    ))
    .or_try("run it again with -y");
    if screen.asks() {
        shown.iter().for_each(|line| screen.side_line(line));
    }
    require_yes(screen, "? remove for good", needed, "nothing was removed").await
}
