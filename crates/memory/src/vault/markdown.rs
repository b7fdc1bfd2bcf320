//! The outline of a note: its blocks with their byte ranges. CommonMark as `pulldown-cmark` reads
//! it, and the front matter and `%%` comments that Obsidian adds.
//!
//! Only ranges are taken from the parser; text is never written back from it, so what is not edited
//! keeps its bytes.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

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
    /// A heading of level 1 to 6, and its text.
    Heading { level: u8, title: String },
    /// The items of a list with `-`, `*` or `+`.
    Bullets(Vec<Item>),
    /// A fenced code block; `closed` by its own fence, not by the end of the note.
    Fence { closed: bool },
    /// Any other block, and every block inside a comment.
    Other,
}

/// An item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// The whole item, from the start of its line, with all that is nested below it.
    pub(crate) range: Range<usize>,
    /// The text of its first paragraph, as it is in the note.
    pub(crate) text: Range<usize>,
}

/// A note's text, divided into blocks.
#[derive(Debug)]
pub(crate) struct Outline {
    /// The beginning of the body: after a byte order mark and the front matter.
    pub(crate) body: usize,
    /// The range between the lines `---`, if there is front matter.
    pub(crate) front: Option<Range<usize>>,
    pub(crate) blocks: Vec<Block>,
    /// The starts of the lines on which list items begin, at any depth, also in quotes.
    pub(crate) item_lines: Vec<usize>,
    /// Code and comments, in which no tag, link or heading is read. In order, without overlap.
    pub(crate) opaque: Vec<Range<usize>>,
    /// True if a `%%` comment is not closed: Obsidian does not show what follows it.
    pub(crate) open_comment: bool,
}

impl Block {
    /// Returns true for a heading, a list or a code block, which give a note its structure.
    pub(crate) fn is_structure(&self) -> bool {
        self.kind != BlockKind::Other
    }
}

impl Outline {
    pub(crate) fn parse(text: &str) -> Self {
        let (front, body) = front_matter(text);
        let mut outline = Self {
            body,
            front,
            blocks: Vec::new(),
            item_lines: Vec::new(),
            opaque: Vec::new(),
            open_comment: false,
        };
        outline.scan(text);
        outline
    }

    fn scan(&mut self, text: &str) {
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
                Event::Code(_) => self.opaque.push(range.clone()),
                Event::Start(Tag::CodeBlock(kind)) => {
                    fenced = matches!(kind, CodeBlockKind::Fenced(_));
                    self.opaque.push(range.clone());
                }
                Event::Start(Tag::Item) => {
                    // The range of an item that is indented by a tab begins at the end of the line
                    // above.
                    let item = text.get(range.clone()).unwrap_or_default();
                    let ends = item.len() - item.trim_start_matches(['\r', '\n']).len();
                    self.item_lines.push(line_start(text, range.start + ends));
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
                item.text.end = item.text.end.min(range.start);
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
                        item.text.end = item.text.end.min(range.end);
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
                                level: level as u8,
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
        self.mark_comments(text);
    }

    /// Finds Obsidian's comments, which `%%` opens and closes, over any number of blocks, but not
    /// inside code.
    fn mark_comments(&mut self, text: &str) {
        // Obsidian's own syntax, which the parser of CommonMark does not know.
        let mut marks = Vec::new();
        let mut at = self.body;
        while let Some(found) = text.get(at..).and_then(|rest| rest.find("%%")) {
            let mark = at + found;
            if !contains_offset(&self.opaque, mark) {
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
            if contains_offset(&comments, block.range.start) {
                block.kind = BlockKind::Other;
            }
        }
        // Code in a comment is a part of the comment: the ranges must not overlap.
        self.opaque
            .retain(|code| !contains_offset(&comments, code.start));
        self.opaque.extend(comments);
        self.opaque.sort_by_key(|range| range.start);
    }

    /// Returns true if a byte is in code or in a comment.
    pub(crate) fn is_opaque(&self, at: usize) -> bool {
        contains_offset(&self.opaque, at)
    }

    /// Returns the indexes of the blocks of the section under a heading: after the heading at `at`,
    /// before the next of the same or a higher level.
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

/// Returns true if one of the ranges contains a byte. The ranges are in order, and none begins
/// within another.
pub(crate) fn contains_offset(ranges: &[Range<usize>], at: usize) -> bool {
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

/// Returns an item whose text begins after its mark. The end of the text is found by the blocks
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
        text: words..range.end,
    }
}

/// Returns an item without blank lines at its end, its text without white space around it.
fn trimmed(text: &str, item: Item) -> Item {
    let range = whole_lines(text, item.range);
    let words = text.get(item.text.clone()).unwrap_or_default();
    // The first child is no paragraph (`- # Title`): its line is the text.
    let words = if words.trim().is_empty() {
        let rest = text.get(item.text.start..range.end).unwrap_or_default();
        rest.lines().next().unwrap_or_default()
    } else {
        words
    };
    let start = item.text.start + (words.len() - words.trim_start().len());
    let end = start + words.trim().len();
    Item {
        range,
        text: start..end.max(start),
    }
}

/// Returns the range from the start of its first line to the end of its last that is not blank,
/// line ending included.
fn whole_lines(text: &str, range: Range<usize>) -> Range<usize> {
    let start = line_start(text, range.start);
    let inside = text.get(range.start..range.end).unwrap_or_default();
    let last = range.start + inside.trim_end().len();
    start..line_end(text, last.max(range.start))
}

/// Returns the number of bytes of the byte order mark at the beginning of a text, if it has one.
pub(crate) fn bom_len(text: &str) -> usize {
    if text.starts_with('\u{FEFF}') { 3 } else { 0 }
}

/// Returns the start of the line that `at` is in, after a byte order mark.
pub(crate) fn line_start(text: &str, at: usize) -> usize {
    text.get(..at)
        .and_then(|before| before.rfind('\n'))
        .map_or(bom_len(text).min(at), |found| found + 1)
}

/// Returns the offset after the line ending of the line that `at` is in, or the end of the text.
pub(crate) fn line_end(text: &str, at: usize) -> usize {
    text.get(at..)
        .and_then(|rest| rest.find('\n'))
        .map_or(text.len(), |found| at + found + 1)
}

/// Returns true if a fenced block ends with its own fence.
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
        // CommonMark: at least as many of the same mark, and nothing else on the line.
        last.chars().count() >= length && last.chars().all(|char| char == mark)
    })
}

/// Returns the range between the first two lines `---`, if the text begins with one, and the
/// beginning of the body.
pub(crate) fn front_matter(text: &str) -> (Option<Range<usize>>, usize) {
    let begin = bom_len(text);
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

/// Returns true if text that is appended to a note would not be a block of its own: the note ends
/// in a fence, an HTML block or a `%%` comment that is not closed.
pub(crate) fn ends_open(text: &str) -> bool {
    // Parsed with a paragraph behind it: the parser knows best what becomes of it.
    let probe = format!("{text}\n\nx\n");
    let outline = Outline::parse(&probe);
    let stands = outline
        .blocks
        .last()
        .is_some_and(|block| block.range.start == text.len() + 2);
    outline.open_comment || !stands
}

/// Returns the line ending to write: the one of most lines, `\n` if there is none.
pub(crate) fn line_ending(text: &str) -> &'static str {
    let all = text.matches('\n').count();
    let with_return = text.matches("\r\n").count();
    if with_return * 2 > all { "\r\n" } else { "\n" }
}
