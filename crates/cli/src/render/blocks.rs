//! Markdown that arrives in pieces, cut into blocks that nothing that follows can change.
//!
//! Decisions are made once for each complete line, on that line and what stands before it. So the
//! blocks do not depend on the pieces the text arrives in.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

/// What of Markdown is understood beside CommonMark.
pub(super) const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS);

/// Bytes of an unfinished block up to which every line is looked at. Of a longer one, only lines
/// that may end it: else the time for a long table grows with its square.
const EVERY_LINE_BYTES: usize = 4 * 1_024;

/// Bytes of an unfinished block that are kept back at most. A longer one is shown in parts, as if
/// each were a block.
const KEPT_BYTES_MAX: usize = 32 * 1_024;

/// Something final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// Whether a blank line stands before it.
    pub(super) gap: bool,
    pub(super) content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// Whole blocks, or whole items of a list, as they were written.
    Markdown(String),
    /// The line that begins a code block, as it was written.
    FenceOpen(String),
    /// A line of the code block.
    Code(String),
    /// The line that ends it.
    FenceClose(String),
}

/// Takes text and gives blocks.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Complete lines that may still change their meaning.
    tail: String,
    /// The line that is being written.
    line: String,
    fence: Option<Fence>,
    /// Whether anything was given.
    begun: bool,
    /// Whether a blank line stands before what comes next.
    gap: bool,
}

impl Blocks {
    /// Takes the next piece, cut between any two characters.
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

    /// The rest. Another text may follow.
    pub(super) fn finish(&mut self) -> Vec<Block> {
        let mut done = Vec::new();
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.line(&line, &mut done);
        }
        self.give_all(&mut done);
        *self = Self::default();
        done
    }

    /// What was taken and not given yet, or its end.
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
                    self.give_final(bare, done);
                }
                if self.tail.len() > KEPT_BYTES_MAX {
                    self.give_all(done);
                }
            }
        }
    }

    /// Gives what stands before the last block, or before the last item of a list; the last block
    /// too if it has ended.
    fn give_final(&mut self, newest: &str, done: &mut Vec<Block>) {
        let blank = newest.trim().is_empty();
        let Some(last) = last_block(&self.tail) else {
            // Reference definitions wait for a block; blank lines do not.
            if self.tail.trim().is_empty() {
                self.give_all(done);
            }
            return;
        };
        let line_start = |at: usize| self.tail[..at].rfind('\n').map_or(0, |newline| newline + 1);
        match last.kind {
            Kind::Fence => {
                let rest = self.tail.split_off(line_start(last.start));
                self.give_all(done);
                self.open_fence(&rest, done);
            }
            Kind::List { item } => self.give(line_start(item), done),
            Kind::Line => self.give_all(done),
            Kind::UntilBlank if blank => self.give_all(done),
            Kind::UntilBlank | Kind::UntilNext => self.give(line_start(last.start), done),
        }
    }

    fn open_fence(&mut self, text: &str, done: &mut Vec<Block>) {
        let (opening, rest) = text.split_once('\n').unwrap_or((text, ""));
        let Some(fence) = Fence::opened_by(opening) else {
            // The parser knows a fence that we do not: it is shown as a block when it has ended.
            self.tail.push_str(text);
            return;
        };
        done.push(Block {
            gap: self.begun,
            content: Content::FenceOpen(opening.trim().to_owned()),
        });
        self.begun = true;
        self.gap = false;
        self.fence = Some(fence);
        for line in rest.split_inclusive('\n') {
            self.line(line, done);
        }
    }

    fn give_all(&mut self, done: &mut Vec<Block>) {
        self.give(self.tail.len(), done);
    }

    fn give(&mut self, end: usize, done: &mut Vec<Block>) {
        let rest = self.tail.split_off(end);
        let text = std::mem::replace(&mut self.tail, rest);
        let from = text
            .find(|c: char| !c.is_whitespace())
            .unwrap_or(text.len());
        // The first line keeps its indentation: it may be what makes it code.
        let from = text[..from].rfind('\n').map_or(0, |newline| newline + 1);
        let body = text[from..].trim_end();
        self.gap |= from > 0;
        if body.is_empty() {
            self.gap |= !text.is_empty();
            return;
        }
        done.push(Block {
            gap: self.gap && self.begun,
            content: Content::Markdown(body.to_owned()),
        });
        self.begun = true;
        self.gap = text[from + body.len()..].matches('\n').count() > 1;
    }
}

/// The last characters of a text that have at most so many bytes.
fn end_of(text: &str, bytes_max: usize) -> &str {
    let start =
        (text.len().saturating_sub(bytes_max)..text.len()).find(|at| text.is_char_boundary(*at));
    start.map_or("", |start| &text[start..])
}

/// The last block at the top level.
struct Last {
    /// Its first byte, behind its indentation.
    start: usize,
    kind: Kind,
}

/// When a block is over.
enum Kind {
    /// With its line: headings and rules.
    Line,
    /// With a blank line, or when another begins.
    UntilBlank,
    /// When another begins.
    UntilNext,
    /// The same; its items before the last one, which begins at this byte, are over.
    List { item: usize },
    /// With the line that closes it.
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

/// An open code block. Source: CommonMark 0.31, *Fenced code blocks*.
#[derive(Debug)]
struct Fence {
    mark: char,
    length: usize,
    /// Spaces before it, which its lines may have too.
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
        (indent < 4 && length >= 3 && !(mark == '`' && info.contains('`'))).then_some(Self {
            mark,
            length,
            indent,
        })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let rest = line[indent..].trim_end();
        indent < 4 && rest.len() >= self.length && rest.chars().all(|c| c == self.mark)
    }

    fn inside<'a>(&self, line: &'a str) -> &'a str {
        let indent = line.len() - line.trim_start_matches(' ').len();
        &line[indent.min(self.indent)..]
    }
}

#[cfg(test)]
mod tests;
