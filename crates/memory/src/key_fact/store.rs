//! The operations on facts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use adjutant_core::{FactLine, MemoryEffect, MemorySource, MemoryState, Message};
use jiff::Timestamp;
use jiff::civil::Date;
use serde::Serialize;

use super::correction::{Relation, is_named, relation};
use super::document::{FactsFile, Line, Section, new_file, touch, verify};
use super::fact::{FactId, KeyFact, line_of};
use super::kept::{Facts, Mark};
use super::keywords::{Overlap, Words, found_in};
use super::prompt::{self, ImportantFacts};
use crate::MemoryError;
use crate::memory::{Cause, Planned, Shared, blocking};
use crate::vault::Stored;

/// How many changes are looked through for the dates and sources of a list.
const CHANGES_READ: usize = 1_000;

/// The facts about the vault's owner. Read fresh at every operation; what the owner changes by
/// hand counts at once.
#[derive(Clone)]
pub struct KeyFactStore(pub(crate) Arc<Shared>);

/// A fact to remember.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NewFact<'a> {
    /// Its words.
    pub words: &'a str,
    /// Whether it is always told.
    pub important: bool,
    /// The known fact that it corrects: its id, or its words. `None`: as the words say.
    pub corrects: Option<&'a str>,
    /// The person's words that it is made of, which may announce a correction. Empty: its own words.
    pub said: &'a str,
}

/// What became of a fact.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum FactChange {
    /// It is new.
    Added {
        /// The fact.
        fact: KeyFact,
    },
    /// It corrected or replaced a known one, which keeps its creation date.
    Updated {
        /// The fact.
        fact: KeyFact,
        /// The words it replaced.
        before: String,
    },
    /// It was known; nothing was changed.
    Known {
        /// The fact.
        fact: KeyFact,
    },
    /// It is gone.
    Forgotten {
        /// The fact as it was.
        fact: KeyFact,
    },
}

impl FactChange {
    /// What was done, in words for the person, with the way back.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Added { fact } => format!("✎ remembered: {}  (undo: /undo)", fact.content),
            Self::Updated { fact, before } if *before == fact.content => {
                format!(
                    "✎ remembered: {}{}  (undo: /undo)",
                    fact.content,
                    if fact.is_important() { ", as important" } else { "" }
                )
            }
            Self::Updated { fact, before } => {
                format!("✎ remembered: {}  (was: {before}; undo: /undo)", fact.content)
            }
            Self::Known { fact } => format!("Already known: {}", fact.content),
            Self::Forgotten { fact } => format!("✎ forgotten: {}  (undo: /undo)", fact.content),
        }
    }

    /// The fact.
    #[must_use]
    pub fn fact(&self) -> &KeyFact {
        match self {
            Self::Added { fact }
            | Self::Updated { fact, .. }
            | Self::Known { fact }
            | Self::Forgotten { fact } => fact,
        }
    }
}

impl KeyFactStore {
    /// All facts in the order of the file, with what the history knows of them.
    ///
    /// # Errors
    /// [`MemoryError::Vault`] if the file cannot be read; a missing file is an empty list. A history that does not answer
    /// only leaves times and sources out.
    pub async fn list(&self) -> Result<Vec<KeyFact>, MemoryError> {
        let file = self.read().await?;
        let known = self.known().await;
        let mut facts = facts_of(&file);
        for fact in &mut facts {
            if let Some((created, source)) = known.get(&fact.content) {
                fact.created_at = *created;
                fact.source.clone_from(source);
                let zone = (self.0.clock)().time_zone().clone();
                fact.created = fact.created.or_else(|| created.map(|at| at.to_zoned(zone).date()));
            }
        }
        Ok(facts)
    }

    /// The facts tagged `#important` or standing under that heading, in the order of the file.
    ///
    /// # Errors
    /// As [`KeyFactStore::list`].
    pub async fn important(&self) -> Result<Vec<KeyFact>, MemoryError> {
        let file = self.read().await?;
        Ok(facts_of(&file).into_iter().filter(KeyFact::is_important).collect())
    }

    /// The `n` most recent facts that are not important, newest first: by date, then by place. A line without date counts
    /// as written on the date above it.
    ///
    /// # Errors
    /// As [`KeyFactStore::list`].
    pub async fn recent(&self, n: usize) -> Result<Vec<KeyFact>, MemoryError> {
        let file = self.read().await?;
        Ok(recent_of(&file, n))
    }

    /// Returns the important facts as a model's instruction has them, marked as possibly stale and as data: the newest first, 250
    /// tokens at most, counted by `count`.
    ///
    /// # Errors
    /// As [`KeyFactStore::list`].
    pub async fn instruction(
        &self,
        count: &(dyn Fn(&str) -> u32 + Sync),
    ) -> Result<ImportantFacts, MemoryError> {
        let file = self.read().await?;
        Ok(self.instruction_of(&file, count))
    }

    pub(super) fn instruction_of(
        &self,
        file: &FactsFile,
        count: &(dyn Fn(&str) -> u32 + Sync),
    ) -> ImportantFacts {
        let newest: Vec<KeyFact> =
            by_age(file).into_iter().rev().filter(|line| line.important).map(fact_of).collect();
        prompt::important(&newest, count)
    }

    /// Returns what a model is told of facts whose words still stand in these messages and that were corrected or forgotten since.
    ///
    /// # Errors
    /// As [`KeyFactStore::list`].
    pub(crate) async fn withdrawn(&self, said: &[Message]) -> Result<Vec<String>, MemoryError> {
        if said.is_empty() {
            return Ok(Vec::new());
        }
        let said: Vec<String> = said.iter().map(Message::text).collect();
        let words = self.all_withdrawn().await?;
        let stands = words.iter().filter(|words| said.iter().any(|text| text.contains(words.as_str())));
        Ok(stands.map(|words| prompt::withdrawn(words)).collect())
    }

    /// Returns the words of facts that were corrected or forgotten, each once, the last first.
    async fn all_withdrawn(&self) -> Result<Arc<[String]>, MemoryError> {
        let shared = &self.0;
        let file = self.read().await?;
        let newest = shared.ledger.newest(&shared.scope, 1).await.unwrap_or_default();
        let Some(newest) = newest.first().map(|change| (change.id, change.state)) else {
            return Ok(Arc::default());
        };
        if let Some(known) = file.withdrawn_up_to(newest) {
            return Ok(known);
        }
        let changes = shared.ledger.newest(&shared.scope, CHANGES_READ).await.unwrap_or_default();
        let holds: HashSet<&str> = file.lines().iter().map(|line| line.content.as_str()).collect();
        let mut words: Vec<String> = Vec::new();
        for change in changes.iter().filter(|change| change.state == MemoryState::Done) {
            let MemoryEffect::Fact { before: Some(before), .. } = &change.effect else { continue };
            if !holds.contains(before.text.as_str()) && !words.contains(&before.text) {
                words.push(before.text.clone());
            }
        }
        let words: Arc<[String]> = words.into();
        file.keep_withdrawn(newest, &words);
        Ok(words)
    }

    /// The facts that hold a keyword of the query, or the query itself, best first.
    ///
    /// # Errors
    /// As [`KeyFactStore::list`].
    pub async fn search(&self, query: &str) -> Result<Vec<KeyFact>, MemoryError> {
        let words = Words::of(query);
        let needle = query.trim().to_lowercase();
        let mut found: Vec<(usize, KeyFact)> = self
            .list()
            .await?
            .into_iter()
            .filter_map(|fact| {
                let whole = !needle.is_empty()
                    && (fact.content.to_lowercase().contains(&needle) || fact.tags.contains(&needle));
                let some = found_in(&words, &Words::of(&fact.content));
                (whole || some.is_some()).then_some((some.unwrap_or(0) + if whole { 1_000 } else { 0 }, fact))
            })
            .collect();
        found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        Ok(found.into_iter().map(|(_, fact)| fact).collect())
    }

    /// The one fact that is meant: by its id, its words, a part of its words, or its keywords.
    ///
    /// # Errors
    /// [`MemoryError::NoSuchFact`], [`MemoryError::Ambiguous`], and as [`KeyFactStore::list`].
    pub async fn find(&self, which: &str) -> Result<KeyFact, MemoryError> {
        let facts = self.list().await?;
        let contents: Vec<&str> = facts.iter().map(|fact| fact.content.as_str()).collect();
        let at = choose(&contents, which)?;
        facts.get(at).cloned().ok_or_else(|| MemoryError::NoSuchFact { which: which.to_owned() })
    }

    /// Remembers a fact. A known one is corrected if the words announce a correction ("no", "actually", "moved", "not Monday
    /// but Tuesday", in five languages) and are about the same; else both are kept. `important` makes it always told; it never takes
    /// importance away.
    ///
    /// # Errors
    /// [`MemoryError::Fact`] for no or too many words; [`MemoryError::Limit`] if it is new and there are as many as may be.
    pub async fn add(&self, words: &str, important: bool, cause: &Cause) -> Result<FactChange, MemoryError> {
        self.remember(&NewFact { words, important, ..NewFact::default() }, cause).await
    }

    /// Remembers a fact: see [`NewFact`]. One that corrects a known fact takes its place, and has its date if more than 70 % of the
    /// keywords are the same.
    ///
    /// # Errors
    /// As [`KeyFactStore::add`]; as [`KeyFactStore::find`] for what it corrects.
    pub async fn remember(&self, new: &NewFact<'_>, cause: &Cause) -> Result<FactChange, MemoryError> {
        let (content, tagged) = line_of(new.words)?;
        let important = new.important || tagged;
        self.apply(cause, |file, today| {
            if let Some(line) = file.lines().iter().find(|line| line.content == content) {
                return Ok(if important && !line.important {
                    Plan::Reword { line: line.clone(), content: content.clone(), important, date: None }
                } else {
                    Plan::Nothing(line.clone())
                });
            }
            let corrected = match new.corrects {
                Some(which) => Some(pick(file, which)?),
                None => best_match(file, &content, new.said, Relation::Corrects),
            };
            if let Some(line) = corrected {
                let is_nearly = Overlap::between(&Words::of(&line.content), &Words::of(&content)).is_match();
                return Ok(Plan::Reword {
                    line: line.clone(),
                    content: content.clone(),
                    important: important || line.important,
                    date: (!is_nearly).then_some(today),
                });
            }
            let (count, max) = (file.lines().len(), self.0.options.max_facts);
            if count >= max {
                return Err(MemoryError::Limit { count, max });
            }
            Ok(Plan::Add { content: content.clone(), important, date: today })
        })
        .await
    }

    /// Returns the known fact that cannot be true beside new words, as far as can be seen, and that they do not say to correct: whoever
    /// said them can be asked.
    ///
    /// # Errors
    /// As [`KeyFactStore::list`].
    pub async fn contradicted_by(&self, words: &str, said: &str) -> Result<Option<KeyFact>, MemoryError> {
        let file = self.read().await?;
        let is_known = file.lines().iter().any(|line| line.content == words);
        let corrects = best_match(&file, words, said, Relation::Corrects).is_some();
        let found = best_match(&file, words, said, Relation::Contradicts).filter(|_| !is_known && !corrects);
        Ok(found.map(fact_of))
    }

    /// Gives a fact other words, or importance, or takes it away; `None` leaves that as it is.
    ///
    /// # Errors
    /// As [`KeyFactStore::find`]; [`MemoryError::Fact`] if another fact reads the same.
    pub async fn edit(
        &self,
        which: &str,
        words: Option<&str>,
        important: Option<bool>,
        cause: &Cause,
    ) -> Result<FactChange, MemoryError> {
        let words = words.map(line_of).transpose()?;
        self.apply(cause, |file, _| {
            let line = pick(file, which)?;
            let (content, tagged) = words.clone().unwrap_or((line.content.clone(), false));
            let important = important.unwrap_or(line.important || tagged);
            if content == line.content && important == line.important {
                return Ok(Plan::Nothing(line.clone()));
            }
            if content != line.content && file.lines().iter().any(|other| other.content == content) {
                return Err(MemoryError::Fact {
                    reason: format!("another fact already reads “{content}”")
                });
            }
            Ok(Plan::Reword { line: line.clone(), content, important, date: None })
        })
        .await
    }

    /// Forgets a fact, and whatever hangs below its line.
    ///
    /// # Errors
    /// As [`KeyFactStore::find`].
    pub async fn forget(&self, which: &str, cause: &Cause) -> Result<FactChange, MemoryError> {
        self.apply(cause, |file, _| Ok(Plan::Remove { line: pick(file, which)?.clone() })).await
    }

    /// Reads the file, unless it is the one that was read last.
    pub(super) async fn read(&self) -> Result<Arc<Facts>, MemoryError> {
        let shared = self.0.clone();
        let now = (shared.clock)().timestamp();
        blocking(move || {
            let located = shared.vault.locate(&shared.facts)?;
            let before = Mark::of(&located.real);
            if let Some(facts) = before.as_ref().and_then(|mark| shared.kept.get(mark)) {
                return Ok(facts);
            }
            let stored = shared.vault.read_stored(&shared.facts)?;
            let facts = Arc::new(Facts::of(stored.as_ref().map(Stored::text).unwrap_or_default()));
            if let Some(before) = before {
                shared.kept.put(before, Mark::of(&located.real).as_ref(), now, &facts);
            }
            Ok(facts)
        })
        .await
    }

    /// When each text was first written down and where it was learned, as far as the history knows.
    async fn known(&self) -> HashMap<String, (Option<Timestamp>, Option<MemorySource>)> {
        let changes = self.0.ledger.newest(&self.0.scope, CHANGES_READ).await.unwrap_or_default();
        let mut known = HashMap::new();
        for change in changes {
            if matches!(change.state, MemoryState::Undone | MemoryState::Void) {
                continue;
            }
            if let MemoryEffect::Fact { after: Some(after), .. } = change.effect {
                known.entry(after.text).or_insert((after.created, change.source));
            }
        }
        known
    }

    async fn apply(
        &self,
        cause: &Cause,
        plan: impl Fn(&FactsFile, Date) -> Result<Plan, MemoryError>,
    ) -> Result<FactChange, MemoryError> {
        let shared = &self.0;
        let earlier = match &cause.key {
            Some(key) => shared.ledger.by_key(&shared.scope, key).await?,
            None => None,
        };
        // A repeat of a call that was carried out has no second effect, whatever was done to the fact since.
        if let Some(change) = &earlier
            && matches!(change.state, MemoryState::Done | MemoryState::Undone)
            && let MemoryEffect::Fact { before, after } = &change.effect
            && let Some(change) = replayed(before.as_ref(), after.as_ref())
        {
            return Ok(change);
        }
        let begun = earlier.filter(|change| change.state == MemoryState::Begun);
        // The plan of a call that was begun may find its own work: then the answer is the one it would have given.
        let repeated = begun.as_ref().and_then(|change| match &change.effect {
            MemoryEffect::Fact { before, after } => Some((before.clone(), after.clone())),
            MemoryEffect::Note { .. } | MemoryEffect::Task { .. } => None,
        });
        let known = self.known().await;
        let now = (shared.clock)();
        let created_of = |line: &Line| {
            known.get(&line.content).and_then(|(created, _)| *created).or_else(|| {
                let midnight = line.date?.to_zoned(now.time_zone().clone()).ok()?;
                Some(midnight.timestamp())
            })
        };
        shared
            .change(&shared.facts, cause, begun.as_ref(), |text| {
                let fresh = new_file(&now);
                let text = text.unwrap_or(&fresh);
                let file = FactsFile::parse(text);
                if let Some((before, after)) = &repeated
                    && is_done(&file, before.as_ref(), after.as_ref())
                    && let Some(change) = replayed(before.as_ref(), after.as_ref())
                {
                    return Ok(Planned::Nothing(change));
                }
                let mut is_of_today = false;
                let (new, mut expected, old, content) = match plan(&file, now.date())? {
                    Plan::Nothing(line) => {
                        return Ok(Planned::Nothing(FactChange::Known { fact: fact_of(&line) }));
                    }
                    Plan::Add { content, important, date } => {
                        let mut expected = expected_of(&file, None);
                        expected.push((important, content.clone()));
                        (file.add(&content, important, date), expected, None, Some(content))
                    }
                    Plan::Reword { line, content, important, date } => {
                        is_of_today = date.is_some();
                        let mut expected = expected_of(&file, Some(&line));
                        expected.push((important, content.clone()));
                        let zone = now.time_zone().clone();
                        let created = date
                            .or(line.date)
                            .or(created_of(&line).map(|at| at.to_zoned(zone).date()))
                            .unwrap_or(now.date());
                        (
                            file.reword(&line, &content, important, created),
                            expected,
                            Some(line),
                            Some(content),
                        )
                    }
                    Plan::Remove { line } => {
                        (file.remove(&line), expected_of(&file, Some(&line)), Some(line), None)
                    }
                };
                verify(shared.facts.as_str(), &new, &mut expected)?;
                let text = touch(&new, &now);
                let written = FactsFile::parse(&text);
                let line = content
                    .and_then(|content| written.lines().iter().find(|line| line.content == content).cloned());
                let before = old.as_ref().map(|line| fact_line(line, created_of(line)));
                let created = match &before {
                    Some(before) if !is_of_today => before.created,
                    Some(_) | None => Some(now.timestamp()),
                };
                let after = line.as_ref().map(|line| fact_line(line, created));
                let full = |line: &Line| KeyFact {
                    created: line
                        .date
                        .or_else(|| created.map(|at| at.to_zoned(now.time_zone().clone()).date())),
                    created_at: created,
                    source: cause.source.clone(),
                    ..fact_of(line)
                };
                let answer = match (&old, &line) {
                    (None, Some(line)) => FactChange::Added { fact: full(line) },
                    (Some(old), Some(line)) => {
                        FactChange::Updated { fact: full(line), before: old.content.clone() }
                    }
                    (Some(old), None) => FactChange::Forgotten { fact: fact_of(old) },
                    (None, None) => return Err(MemoryError::BrokeOff),
                };
                let effect = Box::new(MemoryEffect::Fact { before, after });
                Ok(Planned::Write { text, effect, answer })
            })
            .await
    }
}

/// What is to become of the file.
enum Plan {
    Nothing(Line),
    Add {
        content: String,
        important: bool,
        date: Date,
    },
    /// `date`: the day of its new words, if it has not that of the old.
    Reword {
        line: Line,
        content: String,
        important: bool,
        date: Option<Date>,
    },
    Remove {
        line: Line,
    },
}

/// What a call answered, as its change in the history says.
fn replayed(before: Option<&FactLine>, after: Option<&FactLine>) -> Option<FactChange> {
    let fact = |line: &FactLine| {
        let mut tags = super::fact::tags_of(&line.text);
        if line.important || line.line.split_whitespace().any(|word| word == super::fact::IMPORTANT) {
            tags.insert(0, super::fact::IMPORTANT.to_owned());
        }
        KeyFact {
            id: FactId::of(&line.text),
            content: line.text.clone(),
            tags,
            created: None,
            created_at: line.created,
            source: None,
        }
    };
    Some(match (before, after) {
        (None, Some(after)) => FactChange::Added { fact: fact(after) },
        (Some(before), Some(after)) => FactChange::Updated { fact: fact(after), before: before.text.clone() },
        (Some(before), None) => FactChange::Forgotten { fact: fact(before) },
        (None, None) => return None,
    })
}

/// Whether the file reads as the change would have left it.
fn is_done(file: &FactsFile, before: Option<&FactLine>, after: Option<&FactLine>) -> bool {
    let stands = |line: &FactLine| file.lines().iter().any(|known| known.bytes == line.line);
    after.is_none_or(stands) && before.is_none_or(|before| !stands(before))
}

/// Whether each fact is important, and its words: what must be in the file after a change.
pub(crate) fn expected_of(file: &FactsFile, but: Option<&Line>) -> Vec<(bool, String)> {
    file.lines()
        .iter()
        .filter(|line| Some(*line) != but)
        .map(|line| (line.important, line.content.clone()))
        .collect()
}

pub(crate) fn facts_of(file: &FactsFile) -> Vec<KeyFact> {
    file.lines().iter().map(fact_of).collect()
}

pub(super) fn fact_of(line: &Line) -> KeyFact {
    KeyFact {
        id: FactId::of(&line.content),
        content: line.content.clone(),
        tags: line.tags.clone(),
        created: line.date,
        created_at: None,
        source: None,
    }
}

fn fact_line(line: &Line, created: Option<Timestamp>) -> FactLine {
    FactLine {
        text: line.content.clone(),
        line: line.bytes.clone(),
        important: line.section == Section::Important,
        place: line.place,
        created,
    }
}

/// The lines from oldest to newest.
fn by_age(file: &FactsFile) -> Vec<&Line> {
    let mut above: Option<Date> = None;
    let mut lines: Vec<(Option<Date>, usize, &Line)> = file
        .lines()
        .iter()
        .enumerate()
        .map(|(place, line)| {
            above = line.date.or(above);
            (above, place, line)
        })
        .collect();
    lines.sort_by_key(|(date, place, _)| (*date, *place));
    lines.into_iter().map(|(_, _, line)| line).collect()
}

fn recent_of(file: &FactsFile, n: usize) -> Vec<KeyFact> {
    by_age(file).into_iter().rev().filter(|line| !line.important).take(n).map(fact_of).collect()
}

/// Returns the known fact that stands to the words in such a way: of several the one that the person's words name, else the one that shares
/// most keywords with the new ones, the newest of equals.
fn best_match<'a>(file: &'a FactsFile, content: &str, said: &str, wanted: Relation) -> Option<&'a Line> {
    let new = Words::of(content);
    let mut best: Option<(bool, Overlap, &Line)> = None;
    for line in by_age(file) {
        if relation(&line.content, content, said) != wanted {
            continue;
        }
        let overlap = Overlap::between(&new, &Words::of(&line.content));
        let is_named = is_named(&line.content, content, said);
        let is_better = |(was_named, most, _): (bool, Overlap, &Line)| {
            if was_named == is_named { !most.exceeds(overlap) } else { is_named }
        };
        if best.is_none_or(is_better) {
            best = Some((is_named, overlap, line));
        }
    }
    best.map(|(_, _, line)| line)
}

fn pick<'a>(file: &'a FactsFile, which: &str) -> Result<&'a Line, MemoryError> {
    let contents: Vec<&str> = file.lines().iter().map(|line| line.content.as_str()).collect();
    let at = choose(&contents, which)?;
    file.lines().get(at).ok_or_else(|| MemoryError::NoSuchFact { which: which.to_owned() })
}

/// Which of the facts is meant.
fn choose(contents: &[&str], which: &str) -> Result<usize, MemoryError> {
    let which = which.trim();
    let nothing = || MemoryError::NoSuchFact { which: which.to_owned() };
    if which.is_empty() {
        return Err(nothing());
    }
    let lower = which.to_lowercase();
    let words = Words::of(which);
    let tests: [&dyn Fn(&str) -> bool; 5] = [
        &|content| content == which,
        &|content| FactId::of(content).as_str() == lower,
        &|content| content.to_lowercase() == lower,
        &|content| content.to_lowercase().contains(&lower),
        &|content| Overlap::between(&words, &Words::of(content)).is_match(),
    ];
    for test in tests {
        let found: Vec<usize> =
            contents.iter().enumerate().filter(|(_, content)| test(content)).map(|(at, _)| at).collect();
        match found.as_slice() {
            [] => {}
            [one] => return Ok(*one),
            // Two lines of the same words: either will do.
            [first, rest @ ..] if rest.iter().all(|at| contents.get(*at) == contents.get(*first)) => {
                return Ok(*first);
            }
            many => {
                let candidates = many
                    .iter()
                    .take(5)
                    .filter_map(|at| contents.get(*at))
                    .map(|content| (*content).to_owned())
                    .collect();
                return Err(MemoryError::Ambiguous { which: which.to_owned(), candidates });
            }
        }
    }
    Err(nothing())
}
