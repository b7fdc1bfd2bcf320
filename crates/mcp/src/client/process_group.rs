//! Process groups: a child process and its descendants, ended together where the system supports
//! it.
//!
//! On Unix the child leads a process group, and signals go to the group. On Windows only the child
//! is ended; its descendants notice that their pipes are closed. If this process is killed, the
//! child's standard input is closed, and on Linux the child is killed too.

pub(super) use platform::ProcessGroup;

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(unix)]
mod platform {
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::process::{Pid, Signal, kill_process_group};
    use tokio::process::{Child, Command};

    /// A child process and its descendants.
    #[derive(Debug)]
    pub(in super::super) struct ProcessGroup {
        leader: Option<Pid>,
        gone: AtomicBool,
    }

    impl ProcessGroup {
        /// Makes the command start in its own group.
        pub(in super::super) fn prepare(command: &mut Command) {
            command.process_group(0);
            kill_with_parent(command);
        }

        pub(in super::super) fn new(child: &Child) -> Self {
            let leader = child
                .id()
                .and_then(|id| i32::try_from(id).ok())
                .and_then(Pid::from_raw);
            Self {
                leader,
                gone: AtomicBool::new(false),
            }
        }

        /// Sends SIGTERM.
        pub(in super::super) fn terminate(&self) {
            self.signal(Signal::TERM);
        }

        pub(in super::super) fn kill(&self) {
            self.signal(Signal::KILL);
        }

        /// Returns the processor time that the group's living processes have used, in clock ticks.
        /// Zero on systems other than Linux.
        pub(in super::super) fn processor_time(&self) -> u64 {
            match self.leader {
                Some(leader) if !self.gone.load(Ordering::Acquire) => {
                    processor_time_of(leader.as_raw_nonzero().get())
                }
                Some(_) | None => 0,
            }
        }

        fn signal(&self, signal: Signal) {
            // The system may give the id to another process once the child was waited for.
            if let Some(leader) = self.leader
                && !self.gone.load(Ordering::Acquire)
            {
                // The group may have ended already.
                let _ = kill_process_group(leader, signal);
            }
        }

        /// Waits until the child has ended, and returns its exit status as text.
        pub(in super::super) async fn wait(&self, mut child: Child) -> String {
            let ended = child.wait().await;
            // Descendants must not keep the child's pipes open.
            self.kill();
            self.gone.store(true, Ordering::Release);
            ended.map_or_else(|error| error.to_string(), |status| status.to_string())
        }
    }

    /// Sums the processor time of a group's processes, as `/proc` has it.
    #[cfg(target_os = "linux")]
    fn processor_time_of(group: i32) -> u64 {
        let Ok(processes) = std::fs::read_dir("/proc") else {
            return 0;
        };
        let times = processes.flatten().filter_map(|process| {
            process.file_name().to_str()?.parse::<i32>().ok()?;
            let stat = std::fs::read_to_string(process.path().join("stat")).ok()?;
            // The name in parentheses may contain spaces; the fields after it do not (proc(5)).
            let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
            if fields.get(2)?.parse() != Ok(group) {
                return None;
            }
            // Own time, and that of children that have ended.
            let times = fields.get(11..15)?.iter();
            Some(
                times
                    .filter_map(|time| time.parse::<u64>().ok())
                    .sum::<u64>(),
            )
        });
        times.sum()
    }

    #[cfg(not(target_os = "linux"))]
    fn processor_time_of(_: i32) -> u64 {
        0
    }

    /// Makes Linux kill the child when the thread that started it ends. That is a thread of the
    /// runtime, which lives as long as the connection's tasks.
    #[cfg(target_os = "linux")]
    fn kill_with_parent(command: &mut Command) {
        let parent = rustix::process::getpid();
        let ask = move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have ended before the signal was set.
            match rustix::process::getppid() == Some(parent) {
                true => Ok(()),
                false => Err(std::io::Error::other("orphaned")),
            }
        };
        #[expect(
            unsafe_code,
            reason = "two system calls between fork and exec, which neither allocate nor lock"
        )]
        // SAFETY: `ask` makes two system calls that are safe after fork, and builds an error only
        // on the way out.
        unsafe {
            command.pre_exec(ask);
        }
    }

    /// Other systems only close the child's standard input.
    #[cfg(not(target_os = "linux"))]
    fn kill_with_parent(_: &mut Command) {}
}

#[cfg(windows)]
mod platform {
    use tokio::process::{Child, Command};
    use tokio::sync::Notify;

    /// `CREATE_NEW_PROCESS_GROUP` of the Windows API: Ctrl-C at the console does not reach the
    /// child.
    const NEW_PROCESS_GROUP: u32 = 0x200;

    /// A child process. Its descendants are not ended with it.
    #[derive(Debug, Default)]
    pub(in super::super) struct ProcessGroup {
        to_be_killed: Notify,
    }

    impl ProcessGroup {
        /// Makes the command start in its own group.
        pub(in super::super) fn prepare(command: &mut Command) {
            command.creation_flags(NEW_PROCESS_GROUP);
        }

        pub(in super::super) fn new(_: &Child) -> Self {
            Self::default()
        }

        /// Does nothing: Windows has no such signal, and the standard input is closed already.
        pub(in super::super) fn terminate(&self) {}

        pub(in super::super) fn kill(&self) {
            self.to_be_killed.notify_one();
        }

        /// Returns zero: the processor time is not looked at on Windows.
        pub(in super::super) fn processor_time(&self) -> u64 {
            0
        }

        /// Waits until the child has ended, killing it on request, and returns its exit status as
        /// text.
        pub(in super::super) async fn wait(&self, mut child: Child) -> String {
            let ended = tokio::select! {
                ended = child.wait() => ended,
                () = self.to_be_killed.notified() => match child.start_kill() {
                    Ok(()) => child.wait().await,
                    Err(error) => Err(error),
                },
            };
            ended.map_or_else(|error| error.to_string(), |status| status.to_string())
        }
    }
}
