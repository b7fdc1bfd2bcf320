//! The texts that a message may have for a new entity: its own words, between two places where a
//! text can begin and end.

use adjutant_core::Language;

use super::clauses::correction;
use crate::lexicon::{Lexicon, is_content};
use crate::words::{
    Likeness, Word, is_infinitive, likeness, stands_at, stands_exactly_at, without_zu, words,
};

/// Most characters of one text.
const TEXT_CHARS_MAX: usize = 300;
/// Most limits that one text spans: more are several entries, or a story.
const SPANNED_MAX: usize = 5;
/// Most words in front of an order that belong to the text behind it: "on Monday I have to …".
const IN_FRONT_WORDS_MAX: usize = 5;
/// Most words of each text in a row of several.
const ROW_WORDS_MAX: usize = 4;
/// Most texts that are offered.
const TEXTS_MAX: usize = 120;

/// Returns the texts of a message that a new entity may get, without words of the order and names
/// of the list. The longest from each beginning comes first.
pub(super) fn candidates(message: &str, lexicon: &'static Lexicon) -> Vec<String> {
    let words = words(message);
    let mut texts = Texts {
        message,
        words: &words,
        lexicon,
        found: Vec::new(),
    };
    let correction =
        correction(message, &words, lexicon).filter(|(_, behind)| *behind < words.len());
    match correction {
        Some((at, behind)) => texts.add_corrected(at, behind),
        None => texts.add_all(0),
    }
    for text in quoted(message) {
        texts.push(&text);
    }
    texts.found.truncate(TEXTS_MAX);
    texts.found
}

struct Texts<'a> {
    message: &'a str,
    words: &'a [Word],
    lexicon: &'static Lexicon,
    found: Vec<String>,
}

impl<'a> Texts<'a> {
    fn push(&mut self, text: &str) {
        let text = tidy(text);
        let fits = !text.is_empty() && text.chars().count() <= TEXT_CHARS_MAX;
        if fits && !self.found.contains(&text) {
            self.found.push(text);
        }
    }

    /// Returns the message between two words.
    fn between(&self, begin: usize, end: usize) -> &'a str {
        let last = end.checked_sub(1).and_then(|last| self.words.get(last));
        let (Some(first), Some(last)) = (self.words.get(begin), last) else {
            return "";
        };
        if begin >= end {
            return "";
        }
        // With the marks around a quotation that ends the text.
        let closing: usize = self.message[last.end..]
            .chars()
            .take_while(|c| matches!(c, '\'' | '\u{201c}' | '\u{201d}' | '\u{2019}'))
            .map(char::len_utf8)
            .sum();
        let inside = &self.message[first.start..last.end];
        let opened = inside.contains(['\'', '\u{201c}', '\u{201e}', '\u{2018}']);
        &self.message[first.start..last.end + if opened { closing } else { 0 }]
    }

    /// Adds a German text that ends with an infinitive and its "zu" without that: "einen Adapter zu
    /// kaufen", "Mama anzurufen".
    fn push_infinitive(&mut self, begin: usize, end: usize) {
        if self.lexicon.language == Language::German
            && let Some(verb) = without_zu(self.between(end - 1, end))
        {
            let text = format!("{} {verb}", self.between(begin, end - 1));
            self.push(&text);
        }
        let Some(zu) = end.checked_sub(2).filter(|zu| *zu > begin) else {
            return;
        };
        if self.lexicon.language == Language::German
            && self.words[zu].folded == "zu"
            && is_infinitive(&self.words[end - 1].folded, Language::German)
        {
            let text = format!("{} {}", self.between(begin, zu), self.between(end - 1, end));
            self.push(&text);
        }
    }

    /// Adds the texts behind a word.
    fn add_all(&mut self, from: usize) {
        let mut parts = parts(self.message, self.words, from, self.lexicon);
        self.separate(&mut parts);
        for (first, part) in parts.iter().enumerate() {
            let Some(begin) = begin(self.words, part, self.lexicon) else {
                continue;
            };
            for last in (first..parts.len().min(first + SPANNED_MAX)).rev() {
                // Ends of sentences are never inside of a text.
                if parts[first..last].iter().any(|part| part.ends_text) {
                    continue;
                }
                let Some(end) = end(self.words, begin, parts[last].end, self.lexicon) else {
                    continue;
                };
                // "Write the report" may ask for a task of writing.
                let verb = begin.checked_sub(1).filter(|verb| *verb >= part.start);
                if let Some(verb) = verb
                    && self.lexicon.also_tasks.has(&self.words[verb].folded)
                {
                    self.push(self.between(verb, end));
                }
                self.push_infinitive(begin, end);
                self.push(self.between(begin, end));
                if first == last {
                    self.add_behind_orders(begin, end);
                    self.add_behind_time(begin, end);
                }
            }
        }
    }

    /// Ends each part of a row as a text of its own: "tea, honey and yoghurt", "appeler papa et écrire
    /// à Nadia". Of two nouns joined by "and" nobody knows whether they are one thing.
    fn separate(&self, parts: &mut [Part]) {
        let texts: Vec<Option<(usize, usize)>> = parts
            .iter()
            .map(|part| {
                let begin = begin(self.words, part, self.lexicon)?;
                Some((begin, end(self.words, begin, part.end, self.lexicon)?))
            })
            .collect();
        let mut from = 0;
        while from < parts.len() {
            let last = (from..parts.len()).find(|at| parts[*at].ends_text);
            let to = last.map_or(parts.len(), |last| last + 1);
            let row: Vec<(usize, usize)> = texts[from..to].iter().copied().flatten().collect();
            if row.len() == to - from && self.is_row(&row) {
                parts[from..to]
                    .iter_mut()
                    .for_each(|part| part.ends_text = true);
            }
            from = to;
        }
    }

    /// Returns true for three or more short texts, or two that both have a verb.
    fn is_row(&self, row: &[(usize, usize)]) -> bool {
        let has_verb = |at: usize| is_infinitive(&self.words[at].folded, self.lexicon.language);
        let verb = |(begin, end): &(usize, usize)| match self.lexicon.language {
            Language::German => has_verb(end - 1),
            _ => has_verb(*begin),
        };
        let is_item = |(begin, end): &(usize, usize)| {
            let words = &self.words[*begin..*end];
            words.len() <= ROW_WORDS_MAX
                && words
                    .iter()
                    .any(|word| is_content(&word.folded, self.lexicon))
                && !words.iter().any(|word| {
                    self.lexicon.pronouns.has(&word.folded) || self.lexicon.when.has(&word.folded)
                })
        };
        match row {
            [] | [_] => false,
            [_, _] => row.iter().all(verb),
            [..] => row.iter().all(is_item),
        }
    }

    /// Adds the texts behind orders inside of a part: "on Monday I have to ring Ann" has "ring
    /// Ann" and "on Monday ring Ann".
    fn add_behind_orders(&mut self, begin: usize, end: usize) {
        for at in begin + 1..end {
            let order = self
                .lexicon
                .before_text
                .iter()
                .filter(|phrase| phrase.len() > 1)
                .filter_map(|phrase| stands_exactly_at(self.words, at, phrase))
                .filter(|behind| *behind < end)
                .max();
            let Some(behind) = order else { continue };
            let text = self.between(behind, end);
            if at - begin <= IN_FRONT_WORDS_MAX {
                self.push(&format!("{} {text}", self.between(begin, at)));
            }
            self.push(text);
        }
    }

    /// Adds the texts of an infinitive behind a time: "tomorrow at 6 to water the plants" has
    /// "water the plants tomorrow at 6".
    fn add_behind_time(&mut self, begin: usize, end: usize) {
        let mark = (begin + 1..end.min(begin + IN_FRONT_WORDS_MAX + 1))
            .find(|at| introduces_infinitive(self.words, *at, end, self.lexicon));
        let Some(mark) = mark else { return };
        let is_when = |word: &Word| self.lexicon.when.has(&word.folded);
        let is_small = |word: &Word| {
            is_when(word)
                || !is_content(&word.folded, self.lexicon)
                || word.folded.starts_with(|c: char| c.is_ascii_digit())
        };
        let time = &self.words[begin..mark];
        if time.iter().any(is_when) && time.iter().all(is_small) {
            let (time, text) = (self.between(begin, mark), self.between(mark + 1, end));
            self.push(&format!("{text} {time}"));
            self.push(&format!("{time} {text}"));
            self.push(text);
        }
    }

    /// Adds the texts that a correction leaves. What stands behind it may be a whole text, or the
    /// words that take the place of the last ones: "ring Ann on Monday, no, Tuesday".
    fn add_corrected(&mut self, at: usize, behind: usize) {
        let before = parts(self.message, &self.words[..at], 0, self.lexicon);
        let Some(part) = before.last().copied() else {
            return self.add_all(behind);
        };
        let first = begin(&self.words[..at], &part, self.lexicon).unwrap_or(part.start);
        let after = parts(self.message, self.words, behind, self.lexicon);
        let last = after.first().map_or(behind, |part| part.end);
        let last = end(self.words, behind, last, self.lexicon).unwrap_or(last);
        let new = self.between(behind, last);
        let count = last.saturating_sub(behind);
        // From the word that both have, or else as many words as there are new ones.
        let shared = self.words.get(behind).and_then(|word| {
            (first..at)
                .rev()
                .find(|&old| self.words[old].folded == word.folded)
        });
        let kept = shared.or_else(|| at.checked_sub(count).filter(|kept| *kept > first));
        if let Some(kept) = kept {
            let (front, behind) = (self.between(first, kept), self.between(kept + count, at));
            // "Ring Mrs King, no, Mrs Kaiser" and "Frau König anrufen, nein, Frau Kaiser".
            if kept + count < at {
                self.push(&format!("{front} {new} {behind}"));
            }
            if kept > first {
                self.push(&format!("{front} {new}"));
            }
        }
        self.add_all(behind);
    }
}

/// A run of words between two places where a text may begin or end.
#[derive(Debug, Clone, Copy)]
struct Part {
    start: usize,
    end: usize,
    /// True if no text goes on behind it.
    ends_text: bool,
}

/// Splits words at punctuation and connectors.
fn parts(message: &str, words: &[Word], from: usize, lexicon: &Lexicon) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut start = from;
    let mut at = from;
    let mut push = |start: usize, end: usize, ends_text: bool| {
        if start < end {
            parts.push(Part {
                start,
                end,
                ends_text,
            });
        }
    };
    while at < words.len() {
        let between = match at {
            0 => "",
            _ => &message[words[at - 1].end..words[at].start],
        };
        if at > start && ends_sentence(between, &words[at - 1]) {
            push(start, at, true);
            start = at;
        } else if at > start && (splits(between) || lexicon.connectors.has(&words[at].folded)) {
            push(start, at, false);
            start = at;
        }
        at += 1;
    }
    push(start, words.len(), true);
    parts
}

/// Returns true if what stands behind a word ends a sentence: not the point of "7.3" or "3. May".
fn ends_sentence(between: &str, before: &Word) -> bool {
    let number = before.folded.bytes().all(|byte| byte.is_ascii_digit());
    between.contains(['!', '?', '\n', ';'])
        || between.contains(". ") && !number
        || between.contains(':') && !(number && between.len() == 1)
}

/// Returns true if what stands between two words may end a text.
fn splits(between: &str) -> bool {
    between.contains([',', '(', ')', '\u{2013}', '\u{2014}', '&', '+', '/'])
        || between.contains(" - ")
}

/// Returns the first word of a part's text: behind connectors, the order and politeness.
fn begin(words: &[Word], part: &Part, lexicon: &Lexicon) -> Option<usize> {
    let mut at = part.start;
    while at < part.end {
        let is_when = |at: usize| at < part.end && lexicon.when.has(&words[at].folded);
        // "Next Tuesday" is a time, "next: dishes" an order.
        let phrase = lexicon
            .before_text
            .iter()
            .filter_map(|phrase| stands_at(words, at, phrase))
            .filter(|end| *end <= part.end && !(is_when(at) && is_when(at + 1)))
            .max();
        if let Some(end) = phrase {
            at = end;
        } else if lexicon.connectors.has(&words[at].folded)
            || at == part.start && is_adding_verb(&words[at].folded, lexicon)
            || at > part.start && introduces_infinitive(words, at, part.end, lexicon)
        {
            at += 1;
        } else {
            break;
        }
    }
    (at < part.end).then_some(at)
}

/// Returns true for the word between an order and an infinitive: "remind me to …", "d'acheter".
fn introduces_infinitive(words: &[Word], at: usize, end: usize, lexicon: &Lexicon) -> bool {
    let (marks, any): (&[&str], bool) = match lexicon.language {
        Language::English => (&["to"], true),
        Language::French => (&["de", "d", "a"], false),
        Language::Spanish => (&["de", "a"], false),
        Language::Portuguese => (&["de"], false),
        _ => (&[], false),
    };
    let next = words.get(at + 1).filter(|_| at + 1 < end);
    marks.contains(&words[at].folded.as_str())
        && next.is_some_and(|word| any || is_infinitive(&word.folded, lexicon.language))
}

/// Returns true for a verb of adding, also with a typing error.
fn is_adding_verb(word: &str, lexicon: &Lexicon) -> bool {
    // "Ad", "addd".
    let doubled = |verb: &str| {
        verb.len() == 3
            && word.len() <= 4
            && word.starts_with(&verb[..1])
            && word.bytes().all(|letter| verb.as_bytes().contains(&letter))
    };
    // A noun may be as near to the other forms of a verb: "masking", "making".
    let misspelt = |verb: &str| {
        word.chars().count() >= 4
            && verb.chars().count() >= 4
            && !verb.ends_with("ing")
            && !verb.contains(word)
            && !word.contains(verb)
            && likeness(word, verb, lexicon.language) == Likeness::Near
    };
    lexicon.adding_verbs.has(word)
        || !lexicon.stop_words.has(word)
            && lexicon
                .adding_verbs
                .iter()
                .any(|verb| doubled(verb) || misspelt(verb))
}

/// Returns the place behind a text's last word, in front of politeness.
fn end(words: &[Word], begin: usize, mut end: usize, lexicon: &Lexicon) -> Option<usize> {
    loop {
        let polite = lexicon
            .behind_text
            .iter()
            .filter(|phrase| phrase.len() < end - begin)
            .filter_map(|phrase| {
                let start = end.checked_sub(phrase.len())?;
                (stands_at(words, start, phrase) == Some(end)).then_some(start)
            })
            .min();
        match polite {
            Some(start) => end = start,
            None if end > begin && lexicon.connectors.has(&words[end - 1].folded) => end -= 1,
            None => return (end > begin).then_some(end),
        }
    }
}

/// Returns the texts in quotation marks.
pub(super) fn quoted(message: &str) -> Vec<String> {
    const MARKS: [(char, char); 7] = [
        ('"', '"'),
        ('\u{201c}', '\u{201d}'),
        ('\u{201e}', '\u{201c}'),
        ('\u{201a}', '\u{2018}'),
        ('\u{ab}', '\u{bb}'),
        ('\u{bb}', '\u{ab}'),
        ('\u{2018}', '\u{2019}'),
    ];
    let mut texts = Vec::new();
    let mut rest = message;
    // From left to right: a mark that closes one text opens none.
    while let Some((start, open)) = rest
        .char_indices()
        .find(|(_, c)| MARKS.iter().any(|(open, _)| open == c))
    {
        let inside = &rest[start + open.len_utf8()..];
        let closing = MARKS.iter().filter(|(mark, _)| *mark == open);
        let end = closing
            .filter_map(|(_, close)| Some((inside.find(*close)?, close.len_utf8())))
            .min();
        rest = inside;
        let Some((end, length)) = end else { continue };
        let text = tidy(&inside[..end]);
        if !text.is_empty() && text.chars().count() <= TEXT_CHARS_MAX {
            texts.push(text);
        }
        rest = &inside[end + length..];
    }
    texts.extend(in_apostrophes(message));
    texts
}

/// Returns the texts between apostrophes that stand in front of one word and behind another: those
/// inside of words are none.
fn in_apostrophes(message: &str) -> Vec<String> {
    let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    let mut texts = Vec::new();
    let mut open: Option<usize> = None;
    for (at, _) in message.match_indices('\'') {
        let before = message[..at].chars().next_back();
        let behind = message[at + 1..].chars().next();
        match open {
            None if is_edge(before) && !is_edge(behind) => open = Some(at + 1),
            Some(start) if !is_edge(before) && is_edge(behind) => {
                texts.push(tidy(&message[start..at]));
                open = None;
            }
            None | Some(_) => {}
        }
    }
    texts.retain(|text| text.contains(' '));
    texts
}

/// Returns a text on one line, without characters that a weak model takes for the end of a string.
fn tidy(text: &str) -> String {
    let kept: String = text
        .chars()
        .map(|c| match c {
            '"' | '\\' | '{' | '}' | '[' | ']' => ' ',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect();
    kept.split_whitespace().collect::<Vec<_>>().join(" ")
}
