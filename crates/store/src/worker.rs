//! The identity of worker processes, and a check whether one still runs.

use std::sync::OnceLock;

/// Returns the name of this process as a worker: `pid-<process id>-<start time>`.
///
/// The system reuses process ids, but not together with the start time. To tell several workers of
/// one process apart, append `-` and a suffix.
///
/// # Examples
/// ```
/// let worker = format!("{}-batch", adjutant_store::worker_id());
/// assert!(worker.starts_with("pid-"));
/// ```
pub fn worker_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| {
        let pid = std::process::id();
        // Without `/proc` the start time is 0. Should the process id be reused then, the new
        // process can take over the old one's leases, which it would have to wait for otherwise.
        format!("pid-{pid}-{}", linux::start_ticks(pid).unwrap_or_default())
    })
}

/// Returns true if a worker of this machine certainly does not run any more. False for a name that
/// [`worker_id`] did not make, and on systems without `/proc`.
#[cfg(feature = "sqlite")]
pub(crate) fn is_dead(worker: &str) -> bool {
    let mut words = worker.splitn(4, '-');
    let (Some("pid"), Some(pid), Some(started)) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    let (Ok(pid), Ok(started)) = (pid.parse(), started.parse::<u64>()) else {
        return false;
    };
    // A start time of 0 was recorded without `/proc`; and if our own cannot be read, `/proc` is not
    // there now.
    started != 0
        && linux::start_ticks(std::process::id()).is_some()
        && linux::start_ticks(pid) != Some(started)
}

mod linux {
    /// Returns the time at which a process started, in clock ticks since boot. `None` if it does
    /// not exist, has ended and is only waiting to be reaped, or the system does not say.
    ///
    /// Source: proc_pid_stat(5): field 3 is the state, field 22 the start time; field 2, the name,
    /// is in parentheses and may contain anything.
    pub(super) fn start_ticks(pid: u32) -> Option<u64> {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        if matches!(fields.next()?, "Z" | "X") {
            return None;
        }
        fields.nth(18)?.parse().ok()
    }
}

#[cfg(all(test, target_os = "linux", feature = "sqlite"))]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn this_process_lives() {
        assert!(!is_dead(worker_id()));
        assert!(!is_dead(&format!("{}-second", worker_id())));
    }

    #[test]
    fn the_same_pid_started_at_another_time_is_another_process() {
        assert!(is_dead(&format!("pid-{}-1", std::process::id())));
    }

    #[test]
    fn a_child_is_gone_as_soon_as_it_ended_even_before_it_is_reaped() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let id = format!(
            "pid-{}-{}",
            child.id(),
            linux::start_ticks(child.id()).unwrap()
        );
        assert!(!is_dead(&id));
        drop(child.stdin.take());
        // Not reaped yet, so it stays a zombie from the moment it ends.
        let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !is_dead(&id) && std::time::Instant::now() < patience {
            std::thread::yield_now();
        }
        let gone_unreaped = is_dead(&id);
        child.wait().unwrap();
        assert!(gone_unreaped && is_dead(&id));
    }

    #[test]
    fn of_other_names_nothing_is_known() {
        for name in [
            "", "pid", "pid-1", "pid-x-1", "pid-1-x", "host-1-2", "pid-1-0",
        ] {
            assert!(!is_dead(name), "{name:?}");
        }
    }
}
