//! Lines read from standard input.

#[cfg(unix)]
use std::io::IsTerminal as _;
use std::io::{BufRead as _, Read as _};
use std::sync::mpsc as std_mpsc;

use adjutant_core::limits::MESSAGE_BYTES_MAX;
use tokio::sync::mpsc;

use crate::terminal::screen::Screen;
#[cfg(unix)]
use crate::terminal::tty::Mode;

/// Reader of standard input, line by line.
///
/// A blocking read cannot be cancelled, but waiting for it can: it runs on a thread of its own, and
/// only while a line is wanted, so that text typed during a turn does not answer a later question.
/// At a terminal the thread ends with the wait; otherwise it would compete with the line editor for
/// the next keys.
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

    /// Returns the next line without its newline; `None` at the end of input. Cancel safe: no input
    /// is lost.
    pub(crate) async fn next(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        match &mut self.0 {
            Origin::Pipe(pipe) => pipe.next().await,
            #[cfg(unix)]
            Origin::Terminal(terminal) => terminal.next().await,
        }
    }

    /// Asks a question and reads a line. At a terminal, input typed before the question is visible
    /// is discarded.
    pub(crate) async fn answer(
        &mut self,
        screen: &Screen,
        question: &str,
    ) -> std::io::Result<Option<Vec<u8>>> {
        #[cfg(unix)]
        let _mode = if let Origin::Terminal(terminal) = &mut self.0 {
            let mode = Mode::line();
            // Before the question is visible: an answer typed as soon as it can be read must not be
            // lost.
            terminal.forget();
            Some(mode)
        } else {
            None
        };
        screen.side(question);
        self.next().await
    }

    /// Puts back input that another reader took from the terminal and could not use; it is read
    /// first.
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

/// Lines of a pipe or a file, read by a thread that lives as long as the process.
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
        // A wait that was dropped has requested a line already, which is still to come.
        if !self.waiting {
            // If the thread has ended, receiving its next line fails.
            let _ = self.wanted.send(());
            self.waiting = true;
        }
        // A thread that has ended cannot read: the same as the end of input.
        let line = self.typed.recv().await.unwrap_or(Ok(None));
        self.waiting = false;
        line
    }
}

/// Reads a line. Of a longer one than a message may be, one byte more than that is kept, so that it
/// is recognised as too long.
fn read_line() -> std::io::Result<Option<Vec<u8>>> {
    let mut stdin = std::io::stdin().lock();
    let mut line = Vec::new();
    // `+ 2`: the newline, and one byte that shows that the line is too long.
    stdin
        .by_ref()
        .take(MESSAGE_BYTES_MAX as u64 + 2)
        .read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop_if(|last| *last == b'\n').is_none() && line.len() > MESSAGE_BYTES_MAX {
        // The rest of the line is dropped: it must not become the next message.
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

/// Lines of a terminal, read without the buffer of `std::io::stdin`: input held in it would be
/// invisible to the line editor.
#[cfg(unix)]
mod terminal {
    use adjutant_core::CancellationToken;
    use adjutant_core::limits::MESSAGE_BYTES_MAX;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::stdio::stdin;
    use tokio::sync::oneshot;

    use crate::terminal::tty::{Mode, forget_typed};

    /// Time the thread waits for input before it checks if the line is still wanted.
    const POLL_INTERVAL: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 100_000_000,
    };

    #[derive(Default)]
    pub(super) struct Terminal {
        /// Bytes that were read and do not end a line yet.
        ahead: Vec<u8>,
    }

    impl Terminal {
        pub(super) async fn next(&mut self) -> std::io::Result<Option<Vec<u8>>> {
            if let Some(line) = self.line_ahead() {
                return Ok(Some(line));
            }
            let _mode = Mode::line();
            // Cancelled when this future is dropped, which ends the thread.
            let unwanted = CancellationToken::new();
            let _guard = unwanted.clone().drop_guard();
            let (send, line) = oneshot::channel();
            std::thread::spawn(move || {
                // If the receiver is gone, the wait was cancelled and nothing was read.
                let _ = send.send(read_line(&unwanted));
            });
            match line.await {
                Ok(Ok(line)) => {
                    Ok(line.map(|line| [std::mem::take(&mut self.ahead), line].concat()))
                }
                Ok(Err(error)) => Err(error),
                // The thread has panicked, so no input will come.
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

    /// Reads a line; `None` at the end of input or when it is no longer wanted. Of a too long line,
    /// one byte more than a message may have is kept.
    fn read_line(unwanted: &CancellationToken) -> std::io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let mut piece = [0_u8; 4_096];
        while !unwanted.is_cancelled() {
            let mut there = [PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
            match poll(&mut there, Some(&POLL_INTERVAL)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            if unwanted.is_cancelled() {
                // The line editor may read by now, and a byte that is taken here would be missing
                // there.
                return Ok(None);
            }
            let length = match rustix::io::read(stdin(), &mut piece) {
                Ok(length) => length,
                Err(rustix::io::Errno::INTR) => continue,
                // The terminal was closed: the end of input.
                Err(rustix::io::Errno::IO) => 0,
                Err(error) => return Err(error.into()),
            };
            let read = piece.get(..length).unwrap_or_default();
            let remaining = (MESSAGE_BYTES_MAX + 1).saturating_sub(line.len());
            match read.iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    line.extend(read.iter().take(end.min(remaining)));
                    return Ok(Some(line));
                }
                None if read.is_empty() => return Ok((!line.is_empty()).then_some(line)),
                // The terminal passes on a partial line at its own limit, or at Ctrl-D: reading
                // continues.
                None => line.extend(read.iter().take(remaining)),
            }
        }
        Ok(None)
    }
}
