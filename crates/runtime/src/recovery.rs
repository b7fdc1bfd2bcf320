//! Recovery: continuing turns whose worker was lost, and inputs that no worker has taken.

use adjutant_core::conversation::{self, Conversation};
use adjutant_core::port::{Due, StoreError, Take, WorkPlace};
use adjutant_core::{
    AgentResponse, CancellationToken, ConversationKey, OutcomeCategory, TurnId, UserId,
};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tracing::{Instrument as _, debug_span};

use crate::dispatch::Dispatcher;
use crate::event::RunEvent;
use crate::faults::lease_duration;
use crate::heartbeat::LEASE;
use crate::lease::{LeasedWork, OpenConversation, acquire};
use crate::run::{Caller, run_conversation, run_leased};
use crate::stream::{Emitter, RunStream};
use crate::{Agent, RunContext, RunError};

/// Conversations that a process recovers at once, at most.
const CONCURRENCY: usize = 16;
/// More conversations are leased once no more than this number of them still run: one commit for
/// several instead of one for each.
const REFILL: usize = CONCURRENCY / 2;

/// The result of [`Agent::recover_until`].
#[derive(Debug, Default)]
pub struct Recovery {
    /// The response of each turn that was continued in this process.
    pub responses: Vec<AgentResponse>,
    /// Turns that were ended because their workers were lost again and again
    /// ([`OutcomeCategory::Poisoned`]).
    pub given_up: Vec<(ConversationKey, TurnId)>,
    /// Conversations that could not continue, with the error. Events of a newer version wait for a
    /// process of that version; after a failure of the store the next recovery tries again. Nothing
    /// of them is lost.
    pub failed: Vec<(ConversationKey, RunError)>,
}

/// The end of one recovered conversation, with its number in the order in which they were leased.
struct End {
    number: usize,
    key: ConversationKey,
    result: Result<Option<AgentResponse>, RunError>,
}

impl Recovery {
    /// Sorts the ends by the order of their leases, so that a report is deterministic.
    fn from_ends(mut ends: Vec<End>) -> Self {
        ends.sort_unstable_by_key(|end| end.number);
        let mut recovery = Self::default();
        for End { key, result, .. } in ends {
            match result {
                Ok(response) => {
                    let gave_up = response
                        .as_ref()
                        .filter(|end| end.outcome == OutcomeCategory::Poisoned);
                    recovery.given_up.extend(gave_up.map(|end| (key, end.turn)));
                    recovery.responses.extend(response);
                }
                // Another worker has the lease, or wrote first.
                Err(RunError::Busy | RunError::Store(StoreError::Conflict)) => {}
                Err(error) => recovery.failed.push((key, error)),
            }
        }
        recovery
    }
}

impl Agent {
    /// Continues what a crash left open, and returns the responses: [`Agent::recover_until`] for
    /// programs that recover once at their start. Conversations that could not continue are left
    /// out.
    ///
    /// # Errors
    /// [`RunError::Store`] as [`Agent::recover_until`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use adjutant_providers::scripted::ScriptedModel;
    /// # use adjutant_runtime::Agent;
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// # let model = ScriptedModel::new([]);
    /// let agent = Agent::builder("helper").model(model).instruction("Be brief.").build()?;
    /// for response in agent.recover(None).await? {
    ///     println!("finished what a crash left open: {}", response.content);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn recover(&self, user: Option<&UserId>) -> Result<Vec<AgentResponse>, RunError> {
        let never = CancellationToken::new();
        Ok(self.recover_until(user, &never).await?.responses)
    }

    /// Continues all conversations of one user, or of all users, that have something to do and no
    /// live worker: accepted inputs, turns whose process died, and turns whose pending calls have
    /// expired. Once `stop` fires no further conversation is started. Processes that recover at the
    /// same time share the work.
    ///
    /// # Errors
    /// [`RunError::Store`] if the store cannot list the work. An error in one conversation does not
    /// stop the others: see [`Recovery::failed`].
    pub async fn recover_until(
        &self,
        user: Option<&UserId>,
        stop: &CancellationToken,
    ) -> Result<Recovery, RunError> {
        match self.dispatcher() {
            Some(dispatcher) => self.recover_with(dispatcher, user, stop).await,
            None => self.recover_here(user, stop).await,
        }
    }

    /// Continues what is open in the conversation of a context, and returns the events: an open
    /// turn that has no live worker, and accepted messages behind it. [`RunContext::cancelled`]
    /// stops the running turn. The turn continues with the agent's current model; the one it
    /// started with is in [`Event::TurnStarted`].
    ///
    /// The stream ends with [`RunError::CannotContinue`] if the conversation has had no turn.
    ///
    /// [`Event::TurnStarted`]: adjutant_core::Event::TurnStarted
    #[must_use]
    pub fn stream_recovery(&self, context: &RunContext) -> RunStream {
        let (inner, mut own) = (
            self.inner().for_user(&context.user).clone(),
            context.clone(),
        );
        RunStream::spawn(
            &context.cancelled,
            true,
            |emitter, cancelled, _| async move {
                let key = own.key(&inner.name);
                let read = |conversation: &Conversation| {
                    own.history = conversation.kept_messages().to_vec();
                    own.pending = conversation.pending().to_vec();
                    last_response(&key, conversation)
                };
                let response =
                    run_conversation(&inner, &key, None, Caller::new(&emitter, &cancelled), read)
                        .await?
                        .flatten()
                        .ok_or_else(|| {
                            RunError::CannotContinue(
                                "nothing is open in this conversation".to_owned(),
                            )
                        })?;
                emitter
                    .emit(|| RunEvent::Finished(Box::new(response.clone())))
                    .await;
                Ok((response, own))
            },
        )
    }

    async fn recover_here(
        &self,
        user: Option<&UserId>,
        stop: &CancellationToken,
    ) -> Result<Recovery, RunError> {
        // Concurrently, so that a long turn holds up no other.
        let mut running = FuturesUnordered::new();
        let mut ends: Vec<End> = Vec::new();
        let mut started = 0;
        for due in [Due::Unsettled, Due::Expired(self.now())] {
            let mut after = None;
            while !stop.is_cancelled() {
                let limit = CONCURRENCY - running.len();
                let mut leasing = std::pin::pin!(self.lease_work(user, due, after, limit));
                // Running turns must be polled while the store is asked, or their leases expire.
                let leased = loop {
                    tokio::select! {
                        biased;
                        leased = &mut leasing => break leased,
                        Some(end) = running.next() => ends.push(end),
                    }
                };
                let leased = match leased {
                    Ok(leased) => leased,
                    Err(error) if started == 0 => return Err(error),
                    // What was started is reported; a lasting error fails the next recovery.
                    Err(_) => break,
                };
                let is_all = leased.len() < limit;
                after = leased.last().map(|(place, ..)| *place).or(after);
                for (_, key, work) in leased {
                    let number = started;
                    running.push(async move {
                        let result = self.recover_one(&key, work.open()).await;
                        End {
                            number,
                            key,
                            result,
                        }
                    });
                    started += 1;
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
        Ok(Recovery::from_ends(ends))
    }

    /// Leases conversations with work. Runs in a task: if the caller is dropped in the middle, the
    /// leases that were granted are still released.
    async fn lease_work(
        &self,
        user: Option<&UserId>,
        due: Due,
        after: Option<WorkPlace>,
        limit: usize,
    ) -> Result<Vec<(WorkPlace, ConversationKey, LeasedWork)>, RunError> {
        let (inner, user) = (self.inner().clone(), user.cloned());
        let leasing = tokio::spawn(async move {
            let (mark, scan) = (inner.recent.mark(), inner.heartbeat.start_scan());
            let take = Take {
                agent: &inner.name,
                user: user.as_ref(),
                due,
                worker: scan.worker(),
                lease: lease_duration(LEASE),
                after,
                limit,
            };
            let taken = inner.journal.take(take).await?;
            let leased = |taken: adjutant_core::port::Taken| {
                let (place, key) = (taken.place, taken.key.clone());
                let inner = inner.for_user(&key.user).clone();
                (place, key, LeasedWork::new(inner, taken, &scan, mark))
            };
            Ok::<_, StoreError>(taken.into_iter().map(leased).collect())
        });
        match leasing.await {
            Ok(leased) => Ok(leased?),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The runtime is shutting down.
            Err(_) => Ok(Vec::new()),
        }
    }

    /// Runs a conversation as far as possible once it is open. Returns the response of its last
    /// turn.
    async fn recover_one(
        &self,
        key: &ConversationKey,
        open: impl Future<Output = Result<Option<OpenConversation>, RunError>>,
    ) -> Result<Option<AgentResponse>, RunError> {
        let run = async {
            let Some(open) = open.await? else {
                return Ok(None);
            };
            let never = CancellationToken::new();
            let caller = Caller::new(&Emitter::Silent, &never);
            let inner = self.inner().for_user(&key.user);
            run_leased(inner, key, open, None, caller, |conversation| {
                last_response(key, conversation)
            })
            .await
        };
        let span =
            debug_span!("recover", user = key.user.as_str(), conversation = %key.conversation);
        run.instrument(span).await
    }

    /// Requests a run of each conversation from the dispatcher, and runs here what it does not
    /// take. No lease is acquired before it is known which process runs the conversation.
    async fn recover_with(
        &self,
        dispatcher: &Dispatcher,
        user: Option<&UserId>,
        stop: &CancellationToken,
    ) -> Result<Recovery, RunError> {
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
        // A request may wait in the dispatcher's queue for long, so each conversation is requested
        // rarely.
        let due = dispatcher.due(open);
        let ends = futures::stream::iter(due.into_iter().enumerate())
            .take_while(|_| std::future::ready(!stop.is_cancelled()))
            .map(|(number, key)| async move {
                let inner = self.inner().for_user(&key.user);
                let result = if dispatcher.request_run(&key).await {
                    Ok(None)
                } else {
                    self.recover_one(&key, acquire(inner, &key, None, None))
                        .await
                };
                End {
                    number,
                    key,
                    result,
                }
            })
            .buffer_unordered(CONCURRENCY);
        Ok(Recovery::from_ends(ends.collect().await))
    }
}

/// Returns the response of a conversation's last turn.
fn last_response(key: &ConversationKey, conversation: &Conversation) -> Option<AgentResponse> {
    let turn = conversation.current()?.id();
    conversation::response(key.conversation, conversation.recent(), turn)
}
