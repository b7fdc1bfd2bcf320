//! `facts.md`: what in it is ours, and how it is changed without touching anything else.
//!
//! Ours are the items of `-`, `*` and `+` lists under the headings Important and Recent under the
//! first `# Key Facts`. Items that are tasks (`- [ ]`), numbered lists, text, other headings, code
//! and comments belong to the owner and are never read as facts.

use std::ops::Range;

use jiff::Zoned;
use jiff::civil::Date;

use super::fact::{IMPORTANT, date_mark, without_important};
use super::known::Known;
use crate::VaultError;
use crate::vault::markdown::{BlockKind, Item, Outline, line_ending};

/// The two sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Section {
    Important,
    Recent,
}

impl Section {
    fn title(self) -> &'static str {
        match self {
            Self::Important => "Important",
            Self::Recent => "Recent",
        }
    }
}

/// The place and the form of a fact in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) section: Section,
    /// The bytes of the item, without the last line ending.
    pub(crate) bytes: String,
    /// Among the facts of its section, from 0.
    pub(crate) place: usize,
    item: Range<usize>,
    words: Range<usize>,
}

/// The file as it was read.
#[derive(Debug)]
pub(crate) struct FactsFile {
    text: String,
    outline: Outline,
    /// The block of `# Key Facts`.
    part: Option<usize>,
    lines: Vec<Line>,
    /// The facts of the lines, one for each.
    facts: Vec<Known>,
}

impl FactsFile {
    pub(crate) fn parse(text: &str) -> Self {
        let outline = Outline::of(text);
        let part = outline.blocks.iter().position(|block| {
            matches!(&block.kind, BlockKind::Heading { level: 1, title } if title.eq_ignore_ascii_case("Key Facts"))
        });
        let mut file = Self {
            text: text.to_owned(),
            outline,
            part,
            lines: Vec::new(),
            facts: Vec::new(),
        };
        (file.lines, file.facts) = file.read_lines().into_iter().unzip();
        file
    }

    /// The lines of the facts, in the order of the file.
    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The facts, in the order of the file.
    pub(crate) fn facts(&self) -> &[Known] {
        &self.facts
    }

    pub(crate) fn into_facts(self) -> Vec<Known> {
        self.facts
    }

    fn read_lines(&self) -> Vec<(Line, Known)> {
        let mut lines = Vec::new();
        let Some(part) = self.part else { return lines };
        let mut section = None;
        let mut places = [0, 0];
        for block in self
            .outline
            .blocks
            .get(self.outline.section(part))
            .unwrap_or_default()
        {
            match &block.kind {
                BlockKind::Heading { title, .. } => {
                    section = [Section::Important, Section::Recent]
                        .into_iter()
                        .find(|section| title.eq_ignore_ascii_case(section.title()));
                }
                BlockKind::Bullets(items) => {
                    let Some(section) = section else { continue };
                    let place = &mut places[section as usize];
                    for item in items {
                        if let Some(line) = self.line(item, section, *place) {
                            lines.push(line);
                            *place += 1;
                        }
                    }
                }
                BlockKind::Fence { .. } | BlockKind::Other => {}
            }
        }
        lines
    }

    fn line(&self, item: &Item, section: Section, place: usize) -> Option<(Line, Known)> {
        let words = self.text.get(item.words.clone())?;
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        if words.is_empty() || is_task(&words) {
            return None;
        }
        let (date, rest) = match date_mark(&words) {
            Some((date, rest)) => (Some(date), rest),
            None => (None, words.as_str()),
        };
        let (content, tagged) = without_important(rest);
        if content.is_empty() {
            return None;
        }
        let important = tagged || section == Section::Important;
        let bytes = self
            .text
            .get(item.range.clone())?
            .trim_end_matches(['\r', '\n'])
            .to_owned();
        let (item, words) = (item.range.clone(), item.words.clone());
        let known = Known {
            content,
            important,
            date,
            created_at: None,
            source: None,
        };
        Some((
            Line {
                section,
                bytes,
                place,
                item,
                words,
            },
            known,
        ))
    }

    /// With one more fact, at the end of its section.
    pub(crate) fn add(&self, content: &str, important: bool, date: Date) -> String {
        let (section, line) = if important {
            (Section::Important, format!("- {content} {IMPORTANT}"))
        } else {
            (Section::Recent, format!("- [{date}] {content}"))
        };
        self.insert(section, usize::MAX, &line)
    }

    /// With other words in one line. Its mark and whatever hangs below it stay; `created` is its
    /// date, if it has one. A fact that becomes important, or is no longer, moves to the other
    /// section.
    pub(crate) fn reword(
        &self,
        at: usize,
        content: &str,
        important: bool,
        created: Date,
    ) -> String {
        let (Some(line), Some(known)) = (self.lines.get(at), self.facts.get(at)) else {
            return self.text.clone();
        };
        let words = self.text.get(line.words.clone()).unwrap_or_default();
        let tagged = words.split_whitespace().any(|word| word == IMPORTANT);
        // The mark stays as it is written, unless it is another day's.
        let date = match date_mark(words) {
            Some((date, _)) if date != created => format!("[{created}] "),
            Some((_, rest)) => words.strip_suffix(rest).unwrap_or_default().to_owned(),
            None => String::new(),
        };
        if important == known.important {
            let tag = if tagged {
                format!(" {IMPORTANT}")
            } else {
                String::new()
            };
            return self.splice(line.words.clone(), &format!("{date}{content}{tag}"));
        }
        let mark = self
            .text
            .get(line.item.start..line.words.start)
            .unwrap_or("- ");
        let below = self
            .text
            .get(line.words.end..line.item.end)
            .unwrap_or_default();
        let below = below.trim_end_matches(['\r', '\n']);
        let (section, moved) = if important {
            (
                Section::Important,
                format!("{mark}{content} {IMPORTANT}{below}"),
            )
        } else {
            (
                Section::Recent,
                format!("{mark}[{created}] {content}{below}"),
            )
        };
        if line.section == section {
            return self.splice(line.item.start..line.item.start + line.bytes.len(), &moved);
        }
        Self::parse(&self.remove(line)).insert(section, usize::MAX, &moved)
    }

    /// Without one fact and what hangs below it.
    pub(crate) fn remove(&self, line: &Line) -> String {
        let mut range = line.item.clone();
        // The last line of a file without final line ending takes the one before it away, so that
        // adding and removing it gives the same bytes.
        if range.end == self.text.len() && !self.text.ends_with('\n') {
            let before = self.text.get(..range.start).unwrap_or_default();
            let kept = before.strip_suffix('\n').unwrap_or(before);
            range.start = kept.strip_suffix('\r').unwrap_or(kept).len();
        } else if self.is_blank_before(range.start) && self.is_blank_from(range.end) {
            // Of two blank lines around it one goes too: else each fact that comes and goes would
            // leave one behind.
            let before = self.text.get(..range.start).unwrap_or_default();
            let kept = before.strip_suffix('\n').unwrap_or(before);
            range.start = kept.strip_suffix('\r').unwrap_or(kept).len();
        }
        self.splice(range, "")
    }

    /// Whether the line above the one that begins here is blank.
    fn is_blank_before(&self, at: usize) -> bool {
        let mut above = self
            .text
            .get(..at)
            .unwrap_or_default()
            .split_inclusive('\n')
            .rev();
        above
            .next()
            .is_some_and(|line| line.ends_with('\n') && line.trim().is_empty())
    }

    /// Whether the line that begins here is blank, or the text ends here.
    fn is_blank_from(&self, at: usize) -> bool {
        let below = self.text.get(at..).unwrap_or_default().lines().next();
        below.is_none_or(|line| line.trim().is_empty())
    }

    /// With a fact's whole item as these bytes.
    pub(crate) fn put_bytes(&self, line: &Line, item: &str) -> String {
        self.splice(line.item.start..line.item.start + line.bytes.len(), item)
    }

    /// With an item as the `place`th fact of a section, or at its end. Headings that are missing
    /// are written.
    pub(crate) fn insert(&self, section: Section, place: usize, item: &str) -> String {
        let ending = line_ending(&self.text);
        if self.text.trim_start_matches('\u{FEFF}').trim().is_empty() {
            let [important, recent] = match section {
                Section::Important => [format!("{item}{ending}{ending}"), String::new()],
                Section::Recent => [String::new(), format!("{ending}{item}{ending}")],
            };
            let part = format!(
                "# Key Facts{ending}{ending}## Important{ending}{ending}{important}## Recent{ending}{recent}"
            );
            return format!("{}{part}", self.text);
        }
        let Some(part) = self.part else {
            let body = match section {
                Section::Important => {
                    format!("## Important{ending}{ending}{item}{ending}{ending}## Recent")
                }
                Section::Recent => {
                    format!("## Important{ending}{ending}## Recent{ending}{ending}{item}")
                }
            };
            return self.insert_block(
                self.text.len(),
                &format!("# Key Facts{ending}{ending}{body}"),
            );
        };
        let mut here = self.lines.iter().filter(|line| line.section == section);
        if let Some(before) = here.clone().find(|line| line.place == place) {
            return self.splice(
                before.item.start..before.item.start,
                &format!("{item}{ending}"),
            );
        }
        if let Some(last) = here.next_back() {
            return self.insert_line(last.item.end, item);
        }
        if let Some(heading) = self.heading(part, section) {
            let at = self
                .outline
                .blocks
                .get(heading)
                .map_or(self.text.len(), |block| block.range.end);
            return self.insert_block(at, item);
        }
        let body = format!("## {}{ending}{ending}{item}", section.title());
        match section {
            // Before Recent, or as the first section.
            Section::Important => match self.heading(part, Section::Recent) {
                Some(recent) => {
                    let at = self
                        .outline
                        .blocks
                        .get(recent)
                        .map_or(self.text.len(), |block| block.range.start);
                    self.insert_block(at, &body)
                }
                None => self.insert_block(self.end_of(part..part + 1), &body),
            },
            // After Important, or as the last section.
            Section::Recent => {
                let section = match self.heading(part, Section::Important) {
                    Some(important) => important..self.outline.section(important).end,
                    None => part..self.outline.section(part).end,
                };
                self.insert_block(self.end_of(section), &body)
            }
        }
    }

    fn heading(&self, part: usize, section: Section) -> Option<usize> {
        self.outline.section(part).find(|at| {
            self.outline.blocks.get(*at).is_some_and(|block| {
                matches!(&block.kind, BlockKind::Heading { title, .. } if title.eq_ignore_ascii_case(section.title()))
            })
        })
    }

    /// Where the last of these blocks ends.
    fn end_of(&self, blocks: Range<usize>) -> usize {
        blocks
            .rev()
            .find_map(|at| self.outline.blocks.get(at))
            .map_or(self.text.len(), |block| block.range.end)
    }

    fn splice(&self, range: Range<usize>, with: &str) -> String {
        splice(&self.text, range, with)
    }

    /// A line of its own directly after the line that ends at `at`.
    fn insert_line(&self, at: usize, line: &str) -> String {
        let ending = line_ending(&self.text);
        let open = at == self.text.len() && !self.text.ends_with('\n');
        let text = if open {
            format!("{ending}{line}")
        } else {
            format!("{line}{ending}")
        };
        self.splice(at..at, &text)
    }

    fn insert_block(&self, at: usize, block: &str) -> String {
        insert_block(&self.text, at, block)
    }
}

/// `text` with `range` replaced.
pub(crate) fn splice(text: &str, range: Range<usize>, with: &str) -> String {
    let (before, after) = (text.get(..range.start), text.get(range.end..));
    format!(
        "{}{with}{}",
        before.unwrap_or_default(),
        after.unwrap_or_default()
    )
}

/// `text` with a block at `at`, the start of a line, and a blank line before and after it.
pub(crate) fn insert_block(text: &str, at: usize, block: &str) -> String {
    splice(text, at..at, &insertion(text, at, block))
}

/// What has to be inserted at `at`, the start of a line, so that `block` stands there with a blank
/// line before and after it. A file without final line ending stays one.
pub(crate) fn insertion(text: &str, at: usize, block: &str) -> String {
    let ending = line_ending(text);
    let (before, after) = (
        text.get(..at).unwrap_or_default(),
        text.get(at..).unwrap_or_default(),
    );
    let mut new = String::new();
    let is_start = before.trim_start_matches('\u{FEFF}').is_empty();
    let had_final = is_start || before.ends_with('\n');
    if !had_final {
        new.push_str(ending);
    }
    let blank_before = is_start
        || before.strip_suffix('\n').is_some_and(|line| {
            let line = line.strip_suffix('\r').unwrap_or(line);
            line.is_empty() || line.ends_with('\n')
        });
    if !blank_before {
        new.push_str(ending);
    }
    new.push_str(block);
    if !after.is_empty() {
        new.push_str(ending);
        if !after.starts_with(['\r', '\n']) {
            new.push_str(ending);
        }
    } else if had_final {
        new.push_str(ending);
    }
    new
}

/// A new file in the seed's form, without facts.
pub(crate) fn new_file(now: &Zoned) -> String {
    let now = stamp(now);
    format!("---\ntype: memory\ncreated: {now}\nmodified: {now}\n---\n\n")
}

/// The text with `modified` set, if the front matter says `type: memory`; else as it is.
pub(crate) fn touch(text: &str, now: &Zoned) -> String {
    let outline = Outline::of(text);
    let Some(front) = outline.front.clone() else {
        return text.to_owned();
    };
    let mut at = front.start;
    let (mut ours, mut modified, mut created_end) = (false, None, None);
    for line in text
        .get(front.clone())
        .unwrap_or_default()
        .split_inclusive('\n')
    {
        let bare = line.trim_end_matches(['\r', '\n']);
        if let Some((key, value)) = bare.split_once(':') {
            match key {
                "type" => ours = scalar(value) == "memory",
                "modified" => modified = Some(at + key.len() + 1..at + bare.len()),
                "created" => created_end = Some(at + line.len()),
                _ => {}
            }
        }
        at += line.len();
    }
    if !ours {
        return text.to_owned();
    }
    match modified {
        Some(value) => splice(text, value, &format!(" {}", stamp(now))),
        None => {
            let place = created_end.unwrap_or(front.end);
            splice(
                text,
                place..place,
                &format!("modified: {}{}", stamp(now), line_ending(text)),
            )
        }
    }
}

/// A plain value of front matter, without quotes and comment.
fn scalar(value: &str) -> &str {
    let value = value.split(" #").next().unwrap_or(value).trim();
    let unquoted = |mark: char| {
        value
            .strip_prefix(mark)
            .and_then(|value| value.strip_suffix(mark))
    };
    unquoted('"').or_else(|| unquoted('\'')).unwrap_or(value)
}

/// The seed's form of a time: local, to the second, without zone.
fn stamp(now: &Zoned) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

fn is_task(words: &str) -> bool {
    let mut chars = words.chars();
    chars.next() == Some('[')
        && chars.next().is_some()
        && chars.next() == Some(']')
        && chars.next().is_none_or(char::is_whitespace)
}

/// Whether a change did what it was meant to, and nothing else to the facts: what is written is
/// read again first.
///
/// # Errors
/// [`VaultError::Shape`].
pub(crate) fn verify(
    name: &str,
    new: &str,
    expected: &mut [(bool, String)],
) -> Result<(), VaultError> {
    let file = FactsFile::parse(new);
    let mut found: Vec<(bool, String)> = file
        .facts
        .iter()
        .map(|fact| (fact.important, fact.content.clone()))
        .collect();
    found.sort();
    expected.sort();
    if found == expected {
        return Ok(());
    }
    let open = file.outline.open_comment
        || file
            .outline
            .blocks
            .iter()
            .any(|block| block.kind == (BlockKind::Fence { closed: false }));
    let reason = if open {
        "a code block or a %% comment in it is not closed, and a fact would disappear in it"
    } else {
        "the fact would not stand as a line of its own under # Key Facts"
    };
    Err(VaultError::Shape {
        name: name.to_owned(),
        reason: reason.to_owned(),
    })
}
