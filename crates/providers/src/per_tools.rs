//! Keeps the form that an adapter gives a set of tools for the next request with the same set.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use adjutant_core::ToolSet;

/// Sets that are remembered. An agent has one, and another for turns without tools; models may be
/// shared by some agents.
const SETS_MAX: usize = 8;

/// Forms of the sets of tools seen last. A set is known by being the same one, not by what is in
/// it, so that nothing has to be compared.
pub(crate) struct PerTools<T>(Mutex<VecDeque<(ToolSet, Arc<T>)>>);

impl<T> Default for PerTools<T> {
    fn default() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }
}

impl<T> PerTools<T> {
    /// Returns what was made of this set before, else what `make` makes of it now.
    ///
    /// # Errors
    /// That of `make`.
    pub(crate) fn get<E>(
        &self,
        tools: &ToolSet,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let known = |sets: &VecDeque<(ToolSet, Arc<T>)>| {
            sets.iter()
                .find(|(set, _)| set.is_same(tools))
                .map(|(_, made)| made.clone())
        };
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = known(&lock()) {
            return Ok(made);
        }
        let made = Arc::new(make()?);
        let mut sets = lock();
        // The set is held, so that no other one can take its place in memory.
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
    fn a_set_is_made_something_of_once_and_forgotten_behind_others() {
        let (kept, mut made) = (PerTools::default(), 0);
        let mut ask = |tools: &ToolSet| {
            let make = || -> Result<i32, Infallible> {
                made += 1;
                Ok(made)
            };
            *kept.get(tools, make).unwrap()
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
