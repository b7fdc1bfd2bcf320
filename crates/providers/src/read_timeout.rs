//! [`ReadTimeouts`]: bounds on a server's silence, one rule for every provider.
//!
//! Silence is bounded, the length of an answer is not. A server that sends anything is at work and
//! is waited for; one that sends nothing for too long is given up. Work before the first piece
//! cannot be observed: a self-hosted server reads the prompt, a model thinks. That silence may
//! therefore last longer than one in the middle of an answer.

use std::time::Duration;

use adjutant_core::Capabilities;
use url::Url;

use crate::address::is_on_private_network;

/// Silence of a vendor over the network whose model does not think.
const VENDOR_SILENCE: Duration = Duration::from_secs(30);
/// Silence of a vendor's model that thinks, or may, before its answer and in the middle of it: most
/// send nothing meanwhile. The vendors' own SDKs wait for 10 minutes, xAI's guide asks for at least
/// 15 (checked 2026-11-22). If the network itself fails, TCP keep-alive notices earlier.
const THINKING_SILENCE: Duration = Duration::from_secs(15 * 60);
/// Silence after an answer that is complete but has no end mark yet. Short, because nothing but
/// token counts can follow.
const TRAILING_SILENCE: Duration = Duration::from_secs(5);
/// Silence of a self-hosted server in the middle of an answer.
const SELF_HOSTED_SILENCE: Duration = Duration::from_secs(120);
/// Silence while the server works without sending: it reads a prompt, or writes a whole answer.
const UNOBSERVABLE_WORK: Duration = Duration::from_secs(10 * 60);

/// Bounds on a server's silence during one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadTimeouts {
    /// Before the head of an answer, its status and headers.
    pub(crate) head: Duration,
    /// Before the first piece of a streamed answer.
    pub(crate) first: Duration,
    /// Between two pieces of a streamed answer.
    pub(crate) between: Duration,
    /// Before an answer that is not streamed: the server sends nothing until all work is done.
    pub(crate) whole: Duration,
    /// After a streamed answer that is complete except for its end mark.
    pub(crate) trailing: Duration,
    /// True if the same request may be sent again after a silence. False for self-hosted servers:
    /// they would read the prompt from the start, and may still be at work on the first request.
    pub(crate) retry_after_silence: bool,
    /// True if [`ReadTimeouts::within`] shortens the bound before the head: not where a bound was
    /// set, nor for self-hosted servers.
    pub(crate) fits_two_attempts: bool,
}

impl ReadTimeouts {
    /// Returns `set` for every silence if it is given, else the defaults for the kind of server.
    /// `thinks`: the model may think without sending anything.
    fn new(set: Option<Duration>, self_hosted: bool, thinks: bool) -> Self {
        let (first, between, whole) = match (self_hosted, thinks) {
            (true, _) => (UNOBSERVABLE_WORK, SELF_HOSTED_SILENCE, UNOBSERVABLE_WORK),
            (false, true) => (THINKING_SILENCE, THINKING_SILENCE, THINKING_SILENCE),
            (false, false) => (VENDOR_SILENCE, VENDOR_SILENCE, UNOBSERVABLE_WORK),
        };
        let defaults = Self {
            head: first,
            first,
            between,
            whole,
            trailing: TRAILING_SILENCE,
            retry_after_silence: false,
            fits_two_attempts: false,
        };
        Self {
            retry_after_silence: !self_hosted,
            fits_two_attempts: !self_hosted && set.is_none(),
            ..set.map_or(defaults, Self::fixed)
        }
    }

    /// Returns the bounds for a model of a vendor, or of a self-hosted server if `base` is an
    /// address on this machine or a private network.
    pub(crate) fn for_address(
        set: Option<Duration>,
        base: &Url,
        capabilities: &Capabilities,
    ) -> Self {
        Self::new(
            set,
            is_on_private_network(base),
            capabilities.thinking_allowance > 0,
        )
    }

    /// Returns the bounds for a vendor's model, whatever the address: a proxy on this machine may
    /// forward to the vendor.
    pub(crate) fn for_vendor(set: Option<Duration>, capabilities: &Capabilities) -> Self {
        Self::new(set, false, capabilities.thinking_allowance > 0)
    }

    /// Returns the bounds for a self-hosted server.
    pub(crate) fn for_self_hosted(set: Option<Duration>) -> Self {
        Self::new(set, true, false)
    }

    /// Returns the same bound for every silence.
    pub(crate) fn fixed(bound: Duration) -> Self {
        Self {
            head: bound,
            first: bound,
            between: bound,
            whole: bound,
            trailing: TRAILING_SILENCE.min(bound),
            retry_after_silence: false,
            fits_two_attempts: false,
        }
    }

    /// Returns the bounds of a streamed call whose caller waits for `time_left`: a server that
    /// accepts the request and says nothing is given up early enough for a second attempt and its
    /// answer. A vendor that is at work sends the head at once, also for a model that thinks.
    pub(crate) fn within(self, time_left: Option<Duration>) -> Self {
        let Some(left) = time_left.filter(|_| self.fits_two_attempts) else {
            return self;
        };
        // Two attempts, and a quarter of the time for an answer to the second: 45 s of 120 s.
        let share = left * 3 / 8;
        // In round numbers, because the user reads it.
        let rounded = match share.as_secs() {
            0 => share,
            seconds => Duration::from_secs(seconds + u64::from(share.subsec_millis() >= 500)),
        };
        Self {
            head: self.head.min(rounded),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(timeouts: ReadTimeouts) -> (u64, u64, u64) {
        (
            timeouts.first.as_secs(),
            timeouts.between.as_secs(),
            timeouts.whole.as_secs(),
        )
    }

    #[test]
    fn silence_may_last_longer_while_the_server_works_unobserved() {
        assert_eq!(
            seconds(ReadTimeouts::new(None, false, false)),
            (30, 30, 600)
        );
        // A model may think for minutes, also in the middle of an answer.
        assert_eq!(
            seconds(ReadTimeouts::new(None, false, true)),
            (900, 900, 900)
        );
        assert_eq!(
            seconds(ReadTimeouts::new(None, true, false)),
            (600, 120, 600)
        );
        assert!(
            ReadTimeouts::new(None, false, true).retry_after_silence
                && !ReadTimeouts::new(None, true, true).retry_after_silence
        );
    }

    #[test]
    fn two_attempts_fit_into_the_callers_time() {
        let head = |set: Option<u64>, self_hosted, thinks, left: Option<u64>| {
            ReadTimeouts::new(set.map(Duration::from_secs), self_hosted, thinks)
                .within(left.map(Duration::from_secs))
                .head
                .as_secs()
        };
        assert_eq!(head(None, false, true, Some(120)), 45);
        assert_eq!(head(None, false, true, Some(600)), 225);
        assert_eq!(head(None, false, false, Some(120)), 30);
        assert_eq!(head(None, false, false, Some(40)), 15);
        assert_eq!(head(None, false, true, None), 900);
        // What was set holds, and a self-hosted server reads its prompt as long as it takes.
        assert_eq!(head(Some(70), false, true, Some(120)), 70);
        assert_eq!(head(None, true, true, Some(120)), 600);
    }

    #[test]
    fn a_set_timeout_holds_for_every_silence() {
        for (own, thinks) in [(false, false), (false, true), (true, false)] {
            assert_eq!(
                seconds(ReadTimeouts::new(
                    Some(Duration::from_secs(15)),
                    own,
                    thinks
                )),
                (15, 15, 15)
            );
        }
    }
}
