//! Calls of the tools that take a text verbatim: those the model wants, and those it left out.

use serde_json::json;

use adjutant_core::{Arguments, ToolDefinition};

use super::clarification::Clarification;
use super::guard::{Checked, Guard, Proposed};
use super::quote::Quote;
use super::tool_kind::Verbatim;

impl<'a> Guard<'a> {
    /// Returns the quote that the message has for a tool.
    pub(super) fn quote_for(&self, tool: &ToolDefinition) -> Option<&Quote<'a>> {
        self.quotes
            .iter()
            .find(|quote| quote.tool.name == tool.name)
    }

    /// Returns true if the message is for tools that quote it, and for no other.
    pub(super) fn only_verbatim(&self) -> bool {
        !self.quotes.is_empty()
            && !self.more.is_there
            && (self.quotes.iter().any(|quote| quote.quoted.certain) || !self.names_an_entity)
    }

    /// Returns true if the message asks only for what no tool does.
    pub(super) fn is_off_topic(&self) -> bool {
        self.quotes.is_empty() && self.more.is_beyond
    }

    /// Returns true if a tool has to be called, and nothing else can be the answer.
    pub(super) fn must_call(&self) -> bool {
        let certain = |quote: &Quote<'_>| quote.quoted.certain && quote.can_be_called();
        self.only_verbatim() && self.quotes.iter().any(certain)
    }

    /// Returns the calls of one tool, one for each text.
    pub(super) fn verbatim_calls(&self, tool: &'a ToolDefinition) -> Vec<Checked<'a>> {
        let Some(quote) = self.quote_for(tool).filter(|quote| quote.can_be_called()) else {
            return vec![Err(Clarification::Words { tool, of: None })];
        };
        let call = |text: &String| {
            let argument = (quote.quotes.argument().to_owned(), json!(text));
            Ok((tool.name.as_str(), Arguments::from_iter([argument])))
        };
        // A search for everything needs a text here, and the message is the best there is.
        if quote.quoted.texts.is_empty() && quote.needs_words() {
            return vec![call(&self.dialogue.message)];
        }
        if quote.quoted.texts.is_empty() {
            return vec![Ok((tool.name.as_str(), Arguments::new()))];
        }
        quote.quoted.texts.iter().map(call).collect()
    }

    /// Returns the calls that the message asks for beyond doubt, and that the model left out.
    pub(super) fn missing_calls(&self, proposed: &[Proposed<'a>]) -> Vec<Proposed<'a>> {
        let is_owed = |quote: &&Quote<'a>| {
            let is_there = proposed
                .iter()
                .any(|call| call.tool.name == quote.tool.name);
            quote.quoted.certain && quote.can_be_called() && !is_there
        };
        let call = |quote: &Quote<'a>| Proposed {
            tool: quote.tool,
            arguments: Arguments::new(),
        };
        self.quotes.iter().filter(is_owed).map(call).collect()
    }

    /// Returns the question for a text, if the message asks for a call without one.
    pub(super) fn missing_text(&self) -> Option<Clarification<'a>> {
        let missing = self.quotes.iter().find(|quote| !quote.can_be_called())?;
        self.only_verbatim().then_some(Clarification::Words {
            tool: missing.tool,
            of: None,
        })
    }

    /// Returns the question that replaces a claim that something was done.
    pub(super) fn nothing_done(&self) -> Clarification<'a> {
        match self
            .quotes
            .iter()
            .find(|quote| quote.quotes == Verbatim::Remember && quote.can_be_called())
        {
            Some(Quote { tool, quoted, .. }) => Clarification::Sure {
                tool,
                what: vec![quoted.texts.join(" ")],
            },
            None => Clarification::NotUnderstood,
        }
    }
}
