//! Words of the person for tools that take them as they are.
//!
//! The model chooses whether such a tool is called, and never its words: what is kept, asked or forgotten is what the person said.

use serde_json::{Value, json};

use crate::tool::{Arguments, ToolDefinition};

use super::doubt::Doubt;
use super::guard::{Checked, Guard, Proposed};
use super::nature::{Quotes, quotes};
use super::said::Said;
use super::speech::{Quoted, Speech};
use super::things;

/// The words that a message has for one tool.
#[derive(Debug)]
pub(super) struct Quote<'a> {
    tool: &'a ToolDefinition,
    quotes: Quotes,
    words: Quoted,
}

/// The rest of a message beside the words for such tools.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct More {
    is_there: bool,
    /// It is nothing that any tool does.
    is_beyond: bool,
}

impl<'a> Quote<'a> {
    /// For every tool that is meant. Also what more there is in the message. `speaks_of_things`: it has words of something that the
    /// person has, which may be what is meant.
    pub(super) fn all(
        said: &Said,
        tools: &[&'a ToolDefinition],
        speaks_of_things: bool,
    ) -> (Vec<Self>, More) {
        let takers: Vec<(&ToolDefinition, Quotes)> =
            tools.iter().filter_map(|tool| Some((*tool, quotes(tool)?))).collect();
        if takers.is_empty() {
            return (Vec::new(), More::default());
        }
        let mut speech = Speech::read(said);
        let more = More { is_there: speech.has_more, is_beyond: speech.beyond && !speaks_of_things };
        let all = takers.into_iter().filter_map(|(tool, quotes)| {
            let (words, may_be_a_thing) = match quotes {
                Quotes::Keeps => (speech.keep.take(), false),
                Quotes::Logs => (speech.entry.take(), false),
                Quotes::Seeks => (speech.seek.take(), true),
                Quotes::Forgets => (speech.forget.take(), true),
            };
            let words = words?;
            let certain = words.certain && !(may_be_a_thing && speaks_of_things);
            Some(Self { tool, quotes, words: Quoted { certain, ..words } })
        });
        (all.collect(), more)
    }

    /// Returns whether there are words for a call. A question without any asks for everything.
    pub(super) fn can_be_called(&self) -> bool {
        !self.words.texts.is_empty() || self.quotes == Quotes::Seeks
    }

    /// Returns whether the tool cannot be called without words.
    fn needs_words(&self) -> bool {
        let required = self.tool.parameters.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|name| name == self.quotes.argument()))
    }

    /// Returns the schema of the arguments of a call: the words, as far as they have to be seen to choose the tool.
    pub(super) fn schema(&self) -> Value {
        let argument = self.quotes.argument();
        let (properties, required) = if self.words.texts.is_empty() {
            (json!({}), json!([]))
        } else {
            let shown = things::shortened(&self.words.texts.join(" "));
            (json!({ argument: { "type": "string", "enum": [shown] } }), json!([argument]))
        };
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    }
}

impl<'a> Guard<'a> {
    /// Returns what the message has for a tool.
    pub(super) fn quote_for(&self, tool: &ToolDefinition) -> Option<&Quote<'a>> {
        self.quotes.iter().find(|quote| quote.tool.name == tool.name)
    }

    /// Returns whether the message is for tools that take its words, and for no other.
    pub(super) fn only_quotes(&self) -> bool {
        let of_things =
            || self.things.iter().zip(&self.hits).any(|(thing, hits)| !thing.done && !hits.is_empty());
        !self.quotes.is_empty()
            && !self.more.is_there
            && (self.quotes.iter().any(|quote| quote.words.certain) || !of_things())
    }

    /// Returns whether nothing is wanted but what no tool does.
    pub(super) fn only_declines(&self) -> bool {
        self.quotes.is_empty() && self.more.is_beyond
    }

    /// Returns whether a tool has to be called, and nothing else can be the answer.
    pub(super) fn is_certain(&self) -> bool {
        let certain = |quote: &Quote<'_>| quote.words.certain && quote.can_be_called();
        self.only_quotes() && self.quotes.iter().any(certain)
    }

    /// The calls of one tool, each with words of its own.
    pub(super) fn quoted(&self, tool: &'a ToolDefinition) -> Vec<Checked<'a>> {
        let Some(quote) = self.quote_for(tool).filter(|quote| quote.can_be_called()) else {
            return vec![Err(Doubt::Words { tool, of: None })];
        };
        let call = |text: &String| {
            let arguments = [(quote.quotes.argument().to_owned(), json!(text))].into_iter().collect();
            Ok((tool.name.as_str(), arguments))
        };
        if quote.words.texts.is_empty() && quote.needs_words() {
            return vec![call(&self.said.message)];
        }
        if quote.words.texts.is_empty() {
            return vec![Ok((tool.name.as_str(), Arguments::new()))];
        }
        quote.words.texts.iter().map(call).collect()
    }

    /// The calls that the message wants beyond doubt, and that the model left out.
    pub(super) fn owed(&self, proposed: &[Proposed<'a>]) -> Vec<Proposed<'a>> {
        let is_owed = |quote: &&Quote<'a>| {
            let is_there = proposed.iter().any(|call| call.tool.name == quote.tool.name);
            quote.words.certain && quote.can_be_called() && !is_there
        };
        let call = |quote: &Quote<'a>| Proposed { tool: quote.tool, arguments: Arguments::new() };
        self.quotes.iter().filter(is_owed).map(call).collect()
    }

    /// The message wants a call, and does not say with which words.
    pub(super) fn words_missing(&self) -> Option<Doubt<'a>> {
        let missing = self.quotes.iter().find(|quote| !quote.can_be_called())?;
        self.only_quotes().then_some(Doubt::Words { tool: missing.tool, of: None })
    }

    /// Returns what is asked where the model says that something was done, and nothing was.
    pub(super) fn not_done(&self) -> Doubt<'a> {
        match self.quotes.iter().find(|quote| quote.quotes == Quotes::Keeps && quote.can_be_called()) {
            Some(Quote { tool, words, .. }) => Doubt::Sure { tool, what: words.texts.join(" ") },
            None => Doubt::NotUnderstood,
        }
    }
}

#[cfg(test)]
mod tests;
