//! Invisible and control characters: detecting, removing and showing them.

use std::fmt::Write as _;

/// Returns true if a terminal obeys the character, or displays nothing for it and it joins nothing.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    is_control(c)
        || matches!(
            c,
            // Soft hyphen, Hangul and Khmer fillers, Mongolian vowel separator.
            '\u{ad}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{3164}' | '\u{ffa0}'
            // Zero-width space; word joiner and invisible operators; deprecated format characters;
            // byte order mark.
            | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{feff}'
            // Annotations, and tags, which spell whole sentences unseen.
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

/// Returns true if a terminal obeys the character instead of displaying it.
#[must_use]
pub fn is_control(c: char) -> bool {
    // `char::is_control` is exactly C0, DEL and C1. The others: Unicode Annex 9, embeddings,
    // overrides and isolates.
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the text with invisible characters escaped, such as `\u{200b}`, because a person must
/// see what they approve. Line breaks, tabs, and joiners of letters or emoji stay.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut before = None;
    for c in text.chars() {
        let chooses_no_look = match c {
            // Variation selectors choose between forms of a symbol; after a letter they have no
            // effect, and may spell a hidden text.
            '\u{fe00}'..='\u{fe0f}' => before
                .is_none_or(|before: char| before.is_ascii_alphabetic() || is_selector(before)),
            _ => is_selector(c),
        };
        if !matches!(c, '\n' | '\t') && (is_hidden(c) || chooses_no_look) {
            // Writing to a string cannot fail.
            let _ = write!(whole, "\\u{{{:x}}}", u32::from(c));
        } else {
            whole.push(c);
        }
        before = Some(c);
    }
    whole
}

/// Returns the text without what a terminal would obey: C0 (but newline and tab), DEL, C1 and the
/// bidi controls that reorder text; and characters that are invisible, which make two names look the
/// same. What joins letters or emoji and what says the direction of a word stays: scripts need it.
///
/// Works character by character, so that a text may be cut anywhere and cleaned piece by piece.
#[must_use]
pub fn clean(text: &str) -> String {
    text.chars()
        .filter(|c| matches!(c, '\n' | '\t') || !is_hidden(*c))
        .collect()
}

/// Returns the text like [`clean`] on one line: newlines and tabs become spaces.
#[must_use]
pub fn clean_line(text: &str) -> String {
    text.chars()
        .map(|c| {
            if matches!(c, '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}') {
                ' '
            } else {
                c
            }
        })
        .filter(|c| !is_hidden(*c))
        .collect()
}

/// Returns one line of at most `max` characters, with an ellipsis if it was cut.
#[must_use]
pub fn clip(text: &str, max: usize) -> String {
    let line = clean_line(text);
    let line = line.trim();
    if line.chars().count() <= max {
        return line.to_owned();
    }
    line.chars()
        .take(max.saturating_sub(1))
        .chain(['…'])
        .collect()
}

/// Returns JSON on one line. Characters that a terminal obeys are escaped as `\u`, so that nothing
/// is lost.
#[must_use]
pub fn json_line(value: &impl serde::Serialize) -> String {
    // Our own types hold no maps with keys other than text, the one thing that cannot be written.
    let text = serde_json::to_string(value).unwrap_or_default();
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) || matches!(c, '\u{2028}' | '\u{2029}') {
            // They stand inside strings only. Writing to a String cannot fail.
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(line, "\\u{unit:04x}");
            }
        } else {
            line.push(c);
        }
    }
    line
}

/// Returns true for variation selectors.
fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_written_out() {
        for (text, shown) in [
            ("hi\u{e0068}\u{e0069}", "hi\\u{e0068}\\u{e0069}"),
            ("a\u{200b}b\u{202e}c", "a\\u{200b}b\\u{202e}c"),
            ("\u{1b}[2J\r", "\\u{1b}[2J\\u{d}"),
            ("h\u{fe01}i", "h\\u{fe01}i"),
            ("☺\u{fe0f}\u{fe0f}\u{e0101}", "☺\u{fe0f}\\u{fe0f}\\u{e0101}"),
        ] {
            assert_eq!(visible(text), shown, "{text:?}");
            assert_eq!(visible(shown), shown);
        }
        for text in [
            "Grüße\n\tan Zoë",
            "👩\u{200d}🔬 ☺\u{fe0f} 1\u{fe0f}\u{20e3}",
            "می\u{200c}خواهم",
            "李雷 नमस्ते",
        ] {
            assert_eq!(visible(text), text);
        }
    }
}
