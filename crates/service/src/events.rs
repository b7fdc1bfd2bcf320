//! The queue of what whoever runs the service is told. It is bounded: a reader that stands still costs events, not memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

use crate::serve::ServiceEvent;

/// Events that wait to be read, at most. More are counted and dropped.
const UNREAD_MAX: usize = 4_096;

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
