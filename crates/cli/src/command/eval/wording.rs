//! Descriptions that a case expects: exact words, or words that they contain.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer, StrDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use unicode_normalization::UnicodeNormalization as _;

/// The wording of a description. A plain string in JSON is the same as `{"is": ...}`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wording {
    /// The description equals one of these, word by word.
    Is(Vec<String>),
    /// The description contains each of these, ignoring case.
    Has(Vec<String>),
}

impl Wording {
    /// Creates a wording from the fields `is` and `has`, one of which has to be given.
    ///
    /// # Errors
    /// Both or none is given, or no description could fit.
    pub(crate) fn new(is: Option<Vec<String>>, has: Option<Vec<String>>) -> Result<Self, String> {
        match (is, has) {
            (Some(alternatives), None) if alternatives.is_empty() => {
                Err("is is empty: nothing could fit".to_owned())
            }
            (Some(alternatives), None) => {
                match alternatives.iter().find(|text| words(text).is_empty()) {
                    Some(text) => Err(format!("is has no word: {text:?}")),
                    None => Ok(Self::Is(alternatives)),
                }
            }
            (None, Some(parts)) => Ok(Self::Has(parts)),
            (None, None) => Err("one of is and has is needed".to_owned()),
            (Some(_), Some(_)) => Err("is and has cannot both be given".to_owned()),
        }
    }

    /// Returns true if a description has this wording.
    pub(crate) fn fits(&self, description: &str) -> bool {
        match self {
            Self::Is(alternatives) => {
                let description = words(description);
                alternatives.iter().any(|text| words(text) == description)
            }
            Self::Has(parts) => parts.iter().all(|part| contains(description, part)),
        }
    }
}

impl fmt::Display for Wording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(alternatives) => {
                for (index, text) in alternatives.iter().enumerate() {
                    let or = if index == 0 { "" } else { " or " };
                    write!(f, "{or}\u{201c}{text}\u{201d}")?;
                }
                Ok(())
            }
            Self::Has(parts) => write!(f, "\u{201c}{}\u{201d}", parts.join(" ")),
        }
    }
}

/// Returns true if a text contains another one, ignoring case.
pub(crate) fn contains(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}

/// Splits a text into its words in lower case: letters and digits, and apostrophes between them.
/// The same letters are the same word, whether their accents are characters of their own or not.
fn words(text: &str) -> Vec<String> {
    let text: Vec<char> = text.nfc().flat_map(char::to_lowercase).nfc().collect();
    let in_word = |at: Option<usize>| {
        let c = at.and_then(|at| text.get(at));
        c.is_some_and(|c| c.is_alphanumeric() || is_mark(*c))
    };
    let mut words = vec![String::new()];
    for (at, &c) in text.iter().enumerate() {
        // A typographic apostrophe is the same letter as the one of the keyboard.
        let apostrophe = matches!(c, '\'' | '\u{2019}');
        if in_word(Some(at)) {
            push(&mut words, c);
        } else if apostrophe && in_word(at.checked_sub(1)) && in_word(Some(at + 1)) {
            push(&mut words, '\'');
        } else if words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn push(words: &mut [String], c: char) {
    if let Some(word) = words.last_mut() {
        word.push(c);
    }
}

/// Returns true for a mark that is part of the letter before it.
fn is_mark(c: char) -> bool {
    unicode_normalization::char::is_combining_mark(c)
}

impl<'de> Deserialize<'de> for Wording {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Fields {
            is: Option<OneOrMany<String>>,
            has: Option<Vec<String>>,
        }
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Wording;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, {\"is\": ...} or {\"has\": [...]}")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Wording, E> {
                Wording::new(Some(vec![text.to_owned()]), None).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Wording, A::Error> {
                let fields = Fields::deserialize(MapAccessDeserializer::new(map))?;
                Wording::new(fields.is.map(|is| is.0), fields.has).map_err(serde::de::Error::custom)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// A value, or a list of values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OneOrMany<T>(pub(crate) Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
            type Value = Vec<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value or a list of them")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<T>, E> {
                T::deserialize(StrDeserializer::new(text)).map(|value| vec![value])
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vec<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|value| vec![value])
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Vec<T>, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list))
            }
        }
        deserializer.deserialize_any(Reader(PhantomData)).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Wording, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    fn fits(json: &str, description: &str) -> bool {
        read(json).expect("a wording").fits(description)
    }

    #[test]
    fn exact_words_are_compared_without_capitals_spaces_and_punctuation() {
        for (wording, description) in [
            (r#""buy milk""#, "  Buy,  MILK!"),
            (r#"{"is": "Buy milk"}"#, "buy\u{a0}milk"),
            (r#"{"is": ["Get milk", "Buy milk"]}"#, "Buy milk."),
            (
                r#""Zahnarzt anrufen: Übermorgen""#,
                "zahnarzt anrufen übermorgen",
            ),
            (r#""Call mum's doctor""#, "call Mum\u{2019}s doctor"),
            (r#""Clich\u00e9""#, "cliche\u{301}"),
            (r#""Позвонить ВРАЧУ""#, "позвонить врачу"),
        ] {
            assert!(fits(wording, description), "{wording} {description}");
        }
        for (wording, description) in [
            (r#""Buy milk""#, "Buy oat milk"),
            (r#""Buy milk""#, "Buymilk"),
            (r#""Buy milk""#, "milk buy"),
            (r#""Buy milk 2""#, "Buy milk 3"),
            (r#""mums""#, "mum's"),
            (r#""Apfel""#, "Äpfel"),
            (r#"{"is": ["Get milk", "Buy milk"]}"#, "Milk"),
        ] {
            assert!(!fits(wording, description), "{wording} {description}");
        }
    }

    #[test]
    fn apostrophes_around_a_word_are_punctuation() {
        assert_eq!(words("'Don't' 'panic'"), ["don't", "panic"]);
        assert_eq!(words("--- !"), Vec::<String>::new());
    }

    #[test]
    fn words_that_are_contained_may_be_parts_of_words() {
        assert!(fits(r#"{"has": ["MILK", "buy"]}"#, "Buy oatmilk"));
        assert!(!fits(r#"{"has": ["milk", "bread"]}"#, "Buy milk"));
    }

    #[test]
    fn a_wording_that_says_nothing_or_two_things_is_an_error() {
        for (json, reason) in [
            ("{}", "one of is and has is needed"),
            (
                r#"{"is": "a", "has": ["a"]}"#,
                "is and has cannot both be given",
            ),
            (r#"{"is": []}"#, "is is empty: nothing could fit"),
            (r#""...""#, "is has no word: \"...\""),
            (r#"{"was": "a"}"#, "unknown field `was`"),
            ("7", "expected a text, {\"is\": ...} or {\"has\": [...]}"),
        ] {
            let error = read(json).expect_err(json);
            assert!(error.contains(reason), "{json}: {error}");
        }
    }
}
