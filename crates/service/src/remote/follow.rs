//! Subscription to a run that another process executes.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::ConversationKey;
use adjutant_core::port::{Recipients, Relay, RelayItem, RelayReceiver};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::message::{Chunk, RelayMessage, Subscription, take_frames};
use crate::live::Frame;

/// Interval at which the subscription is renewed.
const RENEWAL: Duration = Duration::from_secs(3);

/// Interval of subscribing while no process has answered.
const FIRST_RENEWAL: Duration = Duration::from_secs(1);

/// Silence after which the publishing process is considered lost.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Largest event; a longer one ends the subscription, and is read from the journal.
const EVENT_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Subscription to a run in another process. Unsubscribes when dropped.
pub(crate) struct Follower {
    relay: Arc<dyn Relay>,
    receiver: Box<dyn RelayReceiver>,
    subscription: Subscription,
    /// The process that publishes to this subscription.
    from: Option<Arc<str>>,
    /// Number of the next chunk.
    number: u64,
    /// Received text of an event that is not complete.
    partial: String,
    renew_at: Instant,
    last_message_at: Instant,
    /// True once events were returned.
    has_events: bool,
}

/// Result of [`Follower::next`].
#[derive(Debug)]
pub(crate) enum Followed {
    /// Further events, in order and without gaps.
    Events(Vec<Frame>),
    /// The subscription has ended: the publishing process is gone or stopped publishing.
    Lost,
}

impl Follower {
    /// Subscribes to a run at all other processes. `run` is the client's name or the turn id,
    /// `after` the last event that the client has, and `client` the fingerprint of its history, if
    /// it sent one. `None`: processes cannot send messages to each other with this store.
    pub(crate) fn subscribe(
        relay: &Arc<dyn Relay>,
        key: &ConversationKey,
        run: String,
        after: Option<String>,
        client: Option<String>,
    ) -> Option<Self> {
        let receiver = relay.subscribe()?;
        let key = key.clone();
        let subscription = Subscription {
            session: session(),
            agent: key.agent,
            user: key.user,
            conversation: key.conversation,
            run,
            after,
            client,
        };
        let now = Instant::now();
        Some(Self {
            relay: relay.clone(),
            receiver,
            subscription,
            from: None,
            number: 0,
            partial: String::new(),
            renew_at: now,
            last_message_at: now,
            has_events: false,
        })
    }

    /// Returns true if another process publishes the run.
    pub(crate) fn is_answered(&self) -> bool {
        self.from.is_some()
    }

    /// Waits for the next events. Cancel-safe: no event is lost if the future is dropped.
    pub(crate) async fn next(&mut self) -> Followed {
        loop {
            let silent_at = self.last_message_at + SILENCE_MAX;
            let received = tokio::select! {
                received = self.receiver.next() => received,
                () = sleep_until(self.renew_at) => {
                    self.send_subscription();
                    continue;
                }
                () = sleep_until(silent_at), if self.is_answered() => return Followed::Lost,
            };
            match received {
                Some(RelayItem::Message { from, text }) => {
                    if let Some(next) = self.receive(&from, &text) {
                        return next;
                    }
                }
                // Messages may have been missed.
                Some(_) => self.subscribe_again(),
                None => return Followed::Lost,
            }
        }
    }

    fn receive(&mut self, from: &Arc<str>, text: &str) -> Option<Followed> {
        let chunk = match RelayMessage::parse(text)? {
            RelayMessage::Events(chunk) if chunk.session == self.subscription.session => chunk,
            RelayMessage::Refused { session } if session == self.subscription.session => {
                return Some(Followed::Lost);
            }
            // Of or for other subscriptions.
            RelayMessage::Events(_)
            | RelayMessage::Refused { .. }
            | RelayMessage::Subscribe(_)
            | RelayMessage::Unsubscribe { .. } => {
                return None;
            }
        };
        if *self.from.get_or_insert_with(|| from.clone()) != *from {
            // A second process answered; the first one suffices.
            return None;
        }
        self.last_message_at = Instant::now();
        self.accept(chunk)
    }

    fn accept(&mut self, chunk: Chunk) -> Option<Followed> {
        if chunk.number != self.number {
            self.subscribe_again();
            return None;
        }
        if chunk.ends {
            return Some(Followed::Lost);
        }
        // A sign of life of the publisher: its time has been noted.
        if chunk.text.is_empty() {
            return None;
        }
        self.number += 1;
        self.partial += &chunk.text;
        let Some(frames) = take_frames(&mut self.partial) else {
            return Some(Followed::Lost);
        };
        if self.partial.len() > EVENT_BYTES_MAX {
            return Some(Followed::Lost);
        }
        let first = frames.first()?;
        if self.has_events
            && !self
                .subscription
                .after
                .as_deref()
                .is_some_and(|last| follows(last, &first.id))
        {
            // Not a continuation of what was returned before.
            return Some(Followed::Lost);
        }
        self.has_events = true;
        // A new subscription continues here if a later chunk is lost.
        self.subscription.after = frames.last().map(|last| last.id.clone());
        Some(Followed::Events(frames))
    }

    /// Renews the subscription after the last complete event, because a chunk was lost.
    fn subscribe_again(&mut self) {
        self.send_unsubscribe();
        // A new id, so that late chunks of the old subscription are not mistaken for new ones.
        self.subscription.session = session();
        (self.number, self.partial) = (0, String::new());
        self.send_subscription();
    }

    fn send_subscription(&mut self) {
        // Until a process has answered it is not known which one has the run.
        let to = self
            .from
            .as_deref()
            .map_or(Recipients::All, Recipients::One);
        self.relay.send(
            to,
            &RelayMessage::Subscribe(self.subscription.clone()).to_text(),
        );
        self.renew_at = Instant::now()
            + if self.is_answered() {
                RENEWAL
            } else {
                FIRST_RENEWAL
            };
    }

    fn send_unsubscribe(&self) {
        if let Some(from) = &self.from {
            let session = self.subscription.session.clone();
            self.relay.send(
                Recipients::One(from),
                &RelayMessage::Unsubscribe { session }.to_text(),
            );
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.send_unsubscribe();
    }
}

fn session() -> String {
    Uuid::now_v7().simple().to_string()
}

/// Returns true if the event id `next` directly follows `last`.
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
