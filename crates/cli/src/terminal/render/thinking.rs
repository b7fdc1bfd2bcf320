//! A model's thinking, printed line by line as it arrives.

use crate::terminal::display::{clean, fold};

/// Text before each line.
const MARGIN: &str = "  ┆ ";

/// Splits streamed thinking into lines.
#[derive(Debug, Default)]
pub(super) struct ThinkingLines {
    /// The text of the unfinished line.
    rest: String,
}

impl ThinkingLines {
    /// Adds text and returns the lines that are complete.
    pub(super) fn push(&mut self, piece: &str, columns: usize) -> Vec<String> {
        // The width of a tab depends on its column, so lines with tabs would not fit.
        let piece = clean(piece).replace('\t', " ");
        self.rest.push_str(if self.rest.is_empty() {
            piece.trim_start()
        } else {
            &piece
        });
        let text = fold(
            &self.rest,
            columns.saturating_sub(MARGIN.chars().count()).max(1),
        );
        let Some((full, rest)) = text.rsplit_once('\n') else {
            return Vec::new();
        };
        let lines = lines(full);
        self.rest = rest.trim_start().to_owned();
        lines
    }

    /// Returns the unfinished last line.
    pub(super) fn finish(&mut self) -> Vec<String> {
        lines(&std::mem::take(&mut self.rest))
    }

    /// Returns the text of the unfinished line.
    pub(super) fn unfinished(&self) -> &str {
        &self.rest
    }
}

fn lines(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| format!("{MARGIN}{line}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_given_when_they_are_full() {
        let mut thoughts = ThinkingLines::default();
        assert!(thoughts.push("\nWhat is it", 24).is_empty());
        assert!(thoughts.push(" that", 24).is_empty());
        assert_eq!(
            thoughts.push(" they want", 24),
            ["  ┆ What is it that they"]
        );
        assert_eq!(thoughts.unfinished(), "want");
        assert_eq!(
            thoughts.push("?\n\nMilk.\nBread", 24),
            ["  ┆ want?", "  ┆ Milk."]
        );
        assert_eq!(thoughts.finish(), ["  ┆ Bread"]);
        assert!(thoughts.finish().is_empty());
    }

    #[test]
    fn words_do_not_depend_on_the_pieces() {
        let text = "one two\nthree four five six seven eight nine ten eleven\n\ntwelve";
        for columns in [9, 20, 80] {
            let mut whole = ThinkingLines::default();
            let mut expected = whole.push(text, columns);
            expected.extend(whole.finish());
            let mut thoughts = ThinkingLines::default();
            let mut seen: Vec<String> = text
                .chars()
                .flat_map(|c| thoughts.push(&c.to_string(), columns))
                .collect();
            seen.extend(thoughts.finish());
            let words = |lines: &[String]| {
                let words = lines
                    .iter()
                    .flat_map(|line| line.split_whitespace().skip(1).map(str::to_owned));
                words.collect::<Vec<_>>()
            };
            assert_eq!(words(&seen), words(&expected));
            assert_eq!(
                words(&seen).join(" "),
                text.split_whitespace().collect::<Vec<_>>().join(" ")
            );
        }
    }
}
