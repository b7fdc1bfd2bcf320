//! Dates, times and durations of a text, and whether another moment follows from them.
//!
//! English and German words are understood, and dates in digits. What is not understood is not
//! computed: such a moment then counts as not said.

use jiff::civil::{Date, DateTime, Time, Weekday, time};
use jiff::{Span, ToSpan as _};

use super::chunk::bare;

/// A date, a time, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    date: Option<Date>,
    time: Option<Time>,
}

impl Moment {
    /// Parses a date, time or both in the forms of ISO 8601, with or without an offset. `None`: it is
    /// something else.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let begins_like_one = text.len() >= 5
            && text.starts_with(|c: char| c.is_ascii_digit())
            && text.contains(['-', ':']);
        if !begins_like_one {
            return None;
        }
        if let Ok(date) = text.parse::<Date>()
            && text.len() == 10
        {
            return Some(Self {
                date: Some(date),
                time: None,
            });
        }
        let local = without_offset(text);
        if let Ok(moment) = local.parse::<DateTime>() {
            return Some(Self {
                date: Some(moment.date()),
                time: Some(moment.time()),
            });
        }
        let time = local.parse::<Time>().ok()?;
        Some(Self {
            date: None,
            time: Some(time),
        })
    }
}

/// Returns a time without the offset behind it: the person's own clock is what they speak of.
fn without_offset(text: &str) -> &str {
    let text = text.strip_suffix(['Z', 'z']).unwrap_or(text);
    match text.rfind(['+', '-']) {
        Some(at) if text.get(..at).is_some_and(|before| before.contains(':')) => {
            text.get(..at).unwrap_or(text)
        }
        _ => text,
    }
}

/// The moments of a text, and how long something takes in it.
#[derive(Debug, Default)]
pub(super) struct Moments {
    dates: Vec<Date>,
    times: Vec<Time>,
    minutes: Vec<i64>,
}

impl Moments {
    /// Finds the moments of a text in lower case that was written on the day `today`.
    pub(super) fn of_text(text: &str, today: Date) -> Self {
        let tokens: Vec<&str> = text
            .split(' ')
            .map(|token| bare(token).trim_start_matches('$'))
            .collect();
        let mut found = Self::default();
        for at in 0..tokens.len() {
            found.read_date(&tokens, at, today);
            found.read_time(&tokens, at);
            found.read_duration(&tokens, at, today);
        }
        if !found.times.is_empty() {
            // A time without a day is one of today or tomorrow.
            found.dates.extend([today, shifted(today, 1.day())]);
        }
        found
    }

    /// Returns true if a moment is one of these, or the end of one that lasts as long as was said.
    pub(super) fn follows(&self, moment: &Moment) -> bool {
        let has_date = moment.date.is_none_or(|date| self.dates.contains(&date));
        let has_time = moment.time.is_none_or(|wanted| {
            // The bounds of a whole day.
            let is_bound = moment.date.is_some()
                && (wanted == time(0, 0, 0, 0) || (wanted.hour(), wanted.minute()) == (23, 59));
            let ends = |begin: &Time| {
                let begin = *begin;
                self.minutes
                    .iter()
                    .any(move |minutes| begin.wrapping_add(minutes.minutes()) == wanted)
            };
            is_bound || self.times.contains(&wanted) || self.times.iter().any(ends)
        });
        has_date && has_time
    }

    fn read_date(&mut self, tokens: &[&str], at: usize, today: Date) {
        let token = tokens.get(at).copied().unwrap_or_default();
        let next = |behind: usize| tokens.get(at + behind).copied().unwrap_or_default();
        if let Ok(date) = token.parse::<Date>() {
            self.dates.push(date);
        }
        self.dates.extend(numeric(token, today));
        if let Some(month) = month(token) {
            // "May 15th 2024", "15 May 2024", "15. Mai".
            let before = at.checked_sub(1).and_then(|at| tokens.get(at));
            let before = match before {
                Some(&"of") => at.checked_sub(2).and_then(|at| tokens.get(at)),
                other => other,
            };
            for (day, year) in [(Some(next(1)), next(2)), (before.copied(), next(1))] {
                if let Some(day) = day.and_then(day_of_month) {
                    self.push(year, month, day, today);
                }
            }
        }
        let days = match token {
            "today" | "tonight" | "heute" => Some(0),
            "tomorrow" if at >= 2 && tokens[at - 2..at] == ["day", "after"] => Some(2),
            "tomorrow" | "morgen" => Some(1),
            "übermorgen" => Some(2),
            "yesterday" | "gestern" => Some(-1),
            _ => None,
        };
        self.dates
            .extend(days.map(|days| shifted(today, days.days())));
        if let Some(weekday) = weekday(token) {
            // The week is the person's and the model's to know.
            let near = (-7..=14).map(|days| shifted(today, days.days()));
            self.dates
                .extend(near.filter(|date| date.weekday() == weekday));
        }
    }

    fn push(&mut self, year: &str, month: i8, day: i8, today: Date) {
        match year
            .parse::<i16>()
            .ok()
            .filter(|year| (1000..=9999).contains(year))
        {
            Some(year) => self.dates.extend(Date::new(year, month, day)),
            None => {
                let years = today.year().saturating_sub(1)..=today.year().saturating_add(1);
                self.dates
                    .extend(years.filter_map(|year| Date::new(year, month, day).ok()));
            }
        }
    }

    fn read_time(&mut self, tokens: &[&str], at: usize) {
        let token = tokens.get(at).copied().unwrap_or_default();
        let next = tokens.get(at + 1).copied().unwrap_or_default();
        match token {
            "noon" | "mittags" => self.times.push(time(12, 0, 0, 0)),
            "midnight" | "mitternacht" => self.times.push(time(0, 0, 0, 0)),
            _ => {}
        }
        let (digits, suffix) = token.split_at(
            token
                .find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.')
                .unwrap_or(token.len()),
        );
        let Some((hour, minute)) = clock(digits) else {
            return;
        };
        let half = |word: &str| match word.trim_matches('.') {
            "am" | "a.m" => Some(0),
            "pm" | "p.m" => Some(12),
            _ => None,
        };
        let is_after_at = at
            .checked_sub(1)
            .and_then(|at| tokens.get(at))
            .is_some_and(|before| matches!(*before, "at" | "um" | "till" | "until" | "to" | "by"));
        match half(suffix).or_else(|| half(next).filter(|_| suffix.is_empty())) {
            Some(half) if hour <= 12 => {
                self.times.extend(Time::new(hour % 12 + half, minute, 0, 0))
            }
            _ if digits.contains(':')
                || matches!(suffix, "h" | "uhr")
                || next == "uhr"
                || next == "o'clock"
                || is_after_at =>
            {
                self.times.extend(Time::new(hour, minute, 0, 0));
                if hour < 12 {
                    // "at 5" is mostly in the afternoon.
                    self.times.extend(Time::new(hour + 12, minute, 0, 0));
                }
            }
            _ => {}
        }
    }

    fn read_duration(&mut self, tokens: &[&str], at: usize, today: Date) {
        let token = tokens.get(at).copied().unwrap_or_default();
        // "1-hour" and "2h" are one word.
        let (count, unit) = match token.split_once('-') {
            Some((count, unit)) => (count, unit),
            None => {
                let digits = token.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
                match digits {
                    0 => (
                        at.checked_sub(1)
                            .and_then(|at| tokens.get(at).copied())
                            .unwrap_or_default(),
                        token,
                    ),
                    _ => token.split_at(digits),
                }
            }
        };
        let minutes = match unit {
            "minute" | "minutes" | "min" | "mins" | "minuten" => 1,
            "hour" | "hours" | "h" | "hrs" | "stunde" | "stunden" => 60,
            "day" | "days" | "tag" | "tage" | "tagen" => 24 * 60,
            "week" | "weeks" | "woche" | "wochen" => 7 * 24 * 60,
            _ => return,
        };
        let is_half = at >= 2 && tokens.get(at - 2) == Some(&"half");
        let count = match count {
            "a" | "an" | "ein" | "eine" | "einer" if is_half => 0.5,
            "half" | "halbe" => 0.5,
            "a" | "an" | "per" | "einer" => 1.0,
            count => match super::numbers::of_text(count).as_slice() {
                [number] => *number,
                _ => return,
            },
        };
        // Nothing that a person says lasts longer than this.
        const MINUTES_MAX: f64 = 10.0 * 366.0 * 24.0 * 60.0;
        let total = count * f64::from(minutes);
        if !(0.0..=MINUTES_MAX).contains(&total) {
            return;
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is within the bounds of years"
        )]
        let total = total.round() as i64;
        self.minutes.push(total);
        let days = total / (24 * 60);
        if days > 0 {
            // "in two weeks".
            self.dates.push(shifted(today, days.days()));
        }
    }
}

fn shifted(day: Date, by: Span) -> Date {
    day.checked_add(by).unwrap_or(day)
}

/// Returns hour and minute of `17`, `17:30` or `17.30`.
fn clock(digits: &str) -> Option<(i8, i8)> {
    let digits = digits.trim_end_matches(['.', ':']);
    let (hour, minute) = match digits.split_once([':', '.']) {
        Some((hour, minute)) if minute.len() == 2 => (hour, minute.parse().ok()?),
        Some(_) => return None,
        None => (digits, 0),
    };
    let hour = hour.parse().ok().filter(|hour| *hour < 25)?;
    Some((hour, minute))
}

/// Returns the dates that digits with separators can mean, such as `15.5.2024` or `5/15`.
fn numeric(token: &str, today: Date) -> Vec<Date> {
    let separator = if token.contains('/') { '/' } else { '.' };
    let mut parts = token.split(separator).filter(|part| !part.is_empty());
    let mut next = || parts.next().and_then(|part| part.parse::<i16>().ok());
    let (Some(first), Some(second)) = (next(), next()) else {
        return Vec::new();
    };
    let year = match next() {
        Some(year @ 0..=99) => year + 2000,
        Some(year) => year,
        None if separator == '.' && !token.ends_with('.') => return Vec::new(),
        None => today.year(),
    };
    let both = [(first, second), (second, first)];
    both.into_iter()
        .filter_map(|(day, month)| {
            Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
        })
        .collect()
}

fn day_of_month(token: &str) -> Option<i8> {
    let digits = ["st", "nd", "rd", "th", "."]
        .iter()
        .find_map(|suffix| token.strip_suffix(suffix))
        .unwrap_or(token);
    digits.parse().ok().filter(|day| (1..=31).contains(day))
}

/// Returns the number of a month by its English or German name, whole or cut to three letters.
fn month(token: &str) -> Option<i8> {
    const NAMES: [[&str; 2]; 12] = [
        ["january", "januar"],
        ["february", "februar"],
        ["march", "märz"],
        ["april", "april"],
        ["may", "mai"],
        ["june", "juni"],
        ["july", "juli"],
        ["august", "august"],
        ["september", "september"],
        ["october", "oktober"],
        ["november", "november"],
        ["december", "dezember"],
    ];
    let is_named = |name: &&str| {
        token == *name
            || token.chars().count() == 3 && name.starts_with(token)
            || token == "sept" && name.starts_with(token)
    };
    let at = NAMES.iter().position(|names| names.iter().any(&is_named))?;
    i8::try_from(at + 1).ok()
}

fn weekday(token: &str) -> Option<Weekday> {
    const NAMES: [[&str; 2]; 7] = [
        ["monday", "montag"],
        ["tuesday", "dienstag"],
        ["wednesday", "mittwoch"],
        ["thursday", "donnerstag"],
        ["friday", "freitag"],
        ["saturday", "samstag"],
        ["sunday", "sonntag"],
    ];
    let at = NAMES.iter().position(|names| names.contains(&token))?;
    Weekday::from_monday_zero_offset(i8::try_from(at).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    /// Returns true if a moment follows from a message of Saturday, 28 November 2026.
    fn follows(message: &str, moment: &str) -> bool {
        let moment = Moment::parse(moment).expect("the form of a moment");
        Moments::of_text(message, date(2026, 11, 28)).follows(&moment)
    }

    #[test]
    fn dates_and_times_follow_from_the_words_that_name_them() {
        for (message, moment) in [
            ("see you tomorrow at 5pm", "2026-11-29T17:00"),
            ("see you tomorrow at 5", "2026-11-29 17:00:00"),
            ("lunch on may 15th, 2024", "2024-05-15"),
            ("lunch on 15 may", "2026-05-15"),
            ("am 3. dezember um 17 uhr", "2026-12-03T17:00:00Z"),
            ("on the 15th of november", "2026-11-15"),
            ("on 2024-05-19 at 12:00 for one hour", "2024-05-19 13:00"),
            (
                "a 1-hour long event on 2024-05-16 at 10:00",
                "2024-05-16 11:00",
            ),
            ("friday at noon for half an hour", "2026-12-04T12:30"),
            ("übermorgen", "2026-11-30"),
            ("the day after tomorrow", "2026-11-30"),
            ("in two weeks", "2026-12-12"),
            ("5/15/2024", "2024-05-15"),
            ("on january 2nd 2025", "2025-01-02T00:00"),
            ("at 17:30", "17:30"),
        ] {
            assert!(follows(message, moment), "{message}: {moment}");
        }
    }

    #[test]
    fn other_moments_do_not_follow() {
        for (message, moment) in [
            ("see you tomorrow at 5pm", "2026-11-30T17:00"),
            ("see you tomorrow at 5pm", "2026-11-29T18:00"),
            ("lunch on may 15th, 2024", "2025-05-15"),
            ("thank you", "2026-11-28"),
            ("version 2.5 of 17", "2026-11-28"),
            ("at 17:30", "18:30"),
        ] {
            assert!(!follows(message, moment), "{message}: {moment}");
        }
    }

    #[test]
    fn other_texts_are_no_moments() {
        for text in [
            "12",
            "evil.example:80",
            "2026",
            "10-4",
            "1-800-555",
            "-1:00",
        ] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }
}
