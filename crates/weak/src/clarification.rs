//! Clarifying questions, asked where a call would be a guess.

use adjutant_core::{Reference, ToolDefinition};

use super::entities;

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
    /// The user may have meant something else than this action on the entity.
    Sure {
        tool: &'a ToolDefinition,
        what: String,
    },
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
}

impl Clarification<'_> {
    /// Returns the question for the user.
    pub(super) fn question(&self) -> String {
        match self {
            Self::NotUnderstood => {
                "I did not understand that, and changed nothing. What should I do?".to_owned()
            }
            Self::NoSuch { kind, id } => {
                format!("There is no {kind} {id}. Which {kind} do you mean?")
            }
            Self::Which { kind, candidates } => match candidates.split_last() {
                None => format!("Which {kind} do you mean?"),
                Some((only, [])) => format!(
                    "Which {kind} do you mean: {}, or another one?",
                    listed(only)
                ),
                Some((last, others)) if others.len() < CANDIDATES_MAX => {
                    let others: Vec<String> = others.iter().map(|entity| listed(entity)).collect();
                    format!(
                        "Which {kind} do you mean: {}, or {}?",
                        others.join(", "),
                        listed(last)
                    )
                }
                Some(_) => format!("Which {kind} do you mean? More than one fits."),
            },
            // A question with all of them would be the whole list.
            Self::Unnamed { kind, open } if open.len() > CANDIDATES_MAX => {
                let some: Vec<String> = open
                    .iter()
                    .take(CANDIDATES_MAX)
                    .map(|entity| listed(entity))
                    .collect();
                format!(
                    "Which {kind} do you mean: {}, or another one?",
                    some.join(", ")
                )
            }
            Self::Unnamed { kind, open } => Self::Which {
                kind,
                candidates: open.clone(),
            }
            .question(),
            Self::Sure { tool, what } => {
                format!("Do you want me to {} \u{201c}{what}\u{201d}?", verb(tool))
            }
            Self::WhatWith { what } => format!("What should I do with \u{201c}{what}\u{201d}?"),
            Self::Again { tool, what } => {
                format!(
                    "\u{201c}{what}\u{201d} is already there. Do you want me to {} it again?",
                    verb(tool)
                )
            }
            Self::Words { tool, of: None } => format!("What exactly should I {}?", verb(tool)),
            Self::Words { of: Some(what), .. } => {
                format!("What should \u{201c}{what}\u{201d} say instead?")
            }
        }
    }
}

/// Names an entity by number and label: two may have the same label.
fn listed(entity: &Reference) -> String {
    let done = if entity.done { " (done)" } else { "" };
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
