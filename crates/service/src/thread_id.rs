//! Ids of conversations in requests: a UUID, or a name chosen by the client.

use adjutant_core::{ConversationId, ConversationKey};
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use uuid::Uuid;

use crate::problem::Problem;
use crate::state::Shared;
use crate::text_length::at_most;
use crate::user::User;

/// Longest name that a client may give a conversation, in characters.
pub(crate) const THREAD_ID_MAX: usize = 200;

/// Namespace for UUIDs of conversations that clients name themselves.
const NAMESPACE: Uuid = Uuid::from_u128(0x5b1c_0f5e_6d1a_4b0e_9a57_5a1f_3a8b_2c11);

/// Extractor for the caller's conversation that the path parameter `thread_id` names. It need not
/// exist.
pub(crate) struct ThreadPath(pub(crate) ConversationKey);

impl FromRequestParts<Shared> for ThreadPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, Problem> {
        let User(user) = User::from_request_parts(parts, state).await?;
        let Path(id) = Path::<String>::from_request_parts(parts, state).await?;
        // An id that cannot be valid names no conversation.
        let conversation = parse_thread_id(&id).map_err(|_| Problem::unknown("conversation"))?;
        Ok(Self(state.agent.key_for(user, conversation)))
    }
}

/// Parses a `thread_id`: the id of a conversation, or a client's name for one.
///
/// # Errors
/// A problem 422 if it is empty or too long.
pub(crate) fn parse_thread_id(thread: &str) -> Result<ConversationId, Problem> {
    at_most("thread_id", thread, THREAD_ID_MAX)?;
    match thread.trim() {
        "" => Err(Problem::invalid(
            "thread_id is empty; leave it out to begin a conversation",
        )),
        name => {
            Ok(ConversationId(Uuid::parse_str(name).unwrap_or_else(|_| {
                Uuid::new_v5(&NAMESPACE, name.as_bytes())
            })))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_has_our_id_or_the_clients_name() {
        let ours = ConversationId(Uuid::now_v7());
        assert_eq!(parse_thread_id(&ours.to_string()).unwrap(), ours);
        assert_eq!(
            parse_thread_id("t_1").unwrap(),
            parse_thread_id(" t_1 ").unwrap()
        );
        assert_ne!(
            parse_thread_id("t_1").unwrap(),
            parse_thread_id("t_2").unwrap()
        );
        assert!(parse_thread_id(" ").is_err() && parse_thread_id(&"x".repeat(201)).is_err());
    }
}
