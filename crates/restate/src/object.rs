//! The object `Conversation`, which Restate calls.
//!
//! # Versions
//!
//! Restate may retry a call in a worker of another version, for instance behind a common address.
//! It then replays the handler's recorded steps, and gives the call up, after all of its attempts,
//! if the handler takes other steps than before. So **a handler takes its first step when the turn
//! has ended**: while the turn runs, the journal of a call holds its input alone, and every version
//! can continue the call of any other. (Before its first step, a call is not pinned to an address
//! either: if that is gone, Restate retries it at the latest one.)
//!
//! The steps at the end take milliseconds, and only the timer depends on them. A change of these
//! steps affects calls that are between two of them at that moment: such a call is given up after
//! two minutes. Until then inputs of that conversation are run by the process that accepts them,
//! and recovery finds turns that expire.

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

/// The header with the address of the caller's subscription to events of the turn.
pub(crate) const REPLY_TO: &str = "adjutant-reply-to";

/// Inactivity timeout of a call: a turn may be silent for long. Restate's default of a minute would
/// end it; lost workers are detected by their connections.
const INACTIVITY: Duration = Duration::from_secs(24 * 60 * 60);
/// The name under which a conversation's object keeps its [`Timer`].
const TIMER: &str = "timer";
/// The name of the step that decides on the next timer.
const DECIDE: &str = "expires";
/// Tolerance in milliseconds within which two expiry times are the same: each is computed anew from
/// the time that is left.
const SAME_TIME_MS: i64 = 1000;
/// Time after a lost connection until Restate is asked if the call was killed.
const KILLED_BY: Duration = Duration::from_millis(100);
/// Time for which a repeated call with the same input id is the same call. Later, the journal
/// recognises the input.
const SAME_CALL: Duration = Duration::from_secs(60 * 60);
/// Attempts of a call, with at most [`BETWEEN_ATTEMPTS`] between two: about two minutes. A call
/// that is given up is replaced by recovery. A paused one, as by default, would block the
/// conversation.
const ATTEMPTS: u64 = 20;
const FIRST_WAIT: Duration = Duration::from_millis(100);
const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(10);

/// The Restate object of conversations, one instance for each.
pub(crate) struct Conversation {
    pub(crate) agent: Agent,
    /// Receives errors of runs.
    pub(crate) report: Arc<dyn Fn(&RunError) + Send + Sync>,
    /// Finds out if a call was killed. `None`: `admin=none`.
    pub(crate) admin: Option<Admin>,
}

/// The delayed call that arrives when a pending call expires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Timer {
    /// Id of the delayed call, by which it is cancelled.
    call: String,
    /// Milliseconds since 1970.
    at: i64,
}

#[restate_sdk::object(client_visibility = "pub(crate)")]
impl Conversation {
    /// Runs the conversation until no input is left or it waits for a person, and schedules a call
    /// for the time when a pending call expires. Cancelling or killing the Restate call stops the
    /// turn.
    #[handler]
    async fn advance(&self, ctx: ObjectContext<'_>) -> Result<(), HandlerError> {
        let Some(key) = conversation_key(ctx.key()) else {
            return Err(
                TerminalError::new_with_code(400, "its key is CONVERSATION:AGENT:USER").into(),
            );
        };
        let stop = CancellationToken::new();
        let watch = StopIfKilled {
            call: ctx.invocation_id().to_owned(),
            admin: self.admin.clone(),
            stop: stop.clone(),
            ended: false,
        };
        let left = {
            let reply_to = ctx.headers().get(REPLY_TO).cloned();
            let mut settled = pin!(self.run_conversation(key, reply_to, stop.clone()));
            // Never fulfilled: it ends only when this call is cancelled.
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
        watch.disarm();
        // The first step: see above.
        let timer: Option<Timer> = ctx.get::<Json<_>>(TIMER).await?.map(Json::into_inner);
        // One millisecond late, because before the expiry the turn would only wait again.
        let due = left
            .map(|left| left + Duration::from_millis(1))
            .map(|left| (left, in_time(left)));
        // Recorded, so that a retry from here decides the same.
        let due = ctx
            .run(|| ready(Ok(Json(due))))
            .name(DECIDE)
            .await?
            .into_inner();
        // If this call is the timer itself, it need not be cancelled.
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

/// Stops the turn of a killed call when it is dropped. A call that only lost its connection
/// continues: Restate retries it.
struct StopIfKilled {
    call: String,
    admin: Option<Admin>,
    stop: CancellationToken,
    ended: bool,
}

impl StopIfKilled {
    /// Ends the watch because the turn has ended.
    fn disarm(mut self) {
        self.ended = true;
    }
}

impl Drop for StopIfKilled {
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
            // An unreachable Restate has killed nothing.
            if admin.has_ended(&call).await.unwrap_or_default() {
                stop.cancel();
            }
        });
    }
}

impl Conversation {
    pub(crate) fn settings() -> ServiceOptions {
        ServiceOptions::new()
            .inactivity_timeout(INACTIVITY)
            .abort_timeout(INACTIVITY)
            .idempotency_retention(SAME_CALL)
            .journal_retention(Duration::ZERO)
            .retry_policy_initial_interval(FIRST_WAIT)
            .retry_policy_exponentiation_factor(2.0)
            .retry_policy_max_interval(BETWEEN_ATTEMPTS)
            .retry_policy_max_attempts(ATTEMPTS)
            .retry_policy_kill_on_max_attempts()
    }

    /// Runs the conversation. Returns the time until a pending call expires.
    async fn run_conversation(
        &self,
        key: ConversationKey,
        reply_to: Option<String>,
        stop: CancellationToken,
    ) -> HandlerResult<Option<Duration>> {
        let agent = self.agent.clone();
        // A task of its own, so that a lost connection stops no tool in the middle. A retry waits
        // for it through the lease.
        let run =
            tokio::spawn(
                async move { agent.run_dispatched(&key, reply_to.as_deref(), &stop).await },
            );
        run.await?.map_err(|error| {
            (self.report)(&error);
            match &error {
                // A retry would fail in the same way.
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

/// Parses the key of an object, also in the first format, `CONVERSATION:USER`, whose agent is
/// `adjutant`.
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
