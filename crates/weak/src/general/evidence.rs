//! Evidence in the words of a message: for a tool, by its declaration; for an argument, by its value.

use adjutant_core::{Arguments, Language, ToolDefinition};
use serde_json::Value;

use crate::analysis::{self, Likeness};
use crate::detect::detect;
use crate::language::lists;
use crate::lexicon::lexicon;

/// Fewest letters of a word that is compared with a declaration.
const LETTERS_MIN: usize = 3;

/// Fewest words of a description that speak for a tool whose name has none of them.
const DESCRIBED: usize = 2;

/// The words of a message.
pub(super) struct Evidence {
    language: Language,
    /// All words, in lower case.
    words: Vec<String>,
    /// Words that say what the message is about.
    content: Vec<String>,
    /// The significant digits of its numbers.
    digits: Vec<String>,
    has_number_words: bool,
}

impl Evidence {
    pub(super) fn new(text: &str) -> Self {
        let language = detect(text);
        let words = analysis::tokens(text);
        let content = words
            .iter()
            .filter(|word| is_telling(word))
            .cloned()
            .collect();
        let cardinals = &lexicon(language).cardinals;
        let has_number_words = words
            .iter()
            .any(|word| lists().message.quantities.has(word) || cardinals.number(word).is_some());
        Self {
            language,
            content,
            digits: numbers_in(text),
            words,
            has_number_words,
        }
    }

    /// Returns the number of words that speak for a tool: those of its name count double. 0 if there
    /// are too few.
    pub(super) fn of_tool(&self, tool: &ToolDefinition) -> usize {
        let in_name = self.in_name(tool);
        let declared = analysis::tokens(&declaration(tool));
        let in_declaration = self.shared_with(&declared);
        match in_name > 0 || in_declaration >= DESCRIBED {
            true => in_name + in_declaration,
            false => 0,
        }
    }

    /// Returns the number of words that stand in the name of a tool.
    pub(super) fn in_name(&self, tool: &ToolDefinition) -> usize {
        self.shared_with(&analysis::tokens(&name_in_words(tool)))
    }

    /// Returns true if the message and the declaration of a tool are in one language.
    pub(super) fn can_compare(&self, tool: &ToolDefinition) -> bool {
        self.language == detect(&tool.description)
    }

    fn shared_with(&self, declared: &[String]) -> usize {
        let declared: Vec<&String> = declared.iter().filter(|word| is_telling(word)).collect();
        self.content
            .iter()
            .filter(|word| {
                declared
                    .iter()
                    .any(|other| analysis::likeness(other, word) != Likeness::Different)
            })
            .count()
    }

    /// Returns the arguments of a call without optional ones that nothing in the message supports.
    ///
    /// # Errors
    /// The name of a required argument that the model made up.
    pub(super) fn checked<'t>(
        &self,
        tool: &'t ToolDefinition,
        mut arguments: Arguments,
    ) -> Result<Arguments, &'t str> {
        let mut required: Vec<(&'t str, Value)> = Vec::new();
        for name in tool.required() {
            let value = arguments.get(name).ok_or(name)?;
            // A number is exact: it must be in the message.
            if value.is_number() && !self.has_number(value) {
                return Err(name);
            }
            required.push((name, value.clone()));
        }
        arguments.retain(|name, value| {
            let is_required = required.iter().any(|(required, _)| required == name);
            is_required || self.supports(name, value)
        });
        // A text may be in other words ("NYC"), so one that comes from the message speaks for all.
        let invented = required.iter().find(|(_, value)| value.is_string());
        match invented {
            Some((name, _))
                if !required
                    .iter()
                    .any(|(name, value)| self.supports(name, value)) =>
            {
                Err(name)
            }
            Some(_) | None => Ok(arguments),
        }
    }

    /// Returns true if the message has something of an argument's value, or of its name if the value
    /// has no words.
    fn supports(&self, name: &str, value: &Value) -> bool {
        match value {
            Value::String(text) => {
                let words = analysis::tokens(text);
                let is_filler = |word: &&String| analysis::is_function_word(word);
                let only_fillers = words.iter().all(|word| is_filler(&word));
                words
                    .iter()
                    .filter(|word| only_fillers || !is_filler(word))
                    .any(|word| match analysis::is_number(word) {
                        // A time or a date, perhaps of numbers in words.
                        true => self.has_number_words || self.digits.contains(&significant(word)),
                        false => analysis::has_similar(&self.words, word),
                    })
            }
            Value::Number(_) => self.has_number(value),
            Value::Bool(_) | Value::Null => analysis::tokens(&name.replace('_', " "))
                .iter()
                .any(|word| analysis::has_similar(&self.words, word)),
            Value::Array(items) => items.iter().any(|item| self.supports(name, item)),
            Value::Object(fields) => fields.iter().any(|(name, item)| self.supports(name, item)),
        }
    }

    /// Returns true if the message has a number, perhaps as a percentage or in another unit, or if it
    /// has numbers as words.
    fn has_number(&self, value: &Value) -> bool {
        self.has_number_words || self.digits.contains(&significant(&value.to_string()))
    }
}

/// Returns true if a word says what a message or a tool is about.
fn is_telling(word: &str) -> bool {
    word.chars().count() >= LETTERS_MIN
        && !analysis::is_number(word)
        && !analysis::is_function_word(word)
        && !lists().message.general_words.has(word)
}

/// Returns the name of a tool as words: `weather__get_forecast` has three, the first of which is its
/// MCP server, and `getForecast` two.
fn name_in_words(tool: &ToolDefinition) -> String {
    let name = tool.name.as_str();
    let mut words = String::with_capacity(name.len() + 4);
    let mut was_lower = false;
    for c in name.chars() {
        if c.is_uppercase() && was_lower {
            words.push(' ');
        }
        was_lower = c.is_lowercase();
        words.push(match c {
            '_' | '-' | '.' | ':' => ' ',
            c => c,
        });
    }
    words
}

/// Returns the words of a tool's declaration: its name, its description, and those of its arguments.
fn declaration(tool: &ToolDefinition) -> String {
    let mut text = format!("{} {}", name_in_words(tool), tool.description);
    let properties = tool.parameters.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        text.push(' ');
        text.push_str(&name.replace('_', " "));
        if let Some(description) = schema.get("description").and_then(Value::as_str) {
            text.push(' ');
            text.push_str(description);
        }
    }
    text
}

/// Returns the significant digits of each number of a text.
fn numbers_in(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
    text.split(|c: char| !is_part(c))
        .map(significant)
        .filter(|digits| !digits.is_empty())
        .collect()
}

/// Returns the digits of a number without zeros at both ends, so that "5 %" and 0.05 are alike.
fn significant(number: &str) -> String {
    // The exponent of a number such as 1e-05 is no digit of it.
    let number = number.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    match digits.trim_matches('0') {
        // Zero has no other digits.
        "" if !digits.is_empty() => "0".to_owned(),
        trimmed => trimmed.to_owned(),
    }
}
