//! Words between processes: some get lost, some are late or overtaken.

use std::sync::Arc;

use adjutant_core::BoxFuture;
use adjutant_core::port::{Recipients, Relay, RelayItem, RelayReceiver};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::sleep;

use crate::ear::Ear;
use crate::lock::lock;
use crate::process::{Process, State};
use crate::world::World;

/// Bytes that can be said at once: few, so that events come in pieces.
const BYTES_MAX: usize = 400;

/// The relay, as one process has it.
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

    fn hears(&self) -> bool {
        lock(&self.world.ears)
            .iter()
            .any(|ear| ear.process.name == self.process.name)
    }
}

impl Relay for SimulatedRelay {
    fn send(&self, to: Recipients<'_>, words: &str) -> bool {
        // A process that stands still or is dead says nothing.
        if words.len() > BYTES_MAX || !self.hears() || self.process.state() != State::Runs {
            return false;
        }
        let from: Arc<str> = self.process.name.as_str().into();
        let words: Arc<str> = words.into();
        let mut ears = lock(&self.world.ears);
        ears.retain(|ear| ear.process.state() != State::Dead && !ear.heard.is_closed());
        for ear in ears
            .iter()
            .filter(|ear| ear.process.name != self.process.name)
        {
            let is_meant = match to {
                Recipients::All => true,
                Recipients::One(name) => *name == ear.process.name,
            };
            if !is_meant {
                continue;
            }
            if self.world.fails(self.world.plan.lost_words) {
                self.world.count("words lost");
                continue;
            }
            self.world.count("words heard");
            let (wait, heard) = (self.world.trip(), ear.heard.clone());
            let words = RelayItem::Message {
                from: from.clone(),
                text: words.clone(),
            };
            tokio::spawn(async move {
                sleep(wait).await;
                // Whoever heard may have gone.
                let _ = heard.send(words);
            });
        }
        true
    }

    fn name(&self) -> Option<Arc<str>> {
        self.hears().then(|| self.process.name.as_str().into())
    }

    fn bytes_max(&self) -> usize {
        BYTES_MAX
    }

    fn subscribe(&self) -> Option<Box<dyn RelayReceiver>> {
        let (heard, words) = mpsc::unbounded_channel();
        // It begins to hear now, and may have missed what was said before.
        let _ = heard.send(RelayItem::Missed);
        lock(&self.world.ears).push(Ear {
            process: self.process.clone(),
            heard,
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
