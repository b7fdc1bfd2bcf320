//! The runs of this process, told to others that ask for them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adjutant_core::port::{Heard, Hearing, Relay, To};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::words::{Ask, Told, Words, lines, pieces};
use crate::live::{Run, Runs};

/// Time for which a run is told to a process that does not say again that somebody asks for it.
const ASKED_FOR: Duration = Duration::from_secs(10);

/// Processes that are told a run by this one at once. Who asks beyond that is answered from the
/// journal.
const TOLD_MAX: usize = 64;

/// Time in which events gather, and the wait where too much is on its way already.
const GATHERS: Duration = Duration::from_millis(50);

/// Bytes of a run that are made ready at once.
const READY_BYTES: usize = 64 * 1024;

/// Bytes of an event beyond which the run is not told on: whoever asks has its end from the
/// journal.
const EVENT_BYTES_MAX: usize = 1024 * 1024;

/// Tells other processes the runs of this one. It hears them only while one goes on.
pub(crate) struct Host {
    runs: Arc<Runs>,
    relay: Arc<dyn Relay>,
    state: Mutex<State>,
    /// Fires when there is less to do.
    less: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Number of reasons to hear others: runs, and processes that are told one.
    reasons: usize,
    hears: bool,
}

/// A reason to hear others, until it is dropped.
pub(crate) struct Hosted(Arc<Host>);

impl Drop for Hosted {
    fn drop(&mut self) {
        self.0.state().reasons -= 1;
        self.0.less.notify_one();
    }
}

impl Host {
    pub(crate) fn new(runs: Arc<Runs>, relay: Arc<dyn Relay>) -> Arc<Self> {
        Arc::new(Self {
            runs,
            relay,
            state: Mutex::default(),
            less: Notify::new(),
        })
    }

    pub(crate) fn relay(&self) -> &Arc<dyn Relay> {
        &self.relay
    }

    /// Hears from now on who asks for a run.
    pub(crate) fn host(self: &Arc<Self>) -> Hosted {
        let mut state = self.state();
        state.reasons += 1;
        if !state.hears
            && let Some(hearing) = self.relay.hear()
        {
            state.hears = true;
            tokio::spawn(answer(self.clone(), hearing));
        }
        Hosted(self.clone())
    }

    /// Stops hearing, if there is no reason for it. Returns whether it has.
    fn stops(&self) -> bool {
        let mut state = self.state();
        state.hears = state.reasons > 0;
        !state.hears
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is half done while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One who is told a run: fires when they say again that they ask. Dropped, they are told nothing
/// more.
type Asking = watch::Sender<()>;

/// Answers those who ask until there is nothing to tell.
async fn answer(host: Arc<Host>, mut hearing: Box<dyn Hearing>) {
    let mut asking: HashMap<String, Asking> = HashMap::new();
    loop {
        let heard = tokio::select! {
            heard = hearing.next() => match heard {
                Some(heard) => Some(heard),
                None => {
                    host.state().hears = false;
                    return;
                }
            },
            () = host.less.notified() => None,
        };
        asking.retain(|_, asking| !asking.is_closed());
        if let Some(Heard::Words { from, words }) = heard {
            match Words::read(&words) {
                Some(Words::Ask(ask)) => begin(&host, &mut asking, &from, ask),
                Some(Words::Leave { session }) => drop(asking.remove(&session)),
                // For those who asked.
                Some(Words::Told(_) | Words::Refused { .. }) | None => {}
            }
        }
        if host.stops() {
            return;
        }
    }
}

/// Begins to tell a run, or goes on.
fn begin(host: &Arc<Host>, asking: &mut HashMap<String, Asking>, from: &Arc<str>, ask: Ask) {
    if let Some(asking) = asking.get(&ask.session) {
        asking.send_replace(());
        return;
    }
    let Some(run) = host.runs.of_conversation(&ask.key(), &ask.run) else {
        return;
    };
    if asking.len() >= TOLD_MAX {
        return;
    }
    if ask.has.is_some_and(|has| has != run.began_with) {
        host.relay.say(
            To::One(from),
            &Words::Refused {
                session: ask.session,
            }
            .written(),
        );
        return;
    }
    let at = ask.after.map_or(0, |id| run.place_of(&id));
    let (sender, asked) = watch::channel(());
    let telling = Telling {
        relay: host.relay.clone(),
        to: from.clone(),
        session: ask.session.clone(),
        number: 0,
        until: Instant::now() + ASKED_FOR,
        _hosted: host.host(),
    };
    asking.insert(ask.session, sender);
    tokio::spawn(telling.tell(run, at, asked));
}

/// A run on its way to one who asks.
struct Telling {
    relay: Arc<dyn Relay>,
    to: Arc<str>,
    session: String,
    number: u64,
    until: Instant,
    _hosted: Hosted,
}

impl Telling {
    /// Tells a run from a place on until its end, or until nobody asks any more. The run waits for
    /// nothing of it.
    async fn tell(mut self, run: Arc<Run>, mut at: usize, mut asked: watch::Receiver<()>) {
        loop {
            tokio::select! {
                again = asked.changed() => {
                    if again.is_err() {
                        return;
                    }
                    self.until = Instant::now() + ASKED_FOR;
                    self.say(String::new(), false);
                }
                () = sleep_until(self.until) => return,
                frame = run.frame(at) => {
                    if frame.is_none() {
                        self.told(String::new(), true).await;
                        return;
                    }
                    sleep(GATHERS).await;
                    let frames = run.frames(at, READY_BYTES);
                    if frames.iter().any(|frame| frame.data.len() > EVENT_BYTES_MAX) {
                        self.told(String::new(), true).await;
                        return;
                    }
                    at += frames.len();
                    for piece in pieces(&lines(&frames), self.relay.bytes_max()) {
                        if !self.told(piece.to_owned(), false).await {
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Says a piece as soon as there is room for it. `false`: there is none, and nobody asks any
    /// more.
    async fn told(&mut self, text: String, ends: bool) -> bool {
        while !self.say(text.clone(), ends) {
            if Instant::now() >= self.until {
                return false;
            }
            sleep(GATHERS).await;
        }
        self.number += 1;
        true
    }

    fn say(&self, text: String, ends: bool) -> bool {
        let told = Told {
            session: self.session.clone(),
            number: self.number,
            ends,
            text,
        };
        self.relay
            .say(To::One(&self.to), &Words::Told(told).written())
    }
}
