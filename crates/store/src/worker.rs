//! Who runs a conversation, and whether they still live.

use std::sync::OnceLock;

/// This process as the holder of claims: `pid-<process id>-<start time>`.
///
/// Pids are given again after a while; together with the start time of the process they are not. A
/// caller may append `-` and words of its own to tell several workers of one process apart.
pub fn worker_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| {
        let pid = std::process::id();
        // Without `/proc` it says 0. Should the pid come back, its new owner may well take over the
        // claims of the old.
        format!("pid-{pid}-{}", linux::start_ticks(pid).unwrap_or_default())
    })
}

/// Whether a worker of this machine certainly does not run any more. Of one that is not named as
/// [`worker_id`] names them, or on a system without `/proc`, nothing is known: `false`.
#[cfg(feature = "sqlite")]
pub(crate) fn is_gone(worker: &str) -> bool {
    let mut words = worker.splitn(4, '-');
    let (Some("pid"), Some(pid), Some(started)) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    let (Ok(pid), Ok(started)) = (pid.parse(), started.parse::<u64>()) else {
        return false;
    };
    // An id made without `/proc` says 0; and without our own start time there is no `/proc` to
    // judge by now.
    started != 0
        && linux::start_ticks(std::process::id()).is_some()
        && linux::start_ticks(pid) != Some(started)
}

mod linux {
    /// When a process started, in clock ticks since boot. `None`: there is none, it has ended and
    /// only waits for its parent, or the system does not say.
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
        assert!(!is_gone(worker_id()));
        assert!(!is_gone(&format!("{}-second", worker_id())));
    }

    #[test]
    fn the_same_pid_started_at_another_time_is_another_process() {
        assert!(is_gone(&format!("pid-{}-1", std::process::id())));
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
        assert!(!is_gone(&id));
        drop(child.stdin.take());
        // Nobody has waited for it yet, so it stays a zombie from the moment it ends.
        let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !is_gone(&id) && std::time::Instant::now() < patience {
            std::thread::yield_now();
        }
        let gone_unreaped = is_gone(&id);
        child.wait().unwrap();
        assert!(gone_unreaped && is_gone(&id));
    }

    #[test]
    fn of_other_names_nothing_is_known() {
        for name in [
            "", "pid", "pid-1", "pid-x-1", "pid-1-x", "host-1-2", "pid-1-0",
        ] {
            assert!(!is_gone(name), "{name:?}");
        }
    }
}
