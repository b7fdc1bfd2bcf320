//! Crash points: places between two durable steps at which tests kill or suspend the process.
//! Without the feature `faults` they compile to nothing.

use std::time::Duration;

/// Marks a point between two durable steps. With the feature `faults`, the process kills itself
/// with SIGKILL at the n-th boundary it passes, n being the variable `ADJUTANT_KILL_AT` (from 1),
/// or suspends itself with SIGSTOP, n being `ADJUTANT_STOP_AT`, until it gets SIGCONT. Boundaries
/// number themselves, so that tests cover a new one without being changed.
#[cfg(feature = "faults")]
pub(crate) fn boundary(name: &str) {
    use std::sync::atomic::{AtomicU32, Ordering};
    static PASSED: AtomicU32 = AtomicU32::new(0);
    let number = PASSED.fetch_add(1, Ordering::SeqCst) + 1;
    let pid = std::process::id();
    if variable("ADJUTANT_KILL_AT") == Some(number) {
        shell(&format!(
            "echo 'killed at boundary {number}: {name}' >&2; kill -9 {pid}"
        ));
        // The signal may arrive a moment later; nothing may happen until then.
        loop {
            std::thread::park();
        }
    }
    if variable("ADJUTANT_STOP_AT") == Some(number) {
        // Reported only once the whole process is stopped: state T in proc_pid_stat(5).
        shell(&format!(
            "kill -STOP {pid}; until grep -q '^State:.T' /proc/{pid}/status; do :; done; \
             echo 'stopped at boundary {number}: {name}' >&2"
        ));
    }
}

#[cfg(not(feature = "faults"))]
pub(crate) fn boundary(_name: &str) {}

/// Returns the duration of a lease: the usual one, or `ADJUTANT_LEASE_MS` milliseconds in a crash
/// test.
#[cfg(feature = "faults")]
pub(crate) fn lease_duration(usual: Duration) -> Duration {
    variable("ADJUTANT_LEASE_MS").map_or(usual, |ms| Duration::from_millis(ms.into()))
}

#[cfg(not(feature = "faults"))]
pub(crate) fn lease_duration(usual: Duration) -> Duration {
    usual
}

#[cfg(feature = "faults")]
#[expect(
    clippy::disallowed_methods,
    reason = "only crash tests read these variables, and only they compile this"
)]
fn variable(name: &str) -> Option<u32> {
    std::env::var(name).ok()?.parse().ok()
}

#[cfg(feature = "faults")]
fn shell(script: &str) {
    let _ = std::process::Command::new("sh")
        .args(["-c", script])
        .status();
}
