//! Dates in the formats of moment.js, which Obsidian's settings are written in.
//!
//! Source: moment.js 2.29.4 (the version that Obsidian's API names), `formattingTokens` and its
//! `addFormatToken` calls. `crates/memory/tests/it/fixtures/moment.json` and `locales.json` hold
//! the output of moment.js itself.

use jiff::Zoned;

use super::locale::{Locale, name_at};

/// The localised formats, in the order of [`Locale::long`].
const LONG_TOKENS: [&str; 10] = [
    "LTS", "LT", "LLLL", "LLL", "LL", "L", "llll", "lll", "ll", "l",
];

/// The tokens in the order of moment.js's pattern: the first that matches counts, not the longest.
/// Fractions of a second (`S` to `SSSSSSSSS`) are found by [`token_at`].
const TOKENS: &[&str] = &[
    "Hmmss", "hmmss", "Hmm", "hmm", "Mo", "MMMM", "MMM", "MM", "M", "Do", "DDDo", "DDDD", "DDD",
    "DD", "D", "dddd", "ddd", "dd", "do", "d", "wo", "ww", "w|", "w", "Wo", "WW", "W|", "W", "Qo",
    "Q", "NNNNN", "NNNN", "NNN", "NN", "N", "YYYYYY", "YYYYY", "YYYY", "YY", "Y", "yyyy", "yyy",
    "yy", "yo", "y", "ggggg", "gggg", "gg", "GGGGG", "GGGG", "GG", "e", "E", "a", "A", "hh", "h",
    "HH", "H", "kk", "k", "mm", "m", "ss", "s", "x", "X", "zz", "z", "ZZ", "Z",
];

/// The tokens whose value depends on the language.
const LOCALISED_TOKENS: &[&str] = &[
    "MMMM", "MMM", "dddd", "ddd", "dd", "Mo", "Qo", "Do", "DDDo", "do", "wo", "Wo", "yo", "w",
    "ww", "gg", "gggg", "ggggg", "e", "a", "A", "y", "yy", "yyy", "yyyy", "N", "NN", "NNN", "NNNN",
    "NNNNN",
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
    names: FormatNames,
}

enum FormatPart {
    Text(String),
    Token(&'static str),
}

/// A language, and its names in the grammatical forms that a format requires.
struct FormatNames {
    locale: Locale,
    months: &'static [String],
    short_months: &'static [String],
    days: &'static [String],
}

impl Format {
    pub(super) fn new(format: &str, locale: Locale) -> Self {
        let format = expand(format, locale);
        let mut pieces = Vec::new();
        let mut rest = format.as_str();
        while !rest.is_empty() {
            let (length, piece) = next_piece(rest);
            pieces.push(piece);
            rest = rest.get(length..).unwrap_or_default();
        }
        // moment.js too chooses the form by the format after the localised tokens were expanded.
        let names = FormatNames {
            locale,
            months: locale.months(&format),
            short_months: locale.short_months(&format),
            days: locale.days(&format),
        };
        Self { pieces, names }
    }

    pub(super) fn write(&self, time: &Zoned) -> String {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                FormatPart::Text(text) => out.push_str(text),
                FormatPart::Token(token) => out.push_str(
                    token_value(token, time, &self.names)
                        .as_deref()
                        .unwrap_or(token),
                ),
            }
        }
        out
    }

    /// Returns true if a date in this format depends on the language.
    pub(super) fn has_names(&self) -> bool {
        self.pieces.iter().any(
            |piece| matches!(piece, FormatPart::Token(token) if LOCALISED_TOKENS.contains(token)),
        )
    }
}

/// Parses the first piece of a format that is not empty, and returns its length in the format.
fn next_piece(rest: &str) -> (usize, FormatPart) {
    if let Some(end) = bracketed_len(rest) {
        let inner = rest.get(1..end - 1).unwrap_or_default();
        return (end, FormatPart::Text(inner.to_owned()));
    }
    if let Some(escaped) = rest.strip_prefix('\\') {
        // The backslash escapes a whole token, unless a line ends there.
        let taken = match (token_at(escaped), escaped.chars().next()) {
            (Some(token), _) => token.len(),
            (None, None | Some('\n' | '\r')) => 0,
            (None, Some(char)) => char.len_utf8(),
        };
        let text = escaped.get(..taken).unwrap_or_default().replace('\\', "");
        return (1 + taken, FormatPart::Text(text));
    }
    match (token_at(rest), rest.chars().next().unwrap_or_default()) {
        (Some(token), _) => (token.len(), FormatPart::Token(token)),
        // The `.` of moment.js's pattern matches no line break, so it drops them.
        (None, '\n' | '\r') => (1, FormatPart::Text(String::new())),
        (None, char) => (char.len_utf8(), FormatPart::Text(char.to_string())),
    }
}

fn token_at(text: &str) -> Option<&'static str> {
    match text.bytes().take_while(|byte| *byte == b'S').count() {
        0 => TOKENS.iter().copied().find(|token| text.starts_with(token)),
        digits => "SSSSSSSSS".get(..digits.min(9)),
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
fn token_value(token: &str, time: &Zoned, names: &FormatNames) -> Option<String> {
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
        "Mo" => ordinal(month),
        "M" | "MM" => zero_padded(month, token.len()),
        "MMM" => name_at(names.short_months, month - 1),
        "MMMM" => name_at(names.months, month - 1),
        "Q" => quarter.to_string(),
        "Qo" => ordinal(quarter),
        "Do" => ordinal(day),
        "D" | "DD" => zero_padded(day, token.len()),
        "DDD" => of_year.to_string(),
        "DDDo" => ordinal(of_year),
        "DDDD" => zero_padded(of_year, 3),
        "d" => weekday.to_string(),
        "e" => ((weekday + 7 - locale.first_weekday()) % 7).to_string(),
        "do" => ordinal(weekday),
        "dd" => locale.shortest_day(weekday),
        "ddd" => locale.short_day(weekday),
        "dddd" => name_at(names.days, weekday),
        "E" => (if weekday == 0 { 7 } else { weekday }).to_string(),
        "wo" => ordinal(week),
        "w" | "ww" => zero_padded(week, token.len()),
        "Wo" => ordinal(iso_week),
        "W" | "WW" => zero_padded(iso_week, token.len()),
        "YY" => zero_padded(year % 100, 2),
        // ISO 8601 gives years of more than four digits a sign.
        "Y" if year > 9999 => format!("+{year}"),
        "Y" | "YYYY" => zero_padded(year, 4),
        "YYYYY" => zero_padded(year, 5),
        "YYYYYY" if year >= 0 => format!("+{}", zero_padded(year, 6)),
        "YYYYYY" => zero_padded(year, 6),
        "yo" => ordinal(era_year),
        "y" | "yy" | "yyy" | "yyyy" => zero_padded(era_year, token.len()),
        "N" | "NN" | "NNN" => era.to_owned(),
        "NNNN" => era_name.to_owned(),
        "NNNNN" => era_narrow.to_owned(),
        "gg" => zero_padded(week_year % 100, 2),
        "gggg" | "ggggg" => zero_padded(week_year, token.len()),
        "GG" => zero_padded(iso_year % 100, 2),
        "GGGG" | "GGGGG" => zero_padded(iso_year, token.len()),
        "A" => locale.meridiem(minute_of_day, false).to_owned(),
        "a" => locale.meridiem(minute_of_day, true).to_owned(),
        "H" | "HH" => zero_padded(hour, token.len()),
        "h" | "hh" => zero_padded(twelve, token.len()),
        "k" | "kk" => zero_padded(twenty_four, token.len()),
        "Hmm" => format!("{hour}{minute:02}"),
        "hmm" => format!("{twelve}{minute:02}"),
        "Hmmss" => format!("{hour}{minute:02}{second:02}"),
        "hmmss" => format!("{twelve}{minute:02}{second:02}"),
        "m" | "mm" => zero_padded(minute, token.len()),
        "s" | "ss" => zero_padded(second, token.len()),
        "x" => time.timestamp().as_millisecond().to_string(),
        "X" => time.timestamp().as_second().to_string(),
        // A local time has no name of its zone in moment.js without its zone data.
        "z" | "zz" => String::new(),
        "Z" => utc_offset(time, ":"),
        "ZZ" => utc_offset(time, ""),
        fraction if fraction.starts_with('S') => {
            // Milliseconds are all that moment.js knows; more digits are zeros.
            let digits = format!("{:03}000000", time.millisecond());
            digits.get(..fraction.len()).unwrap_or(&digits).to_owned()
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
    let sign = if minutes < 0 { '-' } else { '+' };
    let minutes = minutes.abs();
    format!("{sign}{:02}{between}{:02}", minutes / 60, minutes % 60)
}
