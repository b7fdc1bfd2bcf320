//! A child and what it started, ended together where the system can do that.
//!
//! On Unix the child leads a process group, and the group is signalled. On Windows the child alone
//! is ended: what it started notices only that its pipes are closed. If this process is killed, the
//! child's standard input ends, and on Linux the child is killed too.

pub(super) use of_system::Group;

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(unix)]
mod of_system {
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::process::{Pid, Signal, kill_process_group};
    use tokio::process::{Child, Command};

    /// A child and what it started.
    #[derive(Debug)]
    pub(in super::super) struct Group {
        leader: Option<Pid>,
        gone: AtomicBool,
    }

    impl Group {
        /// Has the command start in a group of its own.
        pub(in super::super) fn prepare(command: &mut Command) {
            command.process_group(0);
            dies_with_us(command);
        }

        pub(in super::super) fn of(running: &Child) -> Self {
            let leader = running
                .id()
                .and_then(|id| i32::try_from(id).ok())
                .and_then(Pid::from_raw);
            Self {
                leader,
                gone: AtomicBool::new(false),
            }
        }

        /// Asks it to end; it may take its time.
        pub(in super::super) fn ask_to_end(&self) {
            self.signal(Signal::TERM);
        }

        pub(in super::super) fn kill(&self) {
            self.signal(Signal::KILL);
        }

        fn signal(&self, signal: Signal) {
            if let Some(leader) = self.leader
                && !self.gone.load(Ordering::Acquire)
            {
                // It may have ended this moment.
                let _ = kill_process_group(leader, signal);
            }
        }

        /// Waits until the child has ended, and says how.
        pub(in super::super) async fn wait(&self, mut running: Child) -> String {
            let ended = running.wait().await;
            // What it started must not keep its pipes open.
            self.kill();
            self.gone.store(true, Ordering::Release);
            ended.map_or_else(|error| error.to_string(), |status| status.to_string())
        }
    }

    /// Has the system kill the child when this process is killed. Linux does so when the thread
    /// ends that started the child: that is a thread of the runtime, which lives as long as the
    /// connection's tasks do.
    #[cfg(target_os = "linux")]
    fn dies_with_us(command: &mut Command) {
        let parent = rustix::process::getpid();
        let ask = move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // Killed already, before the child could ask?
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

    /// Elsewhere it has only the end of its standard input.
    #[cfg(not(target_os = "linux"))]
    fn dies_with_us(_: &mut Command) {}
}

#[cfg(windows)]
mod of_system {
    use tokio::process::{Child, Command};
    use tokio::sync::Notify;

    /// `CREATE_NEW_PROCESS_GROUP` of the Windows API: Ctrl-C at the console does not hit the child.
    const NEW_PROCESS_GROUP: u32 = 0x200;

    /// A child. What it started is not ended with it.
    #[derive(Debug, Default)]
    pub(in super::super) struct Group {
        to_be_killed: Notify,
    }

    impl Group {
        /// Has the command start in a group of its own.
        pub(in super::super) fn prepare(command: &mut Command) {
            command.creation_flags(NEW_PROCESS_GROUP);
        }

        pub(in super::super) fn of(_: &Child) -> Self {
            Self::default()
        }

        /// Does nothing: there is no signal to ask with, and its standard input is closed already.
        pub(in super::super) fn ask_to_end(&self) {}

        pub(in super::super) fn kill(&self) {
            self.to_be_killed.notify_one();
        }

        /// Waits until the child has ended, or kills it when it has to go, and says how it ended.
        pub(in super::super) async fn wait(&self, mut running: Child) -> String {
            let ended = tokio::select! {
                ended = running.wait() => ended,
                () = self.to_be_killed.notified() => match running.start_kill() {
                    Ok(()) => running.wait().await,
                    Err(error) => Err(error),
                },
            };
            ended.map_or_else(|error| error.to_string(), |status| status.to_string())
        }
    }
}
