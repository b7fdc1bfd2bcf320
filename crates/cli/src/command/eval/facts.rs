//! Compares the facts after a turn with those that a case expects.

use super::matching::{Difference, pair};
use super::wording::contains;

/// Returns the reasons why the facts after a turn are not those that a case expects.
pub(crate) fn judge_facts(wanted: &[Vec<String>], facts: &[String]) -> Vec<String> {
    let candidates: Vec<Vec<usize>> = wanted
        .iter()
        .map(|words| {
            let indexes = 0..facts.len();
            indexes.filter(|&fact| fits(words, &facts[fact])).collect()
        })
        .collect();
    let matched = pair(&candidates, facts.len());
    let mut reasons = Vec::new();
    for (words, _) in wanted
        .iter()
        .zip(&matched)
        .filter(|(_, fact)| fact.is_none())
    {
        reasons.push(format!("no fact \u{201c}{}\u{201d}", words.join(" ")));
    }
    for (index, fact) in facts.iter().enumerate() {
        if !matched.contains(&Some(index)) {
            reasons.push(format!("unexpected fact \u{201c}{fact}\u{201d}"));
        }
    }
    reasons
}

/// Returns true if the facts were changed.
pub(crate) fn differ(before: &[String], after: &[String]) -> bool {
    let difference = difference(before, after);
    !difference.new.is_empty() || !difference.gone.is_empty()
}

/// Returns true if a change of the facts is not one that leads to those that a case expects.
pub(crate) fn surprises(wanted: &[Vec<String>], before: &[String], after: &[String]) -> bool {
    difference(before, after).surprises(wanted, |words, fact| fits(words, fact))
}

fn difference<'a>(before: &'a [String], after: &'a [String]) -> Difference<'a, String> {
    let mut gone: Vec<&String> = before.iter().collect();
    let (mut same, mut new) = (Vec::new(), Vec::new());
    for fact in after {
        match gone.iter().position(|old| *old == fact) {
            Some(at) => {
                gone.remove(at);
                same.push(fact);
            }
            None => new.push(fact),
        }
    }
    Difference { same, new, gone }
}

fn fits(words: &[String], fact: &str) -> bool {
    words.iter().all(|word| contains(fact, word))
}
