//! The pieces of a text in which a word of a question may stand.

use std::ops::Range;

use aho_corasick::AhoCorasick;

/// Finds pieces of a text, each between white space, that may hold one of some words; the rest of
/// the text need not be read.
#[derive(Debug)]
pub(super) struct Finder(Option<AhoCorasick>);

impl Finder {
    /// Returns one for words of which each, as far as it is ASCII, begins with one of `beginnings`.
    pub(super) fn of(beginnings: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut beginnings: Vec<Vec<u8>> = beginnings.into_iter().collect();
        beginnings.sort_unstable();
        beginnings.dedup();
        Self(
            AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .build(beginnings)
                .ok(),
        )
    }

    /// Calls `take` with each piece, in the order of the text. A piece with anything but ASCII may
    /// hold a word in any spelling.
    pub(super) fn each_piece(&self, text: &str, mut take: impl FnMut(Range<usize>)) {
        let Some(words) = &self.0 else {
            return take(0..text.len());
        };
        let bytes = text.as_bytes();
        let other = |from: usize| {
            let rest = bytes.get(from..)?;
            rest.iter()
                .position(|byte| !byte.is_ascii())
                .map(|at| from + at)
        };
        let mut hits = words.find_iter(text).map(|hit| hit.start()).peekable();
        let (mut done, mut foreign) = (0, other(0));
        loop {
            while hits.next_if(|hit| *hit < done).is_some() {}
            if foreign.is_some_and(|at| at < done) {
                foreign = other(done);
            }
            let next = hits.peek().copied().into_iter().chain(foreign).min();
            let Some(next) = next else { return };
            let before = bytes.get(done..next).unwrap_or_default();
            let start = before
                .iter()
                .rposition(u8::is_ascii_whitespace)
                .map_or(done, |at| done + at + 1);
            let behind = bytes.get(next..).unwrap_or_default();
            let end = behind
                .iter()
                .position(u8::is_ascii_whitespace)
                .map_or(bytes.len(), |at| next + at);
            take(start..end);
            done = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces<'a>(beginnings: &[&str], text: &'a str) -> Vec<&'a str> {
        let mut found = Vec::new();
        let finder = Finder::of(beginnings.iter().map(|word| word.as_bytes().to_vec()));
        finder.each_piece(text, |piece| found.push(text.get(piece).unwrap()));
        found
    }

    #[test]
    fn only_what_may_hold_a_word_is_read() {
        let text = "The Cats, (category) of a\ttomcat/dog; caté nothing — 绿茶 end";
        assert_eq!(
            pieces(&["cat"], text),
            ["Cats,", "(category)", "tomcat/dog;", "caté", "—", "绿茶"]
        );
        assert_eq!(
            pieces(&["dog", "do"], text),
            ["tomcat/dog;", "caté", "—", "绿茶"]
        );
        assert_eq!(pieces(&["the"], "the"), ["the"]);
        assert_eq!(pieces(&[], "the é"), ["é"]);
        assert_eq!(pieces(&["a"], ""), [""; 0]);
    }
}
