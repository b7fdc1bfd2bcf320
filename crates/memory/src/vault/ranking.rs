//! The ranking of notes for a query: by BM25 over whole notes and over their best passages, and a
//! little by their links, their age and whether they are attached.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;

use super::note::{aliases, links};
use super::passage::{Passage, passages};
use super::path::{case_folded, path_suffixes, without_md};
use crate::rank::{BYTES_PER_TOKEN, Corpus, Query, TermCounts, share};

/// Number of occurrences in the text that a term in a note's name counts for.
const NAME: f64 = 3.0;
/// The same for a term in an alias, beside its occurrence in the front matter.
const ALIAS: f64 = 2.0;
/// The same for a term in a heading, in each passage below it.
const HEADING: f64 = 1.0;
/// Mean bytes of a passage, for notes that are not divided into passages.
const MEAN_PASSAGE_BYTES: usize = 450;
/// Number of notes that are scored by passage too: the best as a whole.
pub(crate) const BY_PASSAGE_MAX: usize = 200;

// The signals below decide between notes that match nearly as well, so each is a small part of a
// note's score.
/// Boost of a note that links to the best note, or is linked from it; for links with other notes in
/// proportion to their scores.
const LINKED: f64 = 0.03;
/// Boost of the note that was modified last; half of it for each `RECENT_DAYS` that another note is
/// older.
const RECENT: f64 = 0.02;
const RECENT_DAYS: f64 = 30.0;
/// Boost of a note that is attached in the conversation.
const ATTACHED: f64 = 0.1;
/// Number of links of one note that are followed.
const LINKS_MAX: usize = 200;

/// A note as a whole that matches a query.
#[derive(Debug)]
pub(crate) struct NoteCounts {
    counts: TermCounts,
    bytes: usize,
}

/// The passages of a note that match a query, and the signals beside its text.
#[derive(Debug)]
pub(crate) struct PassageCounts {
    matching: Vec<(Passage, TermCounts)>,
    /// Number of all passages.
    number: usize,
    /// The names of the notes that it links to, case-folded.
    links: Vec<String>,
    pub(crate) signals: Signals,
}

/// The signals of a note beside its text.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    pub(crate) path: String,
    pub(crate) modified: Option<Timestamp>,
    pub(crate) is_attached: bool,
}

/// A note that is scored by passage.
pub(crate) struct Candidate {
    /// Its index among all notes that match.
    pub(crate) at: usize,
    /// Its score as a whole.
    pub(crate) score: f64,
    pub(crate) passages: PassageCounts,
}

/// Totals over all notes that were read, those that do not match too. Counted by several threads.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    notes: AtomicU64,
    tokens: AtomicU64,
    passages: AtomicU64,
}

/// The score of a note, and its best passage.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NoteScore {
    /// A share of the most that a note can score for the query.
    pub(crate) score: f64,
    pub(crate) passage: Option<Passage>,
}

/// Counts the terms of a query in a note. `None` if it holds none of them.
pub(crate) fn count_note(
    title: &str,
    text: &str,
    query: &Query,
    totals: &Totals,
) -> Option<NoteCounts> {
    let mut counts = TermCounts::default();
    let terms = query.len();
    counts.length = query.each_match_prefiltered(text, |_, term| counts.add(term, 1.0, terms));
    // Relaxed: the sums are read after the threads were joined, which orders them.
    let add = |total: &AtomicU64, number: u64| total.fetch_add(number, Ordering::Relaxed);
    add(&totals.notes, 1);
    add(&totals.tokens, counts.length as u64);
    add(&totals.passages, estimated_passages(text.len()) as u64);
    // After the totals were counted: a title is no part of the note's length.
    query.each_match_prefiltered(title, |_, term| counts.add(term, NAME, terms));
    if counts.is_empty() {
        return None;
    }
    for alias in aliases(text) {
        query.each_match(&alias, |_, term| counts.add(term, ALIAS, terms));
    }
    Some(NoteCounts {
        counts,
        bytes: text.len(),
    })
}

fn estimated_passages(bytes: usize) -> usize {
    (bytes / MEAN_PASSAGE_BYTES).max(1)
}

/// Counts the terms of a query in the passages of a note.
pub(crate) fn count_passages(text: &str, query: &Query, signals: Signals) -> PassageCounts {
    let mut matches: Vec<(usize, usize)> = Vec::new();
    query.each_match_prefiltered(text, |at, term| matches.push((at, term)));
    let divided = passages(text);
    let number = divided.len();
    let mut matches = matches.into_iter().peekable();
    let mut matching = Vec::new();
    let mut above: (Option<Range<usize>>, Vec<usize>) = (None, Vec::new());
    for passage in divided {
        let mut counts = TermCounts::default();
        while let Some((_, term)) = matches.next_if(|(at, _)| *at < passage.range.end) {
            counts.add(term, 1.0, query.len());
        }
        if passage.heading != above.0 {
            above = (passage.heading.clone(), Vec::new());
            let heading = passage.heading.clone().and_then(|range| text.get(range));
            query.each_match(heading.unwrap_or_default(), |_, term| above.1.push(term));
        }
        for term in &above.1 {
            counts.add(*term, HEADING, query.len());
        }
        counts.length = passage.range.len() as f64 / BYTES_PER_TOKEN;
        if !counts.is_empty() {
            matching.push((passage, counts));
        }
    }
    PassageCounts {
        matching,
        number,
        links: links(text).take(LINKS_MAX).map(link_name).collect(),
        signals,
    }
}

/// Returns the scores of notes as a whole, as shares of the most that a note can score.
pub(crate) fn score_notes(notes: &[NoteCounts], query: &Query, totals: &Totals) -> Vec<f64> {
    let (all, tokens) = (load(&totals.notes), load(&totals.tokens));
    let counts: Vec<&TermCounts> = notes.iter().map(|note| &note.counts).collect();
    let corpus = Corpus {
        texts: all,
        mean_length: tokens / all,
        frequencies: &query.frequencies(&counts),
    };
    let scores = query.score_in(&counts, corpus);
    scores
        .values
        .iter()
        .map(|score| scores.share(*score))
        .collect()
}

/// Scores the best notes again: half by the whole of each, half by its best passage, with a boost
/// for its signals. `all`: all notes that match, the candidates among them.
pub(crate) fn score_candidates(
    all: &[NoteCounts],
    candidates: &[Candidate],
    query: &Query,
    totals: &Totals,
) -> Vec<NoteScore> {
    let wholes: Vec<&NoteCounts> = candidates
        .iter()
        .filter_map(|candidate| all.get(candidate.at))
        .collect();
    let of_notes = |notes: &[&NoteCounts]| {
        let counts: Vec<&TermCounts> = notes.iter().map(|note| &note.counts).collect();
        query.frequencies(&counts)
    };
    let parts: Vec<&TermCounts> = candidates
        .iter()
        .flat_map(|candidate| candidate.passages.matching.iter())
        .map(|(_, counts)| counts)
        .collect();
    // The passages of the other notes were not counted. Their number is estimated: as many passages
    // hold a term in each note that holds it.
    let in_all = of_notes(&all.iter().collect::<Vec<_>>());
    let in_candidates = of_notes(&wholes);
    let frequencies: Vec<f64> = in_all
        .into_iter()
        .zip(in_candidates)
        .zip(query.frequencies(&parts))
        .map(|((all, here), parts)| if here > 0.0 { parts * all / here } else { all })
        .collect();
    let estimated: usize = wholes
        .iter()
        .map(|note| estimated_passages(note.bytes))
        .sum();
    let counted: usize = candidates
        .iter()
        .map(|candidate| candidate.passages.number)
        .sum();
    // More passages than there are cannot hold a term.
    let most = frequencies.iter().copied().fold(1.0, f64::max);
    let passages = (load(&totals.passages) - estimated as f64 + counted as f64).max(most);
    let corpus = Corpus {
        texts: passages,
        mean_length: load(&totals.tokens) / passages,
        frequencies: &frequencies,
    };
    let scores = query.score_in(&parts, corpus);
    let mut values = scores.values.iter();
    let mut scored = Vec::new();
    for candidate in candidates {
        let mut best: Option<(f64, &Passage)> = None;
        for ((passage, _), score) in candidate.passages.matching.iter().zip(&mut values) {
            if best.is_none_or(|(most, _)| *score > most) {
                best = Some((*score, passage));
            }
        }
        let best_part = best.map_or(0.0, |(score, _)| scores.share(score));
        scored.push(NoteScore {
            score: f64::midpoint(candidate.score, best_part),
            passage: best.map(|(_, passage)| passage.clone()),
        });
    }
    let notes: Vec<&PassageCounts> = candidates
        .iter()
        .map(|candidate| &candidate.passages)
        .collect();
    let before: Vec<f64> = scored.iter().map(|note| note.score).collect();
    for (note, boost) in scored.iter_mut().zip(boosts(&notes, &before)) {
        note.score *= 1.0 + boost;
    }
    scored
}

/// Returns the share by which the signals of each note raise its score.
fn boosts(notes: &[&PassageCounts], scores: &[f64]) -> Vec<f64> {
    let most = scores.iter().copied().fold(0.0, f64::max);
    let mut names: HashMap<String, usize> = HashMap::new();
    for (at, note) in notes.iter().enumerate() {
        // A link may name a note by its whole path, or by the end of it.
        let path = link_name(&note.signals.path);
        for name in path_suffixes(&path) {
            // The notes come best first, so of two with one name the better one is linked.
            names.entry(name.to_owned()).or_insert(at);
        }
    }
    let mut linked = vec![0.0_f64; notes.len()];
    for (from, note) in notes.iter().enumerate() {
        let targets = note.links.iter().filter_map(|link| names.get(link));
        for to in targets.filter(|to| **to != from) {
            // A link counts for both of its ends.
            for (note, other) in [(from, *to), (*to, from)] {
                let score = scores.get(other).map_or(0.0, |score| share(*score, most));
                if let Some(linked) = linked.get_mut(note) {
                    *linked = linked.max(score);
                }
            }
        }
    }
    let newest = notes.iter().filter_map(|note| note.signals.modified).max();
    let days_older = |signals: &Signals| {
        Some(newest?.duration_since(signals.modified?).as_secs_f64() / 86_400.0)
    };
    let boost = |(note, linked): (&&PassageCounts, f64)| {
        let signals = &note.signals;
        let recent = days_older(signals).map_or(0.0, |days| RECENT * (-days / RECENT_DAYS).exp2());
        let attached = if signals.is_attached { ATTACHED } else { 0.0 };
        LINKED * linked + recent + attached
    };
    notes.iter().zip(linked).map(boost).collect()
}

/// Returns a path as links have it: case-folded, without `.md`.
fn link_name(path: &str) -> String {
    without_md(&case_folded(path)).to_owned()
}

fn load(total: &AtomicU64) -> f64 {
    (total.load(Ordering::Relaxed) as f64).max(1.0)
}
