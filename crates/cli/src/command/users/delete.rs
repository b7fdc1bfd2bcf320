//! Deletion of all data of a user.

use std::time::Duration;

use adjutant_core::{ConversationKey, Input, InputBody, InputId, UserId, conversation};
use adjutant_store::{TableRows, UserRemoved};
use serde_json::json;

use super::row_counts::row_counts;
use crate::clock;
use crate::error::CliError;
use crate::store::Store;
use crate::terminal::confirm::approved;
use crate::terminal::display::{clean_line, plural};
use crate::terminal::lines::Lines;
use crate::terminal::screen::Screen;

/// Attempts to delete a user whose turns are being stopped, and the interval between them: 60 s in
/// total, longer than the lease of a process that died.
const TRIES: u32 = 240;
const BETWEEN: Duration = Duration::from_millis(250);

/// Notice of the data that is not deleted.
const STAYS: &str = "what stays: files of a vault, backups, log files, and the spending of all users together, which has no names";

/// Deletes all data of a user, after the name was typed again or `-y` was given.
///
/// # Errors
/// There is no data of the user, the deletion was not confirmed, the store cannot be written to, or
/// a turn cannot be stopped.
pub(super) async fn run(
    store: &dyn Store,
    screen: &Screen,
    user: &UserId,
    yes: &[String],
) -> Result<(), CliError> {
    let stored = row_counts(store, user).await?;
    // A plain `-y`: `--yes=TOOL` names tools and does not cover this.
    if !approved(yes, "") {
        confirm(screen, user, &describe(&stored)).await?;
    }
    // First, so that the user's tokens start no new turn while the data is deleted.
    let refused = store.refuse_user(user).await?;
    let removed = remove(store, user).await?;
    let rows: u64 = removed.rows.iter().map(|table| table.rows).sum();
    if screen.json() {
        let rows: Vec<_> = removed.rows.iter().filter(|table| table.rows > 0).collect();
        screen.answer_json(&json!({
            "user": user, "conversations": removed.conversations, "tokens_refused": refused, "rows": rows,
        }));
    } else {
        screen.answer_line(&format!(
            "Deleted {} and {} of {}.",
            plural(removed.conversations, "conversation", "conversations"),
            plural(rows, "other row", "other rows"),
            clean_line(user.as_str())
        ));
    }
    screen.note(STAYS);
    Ok(())
}

/// Describes the data by its kinds and counts.
fn describe(stored: &[TableRows]) -> String {
    let rows = |name: &str| {
        stored
            .iter()
            .find(|table| table.name == name)
            .map_or(0, |table| table.rows)
    };
    let mut words = vec![
        plural(rows("conversation"), "conversation", "conversations"),
        plural(rows("decision"), "turn", "turns"),
        plural(rows("task"), "task", "tasks"),
    ];
    for (name, one, many) in [
        ("fact", "fact", "facts"),
        (
            "memory_change",
            "change of the memory",
            "changes of the memory",
        ),
        ("token", "access token", "access tokens"),
    ] {
        if rows(name) > 0 {
            words.push(plural(rows(name), one, many));
        }
    }
    words.join(", ")
}

/// Asks the operator to type the user's name.
async fn confirm(screen: &Screen, user: &UserId, words: &str) -> Result<(), CliError> {
    let name = clean_line(user.as_str());
    if !screen.asks() {
        return Err(CliError::confirmation_needed(format!(
            "deleting everything of {name} ({words}) needs your confirmation, and this is not a terminal"
        ))
        .or_try("run it again with -y"));
    }
    screen.side_line(&format!("Everything of {name} goes: {words}."));
    screen.side_line(STAYS);
    // An input that cannot be read or has ended confirms nothing.
    let typed = Lines::new()
        .answer(screen, "? type the name to delete it for good: ")
        .await
        .ok()
        .flatten();
    let typed = typed.map(|line| String::from_utf8_lossy(&line).trim().to_owned());
    match typed.is_some_and(|typed| typed == name.trim()) {
        true => Ok(()),
        false => Err(CliError::failed(
            "that is not the name; nothing was deleted",
        )),
    }
}

/// Deletes all data, and stops running turns.
async fn remove(store: &dyn Store, user: &UserId) -> Result<UserRemoved, CliError> {
    let mut conversations = 0;
    let mut stopped: Vec<ConversationKey> = Vec::new();
    let mut running = 0;
    for _ in 0..TRIES {
        // A worker writes to the conversation that it runs, so that one stays until its turn has
        // ended; the others are gone after the first attempt.
        let removed = store.remove_user(user).await?;
        conversations += removed.conversations;
        if removed.running.is_empty() {
            return Ok(UserRemoved {
                conversations,
                ..removed
            });
        }
        running = removed.running.len();
        for key in removed.running {
            // Each turn is cancelled once; a second cancellation would only be one more input.
            if !stopped.contains(&key) && stop(store, &key).await? {
                stopped.push(key);
            }
        }
        tokio::time::sleep(BETWEEN).await;
    }
    let still = plural(running as u64, "conversation", "conversations");
    Err(CliError::failed(format!(
        "a turn runs in {still} and does not end; the other conversations are deleted, and all else is kept until it has ended"
    ))
    .or_try("stop the process that runs it, or wait; then the same command again"))
}

/// Cancels a running turn. Returns false if no turn has begun that could be cancelled.
async fn stop(store: &dyn Store, key: &ConversationKey) -> Result<bool, CliError> {
    let last = store
        .load_turns(key, None, 1)
        .await?
        .map(|last| last.events)
        .unwrap_or_default();
    // Without an open turn there is nothing to cancel; the next attempt looks again.
    if conversation::open_turn(&last).is_none() {
        return Ok(false);
    }
    let now = clock::now();
    let input = Input::new(InputId::from(uuid::Uuid::now_v7()), now, InputBody::Cancel);
    store.submit(key, &input).await?;
    Ok(true)
}
