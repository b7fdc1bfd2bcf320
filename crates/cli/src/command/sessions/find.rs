//! Finds a conversation by a part of its id.

use adjutant_core::port::{ConversationFilter, ConversationStore, ConversationSummary};
use adjutant_core::{ConversationId, UserId};

use crate::error::CliError;
use crate::id_prefix::{Kind, is_meant, the_one};
use crate::store::{self, Store};

pub(super) const CONVERSATIONS: Kind = Kind {
    one: "conversation",
    many: "conversations",
    list: "adjutant sessions list",
};
/// Conversations loaded at once.
const AT_ONCE: u32 = 500;

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
    let mut meant = Vec::new();
    let mut filter = ConversationFilter::newest(AT_ONCE);
    loop {
        let page = ConversationStore::list(store, &store::agent_name(), user, &filter).await?;
        let Some(last) = page.last() else { break };
        filter.after = Some(last.cursor());
        meant.extend(
            page.into_iter()
                .filter(|summary| is_meant(&summary.id.to_string(), given)),
        );
    }
    the_one(
        meant,
        given,
        |summary| summary.id.to_string(),
        &CONVERSATIONS,
    )
}
