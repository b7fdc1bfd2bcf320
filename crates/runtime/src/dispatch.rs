//! Who has a conversation go on, if it is not the process that accepted the input.

use std::time::Duration;

use adjutant_core::limits::TURN_DEADLINE;
use adjutant_core::port::Turns;
use adjutant_core::{BoxFuture, CancellationToken, ConversationKey, InputId, conversation};
use tokio::time::Instant;

use crate::inner::Inner;

/// How often we look into the journal while somebody else is asked to go on with a conversation.
const LOOK: Duration = Duration::from_secs(2);

/// Has [`Agent::advance`](crate::Agent::advance) called for a conversation, by whichever process, one at a time for each
/// conversation. Nothing that matters rests on it: what was accepted is in the journal, and what nobody sees to goes on in
/// the process that accepted it, or with the next [`Agent::resume`](crate::Agent::resume).
pub trait Dispatch: Send + Sync + 'static {
    /// Has the conversation go on because of this input, and returns when it has ended or waits for a human. The same
    /// input again is the same call.
    ///
    /// # Errors
    /// [`NotDispatched`].
    fn call<'a>(
        &'a self,
        key: &'a ConversationKey,
        input: &'a InputId,
    ) -> BoxFuture<'a, Result<(), NotDispatched>>;

    /// Asks for the conversation to go on, and does not wait for it.
    ///
    /// # Errors
    /// [`NotDispatched`].
    fn send<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<Sent, NotDispatched>>;
}

/// Whether asking was news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It is asked for now.
    Now,
    /// Somebody asked for the same a moment ago, and nothing has come of it yet.
    Before,
}

/// Nobody took the call, or it failed there. Whoever asked does the work, or asks again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the conversation was not handed over: {0}")]
pub struct NotDispatched(pub String);

/// Has somebody else see to an input. `false`: nobody has, so it is for this process to do. That is no danger even if
/// somebody is at it: they hold the claim, and the journal refuses a second writer.
pub(crate) async fn seen_to_elsewhere(
    inner: &Inner,
    dispatch: &dyn Dispatch,
    key: &ConversationKey,
    input: &InputId,
    cancelled: &CancellationToken,
) -> bool {
    let until = Instant::now() + inner.limits.turn_deadline.unwrap_or(TURN_DEADLINE);
    let mut call = dispatch.call(key, input);
    loop {
        let called = tokio::select! {
            called = &mut call => Some(called),
            // A call that hangs must not keep an answer back that is in the journal already.
            () = tokio::time::sleep(LOOK) => None,
            () = cancelled.cancelled() => return false,
            () = tokio::time::sleep_until(until) => return false,
        };
        // An open turn is the last one.
        let seen_to = match inner.journal.load_turns(key, None, 1).await {
            Ok(last) => last.is_none_or(|last| is_seen_to(key, &last, input)),
            Err(_) => false,
        };
        if seen_to || called.is_some() {
            return seen_to;
        }
    }
}

/// Whether an input was taken, and nothing is left to do but for a human.
fn is_seen_to(key: &ConversationKey, last: &Turns, input: &InputId) -> bool {
    let answered = |turn| conversation::response(key.conversation, &last.events, turn).is_some();
    last.inbox.iter().all(|waiting| waiting.id != *input)
        && conversation::open_turn(&last.events).is_none_or(answered)
}
