//! A note as blocks with their places in the text. CommonMark as `pulldown-cmark` reads it, plus
//! what Obsidian adds and what matters for where to write: front matter and `%%` comments.
//!
//! Only places are taken from here; text is never written back from a parse.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// A block at the top level of a note. Ranges are bytes of the whole text and end after the last
/// line that belongs to the block, its line ending included; blank lines between blocks belong to
/// none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) range: Range<usize>,
    pub(crate) kind: BlockKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// `level` 1 to 6, and its words.
    Heading { level: u8, title: String },
    /// Items of a list with `-`, `*` or `+`.
    Bullets(Vec<Item>),
    /// A fenced code block; `closed` by its own fence, not by the end of the note.
    Fence { closed: bool },
    /// Anything else, and whatever stands inside a comment.
    Other,
}

/// One item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// The whole item, from the start of its line, with all that hangs below it.
    pub(crate) range: Range<usize>,
    /// The words of its first paragraph, as they stand in the text.
    pub(crate) words: Range<usize>,
}

/// A note's text, divided.
#[derive(Debug)]
pub(crate) struct Outline {
    /// Where the body begins: after a byte order mark and the front matter.
    pub(crate) body: usize,
    /// What stands between the lines `---`, if there is front matter.
    pub(crate) front: Option<Range<usize>>,
    pub(crate) blocks: Vec<Block>,
    /// Code and comments: no tag, no link, no heading is read there. In order, without overlap.
    pub(crate) dead: Vec<Range<usize>>,
    /// A `%%` comment is not closed: what comes after it is not shown.
    pub(crate) open_comment: bool,
}

impl Block {
    /// Whether it gives a note its shape: a heading, a list or a code block.
    pub(crate) fn is_structure(&self) -> bool {
        self.kind != BlockKind::Other
    }
}

impl Outline {
    pub(crate) fn of(text: &str) -> Self {
        let (front, body) = front_matter(text);
        let mut outline = Self {
            body,
            front,
            blocks: Vec::new(),
            dead: Vec::new(),
            open_comment: false,
        };
        outline.read(text);
        outline
    }

    fn read(&mut self, text: &str) {
        let body = self.body;
        let source = text.get(body..).unwrap_or_default();
        let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_MATH;
        let mut depth = 0usize;
        let mut item: Option<Item> = None;
        let mut items: Vec<Item> = Vec::new();
        let mut heading_words: Option<String> = None;
        let mut fenced = false;
        for (event, range) in Parser::new_ext(source, options).into_offset_iter() {
            let range = range.start + body..range.end + body;
            match &event {
                Event::Code(_) => self.dead.push(range.clone()),
                Event::Start(Tag::CodeBlock(kind)) => {
                    fenced = matches!(kind, CodeBlockKind::Fenced(_));
                    self.dead.push(range.clone());
                }
                Event::Start(Tag::Heading { .. }) if depth == 0 => {
                    heading_words = Some(String::new())
                }
                _ => {}
            }
            if let (Event::Text(words) | Event::Code(words), Some(title)) =
                (&event, &mut heading_words)
            {
                title.push_str(words);
            }
            if let Event::Start(_) = event
                && depth == 2
                && let Some(item) = &mut item
                && is_nested_block(&event)
            {
                // The first paragraph of the item ends where the first block below it begins.
                item.words.end = item.words.end.min(range.start);
            }
            match event {
                Event::Start(tag) => {
                    if depth == 1 && matches!(tag, Tag::Item) {
                        item = Some(item_at(text, &range));
                    }
                    if depth == 2
                        && matches!(tag, Tag::Paragraph)
                        && let Some(item) = &mut item
                    {
                        item.words.end = item.words.end.min(range.end);
                    }
                    depth += 1;
                }
                Event::End(_) => {
                    depth = depth.saturating_sub(1);
                    if depth == 1
                        && let Some(item) = item.take()
                    {
                        items.push(trimmed(text, item));
                    }
                    if depth == 0 {
                        let range = whole_lines(text, range);
                        let kind = match event {
                            Event::End(TagEnd::Heading(level)) => BlockKind::Heading {
                                level: level_number(level),
                                title: heading_words.take().unwrap_or_default().trim().to_owned(),
                            },
                            Event::End(TagEnd::List(false)) => {
                                BlockKind::Bullets(std::mem::take(&mut items))
                            }
                            Event::End(TagEnd::CodeBlock) if fenced => BlockKind::Fence {
                                closed: is_closed(text.get(range.clone()).unwrap_or_default()),
                            },
                            _ => BlockKind::Other,
                        };
                        items.clear();
                        self.blocks.push(Block { range, kind });
                    }
                }
                Event::Rule | Event::Html(_) | Event::InlineHtml(_) if depth == 0 => {
                    self.blocks.push(Block {
                        range: whole_lines(text, range),
                        kind: BlockKind::Other,
                    });
                }
                _ => {}
            }
        }
        self.leave_out_comments(text);
    }

    /// `%%` opens and closes a comment of Obsidian, over any number of blocks. Not inside code.
    fn leave_out_comments(&mut self, text: &str) {
        let mut marks = Vec::new();
        let mut at = self.body;
        while let Some(found) = text.get(at..).and_then(|rest| rest.find("%%")) {
            let mark = at + found;
            if !holds(&self.dead, mark) {
                marks.push(mark);
            }
            at = mark + 2;
        }
        let mut comments: Vec<Range<usize>> = Vec::new();
        for pair in marks.chunks(2) {
            match pair {
                [open, close] => comments.push(*open..*close + 2),
                [open] => {
                    comments.push(*open..text.len());
                    self.open_comment = true;
                }
                _ => {}
            }
        }
        for block in &mut self.blocks {
            if holds(&comments, block.range.start) {
                block.kind = BlockKind::Other;
            }
        }
        // Code in a comment is part of the comment.
        self.dead.retain(|code| !holds(&comments, code.start));
        self.dead.extend(comments);
        self.dead.sort_by_key(|range| range.start);
    }

    /// Whether the byte stands in code or in a comment.
    pub(crate) fn is_dead(&self, at: usize) -> bool {
        holds(&self.dead, at)
    }

    /// The places of the blocks of the section under a heading: after the heading at `at`, before
    /// the next of the same or a higher level.
    pub(crate) fn section(&self, at: usize) -> Range<usize> {
        let level = match self.blocks.get(at).map(|block| &block.kind) {
            Some(BlockKind::Heading { level, .. }) => *level,
            _ => return at..at,
        };
        let end = self.blocks.iter().skip(at + 1).position(
            |block| matches!(&block.kind, BlockKind::Heading { level: other, .. } if *other <= level),
        );
        at + 1..end.map_or(self.blocks.len(), |found| at + 1 + found)
    }
}

/// Whether one of the ranges contains a place. They are in order, and none begins within another.
pub(crate) fn holds(ranges: &[Range<usize>], at: usize) -> bool {
    let after = ranges.partition_point(|range| range.start <= at);
    after
        .checked_sub(1)
        .and_then(|last| ranges.get(last))
        .is_some_and(|range| range.contains(&at))
}

fn is_nested_block(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::Start(
            Tag::List(_)
                | Tag::CodeBlock(_)
                | Tag::BlockQuote(_)
                | Tag::Heading { .. }
                | Tag::HtmlBlock
                | Tag::Table(_)
                | Tag::FootnoteDefinition(_)
        )
    )
}

fn level_number(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

/// The item with its words beginning after its mark. Where they end is found out by what comes
/// below.
fn item_at(text: &str, range: &Range<usize>) -> Item {
    let start = line_start(text, range.start);
    let mark = text.get(range.start..range.end).unwrap_or_default();
    let spaces = mark.get(1..).map_or(0, |rest| {
        rest.len() - rest.trim_start_matches([' ', '\t']).len()
    });
    let words = (range.start + 1 + spaces).min(range.end);
    Item {
        range: start..range.end,
        words: words..range.end,
    }
}

/// Without blank lines at its end; the words without white space around them.
fn trimmed(text: &str, item: Item) -> Item {
    let range = whole_lines(text, item.range);
    let words = text.get(item.words.clone()).unwrap_or_default();
    // A first child that is no paragraph (`- # words`): its line is what it says.
    let words = if words.trim().is_empty() {
        let rest = text.get(item.words.start..range.end).unwrap_or_default();
        rest.lines().next().unwrap_or_default()
    } else {
        words
    };
    let start = item.words.start + (words.len() - words.trim_start().len());
    let end = start + words.trim().len();
    Item {
        range,
        words: start..end.max(start),
    }
}

/// From the start of the first line to the end of the last that is not blank, line ending included.
fn whole_lines(text: &str, range: Range<usize>) -> Range<usize> {
    let start = line_start(text, range.start);
    let inside = text.get(range.start..range.end).unwrap_or_default();
    let last = range.start + inside.trim_end().len();
    start..line_end(text, last.max(range.start))
}

pub(crate) fn line_start(text: &str, at: usize) -> usize {
    text.get(..at)
        .and_then(|before| before.rfind('\n'))
        .map_or_else(
            || {
                if text.starts_with('\u{FEFF}') && at >= 3 {
                    3
                } else {
                    0
                }
            },
            |found| found + 1,
        )
}

/// After the line ending of the line that `at` is in, or the end of the text.
pub(crate) fn line_end(text: &str, at: usize) -> usize {
    text.get(at..)
        .and_then(|rest| rest.find('\n'))
        .map_or(text.len(), |found| at + found + 1)
}

/// Whether a fenced block ends with its own fence.
fn is_closed(block: &str) -> bool {
    let mut lines = block.lines();
    let Some(first) = lines.next() else {
        return true;
    };
    let first = first.trim_start();
    let Some(mark) = first.chars().next() else {
        return true;
    };
    let length = first.chars().take_while(|char| *char == mark).count();
    lines.next_back().is_some_and(|last| {
        let last = last.trim();
        last.chars().count() >= length && last.chars().all(|char| char == mark)
    })
}

/// What stands between the first two lines `---`, if the text begins with one, and where the body
/// begins.
pub(crate) fn front_matter(text: &str) -> (Option<Range<usize>>, usize) {
    let begin = if text.starts_with('\u{FEFF}') { 3 } else { 0 };
    let is_rule = |line: &str| line.trim_end_matches(['\r', '\n', ' ', '\t']) == "---";
    let mut at = begin;
    for (number, line) in text
        .get(begin..)
        .unwrap_or_default()
        .split_inclusive('\n')
        .enumerate()
    {
        if number == 0 && !is_rule(line) {
            return (None, begin);
        }
        if number > 0 && is_rule(line) {
            let first = line_end(text, begin);
            return (Some(first..at), at + line.len());
        }
        at += line.len();
    }
    (None, begin)
}

/// Whether what is written after the text would not stand there by itself: in a fence, an HTML
/// block or a `%%` comment that is not closed.
pub(crate) fn ends_open(text: &str) -> bool {
    let probe = format!("{text}\n\nx\n");
    let outline = Outline::of(&probe);
    let stands = outline
        .blocks
        .last()
        .is_some_and(|block| block.range.start == text.len() + 2);
    outline.open_comment || !stands
}

/// The line ending to write: the one most lines have, `\n` if there is none.
pub(crate) fn line_ending(text: &str) -> &'static str {
    let all = text.matches('\n').count();
    let with_return = text.matches("\r\n").count();
    if with_return * 2 > all { "\r\n" } else { "\n" }
}
