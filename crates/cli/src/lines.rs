//! Lines a person types, and what asks a process to stop.

#[cfg(unix)]
use std::io::IsTerminal as _;
use std::io::{BufRead as _, Read as _};
use std::sync::mpsc as std_mpsc;

use adjutant_core::limits::MESSAGE_BYTES_MAX;
use adjutant_core::{Reading, read_words};
use tokio::sync::mpsc;

use crate::error::CliError;
use crate::screen::Screen;
#[cfg(unix)]
use crate::tty::Mode;

/// One question that is answered with yes or no. Enter alone is what it offers; the end of input
/// and unclear words are no.
pub(crate) async fn says_yes(screen: &Screen, question: &str, enter: bool) -> bool {
    Lines::new().says_yes(screen, question, enter).await
}

/// Standard input, line by line.
///
/// A read cannot be called off, but waiting for it can: it happens on a thread of its own, and only
/// when a line is wanted, so that what is typed while a turn runs answers nothing by accident
/// before it is asked for. At a terminal the thread ends with the wait, so that nobody fights the
/// line editor over what is typed next.
pub(crate) struct Lines(Origin);

enum Origin {
    Pipe(Pipe),
    #[cfg(unix)]
    Terminal(terminal::Terminal),
}

impl Lines {
    pub(crate) fn new() -> Self {
        #[cfg(unix)]
        if std::io::stdin().is_terminal() {
            return Self(Origin::Terminal(terminal::Terminal::default()));
        }
        Self(Origin::Pipe(Pipe::new()))
    }

    /// The next line without its end; `None` at the end of input. Dropping the future loses
    /// nothing.
    pub(crate) async fn next(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        match &mut self.0 {
            Origin::Pipe(pipe) => pipe.next().await,
            #[cfg(unix)]
            Origin::Terminal(terminal) => terminal.next().await,
        }
    }

    /// Asks, and waits for the answer. At a terminal, what was typed before the question is
    /// forgotten, since it answers something else; what is typed from the moment in which the
    /// question can be read is the answer.
    pub(crate) async fn answer(
        &mut self,
        screen: &Screen,
        question: &str,
    ) -> std::io::Result<Option<Vec<u8>>> {
        #[cfg(unix)]
        let _mode = if let Origin::Terminal(terminal) = &mut self.0 {
            let mode = Mode::line();
            terminal.forget();
            Some(mode)
        } else {
            None
        };
        screen.side(question);
        self.next().await
    }

    /// [`says_yes`] for whoever reads these lines already.
    pub(crate) async fn says_yes(&mut self, screen: &Screen, question: &str, enter: bool) -> bool {
        let line = self.answer(screen, question).await.ok().flatten();
        line.is_some_and(|line| {
            let words = String::from_utf8_lossy(&line);
            if words.trim().is_empty() {
                enter
            } else {
                read_words(words.trim()) == Reading::Yes
            }
        })
    }

    /// What somebody else read of the terminal's input and could not use; it comes first.
    #[cfg_attr(
        not(unix),
        expect(
            unused_variables,
            reason = "the terminal's own lines are read there, and nothing is put back"
        )
    )]
    pub(crate) fn put_back(&mut self, typed: &str) {
        #[cfg(unix)]
        if let Origin::Terminal(terminal) = &mut self.0 {
            terminal.put_back(typed);
        }
    }
}

/// Lines of a pipe or a file. A thread reads them for as long as the process lives.
struct Pipe {
    wanted: std_mpsc::Sender<()>,
    typed: mpsc::Receiver<std::io::Result<Option<Vec<u8>>>>,
    waiting: bool,
}

impl Pipe {
    fn new() -> Self {
        let (wanted, wishes) = std_mpsc::channel();
        let (lines, typed) = mpsc::channel(1);
        std::thread::spawn(move || {
            while wishes.recv().is_ok() {
                if lines.blocking_send(read_line()).is_err() {
                    return;
                }
            }
        });
        Self {
            wanted,
            typed,
            waiting: false,
        }
    }

    async fn next(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        if !self.waiting {
            // The thread ends only with this.
            let _ = self.wanted.send(());
            self.waiting = true;
        }
        let line = self.typed.recv().await.unwrap_or(Ok(None));
        self.waiting = false;
        line
    }
}

/// A line of at most one byte more than a message may have; the rest of a longer one is read and
/// forgotten.
fn read_line() -> std::io::Result<Option<Vec<u8>>> {
    let mut stdin = std::io::stdin().lock();
    let mut line = Vec::new();
    stdin
        .by_ref()
        .take(MESSAGE_BYTES_MAX as u64 + 2)
        .read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop_if(|last| *last == b'\n').is_none() && line.len() > MESSAGE_BYTES_MAX {
        loop {
            let buffer = stdin.fill_buf()?;
            let (length, ended) = match buffer.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            };
            stdin.consume(length);
            if ended {
                break;
            }
        }
    }
    line.pop_if(|last| *last == b'\r');
    Ok(Some(line))
}

/// Lines of a terminal, read past the standard library's buffer: whatever it holds the line editor
/// could not see.
#[cfg(unix)]
mod terminal {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use adjutant_core::limits::MESSAGE_BYTES_MAX;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::stdio::stdin;
    use tokio::sync::oneshot;

    use crate::tty::{Mode, forget_typed};

    /// How long the thread looks for input before it asks whether anybody still waits.
    const LOOK: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 100_000_000,
    };

    #[derive(Default)]
    pub(super) struct Terminal {
        /// Read, and no line yet.
        ahead: Vec<u8>,
    }

    /// Tells the thread that nobody waits any more.
    struct Waiting(Arc<AtomicBool>);

    impl Drop for Waiting {
        fn drop(&mut self) {
            self.0.store(false, Ordering::Release);
        }
    }

    impl Terminal {
        pub(super) async fn next(&mut self) -> std::io::Result<Option<Vec<u8>>> {
            if let Some(line) = self.line_ahead() {
                return Ok(Some(line));
            }
            let _mode = Mode::line();
            let waits = Arc::new(AtomicBool::new(true));
            let _waiting = Waiting(Arc::clone(&waits));
            let (send, line) = oneshot::channel();
            std::thread::spawn(move || {
                // Nobody receives it: nobody waits, and it was not read.
                let _ = send.send(read(&waits));
            });
            match line.await {
                Ok(Ok(line)) => {
                    Ok(line.map(|line| [std::mem::take(&mut self.ahead), line].concat()))
                }
                Ok(Err(error)) => Err(error),
                Err(_) => Ok(None),
            }
        }

        pub(super) fn forget(&mut self) {
            self.ahead.clear();
            forget_typed();
        }

        pub(super) fn put_back(&mut self, typed: &str) {
            self.ahead.extend_from_slice(typed.as_bytes());
        }

        fn line_ahead(&mut self) -> Option<Vec<u8>> {
            let end = self.ahead.iter().position(|byte| *byte == b'\n')?;
            let mut line: Vec<u8> = self.ahead.drain(..=end).collect();
            line.pop();
            Some(line)
        }
    }

    /// A line, or `None` at the end of input or when nobody waits for it. One byte more than a
    /// message may have is kept of one that is too long.
    fn read(waits: &AtomicBool) -> std::io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let mut piece = [0_u8; 4_096];
        while waits.load(Ordering::Acquire) {
            let mut there = [PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
            match poll(&mut there, Some(&LOOK)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            if !waits.load(Ordering::Acquire) {
                return Ok(None);
            }
            let length = match rustix::io::read(stdin(), &mut piece) {
                Ok(length) => length,
                Err(rustix::io::Errno::INTR) => continue,
                // The terminal is closed.
                Err(rustix::io::Errno::IO) => 0,
                Err(error) => return Err(error.into()),
            };
            let read = piece.get(..length).unwrap_or_default();
            let room = (MESSAGE_BYTES_MAX + 1).saturating_sub(line.len());
            match read.iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    line.extend(read.iter().take(end.min(room)));
                    return Ok(Some(line));
                }
                None if read.is_empty() => return Ok((!line.is_empty()).then_some(line)),
                // The terminal's own limit, or Ctrl-D in the middle of a line: it goes on.
                None => line.extend(read.iter().take(room)),
            }
        }
        Ok(None)
    }
}

/// What asks a process to end in good order, other than Ctrl-C: SIGTERM, and SIGHUP of a terminal
/// that was closed. From the moment this exists; without it, they end the process at once.
pub(crate) struct Endings {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    hang_up: tokio::signal::unix::Signal,
}

impl Endings {
    /// # Errors
    /// The system does not let us listen.
    pub(crate) fn new() -> Result<Self, CliError> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let listen = |kind| {
                signal(kind).map_err(|error| {
                    CliError::failed("cannot listen to signals").because(error.to_string())
                })
            };
            Ok(Self {
                terminate: listen(SignalKind::terminate())?,
                hang_up: listen(SignalKind::hangup())?,
            })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    /// Waits for the next of them.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            Some(()) = self.terminate.recv() => {}
            Some(()) = self.hang_up.recv() => {}
        }
        #[cfg(not(unix))]
        std::future::pending::<()>().await;
    }
}

/// Who wants the process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The person at the terminal, by Ctrl-C.
    Interrupt,
    /// Whoever runs it, by SIGTERM.
    #[cfg(unix)]
    Terminate,
}

/// Ctrl-C and, where there is one, the signal that asks a process to end. From the moment this
/// exists.
pub(crate) struct Stops {
    interrupts: Interrupts,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Stops {
    /// # Errors
    /// The system does not let us listen.
    pub(crate) fn new() -> Result<Self, CliError> {
        Ok(Self {
            interrupts: Interrupts::new()?,
            #[cfg(unix)]
            terminate: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
                .map_err(|error| {
                    CliError::failed("cannot listen to signals").because(error.to_string())
                })?,
        })
    }

    /// Waits for the next of either.
    pub(crate) async fn next(&mut self) -> Stop {
        #[cfg(unix)]
        tokio::select! {
            () = self.interrupts.next() => Stop::Interrupt,
            Some(()) = self.terminate.recv() => Stop::Terminate,
        }
        #[cfg(not(unix))]
        {
            self.interrupts.next().await;
            Stop::Interrupt
        }
    }
}

/// Ctrl-C, from the moment this exists. Without it, Ctrl-C ends the process.
pub(crate) struct Interrupts {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
    #[cfg(windows)]
    signal: tokio::signal::windows::CtrlC,
}

impl Interrupts {
    /// # Errors
    /// The system does not let us listen.
    pub(crate) fn new() -> Result<Self, CliError> {
        #[cfg(unix)]
        let signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt());
        #[cfg(windows)]
        let signal = tokio::signal::windows::ctrl_c();
        let signal = signal.map_err(|error| {
            CliError::failed("cannot listen to Ctrl-C").because(error.to_string())
        })?;
        Ok(Self { signal })
    }

    /// Waits for the next one. One that came before is not forgotten.
    pub(crate) async fn next(&mut self) {
        if self.signal.recv().await.is_none() {
            // There will be no more; whoever waits beside this goes on.
            std::future::pending::<()>().await;
        }
    }
}
