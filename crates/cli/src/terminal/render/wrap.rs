//! Word wrapping of styled text.
//!
//! termimad also breaks lines where only the style changes, as before the full stop after a bold
//! word.

use std::sync::Arc;

use termimad::StrFit;

/// Text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) words: String,
    pub(super) bold: bool,
    pub(super) italic: bool,
    pub(super) code: bool,
    pub(super) strikeout: bool,
    /// The address that a terminal opens for it (OSC 8).
    pub(super) opens: Option<Arc<str>>,
}

impl Span {
    /// Creates text without a style.
    pub(super) fn plain(words: String) -> Self {
        Self {
            words,
            bold: false,
            italic: false,
            code: false,
            strikeout: false,
            opens: None,
        }
    }

    fn with(&self, words: &str) -> Self {
        Self {
            words: words.to_owned(),
            ..self.clone()
        }
    }
}

/// Wraps a line at blanks, and between characters of scripts without blanks. A word that does not
/// fit, such as a URL, stays whole in a line of its own: the terminal wraps it, and it can be
/// copied in one piece.
pub(super) fn wrapped(line: &[Span], columns: usize) -> Vec<Vec<Span>> {
    let mut paper = Paper {
        columns: columns.max(1),
        lines: vec![Vec::new()],
        used: 0,
    };
    let (mut blank, mut word) = (Vec::new(), Vec::new());
    for span in line {
        for run in span.words.split_inclusive(' ') {
            let letters = run.trim_end_matches(' ');
            for part in parts(letters) {
                // A line may be cut before a wide character, but not before closing punctuation.
                if part.starts_with(is_wide) && !part.starts_with(CLOSING) {
                    paper.word(&mut blank, &mut word);
                }
                word.push(span.with(part));
            }
            if letters.len() < run.len() {
                paper.word(&mut blank, &mut word);
                blank.push(span.with(&run[letters.len()..]));
            }
        }
    }
    paper.word(&mut blank, &mut word);
    paper.lines
}

/// Punctuation that may not begin a line.
const CLOSING: &[char] = &[
    '。', '，', '、', '！', '？', '：', '；', '」', '』', '）', '】', '》', 'ー', '々',
];

/// Splits letters before each character of a script without blanks, and after a run of them.
fn parts(letters: &str) -> impl Iterator<Item = &str> {
    let mut rest = letters;
    std::iter::from_fn(move || {
        let mut characters = rest.char_indices();
        let (_, first) = characters.next()?;
        let end = characters
            .find(|(_, c)| is_wide(*c) || (is_wide(first) && !joins(*c)))
            .map_or(rest.len(), |(at, _)| at);
        let (part, after) = rest.split_at(end);
        rest = after;
        Some(part)
    })
}

/// Returns true for Chinese, Japanese and Korean characters, between which lines may be cut.
fn is_wide(c: char) -> bool {
    // Radicals to Yi, Hangul syllables, compatibility ideographs, full-width forms, and the
    // ideographs beyond the basic plane.
    matches!(c, '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}')
}

/// Returns true if the character combines with the one before it.
fn joins(c: char) -> bool {
    StrFit::count_fitting(c.encode_utf8(&mut [0; 4]), 1).1 == 0
}

struct Paper {
    columns: usize,
    lines: Vec<Vec<Span>>,
    /// Columns used in the last line.
    used: usize,
}

impl Paper {
    /// Appends a word and the blanks before it, which are dropped at the start of a line.
    fn word(&mut self, blank: &mut Vec<Span>, word: &mut Vec<Span>) {
        if word.is_empty() {
            return;
        }
        if self.used > 0 && self.used + width(blank) + width(word) > self.columns {
            self.lines.push(Vec::new());
            self.used = 0;
        }
        for span in blank.drain(..) {
            if self.used > 0 {
                self.push(span);
            }
        }
        for span in word.drain(..) {
            self.push(span);
        }
    }

    fn push(&mut self, span: Span) {
        // A word wider than the line fills it; the terminal continues the word in the next row.
        self.used = (self.used + width(std::slice::from_ref(&span))).min(self.columns);
        let Some(line) = self.lines.last_mut() else {
            return;
        };
        match line.last_mut() {
            // Without their words, equal spans have the same style.
            Some(last) if last.with("") == span.with("") => last.words.push_str(&span.words),
            _ => line.push(span),
        }
    }
}

/// Returns the width of spans in columns.
pub(super) fn width(spans: &[Span]) -> usize {
    spans
        .iter()
        .map(|span| StrFit::count_fitting(&span.words, usize::MAX).1)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(words: &str, bold: bool) -> Span {
        Span {
            bold,
            ..Span::plain(words.to_owned())
        }
    }

    #[track_caller]
    fn check(words: &[(&str, bool)], columns: usize, expected: &[&str]) {
        let line: Vec<Span> = words
            .iter()
            .map(|(words, bold)| span(words, *bold))
            .collect();
        let lines: Vec<String> = wrapped(&line, columns)
            .iter()
            .map(|line| line.iter().map(|span| span.words.as_str()).collect())
            .collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn lines_break_at_blanks_and_nowhere_else() {
        check(&[("one two three", false)], 7, &["one two", "three"]);
        check(
            &[("a ", false), ("bold", true), (", and", false)],
            6,
            &["a", "bold,", "and"],
        );
        check(&[("x  ", false), ("  y", true)], 9, &["x    y"]);
        check(&[("", false)], 9, &[""]);
    }

    #[test]
    fn a_word_that_does_not_fit_has_a_line_of_its_own() {
        check(
            &[("see https://example.org and", false)],
            8,
            &["see", "https://example.org", "and"],
        );
        check(&[("abcd", true), ("efgh", false)], 3, &["abcdefgh"]);
    }

    #[test]
    fn scripts_without_blanks_are_cut_anywhere() {
        check(&[("牛奶牛奶", false)], 5, &["牛奶", "牛奶"]);
        check(&[("牛奶", false)], 1, &["牛", "奶"]);
        check(&[("ab牛奶cd", false)], 4, &["ab牛", "奶cd"]);
        check(&[("牛奶。牛", false)], 4, &["牛", "奶。", "牛"]);
        check(
            &[("か\u{3099}か\u{3099}", false)],
            2,
            &["か\u{3099}", "か\u{3099}"],
        );
    }
}
