//! A filter in front of the tokenizer: the pieces of a text that may match a query.

use std::ops::Range;

use aho_corasick::AhoCorasick;

/// A search for the pieces of a text, each between white space, that may hold one of some words.
/// The rest of the text need not be divided into tokens, which is slow.
#[derive(Debug)]
pub(super) struct Prefilter(Option<AhoCorasick>);

impl Prefilter {
    /// Returns a filter for words that, if they are ASCII, begin with one of `prefixes`.
    pub(super) fn new(prefixes: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut prefixes: Vec<Vec<u8>> = prefixes.into_iter().collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        Self(
            AhoCorasick::builder()
                // Prefixes are in lower case, and the text is not.
                .ascii_case_insensitive(true)
                .build(prefixes)
                .ok(),
        )
    }

    /// Calls `take` with each piece that may match, in the order of the text. A piece with a
    /// character beyond ASCII always may: such a word has more than one spelling.
    pub(super) fn each_piece(&self, text: &str, mut take: impl FnMut(Range<usize>)) {
        // Without an automaton, which is only too large for an absurd query, all is searched.
        let Some(prefixes) = &self.0 else {
            return take(0..text.len());
        };
        let bytes = text.as_bytes();
        let next_foreign = |from: usize| {
            let rest = bytes.get(from..)?;
            rest.iter()
                .position(|byte| !byte.is_ascii())
                .map(|at| from + at)
        };
        let mut hits = prefixes.find_iter(text).map(|hit| hit.start()).peekable();
        let (mut done, mut foreign) = (0, next_foreign(0));
        loop {
            // Matches inside the last piece were taken with it.
            while hits.next_if(|hit| *hit < done).is_some() {}
            if foreign.is_some_and(|at| at < done) {
                foreign = next_foreign(done);
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

    fn pieces<'a>(prefixes: &[&str], text: &'a str) -> Vec<&'a str> {
        let mut found = Vec::new();
        let filter = Prefilter::new(prefixes.iter().map(|word| word.as_bytes().to_vec()));
        filter.each_piece(text, |piece| found.push(text.get(piece).unwrap()));
        found
    }

    #[test]
    fn only_pieces_that_may_hold_a_word_are_found() {
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
