//! What a message can mean at all: tools and things it speaks against are not offered to the model.

use crate::tool::{Reference, ToolDefinition};

use super::english::{self, order};
use super::guard::Guard;
use super::nature::{Nature, is_named_for, is_verb_of, nature, quotes};
use super::quote::Quote;
use super::things;

impl Guard<'_> {
    /// Whether a tool fits the message at all. What the guards would refuse is not offered, so that
    /// a weak model cannot choose it in the place of what is meant.
    pub(super) fn offers(&self, tool: &ToolDefinition) -> bool {
        if quotes(tool).is_some() {
            return self.quote_for(tool).is_some_and(Quote::can_be_called);
        }
        match nature(tool) {
            _ if self.only_quotes() || self.only_declines() => false,
            _ if self.says_nothing() || self.ordered_instead(tool) => false,
            _ if english::asks_about_the_listener(&self.said.message) => false,
            Nature::Looks => !self.orders_a_change() && !self.names_by_number(tool),
            Nature::Makes
            | Nature::Rewords
            | Nature::Settles
            | Nature::Destroys
            | Nature::Quotes(_) => !self.wants_a_fact(),
        }
    }

    /// Whether a tool may be offered for a thing: if the message speaks of things, only for those,
    /// and not for what it says is not so.
    pub(super) fn offers_for(&self, tool: &ToolDefinition, thing: &Reference) -> bool {
        let Some(at) = self.things.iter().position(|other| *other == thing) else {
            return false;
        };
        let spoken_of =
            |at: usize| !self.hits[at].is_empty() || self.numbers.contains(&self.things[at].id);
        let same_kind = |other: &usize| self.things[*other].kind == thing.kind;
        let any = (0..self.things.len()).filter(same_kind).any(spoken_of)
            && self.place(&thing.kind).is_none();
        if any && !spoken_of(at) {
            return false;
        }
        let open_too = (0..self.things.len())
            .filter(same_kind)
            .any(|other| !self.things[other].done && (!any || spoken_of(other)));
        let prefers_open = thing.done && open_too && !self.numbers.contains(&thing.id);
        match nature(tool) {
            Nature::Settles => !prefers_open && !self.denied(at) && !self.ordered_away(at),
            Nature::Destroys => self.destroys(tool) && !self.forbidden(tool),
            Nature::Rewords if prefers_open || !self.rewords(tool) => false,
            Nature::Rewords => {
                !any || self.numbers.contains(&thing.id) || !self.verb_only(at, None)
            }
            Nature::Looks | Nature::Makes | Nature::Quotes(_) => true,
        }
    }

    /// How many actions the message asks for at least: two, if an order follows something else that
    /// was said.
    pub(super) fn actions_min(&self) -> usize {
        if self.only_quotes() {
            return 1;
        }
        let words = english::tokens(&self.said.message);
        let rewords = |verb: &String| {
            self.tools
                .iter()
                .any(|tool| nature(tool) == Nature::Rewords && is_verb_of(tool, verb))
        };
        if order(&words).first().is_some_and(rewords) {
            // "Rename it to mend the roof and add tiles": all of it may be new words.
            return 1;
        }
        let clauses = english::clauses(&self.said.message);
        let is_order = |verb: &String| {
            let changing = |tool: &&&ToolDefinition| !tool.annotations.read_only;
            english::makes(verb)
                || self
                    .tools
                    .iter()
                    .filter(changing)
                    .any(|tool| is_verb_of(tool, verb))
        };
        let orders = |clause: &Vec<String>| order(clause).first().is_some_and(is_order);
        let speaks = |clause: &Vec<String>| clause.iter().any(|word| !english::is_plain(word));
        let first = clauses.iter().position(speaks).unwrap_or(clauses.len());
        if clauses
            .iter()
            .skip(first + 1)
            .any(|clause| orders(clause) && speaks(clause))
        {
            2
        } else {
            1
        }
    }

    /// Whether the person wants to know something, which neither a change nor a question answers.
    pub(super) fn wants_a_fact(&self) -> bool {
        let makes = |tool: &&&ToolDefinition| nature(tool) == Nature::Makes;
        let asks_to_make = english::tokens(&self.said.message).iter().any(|word| {
            self.tools
                .iter()
                .filter(makes)
                .any(|tool| is_named_for(tool, word))
        });
        english::asks_for_a_fact(&self.said.message) && !asks_to_make && !self.said.answers()
    }

    /// Whether the message is one order, and that for another changing tool.
    fn ordered_instead(&self, tool: &ToolDefinition) -> bool {
        let clauses = english::clauses(&self.said.message);
        let mut orders = clauses.iter().filter_map(|clause| {
            let verb = order(clause).first()?;
            let is_meant =
                |tool: &&&ToolDefinition| !tool.annotations.read_only && is_verb_of(tool, verb);
            let meant: Vec<&ToolDefinition> = self.tools.iter().filter(is_meant).copied().collect();
            (!meant.is_empty()).then_some(meant)
        });
        match (orders.next(), orders.next()) {
            (Some(meant), None) if !tool.annotations.read_only => {
                let begins = clauses
                    .first()
                    .and_then(|clause| order(clause).first())
                    .is_some_and(|verb| is_verb_of(meant[0], verb));
                begins && meant.iter().all(|other| other.name != tool.name)
            }
            _ => false,
        }
    }

    /// "Check 9": a tool that looks at everything is not what is meant.
    fn names_by_number(&self, tool: &ToolDefinition) -> bool {
        let known = self
            .things
            .iter()
            .any(|thing| self.numbers.contains(&thing.id));
        known && tool.references.is_empty() && !self.said.message.contains('?')
    }

    /// An order to change something, without a word for looking at anything.
    fn orders_a_change(&self) -> bool {
        let words = english::tokens(&self.said.message);
        let is_verb = |looks: bool, verb: &String| {
            self.tools
                .iter()
                .any(|tool| tool.annotations.read_only == looks && is_verb_of(tool, verb))
        };
        order(&words)
            .first()
            .is_some_and(|verb| is_verb(false, verb))
            && !words.iter().any(|word| is_verb(true, word))
    }

    /// "Thanks, that's all": no thing, nothing that is done to things, no question.
    fn says_nothing(&self) -> bool {
        let words = english::tokens(&self.said.message);
        let kind = |word: &String| {
            things::kinds(&self.tools)
                .any(|kind| english::likeness(kind, word) == english::Likeness::Same)
        };
        let question =
            english::asks_for_a_fact(&self.said.message) || self.said.message.contains('?');
        let pointed = things::kinds(&self.tools).any(|kind| self.place(kind).is_some());
        !(question
            || pointed
            || self.said.answers()
            || self.says_what_to_do()
            || words.iter().any(kind))
            && self.words.is_empty()
    }

    /// Whether the message has a word for what is done to things, a number, or a place in the list.
    fn says_what_to_do(&self) -> bool {
        let words = english::tokens(&self.said.message);
        !self.numbers.is_empty()
            || words.iter().any(|word| {
                english::is_list_verb(word) || self.tools.iter().any(|tool| is_verb_of(tool, word))
            })
    }

    /// Whether the message says of a thing that it is not done, or not yet.
    pub(super) fn denied(&self, thing: usize) -> bool {
        let own = english::content(&self.things[thing].label);
        let clauses = english::clauses(&self.said.message);
        let speaks = |clause: &&Vec<String>| {
            clause.iter().any(|word| {
                *word == self.things[thing].id
                    || (!english::is_plain(word) && english::has(&own, word))
            })
        };
        let about: Vec<&Vec<String>> = clauses.iter().filter(speaks).collect();
        if about.is_empty() {
            clauses.iter().any(|clause| english::denies(clause))
        } else {
            about.iter().any(|clause| english::denies(clause))
        }
    }

    /// Whether the message says, or answers, that something should have other words. "Updated" says
    /// that it was done.
    pub(super) fn rewords(&self, tool: &ToolDefinition) -> bool {
        let orders = |word: &String| is_verb_of(tool, word) && !word.ends_with("ed");
        self.said.answers()
            || english::rewords(&self.said.message)
            || !english::is_english(&self.said.message)
            || english::tokens(&self.said.message).iter().any(orders)
    }

    /// Whether the message says that a thing is to go, in words that are not the thing's own, and
    /// there is a tool for it.
    pub(super) fn ordered_away(&self, thing: usize) -> bool {
        let own = english::tokens(&self.things[thing].label);
        let others: Vec<String> = english::tokens(&self.said.message)
            .into_iter()
            .filter(|word| !english::has(&own, word))
            .collect();
        let destroys = |tool: &&ToolDefinition| nature(tool) == Nature::Destroys;
        self.tools.iter().any(destroys)
            && english::clauses(&self.said.message).len() == 1
            && english::orders_away(&others.join(" "))
    }

    /// Whether the message says, or answers, that something should go.
    pub(super) fn destroys(&self, tool: &ToolDefinition) -> bool {
        self.said.answers()
            || english::destroys(&self.said.message)
            || !english::is_english(&self.said.message)
            || english::tokens(&self.said.message)
                .iter()
                .any(|word| is_verb_of(tool, word))
    }

    pub(super) fn forbidden(&self, tool: &ToolDefinition) -> bool {
        english::clauses(&self.said.message)
            .iter()
            .any(|clause| english::forbids(clause).is_some_and(|verb| is_verb_of(tool, verb)))
    }
}
