//! Who has a conversation go on, if it is not the process that accepted the input.

mod breaker; // leaving it alone that does not answer
mod watch; // signs of life of whoever is at a conversation

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adjutant_core::conversation::Conversation;
use adjutant_core::port::Change;
use adjutant_core::{BoxFuture, CancellationToken, ConversationKey, Input, InputId, Recorded};
use futures::future::{FusedFuture as _, FutureExt as _, OptionFuture};
use tokio::time::{Instant, sleep_until, timeout};

use crate::answered::Answered;
use crate::audience::{Listening, Told, TurnState};
use crate::held::{Arrival, LOOK, LOOK_BESIDE, Waits, open};
use crate::inner::Inner;
use crate::run::{Caller, go_on};
use crate::stream::Emitter;
use crate::{RunError, warning};
use breaker::{Breaker, Leave};
use watch::{BEGINS_WITHIN, Watch};

/// Time for which the last words of another process are waited for once its work is done.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Time in which a call ends whose turn has ended.
const CALL_ENDS: Duration = Duration::from_secs(5);

/// Has [`Agent::advance`](crate::Agent::advance) called for a conversation, by whichever process,
/// one at a time for each conversation. Nothing that matters rests on it: what was accepted is in
/// the journal, and what nobody sees to goes on in the process that accepted it, or with the next
/// [`Agent::resume`](crate::Agent::resume).
pub trait Dispatch: Send + Sync + 'static {
    /// Has the conversation go on because of an input, and returns when it has ended or waits for a
    /// human. The same input again is the same call. Whoever asks stops waiting after a second in
    /// which nobody has begun.
    ///
    /// # Errors
    /// [`NotDispatched`].
    fn call<'a>(&'a self, call: DispatchCall<'a>) -> BoxFuture<'a, Result<(), NotDispatched>>;

    /// Asks for the conversation to go on, and does not wait for it. Answers within a second.
    ///
    /// # Errors
    /// [`NotDispatched`].
    fn send<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<Sent, NotDispatched>>;

    /// Returns whether this process is one of those that are called. `None`: that is not known.
    fn is_registered(&self) -> Option<bool> {
        None
    }
}

/// A request to have a conversation go on.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct DispatchCall<'a> {
    /// The conversation.
    pub key: &'a ConversationKey,
    /// The input that was accepted.
    pub input: &'a InputId,
    /// The name of a listener who wants to be told what happens, for
    /// [`Agent::advance_telling`](crate::Agent::advance_telling). `None`: nobody does, or no other
    /// process can be heard.
    pub reply_to: Option<&'a str>,
}

/// Whether asking was news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It is asked for now.
    Now,
    /// Somebody asked for the same a moment ago, and nothing has come of it yet.
    Before,
}

/// Nobody took the call, or it failed there. Whoever asked does the work, or asks again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the conversation was not handed over: {0}")]
pub struct NotDispatched(pub String);

/// Counts of calls by their result, since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DispatchFigures {
    /// True while nobody is asked, because asking failed several times.
    pub left_alone: bool,
    /// [`Dispatch::is_registered`].
    pub registered: Option<bool>,
    /// Calls and requests that were taken.
    pub taken: u64,
    /// Those that were refused.
    pub refused: u64,
    /// Those that nobody had begun with after a second, or that were not answered in that time.
    pub late: u64,
    /// Those that were not made, because nobody was asked.
    pub skipped: u64,
    /// Times from the call to the first sign of a turn, of the last turns since this was last asked
    /// for whose beginning was heard.
    pub begun_after: Vec<Duration>,
}

/// Times that are kept until they are asked for.
const TIMES_MAX: usize = 1024;

/// Whoever dispatches, and whether they are asked at the moment.
pub(crate) struct Dispatcher {
    dispatch: Arc<dyn Dispatch>,
    breaker: Breaker,
    figures: Mutex<DispatchFigures>,
    /// The conversations that the sweep asked for and that are still to be done.
    asked: Mutex<HashMap<ConversationKey, Asked>>,
}

/// The time at which the sweep asks again.
#[derive(Debug, Clone, Copy)]
struct Asked {
    again: Instant,
    pause: Duration,
}

/// Pause before the sweep asks again for the same conversation. It doubles each time: what cannot
/// go on costs ever less.
const ASKS_AGAIN: Duration = Duration::from_secs(5);
const ASKS_AGAIN_MAX: Duration = Duration::from_secs(10 * 60);

/// The reason why a call failed.
enum Failed {
    Refused(String),
    Late(&'static str),
}

impl Dispatcher {
    pub(crate) fn new(dispatch: Arc<dyn Dispatch>) -> Self {
        Self {
            dispatch,
            breaker: Breaker::default(),
            figures: Mutex::default(),
            asked: Mutex::default(),
        }
    }

    /// Returns leave to ask, unless it is left alone at the moment.
    pub(crate) fn leave(&self) -> Option<Leave<'_>> {
        let leave = self.breaker.leave();
        if leave.is_none() {
            self.figures().skipped += 1;
        }
        leave
    }

    /// Returns whether nobody is asked at the moment.
    pub(crate) fn is_left_alone(&self) -> bool {
        self.breaker.is_open()
    }

    /// Returns what came of asking. Each time to begin is returned once.
    pub(crate) fn take_figures(&self) -> DispatchFigures {
        let (left_alone, registered) = (self.breaker.is_open(), self.dispatch.is_registered());
        let mut figures = self.figures();
        let begun_after = std::mem::take(&mut figures.begun_after);
        DispatchFigures {
            left_alone,
            registered,
            begun_after,
            ..figures.clone()
        }
    }

    /// Notes how long it took until a turn began.
    pub(crate) fn began_after(&self, time: Duration) {
        let mut figures = self.figures();
        if figures.begun_after.len() < TIMES_MAX {
            figures.begun_after.push(time);
        }
    }

    fn succeeded(&self, leave: Leave<'_>) {
        self.figures().taken += 1;
        if leave.succeeded() {
            warning::dispatched_again();
        }
    }

    fn failed(&self, leave: Leave<'_>, failed: Failed) {
        let why = match failed {
            Failed::Refused(why) => {
                self.figures().refused += 1;
                why
            }
            Failed::Late(why) => {
                self.figures().late += 1;
                why.to_owned()
            }
        };
        if leave.failed() {
            warning::not_dispatched(&why);
        }
    }

    fn figures(&self) -> MutexGuard<'_, DispatchFigures> {
        // Nothing is half done while it is locked.
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns those of the conversations with something to do that it is time to ask for.
    pub(crate) fn due(&self, mut open: Vec<ConversationKey>) -> Vec<ConversationKey> {
        let now = Instant::now();
        // Nothing is half done while it is locked.
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let still: HashSet<&ConversationKey> = open.iter().collect();
        asked.retain(|key, _| still.contains(key));
        open.retain(|key| match asked.get_mut(key) {
            Some(asked) if now < asked.again => false,
            Some(asked) => {
                let pause = (asked.pause * 2).min(ASKS_AGAIN_MAX);
                *asked = Asked {
                    again: now + pause,
                    pause,
                };
                true
            }
            None => {
                asked.insert(
                    key.clone(),
                    Asked {
                        again: now + ASKS_AGAIN,
                        pause: ASKS_AGAIN,
                    },
                );
                true
            }
        });
        open
    }

    /// Asks for a conversation to go on. `false`: nobody takes it, or somebody took it a moment ago
    /// and nothing came of it.
    pub(crate) async fn send(&self, key: &ConversationKey) -> bool {
        let Some(leave) = self.leave() else {
            return false;
        };
        match timeout(BEGINS_WITHIN, self.dispatch.send(key)).await {
            Ok(Ok(sent)) => {
                self.succeeded(leave);
                sent == Sent::Now
            }
            Ok(Err(NotDispatched(why))) => {
                self.failed(leave, Failed::Refused(why));
                false
            }
            Err(_) => {
                self.failed(leave, Failed::Late("there was no answer within a second"));
                false
            }
        }
    }

    /// Has an input seen to that was accepted, and tells what happens meanwhile. Where nobody
    /// begins with it, or whoever did shows no sign of life any more, it is done here: that is no
    /// danger even if somebody is at it, since they hold the claim, and the journal refuses a
    /// second writer. `None`: what became of it is in the journal.
    ///
    /// # Errors
    /// As [`open`] and [`go_on`].
    pub(crate) async fn see_to<'d>(
        &'d self,
        inner: &Inner,
        leave: Leave<'d>,
        key: &ConversationKey,
        input: &Input,
        (emitter, cancelled): (&Emitter, &CancellationToken),
        read: impl FnOnce(&Conversation) -> Option<Answered>,
    ) -> Result<Option<Answered>, RunError> {
        let asked = Instant::now();
        let mut listening = inner.audience.listen(key, emitter.is_nobody());
        let reply_to = listening.reply_to(&*inner.journal.relay());
        let mut call = self.called(key, &input.id, reply_to.as_deref()).fuse();
        let mut leave = Some(leave);
        let mut watch = Watch::new(asked);
        let mut go_on_here = Some(|leave: Option<Leave<'d>>| {
            self.here(inner, leave, key, input, (emitter, cancelled), read)
        });
        let mut here = OptionFuture::from(None);
        loop {
            let starts = tokio::select! {
                // In this order: what was told before the end is passed on before it.
                biased;
                told = listening.next() => {
                    if watch.heard(&told) {
                        self.began_after(asked.elapsed());
                    }
                    match told {
                        Told::Event(event) if watch.listens() => emitter.emit(|| event).await,
                        Told::Turn(turn) => if let Some(answered) = answered(key, &turn, input) {
                            leave.take().into_iter().for_each(|leave| self.succeeded(leave));
                            if !call.is_terminated() {
                                // Its end is on the way, and a connection that waits for one is
                                // used again.
                                tokio::spawn(timeout(CALL_ENDS, call));
                            }
                            return Ok(Some(answered));
                        },
                        Told::Event(_) | Told::Begun(_) | Told::End => {}
                    }
                    false
                }
                called = &mut call, if !call.is_terminated() => match called {
                    Ok(()) if go_on_here.is_some() => {
                        leave.take().into_iter().for_each(|leave| self.succeeded(leave));
                        return Ok(last_words(key, input, listening, (emitter, reply_to.is_some())).await);
                    }
                    Ok(()) => {
                        // Whoever had it may have let go of it.
                        inner.waiting.hear(&Change::Free(key.clone()));
                        false
                    }
                    Err(NotDispatched(why)) => {
                        if let Some(leave) = leave.take_if(|_| watch.sees_nobody()) {
                            self.failed(leave, Failed::Refused(why));
                        }
                        true
                    }
                },
                () = cancelled.cancelled(), if go_on_here.is_some() => true,
                Some(ended) = &mut here, if go_on_here.is_none() => return ended,
                () = sleep_until(watch.until) => watch.looks(inner, key).await,
            };
            if starts && let Some(go_on_here) = go_on_here.take() {
                watch.waits();
                here = OptionFuture::from(Some(Box::pin(go_on_here(leave.take()))));
            }
        }
    }

    /// Makes the call, which needs nothing that ends before it does.
    fn called(
        &self,
        key: &ConversationKey,
        input: &InputId,
        reply_to: Option<&str>,
    ) -> BoxFuture<'static, Result<(), NotDispatched>> {
        let dispatch = self.dispatch.clone();
        let (key, input, reply_to) = (key.clone(), input.clone(), reply_to.map(str::to_owned));
        Box::pin(async move {
            let reply_to = reply_to.as_deref();
            dispatch
                .call(DispatchCall {
                    key: &key,
                    input: &input,
                    reply_to,
                })
                .await
        })
    }

    /// Waits for the conversation to be ours, and does what there is to do.
    async fn here(
        &self,
        inner: &Inner,
        leave: Option<Leave<'_>>,
        key: &ConversationKey,
        input: &Input,
        (emitter, cancelled): (&Emitter, &CancellationToken),
        read: impl FnOnce(&Conversation) -> Option<Answered>,
    ) -> Result<Option<Answered>, RunError> {
        let arrival = Arrival {
            input,
            turn: None,
            first: None,
            trace: None,
        };
        // Where others can be heard, whoever has it is heard when they let go of it.
        let look = if inner.journal.relay().name().is_some() {
            LOOK_BESIDE
        } else {
            LOOK
        };
        let waits = Waits {
            cancelled,
            input: &input.id,
            emitter: None,
            look,
        };
        let Some(opened) = open(inner, key, Some(arrival), Some(waits)).await? else {
            return Ok(None);
        };
        if let Some(leave) = leave {
            match opened.log.has_work() && !cancelled.is_cancelled() {
                true => self.failed(
                    leave,
                    Failed::Late("nobody had begun with a turn after a second"),
                ),
                false => self.succeeded(leave),
            }
        }
        let caller = Caller {
            emitter,
            cancelled,
            input: Some(&input.id),
            trace: None,
        };
        go_on(inner, key, opened, None, caller, read).await
    }
}

/// Reads the outcome of an input from a turn that was told. `None`: the turn did not take it.
fn answered(key: &ConversationKey, turn: &TurnState, input: &Input) -> Option<Answered> {
    let took = |recorded: &Recorded| recorded.event.takes_input() == Some(&input.id);
    let of_turn = || Answered::of(key, (&turn.events, &turn.pending), input);
    turn.events.iter().any(took).then(of_turn).flatten()
}

/// Passes on what is still on its way, up to the end of the turn. `None`: that was not told.
async fn last_words(
    key: &ConversationKey,
    input: &Input,
    mut listening: Listening,
    (emitter, is_told): (&Emitter, bool),
) -> Option<Answered> {
    let rest = async {
        loop {
            match listening.next().await {
                Told::Event(event) => emitter.emit(|| event).await,
                Told::Turn(turn) => {
                    if let Some(answered) = answered(key, &turn, input) {
                        return Some(answered);
                    }
                }
                Told::Begun(_) => {}
                Told::End => return None,
            }
        }
    };
    match is_told {
        true => timeout(LAST_WORDS, rest).await.ok().flatten(),
        // In this process everything was told before.
        false => rest.now_or_never().flatten(),
    }
}
