//! Questions instead of guesses.

use crate::tool::{Reference, ToolDefinition};

use super::things;

/// Things named in one question at most.
const CANDIDATES_MAX: usize = 4;

/// Why a call is not made, as what has to be asked.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Doubt<'a> {
    /// The answer could not be read, or says something that did not happen.
    NotUnderstood,
    /// There is nothing of that number.
    NoSuch { kind: &'a str, id: String },
    /// Several fit, or none: these are the nearest.
    Which {
        kind: &'a str,
        candidates: Vec<&'a Reference>,
    },
    /// None was named; these are open.
    Unnamed {
        kind: &'a str,
        open: Vec<&'a Reference>,
    },
    /// The person may have meant something else than doing this to it.
    Sure {
        tool: &'a ToolDefinition,
        what: String,
    },
    /// Something was named, and not what to do with it.
    WhatWith { what: String },
    /// It is there already.
    Again {
        tool: &'a ToolDefinition,
        what: String,
    },
    /// The words for it are missing, or not the person's.
    Words {
        tool: &'a ToolDefinition,
        of: Option<String>,
    },
}

impl Doubt<'_> {
    /// The question for the person.
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
                    let others: Vec<String> = others.iter().map(|thing| listed(thing)).collect();
                    format!(
                        "Which {kind} do you mean: {}, or {}?",
                        others.join(", "),
                        listed(last)
                    )
                }
                Some(_) => format!("Which {kind} do you mean? More than one fits."),
            },
            Self::Unnamed { kind, open } if open.len() > CANDIDATES_MAX => {
                let some: Vec<String> = open
                    .iter()
                    .take(CANDIDATES_MAX)
                    .map(|thing| listed(thing))
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

/// A thing by its number and words: two may have the same words.
fn listed(thing: &Reference) -> String {
    let done = if thing.done { " (done)" } else { "" };
    format!("{}. {}{done}", thing.id, things::name(thing))
}

/// What a tool does, in one word: the first of its name.
fn verb(tool: &ToolDefinition) -> &str {
    tool.name
        .as_str()
        .split('_')
        .find(|word| !word.is_empty())
        .unwrap_or("do")
}
