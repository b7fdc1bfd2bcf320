//! Whole blocks of Markdown as lines of a terminal.
//!
//! pulldown-cmark says what a text means, termimad styles it. Nothing the text says is left out:
//! links show where they go, and HTML is shown as it is written.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use adjutant_memory::Vault;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd};
use termimad::FmtText;
use termimad::minimad::{Composite, CompositeStyle, Compound, Line, Text};

use super::blocks::{Block, Blocks, Content, OPTIONS};
use super::code::Code;
use super::look::Look;
use super::table::{self, Table};
use super::wrap::{Span, wrapped};
use crate::display::clean_line;

/// Quotes and items inside each other that are shown as such. Deeper ones are not pushed further to
/// the right.
const INDENTED_MAX: usize = 7;

/// Characters before a block in which a blank line is looked for.
const LOOK_BACK: usize = 256;

/// Columns that are left for words, however deep they stand.
const COLUMNS_MIN: usize = 12;

/// The text in front of the address of a link that a terminal opens (OSC 8), and behind it. Without
/// an address, the link ends.
const LINK: &str = "\x1b]8;;";
const LINK_END: &str = "\x1b\\";

/// Links to notes that are looked up in one block.
const NOTES_MAX: usize = 100;

/// The longest rule across the page, in columns.
const RULE_COLUMNS: usize = 60;

/// Lays out an answer, block by block.
pub(super) struct Layout {
    look: Look,
    /// The block of code that is open.
    code: Code,
    /// The notes that an answer may link to.
    vault: Option<Vault>,
}

impl Layout {
    pub(super) fn new(look: Look) -> Self {
        Self {
            look,
            code: Code::new(""),
            vault: None,
        }
    }

    /// Returns the same, in which links to notes of this vault open them in Obsidian.
    pub(super) fn with_notes(self, vault: Option<Vault>) -> Self {
        Self {
            vault: vault.filter(|_| self.look.styled),
            ..self
        }
    }

    /// Returns the lines of a whole answer, each with its end.
    pub(super) fn whole(&mut self, answer: &str, columns: usize) -> String {
        let mut blocks = Blocks::default();
        let mut done = blocks.push(answer);
        done.extend(blocks.finish());
        done.iter()
            .map(|block| self.render(block, columns))
            .collect()
    }

    /// Returns the lines of the next block, each with its end.
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
                for line in Page::of(source, &self.look, columns, notes).lines {
                    shown.push_str(&line);
                    shown.push('\n');
                }
            }
            Content::FenceOpen(line) => {
                let info = clean_line(line.trim_start_matches(['`', '~']).trim());
                self.code = Code::new(&info);
                shown.extend(self.look.language(&info).map(|info| info + "\n"));
                self.fence(line, &mut shown);
            }
            Content::FenceClose(line) => self.fence(line, &mut shown),
            // As it is, however long: it is there to be copied.
            Content::Code(line) => {
                shown.push_str(&self.look.code(&mut self.code, line));
                shown.push('\n');
            }
        }
        shown
    }

    /// Colour tells code from words; without it, what was written does.
    fn fence(&self, line: &str, shown: &mut String) {
        if !self.look.styled {
            shown.push_str(&clean_line(line));
            shown.push('\n');
        }
    }
}

/// Returns the addresses of the notes that a block links to, by the links; of what is no note of
/// the vault there is none.
fn notes_in(source: &str, vault: &Vault) -> HashMap<String, Arc<str>> {
    if !source.contains("[[") {
        return HashMap::new();
    }
    let mut links: Vec<String> = Vec::new();
    for event in Parser::new_ext(source, OPTIONS.union(Options::ENABLE_WIKILINKS)) {
        if let Event::Start(
            Tag::Link {
                link_type: LinkType::WikiLink { .. },
                dest_url,
                ..
            }
            | Tag::Image {
                link_type: LinkType::WikiLink { .. },
                dest_url,
                ..
            },
        ) = event
            && links.len() < NOTES_MAX
        {
            links.push(dest_url.into_string());
        }
    }
    // A vault that is gone opens nothing, and the answer is shown all the same.
    let addresses = vault.obsidian_addresses(&links).unwrap_or_default();
    links
        .into_iter()
        .zip(addresses)
        .filter_map(|(link, address)| Some((link, address?.into())))
        .collect()
}

/// What a line stands in.
#[derive(Debug)]
enum Container {
    Quote,
    Item { marker: String, shown: bool },
}

/// Which of a list's items come next: a number, or a bullet.
type Next = Option<u64>;

struct Page<'a> {
    source: &'a str,
    look: &'a Look,
    columns: usize,
    lines: Vec<String>,
    containers: Vec<Container>,
    lists: Vec<Next>,
    spans: Vec<Span>,
    /// How many are open of each.
    bold: usize,
    italic: usize,
    strikeout: usize,
    /// Where links go, and the number of spans before their words.
    links: Vec<(String, usize)>,
    /// The addresses at which notes are opened, by the links to them.
    notes: HashMap<String, Arc<str>>,
    /// The address of the note whose link is open.
    note: Option<Arc<str>>,
    /// Bytes of a link to what is no note: they stand as they were written.
    written: Range<usize>,
    heading: Option<HeadingLevel>,
    code: Option<(String, String)>,
    table: Option<Table>,
    /// Bytes of the row behind its last cell.
    row: Range<usize>,
    /// Whether a blank line stands before the next line.
    gap: bool,
}

impl<'a> Page<'a> {
    fn of(
        source: &'a str,
        look: &'a Look,
        columns: usize,
        notes: HashMap<String, Arc<str>>,
    ) -> Self {
        // Without a note that is there, brackets mean what they mean in Markdown.
        let options = if notes.is_empty() {
            OPTIONS
        } else {
            OPTIONS.union(Options::ENABLE_WIKILINKS)
        };
        let mut page = Self {
            source,
            look,
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
        // Where its links go is said by a text, and is no part of its blocks.
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
        self.say(clean_line(self.source.get(span).unwrap_or_default().trim()));
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
                // Entities are decoded by now: `&#27;` is an escape character.
                let mut lines = text.split('\n').peekable();
                while let Some(line) = lines.next() {
                    self.say(clean_line(line));
                    if lines.peek().is_some() {
                        self.say("\n".to_owned());
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
                if self.look.styled {
                    self.spans.push(Span {
                        code: true,
                        ..self.span(code)
                    });
                } else {
                    self.say(format!("`{code}`"));
                }
            }
            // Chat is no book: a line that was written as one stays one.
            Event::SoftBreak | Event::HardBreak => self.say("\n".to_owned()),
            Event::Rule => {
                self.block(at);
                let columns = self.room().min(RULE_COLUMNS);
                let mark = if self.look.styled { "─" } else { "-" };
                self.put(vec![mark.repeat(columns)]);
            }
            Event::TaskListMarker(done) => self.say(if done { "[x] " } else { "[ ] " }.to_owned()),
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>, Range { start: at, end }: Range<usize>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.block(at),
            Tag::Heading { level, .. } => {
                self.block(at);
                self.heading = Some(level);
                if !self.look.styled {
                    self.say(format!("{} ", "#".repeat(level as usize)));
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
                let bullet = if self.look.styled { "• " } else { "- " };
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
            Tag::TableCell => self.row.start = end,
            Tag::Strong => self.mark("**", |page| page.bold += 1),
            Tag::Emphasis => self.mark("*", |page| page.italic += 1),
            Tag::Strikethrough => self.mark("~~", |page| page.strikeout += 1),
            Tag::Link {
                link_type: LinkType::WikiLink { .. },
                dest_url,
                ..
            }
            | Tag::Image {
                link_type: LinkType::WikiLink { .. },
                dest_url,
                ..
            } => {
                self.note = self.notes.get(&*dest_url).cloned();
                if self.note.is_none() {
                    self.say(clean_line(self.source.get(at..end).unwrap_or_default()));
                    self.written = at..end;
                } else {
                    self.links.push((String::new(), self.spans.len()));
                }
            }
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((clean_line(&dest_url), self.spans.len()));
            }
            _ => {}
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
                    self.put(vec![String::new()]);
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

    /// Without styles, what was written shows them.
    fn mark(&mut self, written: &str, then: impl FnOnce(&mut Self)) {
        if !self.look.styled {
            self.say(written.to_owned());
        }
        then(self);
    }

    /// Words of a link may lie about where it goes.
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
        if !to.is_empty() && words != to && format!("mailto:{words}") != to {
            let space = if words.is_empty() { "" } else { " " };
            self.say(format!("{space}({to})"));
        }
    }

    fn end_code(&mut self) {
        let Some((info, code)) = self.code.take() else {
            return;
        };
        let mut lines: Vec<String> = Vec::new();
        if !self.look.styled {
            lines.push(format!("```{info}"));
        }
        lines.extend(self.look.language(&info));
        let mut kinds = Code::new(&info);
        lines.extend(code.lines().map(|line| self.look.code(&mut kinds, line)));
        if !self.look.styled {
            lines.push("```".to_owned());
        }
        self.put(lines);
    }

    /// Cells that a row has beyond those of the first one are no part of a table of Markdown, and
    /// still were said.
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
        // A bar behind a backslash is no end of a cell.
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
            room: self.room(),
            margin: self.margin_width(),
            styled: self.look.styled,
            style: &|words| self.styled(words, CompositeStyle::Paragraph),
        });
        self.put(lines);
    }

    fn say(&mut self, words: String) {
        let span = self.span(words);
        self.spans.push(span);
    }

    fn span(&self, words: String) -> Span {
        let styled = self.look.styled;
        Span {
            words,
            bold: styled && self.bold > 0,
            italic: styled && self.italic > 0,
            code: false,
            strikeout: styled && self.strikeout > 0,
            opens: self.note.clone(),
        }
    }

    /// A block begins at this byte.
    fn block(&mut self, at: usize) {
        self.flush();
        // Blank lines stay where they were written, one of several.
        let before = self.source[..at].chars().rev();
        let between = before
            .take(LOOK_BACK)
            .take_while(|c| matches!(c, ' ' | '\t' | '>' | '\n'));
        self.gap |= between.filter(|c| *c == '\n').count() > 1;
    }

    /// Puts the words that were said.
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
                    wrapped(line, self.room())
                        .iter()
                        .map(|line| self.styled(line, style)),
                );
            }
        }
        if !lines.is_empty() {
            self.put(lines);
        }
    }

    fn styled(&self, line: &[Span], style: CompositeStyle) -> String {
        let parts = line
            .chunk_by(|one, other| one.opens == other.opens)
            .map(|spans| {
                let text = Text {
                    lines: vec![Line::Normal(composite(spans, style))],
                };
                let words = FmtText::from_text(&self.look.skin, text, None).to_string();
                let words = words.trim_end_matches('\n');
                match spans.first().and_then(|span| span.opens.as_deref()) {
                    Some(address) => format!("{LINK}{address}{LINK_END}{words}{LINK}{LINK_END}"),
                    None => words.to_owned(),
                }
            });
        parts.collect()
    }

    /// Columns for words.
    fn room(&self) -> usize {
        self.columns
            .saturating_sub(self.margin_width())
            .max(COLUMNS_MIN.min(self.columns))
    }

    fn margin_width(&self) -> usize {
        self.margin().iter().map(|part| part.chars().count()).sum()
    }

    /// What stands at the left, from outside to inside.
    fn margin(&self) -> Vec<String> {
        let last = self.containers.len().saturating_sub(1);
        let shown = self.containers.iter().enumerate();
        shown
            .filter(|(depth, _)| *depth < INDENTED_MAX || *depth == last)
            .map(|(_, container)| match container {
                Container::Quote if self.look.styled => "▌ ".to_owned(),
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

    fn put(&mut self, lines: Vec<String>) {
        if std::mem::take(&mut self.gap) && !self.lines.is_empty() {
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
