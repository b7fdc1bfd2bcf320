//! Edits of a task's line: another text, another date, completion.

use std::ops::Range;

use jiff::civil::Date;

use super::field::{Field, Kind, TaskFormat};
use super::parse::{TaskLine, is_space};
use super::recurrence::{Recurrence, shift};

/// The owner's settings for how the plugin writes tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Style {
    /// The format for a line that has no field yet.
    pub(crate) format: TaskFormat,
    /// A text that every task must have, mostly a tag; empty for none.
    pub(crate) global_filter: String,
    /// True if a completed task gets its date.
    pub(crate) done_date: bool,
    /// True if a new task gets its date.
    pub(crate) created_date: bool,
    /// True if the next occurrence of a task is written below the completed one, not above.
    pub(crate) next_below: bool,
    /// True if the next occurrence gets no scheduled date when it has another.
    pub(crate) drop_scheduled: bool,
}

impl Default for Style {
    /// Returns the plugin's defaults.
    fn default() -> Self {
        Self {
            format: TaskFormat::Emoji,
            global_filter: String::new(),
            done_date: true,
            created_date: false,
            next_below: false,
            drop_scheduled: false,
        }
    }
}

/// The lines that the completion of a task makes of its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Completion {
    /// The completed line; `None` if the task is to be deleted when it is done (`🏁 delete`).
    pub(crate) done: Option<String>,
    /// The line of the next occurrence.
    pub(crate) next: Option<String>,
}

/// Replacements of parts of one line.
struct Draft<'a> {
    line: &'a TaskLine<'a>,
    /// In any order, without overlap.
    changes: Vec<(Range<usize>, String)>,
}

impl<'a> Draft<'a> {
    fn new(line: &'a TaskLine<'a>) -> Self {
        Self {
            line,
            changes: Vec::new(),
        }
    }

    fn replace(&mut self, range: Range<usize>, with: impl Into<String>) {
        self.changes.push((range, with.into()));
    }

    /// Removes a part, with the white space before it.
    fn remove(&mut self, range: &Range<usize>) {
        let before = self.line.text.get(..range.start).unwrap_or_default();
        // The space after the brackets makes the line a task.
        let start = before
            .trim_end_matches(is_space)
            .len()
            .max(self.line.words.start);
        self.replace(start..range.end, "");
    }

    /// Sets the value of a field, in the field's own format; a new field goes to the end.
    fn set(&mut self, kind: Kind, value: &str, style: &Style) {
        match self.line.field(kind) {
            Some(field) => {
                let value = kind.value_in(field.format, value);
                if self.line.slice(&field.value) != value {
                    self.replace(field.value.clone(), value);
                }
            }
            None => {
                let format = self.line.format().unwrap_or(style.format);
                self.replace(self.line.end..self.line.end, kind.to_text(format, value));
            }
        }
    }

    /// Removes all fields of a kind.
    fn clear(&mut self, kind: Kind) {
        for field in self.line.fields.iter().filter(|field| field.kind == kind) {
            self.remove(&field.range);
        }
    }

    fn finish(mut self) -> String {
        // The sort is stable: texts that are inserted at one position stay in their order.
        self.changes
            .sort_by_key(|(range, _)| (range.start, range.end));
        let mut text = String::new();
        let mut at = 0;
        for (range, with) in self.changes {
            text.push_str(self.line.text.get(at..range.start).unwrap_or_default());
            text.push_str(&with);
            at = range.end.max(at);
        }
        text.push_str(self.line.text.get(at..).unwrap_or_default());
        text
    }
}

/// Completes a task on a day.
///
/// # Errors
/// A message for the user, if its recurrence is not supported.
pub(crate) fn complete(
    line: &TaskLine<'_>,
    today: Date,
    style: &Style,
) -> Result<Completion, String> {
    let next = match line.value(Kind::Recurrence) {
        Some(rule) => Some(next_occurrence(line, rule, today, style)?),
        None => None,
    };
    let deletes = line
        .value(Kind::OnCompletion)
        .is_some_and(|what| what.eq_ignore_ascii_case("delete"));
    if deletes {
        return Ok(Completion { done: None, next });
    }
    let mut draft = Draft::new(line);
    draft.replace(line.status_at..line.status_at + line.status.len_utf8(), "x");
    draft.clear(Kind::Cancelled);
    if style.done_date {
        draft.set(Kind::Done, &today.to_string(), style);
    }
    Ok(Completion {
        done: Some(draft.finish()),
        next,
    })
}

/// Returns the line of a task's next occurrence.
fn next_occurrence(
    line: &TaskLine<'_>,
    rule: &str,
    today: Date,
    style: &Style,
) -> Result<String, String> {
    let Some(recurrence) = Recurrence::parse(rule) else {
        return Err(format!(
            "it recurs \"{rule}\", and only \"every N days|weeks|months|years\" is carried out here, with or without \"when done\"; complete it in Obsidian, or change the rule"
        ));
    };
    let dates = if style.drop_scheduled {
        [Kind::Due, Kind::Start, Kind::Scheduled]
    } else {
        [Kind::Due, Kind::Scheduled, Kind::Start]
    };
    let reference = match dates.iter().find_map(|kind| line.value(*kind)) {
        // The parser's error would say no more than that the day does not exist.
        Some(text) => Some(text.parse::<Date>().map_err(|_| no_such_day(text))?),
        None => None,
    };
    let from = if recurrence.when_done {
        today
    } else {
        reference.unwrap_or(today)
    };
    let too_far = || format!("its next date, {rule} after {from}, is beyond what a calendar has");
    let next = recurrence.after(from).ok_or_else(too_far)?;
    let mut draft = Draft::new(line);
    draft.replace(line.status_at..line.status_at + line.status.len_utf8(), " ");
    // The next occurrence is a task of its own: it is open, and an id must stand once in a vault.
    for kind in [Kind::Done, Kind::Cancelled, Kind::Id, Kind::DependsOn] {
        draft.clear(kind);
    }
    let has_other = line.field(Kind::Due).is_some() || line.field(Kind::Start).is_some();
    for kind in dates {
        let (Some(text), Some(reference)) = (line.value(kind), reference) else {
            continue;
        };
        if kind == Kind::Scheduled && style.drop_scheduled && has_other {
            draft.clear(kind);
            continue;
        }
        let date: Date = text.parse().map_err(|_| no_such_day(text))?;
        draft.set(
            kind,
            &shift(date, reference, next)
                .ok_or_else(too_far)?
                .to_string(),
            style,
        );
    }
    if style.created_date {
        draft.set(Kind::Created, &today.to_string(), style);
    } else {
        draft.clear(Kind::Created);
    }
    // A block id must stand once in a note.
    if let Some(link) = &line.block_link {
        draft.remove(link);
    }
    let text = draft.finish();
    Ok(text.trim_end_matches(is_space).to_owned())
}

fn no_such_day(text: &str) -> String {
    format!(
        "its date {text} is no day of the calendar, so its next one cannot be found; correct it first"
    )
}

/// A change of a task's text or due date.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TaskEdit<'a> {
    /// The new text. Tags belong to it; fields at its end are set, others stay.
    pub(crate) words: Option<&'a str>,
    /// The new due date, or none.
    pub(crate) due: Option<Option<Date>>,
}

/// Changes the text and dates of a line, and nothing else of it.
///
/// # Errors
/// A message for the user, if the text cannot be that of a task.
pub(crate) fn edit(
    line: &TaskLine<'_>,
    change: &TaskEdit<'_>,
    style: &Style,
) -> Result<String, String> {
    let mut draft = Draft::new(line);
    let new_text = change
        .words
        .map(|words| format!("- [ ] {}", words.trim_matches(is_space)));
    let fields;
    if let Some(new_text) = &new_text {
        let new = parse_new_text(new_text)?;
        fields = new
            .fields
            .iter()
            .map(|field| (field.kind, new.slice(&field.value).to_owned()))
            .collect::<Vec<_>>();
        if let Some(link) = &new.block_link {
            let text = new.slice(link);
            match &line.block_link {
                Some(old) if line.slice(old) == text => {}
                Some(old) => draft.replace(old.clone(), text),
                None => draft.replace(line.end..line.end, format!(" {text}")),
            }
        }
        if new.has_words() {
            reword(&mut draft, &new, style);
        }
    } else {
        fields = Vec::new();
    }
    for (at, (kind, value)) in fields.iter().enumerate() {
        // The first of a kind counts.
        let is_first = fields.iter().position(|(other, _)| other == kind) == Some(at);
        if is_first && !(*kind == Kind::Due && change.due.is_some()) {
            draft.set(*kind, value, style);
        }
    }
    match change.due {
        Some(Some(date)) => draft.set(Kind::Due, &date.to_string(), style),
        Some(None) => draft.clear(Kind::Due),
        None => {}
    }
    Ok(draft.finish())
}

/// Parses the new text of a task, as an open task's line. Fields alone, such as a date, are no task,
/// but they are a change of one: then the line has no words.
///
/// # Errors
/// A message for the user, if the text is empty, or contains a completion date.
fn parse_new_text(text: &str) -> Result<TaskLine<'_>, String> {
    let line = match TaskLine::parse(text) {
        Some(line) => line,
        None => {
            // The parser takes no line without words, so it gets one, and the ranges move back.
            let (head, tail) = text.split_at("- [ ] ".len().min(text.len()));
            let with_word = format!("{head}x {tail}");
            let line = TaskLine::parse(&with_word).filter(|line| !line.fields.is_empty());
            let line = line.ok_or_else(no_words)?;
            let moved = |range: Range<usize>| range.start - 2..range.end - 2;
            let fields = line.fields.into_iter().map(|field| Field {
                range: moved(field.range),
                value: moved(field.value),
                ..field
            });
            TaskLine {
                text,
                mark: line.mark,
                status: line.status,
                status_at: line.status_at,
                words: 0..0,
                tags: Vec::new(),
                fields: fields.collect(),
                end: line.end - 2,
                block_link: line.block_link.map(moved),
            }
        }
    };
    let closing = |field: &Field| matches!(field.kind, Kind::Done | Kind::Cancelled);
    if line.fields.iter().any(closing) {
        return Err("when it was done is not part of its words; complete it instead".to_owned());
    }
    Ok(line)
}

fn no_words() -> String {
    "a task needs words".to_owned()
}

/// Replaces text and tags. A tag that the new text repeats stays in its position.
fn reword(draft: &mut Draft<'_>, new: &TaskLine<'_>, style: &Style) {
    let line = draft.line;
    let mut tags: Vec<&str> = new.tags.iter().map(|tag| new.slice(tag)).collect();
    let mut begins_with_removed = false;
    for old in line.tags.iter().rev() {
        if tags.last() == Some(&line.slice(old)) {
            tags.pop();
        } else if line.slice(old) != style.global_filter {
            draft.remove(old);
            begins_with_removed |= old.start == line.words.start;
        }
    }
    let words = std::iter::once(new.slice(&new.words)).filter(|words| !words.is_empty());
    let mut words = words.chain(tags).collect::<Vec<_>>().join(" ");
    let filter = style.global_filter.as_str();
    let had = line.slice(&line.words).contains(filter);
    // Without it the line would be no task any more.
    if !filter.is_empty() && had && !words.contains(filter) {
        words = format!("{filter} {words}").trim_end().to_owned();
    }
    if words != line.slice(&line.words) {
        let joins = line.words.is_empty() && !begins_with_removed && !words.is_empty();
        let gap = if joins { " " } else { "" };
        draft.replace(line.words.clone(), format!("{words}{gap}"));
    }
}

/// Returns the line of a new task.
///
/// # Errors
/// A message for the user, if the task has no text.
pub(crate) fn new_line(description: &str, today: Date, style: &Style) -> Result<String, String> {
    let description = description.trim_matches(is_space);
    if description.is_empty() {
        return Err(no_words());
    }
    let filter = style.global_filter.as_str();
    let words = if filter.is_empty() || description.contains(filter) {
        format!("- [ ] {description}")
    } else {
        format!("- [ ] {filter} {description}")
    };
    let line = parse_new_text(&words)?;
    if !line.has_words() {
        return Err(no_words());
    }
    let mut draft = Draft::new(&line);
    if style.created_date && line.field(Kind::Created).is_none() {
        draft.set(Kind::Created, &today.to_string(), style);
    }
    Ok(draft.finish())
}

/// Returns the text of a task with its tags and fields, without the dates of completion and
/// cancellation.
pub(crate) fn without_closing_dates(line: &TaskLine<'_>) -> String {
    let mut draft = Draft::new(line);
    draft.clear(Kind::Done);
    draft.clear(Kind::Cancelled);
    let text = draft.finish();
    TaskLine::parse(&text)
        .and_then(|line| line.text.get(line.words.start..line.end).map(str::to_owned))
        .unwrap_or_else(|| line.description())
}
