//! Limits on the number of connections and on the time they may take.

use std::num::NonZeroU32;
use std::time::Duration;

/// File descriptors reserved for everything else: the database, models, MCP servers.
const RESERVED_FILES: u64 = 256;
/// Connections to the separate address of the metrics.
const METRICS_CONNECTIONS: NonZeroU32 = NonZeroU32::new(32).unwrap();

/// Limits on client connections. None of them ends a request that is being handled, or a response
/// stream that its client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Open connections in total. Default 1,024, or fewer if the process's limit of open files
    /// demands it.
    pub connections: NonZeroU32,
    /// Open connections per IPv4 address or IPv6 /64 network. Default 128.
    pub per_address: NonZeroU32,
    /// Longest time for the head of a request, from its first byte or the opening of the
    /// connection. Default 10 s.
    pub header_timeout: Duration,
    /// Longest pause within a request's body. Default 30 s.
    pub body_silence: Duration,
    /// Longest time for a request's whole body. Default 60 s.
    pub body_timeout: Duration,
    /// Longest time between two requests on a connection, and longest time for which a client reads
    /// nothing of a response. Default 75 s.
    pub idle_timeout: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        const CONNECTIONS: NonZeroU32 = NonZeroU32::new(1_024).unwrap();
        const PER_ADDRESS: NonZeroU32 = NonZeroU32::new(128).unwrap();
        Self {
            connections: CONNECTIONS,
            per_address: PER_ADDRESS,
            header_timeout: Duration::from_secs(10),
            body_silence: Duration::from_secs(30),
            body_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(75),
        }
    }
}

impl ConnectionLimits {
    /// Returns the limits of the separate address of the metrics.
    #[must_use]
    pub(crate) fn for_metrics(self) -> Self {
        Self {
            connections: self.connections.min(METRICS_CONNECTIONS),
            ..self
        }
    }

    /// Returns these limits with `connections` reduced to what the process's limit of open files
    /// allows.
    #[must_use]
    pub(crate) fn fit_open_files(self) -> Self {
        // Each connection is an open file.
        let allowed = open_files_max().map_or(u64::MAX, connections_for);
        let connections = u32::try_from(allowed)
            .ok()
            .and_then(NonZeroU32::new)
            .unwrap_or(self.connections);
        Self {
            connections: self.connections.min(connections),
            ..self
        }
    }
}

/// Returns the process's limit of open files, if there is one.
#[cfg(unix)]
fn open_files_max() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

#[cfg(not(unix))]
fn open_files_max() -> Option<u64> {
    None
}

/// Returns the number of connections for a limit of open files: all but the reserved ones, and at
/// least a quarter where there are few.
fn connections_for(files: u64) -> u64 {
    files.saturating_sub(RESERVED_FILES).max(files / 4).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_left_for_the_rest() {
        for (files, connections) in [
            (1_024, 768),
            (65_536, 65_280),
            (300, 75),
            (256, 64),
            (2, 1),
            (0, 1),
        ] {
            assert_eq!(connections_for(files), connections, "{files}");
        }
        assert!(
            ConnectionLimits::default().fit_open_files().connections
                <= ConnectionLimits::default().connections
        );
    }
}
