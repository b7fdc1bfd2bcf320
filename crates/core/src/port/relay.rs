//! Messages between processes that share a store. They are delivered to processes that listen at
//! the moment, and stored nowhere.

use std::sync::Arc;

use crate::BoxFuture;

/// The receivers of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipients<'a> {
    /// All other processes that listen.
    All,
    /// The process of that name, see [`RelayItem::Message`].
    One(&'a str),
}

/// An item that a [`RelayReceiver`] receives.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RelayItem {
    /// A message from another process.
    Message {
        /// Name of the sending process, to which an answer can be sent. A process has a new name
        /// after every start.
        from: Arc<str>,
        /// Message as the sender wrote it.
        text: Arc<str>,
    },
    /// Messages may have been lost; those from now on are received. Also sent when listening has
    /// begun.
    Missed,
}

/// A channel to the other processes that share a store. Messages are not stored and not
/// acknowledged: a message without a listener, or one that is lost on the way, is gone. Messages from one
/// process to another arrive in order.
pub trait Relay: Send + Sync {
    /// Queues a message of at most [`Relay::bytes_max`] bytes without NUL, without waiting. Returns
    /// `false` if the queue is full, the message is too long, or this process does not listen yet,
    /// so that an answer would be missed; listening then begins if a listener exists, and
    /// [`RelayItem::Missed`] says when to send again.
    fn send(&self, to: Recipients<'_>, text: &str) -> bool;

    /// Returns the name by which other processes can answer, see [`RelayItem::Message`]. `None` while
    /// this process does not listen yet; listening then begins if a listener exists.
    fn name(&self) -> Option<Arc<str>>;

    /// Returns the maximum length of a message, in bytes.
    fn bytes_max(&self) -> usize;

    /// Starts to receive messages of other processes, until the result is dropped. `None`: this
    /// store has no channel between processes.
    fn subscribe(&self) -> Option<Box<dyn RelayReceiver>>;
}

/// A receiver of messages of other processes, see [`Relay::subscribe`].
pub trait RelayReceiver: Send {
    /// Waits for the next message. Returns `None` when there will be no more. Cancel safe: dropping
    /// the future loses no message.
    fn next(&mut self) -> BoxFuture<'_, Option<RelayItem>>;
}

/// The relay of a store without a channel between processes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Relay for Alone {
    fn send(&self, _to: Recipients<'_>, _text: &str) -> bool {
        false
    }

    fn name(&self) -> Option<Arc<str>> {
        None
    }

    fn bytes_max(&self) -> usize {
        0
    }

    fn subscribe(&self) -> Option<Box<dyn RelayReceiver>> {
        None
    }
}

/// Splits a text into pieces of at most `bytes_max` bytes (at least 4) at boundaries of characters.
///
/// # Examples
///
/// ```
/// assert_eq!(adjutant_core::port::pieces("abcdäf", 5), ["abcd", "äf"]);
/// ```
#[must_use]
pub fn pieces(text: &str, bytes_max: usize) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        // A character has up to four bytes, so each piece has at least one and the loop ends.
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(bytes_max.max(4)));
        pieces.push(piece);
        rest = behind;
    }
    pieces
}
