//! The progress of a pull, and its reports to the caller.

/// The progress of a pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes on the disk, including those of an earlier attempt. Never decreases while one source
    /// is read.
    pub done_bytes: u64,
    /// The size of the whole file in bytes.
    pub total_bytes: u64,
    /// The source for people: `the model hub` or `Python packages`.
    pub source: &'static str,
    /// The step that is under way.
    pub step: Step,
}

/// A step of a pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The source is being contacted.
    Connecting,
    /// The bytes of the model are being received.
    Downloading,
    /// The digest of the file is being computed.
    Checking,
}

/// Reports the progress of one source to the caller.
pub(super) struct Report<'a> {
    pub(super) source: &'static str,
    pub(super) total_bytes: u64,
    pub(super) progress: &'a mut (dyn FnMut(Progress) + Send),
}

impl Report<'_> {
    pub(super) fn send(&mut self, done_bytes: u64, step: Step) {
        (self.progress)(Progress {
            done_bytes,
            total_bytes: self.total_bytes,
            source: self.source,
            step,
        });
    }
}
