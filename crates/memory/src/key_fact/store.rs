//! The operations on facts.

use std::sync::Arc;

use super::change::FactChange;
use super::correction::Relation;
use super::fact::{KeyFact, line_of};
use super::kept::Facts;
use super::keywords::{Overlap, Words, found_in};
use super::known::{Known, best_match, choose, pick};
use super::plan::Plan;
use super::prompt::{self, ImportantFacts, KeptIn};
use super::snapshot::Snapshot;
use crate::MemoryError;
use crate::memory::{Cause, Place};

/// The facts about the owner of a memory, by the same rules in a vault and in a database. Read
/// fresh at every operation; what the owner of a vault changes by hand counts at once.
#[derive(Clone)]
pub struct KeyFactStore(pub(crate) Place);

/// A fact to remember.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NewFact<'a> {
    /// Its words.
    pub words: &'a str,
    /// True if it is always told.
    pub important: bool,
    /// The known fact that it corrects: its id, or its words. `None`: as the words say.
    pub corrects: Option<&'a str>,
    /// The person's words that it is made of, which may announce a correction. Empty: its own
    /// words.
    pub said: &'a str,
}

impl KeyFactStore {
    /// All facts in the order of the file, with what the history knows of them; those of a database
    /// oldest first.
    ///
    /// # Errors
    /// [`MemoryError::Vault`] if the file cannot be read; a missing file is an empty list. A
    /// history that does not answer only leaves times and sources out. [`MemoryError::Store`] if
    /// the database does not answer.
    pub async fn list(&self) -> Result<Vec<KeyFact>, MemoryError> {
        let mut facts = facts_of(&self.read().await?);
        if let Place::Vault(shared) = &self.0 {
            let known = shared.known().await;
            let zone = (shared.common.clock)().time_zone().clone();
            for fact in &mut facts {
                if let Some((created, source)) = known.get(&fact.content) {
                    fact.created_at = *created;
                    fact.source.clone_from(source);
                    let date = || created.map(|at| at.to_zoned(zone.clone()).date());
                    fact.created = fact.created.or_else(date);
                }
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
        Ok(facts_of(&file)
            .into_iter()
            .filter(KeyFact::is_important)
            .collect())
    }

    /// The `n` most recent facts that are not important, newest first: by date, then by place. A
    /// line without date counts as written on the date above it.
    ///
    /// # Errors
    /// As [`KeyFactStore::list`].
    pub async fn recent(&self, n: usize) -> Result<Vec<KeyFact>, MemoryError> {
        let facts = self.read().await?;
        Ok(newest(&facts, |fact| !fact.important)
            .take(n)
            .map(Known::fact)
            .collect())
    }

    /// Returns the important facts as a model's instruction has them, marked as possibly stale and
    /// as data: the newest first, 250 tokens at most, counted by `count`.
    ///
    /// # Errors
    /// As [`KeyFactStore::list`].
    pub async fn instruction(
        &self,
        count: &(dyn Fn(&str) -> u32 + Sync),
    ) -> Result<ImportantFacts, MemoryError> {
        let facts = self.read().await?;
        Ok(self.important_of(&facts, count))
    }

    pub(crate) fn important_of(
        &self,
        facts: &Facts,
        count: &(dyn Fn(&str) -> u32 + Sync),
    ) -> ImportantFacts {
        let newest = newest(facts, |fact| fact.important);
        let kept = match &self.0 {
            Place::Vault(_) => KeptIn::File,
            Place::Database(_) => KeptIn::Database,
        };
        prompt::important(newest, kept, count)
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
                    && (fact.content.to_lowercase().contains(&needle)
                        || fact.tags.contains(&needle));
                let some = found_in(&words, &Words::of(&fact.content));
                (whole || some.is_some())
                    .then_some((some.unwrap_or(0) + if whole { 1_000 } else { 0 }, fact))
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
        facts
            .get(at)
            .cloned()
            .ok_or_else(|| MemoryError::NoSuchFact {
                which: which.to_owned(),
            })
    }

    /// Remembers a fact. A known one is corrected if the words announce a correction ("no",
    /// "actually", "moved", "not Monday but Tuesday", in five languages) and are about the same;
    /// else both are kept. `important` makes it always told; it never takes importance away.
    ///
    /// # Errors
    /// [`MemoryError::Fact`] for no or too many words; [`MemoryError::Limit`] if it is new and
    /// there are as many as may be.
    pub async fn add(
        &self,
        words: &str,
        important: bool,
        cause: &Cause,
    ) -> Result<FactChange, MemoryError> {
        self.remember(
            &NewFact {
                words,
                important,
                ..NewFact::default()
            },
            cause,
        )
        .await
    }

    /// Remembers a fact: see [`NewFact`]. One that corrects a known fact takes its place, and has
    /// its date if more than 70 % of the keywords are the same.
    ///
    /// # Errors
    /// As [`KeyFactStore::add`]; as [`KeyFactStore::find`] for what it corrects.
    pub async fn remember(
        &self,
        new: &NewFact<'_>,
        cause: &Cause,
    ) -> Result<FactChange, MemoryError> {
        let (content, tagged) = line_of(new.words)?;
        let important = new.important || tagged;
        let max = self.0.common().max_facts;
        self.apply(cause, |facts| {
            if let Some(at) = facts.iter().position(|fact| fact.content == content) {
                let was_important = facts.get(at).is_some_and(|fact| fact.important);
                return Ok(if important && !was_important {
                    Plan::Reword {
                        at,
                        content: content.clone(),
                        important,
                        is_of_today: false,
                    }
                } else {
                    Plan::Nothing { at }
                });
            }
            let corrected = match new.corrects {
                Some(which) => Some(pick(facts, which)?.0),
                None => best_match(facts, &content, new.said, Relation::Corrects),
            };
            if let Some((at, known)) = corrected.and_then(|at| Some((at, facts.get(at)?))) {
                let is_nearly =
                    Overlap::between(&Words::of(&known.content), &Words::of(&content)).is_match();
                return Ok(Plan::Reword {
                    at,
                    content: content.clone(),
                    important: important || known.important,
                    is_of_today: !is_nearly,
                });
            }
            let count = facts.len();
            if count >= max {
                return Err(MemoryError::Limit { count, max });
            }
            Ok(Plan::Add {
                content: content.clone(),
                important,
            })
        })
        .await
    }

    /// Returns the known fact that cannot be true beside new words, as far as can be seen, and that
    /// they do not say to correct: whoever said them can be asked.
    ///
    /// # Errors
    /// As [`KeyFactStore::list`].
    pub async fn contradicted_by(
        &self,
        words: &str,
        said: &str,
    ) -> Result<Option<KeyFact>, MemoryError> {
        let facts = self.read().await?;
        let is_known = facts.iter().any(|fact| fact.content == words);
        let corrects = best_match(&facts, words, said, Relation::Corrects).is_some();
        let found = best_match(&facts, words, said, Relation::Contradicts)
            .filter(|_| !is_known && !corrects);
        Ok(found.and_then(|at| facts.get(at)).map(Known::fact))
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
        self.apply(cause, |facts| {
            let (at, known) = pick(facts, which)?;
            let (content, tagged) = words.clone().unwrap_or((known.content.clone(), false));
            let important = important.unwrap_or(known.important || tagged);
            if content == known.content && important == known.important {
                return Ok(Plan::Nothing { at });
            }
            if content != known.content && facts.iter().any(|other| other.content == content) {
                return Err(MemoryError::Fact {
                    reason: format!("another fact already reads “{content}”"),
                });
            }
            Ok(Plan::Reword {
                at,
                content,
                important,
                is_of_today: false,
            })
        })
        .await
    }

    /// Forgets a fact, and in a file whatever hangs below its line.
    ///
    /// # Errors
    /// As [`KeyFactStore::find`].
    pub async fn forget(&self, which: &str, cause: &Cause) -> Result<FactChange, MemoryError> {
        self.apply(cause, |facts| {
            Ok(Plan::Remove {
                at: pick(facts, which)?.0,
            })
        })
        .await
    }

    pub(super) async fn read(&self) -> Result<Arc<Facts>, MemoryError> {
        match &self.0 {
            Place::Vault(shared) => shared.facts().await,
            Place::Database(database) => Ok(database.snapshot().await?.facts),
        }
    }

    /// Reads the facts, and those that were withdrawn if they are wanted: in a database by one
    /// statement.
    pub(crate) async fn snapshot(&self, with_withdrawn: bool) -> Result<Snapshot, MemoryError> {
        match &self.0 {
            Place::Vault(shared) => {
                let facts = shared.facts().await?;
                let withdrawn = if with_withdrawn {
                    shared.withdrawn(&facts).await
                } else {
                    Arc::default()
                };
                Ok(Snapshot { facts, withdrawn })
            }
            Place::Database(database) => database.snapshot().await,
        }
    }

    async fn apply(
        &self,
        cause: &Cause,
        plan: impl Fn(&[Known]) -> Result<Plan, MemoryError>,
    ) -> Result<FactChange, MemoryError> {
        match &self.0 {
            Place::Vault(shared) => shared.apply(cause, plan).await,
            Place::Database(database) => database.apply(cause, plan).await,
        }
    }
}

/// Returns facts, the newest first.
fn newest(facts: &Facts, is_meant: impl Fn(&Known) -> bool) -> impl Iterator<Item = &Known> {
    facts
        .newest_first()
        .map(|(_, fact)| fact)
        .filter(move |fact| is_meant(fact))
}

fn facts_of(facts: &[Known]) -> Vec<KeyFact> {
    facts.iter().map(Known::fact).collect()
}
