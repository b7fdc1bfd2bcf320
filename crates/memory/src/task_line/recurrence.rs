//! The supported rules of recurrence, `every 2 weeks when done`, and the days they lead to.

use jiff::civil::Date;
use jiff::{Span, ToSpan};

/// A supported rule: every so many days, weeks, months or years.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Recurrence {
    count: u32,
    unit: Unit,
    /// True if it counts from the day of completion, not from the task's own date.
    pub(crate) when_done: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Day,
    Week,
    Month,
    Year,
}

impl Recurrence {
    /// Parses a rule; `None` for every other than `every [N] day|week|month|year[s] [when done]`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let mut words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
        let when_done = words.ends_with(&["when", "done"]);
        if when_done {
            words.truncate(words.len() - 2);
        }
        let (count, unit) = match words.as_slice() {
            ["every", unit] => (1, *unit),
            ["every", count, unit] => (count.parse().ok()?, *unit),
            _ => return None,
        };
        let unit = match unit.strip_suffix('s').unwrap_or(unit) {
            "day" => Unit::Day,
            "week" => Unit::Week,
            "month" => Unit::Month,
            "year" => Unit::Year,
            _ => return None,
        };
        (count > 0).then_some(Self {
            count,
            unit,
            when_done,
        })
    }

    /// Returns the day after one period. In a month or year in which that day does not exist it is
    /// the last day. `None` beyond the year 9999.
    pub(crate) fn after(self, day: Date) -> Option<Date> {
        let count = i32::try_from(self.count).ok()?;
        let span: Option<Span> = match self.unit {
            Unit::Day => Span::new().try_days(count).ok(),
            Unit::Week => Span::new().try_weeks(count).ok(),
            Unit::Month => Span::new().try_months(count).ok(),
            Unit::Year => Span::new().try_years(count).ok(),
        };
        // In a shorter month the last day counts: a month after 31 January is 28 February.
        day.checked_add(span?).ok()
    }
}

/// Returns the day that is as far from `next` as `date` is from `reference`.
pub(crate) fn shift(date: Date, reference: Date, next: Date) -> Option<Date> {
    let days = reference.until(date).ok()?.get_days();
    next.checked_add(days.days()).ok()
}
