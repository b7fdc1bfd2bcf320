//! Processor time and memory, as Linux tells them.

use nix::sys::resource::{UsageWho, getrusage};

use crate::Result;

/// Returns the processor time of this process so far, user and system, in microseconds.
pub(crate) fn own_cpu_us() -> Result<i64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let us = |time: nix::sys::time::TimeVal| {
        time.tv_sec()
            .saturating_mul(1_000_000)
            .saturating_add(time.tv_usec())
    };
    Ok(us(usage.user_time()) + us(usage.system_time()))
}

/// Returns the most memory a process ever held, in KiB. Not `ru_maxrss`, which a child inherits
/// from whoever started it.
pub(crate) fn peak_kib(process: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .ok_or("no VmHWM")?;
    Ok(kib.trim().parse()?)
}

/// Returns the processor time of a process and of its children, those that ended too, in
/// microseconds. In steps of 10 ms.
pub(crate) fn tree_cpu_us(root: u32) -> i64 {
    let mut us = 0;
    let mut left = vec![root];
    while let Some(process) = left.pop() {
        us += stat_cpu_us(process);
        let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
        left.extend(
            children
                .unwrap_or_default()
                .split_whitespace()
                .filter_map(|id| id.parse::<u32>().ok()),
        );
    }
    us
}

/// Reads `/proc/PID/stat`: the process's own time and that of children it waited for. Source:
/// proc_pid_stat(5).
fn stat_cpu_us(process: u32) -> i64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The second field is a name in brackets, which may hold anything.
    let Some((_, fields)) = stat.rsplit_once(')') else {
        return 0;
    };
    let ticks = fields
        .split_whitespace()
        .skip(11)
        .take(4)
        .filter_map(|ticks| ticks.parse::<i64>().ok());
    // In what is told to programs a tick is 1/100 second on every architecture of Linux.
    ticks.sum::<i64>() * 10_000
}
