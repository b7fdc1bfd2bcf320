//! The new texts that a message may have for an entity: its own words as they are, or in the place
//! of some words of the entity's text.

use adjutant_core::Language;

use super::clauses::{corrected, first_correction};
use super::texts::quoted;
use crate::lexicon::{Lexicon, is_content};
use crate::words::{
    Likeness, Word, fold, is_infinitive, is_number, likeness, stands_exactly_at, words,
};

/// Most texts that are offered.
const TEXTS_MAX: usize = 8;
/// Most words of a message whose time is one of the entity: a story has many.
const TIMED_WORDS_MAX: usize = 15;
/// Most words between the old words and the new ones.
const BEFORE_TEXT_WORDS_MAX: usize = 3;
/// Most words of a text that takes the place of some words of another.
const REPLACING_WORDS_MAX: usize = 6;

/// Returns the new texts for a text, the likeliest first. `mentioned` has the bytes of the message
/// where words begin that mean the entity.
pub(super) fn candidates(
    message: &str,
    label: &str,
    mentioned: &[usize],
    lexicon: &Lexicon,
) -> Vec<String> {
    let (words_left, left) = corrected_in_place(message, lexicon);
    let rewording = Rewording {
        message,
        left,
        words: words_left,
        label,
        labels: words(label),
        mentioned,
        lexicon,
    };
    let mut found: Vec<String> = Vec::new();
    for text in rewording.texts() {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_new = !text.is_empty() && fold(&text) != fold(label);
        if is_new && !found.iter().any(|known| fold(known) == fold(&text)) {
            found.push(text);
        }
    }
    found.truncate(TEXTS_MAX);
    found
}

/// Returns the words of a message, and the first of those that a correction leaves. What it takes
/// back is left out, but for the entity in front of it: "call it tea, no, coffee".
fn corrected_in_place(message: &str, lexicon: &Lexicon) -> (Vec<Word>, Option<usize>) {
    let mut all = words(message);
    // "Typo, Albrecht": what the message begins with corrects the one before it.
    let begin = first_correction(&all, lexicon);
    all.drain(..begin.unwrap_or(0));
    let kept = corrected(message, all.clone(), lexicon);
    let first = kept.first().filter(|_| kept.len() < all.len());
    let at = first.and_then(|first| all.iter().position(|word| word.start == first.start));
    match at {
        Some(at) if at > 0 => {
            let end = at.saturating_sub(kept.len() + 1);
            (all[..end].iter().cloned().chain(kept).collect(), Some(end))
        }
        _ => (kept, begin.map(|_| 0)),
    }
}

struct Rewording<'a> {
    message: &'a str,
    /// The first of the words that a correction leaves.
    left: Option<usize>,
    words: Vec<Word>,
    label: &'a str,
    /// The words of the label.
    labels: Vec<Word>,
    mentioned: &'a [usize],
    lexicon: &'a Lexicon,
}

impl<'a> Rewording<'a> {
    fn texts(&self) -> Vec<String> {
        // The first of these that the message has leaves nothing to the others.
        let quotes = quoted(self.message);
        let is_new = |text: &&String| fold(text) != fold(self.label);
        if let Some(last) = quotes.iter().rev().find(is_new) {
            let whole = quotes.len() > 1 || self.names_all();
            let adds = |word: &Word| self.lexicon.adding_verbs.has(&word.folded);
            let appends = !whole && !self.is_whole(last) && self.words.iter().any(adds);
            let appended = appends.then(|| format!("{} {last}", self.label.trim_end()));
            return self
                .placed(last, whole)
                .into_iter()
                .chain(appended)
                .collect();
        }
        if let Some(text) = self.behind_colon() {
            return self.placed(text, true);
        }
        if let Some(text) = self.behind_arrow() {
            return self.placed(text, false);
        }
        let instead = self.instead();
        if !instead.is_empty() {
            return instead;
        }
        let mut texts = self.behind_markers();
        // "Thursday for the class": the entity may be named behind the new words as well.
        let shorter = texts.iter().filter_map(|text| self.without_entity(text));
        texts.extend(shorter.collect::<Vec<_>>());
        if texts.is_empty()
            && let Some(left) = self.left
        {
            // "No, I meant goat milk": all that a correction leaves.
            texts.push(self.between(left, self.end_of(left, self.words.len())));
        }
        let texts = texts.into_iter();
        let texts = texts.flat_map(|text| self.placed(text, false));
        let times = match self.words.len() <= TIMED_WORDS_MAX {
            true => self.times(),
            false => Vec::new(),
        };
        times.into_iter().chain(texts).collect()
    }

    /// Returns the text from one word to behind another.
    fn between(&self, begin: usize, end: usize) -> &'a str {
        match (
            self.words.get(begin),
            end.checked_sub(1).and_then(|at| self.words.get(at)),
        ) {
            (Some(first), Some(last)) if begin < end => &self.message[first.start..last.end],
            _ => "",
        }
    }

    /// Returns the text behind a colon that is no time of day.
    fn behind_colon(&self) -> Option<&'a str> {
        let (_, text) = self.message.split_once(": ")?;
        let begin = self.message.len() - text.len();
        let first = self.words.iter().position(|word| word.start >= begin)?;
        let end = self.end_of(first, self.words.len());
        Some(self.between(first, end)).filter(|text| !text.is_empty())
    }

    /// Returns the text behind an arrow.
    fn behind_arrow(&self) -> Option<&'a str> {
        let arrow = |arrow| self.message.rfind(arrow);
        let at = ["->", "=>", "\u{2192}"].into_iter().find_map(arrow)?;
        let first = self.words.iter().position(|word| word.start >= at)?;
        Some(self.between(first, self.end_of(first, self.words.len())))
    }

    /// Returns the label with the time of the message in the place of its own, or behind it: with
    /// and without the small word in front of it.
    fn times(&self) -> Vec<String> {
        let is_known = |at: usize| self.in_label(at).is_some();
        let word = |at: usize| self.words[at].folded.as_str();
        let is_when = |at: usize| self.lexicon.when.has(word(at)) && !is_known(at);
        let is_core = |at: usize| {
            is_when(at) || word(at).starts_with(|c: char| c.is_ascii_digit()) && !is_known(at)
        };
        let is_small = |at: usize| !is_content(word(at), self.lexicon) && !is_known(at);
        let Some(when) = (0..self.words.len()).rfind(|at| is_when(*at)) else {
            return Vec::new();
        };
        let inside = |at: &usize| is_core(*at) || is_small(*at);
        let begin = (0..when)
            .rev()
            .take_while(inside)
            .filter(|at| is_core(*at))
            .last();
        let begin = begin.unwrap_or(when);
        let end = (when..self.words.len())
            .take_while(inside)
            .filter(|at| is_core(*at))
            .last();
        let end = end.unwrap_or(when) + 1;
        let small = begin.checked_sub(1).filter(|at| is_small(*at));
        let with_small = small.map(|at| self.with_time(self.between(at, end)));
        let mut times = vec![self.with_time(self.between(begin, end))];
        times.extend(with_small);
        times
    }

    /// Returns the texts of "tea instead of coffee", "coffee, not tea".
    fn instead(&self) -> Vec<String> {
        let Some((at, behind)) = self.first_instead() else {
            return Vec::new();
        };
        // The old words stand behind it, up to a mark or to the new ones.
        let mut old_end = behind;
        while old_end < self.words.len()
            && (old_end == behind || !self.is_split(old_end))
            && (self.in_label(old_end).is_some()
                || !is_content(&self.words[old_end].folded, self.lexicon))
        {
            old_end += 1;
        }
        let old: Vec<usize> = (behind..old_end)
            .filter_map(|at| self.in_label(at))
            .collect();
        let (Some(&from), Some(&to)) = (old.iter().min(), old.iter().max()) else {
            return Vec::new();
        };
        // "We borrow it from Stefan, not from Jonas": from the preposition that both have.
        let preposition = self
            .words
            .get(behind)
            .filter(|word| old_end > behind + 1 && !is_content(&word.folded, self.lexicon));
        let shared = preposition.and_then(|word| {
            (0..at)
                .rev()
                .find(|at| self.words[*at].folded == word.folded)
        });
        let mut new: Vec<(usize, usize)> = Vec::new();
        if old_end < self.words.len() {
            let begin = self.behind_marks(old_end, self.words.len());
            new.push((begin, self.end_of(begin, self.words.len())));
        }
        if at > 0 {
            let markers = self.markers(0, at);
            let begin = shared.unwrap_or(markers.last().map_or(0, |(_, behind)| *behind));
            new.push((begin, self.end_of(begin, at)));
        }
        let text = new.into_iter().map(|(begin, end)| self.between(begin, end));
        let text = text.filter(|text| self.says_something_new(text));
        text.flat_map(|text| {
            let whole = self.labels.len() == to + 1 - from || self.is_whole(text);
            let replaced = self.replaced(self.with_articles(from, text), to + 1, text);
            match whole {
                true => vec![text.to_owned(), replaced],
                false => vec![replaced, text.to_owned()],
            }
        })
        .collect()
    }

    /// Returns the texts behind words such as "to" and "into", those behind the entity first.
    fn behind_markers(&self) -> Vec<&'a str> {
        let end = self.words.len();
        let mut places: Vec<(bool, usize)> = self
            .markers(0, end)
            .into_iter()
            .map(|(at, behind)| {
                let before = |byte: &usize| *byte < self.words[at].start;
                let behind_entity = self.mentioned.iter().any(before);
                (!behind_entity, behind)
            })
            .collect();
        // Behind the entity itself: "the rent on Friday", "task 4 call mum".
        let is_mentioned = |at: &usize| self.mentioned.contains(&self.words[*at].start);
        let first = (0..end).find(is_mentioned);
        let run = first.map(|first| (first..end).find(|at| !is_mentioned(at)).unwrap_or(end));
        let last = (0..end).rev().find(is_mentioned).map(|last| last + 1);
        let behind = run.into_iter().chain(last).filter(|behind| *behind < end);
        places.extend(behind.map(|behind| (false, behind)));
        places.extend(
            first
                .map(|first| (false, first + 1))
                .filter(|(_, at)| *at < end),
        );
        places.sort_by_key(|(in_front, behind)| (*in_front, *behind));
        places
            .into_iter()
            .map(|(_, behind)| {
                let begin = self.behind_marks(behind, end);
                self.between(begin, self.end_of(begin, end))
            })
            .filter(|text| self.says_something_new(text))
            .collect()
    }

    /// Returns a text without the words of the label that it ends with, from the preposition in front
    /// of them.
    fn without_entity(&self, text: &'a str) -> Option<&'a str> {
        let own = words(text);
        let is_small =
            |word: &Word| !is_content(&word.folded, self.lexicon) && !is_number(&word.folded);
        let is_of_entity = |word: &Word| is_small(word) || self.position(&word.folded).is_some();
        let tail = own.iter().rposition(|word| !is_of_entity(word))? + 1;
        let at = (tail.max(1)..own.len()).find(|at| is_small(&own[*at]))?;
        let names = own[at..].iter().any(|word| !is_small(word));
        names.then(|| &text[..own[at - 1].end])
    }

    /// Returns the markers of a new text between two words.
    fn markers(&self, from: usize, to: usize) -> Vec<(usize, usize)> {
        let at = |at: usize| {
            let phrases = self.lexicon.into.iter();
            let behind = phrases.filter_map(|phrase| stands_exactly_at(&self.words, at, phrase));
            behind
                .filter(|behind| *behind <= to)
                .max()
                .map(|behind| (at, behind))
        };
        (from..to).filter_map(at).collect()
    }

    /// Returns the first word behind further markers and articles of the entry: "to be called".
    fn behind_marks(&self, mut at: usize, end: usize) -> usize {
        while let Some((_, behind)) = self
            .markers(at, end)
            .first()
            .filter(|(first, _)| *first == at)
        {
            at = *behind;
        }
        at
    }

    /// Returns the end of a text: in front of a mark, another clause, politeness and verbs of
    /// changing.
    fn end_of(&self, begin: usize, limit: usize) -> usize {
        let mut end = limit;
        for at in begin + 1..limit {
            if self.is_split(at) {
                end = at;
                break;
            }
        }
        loop {
            let last = end.checked_sub(1).filter(|last| *last > begin);
            if last.is_some_and(|last| self.lexicon.connectors.has(&self.words[last].folded)) {
                end -= 1;
                continue;
            }
            let phrases = self.lexicon.behind_text.iter();
            let polite = phrases
                .chain(self.lexicon.behind_into.iter())
                .filter(|phrase| phrase.len() < end.saturating_sub(begin))
                .filter_map(|phrase| {
                    let start = end.checked_sub(phrase.len())?;
                    (stands_exactly_at(&self.words, start, phrase) == Some(end)).then_some(start)
                })
                .min();
            match polite {
                Some(start) => end = start,
                None => return end,
            }
        }
    }

    /// Returns true if a mark in front of a word ends a text.
    fn is_split(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else {
            return false;
        };
        let between = &self.message[self.words[before].end..self.words[at].start];
        between.contains([';', '!', '?', '\n', '(', '\u{2014}', '\u{2013}'])
            || between.contains(", ")
            // Not the point of "Mr. Jones" and "prof. jones".
            || between.contains(". ") && {
                let next = &self.message[self.words[at].start..];
                let is_lower = next.starts_with(char::is_lowercase);
                self.words[before].folded.chars().count() > if is_lower { 4 } else { 3 }
            }
    }

    /// Returns the place of the first phrase in front of an old text, the longest of several.
    fn first_instead(&self) -> Option<(usize, usize)> {
        (0..self.words.len()).find_map(|at| {
            let phrases = self.lexicon.instead_of.iter();
            let behind = phrases
                .filter_map(|phrase| stands_exactly_at(&self.words, at, phrase))
                .max();
            behind.map(|behind| (at, behind))
        })
    }

    /// Returns the place in the label of a word of the message.
    fn in_label(&self, at: usize) -> Option<usize> {
        let word = &self.words[at].folded;
        self.position(word)
    }

    fn position(&self, word: &str) -> Option<usize> {
        let alike = |other: &Word| likeness(word, &other.folded, self.lexicon.language);
        let is_named = |word: &str| is_content(word, self.lexicon) || is_number(word);
        is_named(word)
            .then(|| {
                self.labels
                    .iter()
                    .enumerate()
                    .filter(|(_, other)| alike(other) != Likeness::Different)
                    .max_by_key(|(_, other)| alike(other))
                    .map(|(at, _)| at)
            })
            .flatten()
    }

    fn says_something_new(&self, text: &str) -> bool {
        words(text).iter().any(|word| {
            (is_content(&word.folded, self.lexicon) || is_number(&word.folded))
                && !self.labels.iter().any(|known| known.folded == word.folded)
        })
    }

    /// Returns a text as the whole new one, and in the place of the words that it is for: those that
    /// the message names in front of it, or that it shares.
    fn placed(&self, text: &str, whole: bool) -> Vec<String> {
        if whole || self.is_whole(text) {
            return vec![text.to_owned()];
        }
        let own = words(text);
        let mut placed = Vec::new();
        if own.len() <= REPLACING_WORDS_MAX {
            placed.extend(self.aligned(text, &own));
            if self.is_time(&own) {
                placed.push(self.with_time(text));
            } else if own.len() > 1 && self.is_addition(&own[0].folded) {
                // "In colour" says more of the entity.
                placed.push(format!("{} {text}", self.label.trim_end()));
            }
            placed.extend(self.in_place_of_named(text));
            placed.extend(self.in_place_of_mentioned(text));
            placed.extend(self.in_place_of_last(text));
        }
        if self.mentioned.is_empty() && self.labels.len() == 1 {
            // "Make it two pounds", of flour.
            placed.push(format!("{text} {}", self.label));
        }
        match self.names_all() && !self.is_time(&own) {
            true => placed.insert(0, text.to_owned()),
            false => placed.push(text.to_owned()),
        }
        placed
    }

    /// Returns true for a small word that is no article.
    fn is_addition(&self, word: &str) -> bool {
        !is_content(word, self.lexicon) && !is_number(word) && !self.lexicon.pronouns.has(word)
    }

    /// Returns the label with the part that shares words with a text replaced by it: "30 kg" in
    /// "Order 25 kg flour".
    fn aligned(&self, text: &str, own: &[Word]) -> Option<String> {
        let shared: Vec<(usize, usize)> = own
            .iter()
            .enumerate()
            .filter_map(|(at, word)| Some((at, self.position(&word.folded)?)))
            .collect();
        let (first, last) = (shared.first()?, shared.last()?);
        let from = first.1.checked_sub(first.0)?;
        let to = last.1 + (own.len() - last.0);
        if first.1 > last.1 || to > self.labels.len() {
            return None;
        }
        // The order's verb is no part of what is replaced: "a chocolate cake" in "Order the cake".
        let from = match (from, to) == (0, self.labels.len()) {
            true => self.with_articles(first.1, text),
            false => from,
        };
        (from > 0 || to < self.labels.len()).then(|| self.replaced(from, to, text))
    }

    /// Returns the label with the words replaced that the message names right in front of a text:
    /// "change father to mother".
    fn in_place_of_named(&self, text: &str) -> Option<String> {
        let begin = self.message.find(text)?;
        let end = self.words.iter().position(|word| word.start >= begin)?;
        let last = (0..end).rev().take(BEFORE_TEXT_WORDS_MAX + 1);
        let last = last.into_iter().find(|at| self.in_label(*at).is_some())?;
        let run = (0..=last).rev();
        // The verb of the order may be one of the label as well.
        let named: Vec<usize> = run
            .filter(|at| *at > 0)
            .map_while(|at| self.in_label(at))
            .collect();
        let (from, to) = (*named.iter().min()?, *named.iter().max()?);
        let content = |word: &&Word| is_content(&word.folded, self.lexicon);
        let others = self.labels[..from].iter().chain(&self.labels[to + 1..]);
        (others.filter(content).count() > 0)
            .then(|| self.replaced(self.with_articles(from, text), to + 1, text))
    }

    /// Returns the label with the words replaced that the message names, if they are a part of it.
    fn in_place_of_mentioned(&self, text: &str) -> Option<String> {
        let begin = self.message.find(text)?;
        let before: Vec<usize> = (0..self.words.len())
            .filter(|at| self.words[*at].end <= begin)
            .filter_map(|at| self.in_label(at))
            .collect();
        let named = match before.is_empty() {
            true => (0..self.words.len())
                .filter(|at| self.words[*at].start >= begin + text.len())
                .filter_map(|at| self.in_label(at))
                .collect(),
            false => before,
        };
        let (from, to) = (*named.iter().min()?, *named.iter().max()?);
        let content = |word: &&Word| is_content(&word.folded, self.lexicon);
        let others = self.labels[..from].iter().chain(&self.labels[to + 1..]);
        (others.filter(content).count() > 0)
            .then(|| self.replaced(self.with_articles(from, text), to + 1, text))
    }

    /// Returns the first of the articles and prepositions in front of a word of the label, if a text
    /// has some of its own.
    fn with_articles(&self, mut from: usize, text: &str) -> usize {
        let own = words(text);
        let is_small =
            |word: &Word| !is_content(&word.folded, self.lexicon) && !is_number(&word.folded);
        if own.len() > 1 && own.first().is_some_and(is_small) {
            while from > 0 && is_small(&self.labels[from - 1]) {
                from -= 1;
            }
        }
        from
    }

    /// Returns the label with its last word replaced: "change it to Milan" for "Fly to Rome".
    fn in_place_of_last(&self, text: &str) -> Option<String> {
        let content = |word: &Word| is_content(&word.folded, self.lexicon);
        let last = self.labels.iter().rposition(content)?;
        let named = (0..self.words.len()).any(|at| self.in_label(at).is_some());
        (!named && last > 0).then(|| self.replaced(self.with_articles(last, text), last + 1, text))
    }

    /// Returns the label with a time in the place of its own, or behind it.
    fn with_time(&self, text: &str) -> String {
        let is_when = |word: &Word| self.lexicon.when.has(&word.folded);
        let from = self.labels.iter().position(is_when);
        let to = self.labels.iter().rposition(is_when);
        match (from, to) {
            (Some(from), Some(to)) => self.replaced(from, to + 1, text),
            _ => format!("{} {text}", self.label.trim_end()),
        }
    }

    /// Returns the label with the words from one place to another replaced. Words of the text that
    /// stand beside them anyway are not repeated: "Uncle Max" in the place of "Pete" of "Uncle Pete".
    fn replaced(&self, from: usize, to: usize, text: &str) -> String {
        let own = words(text);
        let folded = |words: &[Word]| {
            words
                .iter()
                .map(|word| word.folded.clone())
                .collect::<Vec<_>>()
        };
        let most = from.min(own.len());
        let before = (1..=most)
            .rev()
            .find(|&count| folded(&own[..count]) == folded(&self.labels[from - count..from]));
        let most = own.len().min(self.labels.len().saturating_sub(to));
        let behind = (1..=most).rev().find(|&count| {
            folded(&own[own.len() - count..]) == folded(&self.labels[to..to + count])
        });
        let (from, to) = (from - before.unwrap_or(0), to + behind.unwrap_or(0));
        let start = self
            .labels
            .get(from)
            .map_or(self.label.len(), |word| word.start);
        let end = to
            .checked_sub(1)
            .and_then(|last| self.labels.get(last))
            .map_or(start, |word| word.end);
        format!(
            "{}{text}{}",
            &self.label[..start],
            &self.label[end.max(start)..]
        )
    }

    fn is_time(&self, own: &[Word]) -> bool {
        let when = own.iter().any(|word| self.lexicon.when.has(&word.folded));
        when && own.iter().all(|word| {
            self.lexicon.when.has(&word.folded)
                || !is_content(&word.folded, self.lexicon)
                || word.folded.starts_with(|c: char| c.is_ascii_digit())
        })
    }

    /// Returns true if a text begins or ends like a whole entry: with the verb of the old one.
    fn is_whole(&self, text: &str) -> bool {
        let own = words(text);
        let same = |a: Option<&Word>, b: Option<&Word>| match (a, b) {
            (Some(a), Some(b)) => {
                own.len() > 1
                    && self.labels.len() > 1
                    && likeness(&a.folded, &b.folded, self.lexicon.language) >= Likeness::Form
            }
            _ => false,
        };
        let is_verb = |word: Option<&Word>| {
            own.len() > 1
                && word.is_some_and(|word| is_infinitive(&word.folded, self.lexicon.language))
        };
        same(own.first(), self.labels.first())
            || is_verb(own.first())
            || is_verb(own.last()) && self.lexicon.language == Language::German
    }

    /// Returns true if the message names all words of the label, or none of them.
    fn names_all(&self) -> bool {
        let named: Vec<usize> = (0..self.words.len())
            .filter(|at| self.mentioned.contains(&self.words[*at].start))
            .filter_map(|at| self.in_label(at))
            .collect();
        let content = self
            .labels
            .iter()
            .enumerate()
            .filter(|(_, word)| is_content(&word.folded, self.lexicon));
        named.is_empty() || content.into_iter().all(|(at, _)| named.contains(&at))
    }
}
