//! Notes by how well they fit a question: as a whole, by their best passage, and a little by what
//! they have to do with the others.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;

use super::note::{aliases, links};
use super::passage::{Passage, passages};
use super::path::folded;
use crate::rank::{Counted, Query, TOKEN_BYTES};

/// A word in a note's name counts as often in its text.
const NAME: f64 = 3.0;
/// A word in another name of a note counts so often beside its place in the front matter.
const ALIAS: f64 = 2.0;
/// A word in a heading counts so often in each passage below it.
const HEADING: f64 = 1.0;
/// Bytes of a passage of notes whose passages are not counted.
const USUAL_PASSAGE_BYTES: usize = 450;
/// Notes that are looked at by passage: the best as a whole.
pub(crate) const BY_PASSAGE_MAX: usize = 200;

// What follows decides between notes that fit nearly as well, so each is a small part of a note's
// score.
/// For a note that links to the best note, or is linked from it; for other notes in proportion.
const LINKED: f64 = 0.03;
/// For the note that was changed last; half of it for each `RECENT_DAYS` that another one is older.
const RECENT: f64 = 0.02;
const RECENT_DAYS: f64 = 30.0;
/// For a note that is attached in the conversation.
const ATTACHED: f64 = 0.1;
/// Links of one note that are looked at.
const LINKS_MAX: usize = 200;

/// A note in which words of the question were found.
#[derive(Debug)]
pub(crate) struct Whole {
    counted: Counted,
    bytes: usize,
}

/// The parts of a note that are looked at if it is among the best.
#[derive(Debug)]
pub(crate) struct Closer {
    /// Passages with words of the question.
    passages: Vec<(Passage, Counted)>,
    /// The number of all passages.
    number: usize,
    /// The notes it links to, folded.
    links: Vec<String>,
    /// The other facts about it.
    pub(crate) about: About,
}

/// The facts about a note beside its text.
#[derive(Debug, Default)]
pub(crate) struct About {
    pub(crate) path: String,
    pub(crate) modified: Option<Timestamp>,
    pub(crate) is_attached: bool,
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
pub(crate) fn whole(title: &str, text: &str, query: &Query, sizes: &Sizes) -> Option<Whole> {
    let mut counted = Counted::default();
    counted.length = query.each_match_in_part(text, |_, word| counted.add(word, 1.0, query.len()));
    sizes.notes.fetch_add(1, Ordering::Relaxed);
    sizes
        .tokens
        .fetch_add(counted.length as u64, Ordering::Relaxed);
    sizes
        .passages
        .fetch_add(usual_passages(text.len()) as u64, Ordering::Relaxed);
    query.each_match_in_part(title, |_, word| counted.add(word, NAME, query.len()));
    if counted.is_empty() {
        return None;
    }
    for alias in aliases(text) {
        query.each_match(&alias, |_, word| counted.add(word, ALIAS, query.len()));
    }
    Some(Whole {
        counted,
        bytes: text.len(),
    })
}

fn usual_passages(bytes: usize) -> usize {
    (bytes / USUAL_PASSAGE_BYTES).max(1)
}

/// Looks for the words of a question in the passages of a note.
pub(crate) fn closer(text: &str, query: &Query, about: About) -> Closer {
    let mut places: Vec<(usize, usize)> = Vec::new();
    query.each_match_in_part(text, |at, word| places.push((at, word)));
    let divided = passages(text);
    let number = divided.len();
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
            let words = passage
                .heading
                .clone()
                .and_then(|heading| text.get(heading));
            query.each_match(words.unwrap_or_default(), |_, word| above.1.push(word));
        }
        above
            .1
            .iter()
            .for_each(|word| counted.add(*word, HEADING, query.len()));
        counted.length = passage.range.len() as f64 / TOKEN_BYTES;
        if !counted.is_empty() {
            found.push((passage, counted));
        }
    }
    let links = links(text).take(LINKS_MAX).map(name_of).collect();
    Closer {
        passages: found,
        number,
        links,
        about,
    }
}

/// Returns the scores of notes as a whole: parts of what one would have that says just what was
/// asked.
pub(crate) fn by_whole(notes: &[Whole], query: &Query, sizes: &Sizes) -> Vec<f64> {
    let (all, tokens) = (number(&sizes.notes), number(&sizes.tokens));
    let counted: Vec<&Counted> = notes.iter().map(|note| &note.counted).collect();
    let scores = query.scores_held(&counted, &query.holding(&counted), all, tokens / all);
    scores
        .each
        .iter()
        .map(|score| part(*score, scores.most))
        .collect()
}

/// Scores the best notes: half by the whole of each, half by its best passage, and a little by what
/// it has to do with the others. `all`: all notes that were found, the best among them; `best`:
/// their places there, their scores as a whole, and what they hold.
pub(crate) fn rank(
    all: &[Whole],
    best: &[(usize, f64, Closer)],
    query: &Query,
    sizes: &Sizes,
) -> Vec<Fit> {
    let wholes: Vec<&Counted> = best
        .iter()
        .filter_map(|(at, ..)| Some(&all.get(*at)?.counted))
        .collect();
    let pieces: Vec<&Counted> = best
        .iter()
        .flat_map(|(_, _, note)| note.passages.iter().map(|(_, counted)| counted))
        .collect();
    // Passages of the others were not looked at: as many hold a word for each note that does.
    let every: Vec<&Counted> = all.iter().map(|note| &note.counted).collect();
    let in_notes = query
        .holding(&every)
        .into_iter()
        .zip(query.holding(&wholes));
    let holding: Vec<f64> = in_notes
        .zip(query.holding(&pieces))
        .map(|((all, best), pieces)| if best > 0.0 { pieces * all / best } else { all })
        .collect();
    let guessed: usize = best
        .iter()
        .filter_map(|(at, ..)| Some(usual_passages(all.get(*at)?.bytes)))
        .sum();
    let counted: usize = best.iter().map(|(_, _, note)| note.number).sum();
    let most = holding.iter().copied().fold(1.0, f64::max);
    let passages = (number(&sizes.passages) - guessed as f64 + counted as f64).max(most);
    let scores = query.scores_held(
        &pieces,
        &holding,
        passages,
        number(&sizes.tokens) / passages,
    );
    let mut each = scores.each.iter();
    let mut fits = Vec::new();
    for (_, whole, note) in best {
        let mut found: Option<(f64, &Passage)> = None;
        for ((passage, _), score) in note.passages.iter().zip(&mut each) {
            if found.is_none_or(|(most, _)| *score > most) {
                found = Some((*score, passage));
            }
        }
        let best_part = found.map_or(0.0, |(score, _)| part(score, scores.most));
        let score = f64::midpoint(*whole, best_part);
        fits.push(Fit {
            score,
            passage: found.map(|(_, passage)| passage.clone()),
        });
    }
    let notes: Vec<&Closer> = best.iter().map(|(_, _, note)| note).collect();
    let scores: Vec<f64> = fits.iter().map(|fit| fit.score).collect();
    for (fit, more) in fits.iter_mut().zip(raises(&notes, &scores)) {
        fit.score *= 1.0 + more;
    }
    fits
}

/// Returns the part by which the score of each note is raised.
fn raises(notes: &[&Closer], scores: &[f64]) -> Vec<f64> {
    let most = scores.iter().copied().fold(0.0, f64::max);
    let mut names: HashMap<String, usize> = HashMap::new();
    for (at, note) in notes.iter().enumerate() {
        let path = name_of(&note.about.path);
        let ends = path
            .match_indices('/')
            .filter_map(|(slash, _)| path.get(slash + 1..));
        for name in std::iter::once(path.as_str()).chain(ends) {
            names.entry(name.to_owned()).or_insert(at);
        }
    }
    let mut linked = vec![0.0_f64; notes.len()];
    for (from, note) in notes.iter().enumerate() {
        for to in note
            .links
            .iter()
            .filter_map(|link| names.get(link))
            .filter(|to| **to != from)
        {
            // From the one to the other and back.
            for (note, other) in [(from, *to), (*to, from)] {
                let score = scores.get(other).map_or(0.0, |score| part(*score, most));
                if let Some(linked) = linked.get_mut(note) {
                    *linked = linked.max(score);
                }
            }
        }
    }
    let newest = notes.iter().filter_map(|note| note.about.modified).max();
    let age =
        |note: &Closer| Some(newest?.duration_since(note.about.modified?).as_secs_f64() / 86_400.0);
    let raise = |(note, linked): (&&Closer, f64)| {
        let recent = age(note).map_or(0.0, |days| RECENT * (-days / RECENT_DAYS).exp2());
        LINKED * linked
            + recent
            + if note.about.is_attached {
                ATTACHED
            } else {
                0.0
            }
    };
    notes.iter().zip(linked).map(raise).collect()
}

/// Returns the name of a note as links have it, folded.
fn name_of(path: &str) -> String {
    let path = folded(path);
    path.strip_suffix(".md").map(str::to_owned).unwrap_or(path)
}

fn part(score: f64, most: f64) -> f64 {
    if most > 0.0 { score / most } else { 0.0 }
}

fn number(size: &AtomicU64) -> f64 {
    (size.load(Ordering::Relaxed) as f64).max(1.0)
}
