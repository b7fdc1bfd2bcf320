//! Finds out whether the arguments of a call are in a person's own words.
//!
//! A call that says nothing but what the person said, or what follows from it, reveals nothing and
//! does nothing that somebody else thought of. Everything else may come from text of others.

use std::collections::HashSet;
use std::sync::{LazyLock, OnceLock};

use jiff::civil::Date;
use rust_stemmers::{Algorithm, Stemmer};
use serde_json::Value;

use crate::tool::{Arguments, ToolDefinition};

mod chunk; // parts of a text between blanks
mod ids; // ids of items that are known to the person
mod moments; // dates, times and durations of a text
mod numbers; // numbers of a text, in digits and in words

use chunk::{bare, is_around};
pub use ids::KnownItems;

/// The largest number of characters of own words that is read, from the newest message back.
const CHARS_MAX: usize = 200_000;

/// Languages whose inflections are recognised. A word that none of them inflects has to be the same.
static STEMMERS: LazyLock<Vec<Stemmer>> = LazyLock::new(|| {
    [
        Algorithm::English,
        Algorithm::German,
        Algorithm::French,
        Algorithm::Spanish,
        Algorithm::Portuguese,
        Algorithm::Italian,
        Algorithm::Dutch,
    ]
    .map(Stemmer::create)
    .into()
});

/// Words that carry no meaning of their own, in the languages of [`STEMMERS`]: a text may have them
/// although the person did not write them.
static FUNCTION_WORDS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    // A text with one of these more or less says the opposite.
    const NEGATIONS: [&str; 26] = [
        "no", "not", "nor", "never", "none", "without", "against", "nicht", "nichts", "kein",
        "keine", "keinen", "nie", "ohne", "gegen", "pas", "ne", "non", "sans", "contre", "ni",
        "nunca", "sin", "não", "nem", "sem",
    ];
    ["en", "de", "fr", "es", "pt", "it", "nl"]
        .into_iter()
        .filter_map(stop_words::lookup)
        .flatten()
        .map(|word| word.to_lowercase())
        // "don't" and its like are negations too.
        .filter(|word| {
            !NEGATIONS.contains(&word.as_str()) && !word.ends_with("n't") && !word.ends_with("n’t")
        })
        .chain(["user", "person", "user's"].map(str::to_owned))
        .collect()
});

/// The degree to which a value is not in a person's own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Foreign {
    /// All of it is in the person's words, or follows from them.
    Nothing,
    /// Words, dates or ids are not, which a person may allow for a conversation.
    Words,
    /// An amount or an address is not, or something that may be one.
    AmountOrAddress,
}

/// The words that a person wrote in a conversation, and the items that they can mean.
///
/// # Examples
///
/// ```
/// use adjutant_core::{Foreign, KnownItems, OwnWords};
/// use serde_json::json;
///
/// let words = OwnWords::new(["Send 50 euros to Anna tomorrow"], jiff::civil::date(2026, 11, 28));
/// let items = KnownItems::default();
/// let foreign = |value| words.foreign_in("value", &value, &items);
/// assert_eq!(foreign(json!({"to": "Anna", "amount": 50, "on": "2026-11-29"})), Foreign::Nothing);
/// assert_eq!(foreign(json!("Bert")), Foreign::Words);
/// assert_eq!(foreign(json!(51)), Foreign::AmountOrAddress);
/// assert_eq!(foreign(json!("evil.example/euros")), Foreign::AmountOrAddress);
/// ```
#[derive(Debug)]
pub struct OwnWords {
    /// The messages in lower case, with single blanks.
    text: String,
    /// The day on which the last message was written.
    today: Date,
    chunks: HashSet<String>,
    words: HashSet<String>,
    stems: OnceLock<Vec<HashSet<String>>>,
    numbers: OnceLock<Vec<f64>>,
    moments: OnceLock<moments::Moments>,
}

impl OwnWords {
    /// Creates the own words of a person from their messages, oldest first, and the day on which
    /// the last one was written.
    #[must_use]
    pub fn new<'m>(messages: impl IntoIterator<Item = &'m str>, today: Date) -> Self {
        let joined = messages.into_iter().collect::<Vec<_>>().join("\n");
        let begin = joined.len().saturating_sub(CHARS_MAX);
        let newest = joined
            .get(joined.ceil_char_boundary(begin)..)
            .unwrap_or_default();
        let lower = newest.to_lowercase();
        let text = lower.split_whitespace().collect::<Vec<_>>().join(" ");
        let chunks: HashSet<String> = text
            .split(' ')
            .flat_map(|chunk| [bare(chunk), address(bare(chunk))])
            .filter(|chunk| !chunk.is_empty())
            .map(str::to_owned)
            .collect();
        let words = text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect();
        Self {
            text,
            today,
            chunks,
            words,
            stems: OnceLock::new(),
            numbers: OnceLock::new(),
            moments: OnceLock::new(),
        }
    }

    /// Returns the degree to which the arguments of a call are not in the person's words. `written`
    /// are the arguments as the model wrote them, before references were resolved: of both forms,
    /// one is enough.
    ///
    /// Values that the tool's schema lists (`enum`, `const`, `default`) and booleans count as own; a
    /// change that has no others is in the person's words if they name what the tool does.
    #[must_use]
    pub fn foreign_arguments(
        &self,
        definition: &ToolDefinition,
        written: &Arguments,
        arguments: &Arguments,
        items: &KnownItems,
    ) -> Foreign {
        let schema = |name: &str| definition.parameters.get("properties")?.get(name);
        let degree = |(name, value): (&String, &Value)| {
            let resolved = self.foreign_value(name, value, schema(name), items);
            match written.get(name) {
                Some(before) if before != value => {
                    resolved.min(self.foreign_value(name, before, schema(name), items))
                }
                _ => resolved,
            }
        };
        let says_something = |(name, value): (&String, &Value)| says_something(schema(name), value);
        match arguments
            .iter()
            .map(degree)
            .max()
            .unwrap_or(Foreign::Nothing)
        {
            Foreign::Nothing
                if !definition.annotations.read_only
                    && !arguments.iter().any(says_something)
                    && !self.name_tool(definition) =>
            {
                Foreign::Words
            }
            degree => degree,
        }
    }

    /// Returns true if the person's words name what a tool does: `unlock_door` by "unlock the door".
    fn name_tool(&self, definition: &ToolDefinition) -> bool {
        let name = definition.name.as_str();
        let own = name.rsplit_once("__").map_or(name, |(_, own)| own);
        let mut spaced = String::with_capacity(own.len() + 8);
        for letter in own.chars() {
            if letter.is_uppercase() || !letter.is_alphanumeric() {
                spaced.push(' ');
            }
            if letter.is_alphanumeric() {
                spaced.extend(letter.to_lowercase());
            }
        }
        self.foreign_text(&spaced) == Foreign::Nothing
    }

    /// Returns the degree to which a value under this name is not in the person's words.
    #[must_use]
    pub fn foreign_in(&self, name: &str, value: &Value, items: &KnownItems) -> Foreign {
        self.foreign_value(name, value, None, items)
    }

    fn foreign_value(
        &self,
        name: &str,
        value: &Value,
        schema: Option<&Value>,
        items: &KnownItems,
    ) -> Foreign {
        if schema.is_some_and(|schema| lists(schema, value)) {
            return Foreign::Nothing;
        }
        let degree = match value {
            Value::Null | Value::Bool(_) => Foreign::Nothing,
            Value::Number(number) => match number.as_f64() {
                Some(number) if self.has_number(number) => Foreign::Nothing,
                _ => Foreign::AmountOrAddress,
            },
            Value::String(text) => self.foreign_text(text),
            Value::Array(values) => {
                let schema = schema.and_then(|schema| schema.get("items"));
                let degree = |value| self.foreign_value(name, value, schema, items);
                return values.iter().map(degree).max().unwrap_or(Foreign::Nothing);
            }
            Value::Object(values) => {
                let schema = |name: &str| schema?.get("properties")?.get(name);
                let degree = |(name, value): (&String, &Value)| {
                    // A free-form object may carry words in its names too.
                    let named = match schema(name) {
                        Some(_) => Foreign::Nothing,
                        None if is_plain_name(name) => Foreign::Nothing,
                        None => self.foreign_text(name),
                    };
                    named.max(self.foreign_value(name, value, schema(name), items))
                };
                return values.iter().map(degree).max().unwrap_or(Foreign::Nothing);
            }
        };
        if degree == Foreign::Nothing || !ids::is_name_of_id(name) {
            return degree;
        }
        match items.contains(value, |named| self.name(named)) {
            true => Foreign::Nothing,
            // An id is no amount, and where it leads is what the question shows.
            false if is_plain_id(value) => Foreign::Words,
            false => degree,
        }
    }

    /// Returns true if every word of a text is the person's, and one of them has a meaning.
    fn name(&self, text: &str) -> bool {
        let has_meaning = |word: &str| !word.is_empty() && !FUNCTION_WORDS.contains(word);
        let lower = text.to_lowercase();
        lower.split(|c: char| !c.is_alphanumeric()).any(has_meaning)
            && self.foreign_text(text) == Foreign::Nothing
    }

    fn foreign_text(&self, text: &str) -> Foreign {
        let lower = text.to_lowercase();
        let whole = lower.split_whitespace().collect::<Vec<_>>().join(" ");
        if self.quotes(&whole) {
            return Foreign::Nothing;
        }
        if let Some(moment) = moments::Moment::parse(text) {
            return match self.moments().follows(&moment) {
                true => Foreign::Nothing,
                false => Foreign::Words,
            };
        }
        let chunks = || whole.split(' ').map(bare).filter(|chunk| !chunk.is_empty());
        // If no word has a meaning of its own, as in "all", the word itself is meant.
        let is_all_function_words = chunks().all(|chunk| FUNCTION_WORDS.contains(chunk));
        chunks()
            .map(|chunk| match FUNCTION_WORDS.contains(chunk) {
                true if !is_all_function_words => Foreign::Nothing,
                _ => self.foreign_chunk(chunk),
            })
            .max()
            .unwrap_or(Foreign::Nothing)
    }

    /// Returns the degree of one part of a text between blanks.
    fn foreign_chunk(&self, chunk: &str) -> Foreign {
        if self.chunks.contains(chunk) || self.chunks.contains(address(chunk)) {
            return Foreign::Nothing;
        }
        let is_joint = |c: char| matches!(c, '-' | '\'' | '’' | '‘');
        let is_word = |part: &str| !part.is_empty() && part.chars().all(char::is_alphabetic);
        if chunk.split(is_joint).all(is_word) {
            let is_own = |part: &str| FUNCTION_WORDS.contains(part) || self.has_word(part);
            let own = self.has_word(chunk)
                || chunk.contains(is_joint) && chunk.split(is_joint).all(is_own);
            return if own {
                Foreign::Nothing
            } else {
                Foreign::Words
            };
        }
        match numbers::of_text(chunk).as_slice() {
            [number]
                if chunk.starts_with(|c: char| c.is_ascii_digit()) && self.has_number(*number) =>
            {
                Foreign::Nothing
            }
            _ => Foreign::AmountOrAddress,
        }
    }

    /// Returns true if the person's messages have this text, between the ends of words.
    fn quotes(&self, text: &str) -> bool {
        let is_end =
            |c: Option<char>| c.is_none_or(|c| c.is_whitespace() || is_around(c) && c != '-');
        !text.is_empty()
            && self.text.match_indices(text).any(|(at, found)| {
                let before = self
                    .text
                    .get(..at)
                    .and_then(|text| text.chars().next_back());
                let rest = self.text.get(at + found.len()..).unwrap_or_default();
                let mut after = rest.chars();
                let next = after.next();
                is_end(before)
                    && is_end(next)
                    // "example.com" is not quoted by "example.com.evil".
                    && (next.is_none_or(char::is_whitespace) || is_end(after.next()))
            })
    }

    fn has_word(&self, word: &str) -> bool {
        if self.words.contains(word) {
            return true;
        }
        let stems = self.stems.get_or_init(|| {
            let of_language = |stemmer: &Stemmer| {
                let words = self.words.iter().filter(|word| is_inflected(word));
                words.map(|word| stemmer.stem(word).into_owned()).collect()
            };
            STEMMERS.iter().map(of_language).collect()
        });
        is_inflected(word)
            && STEMMERS
                .iter()
                .zip(stems)
                .any(|(stemmer, stems)| stems.contains(&*stemmer.stem(word)))
    }

    fn has_number(&self, wanted: f64) -> bool {
        let numbers = self.numbers.get_or_init(|| numbers::of_text(&self.text));
        numbers
            .iter()
            .any(|number| (number - wanted).abs() <= f64::EPSILON * wanted.abs().max(1.0))
    }

    fn moments(&self) -> &moments::Moments {
        self.moments
            .get_or_init(|| moments::Moments::of_text(&self.text, self.today))
    }
}

/// Returns true if a schema names this very value.
fn lists(schema: &Value, value: &Value) -> bool {
    let listed = schema.get("enum").and_then(Value::as_array);
    listed.is_some_and(|values| values.contains(value))
        || schema.get("const") == Some(value)
        || schema.get("default") == Some(value)
}

/// Returns true if a value has a text or a number that its schema does not list.
fn says_something(schema: Option<&Value>, value: &Value) -> bool {
    if schema.is_some_and(|schema| lists(schema, value)) {
        return false;
    }
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::Number(_) => true,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(values) => {
            let schema = schema.and_then(|schema| schema.get("items"));
            values.iter().any(|value| says_something(schema, value))
        }
        Value::Object(values) => values.iter().any(|(name, value)| {
            let schema = schema.and_then(|schema| schema.get("properties")?.get(name));
            says_something(schema, value)
        }),
    }
}

/// Returns an address without what says nothing about where it leads: its scheme and its last slash.
fn address(chunk: &str) -> &str {
    let rest = chunk
        .strip_prefix("https://")
        .or_else(|| chunk.strip_prefix("http://"))
        .unwrap_or(chunk);
    rest.strip_suffix('/').unwrap_or(rest)
}

/// Returns true for a word that languages inflect: letters only, and not too few for a stem.
fn is_inflected(word: &str) -> bool {
    word.chars().count() > 2 && word.chars().all(char::is_alphabetic)
}

/// Returns true for a name that says what a value is, as developers write names.
fn is_plain_name(name: &str) -> bool {
    const CHARS_MAX: usize = 24;
    name.len() <= CHARS_MAX && name.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_')
}

/// Returns true for an id that cannot be an address.
fn is_plain_id(value: &Value) -> bool {
    const CHARS_MAX: usize = 64;
    match value {
        Value::Number(_) => true,
        Value::String(text) => {
            text.len() <= CHARS_MAX
                && text
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        }
        _ => false,
    }
}
