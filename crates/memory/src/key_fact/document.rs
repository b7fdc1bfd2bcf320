//! The file `facts.md`: which of its lines are facts, and edits that leave every other byte alone.
//!
//! Facts are the items of `-`, `*` and `+` lists under the headings Important and Recent under the
//! first `# Key Facts`. Items that are tasks (`- [ ]`), numbered lists, text, other headings, code
//! and comments belong to the owner and are never read as facts.

use std::ops::Range;

use jiff::Zoned;
use jiff::civil::Date;

use super::fact::{IMPORTANT, date_mark, without_important};
use super::record::FactRecord;
use crate::VaultError;
use crate::text::{front_matter_value, insertion, line_below, on_one_line, splice, timestamp};
use crate::vault::markdown::{BlockKind, Item, Outline, line_end, line_ending};

/// A section of the file that holds facts.
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

/// The list item of a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FactItem {
    pub(crate) section: Section,
    /// The bytes of the item, without the last line ending.
    pub(crate) bytes: String,
    /// Its index among the facts of its section.
    pub(crate) index: usize,
    range: Range<usize>,
    text: Range<usize>,
}

/// The parsed file.
#[derive(Debug)]
pub(crate) struct FactsFile {
    text: String,
    outline: Outline,
    /// The block of the heading `# Key Facts`.
    key_facts: Option<usize>,
    items: Vec<FactItem>,
    /// The facts of the items, one for each.
    facts: Vec<FactRecord>,
}

impl FactsFile {
    pub(crate) fn parse(text: &str) -> Self {
        let outline = Outline::parse(text);
        let key_facts = outline.blocks.iter().position(|block| {
            matches!(&block.kind, BlockKind::Heading { level: 1, title } if title.eq_ignore_ascii_case("Key Facts"))
        });
        let mut file = Self {
            text: text.to_owned(),
            outline,
            key_facts,
            items: Vec::new(),
            facts: Vec::new(),
        };
        (file.items, file.facts) = file.read_items().into_iter().unzip();
        file
    }

    /// Returns the items of the facts, in the order of the file.
    pub(crate) fn items(&self) -> &[FactItem] {
        &self.items
    }

    /// Returns the facts, in the order of the file.
    pub(crate) fn facts(&self) -> &[FactRecord] {
        &self.facts
    }

    pub(crate) fn into_facts(self) -> Vec<FactRecord> {
        self.facts
    }

    fn read_items(&self) -> Vec<(FactItem, FactRecord)> {
        let mut found = Vec::new();
        // Lists outside that heading belong to the owner.
        let Some(key_facts) = self.key_facts else {
            return found;
        };
        let mut section = None;
        let mut counts = [0, 0];
        for block in self
            .outline
            .blocks
            .get(self.outline.section(key_facts))
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
                    let count = &mut counts[section as usize];
                    for item in items {
                        if let Some(fact) = self.read_item(item, section, *count) {
                            found.push(fact);
                            *count += 1;
                        }
                    }
                }
                BlockKind::Fence { .. } | BlockKind::Other => {}
            }
        }
        found
    }

    fn read_item(
        &self,
        item: &Item,
        section: Section,
        index: usize,
    ) -> Option<(FactItem, FactRecord)> {
        let text = self.text.get(item.text.clone())?;
        let text = on_one_line(text);
        // Tasks in the section are the owner's.
        if text.is_empty() || is_task(&text) {
            return None;
        }
        let (date, rest) = match date_mark(&text) {
            Some((date, rest)) => (Some(date), rest),
            None => (None, text.as_str()),
        };
        let (content, tagged) = without_important(rest);
        if content.is_empty() {
            return None;
        }
        let bytes = self
            .text
            .get(item.range.clone())?
            .trim_end_matches(['\r', '\n'])
            .to_owned();
        let record = FactRecord {
            date,
            ..FactRecord::undated(content, tagged || section == Section::Important)
        };
        let item = FactItem {
            section,
            bytes,
            index,
            range: item.range.clone(),
            text: item.text.clone(),
        };
        Some((item, record))
    }

    /// Returns the file with one more fact, at the end of its section.
    pub(crate) fn add(&self, content: &str, important: bool, date: Date) -> String {
        let (section, line) = if important {
            (Section::Important, format!("- {content} {IMPORTANT}"))
        } else {
            (Section::Recent, format!("- [{date}] {content}"))
        };
        self.insert(section, usize::MAX, &line)
    }

    /// Returns the file with another text of one fact. Its list mark and what is nested below it
    /// stay; `created` is its date, if it has one. A fact whose importance changes moves to the
    /// other section.
    pub(crate) fn reword(
        &self,
        at: usize,
        content: &str,
        important: bool,
        created: Date,
    ) -> String {
        let (Some(item), Some(record)) = (self.items.get(at), self.facts.get(at)) else {
            return self.text.clone();
        };
        let text = self.text.get(item.text.clone()).unwrap_or_default();
        let tagged = text.split_whitespace().any(|word| word == IMPORTANT);
        // The date stays as its owner wrote it (`[[2025-12-10]]`), unless it is another day.
        let date = match date_mark(text) {
            Some((date, _)) if date != created => format!("[{created}] "),
            Some((_, rest)) => text.strip_suffix(rest).unwrap_or_default().to_owned(),
            None => String::new(),
        };
        if important == record.important {
            let tag = if tagged {
                format!(" {IMPORTANT}")
            } else {
                String::new()
            };
            return self.splice(item.text.clone(), &format!("{date}{content}{tag}"));
        }
        let mark = self
            .text
            .get(item.range.start..item.text.start)
            .unwrap_or("- ");
        // What is nested below the item moves with it.
        let below = self
            .text
            .get(item.text.end..item.range.end)
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
        // It stands in the right section already: only its tag had made it important.
        if item.section == section {
            return self.replace_item(item, &moved);
        }
        // Parsed again, because all ranges behind the removed item have moved.
        Self::parse(&self.remove(item)).insert(section, usize::MAX, &moved)
    }

    /// Returns the file without one fact and what is nested below it.
    pub(crate) fn remove(&self, item: &FactItem) -> String {
        let mut range = item.range.clone();
        // The last line of a file without final line ending takes the ending before it along, so
        // that adding and removing it gives the same bytes.
        let is_unended = range.end == self.text.len() && !self.text.ends_with('\n');
        // Of two blank lines around it one goes too: else each fact that comes and goes would leave
        // one behind.
        let is_between_blanks =
            || self.is_blank_before(range.start) && self.is_blank_from(range.end);
        if is_unended || is_between_blanks() {
            let before = self.text.get(..range.start).unwrap_or_default();
            let kept = before.strip_suffix('\n').unwrap_or(before);
            range.start = kept.strip_suffix('\r').unwrap_or(kept).len();
        }
        self.splice(range, "")
    }

    /// Returns true if the line above the one that begins at `at` is blank.
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

    /// Returns true if the line that begins at `at` is blank, or the text ends there.
    fn is_blank_from(&self, at: usize) -> bool {
        let below = self.text.get(at..).unwrap_or_default().lines().next();
        below.is_none_or(|line| line.trim().is_empty())
    }

    /// Returns the file with other bytes in the place of a fact's item.
    pub(crate) fn replace_item(&self, item: &FactItem, with: &str) -> String {
        let start = item.range.start;
        self.splice(start..start + item.bytes.len(), with)
    }

    /// Returns the file with an item as the fact of this index in a section, or at the end of the
    /// section. Missing headings are written.
    pub(crate) fn insert(&self, section: Section, index: usize, item: &str) -> String {
        let ending = line_ending(&self.text);
        let Some(key_facts) = self.key_facts else {
            // Both headings, so that the owner sees where facts may be written.
            let sections = match section {
                Section::Important => {
                    format!("## Important{ending}{ending}{item}{ending}{ending}## Recent")
                }
                Section::Recent => {
                    format!("## Important{ending}{ending}## Recent{ending}{ending}{item}")
                }
            };
            let block = format!("# Key Facts{ending}{ending}{sections}");
            if self.text.trim_start_matches('\u{FEFF}').trim().is_empty() {
                return format!("{}{block}{ending}", self.text);
            }
            return self.insert_block(self.text.len(), &block);
        };
        let mut here = self.items.iter().filter(|known| known.section == section);
        // An undo gives the index at which the fact stood; a new fact goes to the end.
        if let Some(before) = here.clone().find(|known| known.index == index) {
            let at = before.range.start;
            return self.splice(at..at, &format!("{item}{ending}"));
        }
        if let Some(last) = here.next_back() {
            let at = last.range.end;
            return self.splice(at..at, &line_below(&self.text, at, item));
        }
        if let Some(heading) = self.heading(key_facts, section) {
            return self.insert_block(self.end_of(heading..heading + 1), item);
        }
        let body = format!("## {}{ending}{ending}{item}", section.title());
        match section {
            // Before Recent, or as the first section.
            Section::Important => match self.heading(key_facts, Section::Recent) {
                Some(recent) => {
                    let at = self
                        .outline
                        .blocks
                        .get(recent)
                        .map_or(self.text.len(), |block| block.range.start);
                    self.insert_block(at, &body)
                }
                None => self.insert_block(self.end_of(key_facts..key_facts + 1), &body),
            },
            // After Important, or as the last section.
            Section::Recent => {
                let section = match self.heading(key_facts, Section::Important) {
                    Some(important) => important..self.outline.section(important).end,
                    None => key_facts..self.outline.section(key_facts).end,
                };
                self.insert_block(self.end_of(section), &body)
            }
        }
    }

    fn heading(&self, key_facts: usize, section: Section) -> Option<usize> {
        self.outline.section(key_facts).find(|at| {
            self.outline.blocks.get(*at).is_some_and(|block| {
                matches!(&block.kind, BlockKind::Heading { title, .. } if title.eq_ignore_ascii_case(section.title()))
            })
        })
    }

    /// Returns the end of the last of these blocks.
    fn end_of(&self, blocks: Range<usize>) -> usize {
        blocks
            .rev()
            .find_map(|at| self.outline.blocks.get(at))
            .map_or(self.text.len(), |block| block.range.end)
    }

    fn splice(&self, range: Range<usize>, with: &str) -> String {
        splice(&self.text, range, with)
    }

    fn insert_block(&self, at: usize, block: &str) -> String {
        self.splice(at..at, &insertion(&self.text, at, block))
    }
}

/// Returns a new file with front matter, without facts.
pub(crate) fn new_file(now: &Zoned) -> String {
    let now = timestamp(now);
    format!("---\ntype: memory\ncreated: {now}\nmodified: {now}\n---\n\n")
}

/// Returns the text with the time of its last change in the front matter, if that says `type:
/// memory`; front matter of another type belongs to the owner and stays as it is.
pub(crate) fn touch_modified(text: &str, now: &Zoned) -> String {
    let value = |key: &str| front_matter_value(text, key);
    let kind = value("type").and_then(|range| text.get(range));
    if kind.is_none_or(|kind| scalar(kind) != "memory") {
        return text.to_owned();
    }
    let now = timestamp(now);
    if let Some(modified) = value("modified") {
        return splice(text, modified, &format!(" {now}"));
    }
    let at = match (value("created"), Outline::parse(text).front) {
        (Some(created), _) => line_end(text, created.end),
        (None, Some(front)) => front.end,
        (None, None) => return text.to_owned(),
    };
    let line = format!("modified: {now}{}", line_ending(text));
    splice(text, at..at, &line)
}

/// Returns a plain value of front matter, without quotes and comment.
fn scalar(value: &str) -> &str {
    // In YAML a space and `#` begin a comment.
    let value = value.split(" #").next().unwrap_or(value).trim();
    let unquoted = |mark: char| {
        value
            .strip_prefix(mark)
            .and_then(|value| value.strip_suffix(mark))
    };
    unquoted('"').or_else(|| unquoted('\'')).unwrap_or(value)
}

fn is_task(words: &str) -> bool {
    let mut chars = words.chars();
    chars.next() == Some('[')
        && chars.next().is_some()
        && chars.next() == Some(']')
        && chars.next().is_none_or(char::is_whitespace)
}

/// Parses a changed file and checks that it has exactly the expected facts: a change must not alter
/// other facts, or disappear in Markdown of the owner's.
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
    // Without regard to their order: a change may move a fact to the other section.
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
    Err(VaultError::shape(name, reason))
}
