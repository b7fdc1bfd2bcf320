//! Splits streaming Markdown into blocks that later text cannot change.
//!
//! Each complete line is decided once, from that line and the text before it, so the blocks do not
//! depend on how the text was cut into pieces.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

/// Markdown extensions beyond CommonMark.
pub(super) const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS);

/// Size of an unfinished block, in bytes, up to which every line is parsed. In a longer one only
/// lines that may end it are: otherwise the time for a long table grows with its square.
const EVERY_LINE_BYTES: usize = 4 * 1_024;

/// Bytes of an unfinished block that are held back at most. A longer one is given out in parts, as
/// if each were a block.
const KEPT_BYTES_MAX: usize = 32 * 1_024;

/// A part of the answer that is final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// True if a blank line precedes it.
    pub(super) gap: bool,
    pub(super) content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// Whole blocks, or whole items of a list, in Markdown.
    Markdown(String),
    /// The line that opens a fenced code block.
    FenceOpen(String),
    /// A line inside of a fenced code block.
    Code(String),
    /// The line that closes a fenced code block.
    FenceClose(String),
}

/// Splits streamed text into blocks.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Complete lines whose meaning may still change.
    tail: String,
    /// The unfinished line.
    line: String,
    fence: Option<Fence>,
    /// True once a block was given out.
    any_emitted: bool,
    /// True if a blank line precedes the next block.
    gap: bool,
}

impl Blocks {
    /// Adds text, cut between any two characters, and returns the blocks that are final.
    pub(super) fn push(&mut self, text: &str) -> Vec<Block> {
        let mut done = Vec::new();
        for piece in text.split_inclusive('\n') {
            self.line.push_str(piece);
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut self.line);
                self.line(&line, &mut done);
            }
        }
        done
    }

    /// Returns the remaining blocks. Another text may follow.
    pub(super) fn finish(&mut self) -> Vec<Block> {
        let mut done = Vec::new();
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.line(&line, &mut done);
        }
        self.emit_all(&mut done);
        *self = Self::default();
        done
    }

    /// Returns the text not given out yet, or its last `bytes_max` bytes.
    pub(super) fn unfinished(&self, bytes_max: usize) -> String {
        let line = end_of(&self.line, bytes_max);
        let tail = end_of(&self.tail, bytes_max - line.len());
        [tail, line].concat()
    }

    fn line(&mut self, line: &str, done: &mut Vec<Block>) {
        let bare = line.trim_end_matches('\n');
        match &self.fence {
            Some(fence) if fence.is_closed_by(bare) => {
                done.push(Block {
                    gap: false,
                    content: Content::FenceClose(bare.trim().to_owned()),
                });
                self.fence = None;
                self.gap = true;
            }
            Some(fence) => {
                done.push(Block {
                    gap: false,
                    content: Content::Code(fence.inside(bare).to_owned()),
                });
            }
            None => {
                self.tail.push_str(line);
                let may_end = bare.trim().is_empty() || Fence::opened_by(bare).is_some();
                if self.tail.len() <= EVERY_LINE_BYTES || may_end {
                    self.emit_final(bare, done);
                }
                if self.tail.len() > KEPT_BYTES_MAX {
                    self.emit_all(done);
                }
            }
        }
    }

    /// Returns the blocks before the last one, or the items before the last of a list; and the last
    /// one too if it has ended.
    fn emit_final(&mut self, newest: &str, done: &mut Vec<Block>) {
        let blank = newest.trim().is_empty();
        let Some(last) = last_block(&self.tail) else {
            // Link reference definitions wait for a block; blank lines do not.
            if self.tail.trim().is_empty() {
                self.emit_all(done);
            }
            return;
        };
        let line_start = |at: usize| self.tail[..at].rfind('\n').map_or(0, |newline| newline + 1);
        match last.kind {
            // Lines of code are final one by one, so nothing of the block is held back.
            Kind::Fence => {
                let rest = self.tail.split_off(line_start(last.start));
                self.emit_all(done);
                self.open_fence(&rest, done);
            }
            Kind::List { item } => self.emit(line_start(item), done),
            Kind::Line => self.emit_all(done),
            Kind::UntilBlank if blank => self.emit_all(done),
            Kind::UntilBlank | Kind::UntilNext => self.emit(line_start(last.start), done),
        }
    }

    fn open_fence(&mut self, text: &str, done: &mut Vec<Block>) {
        let (opening, rest) = text.split_once('\n').unwrap_or((text, ""));
        let Some(fence) = Fence::opened_by(opening) else {
            // pulldown-cmark sees a fence that `Fence` does not: it is given out as a block when it
            // has ended.
            self.tail.push_str(text);
            return;
        };
        done.push(Block {
            gap: self.any_emitted,
            content: Content::FenceOpen(opening.trim().to_owned()),
        });
        self.any_emitted = true;
        self.gap = false;
        self.fence = Some(fence);
        for line in rest.split_inclusive('\n') {
            self.line(line, done);
        }
    }

    fn emit_all(&mut self, done: &mut Vec<Block>) {
        self.emit(self.tail.len(), done);
    }

    fn emit(&mut self, end: usize, done: &mut Vec<Block>) {
        let rest = self.tail.split_off(end);
        let text = std::mem::replace(&mut self.tail, rest);
        let from = text
            .find(|c: char| !c.is_whitespace())
            .unwrap_or(text.len());
        // The first line keeps its indentation, which may make it code.
        let from = text[..from].rfind('\n').map_or(0, |newline| newline + 1);
        let body = text[from..].trim_end();
        self.gap |= from > 0;
        if body.is_empty() {
            self.gap |= !text.is_empty();
            return;
        }
        done.push(Block {
            gap: self.gap && self.any_emitted,
            content: Content::Markdown(body.to_owned()),
        });
        self.any_emitted = true;
        self.gap = text[from + body.len()..].matches('\n').count() > 1;
    }
}

/// Returns the end of a text of at most `bytes_max` bytes, cut between characters.
fn end_of(text: &str, bytes_max: usize) -> &str {
    let start =
        (text.len().saturating_sub(bytes_max)..text.len()).find(|at| text.is_char_boundary(*at));
    start.map_or("", |start| &text[start..])
}

/// The last block at the top level.
struct Last {
    /// Position of its first byte after the indentation.
    start: usize,
    kind: Kind,
}

/// The line that ends a block.
enum Kind {
    /// Its own: headings and rules.
    Line,
    /// A blank line, or the start of another block.
    UntilBlank,
    /// The start of another block.
    UntilNext,
    /// The start of another block. Items before the last, which begins at byte `item`, are final.
    List { item: usize },
    /// The closing fence.
    Fence,
}

fn last_block(text: &str) -> Option<Last> {
    let mut last = None;
    let mut depth = 0_usize;
    for (event, range) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
        let start = range.start;
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    last = Some(Last {
                        start,
                        kind: kind(&tag, start),
                    });
                } else if depth == 1
                    && let (
                        Tag::Item,
                        Some(Last {
                            kind: Kind::List { item },
                            ..
                        }),
                    ) = (&tag, &mut last)
                {
                    *item = start;
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Rule if depth == 0 => {
                last = Some(Last {
                    start,
                    kind: Kind::Line,
                })
            }
            _ => {}
        }
    }
    last
}

fn kind(tag: &Tag<'_>, start: usize) -> Kind {
    match tag {
        Tag::Heading { .. } => Kind::Line,
        Tag::Paragraph | Tag::BlockQuote(_) | Tag::Table(_) => Kind::UntilBlank,
        Tag::List(_) => Kind::List { item: start },
        Tag::CodeBlock(CodeBlockKind::Fenced(_)) => Kind::Fence,
        _ => Kind::UntilNext,
    }
}

/// An open fenced code block, by CommonMark 0.31, *Fenced code blocks*.
#[derive(Debug)]
struct Fence {
    mark: char,
    length: usize,
    /// Indentation of the fence, which is removed from its lines.
    indent: usize,
}

impl Fence {
    fn opened_by(line: &str) -> Option<Self> {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let rest = &line[indent..];
        let mark = rest
            .chars()
            .next()
            .filter(|mark| matches!(mark, '`' | '~'))?;
        let length = rest.chars().take_while(|c| *c == mark).count();
        let info = &rest[length..];
        // Four blanks begin indented code, and a backtick behind backticks makes it inline code.
        (indent < 4 && length >= 3 && !(mark == '`' && info.contains('`'))).then_some(Self {
            mark,
            length,
            indent,
        })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let rest = line[indent..].trim_end();
        // With four blanks before it, it would be a line of the code.
        indent < 4 && rest.len() >= self.length && rest.chars().all(|c| c == self.mark)
    }

    fn inside<'a>(&self, line: &'a str) -> &'a str {
        let indent = line.len() - line.trim_start_matches(' ').len();
        &line[indent.min(self.indent)..]
    }
}

#[cfg(test)]
mod tests;
