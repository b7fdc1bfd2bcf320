//! Quotes from the message, for tools that take a text of the user verbatim.
//!
//! The model chooses whether such a tool is called, and never the text: what is remembered,
//! searched or forgotten is what the user wrote.

use serde_json::{Value, json};

use adjutant_core::ToolDefinition;

use super::dialogue::Dialogue;
use super::entities;
use super::speech::{Quoted, SpeechActs};
use super::tool_kind::{Verbatim, verbatim};

/// The text that a message has for one tool.
#[derive(Debug)]
pub(super) struct Quote<'a> {
    pub(super) tool: &'a ToolDefinition,
    pub(super) quotes: Verbatim,
    pub(super) quoted: Quoted,
}

/// The rest of a message, beside the quotes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct More {
    pub(super) is_there: bool,
    /// True if no tool could act on it.
    pub(super) is_beyond: bool,
}

impl<'a> Quote<'a> {
    /// Returns a quote for every such tool that is meant, and the rest of the message.
    /// `names_an_entity`: the message has words of one of the user's entities, which may be what is
    /// meant.
    pub(super) fn all(
        dialogue: &Dialogue,
        tools: &[&'a ToolDefinition],
        names_an_entity: bool,
    ) -> (Vec<Self>, More) {
        let takers: Vec<(&ToolDefinition, Verbatim)> = tools
            .iter()
            .filter_map(|tool| Some((*tool, verbatim(tool)?)))
            .collect();
        if takers.is_empty() {
            return (Vec::new(), More::default());
        }
        let mut speech = SpeechActs::from_dialogue(dialogue);
        let more = More {
            is_there: speech.has_more,
            is_beyond: speech.beyond && !names_an_entity,
        };
        let all = takers.into_iter().filter_map(|(tool, quotes)| {
            let (words, may_be_an_entity) = match quotes {
                // Taken: of two tools with the same use, one is called with the words.
                Verbatim::Remember => (speech.keep.take(), false),
                Verbatim::Log => (speech.entry.take(), false),
                Verbatim::Search => (speech.seek.take(), true),
                Verbatim::Forget => (speech.forget.take(), true),
            };
            let words = words?;
            // A question or an order to forget may be about a task of that name.
            let certain = words.certain && !(may_be_an_entity && names_an_entity);
            Some(Self {
                tool,
                quotes,
                quoted: Quoted { certain, ..words },
            })
        });
        (all.collect(), more)
    }

    /// Returns true if there is a text for a call. A search without one asks for everything.
    pub(super) fn can_be_called(&self) -> bool {
        !self.quoted.texts.is_empty() || self.quotes == Verbatim::Search
    }

    /// Returns true if the tool cannot be called without a text.
    pub(super) fn needs_words(&self) -> bool {
        let mut required = self.tool.required();
        required.any(|name| name == self.quotes.argument())
    }

    /// Returns the schema of a call's arguments: the text, as far as the model has to see it to
    /// choose the tool.
    pub(super) fn schema(&self) -> Value {
        let argument = self.quotes.argument();
        let (properties, required) = if self.quoted.texts.is_empty() {
            (json!({}), json!([]))
        } else {
            // Cut: the model has to recognise the text, and not to write all of it.
            let shown = entities::shortened(&self.quoted.texts.join(" "));
            (
                json!({ argument: { "type": "string", "enum": [shown] } }),
                json!([argument]),
            )
        };
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    }
}

#[cfg(test)]
mod tests;
