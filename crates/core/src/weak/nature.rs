//! What a tool does, as far as its definition tells.

use serde_json::Value;

use crate::tool::ToolDefinition;

use super::english;

/// What kind of thing a call of it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nature {
    /// Changes nothing.
    Looks,
    /// Makes something that has no reference yet.
    Makes,
    /// Gives a thing other words.
    Rewords,
    /// Does one fixed thing to a thing, such as completing it.
    Settles,
    /// Destroys a thing; a human confirms it.
    Destroys,
    /// Takes words of the person as they are.
    Quotes(Quotes),
}

/// The meaning of the words that a tool takes as they are. Its schema says so by the name of the
/// argument that holds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    /// A `fact` to be kept.
    Keeps,
    /// An `activity` for a diary.
    Logs,
    /// A `query` of what is known.
    Seeks,
    /// A `fact` to be destroyed; a human confirms it.
    Forgets,
}

impl Quotes {
    /// Returns the argument that holds the words.
    pub(super) fn argument(self) -> &'static str {
        match self {
            Self::Keeps | Self::Forgets => "fact",
            Self::Logs => "activity",
            Self::Seeks => "query",
        }
    }
}

/// Returns what the words are that a tool takes as they are, if it is such a tool.
pub(super) fn quotes(tool: &ToolDefinition) -> Option<Quotes> {
    let takes = |quotes: &Quotes| {
        let argument = tool
            .parameters
            .get("properties")
            .and_then(|properties| properties.get(quotes.argument()));
        argument
            .and_then(|argument| argument.get("type"))
            .and_then(Value::as_str)
            == Some("string")
    };
    let kinds: &[Quotes] = match (tool.annotations.read_only, tool.annotations.destructive) {
        (true, _) => &[Quotes::Seeks],
        (false, true) => &[Quotes::Forgets],
        (false, false) => &[Quotes::Keeps, Quotes::Logs],
    };
    kinds
        .iter()
        .copied()
        .filter(|_| tool.references.is_empty())
        .find(takes)
}

pub(super) fn nature(tool: &ToolDefinition) -> Nature {
    if let Some(quotes) = quotes(tool) {
        Nature::Quotes(quotes)
    } else if tool.annotations.read_only {
        Nature::Looks
    } else if tool.annotations.destructive {
        Nature::Destroys
    } else if tool.references.is_empty() {
        Nature::Makes
    } else if free_texts(tool).next().is_some() {
        Nature::Rewords
    } else {
        Nature::Settles
    }
}

/// The required arguments that hold words of the person.
pub(super) fn free_texts(tool: &ToolDefinition) -> impl Iterator<Item = &str> {
    let properties = tool.parameters.get("properties").and_then(Value::as_object);
    let required = tool.parameters.get("required").and_then(Value::as_array);
    properties
        .into_iter()
        .flatten()
        .filter(move |(name, schema)| {
            schema.get("type").and_then(Value::as_str) == Some("string")
                && schema.get("enum").is_none()
                && required.is_some_and(|required| {
                    required.iter().any(|required| required == name.as_str())
                })
                && tool
                    .references
                    .iter()
                    .all(|reference| reference.argument != **name)
        })
        .map(|(name, _)| name.as_str())
}

/// Whether a word is one that a tool's name or description uses for what it does.
pub(super) fn is_verb_of(tool: &ToolDefinition, word: &str) -> bool {
    is_named_for(tool, word)
        || (word.len() > 3
            && english::tokens(&tool.description)
                .iter()
                .any(|other| other == word && !is_noun_of(tool, other)))
}

pub(super) fn is_named_for(tool: &ToolDefinition, word: &str) -> bool {
    tool.name
        .as_str()
        .split('_')
        .next()
        .is_some_and(|verb| english::likeness(verb, word) == english::Likeness::Same)
}

/// The things a tool is about are no verbs: "task" says nothing about which tool is meant.
fn is_noun_of(tool: &ToolDefinition, word: &str) -> bool {
    const COMMON: &[&str] = &[
        "when",
        "user",
        "wants",
        "want",
        "uses",
        "something",
        "from",
        "with",
        "that",
        "permanently",
        "description",
        "words",
        "says",
        "their",
    ];
    COMMON.contains(&word)
        || tool
            .references
            .iter()
            .any(|reference| english::likeness(&reference.kind, word) == english::Likeness::Same)
        || tool
            .name
            .as_str()
            .split('_')
            .skip(1)
            .any(|noun| english::likeness(noun, word) == english::Likeness::Same)
}
