//! A yes to a question of ours that proposes calls: the question has all of their arguments.

use adjutant_core::{ActionKind, Language};
use serde_json::json;

use super::{Scored, Step, calls};
use crate::lexicon::lexicon;
use crate::sentences::values;
use crate::tool_kind::free_texts;
use crate::words::{fold, stands_exactly_at, words};

/// Most words of an agreement: "yes please, go for it".
const WORDS_MAX: usize = 5;

impl<'a> Scored<'a> {
    /// Returns the calls that the assistant's last message proposes, if this message only agrees, and
    /// what else that message asks.
    pub(super) fn agreed(&self) -> Option<(Vec<Step<'a>>, Option<String>)> {
        let question = self.dialogue.assistant_before.as_deref()?;
        if !agrees(&self.dialogue.message) {
            return None;
        }
        // The agreement is often too short to tell its language.
        let languages = Language::ALL.into_iter();
        let mut read = languages.map(|language| {
            let (mut steps, mut rest) = (Vec::new(), question.trim());
            while let Some((more, behind)) = self.proposed(rest, language) {
                steps.extend(more);
                rest = behind.trim_start();
            }
            (steps, rest)
        });
        let (steps, rest) = read.find(|(steps, _)| !steps.is_empty())?;
        Some((steps, (!rest.is_empty()).then(|| rest.to_owned())))
    }

    /// Returns the calls of the question that a text begins with, and what stands behind it.
    fn proposed<'q>(
        &self,
        question: &'q str,
        language: Language,
    ) -> Option<(Vec<Step<'a>>, &'q str)> {
        let read = |name: &str| values(language, name, question);
        if let Some((values, rest)) = read("sure_create") {
            let tool = self.tool(ActionKind::Create)?;
            let argument = free_texts(tool).next()?;
            return Some((calls(tool, argument, values.first()?), rest));
        }
        if let Some((values, rest)) = read("sure_reword_to") {
            let [of, text] = &values[..] else { return None };
            let tool = self.tool(ActionKind::Reword)?;
            let mut arguments = self.argument(tool, self.labelled(of.first()?)?);
            let argument = free_texts(tool).next()?;
            arguments.insert(argument.to_owned(), json!(text.first()?));
            return Some((vec![Step::Call(tool, arguments)], rest));
        }
        let of_entity = [
            ("sure_complete", ActionKind::Complete),
            ("sure_delete", ActionKind::Delete),
        ];
        of_entity.into_iter().find_map(|(name, kind)| {
            let (values, rest) = read(name)?;
            let tool = self.tool(kind)?;
            let call = |label: &String| -> Option<Step<'a>> {
                Some(Step::Call(tool, self.argument(tool, self.labelled(label)?)))
            };
            let calls = values.first()?.iter().map(call);
            Some((calls.collect::<Option<Vec<_>>>()?, rest))
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

/// Returns true for a message that says yes, in any of the languages, and nothing else.
fn agrees(message: &str) -> bool {
    let words = words(message);
    let says_yes = |language: Language| {
        let phrases = &lexicon(language).agreements;
        let mut at = 0;
        while let Some(behind) = phrases
            .iter()
            .filter_map(|phrase| stands_exactly_at(&words, at, phrase))
            .max()
        {
            at = behind;
        }
        at == words.len()
    };
    (1..=WORDS_MAX).contains(&words.len()) && Language::ALL.into_iter().any(says_yes)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert!(agrees(yes), "{yes}");
        }
        for other in [
            "",
            "no",
            "no thanks",
            "thanks",
            "danke",
            "nein danke",
            "yes but call Ann first",
            "yes and add milk",
            "it",
            "das",
            "not sure",
            "the second one",
            "oui mais non",
        ] {
            assert!(!agrees(other), "{other}");
        }
    }
}
