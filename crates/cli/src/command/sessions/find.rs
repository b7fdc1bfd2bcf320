//! Finds a conversation by a part of its id.

use adjutant_core::port::ConversationSummary;
use adjutant_core::{ConversationId, UserId};

use super::list::list_where;
use crate::command::output::kind;
use crate::error::CliError;
use crate::id_prefix::{Kind, is_meant, the_one};
use crate::store::{self, Store};

pub(super) const CONVERSATIONS: Kind =
    kind("conversation", "conversations", "adjutant sessions list");

/// Returns the user's conversation whose id begins or ends with `given`.
///
/// # Errors
/// There is none or more than one, or the store cannot be read.
pub(crate) async fn find(
    store: &dyn Store,
    user: &UserId,
    given: &str,
) -> Result<ConversationSummary, CliError> {
    if let Ok(conversation) = given.trim().parse::<ConversationId>() {
        let key = store::key_of(user, conversation);
        if let Some(found) = store.summary(&key).await? {
            return Ok(found);
        }
    }
    // Any part of an id may be given, which no index helps with: all are loaded.
    let meant = list_where(store, user, None, usize::MAX, |summary| {
        is_meant(&summary.id.to_string(), given)
    });
    let id = |summary: &ConversationSummary| summary.id.to_string();
    the_one(meant.await?, given, id, &CONVERSATIONS)
}
