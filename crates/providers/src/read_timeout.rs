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
            first,
            between,
            whole,
            trailing: TRAILING_SILENCE,
            retry_after_silence: false,
        };
        Self {
            retry_after_silence: !self_hosted,
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
            first: bound,
            between: bound,
            whole: bound,
            trailing: TRAILING_SILENCE.min(bound),
            retry_after_silence: false,
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
