//! Conversation search.

use adjutant_core::port::StoreError;
use adjutant_core::{ConversationId, Role, TurnId, UserId};
use adjutant_memory::{ConversationHit, ConversationSearchOptions, search_conversations};
use jiff::Timestamp;
use serde::Serialize;

use super::list::short;
use crate::clock::{ago, now};
use crate::error::CliError;
use crate::search_index::index_all;
use crate::store::{self, Store};
use crate::terminal::display::clip;
use crate::terminal::screen::Screen;

/// Characters of a title at most.
const TITLE_CHARS: usize = 60;
/// Characters of a passage at most.
const PASSAGE_CHARS: usize = 240;

/// A row of `--json`.
#[derive(Debug, Serialize)]
struct Found {
    id: ConversationId,
    title: String,
    run_id: TurnId,
    at: Timestamp,
    said_by: Role,
    passage: String,
}

/// Prints the conversations that match the words, best first.
///
/// # Errors
/// The store cannot be read.
pub(super) async fn print(
    store: &dyn Store,
    screen: &Screen,
    user: &UserId,
    words: &str,
    limit: u32,
) -> Result<(), CliError> {
    match index_all(store).await {
        // Without an up-to-date index, the newest turns are still searched directly.
        Ok(()) | Err(StoreError::ReadOnly { .. } | StoreError::Full { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let agent = store::agent_name();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let options = ConversationSearchOptions {
        limit,
        chars: PASSAGE_CHARS,
        ..ConversationSearchOptions::default()
    };
    let search = search_conversations(store, &agent, user, words, options).await?;
    let now = now();
    if screen.json() {
        let rows = search.found.into_iter().map(|hit| Found {
            id: hit.conversation,
            title: hit.title,
            run_id: hit.turn,
            at: hit.at,
            said_by: hit.said_by,
            passage: hit.passage,
        });
        screen.answer_json(&rows.collect::<Vec<_>>());
    } else if search.found.is_empty() {
        screen.answer_line("Nothing like that was said in any conversation.");
    } else {
        search
            .found
            .iter()
            .for_each(|hit| screen.answer_line(&lines(hit, now)));
        screen.note("read one: adjutant sessions show ID; go on with it: adjutant chat -r ID");
    }
    if !search.is_complete {
        screen.note(
            "older conversations were not looked through: they are not in the index, which cannot be written",
        );
    }
    Ok(())
}

/// Formats a conversation with its matching passage.
fn lines(hit: &ConversationHit, now: Timestamp) -> String {
    let who = if hit.said_by == Role::Assistant {
        "assistant"
    } else {
        "you"
    };
    let head = format!(
        "{}  {}  {}",
        short(hit.conversation),
        clip(&hit.title, TITLE_CHARS),
        ago(hit.at, now)
    );
    format!("{head}\n    {who}: {}", clip(&hit.passage, PASSAGE_CHARS))
}
