use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjutant_core::port::{Recipients, Relay, RelayItem, RelayReceiver};
use adjutant_core::{AgentName, BoxFuture, ConversationId, ConversationKey, UserId};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::*;
use crate::agui::{Event, Fingerprints};
use crate::live::{Frame, Runs};

/// Simulated messages between processes. Some of them are lost.
#[derive(Default)]
struct Network {
    listeners: Mutex<Vec<(&'static str, mpsc::UnboundedSender<RelayItem>)>>,
    sent: AtomicUsize,
    /// Every n-th message is lost; 0: none.
    loses: usize,
}

struct Process(&'static str, Arc<Network>);

struct Listener(mpsc::UnboundedReceiver<RelayItem>);

impl Network {
    fn hearing(&self) -> usize {
        self.listeners
            .lock()
            .unwrap()
            .iter()
            .filter(|(_, sender)| !sender.is_closed())
            .count()
    }
}

impl Relay for Process {
    fn send(&self, to: Recipients<'_>, words: &str) -> bool {
        let sent = self.1.sent.fetch_add(1, Ordering::SeqCst) + 1;
        if self.1.loses > 0 && sent.is_multiple_of(self.1.loses) {
            return true;
        }
        let message = RelayItem::Message {
            from: self.0.into(),
            text: words.into(),
        };
        for (name, sender) in self.1.listeners.lock().unwrap().iter() {
            if *name != self.0 && (to == Recipients::All || to == Recipients::One(name)) {
                let _ = sender.send(message.clone());
            }
        }
        true
    }

    fn name(&self) -> Option<Arc<str>> {
        Some(self.0.into())
    }

    fn bytes_max(&self) -> usize {
        400
    }

    fn subscribe(&self) -> Option<Box<dyn RelayReceiver>> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.1.listeners.lock().unwrap().push((self.0, sender));
        Some(Box::new(Listener(receiver)))
    }
}

impl RelayReceiver for Listener {
    fn next(&mut self) -> BoxFuture<'_, Option<RelayItem>> {
        Box::pin(self.0.recv())
    }
}

fn key(user: &str) -> ConversationKey {
    let conversation = ConversationId(Uuid::nil());
    ConversationKey {
        agent: AgentName::adjutant(),
        user: UserId::new(user).unwrap(),
        conversation,
    }
}

fn piece(number: usize) -> Event {
    Event::TextMessageContent {
        message_id: "m".to_owned(),
        delta: format!("{number} ä🦀"),
    }
}

fn end() -> Event {
    Event::RunError {
        message: String::new(),
        code: String::new(),
        metadata: serde_json::Map::new(),
        usage: Vec::new(),
    }
}

/// Makes a process with a publisher, and the relay of another process.
fn processes(loses: usize) -> (Arc<Network>, Arc<Runs>, Arc<Publisher>, Arc<dyn Relay>) {
    let network = Arc::new(Network {
        loses,
        ..Network::default()
    });
    let runs = Arc::<Runs>::default();
    let publisher = Publisher::new(runs.clone(), Arc::new(Process("a", network.clone())));
    (
        network.clone(),
        runs,
        publisher,
        Arc::new(Process("b", network)),
    )
}

fn follow(relay: &Arc<dyn Relay>, user: &str, client: Option<&str>) -> Follower {
    Follower::subscribe(
        relay,
        &key(user),
        "run".to_owned(),
        None,
        client.map(str::to_owned),
    )
    .unwrap()
}

#[tokio::test(start_paused = true)]
async fn lost_messages_are_sent_again_and_every_event_arrives_once_in_order() {
    for loses in [0, 7, 11] {
        let (network, runs, publisher, relay) = processes(loses);
        let (run, _) = runs.start(key("anna"), "run".to_owned(), Default::default());
        let guard = publisher.activate();
        run.publish((0..100).map(piece));
        let mut follower = follow(&relay, "anna", None);
        let mut frames: Vec<Frame> = Vec::new();
        while frames.len() < 301 {
            match follower.next().await {
                Followed::Events(events) => frames.extend(events),
                Followed::Lost => panic!("{loses}: lost after {}", frames.len()),
            }
            if frames.len() == 100 {
                run.publish((100..300).map(piece).chain([end()]));
            }
        }
        let events = run.frames(0, usize::MAX);
        assert!(
            frames
                .iter()
                .map(|frame| &frame.id)
                .eq(events.iter().map(|frame| &frame.id)),
            "{loses}"
        );
        assert!(
            frames
                .iter()
                .map(|frame| &frame.data)
                .eq(events.iter().map(|frame| &frame.data)),
            "{loses}"
        );
        // Without runs and subscriptions the process stops listening.
        drop((follower, guard));
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(network.hearing(), 0, "{loses}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_is_published_to_its_user_while_the_subscription_lasts() {
    let (network, runs, publisher, relay) = processes(0);
    let (run, _) = runs.start(
        key("anna"),
        "run".to_owned(),
        Fingerprints {
            client: "began with this".to_owned(),
            request: String::new(),
        },
    );
    let guard = publisher.activate();
    run.publish([piece(0)]);
    // Not to another user, and not to a client with another history.
    let mut other = follow(&relay, "bert", None);
    assert!(
        tokio::time::timeout(Duration::from_secs(60), other.next())
            .await
            .is_err()
    );
    assert!(matches!(
        follow(&relay, "anna", Some("else")).next().await,
        Followed::Lost
    ));
    let mut follower = follow(&relay, "anna", Some("began with this"));
    assert!(matches!(follower.next().await, Followed::Events(frames) if frames.len() == 1));
    // The subscription is renewed while there are no events.
    assert!(
        tokio::time::timeout(Duration::from_secs(600), follower.next())
            .await
            .is_err()
    );
    run.publish([piece(1)]);
    assert!(matches!(follower.next().await, Followed::Events(frames) if frames.len() == 1));
    // A subscriber that vanished receives nothing once its subscription has expired.
    std::mem::forget(std::mem::replace(
        &mut follower,
        follow(&relay, "bert", None),
    ));
    tokio::time::sleep(Duration::from_secs(60)).await;
    let sent = network.sent.load(Ordering::SeqCst);
    run.publish([piece(2)]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(network.sent.load(Ordering::SeqCst), sent);
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn a_publisher_that_is_gone_is_noticed() {
    let (network, runs, publisher, relay) = processes(0);
    let (run, _) = runs.start(key("anna"), "run".to_owned(), Default::default());
    let _guard = publisher.activate();
    run.publish([piece(0)]);
    let mut follower = follow(&relay, "anna", None);
    assert!(matches!(follower.next().await, Followed::Events(_)));
    network
        .listeners
        .lock()
        .unwrap()
        .retain(|(name, _)| *name == "b");
    assert!(matches!(follower.next().await, Followed::Lost));
    // A process that shuts down ends the publication: its run may be continued elsewhere.
    let (_net, runs, publisher, relay) = processes(0);
    let (run, _) = runs.start(key("anna"), "run".to_owned(), Default::default());
    let _guard = publisher.activate();
    run.publish([piece(0)]);
    let mut follower = follow(&relay, "anna", None);
    assert!(matches!(follower.next().await, Followed::Events(_)));
    run.close();
    assert!(matches!(follower.next().await, Followed::Lost));
}
