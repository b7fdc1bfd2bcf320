//! A yes to a question of ours that proposes calls, to all or all but some: the question has all of
//! their arguments.

use adjutant_core::{ActionKind, Language, Reference};
use serde_json::json;

use super::targets::Reader;
use super::{Clarification, Decision, Scored, Step, calls};
use crate::dialogue::Dialogue;
use crate::language::PhraseList;
use crate::lexicon::{Lexicon, lexicon};
use crate::sentences::values;
use crate::tool_kind::free_texts;
use crate::words::{Word, fold, stands_exactly_at, words};

/// Most words of an agreement, "yes please, go for it", and of its exception.
const WORDS_MAX: usize = 5;

/// A call that a question proposes, with the words that the question has for it.
type Proposal<'a> = (String, Step<'a>);

impl<'a> Scored<'a> {
    /// Returns the calls that the assistant's last message proposes and this message agrees to, with
    /// what else that message asks. If it is not known which of them this message excepts, that is
    /// asked again. `None` if this message does more than agree, to all of them or to all but some.
    pub(super) fn agreed(&self) -> Option<Decision<'a>> {
        let question = self.dialogue.assistant_before.as_deref()?;
        let words = words(&self.dialogue.message);
        // The agreement is often too short to tell its language.
        let mut languages = Language::ALL.into_iter();
        let (except, spoken) = languages
            .clone()
            .find_map(|language| Some((exception(&words, language)?, language)))?;
        let (proposals, rest) = languages.find_map(|language| {
            let (mut proposals, mut rest) = (Vec::new(), question.trim());
            while let Some((more, behind)) = self.proposed(rest, language) {
                proposals.extend(more);
                rest = behind.trim_start();
            }
            (!proposals.is_empty()).then_some((proposals, rest))
        })?;
        let labels: Vec<&str> = proposals.iter().map(|(label, _)| &label[..]).collect();
        let excepted = match except.first() {
            Some(first) => {
                let except = &self.dialogue.message[first.start..];
                excepted(except, &labels, lexicon(spoken))
            }
            None => Vec::new(),
        };
        if !except.is_empty() && !(1..proposals.len()).contains(&excepted.len()) {
            return Some(Decision::Ask(Clarification::Repeated(question.to_owned())));
        }
        let steps = (proposals.into_iter().enumerate())
            .filter(|(at, _)| !excepted.contains(at))
            .map(|(_, (_, step))| step);
        let open = (!rest.is_empty()).then(|| Clarification::Repeated(rest.to_owned()));
        Some(Decision::Act(steps.collect(), open))
    }

    /// Returns the calls of the question that a text begins with, and what stands behind it.
    fn proposed<'q>(
        &self,
        question: &'q str,
        language: Language,
    ) -> Option<(Vec<Proposal<'a>>, &'q str)> {
        let read = |name: &str| values(language, name, question);
        if let Some((values, rest)) = read("sure_create") {
            let tool = self.tool(ActionKind::Create)?;
            let argument = free_texts(tool).next()?;
            let texts = values.into_iter().next()?;
            let calls = calls(tool, argument, &texts);
            return Some((texts.into_iter().zip(calls).collect(), rest));
        }
        if let Some((values, rest)) = read("sure_reword_to") {
            let [of, text] = &values[..] else { return None };
            let (of, text) = (of.first()?, text.first()?);
            let tool = self.tool(ActionKind::Reword)?;
            let mut arguments = self.argument(tool, self.labelled(of)?);
            let argument = free_texts(tool).next()?;
            arguments.insert(argument.to_owned(), json!(text));
            return Some((vec![(of.clone(), Step::Call(tool, arguments))], rest));
        }
        let of_entity = [
            ("sure_complete", ActionKind::Complete),
            ("sure_delete", ActionKind::Delete),
        ];
        of_entity.into_iter().find_map(|(name, kind)| {
            let (values, rest) = read(name)?;
            let tool = self.tool(kind)?;
            let labels = values.into_iter().next()?.into_iter();
            let proposal = |label: String| -> Option<Proposal<'a>> {
                let arguments = self.argument(tool, self.labelled(&label)?);
                Some((label, Step::Call(tool, arguments)))
            };
            Some((labels.map(proposal).collect::<Option<Vec<_>>>()?, rest))
        })
    }

    /// Returns the only entity with a label.
    fn labelled(&self, label: &str) -> Option<usize> {
        let mut fitting =
            (0..self.entities.len()).filter(|at| fold(&self.entities[*at].label) == fold(label));
        let only = fitting.next()?;
        fitting.next().is_none().then_some(only)
    }
}

/// Returns the words behind "yes, but not" in a message that begins so in a language; none for a
/// message that says yes and nothing else. `None` for any other message.
fn exception(words: &[Word], language: Language) -> Option<&[Word]> {
    let lexicon = lexicon(language);
    let longest = |phrases: &PhraseList, at: usize| {
        let behind = phrases.iter();
        behind
            .filter_map(|phrase| stands_exactly_at(words, at, phrase))
            .max()
    };
    let mut at = 0;
    while let Some(behind) = longest(&lexicon.agreements, at) {
        at = behind;
    }
    let behind = longest(&lexicon.except, at).or_else(|| {
        let negates = |word: &Word| lexicon.negations.has(&word.folded);
        words.get(at).is_some_and(negates).then_some(at + 1)
    });
    match behind {
        _ if at == 0 || at > WORDS_MAX => None,
        _ if at == words.len() => Some(&[]),
        Some(behind) if (1..=WORDS_MAX).contains(&(words.len() - behind)) => Some(&words[behind..]),
        _ => None,
    }
}

/// Returns which of several labels an exception means, as messages mean entities: by their words or
/// their places in the row. Empty if it means something else too.
fn excepted(except: &str, labels: &[&str], lexicon: &'static Lexicon) -> Vec<usize> {
    let reference = |(at, label): (usize, &&str)| Reference {
        kind: String::new(),
        id: (at + 1).to_string(),
        label: (*label).to_owned(),
        done: false,
    };
    let references: Vec<Reference> = labels.iter().enumerate().map(reference).collect();
    let references: Vec<&Reference> = references.iter().collect();
    let dialogue = Dialogue {
        message: except.to_owned(),
        ..Dialogue::default()
    };
    let targets = Reader::new(&dialogue, &references, lexicon).targets();
    let is_known =
        !targets.names_others && targets.doubtful.is_empty() && targets.unknown.is_none();
    match is_known {
        true => targets.named,
        false => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the exception that a message makes in the first language in which it agrees.
    fn excepts(message: &str) -> Option<String> {
        let words = words(message);
        let mut languages = Language::ALL.into_iter();
        let except = languages.find_map(|language| exception(&words, language))?;
        let except: Vec<&str> = except.iter().map(|word| &word.folded[..]).collect();
        Some(except.join(" "))
    }

    #[test]
    fn a_message_agrees_if_it_says_yes_and_nothing_else() {
        for yes in [
            "yes",
            "Yes, please!",
            "ok do it",
            "that's right",
            "Ja bitte",
            "genau so",
            "d'accord",
            "oui, bien sûr",
            "s\u{ed}, por favor",
            "isso mesmo",
            "Yep.",
        ] {
            assert_eq!(excepts(yes).as_deref(), Some(""), "{yes}");
        }
        for other in [
            "",
            "no",
            "no thanks",
            "thanks",
            "danke",
            "nein danke",
            "yes and add milk",
            "it",
            "das",
            "not sure",
            "the second one",
            "oui mais non",
        ] {
            assert_eq!(excepts(other), None, "{other}");
        }
    }

    #[test]
    fn an_agreement_may_have_an_exception() {
        for (message, except) in [
            ("yes, but not the oat milk", "the oat milk"),
            ("ok, except the second one", "second one"),
            ("yes but call Ann first", "call ann first"),
            ("ja bitte, aber nicht das Brot", "brot"),
            ("oui, sauf le pain", "pain"),
            ("s\u{ed}, menos la leche", "leche"),
            ("sim, mas n\u{e3}o o p\u{e3}o", "pao"),
        ] {
            assert_eq!(excepts(message).as_deref(), Some(except), "{message}");
        }
    }

    #[test]
    fn an_exception_means_a_proposal_by_its_words_or_its_place() {
        let labels = ["Oat milk", "Dark bread", "Tea", "Milk"];
        for (except, language, meant) in [
            ("the oat milk", Language::English, &[0][..]),
            ("the oat milk and the bread", Language::English, &[0, 1]),
            ("dark braed", Language::English, &[1]),
            ("the second one", Language::English, &[1]),
            ("the last", Language::English, &[3]),
            ("1 and 3", Language::English, &[0, 2]),
            ("das letzte", Language::German, &[3]),
            ("the tea and the cake", Language::English, &[]),
            ("that", Language::English, &[]),
            ("the ninth", Language::English, &[]),
        ] {
            let found = excepted(except, &labels, lexicon(language));
            assert_eq!(found, meant, "{except}");
        }
    }
}
