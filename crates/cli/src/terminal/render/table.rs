//! Tables with whole words: in columns where they fit, else row by row with a bar between the
//! cells.
//!
//! termimad cuts words in narrow columns and drops columns for which there is no width.

use pulldown_cmark::Alignment;

use super::wrap::{Span, width, wrapped};

/// The characters that a table is drawn with.
pub(super) struct Marks {
    bar: &'static str,
    line: &'static str,
    /// Corners and crossings of the top, middle and bottom rule.
    rules: [[&'static str; 3]; 3],
}

const DRAWN: Marks = Marks {
    bar: "│",
    line: "─",
    rules: [["┌", "┬", "┐"], ["├", "┼", "┤"], ["└", "┴", "┘"]],
};

const ASCII: Marks = Marks {
    bar: "|",
    line: "-",
    rules: [["+", "+", "+"]; 3],
};

/// Rows of cells of styled text.
pub(super) struct Table {
    pub(super) alignments: Vec<Alignment>,
    pub(super) rows: Vec<Vec<Vec<Span>>>,
}

/// The space that a table is laid out in.
pub(super) struct Page<'a> {
    /// Available columns.
    pub(super) columns: usize,
    /// Columns of the margin on the left.
    pub(super) margin: usize,
    pub(super) styled: bool,
    /// Applies the styles to text.
    pub(super) style: &'a dyn Fn(&[Span]) -> String,
}

impl Table {
    /// Lays the table out in lines.
    pub(super) fn lines(&self, page: &Page<'_>) -> Vec<String> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let rows: Vec<Vec<Vec<Span>>> = self
            .rows
            .iter()
            .map(|row| {
                (0..columns)
                    .map(|column| {
                        row.get(column)
                            .map(|cell| on_one_line(cell))
                            .unwrap_or_default()
                    })
                    .collect()
            })
            .collect();
        let marks = if page.styled { &DRAWN } else { &ASCII };
        match widths(&rows, columns, page.columns) {
            Some(widths) => self.in_columns(&rows, &widths, marks, page),
            None => row_by_row(&rows, marks, page),
        }
    }

    fn in_columns(
        &self,
        rows: &[Vec<Vec<Span>>],
        widths: &[usize],
        marks: &Marks,
        page: &Page<'_>,
    ) -> Vec<String> {
        let rule = |which: usize| {
            let [left, cross, right] = marks.rules[which];
            let parts: Vec<String> = widths
                .iter()
                .map(|width| marks.line.repeat(*width))
                .collect();
            format!("{left}{}{right}", parts.join(cross))
        };
        let mut lines = vec![rule(0)];
        for (number, row) in rows.iter().enumerate() {
            let cells: Vec<Vec<Vec<Span>>> = row
                .iter()
                .zip(widths)
                .map(|(cell, width)| wrapped(cell, (*width).max(1)))
                .collect();
            for height in 0..cells.iter().map(Vec::len).max().unwrap_or(1) {
                lines.push(self.line(&cells, height, widths, marks, page));
            }
            if number == 0 {
                lines.push(rule(1));
            }
        }
        lines.push(rule(2));
        lines
    }

    /// Formats one line of a row.
    fn line(
        &self,
        cells: &[Vec<Vec<Span>>],
        height: usize,
        widths: &[usize],
        marks: &Marks,
        page: &Page<'_>,
    ) -> String {
        let mut line = marks.bar.to_owned();
        let mut column = page.margin + 1;
        for (number, (cell, width_of_column)) in cells.iter().zip(widths).enumerate() {
            let words = cell.get(height).map(Vec::as_slice).unwrap_or_default();
            let blanks = width_of_column.saturating_sub(width(words));
            let left = match self.alignments.get(number) {
                Some(Alignment::Right) => blanks,
                Some(Alignment::Center) => blanks / 2,
                _ => 0,
            };
            line.push_str(&" ".repeat(left));
            line.push_str(&(page.style)(words));
            line.push_str(&" ".repeat(blanks - left));
            column += width_of_column;
            if page.styled
                && words
                    .iter()
                    .any(|span| span.words.chars().any(is_of_unclear_width))
            {
                // Terminals disagree on the width of such text, so the bar is placed by an absolute
                // column.
                line.push_str(&format!("\x1b[{}G", column + 1));
            }
            line.push_str(marks.bar);
            column += 1;
        }
        line
    }
}

/// Lays the table out row by row, each as a paragraph.
fn row_by_row(rows: &[Vec<Vec<Span>>], marks: &Marks, page: &Page<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let mut words: Vec<Span> = Vec::new();
        for (number, cell) in row.iter().enumerate() {
            if number > 0 {
                words.push(Span::plain(format!(" {} ", marks.bar)));
            }
            words.extend(cell.iter().cloned());
        }
        lines.extend(
            wrapped(&words, page.columns)
                .iter()
                .map(|line| (page.style)(line)),
        );
        if number == 0 {
            lines.push(marks.line.repeat(page.columns.min(20)));
        }
    }
    lines
}

/// Joins the lines of a cell into one.
fn on_one_line(cell: &[Span]) -> Vec<Span> {
    let spans = cell.iter().map(|span| {
        if span.words == "\n" {
            Span::plain(" ".to_owned())
        } else {
            span.clone()
        }
    });
    spans.collect()
}

/// Returns the width of each column, so that the table fits and no word is cut; `None` if there is
/// no such width.
fn widths(rows: &[Vec<Vec<Span>>], columns: usize, available: usize) -> Option<Vec<usize>> {
    let of = |column: usize, width_of: &dyn Fn(&[Span]) -> usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| width_of(cell))
            .max()
            .unwrap_or(0)
    };
    let longest_word = |cell: &[Span]| {
        wrapped(cell, 1)
            .iter()
            .map(|word| width(word))
            .max()
            .unwrap_or(0)
    };
    let least: Vec<usize> = (0..columns)
        .map(|column| of(column, &longest_word))
        .collect();
    let mut widths: Vec<usize> = (0..columns).map(|column| of(column, &width)).collect();
    // One bar before each column, and one at the end.
    let available = available.checked_sub(columns + 1)?;
    while widths.iter().sum::<usize>() > available {
        // The widest column shrinks first: narrow ones hold single words.
        let (widest, _) = widths
            .iter()
            .enumerate()
            .filter(|(column, width)| **width > least[*column])
            .max_by_key(|(_, width)| **width)?;
        widths[widest] -= 1;
    }
    Some(widths)
}

/// Returns true if terminals disagree on the width of the character: joiners, variation selectors,
/// and regional indicators.
fn is_of_unclear_width(c: char) -> bool {
    matches!(c, '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{1f1e6}'..='\u{1f1ff}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{300}'..='\u{36f}')
}
