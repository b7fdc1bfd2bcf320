//! A cache of the states of recent conversations, so that the next turn reads only newer events.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};

use adjutant_core::conversation::{Conversation, Snapshot, stored_weight};
use adjutant_core::port::{Known, Newer};
use adjutant_core::{ConversationKey, Input, Recorded};
use jiff::Timestamp;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// The cached state of a conversation.
#[derive(Debug)]
pub(crate) struct Remembered {
    /// Boxed, because it is large and moved from step to step.
    conversation: Box<Conversation>,
    created_at: Timestamp,
    /// Restarts of the store's server before it was read.
    restarts: u64,
    /// Approximate size in bytes of the events since the last snapshot.
    since_snapshot: usize,
    /// Size of the last snapshot in bytes, 0 if there is none.
    snapshot: usize,
}

impl Remembered {
    /// Folds newer events into a cached state, or into a new one if the cached state does not
    /// precede them. `None`: the snapshot in `newer` cannot be used, or the store was restarted since
    /// the cached state was read, and all events must be read.
    pub(crate) fn with(
        known: Option<Self>,
        newer: Newer,
        messages_max: Option<usize>,
        restarts: u64,
    ) -> Option<(Self, Vec<Input>)> {
        if known
            .as_ref()
            .is_some_and(|known| known.restarts != restarts)
        {
            return None;
        }
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
                restarts,
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
            restarts,
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

    /// Returns the snapshot to store with the end of a turn. `None`: the events since the last one
    /// are smaller than a new one would be; so all snapshots together stay smaller than all events.
    pub(crate) fn due_snapshot(&mut self) -> Option<Snapshot> {
        // Checked before the snapshot is made, which costs more than this comparison.
        if self.since_snapshot < self.snapshot.max(SNAPSHOT_MIN) {
            return None;
        }
        // A snapshot only saves time: without one, the events are read.
        let snapshot = self.conversation.snapshot().ok().flatten()?;
        self.snapshot = snapshot.body.len();
        if self.since_snapshot < self.snapshot {
            return None;
        }
        self.since_snapshot = 0;
        Some(snapshot)
    }

    /// Returns the position of the state, for
    /// [`Journal::begin`](adjutant_core::port::Journal::begin).
    pub(crate) fn known(&self) -> Known {
        Known {
            seq: self.conversation.seq(),
            created_at: self.created_at,
        }
    }
}

/// Size of events in bytes below which no snapshot is made: they are read as fast as one.
const SNAPSHOT_MIN: usize = 8 * 1024;

/// The cache slot of one conversation. Its lock is the exclusive right to the conversation within
/// this process.
pub(crate) type Slot = Mutex<Option<Remembered>>;

/// The cached states, limited by the memory they take.
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
    /// The value of `uses` at which a slot was removed last.
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

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic under the lock leaves no partial update, so a poisoned lock is usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the slot of a conversation.
    pub(crate) fn slot(&self, key: &ConversationKey) -> Arc<Slot> {
        self.state().slot(key)
    }

    /// Returns the current count of uses, for [`Recent::unused_since`].
    pub(crate) fn mark(&self) -> u64 {
        self.state().uses
    }

    /// Locks the slot of a conversation, if no task of this process has used it since the mark. A
    /// lease that was acquired since then is then still valid: no other task has released it.
    pub(crate) fn unused_since(
        &self,
        key: &ConversationKey,
        mark: u64,
    ) -> Option<OwnedMutexGuard<Option<Remembered>>> {
        let mut state = self.state();
        if state.removed > mark || state.slots.get(key).is_some_and(|entry| entry.used > mark) {
            return None;
        }
        state.slot(key).try_lock_owned().ok()
    }

    /// Stores a state for the next turn and unlocks its slot; `None` clears the slot. If the cache
    /// takes too much memory, the least recently used states are evicted.
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
        let mut state = self.state();
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
            // Only the map and the guard refer to the slot, so no task waits for it.
            if bytes.is_none() && Arc::strong_count(&entry.slot) <= 2 {
                slots.remove(key);
                *removed = *uses;
            }
        }
        drop(guard);
        if *all > self.bytes_max {
            state.evict(self.bytes_max);
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

    /// Evicts the least recently used states until a quarter of the cache is free, so that eviction
    /// is rare.
    fn evict(&mut self, bytes_max: usize) {
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
                event: Event::HistorySet {
                    messages,
                    from_others: false,
                }
                .into(),
            }],
            inbox: Vec::new(),
        }
    }

    #[test]
    fn what_is_newer_is_added_only_to_the_same_conversation() {
        let (first, _) = Remembered::with(None, newer(0, 1), Some(20), 0).unwrap();
        assert_eq!(first.known().seq, 1);
        let (more, _) = Remembered::with(Some(first), newer(1, 1), Some(20), 0).unwrap();
        assert_eq!(more.known().seq, 2);
        let (another, _) = Remembered::with(Some(more), newer(0, 2), Some(20), 0).unwrap();
        assert_eq!(another.known().seq, 1, "it was deleted and begun again");
        let (wider, _) = Remembered::with(Some(another), newer(0, 2), None, 0).unwrap();
        assert_eq!(wider.conversation.messages_max(), None);
    }

    #[test]
    fn a_state_from_before_a_restart_of_the_store_is_not_continued() {
        let read = |restarts| Remembered::with(None, newer(0, 1), Some(20), restarts);
        let (before, _) = read(0).unwrap();
        assert!(Remembered::with(Some(before), newer(1, 1), Some(20), 1).is_none());
        let (after, _) = read(1).unwrap();
        assert!(Remembered::with(Some(after), newer(1, 1), Some(20), 1).is_some());
    }

    #[test]
    fn a_slot_that_was_used_since_a_mark_is_refused() {
        let recent = Recent::new(10_000);
        let put = |guard, known: bool| {
            let remembered = known.then(|| Remembered::with(None, newer(0, 1), None, 0).unwrap().0);
            recent.put_back(&key(1), guard, remembered);
        };
        put(recent.slot(&key(1)).try_lock_owned().unwrap(), true);
        let mark = recent.mark();
        put(recent.unused_since(&key(1), mark).unwrap(), true);
        assert!(
            recent.unused_since(&key(1), mark).is_none(),
            "by the line before"
        );
        // A task that took the slot before the mark, and locks it only now.
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
                Some(Remembered::with(None, newer(0, 1), None, 0).unwrap().0),
            );
        };
        let is_known = |number| recent.slot(&key(number)).try_lock().unwrap().is_some();
        // A slot in use stays, however old it is.
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
