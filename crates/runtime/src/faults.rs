//! Places where a crash test kills or stops the process. Without the feature `faults` they are
//! nothing.

use std::time::Duration;

/// A point between two durable things. With the feature `faults`, the process kills itself with
/// SIGKILL at the n-th boundary it passes, n being the variable `ADJUTANT_KILL_AT` (from 1), or
/// stops itself with SIGSTOP, n being `ADJUTANT_STOP_AT`, and goes on when it is sent SIGCONT.
/// Boundaries number themselves, so a new one cannot be forgotten by the tests.
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
        // It is told only once the whole process stands still: state T in proc_pid_stat(5).
        shell(&format!(
            "kill -STOP {pid}; until grep -q '^State:.T' /proc/{pid}/status; do :; done; \
             echo 'stopped at boundary {number}: {name}' >&2"
        ));
    }
}

#[cfg(not(feature = "faults"))]
pub(crate) fn boundary(_name: &str) {}

/// How long a claim is good for without a sign of life: as usual, or `ADJUTANT_LEASE_MS`
/// milliseconds in a crash test.
#[cfg(feature = "faults")]
pub(crate) fn lease(usual: Duration) -> Duration {
    variable("ADJUTANT_LEASE_MS").map_or(usual, |ms| Duration::from_millis(ms.into()))
}

#[cfg(not(feature = "faults"))]
pub(crate) fn lease(usual: Duration) -> Duration {
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
