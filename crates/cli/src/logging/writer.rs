//! The thread that writes the log. Logging never blocks: if standard error is not read, lines are
//! counted and dropped, and the service continues.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use serde_json::json;
use tracing::Level;

use super::line::{Line, LogFormat};

/// Lines in the queue at most.
const UNWRITTEN_MAX: usize = 4_096;
/// Time for the last lines when the process ends.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A message to the writing thread.
pub(super) enum Message {
    /// A line with its newline.
    Line(String),
    /// A request to write everything queued before, and then to confirm.
    End(SyncSender<()>),
}

/// The sending half of the queue.
#[derive(Clone)]
pub(super) struct Queue {
    sender: SyncSender<Message>,
    missed: Arc<AtomicU64>,
}

impl Queue {
    /// Queues a line, or counts it as dropped if the queue is full.
    pub(super) fn push(&self, line: String) {
        if let Err(TrySendError::Full(_)) = self.sender.try_send(Message::Line(line)) {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The writing thread. On drop it writes the queued lines, unless standard error is not read.
pub(crate) struct Thread(Queue);

impl Drop for Thread {
    fn drop(&mut self) {
        let (done, is_done) = sync_channel(1);
        // A full queue means that the log is not read, so that waiting for its end would be in
        // vain.
        if self.0.sender.try_send(Message::End(done)).is_ok() {
            // A closed channel means that the thread has ended.
            let _ = is_done.recv_timeout(LAST_WORDS);
        }
    }
}

/// Creates a queue for so many lines.
pub(super) fn queue(unwritten_max: usize) -> (Queue, Receiver<Message>) {
    let (sender, receiver) = sync_channel(unwritten_max);
    (
        Queue {
            sender,
            missed: Arc::default(),
        },
        receiver,
    )
}

/// Starts the writing thread.
///
/// # Errors
/// The system cannot start a thread.
pub(super) fn start(
    format: LogFormat,
    mut to: Box<dyn io::Write + Send>,
) -> io::Result<(Queue, Thread)> {
    let (queue, receiver) = queue(UNWRITTEN_MAX);
    let missed = queue.missed.clone();
    thread::Builder::new()
        .name("adjutant-log".to_owned())
        .spawn(move || write(&receiver, &missed, format, &mut to))?;
    Ok((queue.clone(), Thread(queue)))
}

fn write(
    lines: &Receiver<Message>,
    missed: &AtomicU64,
    format: LogFormat,
    to: &mut impl io::Write,
) {
    for message in lines {
        match message {
            Message::Line(line) => {
                // If standard error fails, there is no place left to report it.
                let _ = to.write_all(line.as_bytes());
            }
            Message::End(done) => {
                // If the receiver is gone, the process no longer waits for this.
                let _ = done.send(());
            }
        }
        let count = missed.swap(0, Ordering::Relaxed);
        if count > 0 {
            let mut line = Line::new(Level::WARN, "adjutant");
            line.set_message("lines were not written: they were not read fast enough".to_owned());
            line.add("event", "lines", json!(count));
            let _ = to.write_all(line.format(format).as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_dropped_by_a_full_queue_are_counted() {
        let (queue, lines) = queue(2);
        for line in ["one\n", "two\n", "three\n", "four\n"] {
            queue.push(line.to_owned());
        }
        let missed = queue.missed.clone();
        drop(queue);
        let mut written = Vec::new();
        write(&lines, &missed, LogFormat::Text, &mut written);
        let written = String::from_utf8(written).unwrap();
        let (first, rest) = written.split_once('\n').unwrap();
        let (warning, last) = rest.split_once('\n').unwrap();
        assert_eq!((first, last), ("one", "two\n"), "{written}");
        assert!(
            warning.ends_with("they were not read fast enough lines=2"),
            "{warning}"
        );
    }
}
