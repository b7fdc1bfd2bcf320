//! Words of the person for tools that take them as they are.
//!
//! The model chooses whether such a tool is called, and never its words: what is kept, asked or
//! forgotten is what the person said.

use serde_json::{Value, json};

use crate::tool::ToolDefinition;

use super::nature::{Quotes, quotes};
use super::said::Said;
use super::speech::{Quoted, Speech};
use super::things;

/// The words that a message has for one tool.
#[derive(Debug)]
pub(super) struct Quote<'a> {
    pub(super) tool: &'a ToolDefinition,
    pub(super) quotes: Quotes,
    pub(super) words: Quoted,
}

/// The rest of a message beside the words for such tools.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct More {
    pub(super) is_there: bool,
    /// It is nothing that any tool does.
    pub(super) is_beyond: bool,
}

impl<'a> Quote<'a> {
    /// For every tool that is meant. Also what more there is in the message. `speaks_of_things`: it
    /// has words of something that the person has, which may be what is meant.
    pub(super) fn all(
        said: &Said,
        tools: &[&'a ToolDefinition],
        speaks_of_things: bool,
    ) -> (Vec<Self>, More) {
        let takers: Vec<(&ToolDefinition, Quotes)> = tools
            .iter()
            .filter_map(|tool| Some((*tool, quotes(tool)?)))
            .collect();
        if takers.is_empty() {
            return (Vec::new(), More::default());
        }
        let mut speech = Speech::read(said);
        let more = More {
            is_there: speech.has_more,
            is_beyond: speech.beyond && !speaks_of_things,
        };
        let all = takers.into_iter().filter_map(|(tool, quotes)| {
            let (words, may_be_a_thing) = match quotes {
                Quotes::Keeps => (speech.keep.take(), false),
                Quotes::Logs => (speech.entry.take(), false),
                Quotes::Seeks => (speech.seek.take(), true),
                Quotes::Forgets => (speech.forget.take(), true),
            };
            let words = words?;
            let certain = words.certain && !(may_be_a_thing && speaks_of_things);
            Some(Self {
                tool,
                quotes,
                words: Quoted { certain, ..words },
            })
        });
        (all.collect(), more)
    }

    /// Returns whether there are words for a call. A question without any asks for everything.
    pub(super) fn can_be_called(&self) -> bool {
        !self.words.texts.is_empty() || self.quotes == Quotes::Seeks
    }

    /// Returns whether the tool cannot be called without words.
    pub(super) fn needs_words(&self) -> bool {
        let required = self
            .tool
            .parameters
            .get("required")
            .and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|name| name == self.quotes.argument()))
    }

    /// Returns the schema of the arguments of a call: the words, as far as they have to be seen to
    /// choose the tool.
    pub(super) fn schema(&self) -> Value {
        let argument = self.quotes.argument();
        let (properties, required) = if self.words.texts.is_empty() {
            (json!({}), json!([]))
        } else {
            let shown = things::shortened(&self.words.texts.join(" "));
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
