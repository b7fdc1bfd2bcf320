//! Those who wait for a turn that another task runs, perhaps in another process, and are told what happens in it.
//!
//! A task of this process finds them by the conversation. To another process everything is said through the [`Relay`] of the store, in
//! numbered pieces, and only if somebody there has asked for it. What is lost on the way is lost: the answer is read from the journal.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use adjutant_core::port::{Heard, Hearing, Relay, To, pieces};
use adjutant_core::{CancellationToken, ConversationKey};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::DropGuard;
use uuid::Uuid;

use crate::event::RunEvent;

/// Events that wait for a slow listener. A turn of this process waits with them; of what another process tells, the rest is lost.
const QUEUE: usize = 1024;

/// The first word of every message, which tells it from others in the same relay.
const MARK: &str = "adjutant-turn-1";

/// The most bytes in front of a piece.
const HEAD_BYTES: usize = 100;

/// Pause before something is said again for which there was no room.
const AGAIN: Duration = Duration::from_millis(25);

/// Time for which it is said again.
const PATIENCE: Duration = Duration::from_secs(5);

/// A message to a listener.
#[derive(Debug)]
pub(crate) enum Told {
    /// Something happened.
    Event(RunEvent),
    /// Whoever ran the conversation has done what there was to do.
    End,
}

/// All who listen in this process.
#[derive(Default)]
pub(crate) struct Audience {
    state: Mutex<State>,
    hears: AtomicBool,
    /// Ends the task that hears other processes.
    hearing: Mutex<Option<DropGuard>>,
}

#[derive(Default)]
struct State {
    listeners: HashMap<ConversationKey, Vec<(String, mpsc::Sender<Told>)>>,
    /// The sessions in which other processes tell listeners something, by name.
    sessions: HashMap<String, Session>,
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
            Ends::Turn => Ok(Told::End),
        };
        told.is_ok_and(|told| self.listener.try_send(told).is_ok())
    }
}

/// One who listens, until it is dropped.
pub(crate) struct Listening {
    audience: Arc<Audience>,
    key: ConversationKey,
    session: String,
    told: mpsc::Receiver<Told>,
}

impl Audience {
    /// Begins to listen to what happens in a conversation.
    pub(crate) fn listen(self: &Arc<Self>, key: &ConversationKey) -> Listening {
        let (listener, told) = mpsc::channel(QUEUE);
        let session = Uuid::now_v7().simple().to_string();
        let mut state = self.state();
        state.listeners.entry(key.clone()).or_default().push((session.clone(), listener.clone()));
        state.sessions.insert(session.clone(), Session { listener, number: Some(0), begun: String::new() });
        drop(state);
        Listening { audience: self.clone(), key: key.clone(), session, told }
    }

    /// Hears from now on what other processes tell, as long as the audience is there.
    pub(crate) fn hear(self: &Arc<Self>, relay: &Arc<dyn Relay>) {
        if self.hears.swap(true, Ordering::SeqCst) {
            return;
        }
        let Some(hearing) = relay.hear() else { return };
        // Whoever asks for the name wants to hear at once.
        let _ = relay.name();
        let stop = CancellationToken::new();
        tokio::spawn(hear(Arc::downgrade(self), hearing, stop.clone()));
        *self.hearing.lock().unwrap_or_else(PoisonError::into_inner) = Some(stop.drop_guard());
    }

    fn of(&self, key: &ConversationKey) -> Vec<mpsc::Sender<Told>> {
        let state = self.state();
        state.listeners.get(key).into_iter().flatten().map(|(_, listener)| listener.clone()).collect()
    }

    /// Hands on what another process said.
    fn on(&self, words: &str) {
        let Some((session, number, ends, text)) = read(words) else { return };
        let mut state = self.state();
        let Some(known) = state.sessions.get_mut(session) else { return };
        if number == 0 {
            // Perhaps by another process, after the first one was lost.
            (known.number, known.begun) = (Some(0), String::new());
        }
        let goes_on = known.number == Some(number) && known.on(ends, text);
        known.number = goes_on.then_some(number + 1);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is half done while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn hear(audience: Weak<Audience>, mut hearing: Box<dyn Hearing>, stop: CancellationToken) {
    loop {
        let heard = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            heard = hearing.next() => heard,
        };
        match (heard, audience.upgrade()) {
            (Some(Heard::Words { words, .. }), Some(audience)) => audience.on(&words),
            // Who missed something finds that a number lacks.
            (Some(_), Some(_)) => {}
            (None, _) | (_, None) => return,
        }
    }
}

impl Listening {
    /// Returns the name by which another process tells this listener, if it can be heard here.
    pub(crate) fn reply_to(&self, relay: &dyn Relay) -> Option<String> {
        Some(format!("{}-{}", relay.name()?, self.session))
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
            listeners.retain(|(session, _)| *session != self.session);
            if listeners.is_empty() {
                state.listeners.remove(&self.key);
            }
        }
    }
}

/// Tells what happens in a conversation to those who listen to it. Dropped, it tells them that nothing more happens for now.
pub(crate) struct Telling {
    audience: Arc<Audience>,
    key: ConversationKey,
    /// Events on their way to another process.
    away: Option<mpsc::Sender<String>>,
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
            let (away, events) = mpsc::channel(QUEUE);
            let saying = Saying {
                relay: relay.clone(),
                process: process.to_owned(),
                session: session.to_owned(),
                number: 0,
            };
            tokio::spawn(saying.say_all(events));
            Some(away)
        });
        Self { audience: audience.clone(), key: key.clone(), away }
    }

    /// Tells an event, which is made only if somebody listens.
    pub(crate) async fn tell(&self, event: impl FnOnce() -> RunEvent) {
        let away = self.away.as_ref().filter(|away| !away.is_closed());
        let listeners = self.audience.of(&self.key);
        if listeners.is_empty() && away.is_none() {
            return;
        }
        let event = event();
        if let Some(away) = away
            && let Ok(event) = serde_json::to_string(&event)
        {
            // The turn waits for no other process: who is that far behind misses it, and finds that a number lacks.
            let _ = away.try_send(event);
        }
        for listener in listeners {
            // It may have left just now.
            let _ = listener.send(Told::Event(event.clone())).await;
        }
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        for listener in self.audience.of(&self.key) {
            // Who has no room for it reads the end from the journal.
            let _ = listener.try_send(Told::End);
        }
    }
}

/// Events on their way to a listener in another process.
struct Saying {
    relay: Arc<dyn Relay>,
    process: String,
    session: String,
    number: u64,
}

impl Saying {
    /// Says everything, and that it is the end. Stops if there is no room for it for too long.
    async fn say_all(mut self, mut events: mpsc::Receiver<String>) {
        let most = self.relay.bytes_max().saturating_sub(HEAD_BYTES);
        while let Some(event) = events.recv().await {
            let mut pieces = pieces(&event, most).into_iter().peekable();
            while let Some(piece) = pieces.next() {
                let ends = if pieces.peek().is_some() { Ends::Not } else { Ends::Event };
                if !self.say(ends, piece).await {
                    return;
                }
            }
        }
        self.say(Ends::Turn, "").await;
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

/// The end that a piece marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// Nothing: the event goes on in the next one.
    Not,
    /// An event.
    Event,
    /// Everything.
    Turn,
}

fn written(session: &str, number: u64, ends: Ends, text: &str) -> String {
    let ends = match ends {
        Ends::Not => "part",
        Ends::Event => "event",
        Ends::Turn => "end",
    };
    format!("{MARK} {session} {number} {ends}\n{text}")
}

/// Reads a piece: session, number, what ends with it, and its text. `None`: it is something else.
fn read(words: &str) -> Option<(&str, u64, Ends, &str)> {
    let (head, text) = words.split_once('\n')?;
    let mut head = head.strip_prefix(MARK)?.strip_prefix(' ')?.split(' ');
    let (session, number, ends) = (head.next()?, head.next()?.parse().ok()?, head.next()?);
    let ends = match ends {
        "part" => Ends::Not,
        "event" => Ends::Event,
        "end" => Ends::Turn,
        _ => return None,
    };
    Some((session, number, ends, text))
}

#[cfg(test)]
mod tests {
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
                self.to.on(words);
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
        ConversationKey { agent, user, conversation: ConversationId(Uuid::nil()) }
    }

    /// Tells two texts to a listener in another process. Returns what it was told until the end, or until nothing more comes.
    async fn told(listening: &mut Listening, there: &Arc<Audience>, loses: usize) -> Vec<String> {
        let line = |name| Line { name, to: there.clone(), said: Mutex::default(), loses };
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
        let mut listening = there.listen(&key());
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
        ] {
            assert_eq!(read(words), None, "{words}");
        }
        let written = written("a", 7, Ends::Not, "x\ny");
        assert_eq!(read(&written), Some(("a", 7, Ends::Not, "x\ny")));
    }
}
