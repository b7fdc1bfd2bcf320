//! The thread that writes: what waits for it is written together.
//!
//! A commit costs a write that reaches the disk, whatever is in it. So all calls that wait when the
//! thread is free share one transaction, and are answered after its commit: what was confirmed is
//! on the disk. A call that fails after it has changed something has them all done again, each in a
//! savepoint, so that its changes alone are undone. Savepoints are not taken before, because each
//! of them has SQLite copy the pages that change in it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use adjutant_core::port::StoreError;
use tokio::sync::{mpsc, oneshot};

use super::connection::{Rows, at_once};
use super::error;
use crate::sql::{Failure, Work};

/// Calls in one transaction, at most.
const BATCH: usize = 64;

/// Text that is written in one transaction before no other call joins it, in bytes.
const BATCH_BYTES: usize = 1 << 20;

/// Calls that wait for the thread. Further callers wait until they can join them.
const QUEUE: usize = 1024;

/// A thread with a connection of its own. It ends when this is dropped, after what was handed to
/// it, and is waited for: a process that ended in the middle of closing would leave the files
/// beside the database in a state that cannot be read where nothing may be written.
#[derive(Debug)]
pub(super) struct Writer {
    /// `None`: it is being dropped.
    sender: Option<mpsc::Sender<Message>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self
            .thread
            .take()
            .filter(|it| it.thread().id() != thread::current().id())
        {
            // A thread that broke down has ended, too.
            let _ = thread.join();
        }
    }
}

enum Message {
    Write(Box<dyn Job>),
    /// Something to do with the connection outside of a transaction.
    Visit(Box<dyn FnOnce(&mut Rows) + Send>),
    Close(oneshot::Sender<()>),
}

impl Writer {
    pub(super) fn start(rows: Rows) -> Result<Self, StoreError> {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let thread = Thread {
            rows,
            queue: Queue {
                receiver,
                held: None,
            },
        };
        let started = thread::Builder::new()
            .name("adjutant-sqlite".to_owned())
            .spawn(move || thread.run());
        let failed = |error| StoreError::Unavailable {
            message: format!("no thread to write with: {error}"),
        };
        let writer = |thread| Self {
            sender: Some(sender),
            thread: Some(thread),
        };
        started.map(writer).map_err(failed)
    }

    /// Does work in a transaction. It is done even if the caller leaves meanwhile, unless it has
    /// not begun by then.
    pub(super) async fn write<D, T>(&self, data: D, work: Work<Rows, D, T>) -> Result<T, Failure>
    where
        D: Send + Sync + 'static,
        T: Send + 'static,
    {
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

    /// Does something with the connection, outside of a transaction.
    pub(super) async fn visit<T: Send + 'static>(
        &self,
        visit: impl FnOnce(&mut Rows) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let (answer, answered) = oneshot::channel();
        let visit = move |rows: &mut Rows| {
            let done = catch_unwind(AssertUnwindSafe(|| visit(rows)));
            // The caller may have left.
            let _ = answer.send(done.unwrap_or_else(|_| Err(Failure::panicked())));
        };
        self.send(Message::Visit(Box::new(visit))).await?;
        answered.await.map_err(|_| closed())?
    }

    /// Waits for what was handed over before, and closes the connection.
    pub(super) async fn close(&self) {
        let (closed, is_closed) = oneshot::channel();
        if self.send(Message::Close(closed)).await.is_ok() {
            // An error is an end as well.
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
    StoreError::Unavailable {
        message: "it is closed".to_owned(),
    }
    .into()
}

/// A call that can be done a second time, as long as nobody has been told what came out of it.
trait Job: Send {
    /// Returns whether its caller has left.
    fn is_abandoned(&self) -> bool;

    fn run(&mut self, rows: &mut Rows) -> Result<(), Failure>;

    /// Tells the caller what the last run gave, or why nothing of it was kept.
    fn answer(self: Box<Self>, ended: Result<(), Failure>);
}

struct Call<D, T> {
    data: D,
    work: Work<Rows, D, T>,
    done: Option<T>,
    answer: oneshot::Sender<Result<T, Failure>>,
}

impl<D: Send + Sync, T: Send> Job for Call<D, T> {
    fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }

    fn run(&mut self, rows: &mut Rows) -> Result<(), Failure> {
        self.done = None;
        self.done = Some(at_once((self.work)(rows, &self.data))?);
        Ok(())
    }

    fn answer(self: Box<Self>, ended: Result<(), Failure>) {
        let Self { done, answer, .. } = *self;
        let told = match (ended, done) {
            (Ok(()), Some(done)) => Ok(done),
            (Ok(()), None) => Err(Failure::panicked()),
            (Err(failure), _) => Err(failure),
        };
        // The caller may have left.
        let _ = answer.send(told);
    }
}

struct Queue {
    receiver: mpsc::Receiver<Message>,
    /// A message that came while only calls were asked for.
    held: Option<Message>,
}

impl Queue {
    fn next(&mut self) -> Option<Message> {
        self.held.take().or_else(|| self.receiver.blocking_recv())
    }

    /// The next call, if one is waiting and nothing else comes before it.
    fn waiting(&mut self) -> Option<Box<dyn Job>> {
        while self.held.is_none() {
            match self.receiver.try_recv().ok()? {
                Message::Write(job) if job.is_abandoned() => {}
                Message::Write(job) => return Some(job),
                other => self.held = Some(other),
            }
        }
        None
    }
}

/// A call that was done, with how it ended, before anybody was told.
type Done = (Box<dyn Job>, Result<(), Failure>);

struct Thread {
    rows: Rows,
    queue: Queue,
}

impl Thread {
    fn run(mut self) {
        while let Some(message) = self.queue.next() {
            match message {
                Message::Write(job) if job.is_abandoned() => {}
                Message::Write(job) => self.write(job),
                Message::Visit(visit) => {
                    visit(&mut self.rows);
                    self.rows.roll_back();
                }
                Message::Close(closed) => {
                    drop(self);
                    // Whoever asked may have left.
                    let _ = closed.send(());
                    return;
                }
            }
        }
    }

    /// Does a call and those that wait behind it in one transaction.
    fn write(&mut self, first: Box<dyn Job>) {
        if let Err(failure) = self.begin() {
            return self.refuse(first, failure);
        }
        let mut done: Vec<Done> = Vec::new();
        let mut next = Some(first);
        while let Some(mut job) = next {
            let changes = self.rows.changes();
            let ended = self.call(job.as_mut());
            let is_kept = ended.is_ok() && !self.rows.is_undone;
            done.push((job, ended));
            if !is_kept && done.len() == 1 {
                self.rows.roll_back();
                return done.into_iter().for_each(|(job, ended)| job.answer(ended));
            }
            // A full disk, a failed read or write, no memory: SQLite may have rolled everything
            // back.
            if self.rows.is_autocommit() {
                return self.again_alone(done);
            }
            if !is_kept && self.rows.changes() != changes {
                return self.again_in_savepoints(done);
            }
            next = self.joining(done.len());
        }
        self.commit(done);
    }

    /// Does all calls again in one transaction, in which each can be undone alone.
    fn again_in_savepoints(&mut self, done: Vec<Done>) {
        self.rows.roll_back();
        if let Err(failure) = self.begin() {
            return done
                .into_iter()
                .for_each(|(job, _)| job.answer(Err(error::copy(&failure))));
        }
        let mut again: Vec<Done> = Vec::with_capacity(done.len());
        let mut rest = done.into_iter();
        while let Some(mut job) = rest
            .next()
            .map(|(job, _)| job)
            .or_else(|| self.joining(again.len()))
        {
            match self.call_in_savepoint(job.as_mut()) {
                Ok(ended) => again.push((job, ended)),
                // The transaction is lost, and with it what the others did in it.
                Err(failure) => {
                    again.push((job, Err(failure)));
                    again.extend(rest);
                    return self.again_alone(again);
                }
            }
        }
        self.commit(again);
    }

    /// Returns a call that waits and joins so many others, if there is room for it.
    fn joining(&mut self, calls: usize) -> Option<Box<dyn Job>> {
        let has_room = calls < BATCH && self.rows.bytes < BATCH_BYTES;
        if has_room { self.queue.waiting() } else { None }
    }

    fn commit(&mut self, done: Vec<Done>) {
        match self.rows.say("COMMIT") {
            Ok(()) => done.into_iter().for_each(|(job, ended)| job.answer(ended)),
            Err(failure) => self.not_committed(done, &failure),
        }
    }

    fn begin(&mut self) -> Result<(), Failure> {
        self.rows.bytes = 0;
        // The lock at once: a transaction that read before it wrote could not wait for another
        // process.
        self.rows.say("BEGIN IMMEDIATE")
    }

    /// Does a call; whether its changes are to be undone is noted in the connection.
    fn call(&mut self, job: &mut dyn Job) -> Result<(), Failure> {
        self.rows.is_undone = false;
        let ended = catch_unwind(AssertUnwindSafe(|| job.run(&mut self.rows)));
        match ended {
            // It passed over an error after which nothing of it is left.
            Ok(Ok(())) if self.rows.is_autocommit() => Err(Failure::panicked()),
            Ok(ended) => ended,
            Err(_) => Err(Failure::panicked()),
        }
    }

    /// Does a call so that what it changed can be undone alone; how it ended. `Err`: the whole
    /// transaction is lost.
    fn call_in_savepoint(&mut self, job: &mut dyn Job) -> Result<Result<(), Failure>, Failure> {
        self.rows.say("SAVEPOINT call")?;
        let ended = self.call(job);
        // A full disk, a failed read or write, no memory: SQLite may have rolled everything back.
        if self.rows.is_autocommit() {
            return ended.map(Ok);
        }
        if ended.is_err() || self.rows.is_undone {
            self.rows.say("ROLLBACK TO call")?;
        }
        self.rows.say("RELEASE call")?;
        Ok(ended)
    }

    /// Does each call in a transaction of its own, so that the one which cannot be done is the one
    /// that fails.
    fn again_alone(&mut self, done: Vec<Done>) {
        self.rows.roll_back();
        let mut done = done.into_iter();
        while let Some((mut job, _)) = done.next() {
            if let Err(failure) = self.begin() {
                done.for_each(|(job, _)| job.answer(Err(error::copy(&failure))));
                return self.refuse(job, failure);
            }
            let mut ended = self.call(job.as_mut());
            if ended.is_ok() && !self.rows.is_undone {
                ended = self.rows.say("COMMIT");
            }
            self.rows.roll_back();
            job.answer(ended);
        }
    }

    /// If there was no space or somebody else had a lock, nothing has been written: the calls are
    /// done again one by one, because a smaller one may fit. After any other error nobody knows
    /// what the disk holds, and a second try could hide that: all are told, those too whose work
    /// had failed, as it may have failed because of another one's.
    fn not_committed(&mut self, done: Vec<Done>, failure: &Failure) {
        self.rows.roll_back();
        if done.len() > 1 && (error::is_full(failure) || error::is_busy(failure)) {
            tracing::warn!(error = %failure, calls = done.len(), "a transaction was not committed; its calls are done again one by one");
            return self.again_alone(done);
        }
        for (job, _) in done {
            job.answer(Err(error::copy(failure)));
        }
    }

    /// No transaction can be begun. All who wait hear it now: each of them would wait as long for
    /// the same answer.
    fn refuse(&mut self, first: Box<dyn Job>, failure: Failure) {
        for _ in 1..BATCH {
            let Some(job) = self.queue.waiting() else {
                break;
            };
            job.answer(Err(error::copy(&failure)));
        }
        first.answer(Err(failure));
    }
}
