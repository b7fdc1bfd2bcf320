//! The choice of one stored fact: the one that an id or a text means, or the one that a new text
//! corrects or contradicts.

use super::correction::{NewText, Relation, has_relation, names_replaced_part};
use super::keywords::{FactTokens, Overlap};
use super::known_facts::{KnownFact, KnownFacts};
use crate::MemoryError;
use crate::rank::{Query, TermCounts};

/// Number of facts that a text is compared with word by word.
const COMPARED_MAX: usize = 64;

/// Number of facts that an ambiguous text is answered with.
const CANDIDATES_MAX: usize = 5;

/// Returns the index of the stored fact that has this relation to a new text: of several the one
/// that the user's message names, else the one that shares most keywords, the newest of equals.
pub(crate) fn best_match(
    facts: &dyn KnownFacts,
    content: &str,
    message: &str,
    wanted: Relation,
) -> Option<usize> {
    let new = NewText::new(content, message);
    let mut compared = nearest(facts, &[content, message]);
    facts.sort_oldest_first(&mut compared);
    let matches = compared
        .into_iter()
        .filter_map(|at| Some((at, facts.get(at)?.content)))
        .filter(|(_, known)| has_relation(known, &new, wanted))
        .map(|(at, known)| (names_replaced_part(known, &new), new.overlap(known), at));
    // The facts come oldest first and the last of equals counts, so that is the newest.
    let best = matches.max_by(|(is_named, overlap, _), (other_is_named, other, _)| {
        let by_name = is_named.cmp(other_is_named);
        by_name.then_with(|| overlap.compare(*other))
    });
    best.map(|(_, _, at)| at)
}

/// Returns the indexes of the [`COMPARED_MAX`] facts that share most with some texts, by BM25; all
/// if there are no more facts than that.
///
/// A comparison of two sentences parses both, so that comparing a text with thousands of facts takes
/// seconds. What corrects, contradicts or names a fact shares words with it.
fn nearest(facts: &dyn KnownFacts, texts: &[&str]) -> Vec<usize> {
    if facts.len() <= COMPARED_MAX {
        return facts.in_order();
    }
    let weighted: Vec<(&str, f64)> = texts.iter().map(|text| (*text, 1.0)).collect();
    let query = Query::new(&weighted);
    let (indexes, counts): (Vec<usize>, Vec<TermCounts>) =
        facts.count_terms(&query).into_iter().unzip();
    let scores = query.score(&counts).values.into_iter().enumerate();
    let mut scores: Vec<(usize, f64)> = scores.filter(|(_, score)| *score > 0.0).collect();
    if scores.len() > COMPARED_MAX {
        // Of equals the newest, which stands last.
        scores.select_nth_unstable_by(COMPARED_MAX, |(place, score), (other_place, other)| {
            other.total_cmp(score).then_with(|| other_place.cmp(place))
        });
        scores.truncate(COMPARED_MAX);
    }
    let places = scores.into_iter();
    places
        .filter_map(|(place, _)| indexes.get(place).copied())
        .collect()
}

/// Returns the indexes of the facts that are meant, in their order.
type Search<'a> = &'a dyn Fn() -> Vec<usize>;

/// Returns the fact that an id or a text means, with its index: by its whole text, its id, a part of
/// it, or its keywords. The first of these that any fact fulfils decides.
///
/// # Errors
/// [`MemoryError::NoSuchFact`], [`MemoryError::Ambiguous`].
pub(crate) fn find_fact<'a>(
    facts: &'a dyn KnownFacts,
    which: &str,
) -> Result<(usize, KnownFact<'a>), MemoryError> {
    let which = which.trim();
    if which.is_empty() {
        return Err(no_such_fact(which));
    }
    let lower = which.to_lowercase();
    let with_keywords = || {
        let tokens = FactTokens::new(which);
        let mut near = nearest(facts, &[which]);
        facts.sort(&mut near);
        near.retain(|at| {
            let known = facts.get(*at).map(|fact| FactTokens::new(fact.content));
            known.is_some_and(|known| Overlap::between(&tokens, &known).is_match())
        });
        near
    };
    // From the most to the least exact: the six digits of an id may also occur in the text of a
    // fact.
    let searches: [Search<'_>; 5] = [
        &|| Vec::from_iter(facts.with_text(which)),
        &|| facts.with_id(&lower),
        &|| facts.with_lower(&|text| text == lower),
        &|| facts.with_lower(&|text| text.contains(&lower)),
        &with_keywords,
    ];
    for search in searches {
        let found: Vec<(usize, KnownFact<'a>)> = search()
            .into_iter()
            .filter_map(|at| Some((at, facts.get(at)?)))
            .collect();
        match found.as_slice() {
            [] => {}
            // Two lines with the same text are one fact: either will do.
            [first, rest @ ..]
                if rest
                    .iter()
                    .all(|(_, other)| other.content == first.1.content) =>
            {
                return Ok(*first);
            }
            many => {
                let candidates = many.iter().take(CANDIDATES_MAX);
                return Err(MemoryError::Ambiguous {
                    which: which.to_owned(),
                    candidates: candidates
                        .map(|(_, fact)| fact.content.to_owned())
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
