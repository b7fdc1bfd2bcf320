//! The conversations that this process worked on last, so that the next turn reads only what is
//! new.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};

use adjutant_core::conversation::{Conversation, Snapshot, stored_weight};
use adjutant_core::port::{Known, Newer};
use adjutant_core::{ConversationKey, Input, Recorded};
use jiff::Timestamp;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// The state of a conversation, as this process last saw it.
#[derive(Debug)]
pub(crate) struct Remembered {
    /// On the heap: it is large, and handed on from step to step.
    conversation: Box<Conversation>,
    created_at: Timestamp,
    /// About how many bytes the events take that came since the last snapshot.
    since_snapshot: usize,
    /// How many bytes the last snapshot takes, 0 if there is none.
    snapshot: usize,
}

impl Remembered {
    /// Returns the state with what is newer, or a new one if what was remembered is of another
    /// conversation. `None`: the snapshot is of no use here, and everything is to be read.
    pub(crate) fn with(
        known: Option<Self>,
        newer: Newer,
        messages_max: Option<usize>,
    ) -> Option<(Self, Vec<Input>)> {
        let Newer {
            created_at,
            restorable,
            after,
            events,
            inbox,
        } = newer;
        if let Some(found) = restorable {
            let conversation = Box::new(Conversation::restore(
                messages_max,
                &found.snapshot,
                found.said,
            )?);
            let snapshot = found.snapshot.body.len();
            let mut restored = Self {
                conversation,
                created_at,
                since_snapshot: 0,
                snapshot,
            };
            events
                .into_iter()
                .for_each(|recorded| restored.apply(recorded));
            return Some((restored, inbox));
        }
        let known = known.filter(|known| {
            known.created_at == created_at
                && known.conversation.seq() == after
                && known.conversation.messages_max() == messages_max
        });
        let mut remembered = known.unwrap_or_else(|| Self {
            conversation: Box::new(Conversation::new(messages_max)),
            created_at,
            since_snapshot: 0,
            snapshot: 0,
        });
        events
            .into_iter()
            .for_each(|recorded| remembered.apply(recorded));
        Some((remembered, inbox))
    }

    pub(crate) fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    pub(crate) fn apply(&mut self, recorded: Recorded) {
        self.since_snapshot += stored_weight(&recorded.event);
        self.conversation.apply(recorded);
    }

    /// Returns what is to be stored of the state with the end of a turn. `None`: the events since
    /// the last snapshot do not outweigh another one, so that what snapshots take stays within what
    /// was said.
    pub(crate) fn due_snapshot(&mut self) -> Option<Snapshot> {
        if self.since_snapshot < self.snapshot.max(SNAPSHOT_MIN) {
            return None;
        }
        // Without one nothing is lost.
        let snapshot = self.conversation.snapshot().ok().flatten()?;
        self.snapshot = snapshot.body.len();
        if self.since_snapshot < self.snapshot {
            return None;
        }
        self.since_snapshot = 0;
        Some(snapshot)
    }

    /// Returns what [`Journal::begin`](adjutant_core::port::Journal::begin) needs to know of it.
    pub(crate) fn known(&self) -> Known {
        Known {
            seq: self.conversation.seq(),
            created_at: self.created_at,
        }
    }
}

/// Events that are read as fast as a snapshot, in bytes: of fewer, none is made.
const SNAPSHOT_MIN: usize = 8 * 1024;

/// The place of one conversation: whoever locks it works on the conversation, alone in this
/// process.
pub(crate) type Slot = Mutex<Option<Remembered>>;

/// All of them, bounded by the memory they take.
#[derive(Debug)]
pub(crate) struct Recent {
    bytes_max: usize,
    state: StdMutex<State>,
}

#[derive(Debug, Default)]
struct State {
    slots: HashMap<ConversationKey, Entry>,
    bytes: usize,
    uses: u64,
    /// The use at which a place was removed last.
    removed: u64,
}

#[derive(Debug)]
struct Entry {
    slot: Arc<Slot>,
    used: u64,
    bytes: usize,
}

impl Recent {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            state: StdMutex::default(),
        }
    }

    /// Returns the place of a conversation.
    pub(crate) fn slot(&self, key: &ConversationKey) -> Arc<Slot> {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .slot(key)
    }

    /// Returns a mark in the course of time, for [`Recent::unused_since`].
    pub(crate) fn mark(&self) -> u64 {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .uses
    }

    /// Locks the place of a conversation, if nobody in this process has used it since the mark: a
    /// claim that was made since is as it was made.
    pub(crate) fn unused_since(
        &self,
        key: &ConversationKey,
        mark: u64,
    ) -> Option<OwnedMutexGuard<Option<Remembered>>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.removed > mark || state.slots.get(key).is_some_and(|entry| entry.used > mark) {
            return None;
        }
        state.slot(key).try_lock_owned().ok()
    }

    /// Keeps a state for the next turn and unlocks its place. `None`: nothing is known of the
    /// conversation any more. Once all of them take too much memory, those that were used longest
    /// ago are forgotten.
    pub(crate) fn put_back(
        &self,
        key: &ConversationKey,
        mut guard: OwnedMutexGuard<Option<Remembered>>,
        remembered: Option<Remembered>,
    ) {
        let mut remembered = remembered;
        if let Some(remembered) = &mut remembered {
            remembered.conversation.forget_finished_turn();
        }
        let bytes = remembered
            .as_ref()
            .map(|remembered| remembered.conversation.weight());
        *guard = remembered;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.uses += 1;
        let State {
            slots,
            bytes: all,
            uses,
            removed,
        } = &mut *state;
        if let Some(entry) = slots.get_mut(key) {
            *all = *all - entry.bytes + bytes.unwrap_or(0);
            entry.bytes = bytes.unwrap_or(0);
            entry.used = *uses;
            // The map and the guard hold it, and nobody waits for it.
            if bytes.is_none() && Arc::strong_count(&entry.slot) <= 2 {
                slots.remove(key);
                *removed = *uses;
            }
        }
        drop(guard);
        if *all > self.bytes_max {
            state.make_room(self.bytes_max);
        }
    }
}

impl State {
    fn slot(&mut self, key: &ConversationKey) -> Arc<Slot> {
        self.uses += 1;
        let used = self.uses;
        if let Some(entry) = self.slots.get_mut(key) {
            entry.used = used;
            return entry.slot.clone();
        }
        let slot = Arc::new(Slot::default());
        self.slots.insert(
            key.clone(),
            Entry {
                slot: slot.clone(),
                used,
                bytes: 0,
            },
        );
        slot
    }

    /// Forgets those that were used longest ago until a quarter of the room is free, so that it is
    /// long until the next time.
    fn make_room(&mut self, bytes_max: usize) {
        let mut idle: Vec<(u64, ConversationKey)> = self
            .slots
            .iter()
            .filter(|(_, entry)| Arc::strong_count(&entry.slot) == 1)
            .map(|(key, entry)| (entry.used, key.clone()))
            .collect();
        idle.sort_unstable_by_key(|(used, _)| *used);
        for (_, key) in idle {
            if self.bytes <= bytes_max / 4 * 3 {
                break;
            }
            if let Some(entry) = self.slots.remove(&key) {
                self.removed = self.uses;
                self.bytes -= entry.bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use adjutant_core::{AgentName, ConversationId, Event, Message, Recorded, UserId};

    use super::*;

    fn key(number: u128) -> ConversationKey {
        ConversationKey {
            agent: AgentName::adjutant(),
            user: UserId::local(),
            conversation: ConversationId(uuid::Uuid::from_u128(number)),
        }
    }

    fn newer(after: u64, created: i64) -> Newer {
        let messages = vec![Message::user("x".repeat(1000)).unwrap()];
        Newer {
            created_at: Timestamp::from_second(created).unwrap(),
            restorable: None,
            after,
            events: vec![Recorded {
                seq: after + 1,
                at: Timestamp::UNIX_EPOCH,
                event: Event::HistorySet { messages }.into(),
            }],
            inbox: Vec::new(),
        }
    }

    #[test]
    fn what_is_newer_is_added_only_to_the_same_conversation() {
        let (first, _) = Remembered::with(None, newer(0, 1), Some(20)).unwrap();
        assert_eq!(first.known().seq, 1);
        let (more, _) = Remembered::with(Some(first), newer(1, 1), Some(20)).unwrap();
        assert_eq!(more.known().seq, 2);
        let (another, _) = Remembered::with(Some(more), newer(0, 2), Some(20)).unwrap();
        assert_eq!(another.known().seq, 1, "it was deleted and begun again");
        let (wider, _) = Remembered::with(Some(another), newer(0, 2), None).unwrap();
        assert_eq!(wider.conversation.messages_max(), None);
    }

    #[test]
    fn a_place_that_was_used_since_a_mark_is_told() {
        let recent = Recent::new(10_000);
        let put = |guard, known: bool| {
            let remembered = known.then(|| Remembered::with(None, newer(0, 1), None).unwrap().0);
            recent.put_back(&key(1), guard, remembered);
        };
        put(recent.slot(&key(1)).try_lock_owned().unwrap(), true);
        let mark = recent.mark();
        put(recent.unused_since(&key(1), mark).unwrap(), true);
        assert!(
            recent.unused_since(&key(1), mark).is_none(),
            "by the line before"
        );
        // One that asked before the mark, and has it only now.
        let slot = recent.slot(&key(1));
        let mark = recent.mark();
        let guard = slot.try_lock_owned().unwrap();
        assert!(recent.unused_since(&key(1), mark).is_none(), "it is in use");
        put(guard, false);
        assert!(
            recent.unused_since(&key(1), mark).is_none(),
            "it is not known any more"
        );
        assert!(recent.unused_since(&key(1), recent.mark()).is_some());
    }

    #[test]
    fn the_ones_that_were_used_longest_ago_are_forgotten() {
        let recent = Recent::new(10_000);
        let put = |number| {
            let guard = recent.slot(&key(number)).try_lock_owned().unwrap();
            recent.put_back(
                &key(number),
                guard,
                Some(Remembered::with(None, newer(0, 1), None).unwrap().0),
            );
        };
        let is_known = |number| recent.slot(&key(number)).try_lock().unwrap().is_some();
        // One that somebody works on stays, however old it is.
        let held = recent.slot(&key(0)).try_lock_owned().unwrap();
        (1..=20).for_each(put);
        assert!(is_known(20) && !is_known(1));
        assert!(recent.state.lock().unwrap().bytes <= 10_000);
        assert!(recent.slot(&key(0)).try_lock().is_err());
        recent.put_back(&key(0), held, None);
        assert!(
            !recent.state.lock().unwrap().slots.contains_key(&key(0)),
            "nothing is known of it"
        );
    }
}
