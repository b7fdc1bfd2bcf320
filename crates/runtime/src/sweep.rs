//! Going on with what nobody works on.

use adjutant_core::conversation::{self, Conversation};
use adjutant_core::port::{Due, StoreError, Take, WorkPlace};
use adjutant_core::{
    AgentResponse, CancellationToken, ConversationKey, OutcomeCategory, TurnId, UserId,
};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;

use crate::dispatch::Dispatcher;
use crate::faults::lease;
use crate::heart::LEASE;
use crate::held::{Claimed, open};
use crate::run::{Caller, go_on};
use crate::stream::Emitter;
use crate::{Agent, RunError};

/// Conversations that a process takes up at once, at most.
const AT_ONCE: usize = 16;
/// Once no more than this number of them still run, others are taken.
const REFILL: usize = AT_ONCE / 2;

/// The outcome of looking for work.
#[derive(Debug, Default)]
pub struct Swept {
    /// The response of each turn that got further here.
    pub responses: Vec<AgentResponse>,
    /// Turns that were ended because their workers were lost again and again
    /// ([`OutcomeCategory::Poisoned`]).
    pub given_up: Vec<(ConversationKey, TurnId)>,
    /// What could not go on, and why: what a newer version wrote waits for that version; a store
    /// that is gone is asked again next time. Nothing of it is lost.
    pub left: Vec<(ConversationKey, RunError)>,
}

/// How one conversation ended, with its number in the order they were taken.
type End = (
    usize,
    ConversationKey,
    Result<Option<AgentResponse>, RunError>,
);

impl Swept {
    /// In the order in which they were taken, so that a report is the same every time.
    fn of(mut ends: Vec<End>) -> Self {
        ends.sort_unstable_by_key(|(number, ..)| *number);
        let mut swept = Self::default();
        for (_, key, end) in ends {
            match end {
                Ok(response) => {
                    let gave_up = response
                        .as_ref()
                        .filter(|end| end.outcome == OutcomeCategory::Poisoned);
                    swept.given_up.extend(gave_up.map(|end| (key, end.turn)));
                    swept.responses.extend(response);
                }
                // Somebody else is at it, or was quicker.
                Err(RunError::Busy | RunError::Store(StoreError::Conflict)) => {}
                Err(error) => swept.left.push((key, error)),
            }
        }
        swept
    }
}

impl Agent {
    /// [`Agent::sweep`], without what could not go on.
    ///
    /// # Errors
    /// As [`Agent::sweep`].
    pub async fn resume(&self, user: Option<&UserId>) -> Result<Vec<AgentResponse>, RunError> {
        Ok(self.sweep(user, &CancellationToken::new()).await?.responses)
    }

    /// Goes on with what nobody alive works on in the user's conversations with this agent, or in
    /// everybody's: inputs that were accepted, turns that were running when their process died, and
    /// turns that wait for an answer whose time has run out. Once `stop` fires, no further one is
    /// begun. Several processes that do this at once share the work.
    ///
    /// # Errors
    /// [`RunError::Store`] if the store does not say what there is to do. What stops one
    /// conversation does not stop the others: see [`Swept::left`].
    pub async fn sweep(
        &self,
        user: Option<&UserId>,
        stop: &CancellationToken,
    ) -> Result<Swept, RunError> {
        match self.dispatcher() {
            Some(dispatcher) => self.sweep_with(dispatcher, user, stop).await,
            None => self.sweep_here(user, stop).await,
        }
    }

    async fn sweep_here(
        &self,
        user: Option<&UserId>,
        stop: &CancellationToken,
    ) -> Result<Swept, RunError> {
        // Side by side, so that one that takes long holds up no other.
        let mut running = FuturesUnordered::new();
        let mut ends: Vec<End> = Vec::new();
        let mut begun = 0;
        for due in [Due::Unsettled, Due::Expired(self.now())] {
            let mut after = None;
            while !stop.is_cancelled() {
                let limit = AT_ONCE - running.len();
                let mut taking = std::pin::pin!(self.take(user, due, after, limit));
                let taken = loop {
                    tokio::select! {
                        biased;
                        taken = &mut taking => break taken,
                        Some(end) = running.next() => ends.push(end),
                    }
                };
                let taken = match taken {
                    Ok(taken) => taken,
                    Err(error) if begun == 0 => return Err(error),
                    // What was begun is told; the next time tells this, if it is still so.
                    Err(_) => break,
                };
                let is_all = taken.len() < limit;
                after = taken.last().map(|(place, ..)| *place).or(after);
                for (_, key, claimed) in taken {
                    let number = begun;
                    running.push(async move {
                        let end = self.take_up(&key, claimed).await;
                        (number, key, end)
                    });
                    begun += 1;
                }
                if is_all {
                    break;
                }
                while running.len() > REFILL
                    && let Some(end) = running.next().await
                {
                    ends.push(end);
                }
            }
        }
        ends.extend(running.collect::<Vec<_>>().await);
        Ok(Swept::of(ends))
    }

    /// Claims work. It is given back if nobody waits for it any more.
    async fn take(
        &self,
        user: Option<&UserId>,
        due: Due,
        after: Option<WorkPlace>,
        limit: usize,
    ) -> Result<Vec<(WorkPlace, ConversationKey, Claimed)>, RunError> {
        let (inner, user) = (self.inner().clone(), user.cloned());
        let taking = tokio::spawn(async move {
            let (mark, taking) = (inner.recent.mark(), inner.heart.take());
            let take = Take {
                agent: &inner.name,
                user: user.as_ref(),
                due,
                worker: taking.worker(),
                lease: lease(LEASE),
                after,
                limit,
            };
            let taken = inner.journal.take(take).await?;
            let claimed = |taken: adjutant_core::port::Taken| {
                (
                    taken.place,
                    taken.key.clone(),
                    Claimed::new(inner.of(&taken.key.user).clone(), taken, &taking, mark),
                )
            };
            Ok::<_, StoreError>(taken.into_iter().map(claimed).collect())
        });
        match taking.await {
            Ok(taken) => Ok(taken?),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The program is about to end.
            Err(_) => Ok(Vec::new()),
        }
    }

    /// Runs a conversation that was taken as far as it can go. Returns the response of its last
    /// turn.
    async fn take_up(
        &self,
        key: &ConversationKey,
        claimed: Claimed,
    ) -> Result<Option<AgentResponse>, RunError> {
        let Some(opened) = claimed.open().await? else {
            return Ok(None);
        };
        let (emitter, cancelled) = (&Emitter::default(), &CancellationToken::new());
        let quiet = Caller {
            emitter,
            cancelled,
            input: None,
            trace: None,
        };
        let inner = self.inner().of(&key.user);
        go_on(inner, key, opened, None, quiet, |conversation| {
            response(key, conversation)
        })
        .await
    }

    /// The same by whoever dispatches; what they do not take is done here. Nothing is claimed
    /// before it is known who does it.
    async fn sweep_with(
        &self,
        dispatcher: &Dispatcher,
        user: Option<&UserId>,
        stop: &CancellationToken,
    ) -> Result<Swept, RunError> {
        let inner = self.inner();
        let mut open = inner.journal.unsettled(&inner.name, user).await?;
        for key in inner
            .journal
            .expired(&inner.name, user, inner.now())
            .await?
        {
            if !open.contains(&key) {
                open.push(key);
            }
        }
        let open = dispatcher.due(open);
        let ends = futures::stream::iter(open.into_iter().enumerate())
            .take_while(|_| std::future::ready(!stop.is_cancelled()))
            .map(|(number, key)| async move {
                let end = self.hand_over(dispatcher, &key).await;
                (number, key, end)
            })
            .buffer_unordered(AT_ONCE);
        Ok(Swept::of(ends.collect().await))
    }

    async fn hand_over(
        &self,
        dispatcher: &Dispatcher,
        key: &ConversationKey,
    ) -> Result<Option<AgentResponse>, RunError> {
        let inner = self.inner().of(&key.user);
        if dispatcher.send(key).await {
            return Ok(None);
        }
        let Some(opened) = open(inner, key, None, None).await? else {
            return Ok(None);
        };
        let (emitter, cancelled) = (&Emitter::default(), &CancellationToken::new());
        let quiet = Caller {
            emitter,
            cancelled,
            input: None,
            trace: None,
        };
        go_on(inner, key, opened, None, quiet, |conversation| {
            response(key, conversation)
        })
        .await
    }
}

/// The response of the last turn.
pub(crate) fn response(
    key: &ConversationKey,
    conversation: &Conversation,
) -> Option<AgentResponse> {
    let turn = conversation.current()?.id();
    conversation::response(key.conversation, conversation.recent(), turn)
}
