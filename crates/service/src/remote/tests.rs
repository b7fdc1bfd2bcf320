use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjutant_core::port::{Heard, Hearing, Relay, To};
use adjutant_core::{AgentName, BoxFuture, ConversationId, ConversationKey, UserId};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::*;
use crate::agui::Event;
use crate::live::{Frame, Runs};

/// Processes that say something to each other. Some of it is lost.
#[derive(Default)]
struct Net {
    hear: Mutex<Vec<(&'static str, mpsc::UnboundedSender<Heard>)>>,
    said: AtomicUsize,
    /// Every so many words are lost; 0: none.
    loses: usize,
}

struct Process(&'static str, Arc<Net>);

struct Ear(mpsc::UnboundedReceiver<Heard>);

impl Net {
    fn hearing(&self) -> usize {
        self.hear
            .lock()
            .unwrap()
            .iter()
            .filter(|(_, sender)| !sender.is_closed())
            .count()
    }
}

impl Relay for Process {
    fn say(&self, to: To<'_>, words: &str) -> bool {
        let said = self.1.said.fetch_add(1, Ordering::SeqCst) + 1;
        if self.1.loses > 0 && said.is_multiple_of(self.1.loses) {
            return true;
        }
        let heard = Heard::Words {
            from: self.0.into(),
            words: words.into(),
        };
        for (name, sender) in self.1.hear.lock().unwrap().iter() {
            if *name != self.0 && (to == To::All || to == To::One(name)) {
                let _ = sender.send(heard.clone());
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

    fn hear(&self) -> Option<Box<dyn Hearing>> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.1.hear.lock().unwrap().push((self.0, sender));
        Some(Box::new(Ear(receiver)))
    }
}

impl Hearing for Ear {
    fn next(&mut self) -> BoxFuture<'_, Option<Heard>> {
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

/// A run of Anna's in one process, and what another one needs to ask for it.
fn processes(loses: usize) -> (Arc<Net>, Arc<Runs>, Arc<Host>, Arc<dyn Relay>) {
    let net = Arc::new(Net {
        loses,
        ..Net::default()
    });
    let runs = Arc::<Runs>::default();
    let host = Host::new(runs.clone(), Arc::new(Process("a", net.clone())));
    (net.clone(), runs, host, Arc::new(Process("b", net)))
}

fn follow(relay: &Arc<dyn Relay>, user: &str, has: Option<&str>) -> Follower {
    Follower::of(
        relay,
        &key(user),
        "run".to_owned(),
        None,
        has.map(str::to_owned),
    )
    .unwrap()
}

#[tokio::test(start_paused = true)]
async fn whatever_is_lost_on_the_way_every_event_arrives_once_and_in_order() {
    for loses in [0, 7, 11] {
        let (net, runs, host, relay) = processes(loses);
        let (run, _) = runs.begin(key("anna"), "run".to_owned(), Default::default());
        let hosted = host.host();
        run.tell((0..100).map(piece));
        let mut follower = follow(&relay, "anna", None);
        let mut frames: Vec<Frame> = Vec::new();
        while frames.len() < 301 {
            match follower.next().await {
                Followed::Told(told) => frames.extend(told),
                Followed::Lost => panic!("{loses}: lost after {}", frames.len()),
            }
            if frames.len() == 100 {
                run.tell((100..300).map(piece).chain([end()]));
            }
        }
        let told = run.frames(0, usize::MAX);
        assert!(
            frames
                .iter()
                .map(|frame| &frame.id)
                .eq(told.iter().map(|frame| &frame.id)),
            "{loses}"
        );
        assert!(
            frames
                .iter()
                .map(|frame| &frame.data)
                .eq(told.iter().map(|frame| &frame.data)),
            "{loses}"
        );
        // With the last one there is nobody to hear for.
        drop((follower, hosted));
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(net.hearing(), 0, "{loses}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_is_told_to_its_user_and_while_they_ask() {
    let (net, runs, host, relay) = processes(0);
    let (run, _) = runs.begin(
        key("anna"),
        "run".to_owned(),
        ("began with this".to_owned(), String::new()),
    );
    let hosted = host.host();
    run.tell([piece(0)]);
    // Not another's, and not to a client that has something else.
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
    assert!(matches!(follower.next().await, Followed::Told(frames) if frames.len() == 1));
    // It goes on although nothing happens for long.
    assert!(
        tokio::time::timeout(Duration::from_secs(600), follower.next())
            .await
            .is_err()
    );
    run.tell([piece(1)]);
    assert!(matches!(follower.next().await, Followed::Told(frames) if frames.len() == 1));
    // One who went without a word is told nothing more after a while.
    std::mem::forget(std::mem::replace(
        &mut follower,
        follow(&relay, "bert", None),
    ));
    tokio::time::sleep(Duration::from_secs(60)).await;
    let said = net.said.load(Ordering::SeqCst);
    run.tell([piece(2)]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(net.said.load(Ordering::SeqCst), said);
    drop(hosted);
}

#[tokio::test(start_paused = true)]
async fn who_told_a_run_and_is_gone_is_noticed() {
    let (net, runs, host, relay) = processes(0);
    let (run, _) = runs.begin(key("anna"), "run".to_owned(), Default::default());
    let _hosted = host.host();
    run.tell([piece(0)]);
    let mut follower = follow(&relay, "anna", None);
    assert!(matches!(follower.next().await, Followed::Told(_)));
    net.hear.lock().unwrap().retain(|(name, _)| *name == "b");
    assert!(matches!(follower.next().await, Followed::Lost));
    // One that stops tells so: its run may go on elsewhere.
    let (_net, runs, host, relay) = processes(0);
    let (run, _) = runs.begin(key("anna"), "run".to_owned(), Default::default());
    let _hosted = host.host();
    run.tell([piece(0)]);
    let mut follower = follow(&relay, "anna", None);
    assert!(matches!(follower.next().await, Followed::Told(_)));
    run.close();
    assert!(matches!(follower.next().await, Followed::Lost));
}
