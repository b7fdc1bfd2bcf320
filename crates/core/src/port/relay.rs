//! Words between the processes that share a store, for those that hear them at the moment.

use std::sync::Arc;

use crate::BoxFuture;

/// To whom something is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To<'a> {
    /// To every other process that hears.
    All,
    /// To the process of that name, see [`Heard::Words`].
    One(&'a str),
}

/// Something that a [`Hearing`] is told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Heard {
    /// Another process said something.
    Words {
        /// Its name, by which it can be answered as long as it is there. It is another one after
        /// every start.
        from: Arc<str>,
        /// The message.
        words: Arc<str>,
    },
    /// Something may have been missed, and what is said from now on is heard. So it is told that
    /// hearing has begun.
    Missed,
}

/// Says something to the other processes that share a store. Nothing of it is kept, and nothing
/// waits for it: what nobody hears is gone, and so is what is lost on the way. What one process
/// says to another arrives in order, if it does.
pub trait Relay: Send + Sync {
    /// Says something, at most [`Relay::bytes_max`] bytes without NUL. Returns whether it will be
    /// sent, without waiting for that. `false`: there is too much to send already, it is too long,
    /// or nothing is heard here yet, so that an answer would be missed; then hearing begins, if
    /// somebody wants to hear, and [`Heard::Missed`] tells when it is time to say it again.
    fn say(&self, to: To<'_>, words: &str) -> bool;

    /// Returns the name by which other processes answer this one, see [`Heard::Words`]. `None`:
    /// nothing is heard here yet; then hearing begins, if somebody wants to hear.
    fn name(&self) -> Option<Arc<str>>;

    /// Returns how many bytes can be said at once.
    fn bytes_max(&self) -> usize;

    /// Hears what other processes say from now on, until it is dropped. `None`: no other process
    /// can be heard.
    fn hear(&self) -> Option<Box<dyn Hearing>>;
}

/// Messages of other processes, see [`Relay::hear`].
pub trait Hearing: Send {
    /// Waits for the next. `None`: there will be nothing any more. Nothing is lost if the future is
    /// dropped before it is ready.
    fn next(&mut self) -> BoxFuture<'_, Option<Heard>>;
}

/// The relay of a store that has no way to other processes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Relay for Alone {
    fn say(&self, _to: To<'_>, _words: &str) -> bool {
        false
    }

    fn name(&self) -> Option<Arc<str>> {
        None
    }

    fn bytes_max(&self) -> usize {
        0
    }

    fn hear(&self) -> Option<Box<dyn Hearing>> {
        None
    }
}

/// Cuts a text into pieces of at most so many bytes, but 4 at least, between characters.
///
/// ```
/// assert_eq!(adjutant_core::port::pieces("abcdäf", 5), ["abcd", "äf"]);
/// ```
#[must_use]
pub fn pieces(text: &str, bytes_max: usize) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(bytes_max.max(4)));
        pieces.push(piece);
        rest = behind;
    }
    pieces
}
