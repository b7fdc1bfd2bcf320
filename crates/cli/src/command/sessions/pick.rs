//! Interactive choice of a conversation.

use std::fmt;

use adjutant_core::port::ConversationSummary;
use adjutant_core::{DecisionFilter, UserId};
use inquire::{InquireError, Select};

use super::find;
use super::list::{list, table, title};
use crate::clock::{ago, now};
use crate::error::CliError;
use crate::store::{self, Store};
use crate::terminal::display::clip;
use crate::terminal::lines::Lines;
use crate::terminal::screen::Screen;

/// Conversations offered at most; older ones can be named by their id.
const OFFERED: u32 = 100;
/// Conversations listed where one is named.
const NAMED: u32 = 20;
/// Conversations with a preview; each preview reads the log.
const PREVIEWED: usize = 30;
const TITLE_CHARS: usize = 44;
const PREVIEW_CHARS: usize = 44;
const PAGE: usize = 12;

/// A line of the list.
struct Offer {
    line: String,
    summary: ConversationSummary,
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

/// Lets the user pick one of their newest conversations by title, time and last answer. `None` if
/// they cancel.
///
/// # Errors
/// There is no conversation, or the terminal cannot show the list.
pub(crate) async fn pick(
    store: &dyn Store,
    user: &UserId,
) -> Result<Option<ConversationSummary>, CliError> {
    let listed = list(store, user, None, OFFERED).await?;
    if listed.is_empty() {
        return Err(none_yet());
    }
    let now = now();
    let mut offers = Vec::with_capacity(listed.len());
    for (at, summary) in listed.into_iter().enumerate() {
        let mut line = format!(
            "{:<10} {}",
            ago(summary.last_activity, now),
            clip(&title(&summary), TITLE_CHARS)
        );
        // Each preview is a query of its own.
        if at < PREVIEWED
            && let Some(preview) = preview(store, user, &summary).await?
        {
            line += &format!("  — {preview}");
        }
        if summary.pending {
            line += "  (waits for an answer)";
        }
        offers.push(Offer { line, summary });
    }
    // The list blocks on key presses, so it runs outside of the async runtime.
    let picked = tokio::task::spawn_blocking(move || {
        Select::new("Go on with:", offers)
            .with_page_size(PAGE)
            .with_help_message("↑↓ or type to search · Enter goes on with it · Esc: none")
            .prompt()
    })
    .await;
    match picked {
        Ok(Ok(offer)) => Ok(Some(offer.summary)),
        Ok(Err(InquireError::OperationCanceled | InquireError::OperationInterrupted)) => Ok(None),
        Ok(Err(error)) => Err(no_picker(&error.to_string())),
        Err(error) => Err(no_picker(&error.to_string())),
    }
}

/// Asks for the id of a conversation, where a list cannot be redrawn. `None` if the user enters
/// nothing.
///
/// # Errors
/// There is no conversation, or none with that id; or the store cannot be read.
pub(super) async fn named(
    store: &dyn Store,
    screen: &Screen,
    user: &UserId,
) -> Result<Option<ConversationSummary>, CliError> {
    let listed = list(store, user, None, NAMED).await?;
    if listed.is_empty() {
        return Err(none_yet());
    }
    screen.side_line(&table(&listed, now()));
    // An input that cannot be read or has ended picks nothing.
    let line = Lines::new()
        .answer(screen, "Go on with (id; Enter: none): ")
        .await
        .ok()
        .flatten();
    let line = line.unwrap_or_default();
    match String::from_utf8_lossy(&line).trim() {
        "" => Ok(None),
        id => Ok(Some(find(store, user, id).await?)),
    }
}

fn none_yet() -> CliError {
    CliError::unknown("there are no conversations yet").or_try("adjutant    begins one")
}

fn no_picker(cause: &str) -> CliError {
    CliError::failed("this terminal cannot show a list to pick from")
        .because(cause)
        .or_try("adjutant sessions list, then -r ID")
}

/// Returns the last answer in a conversation, if the log contains it.
async fn preview(
    store: &dyn Store,
    user: &UserId,
    summary: &ConversationSummary,
) -> Result<Option<String>, CliError> {
    let last = DecisionFilter {
        agent: Some(store::agent_name()),
        conversation: Some(summary.id),
        limit: Some(1),
        ..DecisionFilter::default()
    };
    let last = store.decisions(user, &last).await?.into_iter().next();
    let words = last
        .and_then(|decision| decision.content)
        .map(|words| clip(&words, PREVIEW_CHARS));
    Ok(words.filter(|words| !words.is_empty()))
}
