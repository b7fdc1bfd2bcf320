//! Telling other processes what they may wait for, and hearing from them.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use adjutant_core::ConversationKey;
use adjutant_core::port::{Change, Heard};
use ring::rand::{SecureRandom as _, SystemRandom};
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::notify::Notifier;
use super::sessions::{ServerSession, session_of};
use crate::row;
use crate::sql::{Backend, work};

/// The channel of all processes that share a database: notifications stay in theirs.
const CHANNEL: &str = "adjutant_change_1";

/// The channel on which something is said to all of them. Behind a further underscore and its name,
/// that of one of them.
const RELAY: &str = "adjutant_relay_1";

/// Interval of looks where notifications cannot be heard, and the time before anything is done for
/// those that wait: most of them do not wait so long.
const LOOK: Duration = Duration::from_secs(1);

/// How long a notification to ourselves may take to be heard.
const PROBE: Duration = Duration::from_secs(2);

/// How often whoever hears looks whether anybody still waits.
const LISTENED: Duration = Duration::from_secs(30);

/// Time after which it is tried again to hear what could not be heard.
const AGAIN: Duration = Duration::from_secs(60);

/// Conversations of which others may wait for the end of a claim.
const AWAITED_MAX: usize = 4096;

/// What is told, and how it is heard.
#[derive(Debug)]
pub(super) struct Others {
    /// Through a pooler as well.
    notifier: Arc<Notifier>,
    channel: Arc<str>,
    /// Without a pooler in between.
    hearing: PgConnectOptions,
    /// Tells our own notifications from others'.
    tag: String,
    /// Conversations that another process has sent an input to: it may wait for their claims.
    awaited: Mutex<HashSet<ConversationKey>>,
    /// True while messages of others arrive here.
    hears: AtomicBool,
    /// Fires when somebody wants to hear at once.
    hurried: Notify,
}

/// A database that other processes may write into.
pub(super) trait Watched: Backend {
    /// Says by which session of the server this process hears from now on; `None`: by none.
    fn hears_by(&self, session: Option<ServerSession>) -> impl Future<Output = ()> + Send;

    fn others(&self) -> &Arc<Others>;
}

/// What a notification says.
enum Told {
    Change(Change),
    /// Of ourselves, and nothing but a sign that it can be heard.
    Probe,
}

/// Returns the channel on which something is said to a process, or to all of them.
pub(super) fn relay_channel(to: Option<&str>) -> String {
    to.map_or_else(|| RELAY.to_owned(), |name| format!("{RELAY}_{name}"))
}

impl Others {
    pub(super) fn new(telling: PgConnectOptions, hearing: PgConnectOptions) -> Self {
        let mut bytes = [0_u8; 8];
        // Without random numbers, processes that start alike take each other's notifications for
        // their own: those are missed.
        let _ = SystemRandom::new().fill(&mut bytes);
        let tag = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Self {
            notifier: Arc::new(Notifier::new(telling)),
            channel: CHANNEL.into(),
            hearing,
            tag,
            awaited: Mutex::default(),
            hears: AtomicBool::new(false),
            hurried: Notify::new(),
        }
    }

    /// Returns the name of this process among those that share the database.
    pub(super) fn name(&self) -> &str {
        &self.tag
    }

    pub(super) fn notifier(&self) -> &Arc<Notifier> {
        &self.notifier
    }

    /// Returns whether what others tell arrives here now.
    pub(super) fn hears(&self) -> bool {
        self.hears.load(Ordering::SeqCst)
    }

    /// Has whoever is about to hear not wait any longer.
    pub(super) fn hurry(&self) {
        self.hurried.notify_one();
    }

    /// Tells other processes of a change, if they may wait for it.
    pub(super) fn tell(&self, change: &Change) {
        let (kind, key) = match change {
            Change::Input(key) => ("input", key),
            Change::Free(key) if self.awaited().remove(key) => ("free", key),
            _ => return,
        };
        let id = key.conversation.to_string();
        self.send(&[
            self.name(),
            kind,
            key.agent.as_str(),
            key.user.as_str(),
            &id,
        ]);
    }

    fn send(&self, words: &[&str]) {
        if let Ok(notification) = row::json(&words) {
            self.notifier.tell(&self.channel, notification);
        }
    }

    /// Reads a notification. `None`: it is our own, or of no known form.
    fn read(&self, notification: &str) -> Option<Told> {
        let words: Vec<String> = serde_json::from_str(notification).ok()?;
        let [tag, kind, rest @ ..] = words.as_slice() else {
            return None;
        };
        if *tag == self.tag {
            return (kind == "probe").then_some(Told::Probe);
        }
        let [agent, user, id] = rest else { return None };
        let key = row::conversation_key(agent.clone(), user.clone(), id).ok()?;
        match kind.as_str() {
            "input" => {
                self.awaits(&key);
                Some(Told::Change(Change::Input(key)))
            }
            "free" => Some(Told::Change(Change::Free(key))),
            _ => None,
        }
    }

    /// Notes that another process may wait for the claim of a conversation.
    fn awaits(&self, key: &ConversationKey) {
        let mut awaited = self.awaited();
        if awaited.len() >= AWAITED_MAX {
            awaited.clear();
        }
        awaited.insert(key.clone());
    }

    /// Listens to the channel, in this session of the server. `None`: what is told there does not
    /// arrive here, as behind a pooler that gives every transaction another connection.
    pub(super) async fn listen(&self) -> Option<(PgListener, ServerSession)> {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None);
        let pool = pool.connect_with(self.hearing.clone()).await.ok()?;
        let session = session_of(&pool, &self.hearing).await.ok()??;
        let mut listener = PgListener::connect_with(&pool).await.ok()?;
        let (all, own) = (relay_channel(None), relay_channel(Some(self.name())));
        listener.listen_all([CHANNEL, &all, &own]).await.ok()?;
        self.send(&[self.name(), "probe"]);
        let heard = async {
            loop {
                let heard = listener.try_recv().await.ok()??;
                if let Some(Told::Probe) = self.read(heard.payload()) {
                    return Some(());
                }
            }
        };
        timeout(PROBE, heard).await.ok()??;
        Some((listener, session))
    }

    /// Closes the connection that tells.
    pub(super) async fn close(&self) {
        self.notifier.close().await;
    }

    fn awaited(&self) -> MutexGuard<'_, HashSet<ConversationKey>> {
        // Nothing is half done while it is locked.
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hears what other processes tell, as long as somebody listens to the news and the store is there.
/// Where nothing can be heard, it looks instead.
pub(super) async fn watch(database: Weak<impl Watched>) {
    if let Some(others) = wanted(&database).map(|database| database.others().clone()) {
        let _ = timeout(LOOK, others.hurried.notified()).await;
    }
    loop {
        let Some(others) = wanted(&database).map(|database| database.others().clone()) else {
            return;
        };
        if let Some((mut listener, session)) = others.listen().await {
            if let Some(database) = database.upgrade() {
                database.hears_by(Some(session)).await;
            }
            others.hears.store(true, Ordering::SeqCst);
            hear(&database, &others, &mut listener).await;
            others.hears.store(false, Ordering::SeqCst);
            if let Some(database) = database.upgrade() {
                database.hears_by(None).await;
            }
            // A connection that was lost can usually be made again.
            continue;
        }
        let until = Instant::now() + AGAIN;
        while Instant::now() < until {
            let Some(database) = wanted(&database) else {
                return;
            };
            look(&*database).await;
            drop(database);
            sleep(LOOK).await;
        }
    }
}

/// Hears until the connection is lost, nobody listens to the news, or the store is gone.
async fn hear(database: &Weak<impl Watched>, others: &Others, listener: &mut PgListener) {
    // What was told before may have been missed.
    if let Some(store) = wanted(database) {
        store.news().pass_on(|| Heard::Missed);
        look(&*store).await;
    }
    while wanted(database).is_some() {
        match timeout(LISTENED, listener.try_recv()).await {
            Ok(Ok(Some(heard))) if heard.channel() != CHANNEL => {
                if let Some(words) = words(heard.payload(), others.name())
                    && let Some(database) = database.upgrade()
                {
                    database.news().pass_on(|| words);
                }
            }
            Ok(Ok(Some(heard))) => {
                if let Some(Told::Change(change)) = others.read(heard.payload())
                    && let Some(database) = database.upgrade()
                {
                    database.news().tell(|| change);
                }
            }
            // There may be another connection already, in a session of which nothing was noted.
            Ok(Ok(None) | Err(_)) => return,
            Err(_) => {}
        }
    }
}

/// The store, if it is there and somebody listens to its news.
fn wanted<D: Watched>(database: &Weak<D>) -> Option<Arc<D>> {
    database
        .upgrade()
        .filter(|database| database.news().goes_on())
}

/// Tells what may have been missed. A look that fails is one look later.
async fn look(database: &impl Watched) {
    for change in work::look(database).await.unwrap_or_default() {
        if let Change::Input(key) = &change {
            database.others().awaits(key);
        }
        database.news().tell(|| change);
    }
}

/// Reads words that another process relays. `None`: we said them ourselves, or they are of no known
/// form.
fn words(payload: &str, own: &str) -> Option<Heard> {
    let (from, words) = payload.split_once(' ').filter(|(from, _)| *from != own)?;
    Some(Heard::Words {
        from: from.into(),
        words: words.into(),
    })
}
