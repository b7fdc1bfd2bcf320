//! CPU time and memory of processes, as Linux reports them.

use nix::sys::resource::{UsageWho, getrusage};

use crate::Result;

/// Returns the CPU time (user and system) that this process has used, in microseconds.
pub(crate) fn own_cpu_us() -> Result<i64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let us = |time: nix::sys::time::TimeVal| {
        time.tv_sec()
            .saturating_mul(1_000_000)
            .saturating_add(time.tv_usec())
    };
    Ok(us(usage.user_time()) + us(usage.system_time()))
}

/// Returns the peak resident memory of a process in KiB. `ru_maxrss` would be wrong: a child
/// inherits it from its parent.
pub(crate) fn peak_kib(process: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .ok_or("no VmHWM")?;
    Ok(kib.trim().parse()?)
}

/// Returns the CPU time of a process and its descendants, including children that have ended, in
/// microseconds. The resolution is 10 ms.
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

/// Parses `/proc/PID/stat`: the time of the process and of the children it has waited for, see
/// proc_pid_stat(5).
fn stat_cpu_us(process: u32) -> i64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The second field is the program's name in parentheses, which may itself contain spaces and
    // parentheses.
    let Some((_, fields)) = stat.rsplit_once(')') else {
        return 0;
    };
    let ticks = fields
        .split_whitespace()
        .skip(11)
        .take(4)
        .filter_map(|ticks| ticks.parse::<i64>().ok());
    // `USER_HZ`, the unit of these fields, is 100 on every architecture.
    ticks.sum::<i64>() * 10_000
}
