//! Clarifying questions, asked where a call would be a guess.

use std::borrow::Cow;

use adjutant_core::{Language, Reference, ToolDefinition};

use super::entities;
use super::sentences;
use super::tool_kind::{ToolKind, Verbatim, tool_kind};

/// Most entities that one question names.
const CANDIDATES_MAX: usize = 4;

/// The reason for not making a call, from which the question is made.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Clarification<'a> {
    /// The answer could not be parsed, or claims something that did not happen.
    NotUnderstood,
    /// No entity has that number.
    NoSuch { kind: &'a str, id: String },
    /// Several entities fit, or none does; these are the nearest.
    Which {
        kind: &'a str,
        candidates: Vec<&'a Reference>,
    },
    /// The message names none; these are open.
    Unnamed {
        kind: &'a str,
        open: Vec<&'a Reference>,
    },
    /// The user may have meant something else than calls with these texts, or on the entities with
    /// these labels.
    Sure {
        tool: &'a ToolDefinition,
        what: Vec<String>,
    },
    /// The new text for an entity may not be what the user means.
    Text { of: String, text: String },
    /// The user may not have meant some of these calls.
    Plan(Vec<Self>),
    /// A question that is not answered yet.
    Repeated(String),
    /// The message names an entity, and not what to do with it.
    WhatWith { what: String },
    /// The entity to create exists already.
    Again {
        tool: &'a ToolDefinition,
        what: String,
    },
    /// The text for the call is missing, or is not the user's.
    Words {
        tool: &'a ToolDefinition,
        of: Option<String>,
    },
    /// The message does not give an argument that a call needs.
    Argument { name: String },
}

impl Clarification<'_> {
    /// Returns the question for the user, in their language.
    pub(super) fn question(&self, language: Language) -> String {
        let say = |name: &str, values: &[(&str, &str)]| sentences::filled(language, name, values);
        match self {
            Self::NotUnderstood => say("not_understood", &[]),
            Self::NoSuch { kind, id } => {
                let kind = noun(kind, language);
                say("no_such", &[("kind", &kind), ("id", id)])
            }
            Self::Which { kind, candidates } if candidates.len() > CANDIDATES_MAX => {
                say("more", &[("kind", &noun(kind, language))])
            }
            Self::Which { kind, candidates } => {
                let names: Vec<String> = candidates
                    .iter()
                    .map(|entity| listed(entity, language))
                    .collect();
                which(kind, &names, candidates.len() == 1, language)
            }
            // A question with all of them would be the whole list.
            Self::Unnamed { kind, open } => {
                let names: Vec<String> = open
                    .iter()
                    .take(CANDIDATES_MAX)
                    .map(|entity| listed(entity, language))
                    .collect();
                let more = open.len() > CANDIDATES_MAX || open.len() == 1;
                which(kind, &names, more, language)
            }
            Self::Sure { tool, what } => match sure(tool) {
                Some(name) => {
                    let what = sentences::joined(language, name, what);
                    say(name, &[("what", &what)])
                }
                None => format!(
                    "Do you want me to {} \u{201c}{}\u{201d}?",
                    verb(tool),
                    what.join("\u{201d}, \u{201c}")
                ),
            },
            Self::Text { of, text } => say("sure_reword_to", &[("what", of), ("text", text)]),
            Self::Plan(parts) => {
                let parts = parts.iter().map(|part| part.question(language));
                parts.collect::<Vec<_>>().join(" ")
            }
            Self::Repeated(question) => question.clone(),
            Self::WhatWith { what } => say("what_with", &[("what", what)]),
            Self::Again { tool, what } => say("again", &[("what", what), ("verb", verb(tool))]),
            Self::Argument { name } => say("argument", &[("what", name)]),
            Self::Words { of: Some(what), .. } => say("words_reword", &[("what", what)]),
            Self::Words { tool, of: None } => match tool_kind(tool) {
                ToolKind::Verbatim(Verbatim::Remember) => say("words_remember", &[]),
                ToolKind::Verbatim(Verbatim::Forget) => say("words_forget", &[]),
                ToolKind::Verbatim(Verbatim::Log) => say("words_log", &[]),
                ToolKind::Creates if verb(tool) == "add" => say("words_create", &[]),
                _ => format!("What exactly should I {}?", verb(tool)),
            },
        }
    }
}

/// Asks which entity is meant. `more`: it may be another one than those that are named.
fn which(kind: &str, names: &[String], more: bool, language: Language) -> String {
    let asked = sentences::filled(language, "which", &[("kind", &noun(kind, language))]);
    // French and some others have a space in front of the sign.
    let sign = if language == Language::French {
        " ?"
    } else {
        "?"
    };
    let colon = if language == Language::French {
        " :"
    } else {
        ":"
    };
    match names.split_last() {
        None => format!("{asked}{sign}"),
        Some(_) if more => {
            let another = sentences::sentence(language, "another");
            format!("{asked}{colon} {}, {another}{sign}", names.join(", "))
        }
        Some((last, others)) => {
            let or = sentences::sentence(language, "or");
            format!("{asked}{colon} {}, {or} {last}{sign}", others.join(", "))
        }
    }
}

/// Returns the word for a kind of entity, which is translated if it is usual.
fn noun<'a>(kind: &'a str, language: Language) -> Cow<'a, str> {
    match kind {
        "task" => Cow::Borrowed(sentences::sentence(language, "task")),
        other => Cow::Borrowed(other),
    }
}

/// Returns the name of the question whether a call is wanted, for the usual calls.
fn sure(tool: &ToolDefinition) -> Option<&'static str> {
    match (tool_kind(tool), verb(tool)) {
        (ToolKind::Creates, "add") => Some("sure_create"),
        (ToolKind::Completes, "complete") => Some("sure_complete"),
        (ToolKind::Deletes, "delete") => Some("sure_delete"),
        (ToolKind::Rewords, "update") => Some("sure_reword"),
        (ToolKind::Verbatim(Verbatim::Remember), _) => Some("sure_remember"),
        _ => None,
    }
}

/// Names an entity by number and label: two may have the same label.
fn listed(entity: &Reference, language: Language) -> String {
    let done = match entity.done {
        true => format!(" ({})", sentences::sentence(language, "done")),
        false => String::new(),
    };
    format!("{}. {}{done}", entity.id, entities::name(entity))
}

/// Returns the first word of a tool's name, which is its verb.
fn verb(tool: &ToolDefinition) -> &str {
    tool.name
        .as_str()
        .split('_')
        .find(|word| !word.is_empty())
        .unwrap_or("do")
}
