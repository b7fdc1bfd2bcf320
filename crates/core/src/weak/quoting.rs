//! Calls of the tools that take words of the person as they are: those that the model wants, and
//! those it left out.

use serde_json::json;

use crate::tool::{Arguments, ToolDefinition};

use super::doubt::Doubt;
use super::guard::{Checked, Guard, Proposed};
use super::nature::Quotes;
use super::quote::Quote;

impl<'a> Guard<'a> {
    /// Returns what the message has for a tool.
    pub(super) fn quote_for(&self, tool: &ToolDefinition) -> Option<&Quote<'a>> {
        self.quotes
            .iter()
            .find(|quote| quote.tool.name == tool.name)
    }

    /// Returns whether the message is for tools that take its words, and for no other.
    pub(super) fn only_quotes(&self) -> bool {
        let of_things = || {
            self.things
                .iter()
                .zip(&self.hits)
                .any(|(thing, hits)| !thing.done && !hits.is_empty())
        };
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
            let arguments = [(quote.quotes.argument().to_owned(), json!(text))]
                .into_iter()
                .collect();
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
            let is_there = proposed
                .iter()
                .any(|call| call.tool.name == quote.tool.name);
            quote.words.certain && quote.can_be_called() && !is_there
        };
        let call = |quote: &Quote<'a>| Proposed {
            tool: quote.tool,
            arguments: Arguments::new(),
        };
        self.quotes.iter().filter(is_owed).map(call).collect()
    }

    /// The message wants a call, and does not say with which words.
    pub(super) fn words_missing(&self) -> Option<Doubt<'a>> {
        let missing = self.quotes.iter().find(|quote| !quote.can_be_called())?;
        self.only_quotes().then_some(Doubt::Words {
            tool: missing.tool,
            of: None,
        })
    }

    /// Returns what is asked where the model says that something was done, and nothing was.
    pub(super) fn not_done(&self) -> Doubt<'a> {
        match self
            .quotes
            .iter()
            .find(|quote| quote.quotes == Quotes::Keeps && quote.can_be_called())
        {
            Some(Quote { tool, words, .. }) => Doubt::Sure {
                tool,
                what: words.texts.join(" "),
            },
            None => Doubt::NotUnderstood,
        }
    }
}
