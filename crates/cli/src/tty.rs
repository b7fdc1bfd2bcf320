//! How the terminal on standard input treats what is typed. Every mode ends with the value that set
//! it.

/// A mode of the terminal, until this is dropped. Where standard input is no terminal, or belongs
/// to somebody else at the moment (a job in the background), it does nothing.
#[must_use = "the mode ends with this value"]
pub(crate) struct Mode {
    #[cfg(unix)]
    before: Option<rustix::termios::Termios>,
}

/// What happens to keys that are pressed while nobody asks for any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// They wait for a program that reads lines.
    Lines,
    /// They wait for a program that reads keys: the line editor.
    Keys,
}

/// Has the terminal mark what is pasted, until this is dropped: a paste that comes while a turn
/// runs is one message at the next prompt, as it would be there.
#[must_use = "it ends with this value"]
pub(crate) struct MarkedPastes(bool);

impl MarkedPastes {
    /// Where a program reads keys; one that reads lines would take the marks for text.
    pub(crate) fn during(ahead: Ahead) -> Self {
        let marked = ahead == Ahead::Keys;
        if marked {
            // A terminal that is gone marks nothing.
            let _ = crossterm::execute!(std::io::stderr(), crossterm::event::EnableBracketedPaste);
        }
        Self(marked)
    }
}

impl Drop for MarkedPastes {
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

    use super::{Ahead, Mode};

    impl Mode {
        /// While a turn runs: nothing that is typed shows up between the words of an answer, and a
        /// Ctrl-C leaves no `^C`.
        pub(crate) fn turn(ahead: Ahead) -> Self {
            Self::change(|mode| {
                // Without NOFLSH a Ctrl-C throws away what is on its way to the screen: half of a
                // line that is drawn again.
                mode.local_modes
                    .insert(LocalModes::ISIG | LocalModes::NOFLSH);
                mode.local_modes
                    .remove(LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ECHOCTL);
                if ahead == Ahead::Keys {
                    mode.local_modes.remove(LocalModes::ICANON);
                    // Enter stays the key that it is; as a newline the editor would take it for
                    // Ctrl-J.
                    mode.input_modes.remove(InputModes::ICRNL);
                    mode.special_codes[SpecialCodeIndex::VMIN] = 1;
                    mode.special_codes[SpecialCodeIndex::VTIME] = 0;
                }
            })
        }

        /// While a line is asked for: the terminal's own editing, and no `^C`.
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
                // A terminal that went away has no mode to be put back either.
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

    /// The mode as it is, if it is ours to change: a job in the background that tries is stopped by
    /// the system.
    fn current() -> Option<Termios> {
        let foreground = isatty(stdin())
            && tcgetpgrp(stdin()).is_ok_and(|foreground| foreground == rustix::process::getpgrp());
        if foreground {
            tcgetattr(stdin()).ok()
        } else {
            None
        }
    }

    /// Forgets what was typed before anybody asked for it.
    pub(crate) fn forget_typed() {
        let _ = tcflush(stdin(), QueueSelector::IFlush);
    }
}

#[cfg(unix)]
pub(crate) use unix::forget_typed;

#[cfg(not(unix))]
impl Mode {
    pub(crate) fn turn(_: Ahead) -> Self {
        Self {}
    }

    pub(crate) fn line() -> Self {
        Self {}
    }
}

#[cfg(not(unix))]
pub(crate) fn forget_typed() {}
