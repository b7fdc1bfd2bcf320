//! The part of a text that is shown for a question.

use std::collections::HashSet;

use crate::rank::Query;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Excerpt {
    /// On one line; an ellipsis stands for what was left out.
    pub(super) text: String,
    /// Number of words of the question in it, each counted once.
    pub(super) words: usize,
}

/// Returns the part of a text, so many characters long at most, that holds most words of a
/// question, or else its beginning.
pub(super) fn excerpt(text: &str, query: &Query, chars: usize) -> Excerpt {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut places: Vec<(usize, usize)> = Vec::new();
    query.each_match(&line, |at, word| places.push((at, word)));
    // A part of so many bytes has no more characters than that.
    let reach = chars * 3 / 4;
    let within = |from: usize| {
        let near = places
            .iter()
            .filter(|(at, _)| (from..from.saturating_add(reach)).contains(at));
        near.map(|(_, word)| word).collect::<HashSet<_>>().len()
    };
    let mut best = (0, 0);
    for (at, _) in &places {
        let words = within(*at);
        if words > best.0 {
            best = (words, *at);
        }
    }
    Excerpt {
        text: cut(&line, best.1, chars),
        words: best.0,
    }
}

/// Returns at most so many characters of a line, from a little before a place on, whole words where
/// there are any.
fn cut(line: &str, at: usize, chars: usize) -> String {
    if line.chars().count() <= chars {
        return line.to_owned();
    }
    let room = chars.saturating_sub(2);
    let places: Vec<usize> = line.char_indices().map(|(at, _)| at).collect();
    let at = places.partition_point(|place| *place < at);
    let from = at
        .saturating_sub(chars / 6)
        .min(places.len().saturating_sub(room));
    let (from, until) = (from, (from + room).min(places.len()));
    let byte = |place: usize| places.get(place).copied().unwrap_or(line.len());
    let (mut first, mut last) = (byte(from), byte(until));
    let piece = line.get(first..last).unwrap_or_default();
    if from > 0
        && let Some(space) = piece.find(' ').filter(|space| *space < piece.len() / 6)
    {
        first += space + 1;
    }
    if until < places.len()
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
        let Excerpt { text, words } = excerpt(text, &Query::of(&[(question, 1.0)]), chars);
        (text, words)
    }

    #[test]
    fn what_was_asked_for_is_shown_in_its_surroundings() {
        let filler = "and then something else was said that nobody asked about ".repeat(5);
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
