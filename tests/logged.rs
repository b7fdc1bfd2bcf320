//! Captures the log lines of one test, which runs in one thread.

use std::io;
use std::sync::{Arc, Mutex};

use tracing::Level;
use tracing::subscriber::DefaultGuard;

/// Captures what Adjutant's crates log in this thread, until it is dropped.
#[derive(Debug)]
pub(crate) struct Logged {
    written: Arc<Mutex<Vec<u8>>>,
    _subscribed: DefaultGuard,
}

impl Logged {
    /// Starts to capture events up to this level (`Level::DEBUG` includes `INFO`).
    pub(crate) fn begin(most: Level) -> Self {
        let written = Arc::<Mutex<Vec<u8>>>::default();
        let writes = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(most)
            .with_ansi(false)
            .without_time()
            .with_writer(move || Lines(writes.clone()))
            .finish();
        Self {
            written,
            _subscribed: tracing::subscriber::set_default(subscriber),
        }
    }

    /// Returns the captured lines, each beginning with its level.
    pub(crate) fn lines(&self) -> Vec<String> {
        let written = String::from_utf8(self.written.lock().unwrap().clone()).unwrap();
        let lines = written.lines().map(|line| line.trim_start().to_owned());
        lines.filter(|line| line.contains(" adjutant_")).collect()
    }
}

struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
