//! Styled words in lines that fit.
//!
//! termimad breaks a line also where only the style changes, before the full stop behind a bold word.

use termimad::StrFit;

/// Words in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) words: String,
    pub(super) bold: bool,
    pub(super) italic: bool,
    pub(super) code: bool,
    pub(super) strikeout: bool,
}

impl Span {
    fn with(&self, words: &str) -> Self {
        Self { words: words.to_owned(), ..self.clone() }
    }
}

/// Cuts a line at blanks so that every part fits; a word that does not fit is cut inside.
pub(super) fn wrapped(line: &[Span], columns: usize) -> Vec<Vec<Span>> {
    let mut paper = Paper { columns: columns.max(1), lines: vec![Vec::new()], used: 0 };
    let (mut blank, mut word) = (Vec::new(), Vec::new());
    for span in line {
        for run in span.words.split_inclusive(' ') {
            let letters = run.trim_end_matches(' ');
            if !letters.is_empty() {
                word.push(span.with(letters));
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

struct Paper {
    columns: usize,
    lines: Vec<Vec<Span>>,
    /// Columns of the last line.
    used: usize,
}

impl Paper {
    /// Puts a word and the blanks before it, which are left out where a line begins.
    fn word(&mut self, blank: &mut Vec<Span>, word: &mut Vec<Span>) {
        if word.is_empty() {
            return;
        }
        if self.used > 0 && self.used + width(blank) + width(word) > self.columns {
            self.turn();
        }
        for span in blank.drain(..) {
            if self.used > 0 {
                self.put(span);
            }
        }
        for span in word.drain(..) {
            let mut rest = span.words.as_str();
            while !rest.is_empty() {
                let (mut bytes, _) = StrFit::count_fitting(rest, self.columns - self.used);
                if bytes == 0 && self.used > 0 {
                    self.turn();
                    continue;
                }
                if bytes == 0 {
                    // One character is wider than the page.
                    bytes = rest.chars().next().map_or(rest.len(), char::len_utf8);
                }
                self.put(span.with(&rest[..bytes]));
                rest = &rest[bytes..];
            }
        }
    }

    fn put(&mut self, span: Span) {
        self.used = (self.used + width(std::slice::from_ref(&span))).min(self.columns);
        let Some(line) = self.lines.last_mut() else { return };
        match line.last_mut() {
            Some(last) if last.with("") == span.with("") => last.words.push_str(&span.words),
            _ => line.push(span),
        }
    }

    fn turn(&mut self) {
        self.lines.push(Vec::new());
        self.used = 0;
    }
}

fn width(spans: &[Span]) -> usize {
    spans.iter().map(|span| StrFit::count_fitting(&span.words, usize::MAX).1).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(words: &str, bold: bool) -> Span {
        Span { words: words.to_owned(), bold, italic: false, code: false, strikeout: false }
    }

    #[track_caller]
    fn check(words: &[(&str, bool)], columns: usize, expected: &[&str]) {
        let line: Vec<Span> = words.iter().map(|(words, bold)| span(words, *bold)).collect();
        let lines: Vec<String> = wrapped(&line, columns)
            .iter()
            .map(|line| line.iter().map(|span| span.words.as_str()).collect())
            .collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn lines_break_at_blanks_and_nowhere_else() {
        check(&[("one two three", false)], 7, &["one two", "three"]);
        check(&[("a ", false), ("bold", true), (", and", false)], 6, &["a", "bold,", "and"]);
        check(&[("x  ", false), ("  y", true)], 9, &["x    y"]);
        check(&[("", false)], 9, &[""]);
    }

    #[test]
    fn a_word_that_does_not_fit_is_cut() {
        check(&[("see https://example.org", false)], 8, &["see", "https://", "example.", "org"]);
        check(&[("牛奶牛奶", false)], 5, &["牛奶", "牛奶"]);
        check(&[("牛奶", false)], 1, &["牛", "奶"]);
        check(&[("abcd", true), ("efgh", false)], 3, &["abc", "def", "gh"]);
    }
}
