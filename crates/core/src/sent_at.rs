//! The line in front of a message that says when the person sent it.
//!
//! It is part of the message from then on, so that a later turn and a repeated one send the same
//! bytes, and the instruction need not change with the day.

const BEGINNING: &str = "[The person sent this message on ";
const END: &str = ".]\n\n";

/// Returns the line for a local time with its zone, such as `Saturday, 2026-11-28, 09:15
/// (Europe/Berlin, UTC+01:00)`.
#[must_use]
pub fn format(local_time: &str) -> String {
    format!("{BEGINNING}{local_time}{END}")
}

/// Returns a message's text without the line. Recalled facts stand in front of it:
/// [`recall_block::strip`](crate::recall_block::strip) removes both.
pub(crate) fn strip(text: &str) -> &str {
    let rest = text
        .strip_prefix(BEGINNING)
        .and_then(|rest| rest.split_once(END));
    match rest {
        // A message that quotes the line has other lines before the end.
        Some((time, words)) if !time.contains('\n') => words,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_taken_away_and_nothing_else() {
        let line = format("Saturday, 2026-11-28, 09:15 (Europe/Berlin, UTC+01:00)");
        assert_eq!(strip(&format!("{line}hello\n\nyou")), "hello\n\nyou");
        for said in ["hello", "[The person sent this message on a\nb.]\n\nc", ""] {
            assert_eq!(strip(said), said);
        }
    }
}
