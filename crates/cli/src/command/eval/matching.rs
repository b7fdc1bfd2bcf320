//! One-to-one matching of expectations with what is there, and with what has become of it.

use std::collections::BTreeSet;

/// Matches as many seekers as possible with one place each, and returns the place of each seeker.
/// `fits` has the places that each seeker could take. A seeker keeps a place once it has one, so
/// those that come first are served first; the same holds for places.
///
/// A place may fit several seekers ("buy", "milk" fits "Buy milk" and "Buy oat milk"), so the first
/// fit is not good enough: a seeker takes a place from another one whenever that one can have a
/// different place (Kuhn's algorithm for a maximum one-to-one matching).
pub(crate) fn pair(fits: &[Vec<usize>], places: usize) -> Vec<Option<usize>> {
    let mut owners = vec![None; places];
    for seeker in 0..fits.len() {
        assign(seeker, fits, &mut owners, &mut BTreeSet::new());
    }
    let mut taken = vec![None; fits.len()];
    for (place, owner) in owners.into_iter().enumerate() {
        if let Some(owner) = owner {
            taken[owner] = Some(place);
        }
    }
    taken
}

/// Gives a seeker a place that fits it, and returns false if there is none.
fn assign(
    seeker: usize,
    fits: &[Vec<usize>],
    owners: &mut [Option<usize>],
    tried: &mut BTreeSet<usize>,
) -> bool {
    for &place in &fits[seeker] {
        // Each place is tried once, else two seekers would take it from each other forever.
        if !tried.insert(place) {
            continue;
        }
        if owners[place].is_none_or(|owner| assign(owner, fits, owners, tried)) {
            owners[place] = Some(seeker);
            return true;
        }
    }
    false
}

/// The difference that a turn made: items that stayed as they were, new ones, and those that are gone.
#[derive(Debug)]
pub(crate) struct Difference<'a, T> {
    pub(crate) same: Vec<&'a T>,
    pub(crate) new: Vec<&'a T>,
    pub(crate) gone: Vec<&'a T>,
}

impl<T> Difference<'_, T> {
    /// Returns true if a change does not lead to what is wanted: something new fits nothing, or
    /// something that is gone is still wanted.
    pub(crate) fn surprises<W>(&self, wanted: &[W], fits: impl Fn(&W, &T) -> bool) -> bool {
        // What stayed is served first, so that what is left over is new if it can be.
        let now: Vec<&T> = self.same.iter().chain(&self.new).copied().collect();
        let candidates: Vec<Vec<usize>> = now
            .iter()
            .map(|item| {
                let indexes = 0..wanted.len();
                indexes.filter(|&at| fits(&wanted[at], item)).collect()
            })
            .collect();
        let places = pair(&candidates, wanted.len());
        let new = &places[self.same.len()..];
        let still_wanted = |item: &&T| {
            let mut free = (0..wanted.len()).filter(|at| !places.contains(&Some(*at)));
            free.any(|at| fits(&wanted[at], item))
        };
        new.contains(&None) || self.gone.iter().any(still_wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_possible_get_a_place() {
        assert_eq!(pair(&[vec![0, 1], vec![0]], 2), [Some(1), Some(0)]);
        assert_eq!(pair(&[vec![0], vec![0]], 1), [Some(0), None]);
        assert_eq!(pair(&[vec![], vec![2]], 3), [None, Some(2)]);
    }
}
