//! The parts of a message for tools that take a person's words as they are: facts to keep, an entry
//! of a diary, a question, a fact to forget.
//!
//! The words are cut out of the message and never a model's. The tables are English: what they do
//! not recognise is left to the other tools, and to questions.

mod entry; // what goes into a diary
mod fact; // what is stated, and what is to be kept or forgotten
mod question; // what is asked for
mod sentence; // sentences and words, with their places

use super::said::Said;
use fact::Told;
use sentence::{Sentence, sentences};

/// Words that stand for the message before: "remember that".
const POINTS_BACK: &str = "it that this";
const AGREES: &str =
    "absolutely do exactly it ok okay please right sure that this yeah yep yes yup";
/// Verbs of what one does with notes and files.
const FILE_VERBS: &str =
    "append attach copy create delete edit export import merge move open read rename start upload";
const FILES: &str = "attachment file files folder folders note notes vault";
/// Words behind the verb among which they are named.
const NEAR: usize = 5;
const LEAVES_IT: &str = "cancel forget it leave matter mind never no nope not nothing nevermind";

/// The words of a message that are for one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Quoted {
    /// Each for a call of its own. None: the message wants such a call, and the words are missing;
    /// of a question: everything is asked for.
    pub(super) texts: Vec<String>,
    /// True if nothing else can be meant by these words.
    pub(super) certain: bool,
}

/// A message by what its sentences do.
#[derive(Debug, Default)]
pub(super) struct Speech {
    /// Facts that are stated.
    pub(super) keep: Option<Quoted>,
    /// An entry of a diary.
    pub(super) entry: Option<Quoted>,
    /// A question about what is known.
    pub(super) seek: Option<Quoted>,
    /// A fact that is to be forgotten.
    pub(super) forget: Option<Quoted>,
    /// True if there is more in the message than that.
    pub(super) has_more: bool,
    /// True if all that is more is an order about notes and files, which no such tool carries out.
    pub(super) beyond: bool,
}

impl Speech {
    pub(super) fn read(said: &Said) -> Self {
        let earlier = || {
            said.earlier
                .as_deref()
                .map(|text| Self::of(text, None))
                .unwrap_or_default()
        };
        if said.answers() {
            let before = said.before.as_deref().unwrap_or_default();
            if let Some(answered) = earlier().answered(&said.message, before) {
                return answered;
            }
        }
        Self::of(&said.message, said.earlier.as_deref())
    }

    fn of(message: &str, earlier: Option<&str>) -> Self {
        if let Some(text) = entry::read(message) {
            let texts = match text {
                Some(text) if points_back(&text) => earlier.map(whole).unwrap_or_default(),
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
        match fact::read(sentence) {
            Some(Told::Forget(text)) => add(&mut self.forget, text.into_iter().collect(), true),
            Some(Told::Keep(Some(text))) if points_back(&text) => {
                add(&mut self.keep, earlier.map(whole).unwrap_or_default(), true);
            }
            Some(Told::Keep(text)) => add(&mut self.keep, text.into_iter().collect(), true),
            Some(Told::State(text)) => add(&mut self.keep, vec![text], false),
            None => match question::read(sentence) {
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

    /// Returns what this message is together with the answer to a question about it. `None`: it is
    /// as if nothing had been asked.
    fn answered(self, answer: &str, question: &str) -> Option<Self> {
        let words = sentence::words(answer);
        let is_all =
            |table: &str| !words.is_empty() && words.iter().all(|word| word.is_one_of(table));
        if is_all(LEAVES_IT) {
            return Some(Self::default());
        }
        let asked_for = |quoted: &Option<Quoted>| {
            quoted
                .as_ref()
                .is_some_and(|quoted| quoted.texts.is_empty())
        };
        let given = || {
            Some(Quoted {
                texts: vec![answer.trim().to_owned()],
                certain: true,
            })
        };
        if asked_for(&self.keep) {
            return Some(Self {
                keep: given(),
                ..Self::default()
            });
        }
        if asked_for(&self.entry) {
            return Some(Self {
                entry: given(),
                ..Self::default()
            });
        }
        if asked_for(&self.forget) {
            return Some(Self {
                forget: given(),
                ..Self::default()
            });
        }
        let keep = self
            .keep
            .filter(|keep| keep.texts.iter().any(|text| question.contains(text)))?;
        is_all(AGREES).then(|| Self {
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

/// "Create a new note", "rename my file".
fn orders_of_files(sentence: &Sentence<'_>) -> bool {
    let order = sentence.order();
    let Some(verb) = sentence.words.get(order) else {
        return false;
    };
    let near = sentence.words.iter().skip(order + 1).take(NEAR);
    let orders =
        verb.is_one_of(FILE_VERBS) || verb.is("make") && near.clone().any(|word| word.is("new"));
    orders
        && near.clone().any(|word| word.is_one_of(FILES))
        && !sentence.has("list task tasks todo todos")
}

fn points_back(text: &str) -> bool {
    let words = sentence::words(text);
    words.len() == 1 && words.iter().all(|word| word.is_one_of(POINTS_BACK))
}

/// The statements of a message, as they are.
fn whole(message: &str) -> Vec<String> {
    let stated = sentences(message)
        .into_iter()
        .filter(|sentence| !sentence.is_question && sentence.says_something());
    stated
        .map(|sentence| sentence::tidy(sentence.text))
        .collect()
}

#[cfg(test)]
mod tests;
