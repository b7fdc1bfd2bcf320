//! Places where a crash test kills the process. Without the feature `faults` they are nothing.

/// A point between two durable things. With the feature `faults`, the process kills itself with SIGKILL at the n-th
/// boundary it passes, n being the variable `ADJUTANT_KILL_AT` (from 1). Boundaries number themselves, so a new one
/// cannot be forgotten by the tests.
#[cfg(feature = "faults")]
#[expect(
    clippy::disallowed_methods,
    reason = "only crash tests read this variable, and only they compile this"
)]
pub(crate) fn boundary(name: &str) {
    use std::sync::atomic::{AtomicU32, Ordering};
    static PASSED: AtomicU32 = AtomicU32::new(0);
    let number = PASSED.fetch_add(1, Ordering::SeqCst) + 1;
    let kill_at = std::env::var("ADJUTANT_KILL_AT").ok().and_then(|text| text.parse::<u32>().ok());
    if kill_at == Some(number) {
        let pid = std::process::id().to_string();
        let _ = std::process::Command::new("sh")
            .args(["-c", &format!("echo 'killed at boundary {number}: {name}' >&2; kill -9 {pid}")])
            .status();
        // The signal may arrive a moment later; nothing may happen until then.
        loop {
            std::thread::park();
        }
    }
}

#[cfg(not(feature = "faults"))]
pub(crate) fn boundary(_name: &str) {}
