//! Names and rules of languages, as moment.js has them.
//!
//! Source: the locales of moment.js 2.29.4, which Obsidian bundles; `locales/generate.mjs` writes
//! `locales/moment.json` out of them. moment's own spellings are needed, not those of another
//! collection: a daily note that is called `22 Sonntag` or `dim. 22 nov.` is found under that name
//! only.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use jiff::civil::Date;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Codes of the languages whose names of months and days are known, as moment.js has them.
pub const LOCALES: &[&str] = &[
    "en", "en-gb", "de", "de-at", "fr", "es", "it", "pt-br", "pt", "nl", "nb", "da", "sv", "nn",
    "fi", "pl", "cs", "sk", "ru", "uk", "bg", "tr", "ja", "zh-cn", "zh-tw", "ko", "hu", "ro", "el",
    "hr", "sl", "sr", "eu", "gl", "et", "lv", "is", "id", "ms", "vi", "th", "he", "sq", "af",
];

/// Language of the names in a date.
///
/// ```
/// use adjutant_memory::{Locale, format_moment_in};
/// let time = "2026-11-22T14:05:00[UTC]".parse::<jiff::Zoned>().unwrap();
/// let german = "de".parse::<Locale>().unwrap();
/// assert_eq!(format_moment_in("YYYY/MM MMMM/DD dddd", &time, german), "2026/11 November/22 Sonntag");
/// ```
#[derive(Clone, Copy)]
pub struct Locale(&'static Data);

/// No language of that name is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no language {0:?} is known")]
pub struct UnknownLocale(String);

#[derive(Deserialize)]
struct Data {
    code: String,
    name: String,
    months: Names,
    months_short: Names,
    days: Names,
    /// From Sunday.
    days_short: Vec<String>,
    days_min: Vec<String>,
    /// Formats of [`super::moment::LONG`], in its order.
    long: Vec<String>,
    /// By what is counted; the empty key is for everything else.
    ordinals: BTreeMap<String, Ordinals>,
    /// First minute of the day, then the words for `a` and `A`.
    meridiem: Vec<(i64, String, String)>,
    eras: Vec<Era>,
    /// First day of the week, from Sunday, and the number that decides which week is the first of a
    /// year.
    week: (i64, i64),
}

/// Names, and those that stand in their place if a format says so.
#[derive(Deserialize)]
struct Names {
    usual: Vec<String>,
    rule: Option<Rule>,
    #[serde(default)]
    other: Vec<String>,
    #[serde(default)]
    third: Vec<String>,
}

/// Which formats want the other names. Each is a pattern of moment.js.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Rule {
    /// A day of the month stands before the month, with blanks or brackets between them.
    InDate,
    DayBeforeBlank,
    DayBefore,
    BetweenDashes,
    Russian,
    Ukrainian,
}

/// Numbers with a suffix.
#[derive(Deserialize)]
struct Ordinals {
    suffixes: Vec<String>,
    /// A digit for each pair of last digits: which suffix. Empty where there is only one.
    #[serde(default)]
    by: String,
    #[serde(default)]
    exceptions: BTreeMap<String, String>,
}

/// First day, number of its first year, short name, name, narrow name.
#[derive(Deserialize)]
struct Era(Date, i64, String, String, String);

/// Which names of a list a format wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Form {
    #[default]
    Usual,
    Other,
    Third,
}

static ALL: LazyLock<Vec<Data>> = LazyLock::new(|| {
    #[expect(
        clippy::expect_used,
        reason = "our own file; a test reads every row of it"
    )]
    read(include_str!("../../locales/moment.json")).expect("the table of locales")
});

/// Reads the rows; what one leaves out is as in the first, which is English.
fn read(text: &str) -> serde_json::Result<Vec<Data>> {
    let rows: Vec<Map<String, Value>> = serde_json::from_str(text)?;
    let english = rows.first().cloned().unwrap_or_default();
    let whole = |row: Map<String, Value>| {
        let mut whole = english.clone();
        whole.extend(row);
        serde_json::from_value(Value::Object(whole))
    };
    rows.into_iter().map(whole).collect()
}

impl Locale {
    /// English of the United States, which is moment's default.
    #[must_use]
    pub fn english() -> Self {
        let all: &'static [Data] = &ALL;
        #[expect(
            clippy::expect_used,
            reason = "our own file; a test reads every row of it"
        )]
        Self(all.first().expect("English"))
    }

    /// Every language that is known, English first.
    pub fn all() -> impl Iterator<Item = Self> {
        ALL.iter().map(Self)
    }

    /// Code of moment.js, such as `pt-br`.
    #[must_use]
    pub fn code(self) -> &'static str {
        &self.0.code
    }

    /// Name of the language, in English.
    #[must_use]
    pub fn name(self) -> &'static str {
        &self.0.name
    }

    /// Formats that `LTS`, `LT` and their like stand for, in the order of [`super::moment::LONG`].
    pub(super) fn long(self) -> &'static [String] {
        &self.0.long
    }

    pub(super) fn month_form(self, format: &str) -> Form {
        self.0.months.form(format)
    }

    pub(super) fn short_month_form(self, format: &str) -> Form {
        self.0.months_short.form(format)
    }

    pub(super) fn day_form(self, format: &str) -> Form {
        self.0.days.form(format)
    }

    /// Name of a month, counted from 0.
    pub(super) fn month(self, month: i64, form: Form) -> &'static str {
        at(self.0.months.list(form), month)
    }

    pub(super) fn short_month(self, month: i64, form: Form) -> &'static str {
        at(self.0.months_short.list(form), month)
    }

    /// Name of a day, counted from Sunday.
    pub(super) fn day(self, day: i64, form: Form) -> &'static str {
        at(self.0.days.list(form), day)
    }

    pub(super) fn short_day(self, day: i64) -> &'static str {
        at(&self.0.days_short, day)
    }

    pub(super) fn shortest_day(self, day: i64) -> &'static str {
        at(&self.0.days_min, day)
    }

    /// The number with what makes it the first, second, third of its kind (`period` is the token
    /// without its `o`).
    pub(super) fn ordinal(self, number: i64, period: &str) -> String {
        let Some(rule) = self
            .0
            .ordinals
            .get(period)
            .or_else(|| self.0.ordinals.get(""))
        else {
            return number.to_string();
        };
        if let Some(whole) = rule.exceptions.get(&number.to_string()) {
            return whole.clone();
        }
        let place = usize::try_from(number % 100).unwrap_or_default();
        let which = rule
            .by
            .as_bytes()
            .get(place)
            .map_or(0, |digit| usize::from(digit.saturating_sub(b'0')));
        format!(
            "{number}{}",
            rule.suffixes.get(which).map_or("", String::as_str)
        )
    }

    /// Word for the time of day.
    pub(super) fn meridiem(self, minute_of_day: i64, lower: bool) -> &'static str {
        let found = self
            .0
            .meridiem
            .iter()
            .rev()
            .find(|part| part.0 <= minute_of_day);
        found.map_or("", |(_, small, large)| if lower { small } else { large })
    }

    /// First day of the week, from Sunday.
    pub(super) fn first_weekday(self) -> i64 {
        self.0.week.0
    }

    /// Year and number of the date's week.
    pub(super) fn week(self, date: Date) -> (i64, i64) {
        let (first_day, deciding) = self.0.week;
        let from_sunday = i64::from(date.weekday().to_sunday_zero_offset());
        let since_start = (from_sunday + 7 - first_day) % 7;
        // The first week holds a certain day of January; so one day of every week lies in the year
        // the week belongs to.
        let to_decider = deciding - first_day - since_start;
        let decider = date.saturating_add(jiff::Span::new().days(to_decider));
        (
            i64::from(decider.year()),
            (i64::from(decider.day_of_year()) - 1) / 7 + 1,
        )
    }

    /// Year of the era, and the era's short, whole and narrow name.
    pub(super) fn era(self, date: Date) -> (i64, [&'static str; 3]) {
        match self.0.eras.iter().find(|era| era.0 <= date) {
            Some(Era(since, offset, short, name, narrow)) => (
                i64::from(date.year()) - i64::from(since.year()) + offset,
                [short, name, narrow],
            ),
            None => (1 - i64::from(date.year()), ["BC", "Before Christ", "BC"]),
        }
    }
}

impl PartialEq for Locale {
    fn eq(&self, other: &Self) -> bool {
        self.code() == other.code()
    }
}

impl Eq for Locale {}

impl fmt::Debug for Locale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Locale({})", self.code())
    }
}

impl FromStr for Locale {
    type Err = UnknownLocale;

    /// Takes a code of moment.js, in capitals too, with `_` for `-`.
    fn from_str(text: &str) -> Result<Self, UnknownLocale> {
        let code = text.trim().to_ascii_lowercase().replace('_', "-");
        Self::all()
            .find(|locale| locale.code() == code)
            .ok_or_else(|| UnknownLocale(text.to_owned()))
    }
}

impl Names {
    fn list(&self, form: Form) -> &[String] {
        match form {
            Form::Usual => &self.usual,
            Form::Other => &self.other,
            Form::Third => &self.third,
        }
    }

    fn form(&self, format: &str) -> Form {
        let other = match self.rule {
            None => false,
            Some(Rule::InDate) => in_date(format),
            Some(Rule::DayBeforeBlank) => format.contains("D MMMM"),
            Some(Rule::DayBefore) => format
                .split_once("MMMM")
                .is_some_and(|(before, _)| before.contains('D')),
            Some(Rule::BetweenDashes) => format.contains("-MMM-"),
            Some(Rule::Russian) => bracketed_before_day(format).any(is_russian_on),
            Some(Rule::Ukrainian) => {
                let mut brackets = bracketed_before_day(format);
                let on = |inner: &str| matches!(inner, "В" | "в" | "У" | "у");
                match bracketed_before_day(format).any(on) {
                    true => return Form::Other,
                    false if brackets.next().is_some() => return Form::Third,
                    false => return Form::Usual,
                }
            }
        };
        if other { Form::Other } else { Form::Usual }
    }
}

fn at(names: &'static [String], number: i64) -> &'static str {
    usize::try_from(number)
        .ok()
        .and_then(|number| names.get(number))
        .map_or("", String::as_str)
}

/// moment's `/D[oD]?(\[[^\[\]]*\]|\s)+MMMM?/`.
fn in_date(format: &str) -> bool {
    let follows = |rest: &str| {
        let gap = after_gap(rest);
        gap.len() < rest.len() && gap.starts_with("MMM")
    };
    format.match_indices('D').any(|(at, day)| {
        let rest = format.get(at + day.len()..).unwrap_or_default();
        follows(rest) || rest.strip_prefix('o').is_some_and(follows)
    })
}

/// What comes after blanks and `[...]`.
fn after_gap(mut text: &str) -> &str {
    loop {
        let trimmed = text.trim_start();
        let inner = trimmed
            .strip_prefix('[')
            .and_then(|inner| inner.split_once([']', '[']));
        match inner {
            Some((words, rest))
                if trimmed
                    .get(1 + words.len()..)
                    .is_some_and(|end| end.starts_with(']')) =>
            {
                text = rest;
            }
            _ => return trimmed,
        }
    }
}

/// What stands in the brackets directly before each `dddd`; one blank may be between them.
fn bracketed_before_day(format: &str) -> impl Iterator<Item = &str> {
    format.match_indices("dddd").filter_map(|(at, _)| {
        let before = format.get(..at)?;
        let inner = before
            .strip_suffix(' ')
            .unwrap_or(before)
            .strip_suffix(']')?;
        Some(inner.rsplit_once('[').map_or(inner, |(_, inner)| inner))
    })
}

/// moment's `/\[ ?[Вв] ?(?:прошлую|следующую|эту)? ?] ?dddd/`.
fn is_russian_on(inner: &str) -> bool {
    let inner = inner.strip_prefix(' ').unwrap_or(inner);
    let Some(rest) = inner.strip_prefix(['В', 'в']) else {
        return false;
    };
    matches!(rest.trim(), "" | "прошлую" | "следующую" | "эту")
        && rest.len() - rest.trim().len() <= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_whole() {
        let codes: Vec<&str> = Locale::all().map(Locale::code).collect();
        assert_eq!(codes, LOCALES);
        for Data {
            code,
            months,
            months_short,
            days,
            days_short,
            days_min,
            long,
            ..
        } in ALL.iter()
        {
            for (names, count) in [(months, 12), (months_short, 12), (days, 7)] {
                let others = if names.rule.is_some() { count } else { 0 };
                assert_eq!(
                    (names.usual.len(), names.other.len()),
                    (count, others),
                    "{code}"
                );
            }
            assert_eq!(
                (days_short.len(), days_min.len(), long.len()),
                (7, 7, 10),
                "{code}"
            );
        }
        assert!(read("[{\"code\": 1}]").is_err());
    }

    #[test]
    fn codes_are_read_as_people_write_them() {
        for (text, code) in [
            ("de", "de"),
            ("pt-BR", "pt-br"),
            ("pt_BR", "pt-br"),
            (" ZH-tw ", "zh-tw"),
        ] {
            assert_eq!(text.parse::<Locale>().unwrap().code(), code);
        }
        assert_eq!(
            "xx".parse::<Locale>().unwrap_err().to_string(),
            "no language \"xx\" is known"
        );
        assert!("".parse::<Locale>().is_err());
    }

    #[test]
    fn formats_ask_for_the_names_of_a_date() {
        for format in [
            "D MMMM",
            "DD MMM",
            "Do MMMM",
            "D[.] MMMM",
            "D[ a ][b]MMM",
            "YYYY D  [x] MMMM",
        ] {
            assert!(in_date(format), "{format}");
        }
        for format in [
            "MMMM D",
            "D. MMMM",
            "DMMMM",
            "D [x MMMM",
            "D-MMM-YYYY",
            "dd MMMM",
            "D MM",
        ] {
            assert!(!in_date(format), "{format}");
        }
    }
}
