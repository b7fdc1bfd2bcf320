//! What Restate calls.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::port::StoreError;
use adjutant_core::{AgentName, ConversationKey, UserId};
use adjutant_runtime::{Agent, RunError};
use restate_sdk::endpoint::ServiceOptions;
use restate_sdk::prelude::*;

/// Prefix of keys that name an agent.
const FORMAT: &str = "2";

/// The object's name.
pub(crate) const CONVERSATION: &str = "Conversation";
/// The name of its handler.
pub(crate) const ADVANCE: &str = "advance";

/// The header with the name of the listener who is told what happens.
pub(crate) const REPLY_TO: &str = "adjutant-reply-to";

/// A turn may be silent for longer than Restate lets a handler be by default (a minute): a local model takes ten.
const SILENCE: Duration = Duration::from_secs(15 * 60);
/// How long a call that was made with the name of an input stays the same call. Later, the journal knows the input.
const SAME_CALL: Duration = Duration::from_secs(60 * 60);
/// Attempts, with at most [`BETWEEN_ATTEMPTS`] between two: some two minutes. A call that is given up keeps nobody waiting; the
/// sweep makes another. One that is paused, as by default, would close the conversation.
const ATTEMPTS: u64 = 20;
const FIRST_WAIT: Duration = Duration::from_millis(100);
const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(10);

/// Conversations, one object each.
pub(crate) struct Conversation {
    pub(crate) agent: Agent,
    /// Told what failed here.
    pub(crate) report: Arc<dyn Fn(&RunError) + Send + Sync>,
}

#[restate_sdk::object(client_visibility = "pub(crate)")]
impl Conversation {
    /// Goes on until the conversation is settled or waits for a person, and has itself called when what waits expires.
    #[handler]
    async fn advance(&self, ctx: ObjectContext<'_>) -> Result<(), HandlerError> {
        let Some(key) = conversation_key(ctx.key()) else {
            return Err(TerminalError::new_with_code(400, "its key is CONVERSATION:AGENT:USER").into());
        };
        let reply_to = ctx.headers().get(REPLY_TO).cloned();
        // One unit for Restate: nothing in there is repeated by it, nor has to be the same twice.
        let left = ctx.run(|| self.settle(key, reply_to)).name(ADVANCE).await?.into_inner();
        if let Some(ms) = left {
            // Not before it has expired, or it would wait again.
            let after = Duration::from_millis(ms.saturating_add(1));
            ctx.object_client::<ConversationClient>(ctx.key()).advance().send_after(after);
        }
        Ok(())
    }
}

impl Conversation {
    pub(crate) fn settings() -> ServiceOptions {
        ServiceOptions::new()
            .inactivity_timeout(SILENCE)
            .abort_timeout(SILENCE)
            .idempotency_retention(SAME_CALL)
            .journal_retention(Duration::ZERO)
            .retry_policy_initial_interval(FIRST_WAIT)
            .retry_policy_exponentiation_factor(2.0)
            .retry_policy_max_interval(BETWEEN_ATTEMPTS)
            .retry_policy_max_attempts(ATTEMPTS)
            .retry_policy_kill_on_max_attempts()
    }

    /// Milliseconds until what waits expires.
    async fn settle(
        &self,
        key: ConversationKey,
        reply_to: Option<String>,
    ) -> HandlerResult<Json<Option<u64>>> {
        let agent = self.agent.clone();
        // A task of its own: Restate going away stops no tool in the middle. Called again, it waits for the first.
        let advance = tokio::spawn(async move { agent.advance_telling(&key, reply_to.as_deref()).await });
        match advance.await? {
            Ok(left) => Ok(Json(left.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX)))),
            Err(error) => {
                (self.report)(&error);
                Err(match &error {
                    // The same again would end the same.
                    RunError::CannotContinue(_) | RunError::Store(StoreError::Unreadable { .. }) => {
                        TerminalError::new(error.to_string()).into()
                    }
                    _ => error.into(),
                })
            }
        }
    }
}

/// Returns `2:CONVERSATION:AGENT:USER`, the key of a conversation's object. Colons and percent signs in the agent's name are
/// escaped; the user's may hold any. Conversations of two users or agents may have the same id, and are not the same.
pub(crate) fn object_key(key: &ConversationKey) -> String {
    let agent = key.agent.as_str().replace('%', "%25").replace(':', "%3A");
    format!("{FORMAT}:{}:{agent}:{}", key.conversation, key.user)
}

/// Reads the key of an object, also one of the first form, `CONVERSATION:USER`: its agent is the product's.
fn conversation_key(object: &str) -> Option<ConversationKey> {
    let (conversation, agent, user) = match object.split_once(':')? {
        (FORMAT, rest) => {
            let (conversation, rest) = rest.split_once(':')?;
            let (agent, user) = rest.split_once(':')?;
            let agent = agent.replace("%3A", ":").replace("%25", "%");
            (conversation, AgentName::new(agent).ok()?, user)
        }
        (conversation, user) => (conversation, AgentName::adjutant(), user),
    };
    Some(ConversationKey { agent, user: UserId::new(user).ok()?, conversation: conversation.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_an_object_is_read_back() {
        let conversation = "00000000-0000-7000-8000-000000000001".parse().unwrap();
        for agent in ["adjutant", "a:b%3Ac %25"] {
            let agent = AgentName::new(agent).unwrap();
            let key = ConversationKey { agent, user: UserId::new("ann:b/c é").unwrap(), conversation };
            assert_eq!(conversation_key(&object_key(&key)), Some(key));
        }
        for wrong in [
            "",
            "x:ann",
            "00000000-0000-7000-8000-000000000001",
            "00000000-0000-7000-8000-000000000001:",
            "2:00000000-0000-7000-8000-000000000001:ann",
            "2:00000000-0000-7000-8000-000000000001::ann",
        ] {
            assert_eq!(conversation_key(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_key_of_before_agents_had_names_is_the_products() {
        let key = conversation_key("00000000-0000-7000-8000-000000000001:ann:b").unwrap();
        assert_eq!((key.agent, key.user.as_str()), (AgentName::adjutant(), "ann:b"));
    }
}
