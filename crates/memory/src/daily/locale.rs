//! Names and rules of languages, as moment.js has them.
//!
//! Source: the locales of moment.js 2.29.4, which Obsidian bundles; `locales/generate.mjs` writes
//! `locales/moment.json` from them. moment.js's own spellings are needed, not those of another
//! collection: a daily note with the name `22 Sonntag` or `dim. 22 nov.` is found under that name
//! only.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use jiff::civil::Date;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Codes of the supported languages, as moment.js has them.
pub const LOCALES: &[&str] = &[
    "en", "en-gb", "de", "de-at", "fr", "es", "it", "pt-br", "pt", "nl", "nb", "da", "sv", "nn",
    "fi", "pl", "cs", "sk", "ru", "uk", "bg", "tr", "ja", "zh-cn", "zh-tw", "ko", "hu", "ro", "el",
    "hr", "sl", "sr", "eu", "gl", "et", "lv", "is", "id", "ms", "vi", "th", "he", "sq", "af",
];

/// A language of the names of months and days.
///
/// # Examples
///
/// ```
/// use adjutant_memory::{Locale, format_moment_in};
///
/// let time = "2026-11-22T14:05:00[UTC]".parse::<jiff::Zoned>().unwrap();
/// let german = "de".parse::<Locale>().unwrap();
/// let name = format_moment_in("YYYY/MM MMMM/DD dddd", &time, german);
/// assert_eq!(name, "2026/11 November/22 Sonntag");
/// ```
#[derive(Clone, Copy)]
pub struct Locale(&'static LocaleData);

/// The error of a code that is none of [`LOCALES`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no language {0:?} is known")]
pub struct UnknownLocale(String);

#[derive(Deserialize)]
struct LocaleData {
    code: String,
    name: String,
    months: Names,
    months_short: Names,
    days: Names,
    /// Short names, from Sunday.
    days_short: Vec<String>,
    days_min: Vec<String>,
    /// The formats of [`super::moment::LONG_TOKENS`], in its order.
    long: Vec<String>,
    /// Ordinals by token; the empty key is for all other tokens.
    ordinals: BTreeMap<String, Ordinals>,
    /// The first minute of a part of the day, then its names for `a` and `A`.
    meridiem: Vec<(i64, String, String)>,
    eras: Vec<EraData>,
    /// The first day of the week, from Sunday, and the number that decides which week is the first
    /// of a year.
    week: (i64, i64),
}

/// Names in their usual form, and in other grammatical forms that some formats require.
#[derive(Deserialize)]
struct Names {
    usual: Vec<String>,
    rule: Option<Rule>,
    #[serde(default)]
    other: Vec<String>,
    #[serde(default)]
    third: Vec<String>,
}

/// The formats that require another form. Each is a pattern of moment.js.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Rule {
    /// A day of the month before the month, with spaces or brackets between them.
    InDate,
    DayBeforeBlank,
    DayBefore,
    BetweenDashes,
    Russian,
    Ukrainian,
}

/// Ordinal numbers: numbers with a suffix.
#[derive(Deserialize)]
struct Ordinals {
    suffixes: Vec<String>,
    /// For each pair of last digits a digit, the index of the suffix. Empty if there is only one
    /// suffix.
    #[serde(default)]
    by: String,
    #[serde(default)]
    exceptions: BTreeMap<String, String>,
}

/// The first day of an era, the number of its first year, and its short, long and narrow name.
#[derive(Deserialize)]
struct EraData(Date, i64, String, String, String);

static ALL: LazyLock<Vec<LocaleData>> = LazyLock::new(|| {
    #[expect(
        clippy::expect_used,
        reason = "our own file; a test reads every row of it"
    )]
    parse_rows(include_str!("../../locales/moment.json")).expect("the table of locales")
});

/// Parses the rows; a field that a row leaves out is as in the first row, which is English.
fn parse_rows(text: &str) -> serde_json::Result<Vec<LocaleData>> {
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
    /// Returns English of the United States, which is the default of moment.js.
    #[must_use]
    pub fn english() -> Self {
        let all: &'static [LocaleData] = &ALL;
        #[expect(
            clippy::expect_used,
            reason = "our own file; a test reads every row of it"
        )]
        Self(all.first().expect("English"))
    }

    /// Returns all supported languages, English first.
    pub fn all() -> impl Iterator<Item = Self> {
        ALL.iter().map(Self)
    }

    /// Returns the code of moment.js, such as `pt-br`.
    #[must_use]
    pub fn code(self) -> &'static str {
        &self.0.code
    }

    /// Returns the name of the language, in English.
    #[must_use]
    pub fn name(self) -> &'static str {
        &self.0.name
    }

    /// Returns the formats that `LTS`, `LT` and the like stand for, in the order of
    /// [`super::moment::LONG_TOKENS`].
    pub(super) fn long(self) -> &'static [String] {
        &self.0.long
    }

    /// Returns the names of the months in the form that a format requires.
    pub(super) fn months(self, format: &str) -> &'static [String] {
        self.0.months.in_form_for(format)
    }

    pub(super) fn short_months(self, format: &str) -> &'static [String] {
        self.0.months_short.in_form_for(format)
    }

    /// Returns the names of the days, from Sunday, in the form that a format requires.
    pub(super) fn days(self, format: &str) -> &'static [String] {
        self.0.days.in_form_for(format)
    }

    /// Returns the short name of a day, counted from Sunday.
    pub(super) fn short_day(self, day: i64) -> String {
        name_at(&self.0.days_short, day)
    }

    pub(super) fn shortest_day(self, day: i64) -> String {
        name_at(&self.0.days_min, day)
    }

    /// Returns the ordinal of a number. `period` is the token without its `o`.
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

    /// Returns the name of the part of the day.
    pub(super) fn meridiem(self, minute_of_day: i64, lower: bool) -> &'static str {
        let found = self
            .0
            .meridiem
            .iter()
            .rev()
            .find(|part| part.0 <= minute_of_day);
        found.map_or("", |(_, small, large)| if lower { small } else { large })
    }

    /// Returns the first day of the week, counted from Sunday.
    pub(super) fn first_weekday(self) -> i64 {
        self.0.week.0
    }

    /// Returns the year and the number of a date's week.
    pub(super) fn week(self, date: Date) -> (i64, i64) {
        let (first_day, deciding) = self.0.week;
        let from_sunday = i64::from(date.weekday().to_sunday_zero_offset());
        let since_start = (from_sunday + 7 - first_day) % 7;
        // The first week of a year holds a certain day of January; so one day of every week lies in
        // the year of the week.
        let to_decider = deciding - first_day - since_start;
        let decider = date.saturating_add(jiff::Span::new().days(to_decider));
        (
            i64::from(decider.year()),
            (i64::from(decider.day_of_year()) - 1) / 7 + 1,
        )
    }

    /// Returns the year of the era, and the era's short, long and narrow name.
    pub(super) fn era(self, date: Date) -> (i64, [&'static str; 3]) {
        match self.0.eras.iter().find(|era| era.0 <= date) {
            Some(EraData(since, offset, short, name, narrow)) => (
                i64::from(date.year()) - i64::from(since.year()) + offset,
                [short, name, narrow],
            ),
            // There is no year 0: the year before 1 is 1 BC.
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

    /// Parses a code of moment.js, in any case, with `_` or `-`.
    fn from_str(text: &str) -> Result<Self, UnknownLocale> {
        let code = text.trim().to_ascii_lowercase().replace('_', "-");
        Self::all()
            .find(|locale| locale.code() == code)
            .ok_or_else(|| UnknownLocale(text.to_owned()))
    }
}

impl Names {
    fn in_form_for(&self, format: &str) -> &[String] {
        let has_other = match self.rule {
            None => false,
            Some(Rule::InDate) => has_day_before_month(format),
            Some(Rule::DayBeforeBlank) => format.contains("D MMMM"),
            Some(Rule::DayBefore) => format
                .split_once("MMMM")
                .is_some_and(|(before, _)| before.contains('D')),
            Some(Rule::BetweenDashes) => format.contains("-MMM-"),
            Some(Rule::Russian) => bracketed_before_day(format).any(is_russian_on),
            Some(Rule::Ukrainian) => {
                let on = |inner: &str| matches!(inner, "В" | "в" | "У" | "у");
                let is_on = bracketed_before_day(format).any(on);
                // Any other word in brackets before the day takes the genitive.
                if !is_on && bracketed_before_day(format).next().is_some() {
                    return &self.third;
                }
                is_on
            }
        };
        if has_other { &self.other } else { &self.usual }
    }
}

/// Returns the name with a number, counted from 0; empty if there is none.
pub(super) fn name_at(names: &[String], number: i64) -> String {
    let name = usize::try_from(number).ok().and_then(|at| names.get(at));
    name.cloned().unwrap_or_default()
}

/// Returns true for the pattern `/D[oD]?(\[[^\[\]]*\]|\s)+MMMM?/` of moment.js.
fn has_day_before_month(format: &str) -> bool {
    let follows = |rest: &str| {
        let gap = skip_gap(rest);
        gap.len() < rest.len() && gap.starts_with("MMM")
    };
    format.match_indices('D').any(|(at, day)| {
        let rest = format.get(at + day.len()..).unwrap_or_default();
        follows(rest) || rest.strip_prefix('o').is_some_and(follows)
    })
}

/// Returns the text after spaces and `[...]`.
fn skip_gap(mut text: &str) -> &str {
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

/// Returns the texts in the brackets directly before each `dddd`, with at most one space between
/// them.
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

/// Returns true for the pattern `/\[ ?[Вв] ?(?:прошлую|следующую|эту)? ?] ?dddd/` of moment.js.
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
        for LocaleData {
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
        assert!(parse_rows("[{\"code\": 1}]").is_err());
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
            assert!(has_day_before_month(format), "{format}");
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
            assert!(!has_day_before_month(format), "{format}");
        }
    }
}
