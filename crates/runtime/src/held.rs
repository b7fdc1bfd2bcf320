//! Holding a conversation: the claim in the store, the place in this process, and the state that
//! comes with them.

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
use crate::event::RunEvent;
use crate::faults::{boundary, lease};
use crate::heart::{Heart, Hold, LEASE, Taking};
use crate::inner::Inner;
use crate::log::Log;
use crate::purse::Spent;
use crate::recent::{Recent, Remembered};
use crate::stream::Emitter;

/// Time after which it is looked whether another process has let go of the conversation, if nothing
/// was heard of it: it may be gone.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

/// The same for who waits beside a dispatcher, which goes on with the work of a process that is
/// gone.
pub(crate) const LOOK_BESIDE: Duration = Duration::from_secs(2);

/// An input that is not accepted yet, with the events of the turn that may begin with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival<'a> {
    pub(crate) input: &'a Input,
    /// The first event of its turn. `None`: it starts none.
    pub(crate) turn: Option<&'a Event>,
    /// An event that is recorded in front of it in a new conversation.
    pub(crate) first: Option<&'a Event>,
    /// The trace that it belongs to.
    pub(crate) trace: Option<&'a TraceContext>,
}

/// One who waits for a conversation that somebody else has, and may stop what they wait for.
#[derive(Clone, Copy)]
pub(crate) struct Waits<'a> {
    pub(crate) cancelled: &'a CancellationToken,
    /// The input whose turn is stopped.
    pub(crate) input: &'a InputId,
    /// Whoever is told that it is accepted, unless they know.
    pub(crate) emitter: Option<&'a Emitter>,
    /// Time after which it is looked whether the conversation is free, if nothing was heard of it.
    pub(crate) look: Duration,
}

/// A conversation that nobody else works on.
///
/// Dropped, it is given back in the background: whoever is cancelled half-way does not keep others
/// waiting until the claim runs out.
pub(crate) struct Held {
    journal: Arc<dyn Journal>,
    recent: Arc<Recent>,
    hold: Arc<Hold>,
    guard: Option<OwnedMutexGuard<Option<Remembered>>>,
}

/// A conversation that is held, with its state.
pub(crate) struct Opened {
    pub(crate) held: Held,
    pub(crate) log: Log,
    /// The claim was another worker's, which was lost.
    pub(crate) taken_over: bool,
}

/// Waits for the conversation to be ours, and accepts an input first if there is one. `None`: there
/// is no such conversation.
///
/// Turns that run in this process are waited for to their end: each turn in front has a deadline of
/// its own, and one of them is the caller's. What runs in another process is waited for as long as
/// a turn may take; without a deadline, as long as its claim holds.
///
/// # Errors
/// [`RunError::Busy`] if another process still works on it by then, and the store's errors.
pub(crate) async fn open(
    inner: &Inner,
    key: &ConversationKey,
    arrival: Option<Arrival<'_>>,
    waits: Option<Waits<'_>>,
) -> Result<Option<Opened>, RunError> {
    tokio::select! {
        biased;
        opened = hold(inner, key, arrival, waits) => opened,
        never = stop(inner, key, waits) => match never {},
    }
}

/// Stops the turn of an input, wherever it runs, once its sender says so.
async fn stop(inner: &Inner, key: &ConversationKey, waits: Option<Waits<'_>>) -> Infallible {
    let Some(Waits {
        cancelled, input, ..
    }) = waits
    else {
        return std::future::pending().await;
    };
    cancelled.cancelled().await;
    loop {
        // A look that fails is repeated.
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
        sleep(LOOK).await;
    }
}

/// Returns whether the turn that is open took the input. One at whose end it waits is somebody
/// else's.
fn is_open_turn_of(events: &[Recorded], input: &InputId) -> bool {
    let taking = events
        .iter()
        .rev()
        .find(|recorded| recorded.event.takes_input() == Some(input));
    let turn = taking.and_then(|recorded| recorded.event.turn());
    turn.is_some() && turn == conversation::open_turn(events)
}

async fn hold(
    inner: &Inner,
    key: &ConversationKey,
    arrival: Option<Arrival<'_>>,
    waits: Option<Waits<'_>>,
) -> Result<Option<Opened>, RunError> {
    let look = waits.map_or(LOOK, |waits| waits.look);
    let mut unknown = waits.and_then(|waits| waits.emitter);
    if key.agent != inner.name {
        // Another agent's conversation is not there.
        return Ok(None);
    }
    let mut arrival = arrival;
    let slot = inner.recent.slot(key);
    let mut guard = match slot.clone().try_lock_owned() {
        Ok(guard) => guard,
        Err(_) => {
            // It is accepted now, whatever runs in front of it.
            if let Some(Arrival { input, .. }) = arrival.take() {
                inner.journal.submit(key, input).await?;
                tell_accepted(&mut unknown).await;
            }
            let _queued = inner.queued.enter();
            slot.lock_owned().await
        }
    };
    let mut remembered = guard.take();
    let turn = match arrival {
        Some(arrival) => Box::pin(turn_with_memory(inner, key, arrival, &mut remembered)).await?,
        None => None,
    };
    // Made before the first claim: whoever is cancelled in the middle of one may have it.
    let mut held = Held::new(inner, inner.heart.hold(key), guard);
    let until = inner.limits.turn_deadline.map(|time| Instant::now() + time);
    loop {
        held.live_on(&inner.heart);
        let asked = Instant::now();
        let begin = Begin {
            input: arrival.map(|arrival| arrival.input),
            turn: arrival
                .and_then(|arrival| turn.as_ref().or(arrival.turn))
                .map_or(&[], std::slice::from_ref),
            first: arrival.and_then(|arrival| arrival.first),
            worker: held.hold.worker(),
            lease: lease(LEASE),
            known: remembered.as_ref().map(Remembered::known),
            at: inner.now(),
        };
        let begun = inner.journal.begin(key, begin).await?;
        tell_accepted(&mut unknown).await;
        let (newer, taken_over) = match begun {
            Begun::Started(newer) => (newer, false),
            Begun::Claimed { claim, newer } => (newer, claim == Claim::TakenOver),
            Begun::Nothing => {
                held.give_back(None);
                return Ok(None);
            }
            Begun::Elsewhere => {
                arrival = None;
                if until.is_some_and(|until| Instant::now() >= until) {
                    return Err(RunError::Busy);
                }
                // Heard or not: what it led to is read.
                let _queued = inner.queued.enter();
                let _ = timeout(look, held.hold.waiter.free()).await;
                continue;
            }
        };
        held.hold.was_claimed(asked);
        return Opened::of(inner, (held, asked), (remembered, newer), taken_over)
            .await
            .map(Some);
    }
}

/// Returns the first event of a turn with what of a memory is told with its message, so that both
/// are recorded in one commit with the input. A conversation that this process does not know is
/// read for it. `None`: the event is what it was.
async fn turn_with_memory(
    inner: &Inner,
    key: &ConversationKey,
    arrival: Arrival<'_>,
    remembered: &mut Option<Remembered>,
) -> Result<Option<Event>, RunError> {
    let (
        Some(_),
        Some(Event::TurnStarted {
            message,
            call: None,
            ..
        }),
    ) = (&inner.recall, arrival.turn)
    else {
        return Ok(None);
    };
    if remembered.is_none() {
        *remembered = inner.current(key).await?;
    }
    let history = || match (remembered, arrival.first) {
        (Some(remembered), _) => remembered.conversation().recalled().messages,
        (None, Some(Event::HistorySet { messages })) => messages.clone(),
        (None, _) => Vec::new(),
    };
    let found = inner.told_with(key, message, history).await;
    let mut turn = arrival.turn.cloned();
    if let Some(Event::TurnStarted { told, .. }) = &mut turn {
        *told = found;
    }
    Ok(turn)
}

/// Tells whoever does not know it yet.
async fn tell_accepted(unknown: &mut Option<&Emitter>) {
    if let Some(emitter) = unknown.take() {
        emitter.emit(|| RunEvent::Accepted).await;
    }
}

/// A conversation that was claimed together with others, and is not worked on yet. Dropped, it is
/// given back in the background.
pub(crate) struct Claimed {
    inner: Arc<Inner>,
    taken: Option<(Taken, Hold)>,
    /// The time before the claim, as this process counts it.
    mark: u64,
}

impl Claimed {
    pub(crate) fn new(inner: Arc<Inner>, taken: Taken, taking: &Taking, mark: u64) -> Self {
        let hold = taking.hold(&taken.key);
        Self {
            inner,
            taken: Some((taken, hold)),
            mark,
        }
    }

    /// Opens the conversation with the claim there is, which costs no commit.
    ///
    /// # Errors
    /// As [`open`].
    pub(crate) async fn open(mut self) -> Result<Option<Opened>, RunError> {
        let Some((Taken { key, claim, .. }, hold)) = self.taken.take() else {
            return Ok(None);
        };
        let inner = &*self.inner;
        let Some(mut guard) = inner.recent.unused_since(&key, self.mark) else {
            // Somebody in this process, under the same name, is at it or has been, and may have
            // given the claim back.
            return open(inner, &key, None, None).await;
        };
        let remembered = guard.take();
        let held = Held::new(inner, hold, guard);
        let known = remembered.as_ref().map(Remembered::known);
        let asked = Instant::now();
        match inner.journal.load_newer(&key, known).await? {
            Some(newer) => {
                let taken_over = claim == Claim::TakenOver;
                Opened::of(inner, (held, asked), (remembered, newer), taken_over)
                    .await
                    .map(Some)
            }
            None => {
                held.give_back(None);
                Ok(None)
            }
        }
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        if let Some((taken, hold)) = self.taken.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let inner = self.inner.clone();
            runtime.spawn(async move {
                // Best effort: a claim that is not released runs out by itself.
                let _ = inner.journal.release(&taken.key, hold.worker()).await;
            });
        }
    }
}

impl Opened {
    /// Brings what this process remembers of a conversation up to date. `asked`: when the journal
    /// was asked for what is newer.
    async fn of(
        inner: &Inner,
        (held, asked): (Held, Instant),
        (remembered, newer): (Option<Remembered>, Newer),
        taken_over: bool,
    ) -> Result<Self, RunError> {
        boundary("the conversation is ours, nothing of it done");
        let events = newer.events.len()
            + newer
                .restorable
                .as_ref()
                .map_or(0, |found| found.said.len());
        let state = inner.state_of(held.hold.key(), remembered, newer).await?;
        let Some((remembered, inbox)) = state else {
            // It is held, so that nobody deletes it.
            return Err(RunError::Store(StoreError::Conflict));
        };
        let spent = Spent::new(inner.spending.purse.clone());
        let loading = Loading {
            at: inner.now(),
            ms: millis(asked),
            events,
        };
        let log = Log::new(remembered, inbox, held.hold.worker().epoch, spent, loading);
        Ok(Self {
            held,
            log,
            taken_over,
        })
    }
}

impl Held {
    fn new(inner: &Inner, hold: Hold, guard: OwnedMutexGuard<Option<Remembered>>) -> Self {
        Self {
            journal: inner.journal.clone(),
            recent: inner.recent.clone(),
            hold: Arc::new(hold),
            guard: Some(guard),
        }
    }

    /// Goes on to wait for the claim under another epoch, if the one in which it began is over.
    fn live_on(&mut self, heart: &Arc<Heart>) {
        if self.hold.is_over() {
            self.hold = Arc::new(heart.hold(self.hold.key()));
        }
    }

    /// Returns what is known of the claim, and hears of every input that was accepted since.
    pub(crate) fn hold(&self) -> Arc<Hold> {
        self.hold.clone()
    }

    /// Runs work on the conversation until it ends or the claim is lost. After an error, or if it
    /// is dropped, the claim is released and what this process knew of the conversation is
    /// forgotten.
    pub(crate) async fn run<T>(
        self,
        work: impl Future<Output = Result<(T, Log), RunError>>,
    ) -> Result<T, RunError> {
        let result = tokio::select! {
            // In this order: what is lost is not worked on any further.
            biased;
            () = self.hold.lost() => Err(StoreError::Conflict.into()),
            result = work => result,
        };
        match result {
            Ok((value, log)) => {
                if !log.is_released() {
                    self.release_claim().await;
                }
                self.give_back(Some(log.into_remembered()));
                Ok(value)
            }
            Err(error) => {
                self.release_claim().await;
                self.give_back(None);
                Err(error)
            }
        }
    }

    async fn release_claim(&self) {
        // Best effort: a claim that is not released runs out by itself.
        let _ = self
            .journal
            .release(self.hold.key(), self.hold.worker())
            .await;
    }

    /// Unlocks the place in this process. The claim was released before: the next one in this
    /// process claims under the same name, and its claim must not be released.
    fn give_back(mut self, remembered: Option<Remembered>) {
        if let Some(guard) = self.guard.take() {
            self.recent.put_back(self.hold.key(), guard, remembered);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(guard) = self.guard.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (journal, recent) = (self.journal.clone(), self.recent.clone());
            let hold = self.hold.clone();
            runtime.spawn(async move {
                let _ = journal.release(hold.key(), hold.worker()).await;
                recent.put_back(hold.key(), guard, None);
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
            told: Vec::new(),
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
