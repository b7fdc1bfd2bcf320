//! The filter of decisions on the command line.

use adjutant_core::port::Which;
use adjutant_core::{AgentName, DecisionFilter, OutcomeCategory, UnknownRating, UserId, nearest};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::args::LogFilter;
use crate::command::output::user_option;
use crate::error::CliError;

/// The users whose decisions are listed.
#[derive(Debug, Clone)]
pub(super) enum UserSelection {
    /// One user.
    One(UserId),
    /// All users.
    All(Which),
}

/// Parses users and filter.
///
/// # Errors
/// An outcome, a time or a conversation's id is invalid.
pub(super) fn parse(
    given: LogFilter,
    limit: Option<u32>,
    now: Timestamp,
) -> Result<(UserSelection, DecisionFilter), CliError> {
    let user = given.user.as_deref().map(user_option).transpose()?;
    let moment = |text: Option<String>| text.map(|text| moment(&text, now)).transpose();
    let agent = given.agent.map(AgentName::new).transpose();
    let feedback = given.feedback.map(|word| word.parse()).transpose();
    let conversation = given.thread.map(|id| {
        id.parse()
            // The cause is about the format of UUIDs; ids are copied from a list and not written.
            .map_err(|_| CliError::usage(format!("{id:?} is no conversation's id")))
    });
    let filter = DecisionFilter {
        agent: agent.map_err(|error| CliError::usage(format!("--agent: {error}")))?,
        outcome: given.outcome.as_deref().map(outcome).transpose()?,
        conversation: conversation.transpose()?,
        tool: given.tool,
        feedback: feedback
            .map_err(|error: UnknownRating| CliError::usage(format!("--feedback: {error}")))?,
        since: moment(given.since)?,
        until: moment(given.until)?,
        after: None,
        limit,
    };
    let users = match (given.all_users, given.failed) {
        (false, _) => UserSelection::One(user.unwrap_or_else(UserId::local)),
        (true, false) => UserSelection::All(Which::All),
        (true, true) => UserSelection::All(Which::Failed),
    };
    Ok((users, filter))
}

fn outcome(word: &str) -> Result<OutcomeCategory, CliError> {
    // The cause says only that there is no such word; the remedy has those that there are.
    word.to_uppercase().parse().map_err(|_| {
        let words: Vec<&str> = OutcomeCategory::ALL
            .iter()
            .map(|outcome| outcome.as_str())
            .collect();
        let error = CliError::usage(format!("there is no outcome {word:?}"));
        match nearest(word, words.iter().copied()) {
            Some(near) => error.or_try(near),
            None => error.or_try(words.join(", ")),
        }
    })
}

/// Parses a time: a timestamp with its zone, a day (its start in UTC), or a duration before now.
///
/// # Errors
/// It is none of these.
pub(super) fn moment(text: &str, now: Timestamp) -> Result<Timestamp, CliError> {
    let text = text.trim();
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    if let Ok(day) = text.parse::<Date>()
        && let Ok(day) = day.to_zoned(TimeZone::UTC)
    {
        return Ok(day.timestamp());
    }
    // A day counts as 24 hours, without regard to daylight saving time.
    let days = text
        .strip_suffix('d')
        .and_then(|days| days.trim().parse::<i64>().ok());
    let ago = days
        .and_then(|days| days.checked_mul(24))
        .map(SignedDuration::from_hours)
        .or_else(|| text.parse::<SignedDuration>().ok());
    let at = ago
        .filter(|ago| !ago.is_negative())
        .and_then(|ago| now.checked_sub(ago).ok());
    at.ok_or_else(|| {
        CliError::usage(format!("{text:?} is no time"))
            .or_try("a moment: 2026-01-31T09:00:00Z")
            .or_try("a day: 2026-01-31")
            .or_try("so long ago: 90m, 24h, 7d")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_time_a_day_or_so_long_ago() {
        let now: Timestamp = "2026-02-01T12:00:00Z".parse().unwrap();
        for (text, at) in [
            ("2026-01-31T09:00:00Z", "2026-01-31T09:00:00Z"),
            ("2026-01-31T09:00:00+02:00", "2026-01-31T07:00:00Z"),
            ("2026-01-31", "2026-01-31T00:00:00Z"),
            ("90m", "2026-02-01T10:30:00Z"),
            ("24h", "2026-01-31T12:00:00Z"),
            ("7d", "2026-01-25T12:00:00Z"),
        ] {
            assert_eq!(moment(text, now).unwrap(), at.parse().unwrap(), "{text}");
        }
        for text in ["", "yesterday", "-1h", "7", "99999999999999d"] {
            assert_eq!(moment(text, now).unwrap_err().exit as u8, 2, "{text}");
        }
    }
}
