//! Speech acts: the parts of a message that state a fact, order a diary entry, ask a question or
//! order to forget a fact.
//!
//! The texts are cut out of the message and never come from a model. What the word lists do not
//! recognise is left to the other tools, and to questions.

mod diary_entry;
mod fact;
mod question;
mod sentence;

use super::dialogue::Dialogue;
use super::language::{WordList, lists};
use fact::FactAct;
use sentence::{Sentence, sentences};

/// Most words between the verb and the noun of an order about files.
const NEAR: usize = 5;
/// The texts of a message for one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Quoted {
    /// Texts for one call each. Empty: the message asks for a call without a text; a question
    /// without one asks for everything.
    pub(super) texts: Vec<String>,
    /// True if nothing else can be meant by these words.
    pub(super) certain: bool,
}

/// A message by the speech acts of its sentences.
#[derive(Debug, Default)]
pub(super) struct SpeechActs {
    /// Facts that are stated.
    pub(super) keep: Option<Quoted>,
    /// An entry of a diary.
    pub(super) entry: Option<Quoted>,
    /// A question about what is remembered.
    pub(super) seek: Option<Quoted>,
    /// A fact that is to be forgotten.
    pub(super) forget: Option<Quoted>,
    /// True if the message has more than that.
    pub(super) has_more: bool,
    /// True if all of the rest is an order about notes and files, which no such tool carries out.
    pub(super) beyond: bool,
}

impl SpeechActs {
    pub(super) fn from_dialogue(dialogue: &Dialogue) -> Self {
        let earlier = || {
            dialogue
                .user_before
                .as_deref()
                .map(|text| Self::from_message(text, None))
                .unwrap_or_default()
        };
        if dialogue.answers() {
            let before = dialogue.assistant_before.as_deref().unwrap_or_default();
            // A question of the assistant may be about a text that the message before left out.
            if let Some(answered) = earlier().completed_by(&dialogue.message, before) {
                return answered;
            }
        }
        Self::from_message(&dialogue.message, dialogue.user_before.as_deref())
    }

    fn from_message(message: &str, earlier: Option<&str>) -> Self {
        // The whole message: an entry may have several sentences.
        if let Some(text) = diary_entry::parse(message) {
            let texts = match text {
                Some(text) if points_back(&text) => earlier.map(statements).unwrap_or_default(),
                Some(text) => vec![text],
                None => Vec::new(),
            };
            return Self {
                entry: Some(Quoted {
                    texts,
                    certain: true,
                }),
                ..Self::default()
            };
        }
        let mut speech = Self::default();
        for sentence in sentences(message) {
            speech.take(&sentence, earlier);
        }
        speech
    }

    fn take(&mut self, sentence: &Sentence<'_>, earlier: Option<&str>) {
        match fact::parse(sentence) {
            Some(FactAct::Forget(text)) => add(&mut self.forget, text.into_iter().collect(), true),
            // "Remember that": the statements are in the message before.
            Some(FactAct::Keep(Some(text))) if points_back(&text) => {
                add(
                    &mut self.keep,
                    earlier.map(statements).unwrap_or_default(),
                    true,
                );
            }
            Some(FactAct::Keep(text)) => add(&mut self.keep, text.into_iter().collect(), true),
            Some(FactAct::State(text)) => add(&mut self.keep, vec![text], false),
            None => match question::parse(sentence) {
                Some(asked) => add(
                    &mut self.seek,
                    asked.text.into_iter().collect(),
                    asked.certain,
                ),
                None => {
                    self.beyond = orders_of_files(sentence) && (self.beyond || !self.has_more);
                    self.has_more |= sentence.says_something();
                }
            },
        }
    }

    /// Combines this message with the answer to a question about it. `None`: the answer stands
    /// alone.
    fn completed_by(self, answer: &str, question: &str) -> Option<Self> {
        let words = sentence::words(answer);
        let is_all =
            |list: &WordList| !words.is_empty() && words.iter().all(|word| word.is_one_of(list));
        // "No" takes the statement back.
        if is_all(&lists().speech.refusal) {
            return Some(Self::default());
        }
        let asked_for = |quoted: &Option<Quoted>| {
            quoted
                .as_ref()
                .is_some_and(|quoted| quoted.texts.is_empty())
        };
        let mut completed = Self::default();
        let completes = if asked_for(&self.keep) {
            Some(&mut completed.keep)
        } else if asked_for(&self.entry) {
            Some(&mut completed.entry)
        } else if asked_for(&self.forget) {
            Some(&mut completed.forget)
        } else {
            None
        };
        if let Some(completes) = completes {
            add(completes, vec![answer.trim().to_owned()], true);
            return Some(completed);
        }
        let keep = self
            .keep
            .filter(|keep| keep.texts.iter().any(|text| question.contains(text)))?;
        is_all(&lists().speech.agreement).then(|| Self {
            keep: Some(Quoted {
                certain: true,
                ..keep
            }),
            ..Self::default()
        })
    }
}

fn add(quoted: &mut Option<Quoted>, texts: Vec<String>, certain: bool) {
    let quoted = quoted.get_or_insert_with(|| Quoted {
        texts: Vec::new(),
        certain,
    });
    quoted.certain |= certain;
    quoted.texts.extend(texts);
}

/// Returns true for "create a new note", "rename my file".
fn orders_of_files(sentence: &Sentence<'_>) -> bool {
    let order = sentence.order();
    let Some(verb) = sentence.words.get(order) else {
        return false;
    };
    let near = sentence.words.iter().skip(order + 1).take(NEAR);
    let orders = verb.is_one_of(&lists().speech.file_verbs)
        || verb.is("make") && near.clone().any(|word| word.is("new"));
    orders
        && near
            .clone()
            .any(|word| word.is_one_of(&lists().speech.files))
        && !sentence.has(&lists().fact.task_list)
}

fn points_back(text: &str) -> bool {
    let words = sentence::words(text);
    words.len() == 1
        && words
            .iter()
            .all(|word| word.is_one_of(&lists().speech.points_back))
}

/// Returns the statements of a message, each as it was written.
fn statements(message: &str) -> Vec<String> {
    let stated = sentences(message)
        .into_iter()
        .filter(|sentence| !sentence.is_question && sentence.says_something());
    stated
        .map(|sentence| sentence::tidy(sentence.text))
        .collect()
}

#[cfg(test)]
mod tests;
