//! What Restate calls.
//!
//! # Versions
//!
//! A call that began in one version may go on in another: behind a common address whoever is
//! reached goes on with it. Restate then has the handler repeat its steps, and gives the call up,
//! after all of its attempts, if they are not those of before. So **a handler takes its first step
//! when the turn has ended**: as long as the work lasts, the journal of a call holds its input
//! alone, and every version can go on with the call of any other. (Nor is it bound to the address
//! where it began: where that is gone, Restate makes it again at the latest one.)
//!
//! The steps at the end take milliseconds, and nothing but the timer rests on them. Whoever changes
//! them changes them for calls that are between two of them at that moment: such a call is given up
//! after two minutes, in which whoever accepts an input of that conversation does the work, and the
//! sweep sees to what expires.

use std::future::ready;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::port::StoreError;
use adjutant_core::{AgentName, CancellationToken, ConversationKey, UserId};
use adjutant_runtime::{Agent, RunError};
use jiff::Timestamp;
use restate_sdk::endpoint::ServiceOptions;
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};

use crate::admin::Admin;

/// Prefix of keys that name an agent.
const FORMAT: &str = "2";

/// The object's name.
pub(crate) const CONVERSATION: &str = "Conversation";
/// The name of its handler.
pub(crate) const ADVANCE: &str = "advance";

/// The header with the name of the listener who is told what happens.
pub(crate) const REPLY_TO: &str = "adjutant-reply-to";

/// A turn may be silent as long as it takes; by default Restate takes a minute of silence for its
/// end. Who is gone is known by the connection.
const SILENCE: Duration = Duration::from_secs(24 * 60 * 60);
/// The name under which a conversation's object keeps its [`Timer`].
const TIMER: &str = "timer";
/// The name of the step that decides on the next timer.
const DECIDE: &str = "expires";
/// Two times of expiry that are no further apart are the same one, in milliseconds: it is computed
/// anew each time.
const SAME_TIME_MS: i64 = 1000;
/// Time until Restate is asked about a call whose connection ended: whether it was killed.
const KILLED_BY: Duration = Duration::from_millis(100);
/// How long a call that was made with the name of an input stays the same call. Later, the journal
/// knows the input.
const SAME_CALL: Duration = Duration::from_secs(60 * 60);
/// Attempts, with at most [`BETWEEN_ATTEMPTS`] between two: some two minutes. A call that is given
/// up keeps nobody waiting; the sweep makes another. One that is paused, as by default, would close
/// the conversation.
const ATTEMPTS: u64 = 20;
const FIRST_WAIT: Duration = Duration::from_millis(100);
const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(10);

/// Conversations, one object each.
pub(crate) struct Conversation {
    pub(crate) agent: Agent,
    /// Told what failed here.
    pub(crate) report: Arc<dyn Fn(&RunError) + Send + Sync>,
    /// Says whether a call was killed. `None`: nobody does.
    pub(crate) admin: Option<Admin>,
}

/// The call that comes when what a conversation asks expires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Timer {
    /// Its id, by which it is taken back once all is answered.
    call: String,
    /// Milliseconds since 1970.
    at: i64,
}

#[restate_sdk::object(client_visibility = "pub(crate)")]
impl Conversation {
    /// Goes on until the conversation is settled or waits for a person, and has itself called when
    /// what waits expires. Whoever cancels or kills the call stops the turn.
    #[handler]
    async fn advance(&self, ctx: ObjectContext<'_>) -> Result<(), HandlerError> {
        let Some(key) = conversation_key(ctx.key()) else {
            return Err(
                TerminalError::new_with_code(400, "its key is CONVERSATION:AGENT:USER").into(),
            );
        };
        let stop = CancellationToken::new();
        let watch = Watch {
            call: ctx.invocation_id().to_owned(),
            admin: self.admin.clone(),
            stop: stop.clone(),
            ended: false,
        };
        let left = {
            let reply_to = ctx.headers().get(REPLY_TO).cloned();
            let mut settled = pin!(self.settle(key, reply_to, stop.clone()));
            // Nobody fulfils it: it ends when this call is cancelled.
            let (_, cancelled) = ctx.awakeable::<()>();
            tokio::select! {
                left = &mut settled => left?,
                cancelled = cancelled => {
                    stop.cancel();
                    let left = settled.await?;
                    cancelled?;
                    left
                }
            }
        };
        watch.end();
        // The first step: see above.
        let timer: Option<Timer> = ctx.get::<Json<_>>(TIMER).await?.map(Json::into_inner);
        // Not before it has expired, or it would wait again.
        let due = left
            .map(|left| left + Duration::from_millis(1))
            .map(|left| (left, in_time(left)));
        // Kept, so that what follows is the same if the call is made again from here.
        let due = ctx
            .run(|| ready(Ok(Json(due))))
            .name(DECIDE)
            .await?
            .into_inner();
        // The timer that is this call has done its work.
        let timer = timer.filter(|timer| timer.call != ctx.invocation_id());
        if let (Some(timer), Some((_, at))) = (&timer, &due)
            && timer.at.abs_diff(*at) <= SAME_TIME_MS.unsigned_abs()
        {
            return Ok(());
        }
        if let Some(timer) = timer {
            ctx.invocation_handle(timer.call).cancel();
        }
        match due {
            Some((left, at)) => {
                let sent = ctx
                    .object_client::<ConversationClient>(ctx.key())
                    .advance()
                    .send_after(left);
                let call = sent.await?.invocation_id().to_owned();
                ctx.set(TIMER, Json(Timer { call, at }));
            }
            None => ctx.clear(TIMER),
        }
        Ok(())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "tells one timer from another; nothing is decided by it"
)]
fn in_time(left: Duration) -> i64 {
    let left = i64::try_from(left.as_millis()).unwrap_or(i64::MAX);
    Timestamp::now().as_millisecond().saturating_add(left)
}

/// Stops a turn whose call was killed. A call that only lost its connection goes on: Restate makes
/// it again, and nobody wanted it to end.
struct Watch {
    call: String,
    admin: Option<Admin>,
    stop: CancellationToken,
    ended: bool,
}

impl Watch {
    /// Watches no longer.
    fn end(mut self) {
        self.ended = true;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let Some(admin) = self.admin.take() else {
            return;
        };
        let (call, stop) = (std::mem::take(&mut self.call), self.stop.clone());
        tokio::spawn(async move {
            tokio::time::sleep(KILLED_BY).await;
            // Where Restate does not answer, it was not killed by anybody there.
            if admin.has_ended(&call).await.unwrap_or_default() {
                stop.cancel();
            }
        });
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

    /// Returns how long it is until what waits expires.
    async fn settle(
        &self,
        key: ConversationKey,
        reply_to: Option<String>,
        stop: CancellationToken,
    ) -> HandlerResult<Option<Duration>> {
        let agent = self.agent.clone();
        // A task of its own: Restate going away stops no tool in the middle. Called again, it waits
        // for the first.
        let advance = tokio::spawn(async move {
            agent
                .advance_telling(&key, reply_to.as_deref(), &stop)
                .await
        });
        advance.await?.map_err(|error| {
            (self.report)(&error);
            match &error {
                // The same again would end the same.
                RunError::CannotContinue(_) | RunError::Store(StoreError::Unreadable { .. }) => {
                    TerminalError::new(error.to_string()).into()
                }
                _ => error.into(),
            }
        })
    }
}

/// Returns `2:CONVERSATION:AGENT:USER`, the key of a conversation's object. Colons and percent
/// signs in the agent's name are escaped; the user's may hold any. Conversations of two users or
/// agents may have the same id, and are not the same.
pub(crate) fn object_key(key: &ConversationKey) -> String {
    let agent = key.agent.as_str().replace('%', "%25").replace(':', "%3A");
    format!("{FORMAT}:{}:{agent}:{}", key.conversation, key.user)
}

/// Reads the key of an object, also one of the first form, `CONVERSATION:USER`: its agent is the
/// product's.
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
    Some(ConversationKey {
        agent,
        user: UserId::new(user).ok()?,
        conversation: conversation.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_an_object_is_read_back() {
        let conversation = "00000000-0000-7000-8000-000000000001".parse().unwrap();
        for agent in ["adjutant", "a:b%3Ac %25"] {
            let agent = AgentName::new(agent).unwrap();
            let key = ConversationKey {
                agent,
                user: UserId::new("ann:b/c é").unwrap(),
                conversation,
            };
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
        assert_eq!(
            (key.agent, key.user.as_str()),
            (AgentName::adjutant(), "ann:b")
        );
    }
}
