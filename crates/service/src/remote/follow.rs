//! A run that another process tells.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::ConversationKey;
use adjutant_core::port::{Heard, Hearing, Relay, To};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::words::{Ask, Told, Words, take_frames};
use crate::live::Frame;

/// Interval at which it is said that somebody still asks.
const ASKS: Duration = Duration::from_secs(3);

/// Interval of asking as long as nobody answered.
const ASKS_FIRST: Duration = Duration::from_secs(1);

/// After so long a silence whoever told the run is gone.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Bytes of an event beyond which it is not waited for.
const EVENT_BYTES_MAX: usize = 2 * 1024 * 1024;

/// A run that goes on in another process, if it does. Dropped, it says that nobody asks any more.
pub(crate) struct Follower {
    relay: Arc<dyn Relay>,
    hearing: Box<dyn Hearing>,
    ask: Ask,
    /// The process that answered.
    from: Option<Arc<str>>,
    /// The number of the next piece.
    number: u64,
    /// The part of an event that was heard so far.
    begun: String,
    asks_at: Instant,
    heard_at: Instant,
    /// True once events were given.
    has_told: bool,
}

/// The next answer of [`Follower::next`].
#[derive(Debug)]
pub(crate) enum Followed {
    /// Events, in order and without a gap.
    Told(Vec<Frame>),
    /// Nothing more: whoever told it is gone, or does not tell it.
    Lost,
}

impl Follower {
    /// Asks the other processes for a run. `run`: the client's name for it, or its turn's. `after`:
    /// the last event that the client has. `has`: what it has of the conversation, if it says so.
    /// `None`: no other process can be heard.
    pub(crate) fn of(
        relay: &Arc<dyn Relay>,
        key: &ConversationKey,
        run: String,
        after: Option<String>,
        has: Option<String>,
    ) -> Option<Self> {
        let hearing = relay.hear()?;
        let key = key.clone();
        let ask = Ask {
            session: session(),
            agent: key.agent,
            user: key.user,
            conversation: key.conversation,
            run,
            after,
            has,
        };
        let now = Instant::now();
        Some(Self {
            relay: relay.clone(),
            hearing,
            ask,
            from: None,
            number: 0,
            begun: String::new(),
            asks_at: now,
            heard_at: now,
            has_told: false,
        })
    }

    /// Returns whether another process tells the run.
    pub(crate) fn is_answered(&self) -> bool {
        self.from.is_some()
    }

    /// Waits for what comes next. Nothing is lost if the future is dropped before it is ready.
    pub(crate) async fn next(&mut self) -> Followed {
        loop {
            let silent_at = self.heard_at + SILENCE_MAX;
            let heard = tokio::select! {
                heard = self.hearing.next() => heard,
                () = sleep_until(self.asks_at) => {
                    self.say_ask();
                    continue;
                }
                () = sleep_until(silent_at), if self.is_answered() => return Followed::Lost,
            };
            match heard {
                Some(Heard::Words { from, words }) => {
                    if let Some(next) = self.hear(&from, &words) {
                        return next;
                    }
                }
                Some(_) => self.ask_again(),
                None => return Followed::Lost,
            }
        }
    }

    fn hear(&mut self, from: &Arc<str>, words: &str) -> Option<Followed> {
        let told = match Words::read(words)? {
            Words::Told(told) if told.session == self.ask.session => told,
            Words::Refused { session } if session == self.ask.session => {
                return Some(Followed::Lost);
            }
            // Of others, or for others.
            Words::Told(_) | Words::Refused { .. } | Words::Ask(_) | Words::Leave { .. } => {
                return None;
            }
        };
        if *self.from.get_or_insert_with(|| from.clone()) != *from {
            // One is enough.
            return None;
        }
        self.heard_at = Instant::now();
        self.take(told)
    }

    fn take(&mut self, told: Told) -> Option<Followed> {
        if told.number != self.number {
            self.ask_again();
            return None;
        }
        if told.ends {
            return Some(Followed::Lost);
        }
        if told.text.is_empty() {
            return None;
        }
        self.number += 1;
        self.begun += &told.text;
        let Some(frames) = take_frames(&mut self.begun) else {
            return Some(Followed::Lost);
        };
        if self.begun.len() > EVENT_BYTES_MAX {
            return Some(Followed::Lost);
        }
        let first = frames.first()?;
        if self.has_told
            && !self
                .ask
                .after
                .as_deref()
                .is_some_and(|last| follows(last, &first.id))
        {
            // It is not what was told before.
            return Some(Followed::Lost);
        }
        self.has_told = true;
        self.ask.after = frames.last().map(|last| last.id.clone());
        Some(Followed::Told(frames))
    }

    /// Asks for everything behind the last event, because something lacks.
    fn ask_again(&mut self) {
        self.say_leave();
        self.ask.session = session();
        (self.number, self.begun) = (0, String::new());
        self.say_ask();
    }

    fn say_ask(&mut self) {
        let to = self.from.as_deref().map_or(To::All, To::One);
        self.relay.say(to, &Words::Ask(self.ask.clone()).written());
        self.asks_at = Instant::now() + if self.is_answered() { ASKS } else { ASKS_FIRST };
    }

    fn say_leave(&self) {
        if let Some(from) = &self.from {
            let session = self.ask.session.clone();
            self.relay
                .say(To::One(from), &Words::Leave { session }.written());
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.say_leave();
    }
}

fn session() -> String {
    Uuid::now_v7().simple().to_string()
}

/// Returns whether an event comes right behind another, by their ids.
fn follows(last: &str, next: &str) -> bool {
    let read = |id: &str| {
        let (mark, number) = id.rsplit_once('-')?;
        Some((mark.to_owned(), number.parse::<u64>().ok()?))
    };
    match (read(last), read(next)) {
        (Some((mark, last)), Some((other, next))) => mark == other && last + 1 == next,
        _ => false,
    }
}
