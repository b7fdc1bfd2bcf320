//! The excerpt of a text that is shown for a query.

use std::collections::HashSet;

use crate::rank::Query;
use crate::text::on_one_line;

/// A part of a text that fits a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Excerpt {
    /// The part on one line, with an ellipsis where text is left out.
    pub(super) text: String,
    /// Number of different terms of the query in it.
    pub(super) terms: usize,
}

/// Returns the excerpt of at most `chars` characters that holds most terms of a query, or else the
/// beginning of the text.
pub(super) fn excerpt(text: &str, query: &Query, chars: usize) -> Excerpt {
    let line = on_one_line(text);
    let mut matches: Vec<(usize, usize)> = Vec::new();
    query.each_match(&line, |at, term| matches.push((at, term)));
    // In bytes, so never more characters. A quarter is left for the context before the match.
    let reach = chars * 3 / 4;
    let terms_from = |from: usize| {
        let near = matches
            .iter()
            .filter(|(at, _)| (from..from.saturating_add(reach)).contains(at));
        near.map(|(_, term)| term).collect::<HashSet<_>>().len()
    };
    let (mut terms, mut start) = (0, 0);
    for (at, _) in &matches {
        let found = terms_from(*at);
        if found > terms {
            (terms, start) = (found, *at);
        }
    }
    Excerpt {
        text: cut(&line, start, chars),
        terms,
    }
}

/// Returns at most `chars` characters of a line, from a little before the byte `at` on. Words at
/// both ends are left whole, unless the line has no space near by.
fn cut(line: &str, at: usize, chars: usize) -> String {
    if line.chars().count() <= chars {
        return line.to_owned();
    }
    // Two characters are left for the ellipses.
    let shown = chars.saturating_sub(2);
    let offsets: Vec<usize> = line.char_indices().map(|(at, _)| at).collect();
    let at = offsets.partition_point(|offset| *offset < at);
    let from = at
        .saturating_sub(chars / 6)
        .min(offsets.len().saturating_sub(shown));
    let until = (from + shown).min(offsets.len());
    let byte = |char: usize| offsets.get(char).copied().unwrap_or(line.len());
    let (mut first, mut last) = (byte(from), byte(until));
    let piece = line.get(first..last).unwrap_or_default();
    if from > 0
        && let Some(space) = piece.find(' ').filter(|space| *space < piece.len() / 6)
    {
        first += space + 1;
    }
    if until < offsets.len()
        && let Some(space) = piece
            .rfind(' ')
            .filter(|space| *space > piece.len() * 5 / 6)
    {
        last = byte(from) + space;
    }
    let begin = if first > 0 { "…" } else { "" };
    let end = if last < line.len() { "…" } else { "" };
    format!("{begin}{}{end}", line.get(first..last).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, question: &str, chars: usize) -> (String, usize) {
        let Excerpt { text, terms } = excerpt(text, &Query::new(&[(question, 1.0)]), chars);
        (text, terms)
    }

    #[test]
    fn a_match_is_shown_in_its_context() {
        let filler = "and then something else was said that no question is about ".repeat(5);
        let text = format!("{filler}We moved\nto Munich by train. {filler}");
        let (found, words) = shown(&text, "When did they move to Munich?", 80);
        assert!(
            found.contains("moved to Munich by train") && words == 2,
            "{found}"
        );
        assert!(
            found.starts_with('…') && found.ends_with('…') && found.chars().count() <= 80,
            "{found}"
        );
        assert_eq!(shown("short", "Munich", 80), ("short".to_owned(), 0));
    }

    #[test]
    fn characters_are_never_cut() {
        let text = "我很喜欢喝绿茶".repeat(50) + "慕尼黑";
        let (found, words) = shown(&text, "慕尼黑", 20);
        assert!(
            found.ends_with("慕尼黑") && words > 0 && found.chars().count() <= 20,
            "{found}"
        );
        for chars in 0..5 {
            assert!(shown(&text, "慕尼黑", chars).0.chars().count() <= chars.max(2));
        }
    }
}
