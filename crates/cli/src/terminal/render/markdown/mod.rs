//! Lays out Markdown blocks as lines of a terminal.
//!
//! pulldown-cmark parses, termimad styles. No text is dropped: links show their address, and HTML
//! is shown as written.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use adjutant_memory::Vault;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd};
use termimad::FmtText;
use termimad::minimad::{Composite, CompositeStyle, Compound, Line, Text};

use super::blocks::{Block, Blocks, Content, OPTIONS};
use super::code::Code;
use super::table::{self, Table};
use super::theme::Theme;
use super::wrap::{Span, wrapped};
use crate::terminal::display::clean_line;

/// Nesting depth of quotes and lists up to which each level is indented.
const INDENTED_MAX: usize = 7;

/// Characters before a block that are searched for a blank line.
const LOOK_BACK: usize = 256;

/// Minimum columns for text, at any depth.
const COLUMNS_MIN: usize = 12;

/// Opens a link of the terminal (OSC 8) before an address; without an address it closes the link.
const LINK: &str = "\x1b]8;;";
const LINK_END: &str = "\x1b\\";

/// Links to notes that are resolved in one block at most.
const NOTES_MAX: usize = 100;

/// Columns of a horizontal rule at most.
const RULE_COLUMNS: usize = 60;

/// Lays out an answer, block by block.
pub(super) struct Layout {
    theme: Theme,
    /// Tokenizer of the open code block.
    code: Code,
    /// The vault that links to notes are resolved in.
    vault: Option<Vault>,
}

impl Layout {
    pub(super) fn new(theme: Theme) -> Self {
        Self {
            theme,
            code: Code::new(""),
            vault: None,
        }
    }

    /// Resolves links to notes of this vault, so that they open in Obsidian.
    pub(super) fn with_notes(self, vault: Option<Vault>) -> Self {
        Self {
            vault: vault.filter(|_| self.theme.styled),
            ..self
        }
    }

    /// Lays out a whole answer; each line ends with a newline.
    pub(super) fn whole(&mut self, answer: &str, columns: usize) -> String {
        let mut blocks = Blocks::default();
        let mut done = blocks.push(answer);
        done.extend(blocks.finish());
        done.iter()
            .map(|block| self.render(block, columns))
            .collect()
    }

    /// Lays out the next block; each line ends with a newline.
    pub(super) fn render(&mut self, block: &Block, columns: usize) -> String {
        let mut shown = if block.gap {
            "\n".to_owned()
        } else {
            String::new()
        };
        match &block.content {
            Content::Markdown(source) => {
                let notes = self
                    .vault
                    .as_ref()
                    .map(|vault| notes_in(source, vault))
                    .unwrap_or_default();
                for line in Page::parse(source, &self.theme, columns, notes).lines {
                    shown.push_str(&line);
                    shown.push('\n');
                }
            }
            Content::FenceOpen(line) => {
                let info = clean_line(line.trim_start_matches(['`', '~']).trim());
                self.code = Code::new(&info);
                shown.extend(self.theme.language(&info).map(|info| info + "\n"));
                self.fence(line, &mut shown);
            }
            Content::FenceClose(line) => self.fence(line, &mut shown),
            // Code is not wrapped, so that it can be copied.
            Content::Code(line) => {
                shown.push_str(&self.theme.code(&mut self.code, line));
                shown.push('\n');
            }
        }
        shown
    }

    /// Prints a fence only without styles: colours mark code otherwise.
    fn fence(&self, line: &str, shown: &mut String) {
        if !self.theme.styled {
            shown.push_str(&clean_line(line));
            shown.push('\n');
        }
    }
}

/// Returns the Obsidian addresses of the notes that a block links to, by link.
fn notes_in(source: &str, vault: &Vault) -> HashMap<String, Arc<str>> {
    if !source.contains("[[") {
        return HashMap::new();
    }
    let mut links: Vec<String> = Vec::new();
    for event in Parser::new_ext(source, OPTIONS.union(Options::ENABLE_WIKILINKS)) {
        if let Event::Start(tag) = event
            && let Some((dest_url, true)) = link(&tag)
            && links.len() < NOTES_MAX
        {
            links.push(dest_url.to_owned());
        }
    }
    // If the vault cannot be read, links lead nowhere and the answer is shown all the same.
    let addresses = vault.obsidian_addresses(&links).unwrap_or_default();
    links
        .into_iter()
        .zip(addresses)
        .filter_map(|(link, address)| Some((link, address?.into())))
        .collect()
}

/// Returns the address of a link or an image, and true if it is written in double brackets.
fn link<'a>(tag: &'a Tag<'_>) -> Option<(&'a str, bool)> {
    match tag {
        Tag::Link {
            link_type,
            dest_url,
            ..
        }
        | Tag::Image {
            link_type,
            dest_url,
            ..
        } => Some((dest_url, matches!(link_type, LinkType::WikiLink { .. }))),
        _ => None,
    }
}

/// A block that contains other blocks.
#[derive(Debug)]
enum Container {
    Quote,
    Item { marker: String, shown: bool },
}

/// The marker of a list's next item: a number, or `None` for a bullet.
type Next = Option<u64>;

struct Page<'a> {
    source: &'a str,
    theme: &'a Theme,
    columns: usize,
    lines: Vec<String>,
    containers: Vec<Container>,
    lists: Vec<Next>,
    spans: Vec<Span>,
    /// Number of open elements of each kind.
    bold: usize,
    italic: usize,
    strikeout: usize,
    /// Addresses of open links, with the number of spans before their text.
    links: Vec<(String, usize)>,
    /// Addresses of notes by link.
    notes: HashMap<String, Arc<str>>,
    /// The address of the note whose link is open.
    note: Option<Arc<str>>,
    /// Bytes of a link to a note that does not exist, which is shown as written.
    written: Range<usize>,
    heading: Option<HeadingLevel>,
    code: Option<(String, String)>,
    table: Option<Table>,
    /// Bytes of the row after its last cell.
    row: Range<usize>,
    /// True if a blank line precedes the next line.
    gap: bool,
}

impl<'a> Page<'a> {
    fn parse(
        source: &'a str,
        theme: &'a Theme,
        columns: usize,
        notes: HashMap<String, Arc<str>>,
    ) -> Self {
        // Without a note that exists, double brackets have no meaning of their own.
        let options = if notes.is_empty() {
            OPTIONS
        } else {
            OPTIONS.union(Options::ENABLE_WIKILINKS)
        };
        let mut page = Self {
            source,
            theme,
            columns,
            lines: Vec::new(),
            containers: Vec::new(),
            lists: Vec::new(),
            spans: Vec::new(),
            bold: 0,
            italic: 0,
            strikeout: 0,
            links: Vec::new(),
            notes,
            note: None,
            written: 0..0,
            heading: None,
            code: None,
            table: None,
            row: 0..0,
            gap: false,
        };
        let events = Parser::new_ext(source, options).into_offset_iter();
        // Link reference definitions are no events of the parser; they are shown as written.
        let definitions = events
            .reference_definitions()
            .iter()
            .map(|(_, definition)| definition.span.clone());
        let mut definitions: Vec<_> = definitions.collect();
        definitions.sort_by_key(|span| std::cmp::Reverse(span.start));
        for (event, range) in events {
            if matches!(event, Event::Start(_) | Event::Rule) {
                while let Some(span) = definitions.pop_if(|span| span.start < range.start) {
                    page.definition(span);
                }
            }
            page.event(event, range);
        }
        page.flush();
        while let Some(span) = definitions.pop() {
            page.definition(span);
        }
        page
    }

    fn definition(&mut self, span: Range<usize>) {
        self.block(span.start);
        self.push_text(clean_line(self.source.get(span).unwrap_or_default().trim()));
        self.flush();
    }

    fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        let at = range.start;
        if self.written.contains(&at) {
            return;
        }
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::InlineHtml(text) | Event::Html(text)
                if self.code.is_none() =>
            {
                // Entities are decoded here: `&#27;` is an escape character by now.
                let mut lines = text.split('\n').peekable();
                while let Some(line) = lines.next() {
                    self.push_text(clean_line(line));
                    if lines.peek().is_some() {
                        self.push_text("\n".to_owned());
                    }
                }
            }
            Event::Text(text) => {
                if let Some((_, code)) = &mut self.code {
                    code.push_str(&text);
                }
            }
            Event::Code(code) => {
                let code = clean_line(&code);
                if self.theme.styled {
                    self.spans.push(Span {
                        code: true,
                        ..self.span(code)
                    });
                } else {
                    self.push_text(format!("`{code}`"));
                }
            }
            // A chat answer keeps its line breaks, unlike a paragraph of Markdown.
            Event::SoftBreak | Event::HardBreak => self.push_text("\n".to_owned()),
            Event::Rule => {
                self.block(at);
                let columns = self.text_columns().min(RULE_COLUMNS);
                let mark = if self.theme.styled { "─" } else { "-" };
                self.push_lines(vec![mark.repeat(columns)]);
            }
            Event::TaskListMarker(done) => {
                self.push_text(if done { "[x] " } else { "[ ] " }.to_owned())
            }
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>, Range { start: at, end }: Range<usize>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.block(at),
            Tag::Heading { level, .. } => {
                self.block(at);
                self.heading = Some(level);
                if !self.theme.styled {
                    self.push_text(format!("{} ", "#".repeat(level as usize)));
                }
            }
            Tag::BlockQuote(_) => {
                self.block(at);
                self.containers.push(Container::Quote);
            }
            Tag::CodeBlock(kind) => {
                self.block(at);
                let info = match kind {
                    CodeBlockKind::Fenced(info) => clean_line(&info),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((info, String::new()));
            }
            Tag::List(first) => {
                self.block(at);
                self.lists.push(first);
            }
            Tag::Item => {
                self.block(at);
                let bullet = if self.theme.styled { "• " } else { "- " };
                let marker = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let marker = format!("{number}. ");
                        *number = number.saturating_add(1);
                        marker
                    }
                    _ => bullet.to_owned(),
                };
                self.containers.push(Container::Item {
                    marker,
                    shown: false,
                });
            }
            Tag::Table(alignments) => {
                self.block(at);
                self.table = Some(Table {
                    alignments,
                    rows: Vec::new(),
                });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
                self.row = at..end;
            }
            // At the end of the row, the bytes that are left are surplus cells.
            Tag::TableCell => self.row.start = end,
            Tag::Strong => self.mark("**", |page| page.bold += 1),
            Tag::Emphasis => self.mark("*", |page| page.italic += 1),
            Tag::Strikethrough => self.mark("~~", |page| page.strikeout += 1),
            tag => match link(&tag) {
                Some((note, true)) => {
                    self.note = self.notes.get(note).cloned();
                    if self.note.is_none() {
                        self.push_text(clean_line(self.source.get(at..end).unwrap_or_default()));
                        self.written = at..end;
                    } else {
                        self.links.push((String::new(), self.spans.len()));
                    }
                }
                Some((address, false)) => {
                    self.links.push((clean_line(address), self.spans.len()));
                }
                None => {}
            },
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock | TagEnd::Heading(_) => self.flush(),
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.containers.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::Item => {
                self.flush();
                if matches!(
                    self.containers.last(),
                    Some(Container::Item { shown: false, .. })
                ) {
                    self.push_lines(vec![String::new()]);
                }
                self.containers.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.spans);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::TableRow => self.surplus_cells(),
            TagEnd::Table => self.end_table(),
            TagEnd::Strong => {
                self.bold = self.bold.saturating_sub(1);
                self.mark("**", |_| {});
            }
            TagEnd::Emphasis => {
                self.italic = self.italic.saturating_sub(1);
                self.mark("*", |_| {});
            }
            TagEnd::Strikethrough => {
                self.strikeout = self.strikeout.saturating_sub(1);
                self.mark("~~", |_| {});
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    /// Adds the Markdown mark where there are no styles to show it.
    fn mark(&mut self, written: &str, then: impl FnOnce(&mut Self)) {
        if !self.theme.styled {
            self.push_text(written.to_owned());
        }
        then(self);
    }

    /// Ends a link and prints its address, because the text of a link may name a wrong one.
    fn end_link(&mut self) {
        self.note = None;
        let Some((to, first)) = self.links.pop() else {
            return;
        };
        let words: String = self
            .spans
            .iter()
            .skip(first)
            .map(|span| span.words.as_str())
            .collect();
        // The address of `<ana@example.org>` begins with `mailto:`.
        if !to.is_empty() && words != to && format!("mailto:{words}") != to {
            let space = if words.is_empty() { "" } else { " " };
            self.push_text(format!("{space}({to})"));
        }
    }

    fn end_code(&mut self) {
        let Some((info, code)) = self.code.take() else {
            return;
        };
        let mut lines: Vec<String> = Vec::new();
        if !self.theme.styled {
            lines.push(format!("```{info}"));
        }
        lines.extend(self.theme.language(&info));
        let mut kinds = Code::new(&info);
        lines.extend(code.lines().map(|line| self.theme.code(&mut kinds, line)));
        if !self.theme.styled {
            lines.push("```".to_owned());
        }
        self.push_lines(lines);
    }

    /// Prints cells beyond the columns of the table, which Markdown ignores.
    fn surplus_cells(&mut self) {
        let rest = self
            .source
            .get(self.row.clone())
            .unwrap_or_default()
            .trim()
            .trim_matches('|')
            .trim();
        if rest.is_empty() {
            return;
        }
        // An escaped bar does not end a cell.
        let cells = rest.replace("\\|", "\0");
        let cells: Vec<Vec<Span>> = cells
            .split('|')
            .map(|cell| vec![self.span(clean_line(&cell.trim().replace('\0', "|")))])
            .collect();
        if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
            row.extend(cells);
        }
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else {
            return;
        };
        let lines = table.lines(&table::Page {
            columns: self.text_columns(),
            margin: self.margin_width(),
            styled: self.theme.styled,
            style: &|words| self.styled(words, CompositeStyle::Paragraph),
        });
        self.push_lines(lines);
    }

    fn push_text(&mut self, words: String) {
        let span = self.span(words);
        self.spans.push(span);
    }

    fn span(&self, words: String) -> Span {
        let styled = self.theme.styled;
        Span {
            words,
            bold: styled && self.bold > 0,
            italic: styled && self.italic > 0,
            code: false,
            strikeout: styled && self.strikeout > 0,
            opens: self.note.clone(),
        }
    }

    /// Begins a block at this byte.
    fn block(&mut self, at: usize) {
        self.flush();
        // A blank line between blocks is kept, several become one.
        let before = self.source[..at].chars().rev();
        let between = before
            .take(LOOK_BACK)
            .take_while(|c| matches!(c, ' ' | '\t' | '>' | '\n'));
        self.gap |= between.filter(|c| *c == '\n').count() > 1;
    }

    /// Writes the collected text as lines.
    fn flush(&mut self) {
        let style = match self.heading.take() {
            Some(level) => CompositeStyle::Header(level as u8),
            None => CompositeStyle::Paragraph,
        };
        let spans = std::mem::take(&mut self.spans);
        let mut lines = Vec::new();
        for line in spans.split(|span| span.words == "\n") {
            if line.iter().any(|span| !span.words.trim().is_empty()) {
                lines.extend(
                    wrapped(line, self.text_columns())
                        .iter()
                        .map(|line| self.styled(line, style)),
                );
            }
        }
        if !lines.is_empty() {
            self.push_lines(lines);
        }
    }

    fn styled(&self, line: &[Span], style: CompositeStyle) -> String {
        // termimad does not know links of a terminal: each run is styled alone, between its
        // sequences.
        let parts = line
            .chunk_by(|one, other| one.opens == other.opens)
            .map(|spans| {
                let text = Text {
                    lines: vec![Line::Normal(composite(spans, style))],
                };
                let words = FmtText::from_text(&self.theme.skin, text, None).to_string();
                let words = words.trim_end_matches('\n');
                match spans.first().and_then(|span| span.opens.as_deref()) {
                    Some(address) => format!("{LINK}{address}{LINK_END}{words}{LINK}{LINK_END}"),
                    None => words.to_owned(),
                }
            });
        parts.collect()
    }

    /// Returns the columns for text.
    fn text_columns(&self) -> usize {
        self.columns
            .saturating_sub(self.margin_width())
            .max(COLUMNS_MIN.min(self.columns))
    }

    fn margin_width(&self) -> usize {
        self.margin().iter().map(|part| part.chars().count()).sum()
    }

    /// Returns the margin on the left, from the outermost block to the innermost.
    fn margin(&self) -> Vec<String> {
        let last = self.containers.len().saturating_sub(1);
        let shown = self.containers.iter().enumerate();
        shown
            // The innermost block has its mark at any depth.
            .filter(|(depth, _)| *depth < INDENTED_MAX || *depth == last)
            .map(|(_, container)| match container {
                Container::Quote if self.theme.styled => "▌ ".to_owned(),
                Container::Quote => "> ".to_owned(),
                Container::Item {
                    marker,
                    shown: false,
                } => marker.clone(),
                Container::Item {
                    marker,
                    shown: true,
                } => " ".repeat(marker.chars().count()),
            })
            .collect()
    }

    fn push_lines(&mut self, lines: Vec<String>) {
        if std::mem::take(&mut self.gap) && !self.lines.is_empty() {
            // A blank line between two blocks of a quote is part of the quote.
            let quotes = self
                .containers
                .iter()
                .take_while(|it| matches!(it, Container::Quote))
                .count();
            let margin: String = self.margin().into_iter().take(quotes).collect();
            self.lines.push(margin.trim_end().to_owned());
        }
        for line in lines {
            let margin = self.margin().concat();
            self.lines.push(format!("{margin}{line}"));
            for container in &mut self.containers {
                if let Container::Item { shown, .. } = container {
                    *shown = true;
                }
            }
        }
    }
}

fn composite(spans: &[Span], style: CompositeStyle) -> Composite<'_> {
    let compounds = spans
        .iter()
        .map(|span| Compound {
            src: &span.words,
            bold: span.bold,
            italic: span.italic,
            code: span.code,
            strikeout: span.strikeout,
        })
        .collect();
    Composite { style, compounds }
}

#[cfg(test)]
mod tests;
