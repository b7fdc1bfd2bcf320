//! Modes of the terminal on standard input. Every change is undone when its guard is dropped.

use std::sync::atomic::{AtomicBool, Ordering};

/// A changed mode of the terminal, restored on drop. It changes nothing where standard input is no
/// terminal or belongs to another process (as for a background job).
#[must_use = "the mode ends with this value"]
pub(crate) struct Mode {
    #[cfg(unix)]
    before: Option<rustix::termios::Termios>,
}

/// The reader that gets keys typed during a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypeAhead {
    /// A program that reads lines.
    Lines,
    /// The line editor, which reads keys.
    Keys,
}

/// Bracketed paste, until this is dropped: a paste during a turn becomes one message at the next
/// prompt, as it would at the prompt itself.
#[must_use = "it ends with this value"]
pub(crate) struct BracketedPaste(bool);

/// True while bracketed paste is on.
static MARKS_PASTES: AtomicBool = AtomicBool::new(false);

/// Returns true if the terminal obeys escape sequences. Users of screen readers set `TERM=dumb` to
/// get lines instead of an editor that redraws.
#[expect(
    clippy::disallowed_methods,
    reason = "TERM describes the terminal and is no setting"
)]
pub(crate) fn obeys_escapes() -> bool {
    std::env::var("TERM").is_ok_and(|kind| !kind.is_empty() && kind != "dumb")
}

impl BracketedPaste {
    /// Turns it on for the line editor. A program that reads lines would take the markers for text.
    pub(crate) fn during(ahead: TypeAhead) -> Self {
        match ahead {
            TypeAhead::Keys => Self::on(),
            TypeAhead::Lines => Self(false),
        }
    }

    /// Turns it on, unless it is on already or the terminal obeys no escape sequences.
    pub(crate) fn on() -> Self {
        let marked = obeys_escapes() && !MARKS_PASTES.swap(true, Ordering::Relaxed);
        if marked {
            // If the terminal is gone, there is nothing to turn on.
            let _ = crossterm::execute!(std::io::stderr(), crossterm::event::EnableBracketedPaste);
        }
        Self(marked)
    }
}

impl Drop for BracketedPaste {
    fn drop(&mut self) {
        if self.0 {
            MARKS_PASTES.store(false, Ordering::Relaxed);
            let _ = crossterm::execute!(std::io::stderr(), crossterm::event::DisableBracketedPaste);
        }
    }
}

#[cfg(unix)]
mod unix {
    use std::io::stderr;
    use std::sync::OnceLock;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
    use crossterm::execute;
    use rustix::stdio::stdin;
    use rustix::termios::{
        InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, isatty,
        tcflush, tcgetattr, tcgetpgrp, tcsetattr,
    };

    use super::{Mode, TypeAhead};

    /// The mode of the terminal when this process changed it for the first time.
    static ORIGINAL: OnceLock<Termios> = OnceLock::new();

    impl Mode {
        /// Mode during a turn: keys are not echoed into the answer, and Ctrl-C prints no `^C`.
        pub(crate) fn turn(ahead: TypeAhead) -> Self {
            Self::change(|mode| {
                // Without NOFLSH, Ctrl-C discards output that is on its way to the screen: half of
                // a line that is being redrawn.
                mode.local_modes
                    .insert(LocalModes::ISIG | LocalModes::NOFLSH);
                mode.local_modes
                    .remove(LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ECHOCTL);
                if ahead == TypeAhead::Keys {
                    mode.local_modes.remove(LocalModes::ICANON);
                    // With ICRNL, an Enter would become a newline, which the line editor reads as
                    // Ctrl-J.
                    mode.input_modes.remove(InputModes::ICRNL);
                    mode.special_codes[SpecialCodeIndex::VMIN] = 1;
                    mode.special_codes[SpecialCodeIndex::VTIME] = 0;
                }
            })
        }

        /// Mode while a question waits for a key: as during a turn, and Ctrl-C and Ctrl-Z are keys.
        pub(crate) fn keys() -> Self {
            Self::change(|mode| {
                mode.local_modes.remove(
                    LocalModes::ICANON | LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ISIG,
                );
                mode.input_modes.remove(InputModes::ICRNL);
                mode.special_codes[SpecialCodeIndex::VMIN] = 1;
                mode.special_codes[SpecialCodeIndex::VTIME] = 0;
            })
        }

        /// Mode while a line is read: the terminal's own line editing, without `^C`.
        pub(crate) fn line() -> Self {
            Self::change(|mode| {
                let editing =
                    LocalModes::ICANON | LocalModes::ECHO | LocalModes::ECHOE | LocalModes::ECHOK;
                mode.local_modes.insert(editing | LocalModes::ISIG);
                mode.local_modes.remove(LocalModes::ECHOCTL);
                mode.input_modes.insert(InputModes::ICRNL);
            })
        }

        fn change(change: impl FnOnce(&mut Termios)) -> Self {
            let before = current();
            if let Some(mut mode) = before.clone() {
                // Of the first change only: later ones find a mode of ours.
                ORIGINAL.get_or_init(|| mode.clone());
                change(&mut mode);
                // If the terminal is gone, there is no mode to restore.
                let _ = tcsetattr(stdin(), OptionalActions::Now, &mode);
            }
            Self { before }
        }
    }

    impl Drop for Mode {
        fn drop(&mut self) {
            if let Some(before) = &self.before {
                let _ = tcsetattr(stdin(), OptionalActions::Now, before);
            }
        }
    }

    /// Returns the current mode, if this process may change it: the system stops a background job
    /// that tries.
    fn current() -> Option<Termios> {
        let foreground = isatty(stdin())
            && tcgetpgrp(stdin())
                .is_ok_and(|foreground| foreground.as_raw_pid() == Place::own().group);
        if foreground {
            // A mode that cannot be read could not be restored, so it is left alone.
            tcgetattr(stdin()).ok()
        } else {
            None
        }
    }

    /// Stops this process, until another has it go on.
    #[expect(
        unsafe_code,
        reason = "rustix signals the process: this thread would go on until another has stopped it"
    )]
    fn stop() {
        // Not SIGTSTP, which is handled here.
        // SAFETY: the call neither reads nor writes memory of this process.
        let _ = unsafe { libc::raise(libc::SIGSTOP) };
    }

    /// The process group and the session of a process. Each is 0 if it began outside of this
    /// container, and negative if the process is gone.
    struct Place {
        group: libc::pid_t,
        session: libc::pid_t,
    }

    impl Place {
        fn own() -> Self {
            Self::of(0)
        }

        #[expect(
            unsafe_code,
            reason = "rustix panics for a group or session that began outside of this container"
        )]
        fn of(process: libc::pid_t) -> Self {
            // SAFETY: neither call reads or writes memory of this process.
            let (group, session) = unsafe { (libc::getpgid(process), libc::getsid(process)) };
            Self { group, session }
        }
    }

    /// Discards input that was typed before it was asked for: what the kernel holds, and what the
    /// line editor's reader has taken from it already.
    pub(crate) fn forget_typed() {
        if !isatty(stdin()) {
            return;
        }
        // If the terminal is gone, nothing was typed.
        let _ = tcflush(stdin(), QueueSelector::IFlush);
        while crossterm::event::poll(Duration::ZERO).unwrap_or(false) {
            if crossterm::event::read().is_err() {
                break;
            }
        }
    }

    /// Wakes whoever waits for input of the terminal, if some of it was not read. Returns false if
    /// there is none.
    pub(crate) fn wake_reader_for_rest() -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut there = [PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
        if !matches!(poll(&mut there, Some(&Timespec::default())), Ok(1..)) {
            return false;
        }
        // Setting the mode that it has changes nothing, and the kernel reports the input anew.
        if let Some(mode) = current() {
            let _ = tcsetattr(stdin(), OptionalActions::Now, &mode);
        }
        true
    }

    /// Suspends this process as the shell's job, in the mode in which the shell left the terminal,
    /// until the shell has it go on. Returns false if no shell waits for that: this process would
    /// stay suspended for ever.
    pub(crate) fn suspend() -> bool {
        let has_shell = rustix::process::getppid().is_some_and(|parent| {
            let (own, parent) = (Place::own(), Place::of(parent.as_raw_pid()));
            // The group of a process whose parent is in it, or in another session, is orphaned.
            parent.group != own.group && parent.session == own.session
        });
        if !has_shell {
            return false;
        }
        let now = current();
        if let (Some(_), Some(original)) = (&now, ORIGINAL.get()) {
            let _ = tcsetattr(stdin(), OptionalActions::Now, original);
        }
        // The shell would show the marks.
        let marks_pastes = super::MARKS_PASTES.load(Ordering::Relaxed);
        if marks_pastes {
            let _ = execute!(stderr(), DisableBracketedPaste);
        }
        stop();
        // In the foreground again, if the shell has put it there.
        if let (Some(now), Some(_)) = (&now, current()) {
            let _ = tcsetattr(stdin(), OptionalActions::Now, now);
        }
        if marks_pastes {
            let _ = execute!(stderr(), EnableBracketedPaste);
        }
        true
    }
}

#[cfg(unix)]
pub(crate) use unix::{forget_typed, suspend, wake_reader_for_rest};

#[cfg(not(unix))]
impl Mode {
    pub(crate) fn turn(_: TypeAhead) -> Self {
        Self {}
    }

    pub(crate) fn keys() -> Self {
        Self {}
    }

    pub(crate) fn line() -> Self {
        Self {}
    }
}

#[cfg(not(unix))]
pub(crate) fn forget_typed() {}

#[cfg(not(unix))]
pub(crate) fn wake_reader_for_rest() -> bool {
    false
}

#[cfg(not(unix))]
pub(crate) fn suspend() -> bool {
    false
}
