//! Words to other processes, as notifications: to all of them on one channel, to one on a channel
//! of its own.

use std::sync::Arc;

use adjutant_core::port::{Hearing, Relay, To};

use super::notify::BYTES_MAX;
use super::others::{Watched, relay_channel};

/// Bytes of a process's name and the space behind it.
const NAME_BYTES: usize = 17;

/// The way to the other processes that share a database.
pub(super) struct Wire<D>(pub(super) Arc<D>);

impl<D: Watched> Relay for Wire<D> {
    fn say(&self, to: To<'_>, words: &str) -> bool {
        let others = self.0.others();
        if !others.hears() {
            others.hurry();
            return false;
        }
        let channel = match to {
            To::All => relay_channel(None),
            // It becomes part of a statement.
            To::One(name) if name.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                relay_channel(Some(name))
            }
            To::One(_) => return false,
        };
        others
            .notifier()
            .say(channel.into(), format!("{} {words}", others.name()))
    }

    fn name(&self) -> Option<Arc<str>> {
        let others = self.0.others();
        if !others.hears() {
            others.hurry();
            return None;
        }
        Some(others.name().into())
    }

    fn bytes_max(&self) -> usize {
        BYTES_MAX - NAME_BYTES
    }

    fn hear(&self) -> Option<Box<dyn Hearing>> {
        let hearing = self.0.news().hear();
        self.0.watch();
        Some(hearing)
    }
}
