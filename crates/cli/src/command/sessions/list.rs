//! Lists conversations as a table or as JSON.

use std::collections::HashSet;

use adjutant_core::port::{
    BranchPoint, ConversationFilter, ConversationStore, ConversationSummary,
};
use adjutant_core::{ConversationId, SessionState, UserId};
use jiff::Timestamp;
use serde::Serialize;

use crate::clock::{ago, now};
use crate::command::output::{self, cut_to, print_list};
use crate::error::CliError;
use crate::store::{self, Store};
use crate::terminal::display::{clip, plural};
use crate::terminal::screen::Screen;

pub(crate) use adjutant_service::export::title;

/// Characters of an id that are shown, from its end: its beginning is the time, which neighbours
/// share.
const ID_CHARS: usize = 8;
/// Conversations loaded at once.
const AT_ONCE: u32 = 500;
/// Characters of a title at most.
const TITLE_CHARS: usize = 48;

/// A row of `--json`.
#[derive(Debug, Serialize)]
struct Listed {
    id: ConversationId,
    title: String,
    started_at: Timestamp,
    last_activity: Timestamp,
    turns: u64,
    state: SessionState,
    /// True if a call waits for an answer.
    pending: bool,
    /// The position in the parent conversation, for a branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    branched_from: Option<BranchPoint>,
}

/// Returns the user's newest conversations, at most `limit`, whose titles contain the words.
///
/// # Errors
/// The store cannot be read.
pub(crate) async fn list(
    store: &dyn Store,
    user: &UserId,
    search: Option<&str>,
    limit: u32,
) -> Result<Vec<ConversationSummary>, CliError> {
    list_filtered(store, user, search, None, limit).await
}

/// Like [`list`], restricted to the conversations in `only`.
pub(crate) async fn list_filtered(
    store: &dyn Store,
    user: &UserId,
    search: Option<&str>,
    only: Option<&HashSet<ConversationId>>,
    limit: u32,
) -> Result<Vec<ConversationSummary>, CliError> {
    match only {
        None => {
            let filter = filter_by(search, limit);
            Ok(ConversationStore::list(store, &store::agent_name(), user, &filter).await?)
        }
        Some(only) => {
            let wanted = usize::try_from(limit).unwrap_or(usize::MAX).min(only.len());
            list_where(store, user, search, wanted, |summary| {
                only.contains(&summary.id)
            })
            .await
        }
    }
}

/// Returns the user's newest conversations that `fits` accepts, at most `wanted`, loaded page by
/// page.
pub(super) async fn list_where(
    store: &dyn Store,
    user: &UserId,
    search: Option<&str>,
    wanted: usize,
    fits: impl Fn(&ConversationSummary) -> bool,
) -> Result<Vec<ConversationSummary>, CliError> {
    let mut filter = filter_by(search, AT_ONCE);
    let mut found = Vec::new();
    // The folder is not in the database, so the store cannot filter by it.
    while found.len() < wanted {
        let page = ConversationStore::list(store, &store::agent_name(), user, &filter).await?;
        let Some(last) = page.last() else { break };
        filter.after = Some(last.cursor());
        found.extend(page.into_iter().filter(&fits));
    }
    found.truncate(wanted);
    Ok(found)
}

fn filter_by(search: Option<&str>, limit: u32) -> ConversationFilter {
    let search = search.map(str::trim).filter(|words| !words.is_empty());
    ConversationFilter {
        search: search.map(str::to_owned),
        ..ConversationFilter::newest(limit)
    }
}

/// Returns the end of an id, which is enough to name a conversation.
pub(super) fn short(id: ConversationId) -> String {
    let id = id.to_string();
    id.get(id.len().saturating_sub(ID_CHARS)..)
        .unwrap_or(&id)
        .to_owned()
}

/// Returns the end of a conversation's id.
pub(crate) fn short_of(summary: &ConversationSummary) -> String {
    short(summary.id)
}

/// Formats one line per conversation: id, title, turns, last activity, state, pending calls.
pub(crate) fn table(listed: &[ConversationSummary], now: Timestamp) -> String {
    let rows = listed.iter().map(|summary| {
        let branch = summary
            .branched_from
            .map(|from| format!("branch of {}", short(from.conversation)));
        [
            short(summary.id),
            clip(&title(summary), TITLE_CHARS),
            turns(summary.turns),
            ago(summary.last_activity, now),
            summary.state(now).as_str().to_owned(),
            if summary.pending {
                "waits for an answer"
            } else {
                ""
            }
            .to_owned(),
            branch.unwrap_or_default(),
        ]
    });
    output::table(&[], rows)
}

/// Formats a number of turns: `1 turn`, `2 turns`.
pub(super) fn turns(count: u64) -> String {
    plural(count, "turn", "turns")
}

/// Prints the conversations.
pub(super) async fn print(
    store: &dyn Store,
    screen: &Screen,
    user: &UserId,
    search: Option<&str>,
    only: Option<&HashSet<ConversationId>>,
    limit: u32,
) -> Result<(), CliError> {
    // One more than asked for shows if there are more.
    let mut listed = list_filtered(store, user, search, only, limit.saturating_add(1)).await?;
    let more = cut_to(&mut listed, limit);
    let now = now();
    let row = |summary: &ConversationSummary| Listed {
        id: summary.id,
        state: summary.state(now),
        title: summary.title.clone(),
        started_at: summary.created_at,
        last_activity: summary.last_activity,
        turns: summary.turns,
        pending: summary.pending,
        branched_from: summary.branched_from,
    };
    let none = match (search, only) {
        (Some(_), _) => "No conversation has these words in its title.",
        (None, Some(_)) => "No conversation has begun in this folder yet.",
        (None, None) => "There are no conversations yet.",
    };
    let rows: Vec<Listed> = listed.iter().map(row).collect();
    print_list(screen, &rows, none, || table(&listed, now));
    if more {
        screen.note(&format!(
            "there are more: adjutant sessions list -n {}",
            limit.saturating_mul(10)
        ));
    }
    Ok(())
}
