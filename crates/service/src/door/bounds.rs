//! How many connections there may be, and how long each is waited for.

use std::num::NonZeroU32;
use std::time::Duration;

/// File descriptors that are left to everything else: the database, models, MCP servers.
const LEFT_OVER: u64 = 256;
/// Connections to the address that has the figures only.
const FIGURES: NonZeroU32 = NonZeroU32::new(32).unwrap();

/// Bounds of what clients hold open. None of them ends a request in progress, or the stream of an
/// answer that its client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Open connections in all. Default 1,024; fewer where the process may not have so many files
    /// open.
    pub connections: NonZeroU32,
    /// Open connections of one address, or of one /64 of IPv6. Default 128.
    pub per_address: NonZeroU32,
    /// How long the head of a request may take, from its first byte or the opening of the
    /// connection. Default 10 s.
    pub header_timeout: Duration,
    /// How long a request's body may pause. Default 30 s.
    pub body_silence: Duration,
    /// How long a request's body may take in all. Default 60 s.
    pub body_timeout: Duration,
    /// How long a connection may stay open between two requests, and how long a client may take
    /// nothing of an answer. Default 75 s.
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
    /// Returns the bounds of the address that has the figures only.
    #[must_use]
    pub(crate) fn of_figures(self) -> Self {
        Self {
            connections: self.connections.min(FIGURES),
            ..self
        }
    }

    /// Returns the same bounds, with no more connections than this process may have files open.
    #[must_use]
    pub(crate) fn fitting(self) -> Self {
        let allowed = open_files_max().map_or(u64::MAX, fitting);
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

/// Returns how many files this process may have open, if the system bounds them.
#[cfg(unix)]
fn open_files_max() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

#[cfg(not(unix))]
fn open_files_max() -> Option<u64> {
    None
}

/// Returns how many connections there may be where so many files may be open; with few of them, a
/// quarter.
fn fitting(files: u64) -> u64 {
    files.saturating_sub(LEFT_OVER).max(files / 4).max(1)
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
            assert_eq!(fitting(files), connections, "{files}");
        }
        assert!(
            ConnectionLimits::default().fitting().connections
                <= ConnectionLimits::default().connections
        );
    }
}
