//! Telling other processes what they may wait for, and hearing it from them.
//!
//! A notification is sent after the commit it tells of, over a connection of its own: inside a transaction it would take a lock of
//! the whole server until that is on the disk (PostgreSQL's `async.c`, `PreCommit_Notify`). Those that gather meanwhile go together.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use adjutant_core::ConversationKey;
use adjutant_core::port::Change;
use ring::rand::{SecureRandom as _, SystemRandom};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgListener, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use tokio::time::{Instant, sleep, timeout};

use super::literal::fill;
use crate::row;
use crate::sql::{Backend, Value, work};

/// The channel of all processes that share a database: notifications stay in theirs.
const CHANNEL: &str = "adjutant_change_1";

/// Pause after a message: at most 20 a second.
const GATHERS: Duration = Duration::from_millis(50);

/// Notifications in one message, at most.
const BATCH: usize = 64;

/// Bytes of a notification: the server takes fewer than 8000.
const BYTES_MAX: usize = 7900;

/// Interval of looks where notifications cannot be heard, and the time before anything is done for those that wait: most of
/// them do not wait so long.
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
    telling: PgConnectOptions,
    /// Without a pooler in between.
    hearing: PgConnectOptions,
    /// Tells our own notifications from others'.
    tag: String,
    state: Mutex<State>,
    connection: tokio::sync::Mutex<Option<PgConnection>>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<String>,
    /// Whether a task sends what waits.
    sends: bool,
    /// Conversations that another process has sent an input to: it may wait for their claims.
    awaited: HashSet<ConversationKey>,
}

/// A database that other processes may write into.
pub(super) trait Watched: Backend {
    fn others(&self) -> &Arc<Others>;
}

/// What a notification says.
enum Told {
    Change(Change),
    /// Of ourselves, and nothing but a sign that it can be heard.
    Probe,
}

impl Others {
    pub(super) fn new(telling: PgConnectOptions, hearing: PgConnectOptions) -> Self {
        let mut bytes = [0_u8; 8];
        // Without random numbers, processes that start alike take each other's notifications for their own: those are missed.
        let _ = SystemRandom::new().fill(&mut bytes);
        let tag = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { telling, hearing, tag, state: Mutex::default(), connection: tokio::sync::Mutex::default() }
    }

    /// Tells other processes of a change, if they may wait for it.
    pub(super) fn tell(self: &Arc<Self>, change: &Change) {
        let (kind, key) = match change {
            Change::Input(key) => ("input", key),
            Change::Free(key) if self.state().awaited.remove(key) => ("free", key),
            _ => return,
        };
        let id = key.conversation.to_string();
        self.send(&[&self.tag, kind, key.agent.as_str(), key.user.as_str(), &id]);
    }

    fn send(self: &Arc<Self>, words: &[&str]) {
        let Ok(notification) = row::json(&words) else { return };
        // Whoever waits then looks after a second.
        if notification.len() > BYTES_MAX {
            return;
        }
        let mut state = self.state();
        if !state.waiting.contains(&notification) {
            state.waiting.push(notification);
        }
        if !std::mem::replace(&mut state.sends, true) {
            tokio::spawn(self.clone().send_waiting());
        }
    }

    /// Sends until nothing waits. What cannot be sent is left out: whoever waits for it looks again.
    async fn send_waiting(self: Arc<Self>) {
        loop {
            let batch: Vec<String> = {
                let mut state = self.state();
                if state.waiting.is_empty() {
                    state.sends = false;
                    return;
                }
                let count = state.waiting.len().min(BATCH);
                state.waiting.drain(..count).collect()
            };
            let calls: Vec<String> =
                (1..=batch.len()).map(|number| format!("pg_notify('{CHANNEL}', ${number})")).collect();
            let values: Vec<Value<'_>> = batch.iter().map(Value::from).collect();
            let statement = fill(&format!("SELECT {}", calls.join(", ")), &values);
            let mut connection = self.connection.lock().await;
            // A connection that was lost since the last time is told by the first error.
            for _ in 0..2 {
                if connection.is_none() {
                    *connection = self.telling.connect().await.ok();
                }
                let Some(open) = connection.as_mut() else { break };
                let sent = sqlx::raw_sql(AssertSqlSafe(statement.clone())).execute(open).await;
                if sent.is_ok() {
                    break;
                }
                *connection = None;
            }
            drop(connection);
            sleep(GATHERS).await;
        }
    }

    /// Reads a notification. `None`: it is our own, or of no known form.
    fn read(&self, notification: &str) -> Option<Told> {
        let words: Vec<String> = serde_json::from_str(notification).ok()?;
        let [tag, kind, rest @ ..] = words.as_slice() else { return None };
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
        let mut state = self.state();
        if state.awaited.len() >= AWAITED_MAX {
            state.awaited.clear();
        }
        state.awaited.insert(key.clone());
    }

    /// Listens to the channel. `None`: what is told there does not arrive here, as behind a pooler that gives every transaction
    /// another connection.
    pub(super) async fn listen(self: &Arc<Self>) -> Option<PgListener> {
        let pool = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
        let pool = pool.connect_with(self.hearing.clone()).await.ok()?;
        let mut listener = PgListener::connect_with(&pool).await.ok()?;
        listener.listen(CHANNEL).await.ok()?;
        self.send(&[&self.tag, "probe"]);
        let heard = async {
            loop {
                let heard = listener.try_recv().await.ok()??;
                if let Some(Told::Probe) = self.read(heard.payload()) {
                    return Some(());
                }
            }
        };
        timeout(PROBE, heard).await.ok()??;
        Some(listener)
    }

    /// Closes the connection that tells.
    pub(super) async fn close(&self) {
        if let Some(connection) = self.connection.lock().await.take() {
            // The server may be gone, which is an end as well.
            let _ = connection.close().await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is half done while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hears what other processes tell, as long as somebody listens to the news and the store is there. Where nothing can be
/// heard, it looks instead.
pub(super) async fn watch(database: Weak<impl Watched>) {
    sleep(LOOK).await;
    loop {
        let Some(others) = wanted(&database).map(|database| database.others().clone()) else { return };
        if let Some(mut listener) = others.listen().await {
            hear(&database, &others, &mut listener).await;
        }
        let until = Instant::now() + AGAIN;
        while Instant::now() < until {
            let Some(database) = wanted(&database) else { return };
            look(&*database).await;
            drop(database);
            sleep(LOOK).await;
        }
    }
}

/// Hears until the connection is lost, nobody listens to the news, or the store is gone.
async fn hear(database: &Weak<impl Watched>, others: &Others, listener: &mut PgListener) {
    // What was told before may have been missed.
    let mut may_have_missed = true;
    while let Some(store) = wanted(database) {
        if std::mem::take(&mut may_have_missed) {
            look(&*store).await;
        }
        drop(store);
        match timeout(LISTENED, listener.try_recv()).await {
            Ok(Ok(Some(heard))) => {
                if let Some(Told::Change(change)) = others.read(heard.payload())
                    && let Some(database) = database.upgrade()
                {
                    database.news().tell(|| change);
                }
            }
            // The connection was lost, and there is another one.
            Ok(Ok(None)) => may_have_missed = true,
            Ok(Err(_)) => return,
            Err(_) => {}
        }
    }
}

/// The store, if it is there and somebody listens to its news.
fn wanted<D: Watched>(database: &Weak<D>) -> Option<Arc<D>> {
    database.upgrade().filter(|database| database.news().goes_on())
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
