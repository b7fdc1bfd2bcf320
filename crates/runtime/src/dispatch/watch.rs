//! Liveness of the worker that runs a dispatched turn: it is pinged when it is silent, and its
//! lease is ended when it does not answer.

use std::time::Duration;

use adjutant_core::ConversationKey;
use adjutant_core::port::{Change, Holder};
use tokio::time::Instant;

use crate::event::RunEvent;
use crate::inner::Inner;
use crate::turn_listeners::{PING_INTERVAL, TurnMessage};

/// Time after which this process runs a turn itself, if no worker has started it.
pub(super) const STARTS_WITHIN: Duration = Duration::from_secs(1);

/// Silence after which another process is pinged, and time in which it must answer.
const SILENCE: Duration = Duration::from_millis(800);

/// Delay of a check that shows that this process itself was suspended.
const LATE: Duration = Duration::from_millis(300);

/// Time after which the lease is looked up, if no worker reported a start.
const LEASE_CHECK: Duration = Duration::from_millis(300);

/// Time after which the lease is looked up again, if there is no worker to ping.
const LEASE_CHECK_AGAIN: Duration = Duration::from_secs(2);

/// Time between checks of a conversation that another task of this process runs.
const LOCAL_CHECK: Duration = Duration::from_secs(15);

/// The worker that runs a conversation, as far as it is known.
enum Liveness {
    /// No worker is known to have started.
    Unknown,
    /// A worker of this process, which is suspended when this task is.
    Local,
    /// A worker of another process, with the time of its last message.
    Remote(Holder, Instant),
    /// A worker of another process that was pinged at that time.
    Pinged(Holder, Instant),
    /// A worker that was pinged again after the store answered: the relay works, so its silence
    /// means that it is lost.
    PingedTwice(Holder, Instant),
}

/// Watches the worker of one conversation for signs of life.
pub(super) struct Watch {
    /// The time of the next check.
    pub(super) until: Instant,
    liveness: Liveness,
    /// True if this process waits for the lease of the conversation too.
    is_waiting: bool,
    /// The worker whose lease was ended because it did not answer.
    given_up: Option<Holder>,
}

impl Watch {
    pub(super) fn new(asked: Instant) -> Self {
        Self {
            until: asked + STARTS_WITHIN,
            liveness: Liveness::Unknown,
            is_waiting: false,
            given_up: None,
        }
    }

    /// Returns true if messages belong to the current run, and not to a worker whose lease was
    /// ended.
    pub(super) fn accepts_messages(&self) -> bool {
        self.given_up.is_none()
    }

    /// Returns true if no worker is known to run the conversation.
    pub(super) fn has_no_worker(&self) -> bool {
        matches!(self.liveness, Liveness::Unknown)
    }

    /// Records that this process waits for the lease of the conversation from now on.
    pub(super) fn set_waiting(&mut self) {
        self.is_waiting = true;
        if self.has_no_worker() {
            self.until = Instant::now() + LEASE_CHECK;
        }
    }

    /// Updates the liveness by a message. Returns true if it is the first sign that a worker has
    /// started.
    pub(super) fn observe(&mut self, message: &TurnMessage) -> bool {
        let now = Instant::now();
        if let TurnMessage::WorkerStarted(holder) = message {
            self.given_up.take_if(|given_up| given_up != holder);
        }
        if !self.accepts_messages() {
            return false;
        }
        let had_no_worker = self.has_no_worker();
        let (liveness, wait) = match (
            std::mem::replace(&mut self.liveness, Liveness::Unknown),
            message,
        ) {
            (_, TurnMessage::WorkerStarted(holder)) => {
                (Liveness::Remote(holder.clone(), now), SILENCE)
            }
            (Liveness::Unknown, TurnMessage::Event(RunEvent::TurnStarted { .. })) => {
                (Liveness::Local, LOCAL_CHECK)
            }
            (Liveness::Unknown, _) => return false,
            (_, TurnMessage::End) => (Liveness::Unknown, STARTS_WITHIN),
            (Liveness::Local, _) => (Liveness::Local, LOCAL_CHECK),
            (
                Liveness::Remote(holder, _)
                | Liveness::Pinged(holder, _)
                | Liveness::PingedTwice(holder, _),
                _,
            ) => (Liveness::Remote(holder, now), SILENCE),
        };
        (self.liveness, self.until) = (liveness, now + wait);
        had_no_worker && !self.has_no_worker()
    }

    /// Checks the worker after a silence. Returns true if this process should acquire the
    /// conversation and run it.
    pub(super) async fn check(&mut self, inner: &Inner, key: &ConversationKey) -> bool {
        let now = Instant::now();
        if now > self.until + LATE && !self.has_no_worker() {
            // This process was suspended itself: messages from meanwhile are still in the queue.
            self.until = now + SILENCE;
            return false;
        }
        let last_message = |holder: &Holder, since| {
            let last_message = inner.listeners.last_heard_from(&holder.worker)?;
            (last_message > since).then_some(last_message)
        };
        // Another task may have pinged the worker a moment before; its answer counts too.
        let answered = |holder: &Holder, asked: Instant| {
            last_message(holder, asked.checked_sub(PING_INTERVAL)?)
        };
        let ping = |holder: &Holder| {
            inner
                .listeners
                .ping(&*inner.journal.relay(), &holder.worker)
        };
        let (liveness, until) = match std::mem::replace(&mut self.liveness, Liveness::Unknown) {
            Liveness::Local => (Liveness::Local, now + LOCAL_CHECK),
            Liveness::Unknown if !self.is_waiting => (Liveness::Unknown, now + LEASE_CHECK),
            Liveness::Unknown => match inner.journal.holder(key).await {
                Ok(Some(holder)) if holder.worker != inner.heartbeat.worker() => {
                    ping(&holder);
                    let asked = Instant::now();
                    (Liveness::PingedTwice(holder, asked), asked + SILENCE)
                }
                // A task of this process runs it.
                Ok(Some(_)) => (Liveness::Local, now + LOCAL_CHECK),
                Ok(None) | Err(_) => (Liveness::Unknown, now + LEASE_CHECK_AGAIN),
            },
            Liveness::Remote(holder, since)
                if let Some(last_message) = last_message(&holder, since) =>
            {
                (
                    Liveness::Remote(holder, last_message),
                    last_message + SILENCE,
                )
            }
            Liveness::Pinged(holder, asked) | Liveness::PingedTwice(holder, asked)
                if let Some(last_message) = answered(&holder, asked) =>
            {
                (
                    Liveness::Remote(holder, last_message),
                    last_message + SILENCE,
                )
            }
            Liveness::Remote(holder, _) => {
                ping(&holder);
                (Liveness::Pinged(holder, now), now + SILENCE)
            }
            // The relay may use the store: if the store is slow too, silence proves nothing.
            Liveness::Pinged(holder, _) => match inner.journal.holder(key).await {
                Ok(Some(known)) if known == holder => {
                    ping(&holder);
                    let asked = Instant::now();
                    (Liveness::PingedTwice(holder, asked), asked + SILENCE)
                }
                Ok(_) => (Liveness::Unknown, now + LEASE_CHECK),
                Err(_) => (Liveness::Remote(holder, now), now + SILENCE),
            },
            Liveness::PingedTwice(holder, _) => {
                // If this fails, the next check repeats it.
                if inner
                    .journal
                    .end_claim(key, holder.worker())
                    .await
                    .unwrap_or_default()
                {
                    inner.notifier.notify(&Change::Free(key.clone()));
                    self.given_up = Some(holder);
                }
                (Liveness::Unknown, Instant::now() + LEASE_CHECK_AGAIN)
            }
        };
        // Without a known remote worker, the lease is the only way to find out who runs the turn.
        let starts = !self.is_waiting && matches!(liveness, Liveness::Unknown | Liveness::Local);
        (self.liveness, self.until) = (liveness, until);
        starts
    }
}
