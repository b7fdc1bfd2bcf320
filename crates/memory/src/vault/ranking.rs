//! Notes by how well they fit a question: as a whole, and by their best passage.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::note::aliases;
use super::passage::{Passage, passages};
use crate::rank::{Counted, Query, TOKEN_BYTES};

/// A word in a note's name counts as often in its text.
const NAME: f64 = 3.0;
/// A word in another name of a note counts so often beside its place in the front matter.
const ALIAS: f64 = 2.0;
/// A word in a heading counts so often in each passage below it.
const HEADING: f64 = 1.0;
/// Bytes of a passage of notes whose passages are not counted.
const USUAL_PASSAGE_BYTES: u64 = 450;

/// A note in which words of the question were found.
#[derive(Debug)]
pub(crate) struct Fitting {
    whole: Counted,
    /// Passages with words of the question.
    passages: Vec<(Passage, Counted)>,
}

/// The sizes of all notes that were looked at, those without a word of the question too.
#[derive(Debug, Default)]
pub(crate) struct Sizes {
    notes: AtomicU64,
    tokens: AtomicU64,
    passages: AtomicU64,
}

/// A note's score and the passage of it that fits best.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fit {
    /// A part of what a note would have that says just what was asked.
    pub(crate) score: f64,
    pub(crate) passage: Option<Passage>,
}

/// Looks for the words of a question in a note. `None`: not one of them is there.
pub(crate) fn fitting(title: &str, text: &str, query: &Query, sizes: &Sizes) -> Option<Fitting> {
    let mut whole = Counted::default();
    let mut places: Vec<(usize, usize)> = Vec::new();
    let tokens = query.each_match_in_part(text, |at, word| {
        whole.add(word, 1.0, query.len());
        places.push((at, word));
    });
    whole.length = tokens;
    sizes.notes.fetch_add(1, Ordering::Relaxed);
    sizes.tokens.fetch_add(tokens as u64, Ordering::Relaxed);
    query.each_match_in_part(title, |_, word| whole.add(word, NAME, query.len()));
    if whole.is_empty() {
        let passages = (text.len() as u64 / USUAL_PASSAGE_BYTES).max(1);
        sizes.passages.fetch_add(passages, Ordering::Relaxed);
        return None;
    }
    for alias in aliases(text) {
        query.each_match(&alias, |_, word| whole.add(word, ALIAS, query.len()));
    }
    let divided = passages(text);
    sizes.passages.fetch_add(divided.len() as u64, Ordering::Relaxed);
    let mut places = places.into_iter().peekable();
    let mut found = Vec::new();
    let mut above: (Option<Range<usize>>, Vec<usize>) = (None, Vec::new());
    for passage in divided {
        let mut counted = Counted::default();
        while let Some((_, word)) = places.next_if(|(at, _)| *at < passage.range.end) {
            counted.add(word, 1.0, query.len());
        }
        if passage.heading != above.0 {
            above = (passage.heading.clone(), Vec::new());
            let words = passage.heading.clone().and_then(|heading| text.get(heading));
            query.each_match(words.unwrap_or_default(), |_, word| above.1.push(word));
        }
        above.1.iter().for_each(|word| counted.add(*word, HEADING, query.len()));
        counted.length = passage.range.len() as f64 / TOKEN_BYTES;
        if !counted.is_empty() {
            found.push((passage, counted));
        }
    }
    Some(Fitting { whole, passages: found })
}

/// Scores notes: half by the whole of each, half by its best passage.
pub(crate) fn rank(notes: &[Fitting], query: &Query, sizes: &Sizes) -> Vec<Fit> {
    let number = |size: &AtomicU64| (size.load(Ordering::Relaxed) as f64).max(1.0);
    let (all, tokens, passages) = (number(&sizes.notes), number(&sizes.tokens), number(&sizes.passages));
    let wholes: Vec<Counted> = notes.iter().map(|note| note.whole.clone()).collect();
    let wholes = query.scores_among(&wholes, all, tokens / all);
    let part = |score: f64, most: f64| if most > 0.0 { score / most } else { 0.0 };
    let pieces: Vec<Counted> =
        notes.iter().flat_map(|note| note.passages.iter().map(|(_, counted)| counted.clone())).collect();
    let pieces = query.scores_among(&pieces, passages, tokens / passages);
    let mut scores = pieces.each.into_iter();
    let mut fits = Vec::new();
    for (note, whole) in notes.iter().zip(wholes.each) {
        let mut best: Option<(f64, &Passage)> = None;
        for ((passage, _), score) in note.passages.iter().zip(&mut scores) {
            if best.is_none_or(|(most, _)| score > most) {
                best = Some((score, passage));
            }
        }
        let best_part = best.map_or(0.0, |(score, _)| part(score, pieces.most));
        let score = f64::midpoint(part(whole, wholes.most), best_part);
        fits.push(Fit { score, passage: best.map(|(_, passage)| passage.clone()) });
    }
    fits
}
