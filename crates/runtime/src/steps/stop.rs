//! The conditions that stop a turn early: its deadline, or its cancellation.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use adjutant_core::turn::StopReason;
use adjutant_core::{CancellationToken, InputId};
use tokio::time::Instant;

/// The deadline and the cancellation of one turn.
pub(super) struct StopConditions {
    /// Fires when the caller or an input cancels the turn.
    cancelled: CancellationToken,
    /// The input that cancelled the turn, if one did; the end of the turn takes it.
    stopped_by: OnceLock<InputId>,
    /// True if the turn was stopped in another process, which was lost before its calls had ended.
    stopped_before: bool,
    /// `None`: the turn has no deadline.
    deadline: Option<Instant>,
    /// Milliseconds added to the deadline, for compaction, which is not part of the turn's time.
    extension_ms: AtomicU64,
}

impl StopConditions {
    /// Starts the time of a turn. It has no deadline if `time` is `None` or overflows the clock.
    /// `stopped_before`: the turn was stopped in a process that was lost.
    pub(super) fn new(
        cancelled: &CancellationToken,
        time: Option<Duration>,
        stopped_before: bool,
    ) -> Self {
        Self {
            cancelled: cancelled.child_token(),
            stopped_by: OnceLock::new(),
            stopped_before,
            deadline: time.and_then(|time| Instant::now().checked_add(time)),
            extension_ms: AtomicU64::new(0),
        }
    }

    /// Returns the token that fires when the turn is cancelled.
    pub(super) fn cancelled(&self) -> &CancellationToken {
        &self.cancelled
    }

    /// Returns the reason to stop the turn now, if there is one.
    pub(super) fn reason(&self) -> Option<StopReason> {
        if self.cancelled.is_cancelled() || self.stopped_before {
            Some(StopReason::Cancelled)
        } else if self
            .deadline()
            .is_some_and(|deadline| Instant::now() >= deadline)
        {
            Some(StopReason::Deadline)
        } else {
            None
        }
    }

    /// Returns true if the turn only has to settle what a lost process left of it when it was
    /// stopped: nothing new begins, and a person is asked about calls in doubt.
    pub(super) fn only_settles(&self) -> bool {
        self.stopped_before && !self.cancelled.is_cancelled()
    }

    /// Returns the time until the deadline, if there is one.
    pub(super) fn time_left(&self) -> Option<Duration> {
        self.deadline()
            .map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Waits for the deadline; forever if there is none.
    pub(super) async fn deadline_passed(&self) {
        match self.deadline() {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }

    /// Moves the deadline by milliseconds that do not count as the turn's time.
    pub(super) fn extend(&self, ms: u64) {
        self.extension_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// Stops the turn on behalf of a cancelling input.
    pub(super) fn stop(&self, input: InputId) {
        // The first cancellation counts; a later one finds nothing to stop.
        let _ = self.stopped_by.set(input);
        self.cancelled.cancel();
    }

    /// Returns the input that cancelled the turn, if one did.
    pub(super) fn stopped_by(&self) -> Option<&InputId> {
        self.stopped_by.get()
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.deadline? + Duration::from_millis(self.extension_ms.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn input(number: u128) -> InputId {
        InputId::from(Uuid::from_u128(number))
    }

    #[tokio::test(start_paused = true)]
    async fn time_that_is_not_counted_moves_the_end() {
        let end = StopConditions::new(
            &CancellationToken::new(),
            Some(Duration::from_secs(2)),
            false,
        );
        end.extend(1_000);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(
            (end.reason(), end.time_left()),
            (None, Some(Duration::from_secs(1)))
        );
        end.deadline_passed().await;
        assert_eq!(
            (end.reason(), end.time_left()),
            (Some(StopReason::Deadline), Some(Duration::ZERO))
        );
    }

    #[tokio::test]
    async fn the_first_input_that_stops_a_turn_is_named_and_the_caller_goes_on() {
        let caller = CancellationToken::new();
        let end = StopConditions::new(&caller, None, false);
        assert_eq!(
            (end.reason(), end.time_left(), end.stopped_by()),
            (None, None, None)
        );
        end.stop(input(1));
        end.stop(input(2));
        assert_eq!(end.reason(), Some(StopReason::Cancelled));
        assert_eq!(end.stopped_by(), Some(&input(1)));
        assert!(!caller.is_cancelled());
    }

    #[tokio::test]
    async fn a_caller_that_cancels_stops_the_turn_and_no_input_is_named() {
        let caller = CancellationToken::new();
        let end = StopConditions::new(&caller, Some(Duration::MAX), false);
        caller.cancel();
        assert_eq!(
            (end.reason(), end.time_left()),
            (Some(StopReason::Cancelled), None)
        );
        assert_eq!(end.stopped_by(), None);
    }
}
