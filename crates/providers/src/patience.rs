//! Bounds on silence: one rule for every provider.
//!
//! Silence is bounded, work is not. A server that sends anything is at work and is waited for; one
//! that sends nothing for too long is given up. Before an answer begins nothing can be seen of the
//! work: a server of one's own reads the prompt, a model thinks. That silence may last longer than
//! one in the middle of an answer.

use std::time::Duration;

use adjutant_core::Capabilities;
use url::{Host, Url};

use crate::connection::{Connection, is_on_this_machine};

/// Silence of a vendor over the network whose model does not think.
const VENDOR: Duration = Duration::from_secs(30);
/// Silence of a vendor's model that thinks, or may, before it says something and in between: most
/// are silent meanwhile. The vendors' own SDKs wait for 10 minutes, xAI's guide asks for at least
/// 15 (checked 2026-11-22). Where the network is gone, the system's probes of the connection notice
/// that earlier.
const THOUGHT: Duration = Duration::from_secs(15 * 60);
/// Silence behind an answer that is complete as far as it tells, where nothing tells that no more
/// comes.
const AFTERMATH: Duration = Duration::from_secs(5);
/// Silence of a server of one's own in the middle of an answer.
const OWN: Duration = Duration::from_secs(120);
/// Silence while work goes on that cannot be seen: a prompt is read, a whole answer is written.
const UNSEEN_WORK: Duration = Duration::from_secs(10 * 60);

/// Bounds on a server's silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Patience {
    /// Before the first piece of a streamed answer.
    pub(crate) first: Duration,
    /// Between two pieces of it.
    pub(crate) between: Duration,
    /// Before an answer that comes as a whole: all of the work is unseen.
    pub(crate) whole: Duration,
    /// Behind a streamed answer that lacks nothing but its mark of the end.
    pub(crate) behind: Duration,
    /// Allows to send the same request again after a silence. A server of one's own would read it
    /// from the start, and may still be at work on the first.
    pub(crate) asks_again: bool,
}

impl Patience {
    /// As set, else what suits the server. `own`: it is one of the person's own. `thinks`: the
    /// model may think unseen before it answers.
    pub(crate) fn of(set: Option<Duration>, own: bool, thinks: bool) -> Self {
        let (first, between, whole) = match (own, thinks) {
            (true, _) => (UNSEEN_WORK, OWN, UNSEEN_WORK),
            (false, true) => (THOUGHT, THOUGHT, THOUGHT),
            (false, false) => (VENDOR, VENDOR, UNSEEN_WORK),
        };
        match set {
            Some(set) => Self {
                asks_again: !own,
                ..Self::fixed(set)
            },
            None => Self {
                first,
                between,
                whole,
                behind: AFTERMATH,
                asks_again: !own,
            },
        }
    }

    /// The patience with a model of a vendor, or of a server of the person's own if it is at such
    /// an address.
    pub(crate) fn by_address(
        connection: &Connection,
        base: &Url,
        capabilities: &Capabilities,
    ) -> Self {
        Self::of(
            connection.timeout,
            is_on_own_network(base),
            capabilities.thinking_allowance > 0,
        )
    }

    /// The patience with a vendor's model, wherever it is reached.
    pub(crate) fn with_vendor(connection: &Connection, capabilities: &Capabilities) -> Self {
        Self::of(
            connection.timeout,
            false,
            capabilities.thinking_allowance > 0,
        )
    }

    /// The patience with a server of the person's own.
    pub(crate) fn with_own_server(connection: &Connection) -> Self {
        Self::of(connection.timeout, true, false)
    }

    /// The same bound for every silence.
    pub(crate) fn fixed(bound: Duration) -> Self {
        Self {
            first: bound,
            between: bound,
            whole: bound,
            behind: AFTERMATH.min(bound),
            asks_again: false,
        }
    }
}

/// Says whether a server is the person's own, by its address: on this machine, on a private
/// network, or under a name that only such a network knows.
pub(crate) fn is_on_own_network(url: &Url) -> bool {
    const NAMES: [&str; 5] = [".local", ".lan", ".internal", ".home.arpa", ".localdomain"];
    is_on_this_machine(url)
        || match url.host() {
            // A name without a dot is one of a container network or of the network's own name
            // server.
            Some(Host::Domain(name)) => {
                let name = name.trim_end_matches('.');
                !name.contains('.') || NAMES.iter().any(|suffix| name.ends_with(suffix))
            }
            Some(Host::Ipv4(address)) => address.is_private() || address.is_link_local(),
            Some(Host::Ipv6(address)) => {
                address.is_unique_local() || address.is_unicast_link_local()
            }
            None => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(patience: Patience) -> (u64, u64, u64) {
        (
            patience.first.as_secs(),
            patience.between.as_secs(),
            patience.whole.as_secs(),
        )
    }

    #[test]
    fn work_that_cannot_be_seen_is_waited_for() {
        assert_eq!(seconds(Patience::of(None, false, false)), (30, 30, 600));
        // A thought takes minutes, also behind the first words.
        assert_eq!(seconds(Patience::of(None, false, true)), (900, 900, 900));
        assert_eq!(seconds(Patience::of(None, true, false)), (600, 120, 600));
        assert!(
            Patience::of(None, false, true).asks_again
                && !Patience::of(None, true, true).asks_again
        );
    }

    #[test]
    fn what_was_set_holds_for_every_silence() {
        for (own, thinks) in [(false, false), (false, true), (true, false)] {
            assert_eq!(
                seconds(Patience::of(Some(Duration::from_secs(15)), own, thinks)),
                (15, 15, 15)
            );
        }
    }

    #[test]
    fn servers_of_ones_own_are_told_by_their_address() {
        let own = |url: &str| is_on_own_network(&url.parse().unwrap());
        for url in [
            "http://localhost:8080",
            "http://127.0.0.1:1",
            "http://[::1]:1",
            "http://192.168.1.5:8080",
            "http://10.0.0.7",
            "http://172.20.0.2",
            "http://[fd00::5]:8080",
            "http://ollama:11434",
            "http://gpu.lan",
            "http://studio.local:1234",
        ] {
            assert!(own(url), "{url}");
        }
        for url in [
            "https://api.openai.com",
            "http://8.8.8.8",
            "https://ollama.com",
            "http://172.40.0.1",
        ] {
            assert!(!own(url), "{url}");
        }
    }
}
