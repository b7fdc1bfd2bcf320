//! Selection of what the model is offered: tools and entities that the message rules out are left
//! out of the schema.

use adjutant_core::{Reference, ToolDefinition};

use super::analysis::{self, imperative};
use super::entities;
use super::guard::Guard;
use super::quote::Quote;
use super::tool_kind::{ToolKind, is_named_for, is_verb_of, tool_kind, verbatim};

impl Guard<'_> {
    /// Returns true if a tool fits the message at all. A call that the guards would refuse is not
    /// offered, so that a weak model cannot choose it in the place of what is meant.
    pub(super) fn offers_tool(&self, tool: &ToolDefinition) -> bool {
        if verbatim(tool).is_some() {
            return self.quote_for(tool).is_some_and(Quote::can_be_called);
        }
        match tool_kind(tool) {
            // Calls that cannot be right are left out of the schema, so that the model cannot
            // choose them.
            _ if self.only_verbatim() || self.is_off_topic() => false,
            _ if self.is_small_talk() || self.orders_another_tool(tool) => false,
            _ if analysis::asks_about_assistant(&self.dialogue.message) => false,
            ToolKind::Reads => !self.orders_a_change() && !self.names_by_number(tool),
            ToolKind::Creates
            | ToolKind::Rewords
            | ToolKind::Completes
            | ToolKind::Deletes
            | ToolKind::Verbatim(_) => !self.asks_information(),
        }
    }

    /// Returns true if a tool may be offered for an entity: if the message names entities, only for
    /// those, and not for those whose state it denies.
    pub(super) fn offers_entity(&self, tool: &ToolDefinition, entity: &Reference) -> bool {
        let Some(at) = self.entities.iter().position(|other| *other == entity) else {
            return false;
        };
        let spoken_of =
            |at: usize| !self.hits[at].is_empty() || self.numbers.contains(&self.entities[at].id);
        let same_kind = |other: &usize| self.entities[*other].kind == entity.kind;
        // A position, as in "the second one", names an entity without a word of its label.
        let any = (0..self.entities.len()).filter(same_kind).any(spoken_of)
            && self.ordinal_position(&entity.kind).is_none();
        if any && !spoken_of(at) {
            return false;
        }
        let open_too = (0..self.entities.len())
            .filter(same_kind)
            .any(|other| !self.entities[other].done && (!any || spoken_of(other)));
        // Words that fit open and done entities mean an open one, unless the number says otherwise.
        let prefers_open = entity.done && open_too && !self.numbers.contains(&entity.id);
        match tool_kind(tool) {
            ToolKind::Completes => !prefers_open && !self.is_denied(at) && !self.asks_deletion(at),
            ToolKind::Deletes => self.allows_deletion(tool) && !self.is_forbidden(tool),
            ToolKind::Rewords if prefers_open || !self.allows_rewording(tool) => false,
            ToolKind::Rewords => {
                !any || self.numbers.contains(&entity.id) || !self.only_verb_matches(at, None)
            }
            ToolKind::Reads | ToolKind::Creates | ToolKind::Verbatim(_) => true,
        }
    }

    /// Returns the fewest actions that the message asks for: two, if an order follows another
    /// clause.
    pub(super) fn actions_min(&self) -> usize {
        // Each text of the message is a call of its own, whatever the clauses are.
        if self.only_verbatim() {
            return 1;
        }
        let words = analysis::tokens(&self.dialogue.message);
        let rewords = |verb: &String| {
            self.tools
                .iter()
                .any(|tool| tool_kind(tool) == ToolKind::Rewords && is_verb_of(tool, verb))
        };
        if imperative(&words).first().is_some_and(rewords) {
            // "Rename it to mend the roof and add tiles": all of it may be the new text.
            return 1;
        }
        let clauses = analysis::clauses(&self.dialogue.message);
        let is_order = |verb: &String| {
            let changing = |tool: &&&ToolDefinition| !tool.annotations.read_only;
            analysis::is_create_word(verb)
                || self
                    .tools
                    .iter()
                    .filter(changing)
                    .any(|tool| is_verb_of(tool, verb))
        };
        let orders = |clause: &Vec<String>| imperative(clause).first().is_some_and(is_order);
        let speaks = |clause: &Vec<String>| clause.iter().any(|word| !analysis::is_stop_word(word));
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

    /// Returns true if the user asks for information, which neither a change nor a question
    /// answers.
    pub(super) fn asks_information(&self) -> bool {
        let makes = |tool: &&&ToolDefinition| tool_kind(tool) == ToolKind::Creates;
        let asks_to_make = analysis::tokens(&self.dialogue.message).iter().any(|word| {
            self.tools
                .iter()
                .filter(makes)
                .any(|tool| is_named_for(tool, word))
        });
        analysis::is_question(&self.dialogue.message) && !asks_to_make && !self.dialogue.answers()
    }

    /// Returns true if the message is one order, and that for another changing tool.
    fn orders_another_tool(&self, tool: &ToolDefinition) -> bool {
        let clauses = analysis::clauses(&self.dialogue.message);
        let mut orders = clauses.iter().filter_map(|clause| {
            let verb = imperative(clause).first()?;
            let is_meant =
                |tool: &&&ToolDefinition| !tool.annotations.read_only && is_verb_of(tool, verb);
            let meant: Vec<&ToolDefinition> = self.tools.iter().filter(is_meant).copied().collect();
            (!meant.is_empty()).then_some(meant)
        });
        match (orders.next(), orders.next()) {
            (Some(meant), None) if !tool.annotations.read_only => {
                let begins = clauses
                    .first()
                    .and_then(|clause| imperative(clause).first())
                    .is_some_and(|verb| is_verb_of(meant[0], verb));
                begins && meant.iter().all(|other| other.name != tool.name)
            }
            _ => false,
        }
    }

    /// Returns true for "check 9": a tool that reads everything is not what is meant.
    fn names_by_number(&self, tool: &ToolDefinition) -> bool {
        let known = self
            .entities
            .iter()
            .any(|entity| self.numbers.contains(&entity.id));
        known && tool.references.is_empty() && !self.dialogue.message.contains('?')
    }

    /// Returns true for an order to change something without a word for reading anything.
    fn orders_a_change(&self) -> bool {
        let words = analysis::tokens(&self.dialogue.message);
        let is_verb = |looks: bool, verb: &String| {
            self.tools
                .iter()
                .any(|tool| tool.annotations.read_only == looks && is_verb_of(tool, verb))
        };
        imperative(&words)
            .first()
            .is_some_and(|verb| is_verb(false, verb))
            && !words.iter().any(|word| is_verb(true, word))
    }

    /// Returns true for "thanks, that's all": no entity, no action on one, no question.
    fn is_small_talk(&self) -> bool {
        let words = analysis::tokens(&self.dialogue.message);
        let kind = |word: &String| {
            entities::kinds(&self.tools)
                .any(|kind| analysis::likeness(kind, word) == analysis::Likeness::Same)
        };
        let question =
            analysis::is_question(&self.dialogue.message) || self.dialogue.message.contains('?');
        let pointed =
            entities::kinds(&self.tools).any(|kind| self.ordinal_position(kind).is_some());
        !(question
            || pointed
            || self.dialogue.answers()
            || self.has_action_word()
            || words.iter().any(kind))
            && self.words.is_empty()
    }

    /// Returns true if the message has a word for an action on entities, a number, or a position in
    /// the list.
    fn has_action_word(&self) -> bool {
        let words = analysis::tokens(&self.dialogue.message);
        !self.numbers.is_empty()
            || words.iter().any(|word| {
                analysis::is_list_verb(word) || self.tools.iter().any(|tool| is_verb_of(tool, word))
            })
    }

    /// Returns true if the message says of an entity that it is not done, or not yet.
    pub(super) fn is_denied(&self, entity: usize) -> bool {
        let own = analysis::content_words(&self.entities[entity].label);
        let clauses = analysis::clauses(&self.dialogue.message);
        let speaks = |clause: &&Vec<String>| {
            clause.iter().any(|word| {
                *word == self.entities[entity].id
                    || (!analysis::is_stop_word(word) && analysis::has_similar(&own, word))
            })
        };
        let about: Vec<&Vec<String>> = clauses.iter().filter(speaks).collect();
        if about.is_empty() {
            clauses.iter().any(|clause| analysis::is_negated(clause))
        } else {
            about.iter().any(|clause| analysis::is_negated(clause))
        }
    }

    /// Returns true if the message asks for another wording, or answers a question. "Updated" says
    /// that it was done.
    pub(super) fn allows_rewording(&self, tool: &ToolDefinition) -> bool {
        let orders = |word: &String| is_verb_of(tool, word) && !word.ends_with("ed");
        self.dialogue.answers()
            || analysis::mentions_rewording(&self.dialogue.message)
            || !analysis::is_recognised(&self.dialogue.message)
            || analysis::tokens(&self.dialogue.message).iter().any(orders)
    }

    /// Returns true if the message asks for the deletion of an entity, in words that are not in its
    /// label, and there is a tool for it.
    pub(super) fn asks_deletion(&self, entity: usize) -> bool {
        let own = analysis::tokens(&self.entities[entity].label);
        let others: Vec<String> = analysis::tokens(&self.dialogue.message)
            .into_iter()
            .filter(|word| !analysis::has_similar(&own, word))
            .collect();
        let destroys = |tool: &&ToolDefinition| tool_kind(tool) == ToolKind::Deletes;
        self.tools.iter().any(destroys)
            && analysis::clauses(&self.dialogue.message).len() == 1
            && analysis::orders_deletion(&others.join(" "))
    }

    /// Returns true if the message asks for a deletion, or answers a question.
    pub(super) fn allows_deletion(&self, tool: &ToolDefinition) -> bool {
        self.dialogue.answers()
            || analysis::mentions_deletion(&self.dialogue.message)
            || !analysis::is_recognised(&self.dialogue.message)
            || analysis::tokens(&self.dialogue.message)
                .iter()
                .any(|word| is_verb_of(tool, word))
    }

    pub(super) fn is_forbidden(&self, tool: &ToolDefinition) -> bool {
        analysis::clauses(&self.dialogue.message)
            .iter()
            .any(|clause| {
                analysis::prohibited_verb(clause).is_some_and(|verb| is_verb_of(tool, verb))
            })
    }
}
