//! Everything that the processes of one run share: the store, the outside systems, and the faults.

use std::collections::BTreeMap;
use std::fmt::Arguments;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use adjutant_core::port::Change;
use adjutant_core::{AgentName, ConversationId, ConversationKey, Event, UserId};
use jiff::Timestamp;
use tokio::sync::Mutex as AsyncMutex;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::chance::Chance;
use crate::listener::Listener;
use crate::lock::lock;
use crate::outside::Outside;
use crate::plan::{Options, Plan};
use crate::process::{Process, State};
use crate::store::Store;
use crate::trace::Trace;

/// The environment of the processes.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) keys: Vec<ConversationKey>,
    began: Instant,
    /// The time of the store's clock when the run began.
    midday: Timestamp,
    chance: Mutex<Chance>,
    trace: Mutex<Trace>,
    store: Mutex<Store>,
    outside: Mutex<Outside>,
    faults: Mutex<Faults>,
    listeners: Mutex<Vec<(Arc<Process>, UnboundedSender<Change>)>>,
    pub(crate) relay_listeners: Mutex<Vec<Listener>>,
    turns: Mutex<BTreeMap<ConversationId, Arc<AsyncMutex<()>>>>,
    tally: Mutex<BTreeMap<&'static str, u64>>,
}

#[derive(Debug, Default)]
struct Faults {
    over_since: Option<Instant>,
    store_is_away: bool,
}

impl World {
    pub(crate) fn new(options: Options, trace_all: bool) -> Self {
        let mut chance = Chance::new(options.seed);
        let plan = Plan::draw(options, &mut chance);
        let user = |number: usize| {
            UserId::new(format!("user-{}", number % 2)).unwrap_or_else(|_| UserId::local())
        };
        let keys = (0..plan.conversations).map(|number| ConversationKey {
            agent: AgentName::adjutant(),
            user: user(number),
            conversation: ConversationId(Uuid::from_u128(number as u128 + 1)),
        });
        // Some runs start a few minutes before midnight, so that their budgets are of two days.
        let midday =
            Timestamp::from_second(1_900_000_800 + chance.number(0..86_400)).unwrap_or_default();
        Self {
            keys: keys.collect(),
            plan,
            began: Instant::now(),
            midday,
            chance: Mutex::new(chance),
            trace: Mutex::new(Trace::new(trace_all)),
            store: Mutex::new(Store::new(options.plant, midday)),
            outside: Mutex::default(),
            faults: Mutex::default(),
            listeners: Mutex::default(),
            relay_listeners: Mutex::default(),
            turns: Mutex::default(),
            tally: Mutex::default(),
        }
    }

    pub(crate) fn chance(&self) -> MutexGuard<'_, Chance> {
        lock(&self.chance)
    }

    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        lock(&self.store)
    }

    pub(crate) fn outside(&self) -> MutexGuard<'_, Outside> {
        lock(&self.outside)
    }

    pub(crate) fn trace(&self) -> MutexGuard<'_, Trace> {
        lock(&self.trace)
    }

    /// Returns the time since the run began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns the time of a clock that is wrong by this many milliseconds, and drifts by this many
    /// millionths.
    pub(crate) fn time(&self, (wrong_ms, wrong_millionths): (i64, i64)) -> Timestamp {
        let elapsed = i64::try_from(self.elapsed().as_millis()).unwrap_or(i64::MAX);
        let ms = elapsed + wrong_ms + elapsed * wrong_millionths / 1_000_000;
        self.midday + jiff::SignedDuration::from_millis(ms)
    }

    /// Returns the dispatcher's lock of a conversation, which lets it make one call at a time.
    pub(crate) fn turn(&self, key: &ConversationKey) -> Arc<AsyncMutex<()>> {
        lock(&self.turns)
            .entry(key.conversation)
            .or_default()
            .clone()
    }

    pub(crate) fn note(&self, who: &dyn std::fmt::Display, what: Arguments<'_>) {
        self.trace().line(self.elapsed(), &who.to_string(), what);
    }

    /// Counts an event by name.
    pub(crate) fn count(&self, what: &'static str) {
        *lock(&self.tally).entry(what).or_default() += 1;
    }

    /// Returns the counts by name, with the events and outcomes of all conversations.
    pub(crate) fn tally(&self) -> BTreeMap<&'static str, u64> {
        let mut tally = lock(&self.tally).clone();
        for key in &self.keys {
            for recorded in self.store().load(key).events {
                *tally.entry(recorded.event.kind()).or_default() += 1;
                if let Event::TurnFinished { end, .. } = &*recorded.event {
                    *tally.entry(end.outcome.as_str()).or_default() += 1;
                }
            }
        }
        tally
    }

    /// Returns the short name of a conversation.
    pub(crate) fn name(&self, key: &ConversationKey) -> String {
        format!("c{}", key.conversation.0.as_u128())
    }

    pub(crate) fn end_faults(&self) {
        *lock(&self.faults) = Faults {
            over_since: Some(Instant::now()),
            store_is_away: false,
        };
    }

    pub(crate) fn faults_are_over(&self) -> bool {
        lock(&self.faults).over_since.is_some()
    }

    /// Returns true if there have been no faults for this long.
    pub(crate) fn is_calm_for(&self, time: Duration) -> bool {
        lock(&self.faults)
            .over_since
            .is_some_and(|since| since.elapsed() >= time)
    }

    /// Returns true in this many of 1,000 cases, while there are faults.
    pub(crate) fn fails(&self, of_1000: u32) -> bool {
        !self.faults_are_over() && self.chance().happens(of_1000)
    }

    /// Returns the time that a message takes.
    pub(crate) fn trip(&self) -> Duration {
        let slow = if self.faults_are_over() {
            0
        } else {
            self.plan.slow
        };
        self.chance().trip(slow)
    }

    pub(crate) fn set_store_away(&self, away: bool) {
        lock(&self.faults).store_is_away = away;
    }

    pub(crate) fn store_is_away(&self) -> bool {
        lock(&self.faults).store_is_away
    }

    pub(crate) fn listen(&self, process: &Arc<Process>, listener: UnboundedSender<Change>) {
        lock(&self.listeners).push((process.clone(), listener));
    }

    /// Delivers a change notification: at once to the process that made the change, late or not at
    /// all to others. A process that misses one gets a notification that something was missed.
    pub(crate) fn notify(&self, from: &Process, change: &Change) {
        let mut listeners = lock(&self.listeners);
        listeners
            .retain(|(process, listener)| process.state() != State::Dead && !listener.is_closed());
        for (process, listener) in listeners.iter() {
            if process.name == from.name {
                // The listener may have been dropped.
                let _ = listener.send(change.clone());
                continue;
            }
            let (change, wait) = match self.fails(self.plan.lost_news) {
                true => {
                    self.count("news lost");
                    (Change::Missed, self.chance().ms(500..3_000))
                }
                false => (change.clone(), self.chance().ms(1..400)),
            };
            let listener = listener.clone();
            tokio::spawn(async move {
                sleep(wait).await;
                let _ = listener.send(change);
            });
        }
    }
}
