//! The choice of one stored fact: the one that an id or a text means, or the one that a new text
//! corrects or contradicts.

use std::cell::OnceCell;
use std::collections::HashSet;

use super::correction::{Relation, names_replaced_part, relation};
use super::fact::FactId;
use super::keywords::{FactTokens, Overlap};
use super::record::{Chronology, FactRecord};
use crate::MemoryError;
use crate::rank::{Query, TermCounts};

/// Number of facts that a text is compared with word by word.
const COMPARED_MAX: usize = 64;

/// Number of facts that an ambiguous text is answered with.
const CANDIDATES_MAX: usize = 5;

/// Returns the index of the stored fact that has this relation to a new text: of several the one
/// that the user's message names, else the one that shares most keywords, the newest of equals.
pub(crate) fn best_match(
    facts: &[FactRecord],
    content: &str,
    message: &str,
    wanted: Relation,
) -> Option<usize> {
    let new = FactTokens::new(content);
    let contents: Vec<&str> = facts.iter().map(|fact| fact.content.as_str()).collect();
    let compared = nearest(&contents, &[content, message]);
    let matches = Chronology::new(facts)
        .oldest_first
        .into_iter()
        .filter(|at| {
            compared
                .as_ref()
                .is_none_or(|compared| compared.contains(at))
        })
        .filter_map(|at| Some((at, facts.get(at)?)))
        .filter(|(_, fact)| relation(&fact.content, content, message) == wanted)
        .map(|(at, fact)| {
            let is_named = names_replaced_part(&fact.content, content, message);
            let overlap = Overlap::between(&new, &FactTokens::new(&fact.content));
            (is_named, overlap, at)
        });
    // The facts come oldest first and the last of equals counts, so that is the newest.
    let best = matches.max_by(|(is_named, overlap, _), (other_is_named, other, _)| {
        let by_name = is_named.cmp(other_is_named);
        by_name.then_with(|| overlap.compare(*other))
    });
    best.map(|(_, _, at)| at)
}

/// Returns the indexes of the [`COMPARED_MAX`] facts that share most with some texts, by BM25. `None`
/// if there are no more facts than that.
///
/// A comparison of two sentences parses both, so that comparing a text with thousands of facts takes
/// seconds. What corrects, contradicts or names a fact shares words with it.
fn nearest(contents: &[&str], texts: &[&str]) -> Option<HashSet<usize>> {
    if contents.len() <= COMPARED_MAX {
        return None;
    }
    let weighted: Vec<(&str, f64)> = texts.iter().map(|text| (*text, 1.0)).collect();
    let query = Query::new(&weighted);
    let counts: Vec<TermCounts> = contents
        .iter()
        .map(|content| query.count_prefiltered(content))
        .collect();
    let mut scores: Vec<(usize, f64)> = query
        .score(&counts)
        .values
        .into_iter()
        .enumerate()
        .filter(|(_, score)| *score > 0.0)
        .collect();
    // Of equals the newest, which stands last.
    scores.sort_by(|(at, score), (other_at, other)| {
        other.total_cmp(score).then_with(|| other_at.cmp(at))
    });
    scores.truncate(COMPARED_MAX);
    Some(scores.into_iter().map(|(at, _)| at).collect())
}

/// Returns the fact that an id or a text means, with its index.
///
/// # Errors
/// [`MemoryError::NoSuchFact`], [`MemoryError::Ambiguous`].
pub(crate) fn find_fact<'a>(
    facts: &'a [FactRecord],
    which: &str,
) -> Result<(usize, &'a FactRecord), MemoryError> {
    let at = find_index(facts.iter().map(|fact| fact.content.as_str()), which)?;
    let fact = facts.get(at).ok_or_else(|| no_such_fact(which))?;
    Ok((at, fact))
}

/// Decides whether the text at an index is meant.
type Test<'a> = &'a dyn Fn(usize, &str) -> bool;

/// Returns the index of the text that an id or a text means: by its whole text, its id, a part of
/// it, or its keywords. The first of these that any text fulfils decides.
///
/// # Errors
/// As [`find_fact`].
pub(crate) fn find_index<'a>(
    contents: impl Iterator<Item = &'a str>,
    which: &str,
) -> Result<usize, MemoryError> {
    let which = which.trim();
    if which.is_empty() {
        return Err(no_such_fact(which));
    }
    let contents: Vec<&str> = contents.collect();
    let lower = which.to_lowercase();
    let tokens = FactTokens::new(which);
    let compared = OnceCell::new();
    let is_near = |at: usize| {
        let compared = compared.get_or_init(|| nearest(&contents, &[which]));
        compared
            .as_ref()
            .is_none_or(|compared| compared.contains(&at))
    };
    // From the most to the least exact: the six digits of an id may also occur in the text of a
    // fact.
    let tests: [Test<'_>; 5] = [
        &|_, content| content == which,
        &|_, content| FactId::from_text(content).as_str() == lower,
        &|_, content| content.to_lowercase() == lower,
        &|_, content| content.to_lowercase().contains(&lower),
        &|at, content| {
            is_near(at) && Overlap::between(&tokens, &FactTokens::new(content)).is_match()
        },
    ];
    for test in tests {
        let found: Vec<(usize, &str)> = contents
            .iter()
            .copied()
            .enumerate()
            .filter(|(at, content)| test(*at, content))
            .collect();
        match found.as_slice() {
            [] => {}
            // Two lines with the same text are one fact: either will do.
            [(first, content), rest @ ..] if rest.iter().all(|(_, other)| other == content) => {
                return Ok(*first);
            }
            many => {
                let candidates = many.iter().take(CANDIDATES_MAX);
                return Err(MemoryError::Ambiguous {
                    which: which.to_owned(),
                    candidates: candidates
                        .map(|(_, content)| (*content).to_owned())
                        .collect(),
                });
            }
        }
    }
    Err(no_such_fact(which))
}

fn no_such_fact(which: &str) -> MemoryError {
    MemoryError::NoSuchFact {
        which: which.to_owned(),
    }
}
