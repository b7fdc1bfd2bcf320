//! Everything that is kept of a user, gone.

use std::time::Duration;

use adjutant_core::{ConversationKey, Input, InputBody, InputId, UserId, conversation};
use adjutant_store::{TableRows, UserRemoved};
use serde_json::json;

use super::kept::kept;
use crate::confirm::approved;
use crate::display::{clean_line, json_line, plural};
use crate::error::CliError;
use crate::lines::Lines;
use crate::screen::Screen;
use crate::store::Store;

/// Number of tries to remove a user whose turns were stopped, and the time between two tries:
/// together 60 s, longer than the claim of a process that died holds.
const TRIES: u32 = 240;
const BETWEEN: Duration = Duration::from_millis(250);

/// The notice of what is not deleted.
const STAYS: &str = "what stays: files of a vault, backups, log files, and what everybody has spent together, which names nobody";

/// Deletes everything of a user, if somebody types the name again or said yes before.
///
/// # Errors
/// Nothing is kept of the user, nobody said yes, the store cannot be written to, or a turn cannot
/// be stopped.
pub(super) async fn run(
    store: &dyn Store,
    screen: &Screen,
    user: &UserId,
    yes: &[String],
    json: bool,
) -> Result<(), CliError> {
    let kept = kept(store, user).await?;
    // No tool's name covers this.
    if !approved(yes, "") {
        agrees(screen, user, &words(&kept)).await?;
    }
    let refused = store.refuse_user(user).await?;
    let removed = remove(store, user).await?;
    let rows: u64 = removed.rows.iter().map(|table| table.rows).sum();
    if json {
        let rows: Vec<_> = removed.rows.iter().filter(|table| table.rows > 0).collect();
        screen.answer_line(&json_line(&json!({
            "user": user, "conversations": removed.conversations, "tokens_refused": refused, "rows": rows,
        })));
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

/// Counts in words, of what is there.
fn words(kept: &[TableRows]) -> String {
    let rows = |name: &str| {
        kept.iter()
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

/// Asks for the name.
async fn agrees(screen: &Screen, user: &UserId, words: &str) -> Result<(), CliError> {
    let name = clean_line(user.as_str());
    if !screen.asks() {
        return Err(CliError::confirmation_needed(format!(
            "deleting everything of {name} ({words}) needs a yes, and no one can be asked"
        ))
        .or_try("run it again with -y"));
    }
    screen.side_line(&format!("Everything of {name} goes: {words}."));
    screen.side_line(STAYS);
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

/// Removes everything, and stops what runs.
async fn remove(store: &dyn Store, user: &UserId) -> Result<UserRemoved, CliError> {
    let mut conversations = 0;
    let mut stopped: Vec<ConversationKey> = Vec::new();
    let mut running = 0;
    for _ in 0..TRIES {
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

/// Tells whoever runs a turn to stop. `false`: no turn has begun yet that could be stopped.
async fn stop(store: &dyn Store, key: &ConversationKey) -> Result<bool, CliError> {
    let last = store
        .load_turns(key, None, 1)
        .await?
        .map(|last| last.events)
        .unwrap_or_default();
    if conversation::open_turn(&last).is_none() {
        return Ok(false);
    }
    #[expect(clippy::disallowed_methods, reason = "an input says when it was sent")]
    let now = jiff::Timestamp::now();
    let input = Input::new(InputId::from(uuid::Uuid::now_v7()), now, InputBody::Cancel);
    store.submit(key, &input).await?;
    Ok(true)
}
