//! [`ToolsCache`]: the encoded tools of recent requests, because the same set is sent with every
//! request of an agent.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use adjutant_core::ToolSet;

/// Sets that are remembered. An agent has one, and another for turns without tools; several agents
/// may share a model.
const SETS_MAX: usize = 8;

/// The encoded forms of the most recent tool sets. Sets are compared by identity, not by content,
/// so a look-up costs nothing.
pub(crate) struct ToolsCache<T>(Mutex<VecDeque<(ToolSet, Arc<T>)>>);

impl<T> Default for ToolsCache<T> {
    fn default() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }
}

impl<T> ToolsCache<T> {
    /// Returns the cached form of this set, else what `make` returns.
    ///
    /// # Errors
    /// Those of `make`; nothing is cached then.
    pub(crate) fn get_or_make<E>(
        &self,
        tools: &ToolSet,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let cached = |sets: &VecDeque<(ToolSet, Arc<T>)>| {
            let found = sets.iter().find(|(set, _)| set.is_same(tools));
            found.map(|(_, made)| made.clone())
        };
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = cached(&lock()) {
            return Ok(made);
        }
        // The lock is not held meanwhile: encoding may take long, and two threads that encode the
        // same set do no harm.
        let made = Arc::new(make()?);
        let mut sets = lock();
        // The clone keeps the set alive, so that no later one can have its address and pass for it.
        sets.push_back((tools.clone(), made.clone()));
        if sets.len() > SETS_MAX {
            sets.pop_front();
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn a_set_is_encoded_once_and_the_oldest_is_forgotten() {
        let (cache, mut made) = (ToolsCache::default(), 0);
        let mut ask = |tools: &ToolSet| {
            let make = || -> Result<i32, Infallible> {
                made += 1;
                Ok(made)
            };
            *cache.get_or_make(tools, make).unwrap()
        };
        let sets: Vec<ToolSet> = (0..=SETS_MAX).map(|_| Vec::new().into()).collect();
        assert_eq!(
            (ask(&sets[0]), ask(&sets[0].clone()), ask(&sets[1])),
            (1, 1, 2),
            "an equal set is another"
        );
        for set in &sets[2..] {
            ask(set);
        }
        assert_eq!(
            (ask(&sets[1]), ask(&sets[0])),
            (2, 10),
            "the first was forgotten"
        );
    }
}
