//! Dates in the formats of moment.js, which Obsidian's settings are written in.
//!
//! Source: moment.js 2.29.4 (the version that Obsidian's API names), `formattingTokens` and its
//! `addFormatToken` calls. `crates/memory/tests/it/fixtures/moment.json` and `locales.json` hold
//! the output of moment.js itself.

use std::fmt::Write as _;

use jiff::Zoned;

use super::locale::{Locale, NameForm};

/// The localised formats, in the order of [`Locale::long`].
const LONG_TOKENS: [&str; 10] = [
    "LTS", "LT", "LLLL", "LLL", "LL", "L", "llll", "lll", "ll", "l",
];

/// The tokens in the order of moment.js's pattern: the first that matches counts, not the longest.
const TOKENS: &[&str] = &[
    "Hmmss",
    "hmmss",
    "Hmm",
    "hmm",
    "Mo",
    "MMMM",
    "MMM",
    "MM",
    "M",
    "Do",
    "DDDo",
    "DDDD",
    "DDD",
    "DD",
    "D",
    "dddd",
    "ddd",
    "dd",
    "do",
    "d",
    "wo",
    "ww",
    "w|",
    "w",
    "Wo",
    "WW",
    "W|",
    "W",
    "Qo",
    "Q",
    "NNNNN",
    "NNNN",
    "NNN",
    "NN",
    "N",
    "YYYYYY",
    "YYYYY",
    "YYYY",
    "YY",
    "Y",
    "yyyy",
    "yyy",
    "yy",
    "yo",
    "y",
    "ggggg",
    "gggg",
    "gg",
    "GGGGG",
    "GGGG",
    "GG",
    "e",
    "E",
    "a",
    "A",
    "hh",
    "h",
    "HH",
    "H",
    "kk",
    "k",
    "mm",
    "m",
    "ss",
    "s",
    "SSSSSSSSS",
    "SSSSSSSS",
    "SSSSSSS",
    "SSSSSS",
    "SSSSS",
    "SSSS",
    "SSS",
    "SS",
    "S",
    "x",
    "X",
    "zz",
    "z",
    "ZZ",
    "Z",
];

/// Formats a time as moment.js does, with English names. Text that is no token stands for itself,
/// and so does text in `[]`.
///
/// # Examples
///
/// ```
/// let time = "2025-12-10T14:05:00[UTC]".parse::<jiff::Zoned>().unwrap();
/// let name = adjutant_memory::format_moment("YYYY/[week] WW/dddd Do", &time);
/// assert_eq!(name, "2025/week 50/Wednesday 10th");
/// ```
#[must_use]
pub fn format_moment(format: &str, time: &Zoned) -> String {
    format_moment_in(format, time, Locale::english())
}

/// Formats a time as moment.js does, with the names, the ordinals and the weeks of a language.
#[must_use]
pub fn format_moment_in(format: &str, time: &Zoned, locale: Locale) -> String {
    Format::new(format, locale).write(time)
}

/// A parsed format, for many dates.
pub(super) struct Format {
    pieces: Vec<FormatPart>,
    forms: LocaleForms,
}

enum FormatPart {
    Text(String),
    Token(&'static str),
}

/// A language, and the grammatical forms of its names that a format requires.
struct LocaleForms {
    locale: Locale,
    month: NameForm,
    short_month: NameForm,
    day: NameForm,
}

impl Format {
    pub(super) fn new(format: &str, locale: Locale) -> Self {
        let format = expand(format, locale);
        let mut pieces = Vec::new();
        let mut rest = format.as_str();
        while !rest.is_empty() {
            let (piece, kind) = next_piece(rest);
            let text = match kind {
                PieceKind::Bracketed => {
                    piece.get(1..piece.len() - 1).unwrap_or_default().to_owned()
                }
                PieceKind::Escaped => piece.replace('\\', ""),
                PieceKind::Other if piece == "\n" || piece == "\r" => String::new(),
                PieceKind::Other => piece.replace('\\', ""),
                PieceKind::Token(_) => String::new(),
            };
            pieces.push(if let PieceKind::Token(token) = kind {
                FormatPart::Token(token)
            } else {
                FormatPart::Text(text)
            });
            rest = rest.get(piece.len()..).unwrap_or_default();
        }
        let forms = LocaleForms {
            locale,
            month: locale.month_form(&format),
            short_month: locale.short_month_form(&format),
            day: locale.day_form(&format),
        };
        Self { pieces, forms }
    }

    pub(super) fn write(&self, time: &Zoned) -> String {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                FormatPart::Text(text) => out.push_str(text),
                FormatPart::Token(token) => out.push_str(
                    token_value(token, time, &self.forms)
                        .as_deref()
                        .unwrap_or(token),
                ),
            }
        }
        out
    }

    /// Returns true if a date in this format depends on the language.
    pub(super) fn has_names(&self) -> bool {
        self.pieces.iter().any(|piece| {
            matches!(
                piece,
                FormatPart::Token(
                    "MMMM"
                        | "MMM"
                        | "dddd"
                        | "ddd"
                        | "dd"
                        | "Mo"
                        | "Qo"
                        | "Do"
                        | "DDDo"
                        | "do"
                        | "wo"
                        | "Wo"
                        | "yo"
                        | "w"
                        | "ww"
                        | "gg"
                        | "gggg"
                        | "ggggg"
                        | "e"
                        | "a"
                        | "A"
                        | "y"
                        | "yy"
                        | "yyy"
                        | "yyyy"
                        | "N"
                        | "NN"
                        | "NNN"
                        | "NNNN"
                        | "NNNNN"
                )
            )
        })
    }
}

#[derive(Clone, Copy)]
enum PieceKind {
    Bracketed,
    Escaped,
    Token(&'static str),
    Other,
}

/// Returns the next piece of a format that is not empty.
fn next_piece(rest: &str) -> (&str, PieceKind) {
    if let Some(end) = bracketed_len(rest) {
        return (rest.get(..end).unwrap_or(rest), PieceKind::Bracketed);
    }
    let token = |text: &str| TOKENS.iter().copied().find(|token| text.starts_with(token));
    let one = |text: &str| text.chars().next().map_or(0, char::len_utf8);
    if let Some(escaped) = rest.strip_prefix('\\') {
        // The backslash escapes a whole token, unless a line ends there.
        let taken = token(escaped).map(str::len).unwrap_or_else(|| {
            if escaped.starts_with(['\n', '\r']) {
                0
            } else {
                one(escaped)
            }
        });
        return (rest.get(..1 + taken).unwrap_or(rest), PieceKind::Escaped);
    }
    match token(rest) {
        Some(token) => (
            rest.get(..token.len()).unwrap_or(rest),
            PieceKind::Token(token),
        ),
        None => (rest.get(..one(rest)).unwrap_or(rest), PieceKind::Other),
    }
}

/// Returns the length from `[` to the last `]` before another `[`.
fn bracketed_len(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('[')?;
    let until = inner.find('[').unwrap_or(inner.len());
    inner.get(..until)?.rfind(']').map(|close| close + 2)
}

/// Replaces the localised tokens, outside brackets and not after a backslash.
fn expand(format: &str, locale: Locale) -> String {
    let mut out = String::new();
    let mut rest = format;
    while !rest.is_empty() {
        let step = if let Some(end) = bracketed_len(rest) {
            out.push_str(rest.get(..end).unwrap_or(rest));
            end
        } else {
            let escaped = rest.strip_prefix('\\');
            let mut all = LONG_TOKENS.iter().zip(locale.long());
            let long = all.find(|(token, _)| escaped.unwrap_or(rest).starts_with(**token));
            match (escaped, long) {
                (Some(_), Some((token, _))) => {
                    out.push_str(rest.get(..=token.len()).unwrap_or(rest));
                    token.len() + 1
                }
                (None, Some((token, long))) => {
                    out.push_str(long);
                    token.len()
                }
                (_, None) => {
                    let char = rest.chars().next().unwrap_or_default();
                    out.push(char);
                    char.len_utf8()
                }
            }
        };
        rest = rest.get(step..).unwrap_or_default();
    }
    out
}

/// Returns the value of a token; `None` if moment.js has it in its pattern only.
fn token_value(token: &str, time: &Zoned, forms: &LocaleForms) -> Option<String> {
    let locale = forms.locale;
    let date = time.date();
    let (year, month, day) = (
        i64::from(time.year()),
        i64::from(time.month()),
        i64::from(time.day()),
    );
    let (hour, minute, second) = (
        i64::from(time.hour()),
        i64::from(time.minute()),
        i64::from(time.second()),
    );
    let weekday = i64::from(time.weekday().to_sunday_zero_offset());
    let of_year = i64::from(date.day_of_year());
    let quarter = (month - 1) / 3 + 1;
    let twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
    let twenty_four = if hour == 0 { 24 } else { hour };
    let (week_year, week) = locale.week(date);
    let iso = date.iso_week_date();
    let (iso_year, iso_week) = (i64::from(iso.year()), i64::from(iso.week()));
    let (era_year, [era, era_name, era_narrow]) = locale.era(date);
    let minute_of_day = hour * 60 + minute;
    let ordinal = |number: i64| locale.ordinal(number, token.trim_end_matches('o'));
    Some(match token {
        "M" => month.to_string(),
        "Mo" => ordinal(month),
        "MM" => zero_padded(month, 2),
        "MMM" => locale.short_month(month - 1, forms.short_month).to_owned(),
        "MMMM" => locale.month(month - 1, forms.month).to_owned(),
        "Q" => quarter.to_string(),
        "Qo" => ordinal(quarter),
        "D" => day.to_string(),
        "Do" => ordinal(day),
        "DD" => zero_padded(day, 2),
        "DDD" => of_year.to_string(),
        "DDDo" => ordinal(of_year),
        "DDDD" => zero_padded(of_year, 3),
        "d" => weekday.to_string(),
        "e" => ((weekday + 7 - locale.first_weekday()) % 7).to_string(),
        "do" => ordinal(weekday),
        "dd" => locale.shortest_day(weekday).to_owned(),
        "ddd" => locale.short_day(weekday).to_owned(),
        "dddd" => locale.day(weekday, forms.day).to_owned(),
        "E" => (if weekday == 0 { 7 } else { weekday }).to_string(),
        "w" => week.to_string(),
        "wo" => ordinal(week),
        "ww" => zero_padded(week, 2),
        "W" => iso_week.to_string(),
        "Wo" => ordinal(iso_week),
        "WW" => zero_padded(iso_week, 2),
        "YY" => zero_padded(year % 100, 2),
        "Y" if year > 9999 => format!("+{year}"),
        "Y" | "YYYY" => zero_padded(year, 4),
        "YYYYY" => zero_padded(year, 5),
        "YYYYYY" if year >= 0 => format!("+{}", zero_padded(year, 6)),
        "YYYYYY" => zero_padded(year, 6),
        "y" => era_year.to_string(),
        "yo" => ordinal(era_year),
        "yy" => zero_padded(era_year, 2),
        "yyy" => zero_padded(era_year, 3),
        "yyyy" => zero_padded(era_year, 4),
        "N" | "NN" | "NNN" => era.to_owned(),
        "NNNN" => era_name.to_owned(),
        "NNNNN" => era_narrow.to_owned(),
        "gg" => zero_padded(week_year % 100, 2),
        "gggg" => zero_padded(week_year, 4),
        "ggggg" => zero_padded(week_year, 5),
        "GG" => zero_padded(iso_year % 100, 2),
        "GGGG" => zero_padded(iso_year, 4),
        "GGGGG" => zero_padded(iso_year, 5),
        "A" => locale.meridiem(minute_of_day, false).to_owned(),
        "a" => locale.meridiem(minute_of_day, true).to_owned(),
        "H" => hour.to_string(),
        "HH" => zero_padded(hour, 2),
        "h" => twelve.to_string(),
        "hh" => zero_padded(twelve, 2),
        "k" => twenty_four.to_string(),
        "kk" => zero_padded(twenty_four, 2),
        "Hmm" => format!("{hour}{minute:02}"),
        "hmm" => format!("{twelve}{minute:02}"),
        "Hmmss" => format!("{hour}{minute:02}{second:02}"),
        "hmmss" => format!("{twelve}{minute:02}{second:02}"),
        "m" => minute.to_string(),
        "mm" => zero_padded(minute, 2),
        "s" => second.to_string(),
        "ss" => zero_padded(second, 2),
        "x" => time.timestamp().as_millisecond().to_string(),
        "X" => time.timestamp().as_second().to_string(),
        // A local time has no name of its zone in moment.js without its zone data.
        "z" | "zz" => String::new(),
        "Z" => utc_offset(time, ":"),
        "ZZ" => utc_offset(time, ""),
        fraction if fraction.starts_with('S') => {
            // Milliseconds are all that moment.js knows; more digits are zeros.
            let mut digits = zero_padded(i64::from(time.millisecond()), 3);
            while digits.len() < fraction.len() {
                digits.push('0');
            }
            digits.truncate(fraction.len());
            digits
        }
        _ => return None,
    })
}

fn zero_padded(number: i64, width: usize) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{:0width$}", number.abs())
}

fn utc_offset(time: &Zoned, between: &str) -> String {
    let minutes = time.offset().seconds() / 60;
    let mut out = String::from(if minutes < 0 { "-" } else { "+" });
    let minutes = minutes.abs();
    let _ = write!(out, "{:02}{between}{:02}", minutes / 60, minutes % 60);
    out
}
