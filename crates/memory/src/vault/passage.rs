//! The passages of a note: the text under one heading, in pieces of some hundred characters.

use std::ops::Range;

use super::markdown::front_matter;

/// Bytes after which a passage ends with its paragraph.
const PASSAGE_BYTES: usize = 400;
/// Bytes after which a passage ends with its line, for notes without paragraphs.
const PASSAGE_BYTES_MAX: usize = 1_600;

/// A piece of a note under one heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Passage {
    /// Its bytes: whole lines, without the line of the heading.
    pub(crate) range: Range<usize>,
    /// The bytes of the text of the heading above it.
    pub(crate) heading: Option<Range<usize>>,
}

/// Divides the body of a note into passages. Only lines are read, not Markdown, which is faster: a
/// `#` at the beginning of a line in an indented code block is a heading here, which moves the end
/// of a passage and nothing else.
pub(crate) fn passages(text: &str) -> Vec<Passage> {
    let (_, body) = front_matter(text);
    let mut passages: Vec<Passage> = Vec::new();
    let (mut heading, mut start, mut at) = (None, body, body);
    let mut in_fence = false;
    let mut end = |start: &mut usize, at: usize, next: usize, heading: &Option<Range<usize>>| {
        if text
            .get(*start..at)
            .is_some_and(|piece| !piece.trim().is_empty())
        {
            passages.push(Passage {
                range: *start..at,
                heading: heading.clone(),
            });
        }
        *start = next;
    };
    for line in text.get(body..).unwrap_or_default().split_inclusive('\n') {
        let next = at + line.len();
        let words = line.trim();
        // A comment line of a shell script in a fence is no heading.
        if words.starts_with("```") || words.starts_with("~~~") {
            in_fence = !in_fence;
        } else if !in_fence && is_heading(line) {
            end(&mut start, at, next, &heading);
            let from = at + line.len() - line.trim_start_matches(['#', ' ', '\t']).len();
            heading = Some(
                from..from.max(at + line.trim_end_matches(['#', ' ', '\t', '\r', '\n']).len()),
            );
        } else if (words.is_empty() && at - start >= PASSAGE_BYTES)
            || next - start >= PASSAGE_BYTES_MAX
        {
            end(&mut start, next, next, &heading);
        }
        at = next;
    }
    end(&mut start, at, at, &heading);
    passages
}

fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    (1..=6).contains(&(line.len() - rest.len())) && rest.starts_with([' ', '\t'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(Option<&str>, &str)> {
        let words = |passage: Passage| {
            (
                passage.heading.and_then(|heading| text.get(heading)),
                text.get(passage.range).unwrap().trim(),
            )
        };
        passages(text).into_iter().map(words).collect()
    }

    #[test]
    fn a_passage_ends_with_its_heading_or_its_paragraph() {
        let text = "---\na: b\n---\nBegin.\n\n# One #\nText.\n```\n# no heading\n```\n## Two\n\n### Three\nEnd";
        assert_eq!(
            read(text),
            [
                (None, "Begin."),
                (Some("One"), "Text.\n```\n# no heading\n```"),
                (Some("Three"), "End")
            ]
        );
        let long = "word ".repeat(100);
        let paragraphs = format!("{long}\n\n{long}\n\nshort\n\nshorter\n");
        assert_eq!(read(&paragraphs).len(), 3);
        assert_eq!(passages(&format!("{long}\n").repeat(20)).len(), 5);
        assert_eq!(read("#tag\n"), [(None, "#tag")]);
        assert!(read("").is_empty() && read("# Only\n").is_empty());
    }
}
