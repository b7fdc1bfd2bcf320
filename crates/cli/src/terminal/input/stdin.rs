//! Standard input as a prompt or attachment: read to its end, with a bound for the first byte.

use std::io::{IsTerminal as _, Read};
use std::time::Duration;

use adjutant_core::limits::MESSAGE_BYTES_MAX;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::config::format_duration;
use crate::error::CliError;
use crate::terminal::display::size;
use crate::terminal::render::live::Status;
use crate::terminal::screen::Screen;

/// A wait that lasts longer than this is shown.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

/// Bytes of one read.
const PIECE: usize = 64 * 1024;

/// A reader of standard input, which may be an open pipe without a writer.
pub(crate) struct Stdin {
    reader: Box<dyn Read + Send>,
    is_terminal: bool,
}

/// Result of reading standard input.
#[derive(Debug, PartialEq)]
pub(crate) enum Input {
    /// All bytes. One byte more than a message may have stands for any longer input.
    Bytes(Vec<u8>),
    /// No byte arrived in time.
    Nothing,
}

impl Stdin {
    pub(crate) fn of_process() -> Self {
        let stdin = std::io::stdin();
        Self {
            is_terminal: stdin.is_terminal(),
            reader: Box::new(stdin),
        }
    }

    #[cfg(test)]
    pub(crate) fn from_reader(reader: impl Read + Send + 'static, is_terminal: bool) -> Self {
        Self {
            reader: Box::new(reader),
            is_terminal,
        }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Reads to the end. `patience` bounds the wait for the first byte; `None` waits without a
    /// bound. A wait of more than a second is shown.
    ///
    /// Dropping the future stops the wait; the reading thread ends with the process.
    ///
    /// # Errors
    /// Standard input cannot be read.
    pub(crate) async fn read(
        self,
        patience: Option<Duration>,
        screen: &Screen,
    ) -> Result<Input, CliError> {
        gather(pieces(self.reader), patience, self.is_terminal, screen).await
    }
}

async fn gather(
    mut pieces: Pieces,
    patience: Option<Duration>,
    is_terminal: bool,
    screen: &Screen,
) -> Result<Input, CliError> {
    let _live = EndsLive(screen);
    let began = Instant::now();
    let end = patience.map(|patience| began + patience);
    let mut bytes = Vec::new();
    let mut shown = false;
    loop {
        let piece = tokio::select! {
            // Input that has arrived is used, even if the time is up by now.
            biased;
            piece = pieces.recv() => piece,
            () = until(end), if bytes.is_empty() => {
                return Ok(Input::Nothing);
            }
            () = sleep_until(began + SHOWN_AFTER), if !shown => {
                shown = true;
                show_wait(&bytes, patience, is_terminal, screen);
                continue;
            }
        };
        match piece {
            Some(Ok(piece)) => bytes.extend(piece),
            Some(Err(error)) => {
                return Err(
                    CliError::failed("standard input cannot be read").because(error.to_string())
                );
            }
            None => break,
        }
        if shown && !is_terminal {
            screen.live(
                &Status {
                    since: began,
                    ..Status::new(reading(&bytes))
                },
                "",
            );
        }
        if bytes.len() > MESSAGE_BYTES_MAX {
            break;
        }
    }
    Ok(Input::Bytes(bytes))
}

/// Removes the live line when the wait ends or is cancelled.
struct EndsLive<'a>(&'a Screen);

impl Drop for EndsLive<'_> {
    fn drop(&mut self) {
        self.0.end_live();
    }
}

/// Chunks sent by the reading thread.
type Pieces = mpsc::UnboundedReceiver<std::io::Result<Vec<u8>>>;

/// Reads on a thread of its own, because a blocking read cannot be cancelled. The channel closes at
/// the end of input, or after more than a message may have.
fn pieces(mut reader: Box<dyn Read + Send>) -> Pieces {
    // The thread sends no more than a message may have, which is the bound.
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let mut remaining = MESSAGE_BYTES_MAX + 1;
        let mut piece = vec![0; PIECE];
        while remaining > 0 {
            let most = piece.len().min(remaining);
            let read = match reader.read(piece.get_mut(..most).unwrap_or_default()) {
                Ok(0) => return,
                Ok(read) => Ok(piece.get(..read).unwrap_or_default().to_vec()),
                // A signal interrupted the read before there was a byte.
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            remaining -= read.as_ref().map_or(remaining, Vec::len);
            if sender.send(read).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Sleeps until `end`; for ever without one.
async fn until(end: Option<Instant>) {
    match end {
        Some(end) => sleep_until(end).await,
        None => std::future::pending().await,
    }
}

fn show_wait(bytes: &[u8], patience: Option<Duration>, is_terminal: bool, screen: &Screen) {
    let words = match (bytes, patience) {
        ([], _) if is_terminal => {
            "reading standard input: Ctrl-D on an empty line ends it".to_owned()
        }
        ([], Some(patience)) => format!(
            "waiting for standard input, {} at most; `< /dev/null` skips the wait",
            format_duration(patience)
        ),
        ([], None) => "waiting for standard input; Ctrl-C stops".to_owned(),
        (_, _) if is_terminal => return,
        (bytes, _) => format!(
            "{} so far, reading to the end; Ctrl-C stops",
            reading(bytes)
        ),
    };
    screen.note(&words);
}

fn reading(bytes: &[u8]) -> String {
    format!("reading standard input: {}", size(bytes.len() as u64))
}

#[cfg(test)]
mod tests {
    use anstream::ColorChoice;

    use super::*;
    use crate::terminal::screen::Verbosity;

    fn screen() -> Screen {
        Screen::new(ColorChoice::Never, Verbosity::Quiet, true)
    }

    async fn read(
        reader: impl Read + Send + 'static,
        patience: Option<Duration>,
    ) -> Result<Input, CliError> {
        Stdin::from_reader(reader, false)
            .read(patience, &screen())
            .await
    }

    #[tokio::test]
    async fn a_pipe_without_a_writer_is_given_up() {
        let (_writer, pieces) = mpsc::unbounded_channel();
        let read = gather(pieces, Some(Duration::ZERO), false, &screen()).await;
        assert_eq!(read.unwrap(), Input::Nothing);
    }

    #[tokio::test]
    async fn after_the_first_byte_the_end_is_waited_for() {
        let (writer, pieces) = mpsc::unbounded_channel();
        writer.send(Ok(b"first, ".to_vec())).unwrap();
        // The time is over at once.
        let reading =
            tokio::spawn(async { gather(pieces, Some(Duration::ZERO), false, &screen()).await });
        tokio::task::yield_now().await;
        writer.send(Ok(b"second".to_vec())).unwrap();
        drop(writer);
        assert_eq!(
            reading.await.unwrap().unwrap(),
            Input::Bytes(b"first, second".to_vec())
        );
    }

    #[tokio::test]
    async fn the_end_may_be_the_first_that_comes() {
        for patience in [None, Some(Duration::from_secs(600))] {
            assert_eq!(
                read(std::io::empty(), patience).await.unwrap(),
                Input::Bytes(Vec::new())
            );
        }
    }

    #[tokio::test]
    async fn a_too_long_input_is_read_up_to_one_byte_over_the_bound() {
        let Input::Bytes(bytes) = read(std::io::repeat(b'x'), None).await.unwrap() else {
            panic!("nothing")
        };
        assert_eq!(bytes.len(), MESSAGE_BYTES_MAX + 1);
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_an_error() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("the disk is gone"))
            }
        }
        assert!(
            read(Broken, None)
                .await
                .unwrap_err()
                .cause
                .unwrap()
                .contains("the disk is gone")
        );
    }
}
