//! What whoever runs the service is told, and the queue of it. The queue is bounded: a reader that stands still costs events, not memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use adjutant_core::{ConversationId, TurnId, UserId};
use adjutant_runtime::{RunError, Warning};
use tokio::sync::mpsc;

/// Events that wait to be read, at most. More are counted and dropped.
const UNREAD_MAX: usize = 4_096;

/// What happens while it serves.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ServiceEvent {
    /// Something is wrong that is ours to mend: with the store, or with a conversation that cannot go on.
    Failed(RunError),
    /// A request was refused for a reason that is to be mended in front of the service. Told now and then, however many there
    /// are.
    Refused(&'static str),
    /// A request was answered. Nothing of what was said is in it.
    Answered {
        /// `GET`, `POST` and so on.
        method: String,
        /// The address as the description has it, with `{…}` for what varies; `-` for one that there is not.
        route: String,
        /// The status.
        status: u16,
        /// Milliseconds until the answer began.
        ms: u64,
        /// Who asked, if that was found out.
        user: Option<UserId>,
        /// `x-request-id`.
        request_id: String,
    },
    /// A turn was ended because the processes that ran it were lost, one after the other.
    GaveUp {
        /// Whose turn it was.
        user: UserId,
        /// Where.
        conversation: ConversationId,
        /// Which.
        turn: TurnId,
    },
    /// Whoever runs the service looked at somebody's turn.
    Looked {
        /// Who looked.
        operator: UserId,
        /// Whose turn it is.
        user: UserId,
        /// The turn.
        turn: TurnId,
        /// Whether what was said in it was shown.
        words: bool,
    },
    /// A model called a tool that there is not. The turn went on.
    Warned(Warning),
    /// The service ended, as it was told to, before all that ran had ended: what was begun is in the journal, and goes on
    /// with the next start or on another replica.
    Unfinished {
        /// How long it was waited for.
        after: Duration,
    },
    /// Events were dropped, because thousands waited to be read.
    Missed {
        /// Their number.
        count: u64,
    },
}

impl std::fmt::Display for ServiceEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Failed(error) => write!(f, "{error}"),
            Self::Refused(reason) => f.write_str(reason),
            Self::Answered { method, route, status, ms, user, request_id } => {
                let user = user.as_ref().map_or("-", UserId::as_str);
                write!(f, "{method} {route} {status} {ms} ms user={user} request={request_id}")
            }
            Self::GaveUp { user, conversation, turn } => write!(
                f,
                "turn {turn} of {user} was given up (ERROR:POISONED): each process that ran it was lost; conversation \
                 {conversation}"
            ),
            Self::Looked { operator, user, turn, words } => {
                let what = if *words { "with what was said" } else { "without what was said" };
                write!(f, "{operator} looked at turn {turn} of {user}, {what}")
            }
            Self::Warned(warning) => write!(f, "warning: {warning}"),
            Self::Unfinished { after } => write!(
                f,
                "not all that ran had ended {} s after the stop; it goes on with the next start, or on another replica",
                after.as_secs()
            ),
            Self::Missed { count } => {
                write!(f, "{count} further events were not told: they were not read fast enough")
            }
        }
    }
}

/// Makes a queue.
pub(crate) fn queue() -> (Events, Unread) {
    queue_of(UNREAD_MAX)
}

fn queue_of(unread_max: usize) -> (Events, Unread) {
    let (sender, receiver) = mpsc::channel(unread_max);
    let missed = Arc::new(AtomicU64::new(0));
    (Events { sender, missed: missed.clone() }, Unread { receiver, missed })
}

/// The end that events are put into.
#[derive(Debug, Clone)]
pub(crate) struct Events {
    sender: mpsc::Sender<ServiceEvent>,
    missed: Arc<AtomicU64>,
}

impl Events {
    /// Puts an event into the queue, or counts it as missed if the queue is full. Never waits. Once the service has ended,
    /// nobody reads it.
    pub(crate) fn tell(&self, event: ServiceEvent) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.sender.try_send(event) {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The end that events are read from.
#[derive(Debug)]
pub(crate) struct Unread {
    receiver: mpsc::Receiver<ServiceEvent>,
    missed: Arc<AtomicU64>,
}

impl Unread {
    /// Waits for the next event and hands it to `report`, with the number of those that were missed since, if any were.
    /// Returns `false` when there will be none any more.
    pub(crate) async fn report_next(&mut self, report: &impl Fn(&ServiceEvent)) -> bool {
        let Some(event) = self.receiver.recv().await else { return false };
        report(&event);
        self.report_missed(report);
        true
    }

    /// Hands everything that is there to `report`, without waiting for more.
    pub(crate) fn report_rest(&mut self, report: &impl Fn(&ServiceEvent)) {
        while let Ok(event) = self.receiver.try_recv() {
            report(&event);
        }
        self.report_missed(report);
    }

    fn report_missed(&self, report: &impl Fn(&ServiceEvent)) {
        let count = self.missed.swap(0, Ordering::Relaxed);
        if count > 0 {
            report(&ServiceEvent::Missed { count });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn what_a_full_queue_does_not_take_is_counted() {
        let (events, mut unread) = queue_of(2);
        for reason in ["one", "two", "three", "four"] {
            events.tell(ServiceEvent::Refused(reason));
        }
        let told = RefCell::new(Vec::new());
        unread.report_rest(&|event| told.borrow_mut().push(event.to_string()));
        assert_eq!(
            told.take(),
            ["one", "two", "2 further events were not told: they were not read fast enough"]
        );

        events.tell(ServiceEvent::Refused("five"));
        unread.report_rest(&|event| told.borrow_mut().push(event.to_string()));
        assert_eq!(told.take(), ["five"]);
    }
}
