//! Acquiring a conversation: its lease in the store, its slot in this process, and its state.
//!
//! A lease is a worker's exclusive right to append to a conversation. It expires unless the
//! [heartbeat](crate::heartbeat) extends it, so that another worker can recover the conversation if
//! this process is lost.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::port::{Begin, Begun, Claim, Journal, Newer, StoreError, Taken};
use adjutant_core::{
    CancellationToken, ConversationKey, Event, Input, InputBody, InputId, Loading, Recorded,
    TraceContext, conversation,
};
use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use crate::RunError;
use crate::clock::millis;
use crate::daily_budget::UnwrittenBookings;
use crate::event::RunEvent;
use crate::faults::{boundary, lease_duration};
use crate::heartbeat::{Heartbeat, LEASE, Lease, RecoveryScan};
use crate::inner::Inner;
use crate::log::Log;
use crate::recent::{Recent, Remembered};
use crate::stream::Emitter;

/// Time after which a waiting task tries to acquire a conversation again, if no change was
/// reported: the process that had its lease may be lost.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The same for tasks that wait beside a dispatcher, which recovers the work of lost processes
/// itself.
pub(crate) const POLL_INTERVAL_DISPATCHED: Duration = Duration::from_secs(2);

/// An input to be accepted, with the first events of the turn that it may start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Submission<'a> {
    pub(crate) input: &'a Input,
    /// The first event of its turn. `None`: it belongs to the open turn.
    pub(crate) turn: Option<&'a Event>,
    /// An event that is recorded before it in a new conversation: the caller's own history.
    pub(crate) first: Option<&'a Event>,
    /// The distributed trace that it belongs to.
    pub(crate) trace: Option<&'a TraceContext>,
}

/// The options of a caller that waits until another worker has released the conversation.
#[derive(Clone, Copy)]
pub(crate) struct WaitOptions<'a> {
    /// Stops the turn of `input`, in whichever process it runs.
    pub(crate) cancelled: &'a CancellationToken,
    /// The input that the caller waits for.
    pub(crate) input: &'a InputId,
    /// True if that input stops a turn.
    pub(crate) is_cancellation: bool,
    /// Gets [`RunEvent::Accepted`], unless the caller knows already.
    pub(crate) emitter: Option<&'a Emitter>,
    /// Time after which the lease is tried again, if no change was reported.
    pub(crate) poll_interval: Duration,
}

/// A conversation whose lease this process has acquired, or is about to.
///
/// Dropped, the lease is released in a background task, so that a cancelled caller does not block
/// the conversation until the lease expires.
pub(crate) struct LeasedConversation {
    journal: Arc<dyn Journal>,
    recent: Arc<Recent>,
    lease: Arc<Lease>,
    guard: Option<OwnedMutexGuard<Option<Remembered>>>,
}

/// A leased conversation with its state.
pub(crate) struct OpenConversation {
    pub(crate) leased: LeasedConversation,
    pub(crate) log: Log,
    /// True if the lease was another worker's, which was lost.
    pub(crate) taken_over: bool,
}

/// Accepts an input, if there is one, and waits until the lease of the conversation is acquired.
/// `None`: there is no such conversation, or the turn of the input was stopped and its calls go on in
/// the task or process that has the lease; the response is in the journal then.
///
/// Waits without a limit for turns in this process: each has a deadline of its own. Waits for
/// another process as long as a turn may take; without a turn deadline, as long as its lease lasts.
///
/// # Errors
/// [`RunError::Busy`] if another process still has the lease by then, and [`RunError::Store`].
pub(crate) async fn acquire(
    inner: &Inner,
    key: &ConversationKey,
    submission: Option<Submission<'_>>,
    waits: Option<WaitOptions<'_>>,
) -> Result<Option<OpenConversation>, RunError> {
    tokio::select! {
        biased;
        open = acquire_lease(inner, key, submission, waits) => open,
        never = cancel_turn_elsewhere(inner, key, waits) => match never {},
        () = turn_stopped(inner, key, waits) => Ok(None),
    }
}

/// Submits a cancellation once the caller cancels and the open turn is that of its input; it may
/// run in another process.
async fn cancel_turn_elsewhere(
    inner: &Inner,
    key: &ConversationKey,
    waits: Option<WaitOptions<'_>>,
) -> Infallible {
    let Some(WaitOptions {
        cancelled, input, ..
    }) = waits
    else {
        return std::future::pending().await;
    };
    cancelled.cancelled().await;
    loop {
        // Before the turn of the input has started there is nothing to stop; a failed read is
        // repeated.
        // The open turn is always the last one.
        if let Ok(Some(last)) = inner.journal.load_turns(key, None, 1).await
            && is_open_turn_of(&last.events, input)
        {
            let id = InputId::from(Uuid::now_v7());
            let body = InputBody::Cancel;
            let stop = Input {
                id,
                at: inner.now(),
                request_id: None,
                fingerprint: None,
                after: 0,
                body,
            };
            if inner.journal.submit(key, &stop).await.is_ok() {
                return std::future::pending().await;
            }
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Waits until the turn of the caller's input was stopped while its calls go on.
async fn turn_stopped(inner: &Inner, key: &ConversationKey, waits: Option<WaitOptions<'_>>) {
    let Some(waits) = waits else {
        return std::future::pending().await;
    };
    let mut stops = inner.outliving_calls.subscribe();
    if !waits.is_cancellation {
        waits.cancelled.cancelled().await;
    }
    loop {
        // This process reports at once; that another one has recorded a stop is found by looking.
        let _ = timeout(waits.poll_interval, stops.changed()).await;
        // A failed read is repeated.
        if let Ok(Some(last)) = inner.journal.load_turns(key, None, 1).await
            && is_open_turn_of(&last.events, waits.input)
            && conversation::is_stopped(&last.events)
        {
            return;
        }
    }
}

/// Returns true if the open turn took the input. A turn that the input is queued behind belongs to
/// another caller and must not be stopped.
fn is_open_turn_of(events: &[Recorded], input: &InputId) -> bool {
    let taking = events
        .iter()
        .rev()
        .find(|recorded| recorded.event.takes_input() == Some(input));
    let turn = taking.and_then(|recorded| recorded.event.turn());
    turn.is_some() && turn == conversation::open_turn(events)
}

async fn acquire_lease(
    inner: &Inner,
    key: &ConversationKey,
    submission: Option<Submission<'_>>,
    waits: Option<WaitOptions<'_>>,
) -> Result<Option<OpenConversation>, RunError> {
    let poll_interval = waits.map_or(POLL_INTERVAL, |waits| waits.poll_interval);
    let mut unnotified = waits.and_then(|waits| waits.emitter);
    if key.agent != inner.name {
        // Conversations of other agents are invisible to this one.
        return Ok(None);
    }
    let mut submission = submission;
    // All tasks of this process lease under the same worker name, so the store cannot tell them
    // apart: the slot lets one at a time have the conversation.
    let slot = inner.recent.slot(key);
    let mut guard = match slot.clone().try_lock_owned() {
        Ok(guard) => guard,
        Err(_) => {
            // An earlier turn runs in this process: the input is accepted before waiting for it.
            if let Some(Submission { input, .. }) = submission.take() {
                inner.journal.submit(key, input).await?;
                emit_accepted(&mut unnotified).await;
            }
            let _queued = inner.queued.enter();
            slot.lock_owned().await
        }
    };
    let mut remembered = guard.take();
    let turn = match submission {
        Some(submission) => {
            Box::pin(turn_with_recall(inner, key, submission, &mut remembered)).await?
        }
        None => None,
    };
    // Made before the lease is requested: if this task is cancelled during the request, dropping it
    // releases a lease that may have been granted.
    let mut leased = LeasedConversation::new(inner, inner.heartbeat.lease(key), guard);
    let until = inner.limits.turn_deadline.map(|time| Instant::now() + time);
    loop {
        leased.renew_epoch(&inner.heartbeat);
        let asked = Instant::now();
        let begin = Begin {
            input: submission.map(|submission| submission.input),
            turn: submission
                .and_then(|submission| turn.as_ref().or(submission.turn))
                .map_or(&[], std::slice::from_ref),
            first: submission.and_then(|submission| submission.first),
            worker: leased.lease.worker(),
            lease: lease_duration(LEASE),
            known: remembered.as_ref().map(Remembered::known),
            at: inner.now(),
        };
        let begun = inner.journal.begin(key, begin).await?;
        emit_accepted(&mut unnotified).await;
        let (newer, taken_over) = match begun {
            Begun::Started(newer) => (newer, false),
            Begun::Claimed { claim, newer } => (newer, claim == Claim::TakenOver),
            Begun::Nothing => {
                leased.unlock_slot(None);
                return Ok(None);
            }
            Begun::Elsewhere => {
                // The input is accepted by now, and must not be accepted again.
                submission = None;
                if until.is_some_and(|until| Instant::now() >= until) {
                    return Err(RunError::Busy);
                }
                // Notified or not, the lease is tried again.
                let _queued = inner.queued.enter();
                let _ = timeout(poll_interval, leased.lease.changes.released()).await;
                continue;
            }
        };
        leased.lease.set_confirmed_at(asked);
        return OpenConversation::load(inner, leased, asked, remembered, newer, taken_over)
            .await
            .map(Some);
    }
}

/// Returns the first event of a turn with the facts of automatic recall, so that both are recorded
/// in one commit with the input. Reads the conversation if it is not cached. `None`: the agent has
/// no automatic recall, or the input needs none.
async fn turn_with_recall(
    inner: &Inner,
    key: &ConversationKey,
    submission: Submission<'_>,
    remembered: &mut Option<Remembered>,
) -> Result<Option<Event>, RunError> {
    let (
        Some(_),
        Some(Event::TurnStarted {
            message,
            call: None,
            ..
        }),
    ) = (&inner.recall, submission.turn)
    else {
        return Ok(None);
    };
    if remembered.is_none() {
        *remembered = inner.current(key).await?;
    }
    let history = || match (remembered, submission.first) {
        (Some(remembered), _) => remembered.conversation().turn_history().messages,
        (None, Some(Event::HistorySet { messages, .. })) => messages.clone(),
        (None, _) => Vec::new(),
    };
    let found = inner.recall_for(key, message, history).await;
    let mut turn = submission.turn.cloned();
    if let Some(Event::TurnStarted { recalled_texts, .. }) = &mut turn {
        *recalled_texts = found;
    }
    Ok(turn)
}

/// Emits [`RunEvent::Accepted`], once.
async fn emit_accepted(unnotified: &mut Option<&Emitter>) {
    if let Some(emitter) = unnotified.take() {
        emitter.emit(|| RunEvent::Accepted).await;
    }
}

/// A conversation that was leased for recovery together with others, and does not run yet. Dropped,
/// the lease is released in a background task.
pub(crate) struct LeasedWork {
    inner: Arc<Inner>,
    taken: Option<(Taken, Lease)>,
    /// A mark of [`Recent`] from before the lease was acquired.
    mark: u64,
}

impl LeasedWork {
    pub(crate) fn new(inner: Arc<Inner>, taken: Taken, scan: &RecoveryScan, mark: u64) -> Self {
        let lease = scan.lease(&taken.key);
        Self {
            inner,
            taken: Some((taken, lease)),
            mark,
        }
    }

    /// Opens the conversation with the lease it has, which costs no commit.
    ///
    /// # Errors
    /// [`RunError`] as [`acquire`].
    pub(crate) async fn open(mut self) -> Result<Option<OpenConversation>, RunError> {
        let Some((Taken { key, claim, .. }, lease)) = self.taken.take() else {
            return Ok(None);
        };
        let inner = &*self.inner;
        let Some(mut guard) = inner.recent.unused_since(&key, self.mark) else {
            // Another task of this process, under the same worker name, has or had the
            // conversation, and may have released the lease.
            return acquire(inner, &key, None, None).await;
        };
        let remembered = guard.take();
        let leased = LeasedConversation::new(inner, lease, guard);
        let known = remembered.as_ref().map(Remembered::known);
        let asked = Instant::now();
        match inner.journal.load_newer(&key, known).await? {
            Some(newer) => {
                let taken_over = claim == Claim::TakenOver;
                OpenConversation::load(inner, leased, asked, remembered, newer, taken_over)
                    .await
                    .map(Some)
            }
            None => {
                leased.unlock_slot(None);
                Ok(None)
            }
        }
    }
}

impl Drop for LeasedWork {
    fn drop(&mut self) {
        if let Some((taken, lease)) = self.taken.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let inner = self.inner.clone();
            runtime.spawn(async move {
                // Best effort: a lease that is not released expires.
                let _ = inner.journal.release(&taken.key, lease.worker()).await;
            });
        }
    }
}

impl OpenConversation {
    /// Folds newer events into the cached state of a leased conversation. `asked`: the time at
    /// which the journal was asked for them.
    async fn load(
        inner: &Inner,
        leased: LeasedConversation,
        asked: Instant,
        remembered: Option<Remembered>,
        newer: Newer,
        taken_over: bool,
    ) -> Result<Self, RunError> {
        boundary("the conversation is ours, nothing of it done");
        let events = newer.events.len()
            + newer
                .restorable
                .as_ref()
                .map_or(0, |found| found.said.len());
        let state = inner
            .state_of(leased.lease.key(), remembered, newer)
            .await?;
        let Some((remembered, inbox)) = state else {
            // A leased conversation cannot be deleted, so the lease was lost.
            return Err(RunError::Store(StoreError::Conflict));
        };
        let bookings = UnwrittenBookings::new(inner.spending.daily_budget.clone());
        let loading = Loading {
            at: inner.now(),
            ms: millis(asked),
            events,
        };
        let log = Log::new(
            remembered,
            inbox,
            leased.lease.worker().epoch,
            bookings,
            loading,
        );
        Ok(Self {
            leased,
            log,
            taken_over,
        })
    }
}

impl LeasedConversation {
    fn new(inner: &Inner, lease: Lease, guard: OwnedMutexGuard<Option<Remembered>>) -> Self {
        Self {
            journal: inner.journal.clone(),
            recent: inner.recent.clone(),
            lease: Arc::new(lease),
            guard: Some(guard),
        }
    }

    /// Replaces the lease by one of the current epoch, if the worker's epoch ended while waiting.
    fn renew_epoch(&mut self, heartbeat: &Arc<Heartbeat>) {
        if self.lease.is_lost() {
            self.lease = Arc::new(heartbeat.lease(self.lease.key()));
        }
    }

    /// Returns the lease, which is notified of every input that was accepted since it was made.
    pub(crate) fn lease(&self) -> Arc<Lease> {
        self.lease.clone()
    }

    /// Runs work on the conversation until it ends or the lease is lost. After an error, or if it
    /// is dropped, the lease is released and the cached state is discarded.
    pub(crate) async fn run<T>(
        self,
        work: impl Future<Output = Result<(T, Log), RunError>>,
    ) -> Result<T, RunError> {
        let result = tokio::select! {
            // In this order: once the lease is lost, another worker may run the turn.
            biased;
            () = self.lease.lost() => Err(StoreError::Conflict.into()),
            result = work => result,
        };
        match result {
            Ok((value, log)) => {
                if !log.is_released() {
                    self.release().await;
                }
                self.unlock_slot(Some(log.into_remembered()));
                Ok(value)
            }
            Err(error) => {
                self.release().await;
                self.unlock_slot(None);
                Err(error)
            }
        }
    }

    async fn release(&self) {
        // Best effort: a lease that is not released expires.
        let _ = self
            .journal
            .release(self.lease.key(), self.lease.worker())
            .await;
    }

    /// Unlocks the slot in this process, after the lease was released: the next task of this
    /// process leases the conversation under the same worker name, and its lease must not be
    /// released.
    fn unlock_slot(mut self, remembered: Option<Remembered>) {
        if let Some(guard) = self.guard.take() {
            self.recent.put_back(self.lease.key(), guard, remembered);
        }
    }
}

impl Drop for LeasedConversation {
    fn drop(&mut self) {
        if let Some(guard) = self.guard.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (journal, recent) = (self.journal.clone(), self.recent.clone());
            let lease = self.lease.clone();
            runtime.spawn(async move {
                let _ = journal.release(lease.key(), lease.worker()).await;
                recent.put_back(lease.key(), guard, None);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use adjutant_core::{ModelId, TurnId, TurnLimits};

    use super::*;

    #[test]
    fn who_waits_behind_a_turn_has_no_turn_to_stop() {
        let (turn, at) = (TurnId(Uuid::nil()), jiff::Timestamp::UNIX_EPOCH);
        let (first, second) = (
            InputId::new("first").unwrap(),
            InputId::new("second").unwrap(),
        );
        let started = Event::TurnStarted {
            turn,
            agent: None,
            version: None,
            metadata: serde_json::Map::new(),
            sent_at: None,
            recalled_texts: Vec::new(),
            input: first.clone(),
            accepted_at: None,
            request_id: None,
            message: "hello".to_owned(),
            message_chars: 5,
            model: ModelId::none(),
            local: None,
            limits: TurnLimits::default(),
            output_schema: None,
            call: None,
            client: None,
            from_others: false,
        };
        let queued = Event::InputQueued {
            turn,
            input: second.clone(),
        };
        let events = Recorded::sequence(1, at, &[started, queued]);
        assert!(is_open_turn_of(&events, &first));
        assert!(!is_open_turn_of(&events, &second));
    }
}
