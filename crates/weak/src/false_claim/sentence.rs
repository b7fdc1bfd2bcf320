//! The sentences of a text, without what it only shows: code, quotations, tables and letters.

/// Most characters of a quotation; a longer one is an unpaired mark.
const QUOTATION_CHARS_MAX: usize = 600;

/// Most words of a salutation.
const SALUTATION_WORDS_MAX: usize = 5;

/// The word that stands for a quotation.
pub(super) const QUOTED: &str = "_";

/// The word that stands for a comma, a dash or a bracket.
pub(super) const COMMA: &str = ",";

/// A sentence as words in lower case.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sentence {
    pub(super) words: Vec<String>,
    /// The mark behind it. `None`: it ends with its line.
    pub(super) end: Option<char>,
    /// True for an item of a list and a heading.
    pub(super) is_item: bool,
}

impl Sentence {
    pub(super) fn is_question(&self) -> bool {
        self.end == Some('?')
    }
}

/// Returns the sentences of a text.
pub(super) fn sentences(text: &str) -> Vec<Sentence> {
    let mut sentences = Vec::new();
    let shown = without_quotations(&without_code(text));
    let mut is_first = true;
    for line in shown.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line.starts_with(['>', '|']) {
            continue;
        }
        // A salutation begins a letter, which is somebody else's words to the end. The first line
        // may greet the person instead.
        if !is_first && line.ends_with(',') && words(line).len() <= SALUTATION_WORDS_MAX {
            break;
        }
        is_first = false;
        let (is_item, line) = match item(line) {
            Some(rest) => (true, rest),
            None => (line.starts_with('#'), line),
        };
        split(line, is_item, &mut sentences);
    }
    sentences
}

/// Returns true if a text has a block of code.
pub(super) fn has_code(text: &str) -> bool {
    text.lines().any(is_fence)
}

fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

fn without_code(text: &str) -> String {
    let mut in_code = false;
    let mut kept = String::new();
    for line in text.lines() {
        if is_fence(line) {
            in_code = !in_code;
        } else if !in_code {
            kept.push_str(line);
        }
        kept.push('\n');
    }
    kept.replace(['\u{2019}', '\u{00b4}'], "'")
}

/// Replaces each quotation by a word.
fn without_quotations(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut kept = String::new();
    let mut at = 0;
    while at < chars.len() {
        let before = at.checked_sub(1).map(|before| chars[before]);
        if let Some(end) = quotation_end(&chars, at, before) {
            kept.push_str(" _ ");
            at = end + 1;
        } else {
            kept.push(chars[at]);
            at += 1;
        }
    }
    kept
}

/// Returns where a quotation that begins here ends.
fn quotation_end(chars: &[char], at: usize, before: Option<char>) -> Option<usize> {
    let closing: &[char] = match chars[at] {
        '"' => &['"'],
        '`' => &['`'],
        '\u{201c}' => &['\u{201d}'],
        '\u{201e}' => &['\u{201c}', '\u{201d}', '"'],
        '\u{ab}' => &['\u{bb}'],
        '\u{bb}' => &['\u{ab}'],
        '\u{201a}' => &['\u{2018}', '\''],
        // A closing single mark is also an apostrophe.
        '\u{2018}' => &['\''],
        '\'' if before.is_none_or(|before| !before.is_alphanumeric()) => &['\''],
        _ => return None,
    };
    let is_single = closing.contains(&'\'');
    let behind = chars.iter().enumerate().skip(at + 1);
    behind
        .take(QUOTATION_CHARS_MAX)
        .find(|(end, mark)| {
            let is_inside = chars
                .get(end + 1)
                .is_some_and(|next| next.is_alphanumeric());
            closing.contains(mark) && !(is_single && is_inside)
        })
        .map(|(end, _)| end)
}

/// Returns the text of an item of a list.
fn item(line: &str) -> Option<&str> {
    if let Some(rest) = line.strip_prefix(['-', '*', '+', '\u{2022}'])
        && rest.starts_with([' ', '\t'])
    {
        return Some(rest.trim_start());
    }
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == line.len() {
        return None;
    }
    let rest = rest.strip_prefix(['.', ')'])?;
    rest.starts_with(' ').then(|| rest.trim_start())
}

fn split(line: &str, is_item: bool, sentences: &mut Vec<Sentence>) {
    let mut add = |part: &str, end: Option<char>| {
        let words = words(part);
        if words.iter().any(|word| word != COMMA) {
            sentences.push(Sentence {
                words,
                end,
                is_item,
            });
        }
    };
    let mut start = 0;
    let mut chars = line.char_indices().peekable();
    while let Some((at, mark)) = chars.next() {
        let ends = match mark {
            '!' | '?' | ';' | '\u{2026}' => true,
            // Not inside of a number or an address.
            '.' | ':' => chars
                .peek()
                .is_none_or(|(_, next)| !next.is_alphanumeric() && *next != '/'),
            _ => false,
        };
        if ends {
            add(&line[start..at], Some(mark));
            start = at + mark.len_utf8();
        }
    }
    add(&line[start..], None);
}

/// Returns the words of a part of a line.
pub(super) fn words(part: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let finish = |word: &mut String, words: &mut Vec<String>| {
        let trimmed = word.trim_matches(['\'', '-']);
        if !trimmed.is_empty() {
            words.push(trimmed.to_owned());
        }
        word.clear();
    };
    for c in part.to_lowercase().chars() {
        if c.is_alphanumeric() || matches!(c, '\'' | '-' | '_') {
            word.push(c);
            continue;
        }
        finish(&mut word, &mut words);
        if matches!(c, ',' | '(' | ')' | '\u{2013}' | '\u{2014}')
            && words.last().is_some_and(|last| last != COMMA)
        {
            words.push(COMMA.to_owned());
        }
    }
    finish(&mut word, &mut words);
    words
}
