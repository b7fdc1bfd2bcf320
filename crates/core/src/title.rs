//! Titles of conversations.

use crate::event::InputBody;

/// Maximum length of a generated title, in Unicode characters.
const MADE_CHARS_MAX: usize = 60;
/// Maximum length of a title that a person chooses, in Unicode characters.
pub const TITLE_CHARS_MAX: usize = 200;

/// Greetings in lower case, longer ones before their prefixes.
const GREETINGS: &[&str] = &[
    "good morning",
    "good afternoon",
    "good evening",
    "good day",
    "guten morgen",
    "guten abend",
    "guten tag",
    "grüß gott",
    "grüß dich",
    "buenos días",
    "hello there",
    "hello",
    "hallo",
    "hey there",
    "hey",
    "hi there",
    "hiya",
    "hi",
    "howdy",
    "greetings",
    "moin moin",
    "moin",
    "servus",
    "salut",
    "bonjour",
    "hola",
    "ciao",
    "how are you",
    "wie geht es dir",
    "wie gehts",
    "wie geht's",
    "are you there",
    "bist du da",
    "testing",
    "test",
];

/// Returns a title made of the first words of a message after its greeting, cut between words, at
/// most 60 Unicode characters. `None`: the input is not a message, or only a greeting.
#[must_use]
pub fn title(input: &InputBody) -> Option<String> {
    let InputBody::Message { text, .. } = input else {
        return None;
    };
    cut(behind_greetings(&on_one_line(text)))
}

/// Returns the first words of a message, its greeting included, cut like a [`title`]. They stand for
/// the title of a conversation in which nothing but greetings was said. `None`: the input is not a
/// message, or empty.
#[must_use]
pub fn first_words(input: &InputBody) -> Option<String> {
    let InputBody::Message { text, .. } = input else {
        return None;
    };
    cut(&on_one_line(text))
}

/// Returns true if a text is only a greeting.
#[must_use]
pub fn is_greeting(text: &str) -> bool {
    let text = on_one_line(text);
    !text.is_empty() && behind_greetings(&text).is_empty()
}

/// Cuts a line between words to the length of a generated title; `None` if it is empty.
fn cut(text: &str) -> Option<String> {
    if text.chars().count() <= MADE_CHARS_MAX {
        return (!text.is_empty()).then(|| text.to_owned());
    }
    // One character is left for the ellipsis. A space directly after the cut ends a word too.
    let head: String = text.chars().take(MADE_CHARS_MAX).collect();
    let end = match head.rfind(' ') {
        Some(space) => space,
        None => head.char_indices().last().map_or(0, |(last, _)| last),
    };
    Some(format!("{}…", &head[..end]))
}

/// Normalises a title that a person chose: one line, no control characters, trimmed. Returns `None`
/// if nothing is left or `text` has more than [`TITLE_CHARS_MAX`] characters.
#[must_use]
pub fn given_title(text: &str) -> Option<String> {
    let title = on_one_line(text);
    (!title.is_empty() && text.chars().count() <= TITLE_CHARS_MAX).then_some(title)
}

/// Returns the text after its greetings. A greeting ends with punctuation or the text, so "Hi-fi"
/// and "test the pump" are none, nor is a greeting with a name after it. A text of punctuation
/// alone is returned unchanged.
fn behind_greetings(text: &str) -> &str {
    let is_mark = |c: char| {
        matches!(c, ',' | '.' | '!' | '?' | ';' | ':' | '…' | '–' | '—') || is_pictograph(c)
    };
    let mut rest = text.trim_start_matches(|c| is_mark(c) || c == ' ');
    if rest.is_empty() {
        // Punctuation alone is a message, too.
        return text;
    }
    while let Some(behind) = GREETINGS.iter().find_map(|greeting| behind(rest, greeting)) {
        if !behind.is_empty() && !behind.trim_start().starts_with(is_mark) {
            break;
        }
        rest = behind.trim_start_matches(|c| is_mark(c) || c == ' ');
    }
    rest
}

/// Returns the text after a prefix, ignoring case, or `None` if it does not begin with it.
fn behind<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    // Character by character: a text in lower case may have another length than the original.
    let mut rest = text.chars();
    for wanted in words.chars() {
        let found = rest.next()?;
        if found != wanted && !found.to_lowercase().eq([wanted]) {
            return None;
        }
    }
    Some(rest.as_str())
}

/// Returns true for pictographs and the variation selector (U+FE0F) that makes one of the previous
/// character.
fn is_pictograph(c: char) -> bool {
    matches!(c, '\u{1f000}'..='\u{1faff}' | '\u{2600}'..='\u{27bf}' | '\u{fe0f}' | '\u{200d}')
}

fn on_one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, title: Option<&str>) {
        assert_eq!(super::title(&InputBody::message(text)).as_deref(), title);
    }

    #[test]
    fn short_messages_are_kept() {
        check("Add a task:\n\tbuy milk", Some("Add a task: buy milk"));
        check(&"ä".repeat(60), Some(&"ä".repeat(60)));
    }

    #[test]
    fn long_messages_are_cut_between_words() {
        check(
            "Please remind me to call the dentist before the end of next week at the latest",
            Some("Please remind me to call the dentist before the end of next…"),
        );
        check(
            &format!("{} {}", "a".repeat(59), "b".repeat(9)),
            Some(&format!("{}…", "a".repeat(59))),
        );
    }

    #[test]
    fn a_word_without_an_end_is_cut_where_the_room_ends() {
        check(&"漢".repeat(100), Some(&format!("{}…", "漢".repeat(59))));
    }

    #[test]
    fn a_greeting_says_nothing() {
        for text in [
            "hello",
            "Hi!",
            "hey there 👋",
            "Guten Tag.",
            "Hello! How are you?",
            "GRÜẞ GOTT",
            "Test",
            "moin moin",
        ] {
            check(text, None);
            assert!(is_greeting(text));
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(first_words(&InputBody::message(text)), Some(words));
        }
        for text in ["", "?", "Hello! Please add milk"] {
            assert!(!is_greeting(text), "{text:?}");
        }
        check("Hello! Please add milk", Some("Please add milk"));
        check("Hallo,\nwas steht heute an?", Some("was steht heute an?"));
        for kept in [
            "Hi-fi for the kitchen",
            "hello world in Rust",
            "test the pump",
            "History of Rome",
            "?",
            "Hey Anna, call me",
        ] {
            check(kept, Some(kept));
        }
    }

    #[test]
    fn no_words_no_title() {
        check(" \n ", None);
        assert_eq!(super::title(&InputBody::Cancel), None);
    }

    #[test]
    fn a_given_title_is_one_line_with_words_in_it() {
        assert_eq!(
            given_title(" Shop\u{1b}ping \n list\t").as_deref(),
            Some("Shop ping list")
        );
        assert_eq!(given_title(&"漢".repeat(200)), Some("漢".repeat(200)));
        for unusable in [
            String::new(),
            " \r\n\u{7}".to_owned(),
            "x".repeat(201),
            "x".repeat(200) + "\n",
        ] {
            assert_eq!(given_title(&unusable), None, "{unusable:?}");
        }
    }
}
