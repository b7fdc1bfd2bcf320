//! The writer thread, which commits waiting calls together.
//!
//! A commit costs a write to the disk, however many changes it has. So all calls that wait when the
//! thread becomes free share one transaction, and are answered after its commit: what was confirmed
//! is on the disk. If a call fails after it has changed something, all are run again, each in a
//! savepoint, so that only its own changes are rolled back. Savepoints are not used in the first
//! attempt, because SQLite copies every page that changes within one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use adjutant_core::port::StoreError;
use tokio::sync::{mpsc, oneshot};

use super::connection::{SqliteConnection, poll_ready};
use super::error;
use crate::sql::{Failure, Work};

/// Most calls in one transaction.
const BATCH: usize = 64;

/// Bytes of text in a transaction after which no further call joins it.
const BATCH_BYTES: usize = 1 << 20;

/// Time after which a commit is logged as slow.
const SLOW: Duration = Duration::from_secs(1);

/// Calls that may wait for the thread. Further callers wait for a free place in the queue.
const QUEUE: usize = 1024;

/// A thread with its own connection. When this is dropped, the thread finishes the calls that were
/// handed over, and the drop waits for it: a process that exited while SQLite closes the file would
/// leave its `-wal` and `-shm` files in a state that a read-only file system cannot recover from.
#[derive(Debug)]
pub(super) struct Writer {
    /// `None` while this is being dropped.
    sender: Option<mpsc::Sender<Message>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.sender = None;
        // The thread may drop the last handle itself, and cannot wait for its own end.
        if let Some(thread) = self
            .thread
            .take()
            .filter(|it| it.thread().id() != thread::current().id())
        {
            // A thread that panicked has ended as well.
            let _ = thread.join();
        }
    }
}

enum Message {
    Write(Box<dyn Job>),
    /// A function that uses the connection outside of a transaction.
    Visit(Box<dyn FnOnce(&mut SqliteConnection) + Send>),
    Close(oneshot::Sender<()>),
}

impl Writer {
    pub(super) fn start(connection: SqliteConnection) -> Result<Self, StoreError> {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let thread = WriterThread {
            connection,
            queue: Queue {
                receiver,
                deferred: None,
            },
        };
        let started = thread::Builder::new()
            .name("adjutant-sqlite".to_owned())
            .spawn(move || thread.run());
        let failed = |error: std::io::Error| {
            StoreError::unavailable(format!("no thread to write with: {error}")).with_source(error)
        };
        let writer = |thread| Self {
            sender: Some(sender),
            thread: Some(thread),
        };
        started.map(writer).map_err(failed)
    }

    /// Runs work in a transaction. Once it has begun, it is finished even if the caller is dropped.
    pub(super) async fn write<D: Send + Sync + 'static, T: Send + 'static>(
        &self,
        data: D,
        work: Work<SqliteConnection, D, T>,
    ) -> Result<T, Failure> {
        let (answer, answered) = oneshot::channel();
        self.send(Message::Write(Box::new(Call {
            data,
            work,
            done: None,
            answer,
        })))
        .await?;
        answered.await.map_err(|_| closed())?
    }

    /// Runs `visit` on the connection, outside of a transaction.
    pub(super) async fn visit<T: Send + 'static>(
        &self,
        visit: impl FnOnce(&mut SqliteConnection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let (answer, answered) = oneshot::channel();
        let visit = move |connection: &mut SqliteConnection| {
            let done = catch_unwind(AssertUnwindSafe(|| visit(connection)));
            // The caller may have been dropped.
            let _ = answer.send(done.unwrap_or_else(|_| Err(Failure::panicked())));
        };
        self.send(Message::Visit(Box::new(visit))).await?;
        answered.await.map_err(|_| closed())?
    }

    /// Waits for the calls that were handed over before, and closes the connection.
    pub(super) async fn close(&self) {
        let (closed, is_closed) = oneshot::channel();
        if self.send(Message::Close(closed)).await.is_ok() {
            // An error means that the thread has ended already.
            let _ = is_closed.await;
        }
    }

    /// Returns the number of calls that wait for the thread.
    pub(super) fn waiting(&self) -> usize {
        self.sender
            .as_ref()
            .map_or(0, |sender| sender.max_capacity() - sender.capacity())
    }

    async fn send(&self, message: Message) -> Result<(), Failure> {
        let sender = self.sender.as_ref().ok_or_else(closed)?;
        sender.send(message).await.map_err(|_| closed())
    }
}

pub(super) fn closed() -> Failure {
    StoreError::unavailable("it is closed").into()
}

/// A call that can be run again, as long as its caller was not answered.
trait Job: Send {
    /// Returns true if the caller was dropped.
    fn is_abandoned(&self) -> bool;

    fn run(&mut self, connection: &mut SqliteConnection) -> Result<(), Failure>;

    /// Answers the caller with the result of the last run, or with the error because of which
    /// nothing was committed.
    fn answer(self: Box<Self>, ended: Result<(), Failure>);
}

struct Call<D, T> {
    data: D,
    work: Work<SqliteConnection, D, T>,
    done: Option<T>,
    answer: oneshot::Sender<Result<T, Failure>>,
}

impl<D: Send + Sync, T: Send> Job for Call<D, T> {
    fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }

    fn run(&mut self, connection: &mut SqliteConnection) -> Result<(), Failure> {
        self.done = None;
        self.done = Some(poll_ready((self.work)(connection, &self.data))?);
        Ok(())
    }

    fn answer(self: Box<Self>, ended: Result<(), Failure>) {
        let Self { done, answer, .. } = *self;
        let result = ended.and_then(|()| done.ok_or_else(Failure::panicked));
        // The caller may have been dropped.
        let _ = answer.send(result);
    }
}

struct Queue {
    receiver: mpsc::Receiver<Message>,
    /// A message that is no call, received while collecting calls for a transaction.
    deferred: Option<Message>,
}

impl Queue {
    fn next(&mut self) -> Option<Message> {
        self.deferred
            .take()
            .or_else(|| self.receiver.blocking_recv())
    }

    /// Returns the next call, if one is waiting and no other message comes before it.
    fn waiting(&mut self) -> Option<Box<dyn Job>> {
        while self.deferred.is_none() {
            match self.receiver.try_recv().ok()? {
                // Nothing is done for a caller that left before its call began.
                Message::Write(job) if job.is_abandoned() => {}
                Message::Write(job) => return Some(job),
                other => self.deferred = Some(other),
            }
        }
        None
    }
}

/// A call that was run and its result, which the caller has not got yet.
type Finished = (Box<dyn Job>, Result<(), Failure>);

struct WriterThread {
    connection: SqliteConnection,
    queue: Queue,
}

impl WriterThread {
    fn run(mut self) {
        while let Some(message) = self.queue.next() {
            match message {
                Message::Write(job) if job.is_abandoned() => {}
                Message::Write(job) => self.write(job),
                Message::Visit(visit) => {
                    visit(&mut self.connection);
                    self.connection.roll_back();
                }
                Message::Close(closed) => {
                    // The file is closed before the caller goes on.
                    drop(self);
                    // The caller may have been dropped.
                    let _ = closed.send(());
                    return;
                }
            }
        }
    }

    /// Runs a call, and those that wait behind it, in one transaction.
    fn write(&mut self, first: Box<dyn Job>) {
        if let Err(failure) = self.begin() {
            return self.fail_waiting(first, failure);
        }
        let mut done: Vec<Finished> = Vec::new();
        let mut next = Some(first);
        while let Some(mut job) = next {
            let changes = self.connection.changes();
            let ended = self.call(job.as_mut());
            // If the first call fails alone, there is nothing to batch with it: it is answered at
            // once.
            let is_kept = ended.is_ok() && !self.connection.is_undone;
            done.push((job, ended));
            if !is_kept && done.len() == 1 {
                self.connection.roll_back();
                return done.into_iter().for_each(|(job, ended)| job.answer(ended));
            }
            // After a full disk, an I/O error or a lack of memory SQLite may have rolled everything
            // back.
            if self.connection.is_autocommit() {
                return self.retry_one_by_one(done);
            }
            if !is_kept && self.connection.changes() != changes {
                return self.retry_in_savepoints(done);
            }
            next = self.next_to_join(done.len());
        }
        self.commit(done);
    }

    /// Runs all calls again in one transaction, each in a savepoint that can be rolled back alone.
    fn retry_in_savepoints(&mut self, done: Vec<Finished>) {
        self.connection.roll_back();
        if let Err(failure) = self.begin() {
            return done
                .into_iter()
                .for_each(|(job, _)| job.answer(Err(error::copy(&failure))));
        }
        let mut again: Vec<Finished> = Vec::with_capacity(done.len());
        let mut rest = done.into_iter();
        while let Some(mut job) = rest
            .next()
            .map(|(job, _)| job)
            .or_else(|| self.next_to_join(again.len()))
        {
            match self.call_in_savepoint(job.as_mut()) {
                Ok(ended) => again.push((job, ended)),
                // The transaction is lost, and with it the changes of the calls before.
                Err(failure) => {
                    again.push((job, Err(failure)));
                    again.extend(rest);
                    return self.retry_one_by_one(again);
                }
            }
        }
        self.commit(again);
    }

    /// Returns a waiting call if it fits into a transaction that has this many calls already.
    fn next_to_join(&mut self, calls: usize) -> Option<Box<dyn Job>> {
        let has_space = calls < BATCH && self.connection.bytes < BATCH_BYTES;
        if has_space {
            self.queue.waiting()
        } else {
            None
        }
    }

    fn commit(&mut self, done: Vec<Finished>) {
        let started = Instant::now();
        let committed = self.connection.run("COMMIT");
        if started.elapsed() >= SLOW {
            let ms = started.elapsed().as_millis();
            tracing::info!(
                ms,
                calls = done.len(),
                "a commit was slow; is the disk busy?"
            );
        }
        match committed {
            Ok(()) => done.into_iter().for_each(|(job, ended)| job.answer(ended)),
            Err(failure) => self.handle_failed_commit(done, &failure),
        }
    }

    fn begin(&mut self) -> Result<(), Failure> {
        self.connection.bytes = 0;
        // Takes the write lock at once: a transaction that read first could not wait for another
        // process's lock (`SQLITE_BUSY_SNAPSHOT`).
        self.connection.run("BEGIN IMMEDIATE")
    }

    /// Runs a call. The connection notes whether its changes are to be rolled back.
    fn call(&mut self, job: &mut dyn Job) -> Result<(), Failure> {
        self.connection.is_undone = false;
        // A panic must not end the thread, which all callers share. The transaction is rolled back.
        let ended = catch_unwind(AssertUnwindSafe(|| job.run(&mut self.connection)));
        match ended {
            // The work ignored an error after which SQLite rolled everything back.
            Ok(Ok(())) if self.connection.is_autocommit() => Err(Failure::panicked()),
            Ok(ended) => ended,
            Err(_) => Err(Failure::panicked()),
        }
    }

    /// Runs a call in a savepoint. The outer error means that the whole transaction is lost.
    fn call_in_savepoint(&mut self, job: &mut dyn Job) -> Result<Result<(), Failure>, Failure> {
        self.connection.run("SAVEPOINT call")?;
        let ended = self.call(job);
        // After a full disk, an I/O error or a lack of memory SQLite may have rolled everything
        // back.
        if self.connection.is_autocommit() {
            return ended.map(Ok);
        }
        if ended.is_err() || self.connection.is_undone {
            self.connection.run("ROLLBACK TO call")?;
        }
        self.connection.run("RELEASE call")?;
        Ok(ended)
    }

    /// Runs each call in a transaction of its own, so that only the one that cannot succeed fails.
    fn retry_one_by_one(&mut self, done: Vec<Finished>) {
        self.connection.roll_back();
        let mut done = done.into_iter();
        while let Some((mut job, _)) = done.next() {
            if let Err(failure) = self.begin() {
                done.for_each(|(job, _)| job.answer(Err(error::copy(&failure))));
                return self.fail_waiting(job, failure);
            }
            let mut ended = self.call(job.as_mut());
            if ended.is_ok() && !self.connection.is_undone {
                ended = self.connection.run("COMMIT");
            }
            self.connection.roll_back();
            job.answer(ended);
        }
    }

    /// Handles a commit that failed. If the disk was full or locked, nothing has been written, and
    /// the calls are run again one by one, because a smaller one may fit. After any other error it
    /// is unknown what the disk holds, and a second attempt could hide that: all calls fail, also
    /// those that had failed before, because another call of the batch may have been the reason.
    fn handle_failed_commit(&mut self, done: Vec<Finished>, failure: &Failure) {
        self.connection.roll_back();
        if done.len() > 1 && (error::is_full(failure) || error::is_busy(failure)) {
            tracing::warn!(error = %failure, calls = done.len(), "a transaction was not committed; its calls are done again one by one");
            return self.retry_one_by_one(done);
        }
        for (job, _) in done {
            job.answer(Err(error::copy(failure)));
        }
    }

    /// Fails the waiting calls because no transaction can be begun: each of them would wait just as
    /// long for the same error.
    fn fail_waiting(&mut self, first: Box<dyn Job>, failure: Failure) {
        for _ in 1..BATCH {
            let Some(job) = self.queue.waiting() else {
                break;
            };
            job.answer(Err(error::copy(&failure)));
        }
        first.answer(Err(failure));
    }
}
