//! The clauses of a message, and the words by which people correct what they have just typed.

use crate::lexicon::{Lexicon, is_content};
use crate::words::{Word, is_number, stands_exactly_at};

/// Returns the place of the last correction, from its first word to behind its last.
pub(super) fn correction(
    message: &str,
    words: &[Word],
    lexicon: &Lexicon,
) -> Option<(usize, usize)> {
    let phrases = lexicon.corrections.iter().flat_map(|phrase| {
        (1..words.len()).filter_map(move |at| Some((at, stands_exactly_at(words, at, phrase)?)))
    });
    // "Delete 1, no, 2": a single word takes back only between two marks.
    let is_marked = |at: usize| {
        let marks = |from: usize, to: usize| {
            let between = message.get(from..to).unwrap_or_default();
            between.contains([',', '.', ';', '-', '\u{2013}', '\u{2014}', '!', '\u{2026}'])
        };
        let next = words.get(at + 1).map_or(message.len(), |next| next.start);
        marks(words[at - 1].end, words[at].start) && marks(words[at].end, next)
    };
    // "On Monday no Tuesday" and "30, no 50": it stands between two of a kind.
    let is_between = |at: usize| {
        let both = |is: &dyn Fn(&str) -> bool| {
            let next = words.get(at + 1);
            is(&words[at - 1].folded) && next.is_some_and(|next| is(&next.folded))
        };
        both(&is_number) || both(&|word| lexicon.when.has(word))
    };
    let single = (1..words.len())
        .filter(|at| lexicon.retractions.has(&words[*at].folded))
        .filter(|at| is_marked(*at) || is_between(*at))
        .map(|at| (at, at + 1));
    phrases.chain(single).max_by_key(|(_, behind)| *behind)
}

/// Returns the place behind the correction that a message begins with.
pub(super) fn first_correction(words: &[Word], lexicon: &Lexicon) -> Option<usize> {
    let phrases = lexicon.corrections.iter();
    let behind = phrases
        .filter_map(|phrase| stands_exactly_at(words, 0, phrase))
        .max();
    behind.filter(|behind| *behind < words.len())
}

/// Returns the words that a correction leaves: those behind it, or the last ones in front of it if
/// it ends the message.
pub(super) fn corrected(message: &str, words: Vec<Word>, lexicon: &Lexicon) -> Vec<Word> {
    let says = |words: &[Word]| {
        words.iter().any(|word| {
            is_number(&word.folded)
                || is_content(&word.folded, lexicon)
                || lexicon.ordinals.number(&word.folded).is_some()
        })
    };
    let Some((at, behind)) = correction(message, &words, lexicon) else {
        return words;
    };
    if says(&words[behind..]) {
        return words[behind..].to_vec();
    }
    let clauses = clauses(message, &words, lexicon);
    let last = words[..at]
        .iter()
        .zip(&clauses)
        .filter(|(_, clause)| **clause == clauses[at - 1])
        .map(|(word, _)| word.clone())
        .collect::<Vec<_>>();
    let is_all = last.len() == at;
    if is_all || !says(&last) { words } else { last }
}

/// Numbers the clauses of a message, for each of its words.
pub(super) fn clauses(message: &str, words: &[Word], lexicon: &Lexicon) -> Vec<usize> {
    let mut clause = 0;
    let mut end = 0;
    words
        .iter()
        .map(|word| {
            let between = message
                .get(end.min(word.start)..word.start)
                .unwrap_or_default();
            let splits = [
                ',', ';', '.', '!', '?', ':', '\n', '\u{2013}', '\u{2014}', '(', '&', '+', '/',
            ];
            // "The tax is still open": a word that says what is left to do begins no other clause.
            let joins = lexicon.connectors.has(&word.folded)
                && !lexicon.negations.has(&word.folded)
                && !lexicon.pending.has(&word.folded);
            if between.contains(splits) || joins || lexicon.contrasts.has(&word.folded) {
                clause += 1;
            }
            end = word.end;
            clause
        })
        .collect()
}
