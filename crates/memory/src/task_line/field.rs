//! The fields at the end of a task's line, in the plugin's two formats.

use std::ops::Range;

/// The notation of a task's fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TaskFormat {
    /// `📅 2026-11-30`, the plugin's default.
    #[default]
    Emoji,
    /// `[due:: 2026-11-30]`, as the plugin Dataview reads it.
    Dataview,
}

/// The kind of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Priority,
    Done,
    Cancelled,
    Due,
    Scheduled,
    Start,
    Created,
    Recurrence,
    OnCompletion,
    Id,
    DependsOn,
}

/// A field and its ranges in the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) kind: Kind,
    pub(crate) format: TaskFormat,
    /// The whole field, from its symbol or bracket to its end.
    pub(crate) range: Range<usize>,
    /// The value; the symbol itself for a priority in emoji.
    pub(crate) value: Range<usize>,
}

/// Priorities, highest first.
const PRIORITIES: [(&str, char); 5] = [
    ("highest", '🔺'),
    ("high", '⏫'),
    ("medium", '🔼'),
    ("low", '🔽'),
    ("lowest", '⏬'),
];

/// The character that selects the coloured form of an emoji before it.
const VARIATION_SELECTOR: char = '\u{FE0F}';

impl Kind {
    /// Returns the key in Dataview's format, the emoji that a field of this kind may begin with, and
    /// the form of its value. The first emoji is the one that is written; priorities have one for
    /// each value.
    fn notation(self) -> (&'static str, &'static [char], ValueForm) {
        match self {
            Self::Priority => ("priority", &[], ValueForm::Priority),
            Self::Done => ("completion", &['✅'], ValueForm::Date),
            Self::Cancelled => ("cancelled", &['❌'], ValueForm::Date),
            Self::Due => ("due", &['📅', '📆', '🗓'], ValueForm::Date),
            Self::Scheduled => ("scheduled", &['⏳', '⌛'], ValueForm::Date),
            Self::Start => ("start", &['🛫'], ValueForm::Date),
            Self::Created => ("created", &['➕'], ValueForm::Date),
            Self::Recurrence => ("repeat", &['🔁'], ValueForm::Rule),
            Self::OnCompletion => ("onCompletion", &['🏁'], ValueForm::Word),
            Self::Id => ("id", &['🆔'], ValueForm::Id),
            Self::DependsOn => ("dependsOn", &['⛔'], ValueForm::Ids),
        }
    }

    /// Returns the field of this kind at the end of a text.
    pub(crate) fn at_end(self, text: &str) -> Option<Field> {
        let emoji = || {
            self.emoji_at_end(text)
                .map(|places| (TaskFormat::Emoji, places))
        };
        let dataview = || {
            self.dataview_at_end(text)
                .map(|places| (TaskFormat::Dataview, places))
        };
        let (format, (range, value)) = emoji().or_else(dataview)?;
        Some(Field {
            kind: self,
            format,
            range,
            value,
        })
    }

    fn emoji_at_end(self, text: &str) -> Option<(Range<usize>, Range<usize>)> {
        if self == Self::Priority {
            let before = text.strip_suffix(VARIATION_SELECTOR).unwrap_or(text);
            let symbol = before.chars().next_back()?;
            PRIORITIES.iter().find(|(_, known)| *known == symbol)?;
            let at = before.len() - symbol.len_utf8();
            return Some((at..text.len(), at..before.len()));
        }
        let (_, symbols, form) = self.notation();
        // The symbol stands directly before the longest text that a value can be made of.
        let before = text.trim_end_matches(|char: char| form.may_hold(char));
        let value = text.get(before.len()..)?.trim_start_matches(' ');
        let before = before.strip_suffix(VARIATION_SELECTOR).unwrap_or(before);
        let symbol = before
            .chars()
            .next_back()
            .filter(|char| symbols.contains(char))?;
        let at = before.len() - symbol.len_utf8();
        form.accepts(value)
            .then(|| (at..text.len(), text.len() - value.len()..text.len()))
    }

    fn dataview_at_end(self, text: &str) -> Option<(Range<usize>, Range<usize>)> {
        let (key, _, form) = self.notation();
        // A comma may follow, which keeps some themes from hiding the field.
        let closed = text
            .strip_suffix(',')
            .map_or(text, |before| before.trim_end_matches(' '));
        let (inside, open) = match closed.strip_suffix(']') {
            Some(inside) => (inside, '['),
            None => (closed.strip_suffix(')')?, '('),
        };
        let at = inside.rfind(open)?;
        let pair = inside.get(at + 1..)?.trim_end_matches(' ');
        let value = pair
            .trim_start_matches(' ')
            .strip_prefix(key)?
            .strip_prefix("::")?;
        let value = value.trim_start_matches(' ');
        let end = at + 1 + pair.len();
        form.accepts(value)
            .then(|| (at..text.len(), end - value.len()..end))
    }

    /// Returns the field as it is written, with the space before it.
    pub(crate) fn to_text(self, format: TaskFormat, value: &str) -> String {
        let (key, symbols, _) = self.notation();
        match (format, symbols.first()) {
            (TaskFormat::Emoji, Some(symbol)) => format!(" {symbol} {value}"),
            (TaskFormat::Emoji, None) => format!(" {}", self.value_in(format, value)),
            // Two spaces: with one, Obsidian hides every other field.
            (TaskFormat::Dataview, _) => {
                format!("  [{key}:: {}]", self.value_in(format, value))
            }
        }
    }

    /// Returns a value as a format writes it: only priorities differ.
    pub(crate) fn value_in(self, format: TaskFormat, value: &str) -> String {
        let priority = PRIORITIES
            .iter()
            .find(|(name, symbol)| value == *name || value.starts_with(*symbol));
        match priority.filter(|_| self == Self::Priority) {
            Some((name, symbol)) => match format {
                TaskFormat::Emoji => symbol.to_string(),
                TaskFormat::Dataview => (*name).to_owned(),
            },
            None => value.to_owned(),
        }
    }
}

/// Returns true if a text has the form `2026-11-30`; the day need not exist.
/// The form of a field's value, as the plugin's patterns have it.
#[derive(Clone, Copy)]
enum ValueForm {
    Priority,
    Date,
    Rule,
    Word,
    Id,
    Ids,
}

impl ValueForm {
    /// Returns true if a character can stand in a value or before it.
    fn may_hold(self, char: char) -> bool {
        let other = match self {
            Self::Priority => return false,
            Self::Date => return matches!(char, '0'..='9' | '-' | ' '),
            Self::Rule => ", !",
            Self::Word => " ",
            Self::Id => " -_",
            Self::Ids => " -_,",
        };
        char.is_ascii_alphanumeric() || other.contains(char)
    }

    /// Returns true if a text can be a value.
    fn accepts(self, value: &str) -> bool {
        let is_made_of = |text: &str, other: &str| {
            let is_part = |char: char| char.is_ascii_alphanumeric() || other.contains(char);
            !text.is_empty() && text.chars().all(is_part)
        };
        match self {
            Self::Priority => PRIORITIES.iter().any(|(name, _)| *name == value),
            Self::Date => is_date(value),
            Self::Rule => is_made_of(value, ", !"),
            Self::Word => !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphabetic()),
            Self::Id => is_made_of(value, "-_"),
            Self::Ids => {
                let mut ids = value.split(',');
                ids.all(|id| is_made_of(id.trim_matches(' '), "-_"))
            }
        }
    }
}

fn is_date(text: &str) -> bool {
    // As loose as the plugin's pattern: a day that does not exist is refused where a date is
    // computed.
    text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}
