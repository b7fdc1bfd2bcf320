//! The systems that tools change: they count requests and effects themselves.

use std::collections::BTreeMap;

use adjutant_core::{CallId, ConversationId, Effect, IdempotencyKey, TurnId};

/// The identity of a call, as these systems see it.
pub(crate) type CallName = (ConversationId, TurnId, CallId);

/// Requests and effects of one call.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Requests that arrived.
    pub(crate) requests: u32,
    /// Effects. A repeat with the same idempotency key is none.
    pub(crate) effects: u32,
    /// The keys that came with the requests.
    pub(crate) keys: Vec<IdempotencyKey>,
    pub(crate) effect: Option<Effect>,
}

/// All requests and effects of tools.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    pub(crate) calls: BTreeMap<CallName, Done>,
}

impl Outside {
    pub(crate) fn request(&mut self, name: CallName, key: &IdempotencyKey, effect: Effect) {
        let done = self.calls.entry(name).or_default();
        let is_new = !done.keys.contains(key);
        done.requests += 1;
        done.effect = Some(effect);
        if is_new {
            done.keys.push(key.clone());
        }
        match effect {
            Effect::None => {}
            Effect::Keyed => done.effects += u32::from(is_new),
            Effect::Once => done.effects += 1,
        }
    }

    /// Returns the number of times that the effect of a call has happened.
    pub(crate) fn effects(&self, name: &CallName) -> u32 {
        self.calls.get(name).map_or(0, |done| done.effects)
    }
}
