//! The identity of worker processes, and a check whether one still runs.

use std::sync::OnceLock;
#[cfg(feature = "sqlite")]
use std::time::Duration;

#[cfg(feature = "sqlite")]
mod claims; // leases of this process
#[cfg(feature = "sqlite")]
pub(crate) use claims::end;

/// Returns the name of this process as a worker: `pid-<process id>-<start time>-<boot>.<processes>`.
///
/// The last part names the start of the machine, and the table of processes in which the id is
/// counted (a container has one of its own). The system reuses process ids, but not together with
/// all of that. To tell several workers of one process apart, append `-` and a suffix.
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
        match linux::start_ticks(pid).zip(place()) {
            Some((started, place)) => format!("pid-{pid}-{started}-{place}"),
            // Without `/proc` the start time is 0. Should the process id be reused then, the new
            // process can take over the old one's leases, which it would have to wait for otherwise.
            None => format!("pid-{pid}-0"),
        }
    })
}

/// Returns the start of the machine and the table of processes that this process sees. `None` if
/// the system does not say.
fn place() -> Option<&'static str> {
    static PLACE: OnceLock<Option<String>> = OnceLock::new();
    PLACE
        .get_or_init(|| Some(format!("{}.{}", linux::boot()?, linux::process_table()?)))
        .as_deref()
}

/// The knowledge about a worker, whatever any clock says.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It runs, or is suspended and may go on.
    Lives,
    /// It does not run any more.
    Dead,
    /// Nothing is known: only the end of its lease tells.
    Unknown,
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl Presence {
    /// Returns true if the worker certainly does not run any more.
    pub(crate) fn is_dead(self) -> bool {
        self == Self::Dead
    }
}

/// Returns what the operating system knows about a worker of this machine. Unknown for a name that
/// [`worker_id`] did not make, for a worker that counts its processes in another table, and on
/// systems without `/proc`.
///
/// With an epoch, a worker of this process lives only while it keeps that epoch: an agent may be
/// dropped while its process goes on, and its leases must not outlive it.
#[cfg(feature = "sqlite")]
pub(crate) fn presence(worker: &str, epoch: Option<i64>) -> Presence {
    let Some((pid, started, their_place)) = parse(worker) else {
        return Presence::Unknown;
    };
    let Some(place) = place() else {
        return Presence::Unknown;
    };
    if let Some(theirs) = their_place {
        let boot = |place: &str| place.split_once('.').map(|(boot, _)| boot.to_owned());
        // All workers with a file are on one machine, so one of another start is gone.
        if boot(theirs) != boot(place) {
            return Presence::Dead;
        }
        if theirs != place {
            return Presence::Unknown;
        }
    }
    if linux::start_ticks(pid) != Some(started) {
        return Presence::Dead;
    }
    match their_place {
        // Named by an older version, without the start of the machine: the process that has the id
        // now may be another one.
        None => Presence::Unknown,
        Some(_) => match epoch.filter(|_| pid == std::process::id()) {
            // A worker of this process lives while its epoch does.
            Some(epoch) if !claims::is_current(worker, epoch) => Presence::Dead,
            Some(_) | None => Presence::Lives,
        },
    }
}

/// Splits a worker's name into process id, start time, and place. `None` for a name without them.
#[cfg(feature = "sqlite")]
fn parse(worker: &str) -> Option<(u32, u64, Option<&str>)> {
    let mut words = worker.splitn(5, '-');
    // No name of ours has a blank; a lease that was ended has one in its holder's name.
    if words.next() != Some("pid") || worker.contains(' ') {
        return None;
    }
    let (pid, started) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let place = words.next().filter(|word| word.contains('.'));
    // A start time of 0 was recorded without `/proc`.
    (started != 0).then_some((pid, started, place))
}

/// Records that a worker has a lease in an epoch for this long. Nothing is recorded for a worker
/// that is not one of this process.
#[cfg(feature = "sqlite")]
pub(crate) fn grant(worker: &str, epoch: i64, lease: Duration) {
    if is_own(worker) {
        claims::grant(worker, epoch, lease);
    }
}

/// Extends the epoch of a worker of this process. Returns false if it has none: another worker may
/// have its leases. `None` if the worker is not one of this process.
#[cfg(feature = "sqlite")]
pub(crate) fn extend(worker: &str, epoch: i64, lease: Duration) -> Option<bool> {
    is_own(worker).then(|| claims::extend(worker, epoch, lease))
}

/// Returns true if a worker was named by this process for itself, where its end can be seen.
#[cfg(feature = "sqlite")]
fn is_own(worker: &str) -> bool {
    // Compared as text, because every turn asks this.
    let rest = worker.strip_prefix(worker_id());
    place().is_some()
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-') && !rest.contains(' '))
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

    /// Returns the first part of the random number of this start of the machine.
    ///
    /// Source: random(4), `/proc/sys/kernel/random/boot_id`: a UUID.
    pub(super) fn boot() -> Option<String> {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let first = id.split('-').next()?;
        (!first.is_empty()).then(|| first.to_owned())
    }

    /// Returns the number of the table of processes (pid_namespaces(7)).
    pub(super) fn process_table() -> Option<String> {
        // `pid:[4026531836]`
        let link = std::fs::read_link("/proc/self/ns/pid").ok()?;
        let number: String = link
            .to_str()?
            .chars()
            .filter(char::is_ascii_digit)
            .collect();
        (!number.is_empty()).then_some(number)
    }
}

#[cfg(all(test, target_os = "linux", feature = "sqlite"))]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// The name of another process of this machine.
    fn name_of(pid: u32) -> Option<String> {
        let started = linux::start_ticks(pid)?;
        Some(format!("pid-{pid}-{started}-{}", place()?))
    }

    #[test]
    fn another_process_that_runs_lives() {
        let parent = std::os::unix::process::parent_id();
        assert_eq!(presence(&name_of(parent).unwrap(), None), Presence::Lives);
        let second = format!("{}-second", name_of(parent).unwrap());
        assert_eq!(presence(&second, None), Presence::Lives);
    }

    #[test]
    fn the_same_pid_started_at_another_time_is_another_process() {
        let pid = std::process::id();
        assert_eq!(presence(&format!("pid-{pid}-1"), None), Presence::Dead);
        let place = place().unwrap();
        assert_eq!(
            presence(&format!("pid-{pid}-1-{place}"), None),
            Presence::Dead
        );
    }

    #[test]
    fn a_process_from_before_the_machines_start_is_dead() {
        let pid = std::os::unix::process::parent_id();
        let started = linux::start_ticks(pid).unwrap();
        let table = linux::process_table().unwrap();
        let earlier = format!("pid-{pid}-{started}-00000000.{table}");
        assert_eq!(presence(&earlier, None), Presence::Dead);
    }

    #[test]
    fn a_process_of_another_table_is_unknown() {
        let boot = linux::boot().unwrap();
        assert_eq!(
            presence(&format!("pid-1-1-{boot}.1"), None),
            Presence::Unknown
        );
    }

    #[test]
    fn a_name_without_the_machines_start_proves_no_life() {
        let pid = std::os::unix::process::parent_id();
        let started = linux::start_ticks(pid).unwrap();
        for name in [
            format!("pid-{pid}-{started}"),
            format!("pid-{pid}-{started}-2"),
        ] {
            assert_eq!(presence(&name, None), Presence::Unknown, "{name}");
        }
    }

    #[test]
    fn a_child_is_gone_as_soon_as_it_ended_even_before_it_is_reaped() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let id = name_of(child.id()).unwrap();
        assert_eq!(presence(&id, None), Presence::Lives);
        drop(child.stdin.take());
        // Not reaped yet, so it stays a zombie from the moment it ends.
        let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while presence(&id, None) != Presence::Dead && std::time::Instant::now() < patience {
            std::thread::yield_now();
        }
        let gone_unreaped = presence(&id, None);
        child.wait().unwrap();
        assert_eq!(
            (gone_unreaped, presence(&id, None)),
            (Presence::Dead, Presence::Dead)
        );
    }

    #[test]
    fn of_other_names_nothing_is_known() {
        for name in [
            "",
            "pid",
            "pid-1",
            "pid-x-1",
            "pid-1-x",
            "host-1-2",
            "pid-1-0",
            "pid-1-0-1.2",
            &format!("{} (ended)", name_of(std::process::id()).unwrap()),
        ] {
            assert_eq!(presence(name, None), Presence::Unknown, "{name:?}");
        }
    }
}
