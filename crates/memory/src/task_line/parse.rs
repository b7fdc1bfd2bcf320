//! The parser of a task's line.

use std::ops::Range;

use jiff::civil::Date;

use super::field::{Field, Kind, TaskFormat};

/// Number of rounds in which the end of a line is searched for one more field. The plugin's own
/// bound.
const ROUNDS_MAX: usize = 21;

/// The order in which the plugin searches for fields; `None` stands for a tag.
const ORDER: [Option<Kind>; 12] = [
    Some(Kind::Priority),
    Some(Kind::Done),
    Some(Kind::Cancelled),
    Some(Kind::Due),
    Some(Kind::Scheduled),
    Some(Kind::Start),
    Some(Kind::Created),
    Some(Kind::Recurrence),
    Some(Kind::OnCompletion),
    None,
    Some(Kind::Id),
    Some(Kind::DependsOn),
];

/// A task's line and the ranges of its parts, in bytes of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskLine<'a> {
    /// The whole line, without the line ending.
    pub(crate) text: &'a str,
    /// The beginning of the list mark, after indentation and the marks of quotes.
    pub(crate) mark: usize,
    /// The character between the brackets.
    pub(crate) status: char,
    /// The offset of that character.
    pub(crate) status_at: usize,
    /// The text of the task, before all fields and the tags among them.
    pub(crate) words: Range<usize>,
    /// Tags behind the text, among the fields.
    pub(crate) tags: Vec<Range<usize>>,
    pub(crate) fields: Vec<Field>,
    /// The end of text, tags and fields, where a new field is added.
    pub(crate) end: usize,
    /// The block id `^name`, to which other notes can link.
    pub(crate) block_link: Option<Range<usize>>,
}

impl<'a> TaskLine<'a> {
    /// Parses a line, without its line ending; `None` if it is no task, or has no text.
    ///
    /// The caller checks that the line is not in code or in a comment.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let mark = text.len()
            - text
                .trim_start_matches(|char| is_space(char) || char == '>')
                .len();
        let rest = text.get(mark..)?;
        let after_mark = match rest.strip_prefix(['-', '*', '+']) {
            Some(after) => after,
            None => {
                let after = rest.trim_start_matches(|char: char| char.is_ascii_digit());
                if after.len() == rest.len() {
                    return None;
                }
                after.strip_prefix(['.', ')'])?
            }
        };
        // A tab after the list mark makes no task for the plugin.
        let bracket = after_mark.trim_start_matches(' ');
        if bracket.len() == after_mark.len() {
            return None;
        }
        let inside = bracket.strip_prefix('[')?;
        // The `.` of the plugin's pattern matches no character that ends a line.
        let status = inside
            .chars()
            .next()
            .filter(|char| !matches!(char, '\r' | '\u{2028}' | '\u{2029}'))?;
        let after = inside.strip_prefix(status)?.strip_prefix(']')?;
        // Obsidian requires white space there.
        if !after.starts_with([' ', '\t']) {
            return None;
        }
        let status_at = text.len() - inside.len();
        let body = text.len() - after.len();
        // Text behind a character that ends a line elsewhere is ignored, as in the plugin.
        let shown = after.split(['\r', '\u{2028}', '\u{2029}']).next()?;
        let start = body + (shown.len() - shown.trim_start_matches(is_space).len());
        let mut end = start + shown.trim_matches(is_space).len();
        let block_link = block_link(text.get(start..end)?).map(|at| start + at..end);
        if let Some(link) = &block_link {
            end = start
                + text
                    .get(start..link.start)?
                    .trim_end_matches(is_space)
                    .len();
        }
        let mut line = Self {
            text,
            mark,
            status,
            status_at,
            words: start..end,
            tags: Vec::new(),
            fields: Vec::new(),
            end,
            block_link,
        };
        line.parse_fields();
        line.has_words().then_some(line)
    }

    /// Takes fields and tags from the end of the text until there are none.
    fn parse_fields(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let before = self.words.end;
            for kind in ORDER {
                let words = self.text.get(self.words.clone()).unwrap_or_default();
                let offset = self.words.start;
                let at = match kind {
                    Some(kind) => kind.at_end(words).map(|field| {
                        let moved = |range: Range<usize>| range.start + offset..range.end + offset;
                        let at = field.range.start;
                        self.fields.push(Field {
                            range: moved(field.range),
                            value: moved(field.value),
                            ..field
                        });
                        at
                    }),
                    None => {
                        tag_at_end(words).inspect(|at| self.tags.push(at + offset..self.words.end))
                    }
                };
                if let Some(at) = at {
                    let left = words.get(..at).unwrap_or_default();
                    self.words.end = offset + left.trim_end_matches(is_space).len();
                }
            }
            if self.words.end == before {
                break;
            }
        }
        // They were found from the end.
        self.fields.reverse();
        self.tags.reverse();
    }

    /// Returns a part of the line.
    pub(crate) fn has_words(&self) -> bool {
        !self.words.is_empty() || !self.tags.is_empty()
    }

    pub(crate) fn slice(&self, range: &Range<usize>) -> &'a str {
        self.text.get(range.clone()).unwrap_or_default()
    }

    /// Returns the field of a kind that counts: the first, if there are several.
    pub(crate) fn field(&self, kind: Kind) -> Option<&Field> {
        self.fields.iter().find(|field| field.kind == kind)
    }

    /// Returns the value of the field of a kind.
    pub(crate) fn value(&self, kind: Kind) -> Option<&'a str> {
        self.field(kind).map(|field| self.slice(&field.value))
    }

    /// Returns the date of a field, if it exists in the calendar.
    pub(crate) fn date(&self, kind: Kind) -> Option<Date> {
        self.value(kind)?.parse().ok()
    }

    /// Returns the format of the last field; `None` if there is no field.
    pub(crate) fn format(&self) -> Option<TaskFormat> {
        self.fields.last().map(|field| field.format)
    }

    /// Returns the text of the task with its tags.
    pub(crate) fn description(&self) -> String {
        let tags = self.tags.iter().map(|tag| self.slice(tag));
        let words = std::iter::once(self.slice(&self.words)).filter(|words| !words.is_empty());
        words.chain(tags).collect::<Vec<_>>().join(" ")
    }
}

/// Returns true for white space in the sense of JavaScript, in which the plugin is written.
pub(super) fn is_space(char: char) -> bool {
    // The `\s` of JavaScript takes U+FEFF and leaves out U+0085, other than Unicode.
    (char.is_whitespace() && char != '\u{85}') || char == '\u{FEFF}'
}

/// Returns the offset of the block id at the end of a text.
fn block_link(text: &str) -> Option<usize> {
    let at = text.rfind(" ^")?;
    let name = text.get(at + 2..)?;
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_name.then_some(at + 1)
}

/// Returns the offset of the tag at the end of a text. The plugin takes more for tags than Obsidian
/// does: `#1` too.
fn tag_at_end(text: &str) -> Option<usize> {
    let at = text.rfind('#')?;
    let name = text.get(at + 1..)?;
    let ends = |char: char| " !@$%^&*(),.?\":{}|<>".contains(char);
    let begins = text.get(..at)?.chars().next_back().is_none_or(is_space);
    (begins && !name.is_empty() && !name.contains(ends)).then_some(at)
}
