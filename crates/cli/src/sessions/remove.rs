//! Another title for a conversation, and its end.

use adjutant_core::port::{ConversationStore, ConversationSummary, Deleted, StoreError};
use adjutant_core::{
    ConversationId, ConversationKey, Role, TITLE_CHARS_MAX, UserId, conversation, given_title,
    transcript,
};
use serde::Serialize;
use serde_json::json;

use super::list::{short, title, turns};
use super::{ago, find, now};
use crate::config::Dirs;
use crate::confirm::approved;
use crate::display::{clip, json_line, plural};
use crate::error::{CliError, Exit};
use crate::lines::says_yes;
use crate::policy;
use crate::screen::Screen;
use crate::store::{self, Store};

/// What goes, or has gone, with a conversation.
#[derive(Debug, Serialize)]
pub(crate) struct Removal {
    pub(crate) id: ConversationId,
    pub(crate) title: String,
    pub(crate) turns: u64,
    /// Messages of people, models and tools. `None`: they cannot be read.
    pub(crate) messages: Option<usize>,
    /// Tool calls among them.
    pub(crate) tool_calls: Option<usize>,
    /// What waits in it for an answer and is not done.
    pub(crate) waiting: Vec<String>,
    /// Messages of the person that were accepted and not yet begun.
    pub(crate) unanswered: usize,
    /// A turn was begun, has not ended and does not wait: something broke it off.
    pub(crate) unfinished: bool,
}

/// Gives a conversation another title. Gives the title as it is kept: on one line, without control
/// characters.
///
/// # Errors
/// No words, or more than a title may have; no such conversation; or the store cannot be written
/// to.
pub(crate) async fn rename(
    store: &dyn Store,
    key: &ConversationKey,
    words: &str,
) -> Result<String, CliError> {
    let title = given_title(words)
        .ok_or_else(|| CliError::usage(format!("a title has 1 to {TITLE_CHARS_MAX} characters")))?;
    if ConversationStore::rename(store, key, &title).await? {
        // Kept as it is, shown without what reorders text.
        Ok(clip(&title, TITLE_CHARS_MAX))
    } else {
        Err(gone())
    }
}

/// Removes a conversation with all that was said and logged in it, and says what that was.
///
/// # Errors
/// A turn runs in it, and nothing was removed; it is gone already; or the store cannot be written
/// to.
pub(super) async fn remove(
    store: &dyn Store,
    user: &UserId,
    summary: &ConversationSummary,
) -> Result<Removal, CliError> {
    let removal = look(store, user, summary).await?;
    let key = store::key_of(user, summary.id);
    match ConversationStore::delete(store, &key).await? {
        Deleted::Yes => Ok(removal),
        Deleted::NoSuchConversation => Err(gone()),
        Deleted::Running => Err(CliError::failed(format!(
            "a turn runs in “{}”; nothing of it was removed",
            title(summary)
        ))
        .or_try("stop it or wait for its end, then again")),
    }
}

/// What would go with it.
async fn look(
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
            let said = transcript(&known.events);
            let said = || said.iter().filter(|message| message.role != Role::System);
            removal.messages = Some(said().count());
            removal.tool_calls = Some(said().map(|message| message.tool_calls.len()).sum());
            removal.waiting = conversation::pending(&known.events)
                .iter()
                .map(|call| clip(&call.preview, 200))
                .collect();
            removal.unanswered = known.inbox.len();
            removal.unfinished = conversation::Status::of(&known.events).runs();
        }
        // What is damaged can be removed all the same.
        Err(StoreError::Unreadable { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(removal)
}

fn gone() -> CliError {
    CliError::unknown("the conversation is gone").or_try("adjutant sessions list")
}

impl Removal {
    /// What it comes to, in words.
    fn words(&self) -> String {
        let mut words = format!(
            "“{}” ({}: {}",
            self.title,
            short(self.id),
            turns(self.turns)
        );
        match (self.messages, self.tool_calls) {
            (Some(messages), Some(calls)) => {
                words += &format!(
                    ", {}, {}, and their logs)",
                    plural(messages as u64, "message", "messages"),
                    plural(calls as u64, "tool call", "tool calls")
                );
            }
            _ => words += ", messages that cannot be read, and their logs)",
        }
        words
    }

    /// What somebody who removes it should know.
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

/// `sessions rm`: all of them are found before the first is removed.
pub(super) async fn ask_and_remove(
    store: &dyn Store,
    screen: &Screen,
    (user, dirs): (&UserId, &Dirs),
    (ids, yes): (&[String], &[String]),
    json: bool,
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
        let removal = look(store, user, summary).await?;
        shown.push(format!(
            "{}, last active {}",
            removal.words(),
            ago(summary.last_activity, now)
        ));
        shown.extend(
            removal
                .warnings()
                .into_iter()
                .map(|warning| format!("  ! {warning}")),
        );
    }
    // No tool's name covers this.
    if !approved(yes, "") {
        agrees(screen, &shown).await?;
    }
    let (mut removed, mut kept) = (Vec::new(), Vec::new());
    for summary in &found {
        match remove(store, user, summary).await {
            Ok(removal) => {
                // The conversation is gone either way; a permission for it allows nothing any more.
                if let Err(error) = policy::forget_conversation(dirs, summary.id) {
                    screen.note(&error.message);
                }
                removed.push(removal);
            }
            Err(error) => kept.push((summary, error)),
        }
    }
    for removal in &removed {
        if !json {
            screen.answer_line(&format!("Removed {}.", removal.words()));
        }
        for warning in removal.warnings() {
            screen.side_line(&format!("  ! {warning}"));
        }
    }
    for (_, error) in &kept {
        screen.error(error);
    }
    if json {
        let kept: Vec<_> = kept
            .iter()
            .map(|(summary, error)| json!({ "id": summary.id, "title": title(summary), "reason": error.message }))
            .collect();
        screen.answer_line(&json_line(&json!({ "removed": removed, "kept": kept })));
    }
    Ok(kept.first().map_or(Exit::Ok, |(_, error)| error.exit))
}

/// Asks for a yes.
async fn agrees(screen: &Screen, shown: &[String]) -> Result<(), CliError> {
    if !screen.asks() {
        let mut error = CliError::confirmation_needed(format!(
            "removing {} needs a yes, and no one can be asked",
            shown.join("; ")
        ));
        error = error.or_try("run it again with -y");
        return Err(error);
    }
    for line in shown {
        screen.side_line(line);
    }
    if says_yes(screen, "? remove for good  [y] yes  [N] no: ", false).await {
        Ok(())
    } else {
        Err(CliError::failed("nothing was removed"))
    }
}
