//! What was said, found by what is meant.

use adjutant_core::port::StoreError;
use adjutant_core::{ConversationId, Role, TurnId, UserId};
use adjutant_memory::{PastHit, PastOptions, search_past};
use jiff::Timestamp;
use serde::Serialize;

use super::list::short;
use super::{ago, now};
use crate::display::{clip, json_line};
use crate::error::CliError;
use crate::past::index_all;
use crate::screen::Screen;
use crate::store::{self, Store};

/// The longest title that is shown.
const TITLE_CHARS: usize = 60;
/// Characters that are shown of what was said.
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

/// Prints the conversations in which something was said that fits the words best.
///
/// # Errors
/// The store cannot be read.
pub(super) async fn tell(
    store: &dyn Store,
    screen: &Screen,
    user: &UserId,
    (words, limit): (&str, u32),
    json: bool,
) -> Result<(), CliError> {
    match index_all(store).await {
        // Of what is not in the index, the last turns are looked through all the same.
        Ok(()) | Err(StoreError::ReadOnly { .. } | StoreError::Full { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let agent = store::agent_name();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let options = PastOptions {
        limit,
        chars: PASSAGE_CHARS,
        ..PastOptions::default()
    };
    let search = search_past(store, (&agent, user), words, options).await?;
    let now = now();
    if json {
        let rows = search.found.into_iter().map(|hit| Found {
            id: hit.conversation,
            title: hit.title,
            run_id: hit.turn,
            at: hit.at,
            said_by: hit.said_by,
            passage: hit.passage,
        });
        screen.answer_line(&json_line(&rows.collect::<Vec<_>>()));
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

/// A conversation with the words that were found in it.
fn lines(hit: &PastHit, now: Timestamp) -> String {
    let title = if hit.title.is_empty() {
        "untitled"
    } else {
        hit.title.as_str()
    };
    let who = if hit.said_by == Role::Assistant {
        "assistant"
    } else {
        "you"
    };
    let head = format!(
        "{}  {}  {}",
        short(hit.conversation),
        clip(title, TITLE_CHARS),
        ago(hit.at, now)
    );
    format!("{head}\n    {who}: {}", clip(&hit.passage, PASSAGE_CHARS))
}
