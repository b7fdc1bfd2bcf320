//! Modes of the terminal on standard input. Every change is undone when its guard is dropped.

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

impl BracketedPaste {
    /// Turns it on for the line editor. A program that reads lines would take the markers for text.
    pub(crate) fn during(ahead: TypeAhead) -> Self {
        let marked = ahead == TypeAhead::Keys;
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
            let _ = crossterm::execute!(std::io::stderr(), crossterm::event::DisableBracketedPaste);
        }
    }
}

#[cfg(unix)]
mod unix {
    use rustix::stdio::stdin;
    use rustix::termios::{
        InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, isatty,
        tcflush, tcgetattr, tcgetpgrp, tcsetattr,
    };

    use super::{Mode, TypeAhead};

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
            && tcgetpgrp(stdin()).is_ok_and(|foreground| foreground == rustix::process::getpgrp());
        if foreground {
            // A mode that cannot be read could not be restored, so it is left alone.
            tcgetattr(stdin()).ok()
        } else {
            None
        }
    }

    /// Discards input that was typed before it was asked for.
    pub(crate) fn forget_typed() {
        // If standard input is no terminal, nothing was typed.
        let _ = tcflush(stdin(), QueueSelector::IFlush);
    }
}

#[cfg(unix)]
pub(crate) use unix::forget_typed;

#[cfg(not(unix))]
impl Mode {
    pub(crate) fn turn(_: TypeAhead) -> Self {
        Self {}
    }

    pub(crate) fn line() -> Self {
        Self {}
    }
}

#[cfg(not(unix))]
pub(crate) fn forget_typed() {}
