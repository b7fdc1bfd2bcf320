//! Messages between processes: some get lost, some are late or overtaken.

use std::sync::Arc;

use adjutant_core::BoxFuture;
use adjutant_core::port::{Recipients, Relay, RelayItem, RelayReceiver};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::sleep;

use crate::listener::Listener;
use crate::lock::lock;
use crate::process::{Process, State};
use crate::world::World;

/// Most bytes of a message: few, so that events are split.
const BYTES_MAX: usize = 400;

/// The relay, as one process uses it.
pub(crate) struct SimulatedRelay {
    world: Arc<World>,
    process: Arc<Process>,
}

impl SimulatedRelay {
    pub(crate) fn new(world: &Arc<World>, process: &Arc<Process>) -> Self {
        Self {
            world: world.clone(),
            process: process.clone(),
        }
    }

    fn is_listening(&self) -> bool {
        lock(&self.world.relay_listeners)
            .iter()
            .any(|listener| listener.process.name == self.process.name)
    }
}

impl Relay for SimulatedRelay {
    fn send(&self, to: Recipients<'_>, words: &str) -> bool {
        // A suspended or dead process sends nothing.
        if words.len() > BYTES_MAX || !self.is_listening() || self.process.state() != State::Runs {
            return false;
        }
        let from: Arc<str> = self.process.name.as_str().into();
        let words: Arc<str> = words.into();
        let mut listeners = lock(&self.world.relay_listeners);
        listeners.retain(|listener| {
            listener.process.state() != State::Dead && !listener.sender.is_closed()
        });
        for listener in listeners
            .iter()
            .filter(|listener| listener.process.name != self.process.name)
        {
            let is_meant = match to {
                Recipients::All => true,
                Recipients::One(name) => *name == listener.process.name,
            };
            if !is_meant {
                continue;
            }
            if self.world.fails(self.world.plan.lost_words) {
                self.world.count("messages lost");
                continue;
            }
            self.world.count("messages sent");
            let (wait, sender) = (self.world.trip(), listener.sender.clone());
            let words = RelayItem::Message {
                from: from.clone(),
                text: words.clone(),
            };
            tokio::spawn(async move {
                sleep(wait).await;
                // The receiver may have been dropped.
                let _ = sender.send(words);
            });
        }
        true
    }

    fn name(&self) -> Option<Arc<str>> {
        self.is_listening()
            .then(|| self.process.name.as_str().into())
    }

    fn bytes_max(&self) -> usize {
        BYTES_MAX
    }

    fn subscribe(&self) -> Option<Box<dyn RelayReceiver>> {
        let (sender, words) = mpsc::unbounded_channel();
        // It starts to listen now, and may have missed earlier messages.
        let _ = sender.send(RelayItem::Missed);
        lock(&self.world.relay_listeners).push(Listener {
            process: self.process.clone(),
            sender,
        });
        Some(Box::new(Words(words)))
    }
}

struct Words(UnboundedReceiver<RelayItem>);

impl RelayReceiver for Words {
    fn next(&mut self) -> BoxFuture<'_, Option<RelayItem>> {
        Box::pin(self.0.recv())
    }
}
