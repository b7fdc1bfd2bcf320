//! Decisions about a message whose actions were scored.
//!
//! The scores say what is asked for, the words of the message say of which entities and with which
//! texts. The model is asked only for what is left: which of the texts, or which action for which
//! entity.

mod agreement; // a yes to a question that proposes calls
mod answer; // the schema of what the model chooses, and its answer
mod choice; // texts with their probability
mod clauses; // clauses and corrections of a message
mod orders; // the kind of action that each clause asks for
mod reworded; // new texts of an entity
mod targets; // the entities that a message means
mod texts; // the texts that it has for new entities
#[cfg(feature = "training")]
mod training; // texts with what they are judged by

#[cfg(feature = "training")]
pub use training::TextChoices;

use adjutant_core::{ActionKind, ActionScores, Arguments, Language, Reference, ToolDefinition};
use serde_json::json;

use super::actions::ACTIONS_MAX;
use super::analysis;
use super::clarification::Clarification;
use super::dialogue::Dialogue;
use super::false_claim::claims_understanding;
use super::lexicon::{Lexicon, Lexicons, is_content};
use super::sentences::sentence;
use super::speech::SpeechActs;
use super::tool_kind::{ToolKind, Verbatim, tool_kind};
use super::word_classifier::WordClassifier;
use super::words::{fold, words};
use choice::Choice;
use orders::Orders;
use targets::{Reader, Targets};

/// Least probability of an action that is carried out.
const ACTED: f32 = 0.5;
/// Share of the words in the scores: together they are right more often than the model alone
/// (`docs/agent-quality.md`).
const SHARE_OF_WORDS: f32 = 0.35;
/// Probability of an order that words give beyond doubt.
const CERTAIN: f32 = 0.99;
/// That of an action which is so many times as likely as anything else.
const LIKELY: f32 = 0.35;
const AHEAD: f32 = 2.0;
/// That of completing an entity of which the message says nothing but its name.
const ACTED_BARELY: f32 = 0.7;
/// That of completing an entity that is named beyond doubt.
const ACTED_CLEARLY: f32 = 0.3;
/// Least probability of an action that is asked about.
const ASKED: f32 = 0.2;
/// Least probability of a deletion that is prepared: the person confirms it anyway.
const CONFIRMED: f32 = 0.25;
/// Least probability of a deletion that competes with completing.
const EITHER: f32 = 0.35;

/// Margin of probability by which completing an entity is likelier than deleting it.
const CLEARLY: f32 = 0.35;

/// Least probability of a further action that a clause of the message asks for.
const ALSO_ACTED: f32 = 0.25;

/// Most words of a message that is answered in the model's own words.
const SMALL_TALK_WORDS_MAX: usize = 10;

/// An action that a message asks for, as far as its words decide it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step<'a> {
    /// A call whose arguments are known.
    Call(&'a ToolDefinition, Arguments),
    /// Calls of a tool with some of these texts, which the model chooses.
    Texts(&'a ToolDefinition, Vec<Choice>),
    /// A call with the likeliest of these new texts for an entity.
    Reword(&'a ToolDefinition, usize, Vec<Choice>),
    /// A call of a tool whose arguments the model chooses.
    Open(&'a ToolDefinition),
}

/// The answer to a message, as far as the scores and the words decide it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Decision<'a> {
    /// Steps, and a question about what is left.
    Act(Vec<Step<'a>>, Option<Clarification<'a>>),
    /// A question.
    Ask(Clarification<'a>),
    /// A fixed sentence that declines.
    Decline,
    /// A reply in the model's own words.
    SmallTalk,
    /// A fixed reply.
    Reply(&'static str),
}

/// A message with its scores, tools and entities.
pub(super) struct Scored<'a> {
    dialogue: &'a Dialogue,
    lexicon: &'static Lexicon,
    scores: ActionScores,
    tools: Vec<(ActionKind, &'a ToolDefinition)>,
    pub(super) entities: Vec<&'a Reference>,
    targets: Targets,
    /// The facts and diary entries of the message, as far as English words tell them.
    speech: SpeechActs,
}

impl<'a> Scored<'a> {
    /// Reads a message. `None` if the scores say nothing about these tools: none of them has
    /// entities, or two are of one kind.
    pub(super) fn new(
        dialogue: &'a Dialogue,
        references: &'a [Reference],
        tools: &[&'a ToolDefinition],
        scores: ActionScores,
        lexicons: Lexicons,
    ) -> Option<Self> {
        let mut kinds: Vec<(ActionKind, &'a ToolDefinition)> = Vec::new();
        for tool in tools {
            let kind = action_kind(tool);
            if kinds.iter().any(|(known, _)| *known == kind) {
                return None;
            }
            kinds.push((kind, tool));
        }
        let mut of_entities = tools.iter().flat_map(|tool| &tool.references);
        let kind = &of_entities.next()?.kind;
        if of_entities.any(|other| other.kind != *kind) {
            return None;
        }
        let entities: Vec<&Reference> = references
            .iter()
            .filter(|entity| entity.kind == *kind)
            .collect();
        let lexicon = lexicons.of(scores.language());
        let targets = Reader::new(dialogue, &entities, lexicon).targets();
        let speech = SpeechActs::from_dialogue(dialogue);
        let by_words = WordClassifier::built_in().scores(&dialogue.message);
        // Facts are told in any words, of which the model knows more.
        let is_of_memory = matches!(
            scores.likeliest(),
            ActionKind::Remember | ActionKind::Recall | ActionKind::Log | ActionKind::Forget
        );
        let share = if is_of_memory { 0.0 } else { SHARE_OF_WORDS };
        let scores = with_orders(scores.mixed_with(&by_words, share), &speech);
        Some(Self {
            dialogue,
            lexicon,
            scores,
            tools: kinds,
            entities,
            targets,
            speech,
        })
    }

    pub(super) fn language(&self) -> Language {
        self.scores.language()
    }

    fn tool(&self, kind: ActionKind) -> Option<&'a ToolDefinition> {
        self.tools
            .iter()
            .find(|(known, _)| *known == kind)
            .map(|(_, tool)| *tool)
    }

    /// Returns the kinds of the agent's tools by their probability, the likeliest first.
    fn likeliest(&self) -> Vec<(ActionKind, f32)> {
        let mut kinds: Vec<(ActionKind, f32)> = self
            .tools
            .iter()
            .map(|(kind, _)| (*kind, self.scores.of(*kind)))
            .collect();
        kinds.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        kinds
    }

    /// Returns what to do.
    pub(super) fn decide(&self) -> Decision<'a> {
        if let Some(agreed) = self.agreed() {
            return agreed;
        }
        // Orders about files, which no tool of a list carries out.
        if self.speech.beyond && self.targets.named.is_empty() {
            return Decision::Decline;
        }
        let likeliest = self.likeliest();
        let (best, probability) = likeliest.first().copied().unwrap_or((ActionKind::Ask, 0.0));
        let controls = [ActionKind::Reply, ActionKind::Decline, ActionKind::Ask];
        let is_clear = self.is_clear(best);
        let (control, likely) = controls
            .into_iter()
            // The words know which entity is meant, so that its probability counts for nothing.
            .filter(|kind| *kind != ActionKind::Ask || !is_clear)
            .map(|kind| (kind, self.scores.of(kind)))
            .max_by(|(_, a), (_, b)| a.total_cmp(b))
            .unwrap_or((ActionKind::Ask, 0.0));
        let next = likeliest.get(1).map_or(0.0, |(_, next)| *next).max(likely);
        let least = match best {
            ActionKind::Delete => CONFIRMED,
            _ if is_clear => ACTED_CLEARLY,
            // Of a task that is only named nobody knows what should be done.
            ActionKind::Complete if self.targets.is_bare => ACTED_BARELY,
            _ if probability >= AHEAD * next => LIKELY,
            _ => ACTED,
        };
        // "Done with it" completes a task, or ends it. A deletion is confirmed, so it is the safer
        // reading.
        let delete = self.scores.of(ActionKind::Delete);
        let two_orders = delete >= ACTED && self.targets.named.len() > 1;
        if best == ActionKind::Complete
            && !two_orders
            && delete >= EITHER
            && probability - delete < CLEARLY
        {
            return self.act(&[ActionKind::Delete]);
        }
        if probability < least || likely > probability {
            return match control {
                // A likely action is asked about, rather than refused or ignored.
                _ if probability >= ASKED && probability > likely => self.ask(best),
                ActionKind::Reply => self.reply(),
                ActionKind::Decline => Decision::Decline,
                _ => self.ask(best),
            };
        }
        // Further actions need a clause of their own.
        let in_clauses = orders::in_clauses(&self.dialogue.message, self.lexicon);
        let least = |kind: ActionKind| match in_clauses.contains(&kind) {
            true => ALSO_ACTED,
            false => ACTED,
        };
        let wanted: Vec<ActionKind> = likeliest
            .iter()
            .filter(|(kind, probability)| *kind == best || *probability >= least(*kind))
            .map(|(kind, _)| *kind)
            .collect();
        self.act(&wanted)
    }

    /// Returns true if an action completes entities that the message names beyond doubt, with more
    /// words than their names.
    fn is_clear(&self, kind: ActionKind) -> bool {
        kind == ActionKind::Complete
            && !self.named(kind).is_empty()
            && self.targets.doubtful.is_empty()
            && !self.targets.is_bare
    }

    /// Returns the steps for the kinds of actions that are wanted.
    fn act(&self, wanted: &[ActionKind]) -> Decision<'a> {
        let mut steps = Vec::new();
        let mut open: Option<Clarification<'a>> = None;
        let wanted = &self.without_new_entity(wanted)[..];
        let orders = self.orders(wanted);
        // In the order of the message; an action that no clause is left for is none.
        let mut ordered: Vec<(usize, ActionKind)> = wanted
            .iter()
            .filter_map(|kind| Some((orders.parts(*kind).first()?.start, *kind)))
            .collect();
        ordered.sort_by_key(|(start, _)| *start);
        for (_, kind) in &ordered {
            let Some(tool) = self.tool(*kind) else {
                continue;
            };
            let more = match kind {
                ActionKind::Create => {
                    let texts = self.texts(tool, &orders);
                    texts.map(|texts| vec![Step::Texts(tool, self.rated(texts))])
                }
                ActionKind::List => Ok(vec![Step::Open(tool)]),
                ActionKind::Remember
                | ActionKind::Recall
                | ActionKind::Log
                | ActionKind::Forget => self.verbatim(*kind, tool, wanted.len() == 1),
                _ => self.on_entities(*kind, tool, &orders),
            };
            match more {
                Ok(more) => steps.extend(more),
                Err(clarification) => open = open.or(Some(clarification)),
            }
        }
        match (steps.is_empty(), open) {
            (true, Some(clarification)) => Decision::Ask(clarification),
            (true, None) => Decision::Ask(Clarification::NotUnderstood),
            (false, open) => Decision::Act(steps, open),
        }
    }

    fn orders(&self, wanted: &[ActionKind]) -> Orders {
        Orders::new(&self.dialogue.message, wanted, self.lexicon)
    }

    /// Returns kinds of actions without the creation of an entity whose text is the new text of
    /// another: "task 3: write to Anna instead".
    fn without_new_entity(&self, wanted: &[ActionKind]) -> Vec<ActionKind> {
        let mut wanted = wanted.to_vec();
        let both = [ActionKind::Create, ActionKind::Reword];
        if both.iter().all(|kind| wanted.contains(kind)) {
            let orders = self.orders(&wanted);
            let named = self.named(ActionKind::Reword);
            if named
                .iter()
                .all(|entity| self.new_texts(*entity, &orders).is_empty())
            {
                wanted.retain(|kind| *kind != ActionKind::Create);
            }
        }
        wanted
    }

    /// Returns the steps for one kind of action on entities.
    fn on_entities(
        &self,
        kind: ActionKind,
        tool: &'a ToolDefinition,
        orders: &Orders,
    ) -> Result<Vec<Step<'a>>, Clarification<'a>> {
        let of = tool
            .references
            .first()
            .map_or("", |reference| reference.kind.as_str());
        let mut named = self.named(kind);
        // An entity that is named in another order belongs to that.
        named.retain(|entity| {
            let place = self.targets.place_of(*entity);
            place.is_none_or(|byte| orders.kind_at(byte).is_none_or(|of| of == kind))
        });
        // "Make it Friday": a change that names none is of what was just spoken of.
        let names_none = named.is_empty() && self.targets.doubtful.is_empty();
        if kind == ActionKind::Reword && names_none && self.targets.unknown.is_none() {
            named.extend(self.targets.mentioned);
        }
        if kind == ActionKind::Reword && named.len() > 1 {
            // The words of a new text may name another entity: "rename 3 to call Anna, not Ben".
            let numbered = &self.targets.numbered;
            let by_number: Vec<usize> = (named.iter().copied())
                .filter(|entity| numbered.contains(entity))
                .collect();
            if by_number.len() == 1 {
                named = by_number;
            }
        }
        match (kind, &named[..]) {
            (_, []) => Err(self.which(of)),
            (ActionKind::Reword, [only]) => {
                let texts = self.new_texts(*only, orders);
                match texts.is_empty() {
                    true => Err(Clarification::Words {
                        tool,
                        of: Some(self.entities[*only].label.clone()),
                    }),
                    false => Ok(vec![Step::Reword(
                        tool,
                        *only,
                        self.rated_for(*only, texts),
                    )]),
                }
            }
            (ActionKind::Reword, named) => Err(Clarification::Which {
                kind: of,
                candidates: named.iter().map(|&at| self.entities[at]).collect(),
            }),
            (ActionKind::Complete, [only]) if self.targets.is_guessed => {
                let what = vec![self.entities[*only].label.clone()];
                Err(Clarification::Sure { tool, what })
            }
            (_, named) => Ok(named
                .iter()
                .take(ACTIONS_MAX)
                .map(|&at| Step::Call(tool, self.argument(tool, at)))
                .collect()),
        }
    }

    /// Returns the entities that an action is for.
    fn named(&self, kind: ActionKind) -> Vec<usize> {
        let mut named = self.targets.named.clone();
        // "Not the blue one, only the green one". All of an order may be a negation, but no
        // completion: "I do not need the rent any more".
        if kind == ActionKind::Complete && self.targets.only_negated
            || named
                .iter()
                .any(|entity| !self.targets.negated.contains(entity))
        {
            named.retain(|entity| !self.targets.negated.contains(entity));
        }
        if kind == ActionKind::Delete {
            // "Delete everything" means what is done too.
            if self.targets.only_finished {
                named.clear();
            }
            named.extend(&self.targets.finished);
            named.sort_unstable();
            named.dedup();
        }
        if kind == ActionKind::Complete {
            // A task that is done cannot be completed.
            named.retain(|&entity| !self.entities[entity].done);
        }
        named
    }

    /// Returns the question which entity is meant.
    fn which(&self, kind: &'a str) -> Clarification<'a> {
        if let Some(id) = &self.targets.unknown {
            return Clarification::NoSuch {
                kind,
                id: id.clone(),
            };
        }
        let entities = |of: &[usize]| of.iter().map(|&at| self.entities[at]).collect::<Vec<_>>();
        if self.targets.doubtful.is_empty() {
            let open = (0..self.entities.len())
                .filter(|&at| !self.entities[at].done)
                .collect::<Vec<_>>();
            return Clarification::Unnamed {
                kind,
                open: entities(&open),
            };
        }
        Clarification::Which {
            kind,
            candidates: entities(&self.targets.doubtful),
        }
    }

    fn argument(&self, tool: &ToolDefinition, entity: usize) -> Arguments {
        let name = tool
            .references
            .first()
            .map_or_else(String::new, |reference| reference.argument.clone());
        Arguments::from_iter([(name, json!(self.entities[entity].id))])
    }

    /// Returns the texts that new entities may get.
    fn texts(
        &self,
        tool: &'a ToolDefinition,
        orders: &Orders,
    ) -> Result<Vec<String>, Clarification<'a>> {
        let lexicon = self.lexicon;
        let quotes = texts::quoted(&self.dialogue.message);
        let says = |text: &str| {
            quotes.iter().any(|quote| quote == text)
                || (words(text).iter()).any(|word| is_content(&word.folded, lexicon))
        };
        let message = &self.dialogue.message;
        let mut texts: Vec<String> = orders
            .parts(ActionKind::Create)
            .into_iter()
            .flat_map(|part| texts::candidates(&message[part], lexicon))
            .collect();
        texts.retain(|text| says(text));
        self.leave_to_others(&mut texts);
        texts.extend(self.taken_away());
        // "Yes" to a question is about the text of the question.
        if !self.targets.names_others && texts.is_empty() {
            let earlier = [&self.dialogue.assistant_before, &self.dialogue.user_before];
            let quoted = earlier
                .iter()
                .filter_map(|text| text.as_deref())
                .find_map(|text| texts::quoted(text).into_iter().next());
            let before = self.dialogue.user_before.as_deref().unwrap_or_default();
            texts = match quoted {
                Some(quoted) => vec![quoted],
                None => texts::candidates(before, lexicon),
            };
            texts.retain(|text| says(text));
        }
        if texts.is_empty() {
            return Err(Clarification::Words { tool, of: None });
        }
        // The same text again is more often a slip than a wish.
        if let [only] = &texts[..]
            && let Some(same) = self
                .entities
                .iter()
                .find(|entity| !entity.done && fold(&entity.label) == fold(only))
        {
            return Err(Clarification::Again {
                tool,
                what: same.label.clone(),
            });
        }
        Ok(texts)
    }

    /// Returns the text that the assistant's last message names and no entity has, if the message
    /// points at it: "no, put it back".
    fn taken_away(&self) -> Option<String> {
        let before = self.dialogue.assistant_before.as_deref()?;
        let quotes = texts::quoted(before);
        let [only] = &quotes[..] else { return None };
        let is_known = (self.entities.iter()).any(|entity| fold(&entity.label) == fold(only));
        let points = words(&self.dialogue.message)
            .iter()
            .any(|word| self.lexicon.pronouns.has(&word.folded));
        (points && !is_known).then(|| only.clone())
    }

    /// Removes texts that are facts or diary entries of the message.
    fn leave_to_others(&self, texts: &mut Vec<String>) {
        let speech = [&self.speech.keep, &self.speech.entry];
        let quoted: Vec<String> = speech
            .into_iter()
            .flatten()
            .flat_map(|quoted| &quoted.texts)
            .map(|text| fold(text))
            .collect();
        texts.retain(|text| {
            !quoted
                .iter()
                .any(|quoted| fold(text).contains(quoted.as_str()))
        });
    }

    /// Returns the new texts that an entity may get, the likeliest first.
    fn new_texts(&self, entity: usize, orders: &Orders) -> Vec<String> {
        let place = self.targets.place_of(entity);
        let parts = orders.parts(ActionKind::Reword);
        let part = parts
            .iter()
            .find(|part| place.is_some_and(|byte| part.contains(&byte)))
            .or(parts.last());
        let message = &self.dialogue.message;
        let (start, end) = part.map_or((0, message.len()), |part| (part.start, part.end));
        let mentioned: Vec<usize> = self
            .targets
            .places_of(entity)
            .iter()
            .filter(|byte| (start..end).contains(byte))
            .map(|byte| byte - start)
            .collect();
        let label = &self.entities[entity].label;
        reworded::candidates(&message[start..end], label, &mentioned, self.lexicon)
    }

    /// Returns texts for new entities with their probabilities.
    fn rated(&self, texts: Vec<String>) -> Vec<Choice> {
        choice::of_new(&self.dialogue.message, texts, self.lexicon)
    }

    /// Returns new texts for an entity with their probabilities.
    fn rated_for(&self, entity: usize, texts: Vec<String>) -> Vec<Choice> {
        let label = &self.entities[entity].label;
        choice::of_changed(&self.dialogue.message, label, texts, self.lexicon)
    }

    /// Returns the calls of a tool that takes the person's own text.
    fn verbatim(
        &self,
        kind: ActionKind,
        tool: &'a ToolDefinition,
        alone: bool,
    ) -> Result<Vec<Step<'a>>, Clarification<'a>> {
        let speech = &self.speech;
        let (quoted, argument) = match kind {
            ActionKind::Remember => (&speech.keep, Verbatim::Remember.argument()),
            ActionKind::Log => (&speech.entry, Verbatim::Log.argument()),
            ActionKind::Forget => (&speech.forget, Verbatim::Forget.argument()),
            _ => (&speech.seek, Verbatim::Search.argument()),
        };
        // An order without a text: "can you remember something for me?"
        if let Some(quoted) = quoted
            && quoted.certain
            && quoted.texts.is_empty()
            && kind != ActionKind::Recall
        {
            return Err(Clarification::Words { tool, of: None });
        }
        let quoted = quoted.as_ref().map(|quoted| quoted.texts.clone());
        let mut texts = quoted.unwrap_or_default();
        if texts.is_empty() {
            let own = words(&self.dialogue.message)
                .iter()
                .any(|word| is_content(&word.folded, self.lexicon));
            if !own {
                let earlier = self.dialogue.user_before.clone();
                let earlier =
                    earlier.filter(|_| kind != ActionKind::Recall && self.dialogue.answers());
                texts.extend(earlier);
            } else if alone || kind == ActionKind::Recall {
                texts.push(self.dialogue.message.trim().to_owned());
            }
        }
        let required = tool.required().any(|name| name == argument);
        if texts.is_empty() && kind == ActionKind::Recall {
            if !required {
                return Ok(vec![Step::Call(tool, Arguments::new())]);
            }
            // A search for everything needs a text here, and the message is the best there is.
            texts.push(self.dialogue.message.trim().to_owned());
        }
        if texts.is_empty() {
            return Err(Clarification::Words { tool, of: None });
        }
        Ok(calls(tool, argument, &texts))
    }

    /// Returns the question about a message that asks for nothing that is clear.
    fn ask(&self, best: ActionKind) -> Decision<'a> {
        let probability = self.scores.of(best);
        let named = &self.targets.named;
        let tool = self.tool(best);
        if let ([only], Some(tool)) = (&named[..], tool)
            && matches!(best, ActionKind::Complete | ActionKind::Delete)
            && probability >= ASKED
            && probability > self.scores.of(ActionKind::Ask)
        {
            return Decision::Ask(Clarification::Sure {
                tool,
                what: vec![self.entities[*only].label.clone()],
            });
        }
        if let [only] = named[..] {
            return Decision::Ask(Clarification::WhatWith {
                what: self.entities[only].label.clone(),
            });
        }
        let of_kind = self
            .entities
            .first()
            .map_or("", |entity| entity.kind.as_str());
        if !self.targets.doubtful.is_empty() {
            return Decision::Ask(self.which(of_kind));
        }
        if let Some(tool) = self.tool(ActionKind::Create)
            && self.scores.of(ActionKind::Create) >= self.scores.of(ActionKind::Complete)
            && self.targets.names_others
        {
            let texts = texts::candidates(&self.dialogue.message, self.lexicon);
            if let [only] = &texts[..] {
                return Decision::Ask(Clarification::Sure {
                    tool,
                    what: vec![only.clone()],
                });
            }
        }
        if matches!(
            best,
            ActionKind::Complete | ActionKind::Delete | ActionKind::Reword
        ) && probability >= ASKED
            && !of_kind.is_empty()
        {
            return Decision::Ask(self.which(of_kind));
        }
        Decision::Ask(Clarification::NotUnderstood)
    }

    /// Returns the question whether to keep the fact that a message states and a reply only takes
    /// note of, if there is a tool that keeps facts.
    pub(super) fn fact_taken_note_of(&self, reply: &str) -> Option<Clarification<'a>> {
        let tool = self.tool(ActionKind::Remember)?;
        let message = self.dialogue.message.trim();
        claims_understanding(message, reply).then(|| Clarification::Sure {
            tool,
            what: vec![message.to_owned()],
        })
    }

    /// Returns the reply to a message that asks for nothing.
    fn reply(&self) -> Decision<'a> {
        let message = &self.dialogue.message;
        if analysis::asks_about_assistant(message) {
            return Decision::Reply(sentence(self.language(), "help"));
        }
        if words(message).len() <= SMALL_TALK_WORDS_MAX && !self.targets.has_labels {
            Decision::SmallTalk
        } else {
            Decision::Reply(sentence(self.language(), "nothing_changed"))
        }
    }
}

/// Raises the scores of orders to keep a fact or to write into a diary that English words give
/// beyond doubt.
fn with_orders(scores: ActionScores, speech: &SpeechActs) -> ActionScores {
    let orders = [
        (ActionKind::Remember, &speech.keep),
        (ActionKind::Log, &speech.entry),
    ];
    let mut raised = scores;
    for (kind, quoted) in orders {
        if quoted.as_ref().is_some_and(|quoted| quoted.certain) {
            raised = raised.with(kind, CERTAIN);
            // Without a further sentence nothing else is asked for.
            if !speech.has_more {
                raised = raised
                    .with(ActionKind::Create, 0.0)
                    .with(ActionKind::Ask, 0.0);
            }
        }
    }
    raised
}

/// Returns true if the model may have to choose arguments of a tool: words and scores decide which
/// entity is completed, deleted or changed, and what it says then.
pub(super) fn asks_model(tool: &ToolDefinition) -> bool {
    !matches!(
        action_kind(tool),
        ActionKind::Complete | ActionKind::Delete | ActionKind::Reword
    )
}

/// Returns calls of a tool, one for each text.
fn calls<'a>(tool: &'a ToolDefinition, argument: &str, texts: &[String]) -> Vec<Step<'a>> {
    let call = |text: &String| {
        Step::Call(
            tool,
            Arguments::from_iter([(argument.to_owned(), json!(text))]),
        )
    };
    texts.iter().map(call).collect()
}

/// Returns the kind of action that a tool is for.
fn action_kind(tool: &ToolDefinition) -> ActionKind {
    match tool_kind(tool) {
        ToolKind::Reads => ActionKind::List,
        ToolKind::Creates => ActionKind::Create,
        ToolKind::Rewords => ActionKind::Reword,
        ToolKind::Completes => ActionKind::Complete,
        ToolKind::Deletes => ActionKind::Delete,
        ToolKind::Verbatim(Verbatim::Remember) => ActionKind::Remember,
        ToolKind::Verbatim(Verbatim::Log) => ActionKind::Log,
        ToolKind::Verbatim(Verbatim::Search) => ActionKind::Recall,
        ToolKind::Verbatim(Verbatim::Forget) => ActionKind::Forget,
    }
}
