//! Classification of tools by their definitions.

use serde_json::Value;

use adjutant_core::ToolDefinition;

use super::analysis;
use super::language::lists;

/// The effect of a tool on the user's entities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolKind {
    /// Reads entities and changes nothing.
    Reads,
    /// Creates an entity, which has no reference yet.
    Creates,
    /// Replaces the text of an entity.
    Rewords,
    /// Does one fixed action to an entity, such as completing it.
    Completes,
    /// Deletes an entity; the user confirms it.
    Deletes,
    /// Takes a text of the user verbatim.
    Verbatim(Verbatim),
}

/// The use of a text that a tool takes verbatim. Its schema says so by the name of the argument
/// that holds the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verbatim {
    /// A `fact` to remember.
    Remember,
    /// An `activity` for a diary.
    Log,
    /// A `query` about what is remembered.
    Search,
    /// A `fact` to forget; the user confirms it.
    Forget,
}

impl Verbatim {
    /// Returns the name of the argument that holds the text.
    pub(super) fn argument(self) -> &'static str {
        match self {
            Self::Remember | Self::Forget => "fact",
            Self::Log => "activity",
            Self::Search => "query",
        }
    }
}

/// Returns the use of the text, if the tool takes one verbatim.
pub(super) fn verbatim(tool: &ToolDefinition) -> Option<Verbatim> {
    let takes = |quotes: &Verbatim| {
        let path = format!("/properties/{}/type", quotes.argument());
        tool.parameters.pointer(&path).and_then(Value::as_str) == Some("string")
    };
    // By the effects that a tool declares: an argument `fact` is remembered by one tool and
    // forgotten by another.
    let kinds: &[Verbatim] = match (tool.annotations.read_only, tool.annotations.destructive) {
        (true, _) => &[Verbatim::Search],
        (false, true) => &[Verbatim::Forget],
        (false, false) => &[Verbatim::Remember, Verbatim::Log],
    };
    kinds
        .iter()
        .copied()
        .filter(|_| tool.references.is_empty())
        .find(takes)
}

pub(super) fn tool_kind(tool: &ToolDefinition) -> ToolKind {
    if let Some(quotes) = verbatim(tool) {
        ToolKind::Verbatim(quotes)
    } else if tool.annotations.read_only {
        ToolKind::Reads
    } else if tool.annotations.destructive {
        ToolKind::Deletes
    } else if tool.references.is_empty() {
        ToolKind::Creates
    } else if free_texts(tool).next().is_some() {
        ToolKind::Rewords
    } else {
        ToolKind::Completes
    }
}

/// Returns true if a tool acts on entities of one of these kinds: it refers to them, or has the kind
/// in its name, as `add_task` does.
pub(super) fn is_of_entities(tool: &ToolDefinition, kinds: &[&str]) -> bool {
    let mut words = tool.name.as_str().split('_');
    !tool.references.is_empty()
        || words.any(|word| {
            kinds
                .iter()
                .any(|kind| analysis::likeness(kind, word) == analysis::Likeness::Same)
        })
}

/// Returns true if a tool keeps or finds what the person said: it takes such a text verbatim, and its
/// name says so. Another tool may well have an argument `query`.
pub(super) fn is_of_memory(tool: &ToolDefinition) -> bool {
    let verb = tool.name.as_str().split('_').next().unwrap_or_default();
    verbatim(tool).is_some() && lists().message.memory_verbs.has(verb)
}

/// Returns the required arguments that hold free text.
pub(super) fn free_texts(tool: &ToolDefinition) -> impl Iterator<Item = &str> {
    let properties = tool.parameters.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .filter(|(name, schema)| {
            schema.get("type").and_then(Value::as_str) == Some("string")
                && schema.get("enum").is_none()
                && tool.required().any(|required| required == *name)
                && tool
                    .references
                    .iter()
                    .all(|reference| reference.argument != **name)
        })
        .map(|(name, _)| name.as_str())
}

/// Returns true if a tool's name or description uses a word for what the tool does.
pub(super) fn is_verb_of(tool: &ToolDefinition, word: &str) -> bool {
    is_named_for(tool, word)
        // Short words of a description are articles and prepositions.
        || (word.len() > 3
            && analysis::tokens(&tool.description)
                .iter()
                .any(|other| other == word && !is_noun_of(tool, other)))
}

pub(super) fn is_named_for(tool: &ToolDefinition, word: &str) -> bool {
    tool.name
        .as_str()
        .split('_')
        .next()
        .is_some_and(|verb| analysis::likeness(verb, word) == analysis::Likeness::Same)
}

/// Returns true for nouns of the tool: "task" says nothing about which tool is meant.
fn is_noun_of(tool: &ToolDefinition, word: &str) -> bool {
    lists().message.description_words.has(word)
        || tool
            .references
            .iter()
            .any(|reference| analysis::likeness(&reference.kind, word) == analysis::Likeness::Same)
        || tool
            .name
            .as_str()
            .split('_')
            .skip(1)
            .any(|noun| analysis::likeness(noun, word) == analysis::Likeness::Same)
}
