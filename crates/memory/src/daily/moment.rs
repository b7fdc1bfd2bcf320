//! Dates as moment.js writes them, which is what Obsidian's settings are written for.
//!
//! Source: moment.js 2.29.4 (the version Obsidian's API names), `formattingTokens` and its
//! `addFormatToken` calls. `crates/memory/tests/it/fixtures/moment.json` and `locales.json` hold
//! what moment.js itself writes.

use std::fmt::Write as _;

use jiff::Zoned;

use super::locale::{Form, Locale};

/// The localised forms, in the order of [`Locale::long`].
const LONG: [&str; 10] = [
    "LTS", "LT", "LLLL", "LLL", "LL", "L", "llll", "lll", "ll", "l",
];

/// What the pattern of moment.js takes as one piece, in its order: the first that fits counts, not
/// the longest.
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

/// Writes a time in a format of moment.js, with English names. What is no token stands for itself,
/// and so does what is in `[]`.
///
/// ```
/// let time = "2025-12-10T14:05:00[UTC]".parse::<jiff::Zoned>().unwrap();
/// assert_eq!(adjutant_memory::format_moment("YYYY/[week] WW/dddd Do", &time), "2025/week 50/Wednesday 10th");
/// ```
#[must_use]
pub fn format_moment(format: &str, time: &Zoned) -> String {
    format_moment_in(format, time, Locale::english())
}

/// Writes a time in a format of moment.js with the names, the ordinals and the weeks of a language.
#[must_use]
pub fn format_moment_in(format: &str, time: &Zoned, locale: Locale) -> String {
    Format::new(format, locale).write(time)
}

/// A format that has been read, for many dates.
pub(super) struct Format {
    pieces: Vec<Part>,
    names: Forms,
}

enum Part {
    Text(String),
    Token(&'static str),
}

/// A language, and which of its names a format wants.
struct Forms {
    locale: Locale,
    month: Form,
    short_month: Form,
    day: Form,
}

impl Format {
    pub(super) fn new(format: &str, locale: Locale) -> Self {
        let format = expand(format, locale);
        let mut pieces = Vec::new();
        let mut rest = format.as_str();
        while !rest.is_empty() {
            let (piece, kind) = next(rest);
            let text = match kind {
                Piece::Bracketed => piece.get(1..piece.len() - 1).unwrap_or_default().to_owned(),
                Piece::Escaped => piece.replace('\\', ""),
                Piece::Other if piece == "\n" || piece == "\r" => String::new(),
                Piece::Other => piece.replace('\\', ""),
                Piece::Token(_) => String::new(),
            };
            pieces.push(if let Piece::Token(token) = kind {
                Part::Token(token)
            } else {
                Part::Text(text)
            });
            rest = rest.get(piece.len()..).unwrap_or_default();
        }
        let names = Forms {
            locale,
            month: locale.month_form(&format),
            short_month: locale.short_month_form(&format),
            day: locale.day_form(&format),
        };
        Self { pieces, names }
    }

    pub(super) fn write(&self, time: &Zoned) -> String {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Part::Text(text) => out.push_str(text),
                Part::Token(token) => {
                    out.push_str(value(token, time, &self.names).as_deref().unwrap_or(token))
                }
            }
        }
        out
    }

    /// Returns whether a date reads differently in another language.
    pub(super) fn has_names(&self) -> bool {
        self.pieces.iter().any(|piece| {
            matches!(
                piece,
                Part::Token(
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
enum Piece {
    Bracketed,
    Escaped,
    Token(&'static str),
    Other,
}

/// The next piece of a format that is not empty.
fn next(rest: &str) -> (&str, Piece) {
    if let Some(end) = bracketed(rest) {
        return (rest.get(..end).unwrap_or(rest), Piece::Bracketed);
    }
    let token = |text: &str| TOKENS.iter().copied().find(|token| text.starts_with(token));
    let one = |text: &str| text.chars().next().map_or(0, char::len_utf8);
    if let Some(escaped) = rest.strip_prefix('\\') {
        // The backslash takes one piece with it, unless a line ends there.
        let taken = token(escaped).map(str::len).unwrap_or_else(|| {
            if escaped.starts_with(['\n', '\r']) {
                0
            } else {
                one(escaped)
            }
        });
        return (rest.get(..1 + taken).unwrap_or(rest), Piece::Escaped);
    }
    match token(rest) {
        Some(token) => (rest.get(..token.len()).unwrap_or(rest), Piece::Token(token)),
        None => (rest.get(..one(rest)).unwrap_or(rest), Piece::Other),
    }
}

/// `[` up to the last `]` before another `[`.
fn bracketed(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('[')?;
    let until = inner.find('[').unwrap_or(inner.len());
    inner.get(..until)?.rfind(']').map(|close| close + 2)
}

/// Replaces the localised forms, outside brackets and not after a backslash.
fn expand(format: &str, locale: Locale) -> String {
    let mut out = String::new();
    let mut rest = format;
    while !rest.is_empty() {
        let step = if let Some(end) = bracketed(rest) {
            out.push_str(rest.get(..end).unwrap_or(rest));
            end
        } else {
            let escaped = rest.strip_prefix('\\');
            let mut all = LONG.iter().zip(locale.long());
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

/// What a token stands for; none if moment.js knows it in its pattern only.
fn value(token: &str, time: &Zoned, names: &Forms) -> Option<String> {
    let locale = names.locale;
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
        "MM" => zeros(month, 2),
        "MMM" => locale.short_month(month - 1, names.short_month).to_owned(),
        "MMMM" => locale.month(month - 1, names.month).to_owned(),
        "Q" => quarter.to_string(),
        "Qo" => ordinal(quarter),
        "D" => day.to_string(),
        "Do" => ordinal(day),
        "DD" => zeros(day, 2),
        "DDD" => of_year.to_string(),
        "DDDo" => ordinal(of_year),
        "DDDD" => zeros(of_year, 3),
        "d" => weekday.to_string(),
        "e" => ((weekday + 7 - locale.first_weekday()) % 7).to_string(),
        "do" => ordinal(weekday),
        "dd" => locale.shortest_day(weekday).to_owned(),
        "ddd" => locale.short_day(weekday).to_owned(),
        "dddd" => locale.day(weekday, names.day).to_owned(),
        "E" => (if weekday == 0 { 7 } else { weekday }).to_string(),
        "w" => week.to_string(),
        "wo" => ordinal(week),
        "ww" => zeros(week, 2),
        "W" => iso_week.to_string(),
        "Wo" => ordinal(iso_week),
        "WW" => zeros(iso_week, 2),
        "YY" => zeros(year % 100, 2),
        "Y" if year > 9999 => format!("+{year}"),
        "Y" | "YYYY" => zeros(year, 4),
        "YYYYY" => zeros(year, 5),
        "YYYYYY" if year >= 0 => format!("+{}", zeros(year, 6)),
        "YYYYYY" => zeros(year, 6),
        "y" => era_year.to_string(),
        "yo" => ordinal(era_year),
        "yy" => zeros(era_year, 2),
        "yyy" => zeros(era_year, 3),
        "yyyy" => zeros(era_year, 4),
        "N" | "NN" | "NNN" => era.to_owned(),
        "NNNN" => era_name.to_owned(),
        "NNNNN" => era_narrow.to_owned(),
        "gg" => zeros(week_year % 100, 2),
        "gggg" => zeros(week_year, 4),
        "ggggg" => zeros(week_year, 5),
        "GG" => zeros(iso_year % 100, 2),
        "GGGG" => zeros(iso_year, 4),
        "GGGGG" => zeros(iso_year, 5),
        "A" => locale.meridiem(minute_of_day, false).to_owned(),
        "a" => locale.meridiem(minute_of_day, true).to_owned(),
        "H" => hour.to_string(),
        "HH" => zeros(hour, 2),
        "h" => twelve.to_string(),
        "hh" => zeros(twelve, 2),
        "k" => twenty_four.to_string(),
        "kk" => zeros(twenty_four, 2),
        "Hmm" => format!("{hour}{minute:02}"),
        "hmm" => format!("{twelve}{minute:02}"),
        "Hmmss" => format!("{hour}{minute:02}{second:02}"),
        "hmmss" => format!("{twelve}{minute:02}{second:02}"),
        "m" => minute.to_string(),
        "mm" => zeros(minute, 2),
        "s" => second.to_string(),
        "ss" => zeros(second, 2),
        "x" => time.timestamp().as_millisecond().to_string(),
        "X" => time.timestamp().as_second().to_string(),
        // A local time has no name of its zone in moment.js without its zone data.
        "z" | "zz" => String::new(),
        "Z" => offset(time, ":"),
        "ZZ" => offset(time, ""),
        fraction if fraction.starts_with('S') => {
            // Milliseconds are all that moment.js knows; more digits are zeros.
            let mut digits = zeros(i64::from(time.millisecond()), 3);
            while digits.len() < fraction.len() {
                digits.push('0');
            }
            digits.truncate(fraction.len());
            digits
        }
        _ => return None,
    })
}

fn zeros(number: i64, width: usize) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{:0width$}", number.abs())
}

fn offset(time: &Zoned, between: &str) -> String {
    let minutes = time.offset().seconds() / 60;
    let mut out = String::from(if minutes < 0 { "-" } else { "+" });
    let minutes = minutes.abs();
    let _ = write!(out, "{:02}{between}{:02}", minutes / 60, minutes % 60);
    out
}
