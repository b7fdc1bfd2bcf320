//! Those who wait for a turn that another task runs, perhaps in another process, and are told what
//! happens in it.
//!
//! A task of this process finds them by the conversation. To another process everything is said
//! through the [`Relay`] of the store, in numbered pieces, and only if somebody there has asked for
//! it. What is lost on the way is lost: the answer is read from the journal.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use adjutant_core::conversation::Conversation;
use adjutant_core::port::{Heard, Hearing, Holder, Relay, To, Worker, pieces};
use adjutant_core::{CancellationToken, ConversationKey, PendingCall, Recorded};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::DropGuard;
use uuid::Uuid;

use crate::event::RunEvent;

/// Events that wait for a slow listener. A turn of this process waits with them; of what another
/// process tells, the rest is lost.
const QUEUE: usize = 1024;

/// The first word of every message, which tells it from others in the same relay.
const MARK: &str = "adjutant-turn-1";

/// The most bytes in front of a piece.
const HEAD_BYTES: usize = 100;

/// Pause before something is said again for which there was no room.
const AGAIN: Duration = Duration::from_millis(25);

/// Time for which it is said again.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time in which a process is asked once whether it is there, whoever wants to know.
pub(crate) const ASKED_ONCE: Duration = Duration::from_millis(200);

/// Workers of other processes of which something is remembered.
const WORKERS_MAX: usize = 4096;

/// The most bytes of a turn that are told to another process: a longer one is read from the
/// journal.
const TURN_BYTES_MAX: usize = 64 * 1024;

/// The end of the name of a listener who wants to know the end of the turn, and not what happens on
/// the way.
const QUIET: &str = ".quiet";

/// A message to a listener.
#[derive(Debug)]
pub(crate) enum Told {
    /// Something happened.
    Event(RunEvent),
    /// A turn ended or waits for a person.
    Turn(Arc<TurnState>),
    /// A worker of another process has begun with a turn.
    Begun(Holder),
    /// Whoever ran the conversation has done what there was to do.
    End,
}

/// The state of a turn that ended or waits for a person.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TurnState {
    /// Its events so far, and what is behind them.
    pub(crate) events: Vec<Recorded>,
    /// The calls that wait for a person.
    pub(crate) pending: Vec<PendingCall>,
}

/// All who listen in this process.
#[derive(Default)]
pub(crate) struct Audience {
    state: Mutex<State>,
    workers: Mutex<HashMap<String, Seen>>,
    hears: AtomicBool,
    /// Ends the task that hears other processes.
    hearing: Mutex<Option<DropGuard>>,
}

#[derive(Default)]
struct State {
    listeners: HashMap<ConversationKey, Vec<Listener>>,
    /// The sessions in which other processes tell listeners something, by name.
    sessions: HashMap<String, Session>,
}

/// Times and place of a worker of another process.
#[derive(Default)]
struct Seen {
    /// The name of its process.
    process: Option<Arc<str>>,
    heard: Option<Instant>,
    asked: Option<Instant>,
}

/// One who listens in this process.
#[derive(Clone)]
struct Listener {
    session: String,
    told: mpsc::Sender<Told>,
    /// True if it wants to know the end only.
    is_quiet: bool,
}

/// The messages of another process to one listener.
struct Session {
    listener: mpsc::Sender<Told>,
    /// The number of the next piece. `None`: one was lost.
    number: Option<u64>,
    /// The part of an event that was heard so far.
    begun: String,
}

impl Session {
    /// Hands on a piece. Returns whether what comes behind it can be told.
    fn on(&mut self, ends: Ends, text: &str) -> bool {
        self.begun += text;
        let told = match ends {
            Ends::Not => return true,
            Ends::Event => serde_json::from_str(&std::mem::take(&mut self.begun)).map(Told::Event),
            Ends::Turn => serde_json::from_str(&std::mem::take(&mut self.begun))
                .map(|turn| Told::Turn(Arc::new(turn))),
            Ends::All => Ok(Told::End),
        };
        told.is_ok_and(|told| self.listener.try_send(told).is_ok())
    }
}

/// One who listens, until it is dropped.
pub(crate) struct Listening {
    audience: Arc<Audience>,
    key: ConversationKey,
    session: String,
    is_quiet: bool,
    told: mpsc::Receiver<Told>,
}

impl Audience {
    /// Begins to listen to what happens in a conversation. `is_quiet`: only the end is of interest.
    pub(crate) fn listen(self: &Arc<Self>, key: &ConversationKey, is_quiet: bool) -> Listening {
        let (listener, told) = mpsc::channel(QUEUE);
        let session = Uuid::now_v7().simple().to_string();
        let mut state = self.state();
        let own = Listener {
            session: session.clone(),
            told: listener.clone(),
            is_quiet,
        };
        state.listeners.entry(key.clone()).or_default().push(own);
        state.sessions.insert(
            session.clone(),
            Session {
                listener,
                number: Some(0),
                begun: String::new(),
            },
        );
        drop(state);
        Listening {
            audience: self.clone(),
            key: key.clone(),
            session,
            is_quiet,
            told,
        }
    }

    /// Hears from now on what other processes tell, as long as the audience is there, and answers
    /// those who ask for the worker of this process.
    pub(crate) fn hear(self: &Arc<Self>, relay: &Arc<dyn Relay>, worker: &str) {
        if self.hears.swap(true, Ordering::SeqCst) {
            return;
        }
        let Some(hearing) = relay.hear() else { return };
        // Whoever asks for the name wants to hear at once.
        let _ = relay.name();
        let stop = CancellationToken::new();
        let own = Own {
            relay: relay.clone(),
            worker: worker.to_owned(),
        };
        tokio::spawn(hear(Arc::downgrade(self), hearing, own, stop.clone()));
        *self.hearing.lock().unwrap_or_else(PoisonError::into_inner) = Some(stop.drop_guard());
    }

    fn of(&self, key: &ConversationKey) -> Vec<Listener> {
        self.state().listeners.get(key).cloned().unwrap_or_default()
    }

    /// Returns the time at which a worker of another process was heard last.
    pub(crate) fn heard_at(&self, worker: &str) -> Option<Instant> {
        self.workers().get(worker)?.heard
    }

    /// Asks a worker of another process whether it is there.
    pub(crate) fn ask(&self, relay: &dyn Relay, worker: &str) {
        let now = Instant::now();
        let mut workers = self.workers();
        if workers.len() >= WORKERS_MAX {
            workers.clear();
        }
        let seen = workers.entry(worker.to_owned()).or_default();
        if seen.asked.is_some_and(|asked| now < asked + ASKED_ONCE) {
            return;
        }
        let to = seen.process.as_deref().map_or(To::All, To::One);
        // Where there is no room for it, the next one who wants to know asks.
        if relay.say(to, &asked(worker)) {
            seen.asked = Some(now);
        }
    }

    fn lives(&self, worker: &str, process: &Arc<str>) {
        let mut workers = self.workers();
        if workers.len() >= WORKERS_MAX {
            workers.clear();
        }
        let seen = workers.entry(worker.to_owned()).or_default();
        (seen.process, seen.heard) = (Some(process.clone()), Some(Instant::now()));
    }

    /// Hands on what another process said.
    fn on(&self, from: &Arc<str>, words: &str, own: &Own) {
        match read(words) {
            Some(Words::Ask { worker }) if worker == own.worker => {
                // Who gets no answer asks again.
                own.relay.say(To::One(from), &alive(worker));
            }
            Some(Words::Ask { .. }) | None => {}
            Some(Words::Alive { worker }) => self.lives(worker, from),
            Some(Words::Begun { session, holder }) => {
                self.lives(&holder.worker, from);
                if let Some(known) = self.state().sessions.get(session) {
                    // Who has no room for it has heard enough.
                    let _ = known.listener.try_send(Told::Begun(holder));
                }
            }
            Some(Words::Piece {
                session,
                number,
                ends,
                text,
            }) => {
                let mut state = self.state();
                let Some(known) = state.sessions.get_mut(session) else {
                    return;
                };
                if number == 0 {
                    // Perhaps by another process, after the first one was lost.
                    (known.number, known.begun) = (Some(0), String::new());
                }
                let goes_on = known.number == Some(number) && known.on(ends, text);
                known.number = goes_on.then_some(number + 1);
            }
        }
    }

    fn workers(&self) -> MutexGuard<'_, HashMap<String, Seen>> {
        // Nothing is half done while it is locked.
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is half done while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The worker of this process, for those who ask for it.
struct Own {
    relay: Arc<dyn Relay>,
    worker: String,
}

async fn hear(
    audience: Weak<Audience>,
    mut hearing: Box<dyn Hearing>,
    own: Own,
    stop: CancellationToken,
) {
    loop {
        let heard = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            heard = hearing.next() => heard,
        };
        match (heard, audience.upgrade()) {
            (Some(Heard::Words { from, words }), Some(audience)) => {
                audience.on(&from, &words, &own)
            }
            // Who missed something finds that a number lacks.
            (Some(_), Some(_)) => {}
            (None, _) | (_, None) => return,
        }
    }
}

impl Listening {
    /// Returns the name by which another process tells this listener, if it can be heard here.
    pub(crate) fn reply_to(&self, relay: &dyn Relay) -> Option<String> {
        let quiet = if self.is_quiet { QUIET } else { "" };
        Some(format!("{}-{}{quiet}", relay.name()?, self.session))
    }

    /// Waits for what is told next. Nothing is lost if the future is dropped before it is ready.
    pub(crate) async fn next(&mut self) -> Told {
        // Its sender is kept as long as it listens.
        self.told.recv().await.unwrap_or(Told::End)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut state = self.audience.state();
        state.sessions.remove(&self.session);
        if let Some(listeners) = state.listeners.get_mut(&self.key) {
            listeners.retain(|listener| listener.session != self.session);
            if listeners.is_empty() {
                state.listeners.remove(&self.key);
            }
        }
    }
}

/// Tells what happens in a conversation to those who listen to it. Dropped, it tells them that
/// nothing more happens for now.
pub(crate) struct Telling {
    audience: Arc<Audience>,
    key: ConversationKey,
    away: Option<Away>,
}

/// The way to a listener in another process.
struct Away {
    said: mpsc::Sender<Said>,
    is_quiet: bool,
}

/// A message on its way to another process.
enum Said {
    Begun(Holder),
    Event(String),
    Turn(String),
}

impl Telling {
    /// Begins to tell. `reply_to`: a listener in another process, see [`Listening::reply_to`].
    pub(crate) fn new(
        audience: &Arc<Audience>,
        relay: &Arc<dyn Relay>,
        key: &ConversationKey,
        reply_to: Option<&str>,
    ) -> Self {
        let away = reply_to.and_then(|name| {
            let (process, session) = name.rsplit_once('-')?;
            // One of this process is found by the conversation.
            if session.len() > HEAD_BYTES / 2 || relay.name().is_some_and(|own| *own == *process) {
                return None;
            }
            let (said, messages) = mpsc::channel(QUEUE);
            let (session, is_quiet) = match session.strip_suffix(QUIET) {
                Some(session) => (session, true),
                None => (session, false),
            };
            let saying = Saying {
                relay: relay.clone(),
                process: process.to_owned(),
                session: session.to_owned(),
                number: 0,
            };
            tokio::spawn(saying.say_all(messages));
            Some(Away { said, is_quiet })
        });
        Self {
            audience: audience.clone(),
            key: key.clone(),
            away,
        }
    }

    /// Tells everybody that a worker has begun with a turn, or goes on with it.
    pub(crate) async fn tell_begun(&self, worker: Worker<'_>, event: impl FnOnce() -> RunEvent) {
        if let Some(away) = self.away.as_ref() {
            // Who does not hear it looks after a while.
            let _ = away.said.try_send(Said::Begun(Holder {
                worker: worker.id.to_owned(),
                epoch: worker.epoch,
            }));
        }
        self.tell_those(event, true).await;
    }

    /// Tells an event, which is made only if somebody listens.
    pub(crate) async fn tell(&self, event: impl FnOnce() -> RunEvent) {
        self.tell_those(event, false).await;
    }

    async fn tell_those(&self, event: impl FnOnce() -> RunEvent, quiet_too: bool) {
        let away = self
            .away
            .as_ref()
            .filter(|away| !away.is_quiet && !away.said.is_closed());
        let listeners = self.audience.of(&self.key);
        let mut listeners = listeners
            .into_iter()
            .filter(|listener| quiet_too || !listener.is_quiet)
            .peekable();
        if listeners.peek().is_none() && away.is_none() {
            return;
        }
        let event = event();
        if let Some(away) = away
            && let Ok(event) = serde_json::to_string(&event)
        {
            // The turn waits for no other process: who is that far behind misses it, and finds that
            // a number lacks.
            let _ = away.said.try_send(Said::Event(event));
        }
        for listener in listeners {
            // It may have left just now.
            let _ = listener.told.send(Told::Event(event.clone())).await;
        }
    }

    /// Tells how a turn ended, or that it waits for a person.
    pub(crate) async fn tell_turn(&self, conversation: &Conversation) {
        let away = self.away.as_ref().filter(|away| !away.said.is_closed());
        let listeners = self.audience.of(&self.key);
        if listeners.is_empty() && away.is_none() {
            return;
        }
        let events = conversation.recent().to_vec();
        let turn = Arc::new(TurnState {
            events,
            pending: conversation.pending().to_vec(),
        });
        if let Some(away) = away
            && let Ok(turn) = serde_json::to_string(&*turn)
            && turn.len() <= TURN_BYTES_MAX
        {
            // Who misses it reads the journal.
            let _ = away.said.try_send(Said::Turn(turn));
        }
        for listener in listeners {
            // It may have left just now.
            let _ = listener.told.send(Told::Turn(turn.clone())).await;
        }
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        for listener in self.audience.of(&self.key) {
            // Who has no room for it reads the end from the journal.
            let _ = listener.told.try_send(Told::End);
        }
    }
}

/// Messages on their way to a listener in another process.
struct Saying {
    relay: Arc<dyn Relay>,
    process: String,
    session: String,
    number: u64,
}

impl Saying {
    /// Says everything, and that it is the end. Stops if there is no room for it for too long.
    async fn say_all(mut self, mut messages: mpsc::Receiver<Said>) {
        while let Some(message) = messages.recv().await {
            let is_said = match message {
                Said::Begun(holder) => {
                    // It is not one of the numbered pieces: without it, whoever waits asks who is
                    // at it.
                    self.relay
                        .say(To::One(&self.process), &begun(&self.session, &holder));
                    true
                }
                Said::Event(event) => self.say_whole(&event, Ends::Event).await,
                Said::Turn(turn) => self.say_whole(&turn, Ends::Turn).await,
            };
            if !is_said {
                return;
            }
        }
        self.say(Ends::All, "").await;
    }

    async fn say_whole(&mut self, text: &str, ends: Ends) -> bool {
        let most = self.relay.bytes_max().saturating_sub(HEAD_BYTES);
        let mut pieces = pieces(text, most).into_iter().peekable();
        while let Some(piece) = pieces.next() {
            let ends = if pieces.peek().is_some() {
                Ends::Not
            } else {
                ends
            };
            if !self.say(ends, piece).await {
                return false;
            }
        }
        true
    }

    async fn say(&mut self, ends: Ends, text: &str) -> bool {
        let words = written(&self.session, self.number, ends, text);
        let until = Instant::now() + PATIENCE;
        while !self.relay.say(To::One(&self.process), &words) {
            if Instant::now() >= until {
                return false;
            }
            sleep(AGAIN).await;
        }
        self.number += 1;
        true
    }
}

/// A message from another process.
#[derive(Debug, PartialEq)]
enum Words<'a> {
    /// A part of what is told in order.
    Piece {
        session: &'a str,
        number: u64,
        ends: Ends,
        text: &'a str,
    },
    /// A worker begins with a turn.
    Begun { session: &'a str, holder: Holder },
    /// The question whether a worker is there.
    Ask { worker: &'a str },
    /// The answer that it is.
    Alive { worker: &'a str },
}

/// The end that a piece marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// Nothing: the event goes on in the next one.
    Not,
    /// An event.
    Event,
    /// The state of a turn.
    Turn,
    /// Everything.
    All,
}

fn written(session: &str, number: u64, ends: Ends, text: &str) -> String {
    let ends = match ends {
        Ends::Not => "part",
        Ends::Event => "event",
        Ends::Turn => "turn",
        Ends::All => "end",
    };
    format!("{MARK} {session} {number} {ends}\n{text}")
}

fn begun(session: &str, Holder { worker, epoch }: &Holder) -> String {
    format!("{MARK} {session} {epoch} begun\n{worker}")
}

fn asked(worker: &str) -> String {
    format!("{MARK} ask\n{worker}")
}

fn alive(worker: &str) -> String {
    format!("{MARK} alive\n{worker}")
}

/// Reads a message. `None`: it is something else.
fn read(words: &str) -> Option<Words<'_>> {
    let (head, text) = words.split_once('\n')?;
    let head: Vec<&str> = head
        .strip_prefix(MARK)?
        .strip_prefix(' ')?
        .split(' ')
        .collect();
    let (session, number, ends) = match *head {
        ["ask"] => return Some(Words::Ask { worker: text }),
        ["alive"] => return Some(Words::Alive { worker: text }),
        [session, number, ends] => (session, number, ends),
        _ => return None,
    };
    let ends = match ends {
        "begun" => {
            let holder = Holder {
                worker: text.to_owned(),
                epoch: number.parse().ok()?,
            };
            return Some(Words::Begun { session, holder });
        }
        "part" => Ends::Not,
        "event" => Ends::Event,
        "turn" => Ends::Turn,
        "end" => Ends::All,
        _ => return None,
    };
    Some(Words::Piece {
        session,
        number: number.parse().ok()?,
        ends,
        text,
    })
}

#[cfg(test)]
mod tests {
    use adjutant_core::port::Alone;
    use adjutant_core::{AgentName, ConversationId, UserId};

    use super::*;

    /// The way to another process; one of so many pieces is lost, 0: none.
    struct Line {
        name: &'static str,
        to: Arc<Audience>,
        said: Mutex<usize>,
        loses: usize,
    }

    impl Relay for Line {
        fn say(&self, to: To<'_>, words: &str) -> bool {
            assert_eq!(to, To::One("there"));
            assert!(words.len() <= self.bytes_max(), "{}", words.len());
            let mut said = self.said.lock().unwrap();
            *said += 1;
            // Nothing else is there before the relay hears, nor when it is full.
            if *said == 1 {
                return false;
            }
            if self.loses == 0 || *said != self.loses {
                let own = Own {
                    relay: Arc::new(Alone),
                    worker: "worker".to_owned(),
                };
                self.to.on(&self.name.into(), words, &own);
            }
            true
        }

        fn name(&self) -> Option<Arc<str>> {
            Some(self.name.into())
        }

        fn bytes_max(&self) -> usize {
            200
        }

        fn hear(&self) -> Option<Box<dyn Hearing>> {
            None
        }
    }

    fn key() -> ConversationKey {
        let (agent, user) = (AgentName::adjutant(), UserId::local());
        ConversationKey {
            agent,
            user,
            conversation: ConversationId(Uuid::nil()),
        }
    }

    /// Tells two texts to a listener in another process. Returns what it was told until the end, or
    /// until nothing more comes.
    async fn told(listening: &mut Listening, there: &Arc<Audience>, loses: usize) -> Vec<String> {
        let line = |name| Line {
            name,
            to: there.clone(),
            said: Mutex::default(),
            loses,
        };
        let reply_to = listening.reply_to(&line("there")).unwrap();
        let here: Arc<dyn Relay> = Arc::new(line("here"));
        let telling = Telling::new(&Arc::default(), &here, &key(), Some(&reply_to));
        for words in ["ä\u{0}\n🦀".repeat(100), "short".to_owned()] {
            telling.tell(|| RunEvent::Text(words)).await;
        }
        drop(telling);
        let mut told = Vec::new();
        while let Ok(Told::Event(RunEvent::Text(words))) =
            tokio::time::timeout(PATIENCE * 2, listening.next()).await
        {
            told.push(words);
        }
        told
    }

    #[tokio::test(start_paused = true)]
    async fn another_process_is_told_everything_in_order() {
        let there = Arc::<Audience>::default();
        let mut listening = there.listen(&key(), false);
        let said = ["ä\u{0}\n🦀".repeat(100), "short".to_owned()];
        assert_eq!(told(&mut listening, &there, 0).await, said);
        // Behind what was lost nothing is told, as it would be in the wrong place.
        assert!(told(&mut listening, &there, 3).await.is_empty());
        // Another one, after the first was lost, begins anew.
        assert_eq!(told(&mut listening, &there, 0).await, said);
        drop(listening);
        assert!(there.state().sessions.is_empty() && there.state().listeners.is_empty());
    }

    #[test]
    fn what_others_say_is_none_of_ours() {
        for words in [
            "",
            "{}",
            "adjutant-turn-1 a 0 event",
            "adjutant-turn-1 a x event\n",
            "adjutant-turn-1 a 0 what\n",
            "adjutant-turn-1 a x begun\nworker",
            "adjutant-turn-1 asks\nworker",
        ] {
            assert_eq!(read(words), None, "{words}");
        }
        let written = written("a", 7, Ends::Not, "x\ny");
        assert_eq!(
            read(&written),
            Some(Words::Piece {
                session: "a",
                number: 7,
                ends: Ends::Not,
                text: "x\ny"
            })
        );
    }
}
