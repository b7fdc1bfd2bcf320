//! Relayed messages to other processes, as notifications: one channel for all, and one for each.

use std::sync::Arc;

use adjutant_core::port::{Recipients, Relay, RelayReceiver};

use super::notify::BYTES_MAX;
use super::peers::{PeerAware, relay_channel};

/// Bytes of a process's name and the space after it.
const NAME_BYTES: usize = 17;

/// A relay over the notification channels.
pub(super) struct NotifyRelay<D>(pub(super) Arc<D>);

impl<D: PeerAware> Relay for NotifyRelay<D> {
    fn send(&self, to: Recipients<'_>, text: &str) -> bool {
        let peers = self.0.peers();
        if !peers.is_listening() {
            peers.connect_now();
            return false;
        }
        let channel = match to {
            Recipients::All => relay_channel(None),
            // The name becomes part of a statement.
            Recipients::One(name) if name.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                relay_channel(Some(name))
            }
            Recipients::One(_) => return false,
        };
        peers
            .notifier()
            .send_message(channel.into(), format!("{} {text}", peers.name()))
    }

    fn name(&self) -> Option<Arc<str>> {
        let peers = self.0.peers();
        if !peers.is_listening() {
            peers.connect_now();
            return None;
        }
        Some(peers.name().into())
    }

    fn bytes_max(&self) -> usize {
        BYTES_MAX - NAME_BYTES
    }

    fn subscribe(&self) -> Option<Box<dyn RelayReceiver>> {
        let messages = self.0.change_feed().subscribe_messages();
        self.0.watch();
        Some(messages)
    }
}
