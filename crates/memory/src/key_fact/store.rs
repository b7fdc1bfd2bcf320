//! The operations on facts, by the same rules in both backends.

use std::cmp::Reverse;
use std::sync::Arc;

use super::change::FactChange;
use super::corpus::FactCorpus;
use super::correction::Relation;
use super::cue::without_opening;
use super::fact::{KeyFact, parse_fact};
use super::keywords::{FactTokens, Overlap, shared_keywords};
use super::known_facts::KnownFacts;
use super::lookup::{best_match, find_fact};
use super::planned_change::PlannedChange;
use super::prompt::{self, ImportantFacts, Storage};
use super::record::FactRecord;
use super::snapshot::Snapshot;
use crate::MemoryError;
use crate::backend::Backend;
use crate::context::Cause;

/// Added to the score of a fact that holds a whole query, so that it comes before all that hold
/// only keywords of it.
const WHOLE_QUERY_SCORE: usize = 1_000;

/// The facts about the owner of a memory, by the same rules in a vault and in a database. Read
/// again at every operation, so that an edit of the file by hand counts at once. Returned by
/// [`Memory::facts`](crate::Memory::facts).
///
/// # Examples
///
/// ```
/// # use std::sync::Arc;
/// # use adjutant_core::UserId;
/// use adjutant_memory::{Cause, FactChange};
/// # use adjutant_memory::{InMemoryLedger, Memory, MemoryOptions, Vault};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let (vault, options) = (Vault::open(folder.path())?, MemoryOptions::default());
/// # let (ledger, clock) = (Arc::new(InMemoryLedger::new()), Arc::new(jiff::Zoned::now));
/// # let memory = Memory::new(vault, UserId::local(), options, ledger, clock)?;
/// let facts = memory.facts();
/// facts.add("Anna lives in Graz", false, &Cause::person()).await?;
/// // The text announces a change of the same topic, so it takes the place of the fact.
/// let change = facts.add("Anna now lives in Munich", false, &Cause::person()).await?;
/// assert!(matches!(change, FactChange::Updated { before, .. } if before == "Anna lives in Graz"));
/// assert_eq!(facts.list().await?.len(), 1);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct KeyFactStore(pub(crate) Backend);

/// A fact to remember, for [`KeyFactStore::remember`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NewFact<'a> {
    /// The text, one sentence that is clear by itself.
    pub words: &'a str,
    /// True if it belongs into every instruction of the model. `#important` in the text does the
    /// same.
    pub important: bool,
    /// The id or the text of the stored fact that it replaces. `None`: the text decides, if it
    /// announces a correction.
    pub corrects: Option<&'a str>,
    /// The user's message that it was made from, which may announce a correction too. Empty: there
    /// is none.
    pub said: &'a str,
}

impl KeyFactStore {
    /// Returns all facts in the order of the file, with their times and sources from the ledger;
    /// those of a database oldest first.
    ///
    /// # Errors
    /// [`MemoryError::Vault`] if the file cannot be read; a missing file is an empty list.
    /// [`MemoryError::Store`] if the database does not answer. A ledger that does not answer is no
    /// error: times and sources are left out then.
    pub async fn list(&self) -> Result<Vec<KeyFact>, MemoryError> {
        let facts = self.read().await?;
        Ok(self.dated(&facts).await)
    }

    /// Returns facts with what the ledger knows of them.
    async fn dated(&self, facts: &[FactRecord]) -> Vec<KeyFact> {
        let mut facts = to_facts(facts);
        if let Backend::Vault(memory) = &self.0 {
            // A line of the file has a day at most; the rest is in the ledger.
            let origins = memory.origins().await;
            let zone = (memory.context.clock)().time_zone().clone();
            for fact in &mut facts {
                if let Some((created, source)) = origins.get(&fact.content) {
                    fact.created_at = *created;
                    fact.source.clone_from(source);
                    let date = || created.map(|at| at.to_zoned(zone.clone()).date());
                    fact.created = fact.created.or_else(date);
                }
            }
        }
        facts
    }

    /// Returns the facts tagged `#important` or standing under that heading, in the order of the
    /// file.
    ///
    /// # Errors
    /// As [`KeyFactStore::list`].
    pub async fn important(&self) -> Result<Vec<KeyFact>, MemoryError> {
        let mut facts = to_facts(&self.read().await?);
        facts.retain(KeyFact::is_important);
        Ok(facts)
    }

    /// Returns the `n` most recent facts that are not important, newest first: by date, then by
    /// position. A line without date counts as written on the date above it.
    ///
    /// # Errors
    /// As [`KeyFactStore::list`].
    pub async fn recent(&self, n: usize) -> Result<Vec<KeyFact>, MemoryError> {
        let facts = self.read().await?;
        Ok(newest(&facts, |fact| !fact.important)
            .take(n)
            .map(FactRecord::to_fact)
            .collect())
    }

    /// Returns the important facts as a section of a model's instruction, marked as data that may
    /// be out of date: the newest first, at most
    /// [`IMPORTANT_TOKENS_MAX`](crate::IMPORTANT_TOKENS_MAX) tokens, counted by `count`.
    ///
    /// # Errors
    /// As [`KeyFactStore::list`].
    pub async fn instruction(
        &self,
        count: &(dyn Fn(&str) -> u32 + Sync),
    ) -> Result<ImportantFacts, MemoryError> {
        let facts = self.read().await?;
        Ok(self.important_in(&facts, count))
    }

    pub(crate) fn important_in(
        &self,
        facts: &FactCorpus,
        count: &(dyn Fn(&str) -> u32 + Sync),
    ) -> ImportantFacts {
        let storage = match &self.0 {
            Backend::Vault(_) => Storage::File,
            Backend::Database(_) => Storage::Database,
        };
        prompt::important(newest(facts, |fact| fact.important), storage, count)
    }

    /// Returns the facts that hold the query, or a keyword of it, best first.
    ///
    /// # Errors
    /// As [`KeyFactStore::list`].
    pub async fn search(&self, query: &str) -> Result<Vec<KeyFact>, MemoryError> {
        let tokens = FactTokens::new(query);
        let needle = query.trim().to_lowercase();
        let score = move |fact: KeyFact| {
            let holds_query = !needle.is_empty()
                && (fact.content.to_lowercase().contains(&needle) || fact.tags.contains(&needle));
            let shared = shared_keywords(&tokens, &FactTokens::new(&fact.content));
            let score = shared + if holds_query { WHOLE_QUERY_SCORE } else { 0 };
            (score > 0).then_some((score, fact))
        };
        let facts = self.list().await?;
        let find = move || {
            let mut found: Vec<(usize, KeyFact)> = facts.into_iter().filter_map(score).collect();
            found.sort_by_key(|(score, _)| Reverse(*score));
            found.into_iter().map(|(_, fact)| fact).collect()
        };
        self.0.compute(find).await
    }

    /// Returns the one fact that has this id, this text, this part of its text, or these keywords.
    ///
    /// # Errors
    /// [`MemoryError::NoSuchFact`], [`MemoryError::Ambiguous`], and as [`KeyFactStore::list`].
    pub async fn find(&self, which: &str) -> Result<KeyFact, MemoryError> {
        let which = which.to_owned();
        let found = self
            .search_one(move |facts| Ok(Some(find_fact(facts, &which)?.0)))
            .await?;
        let dated = self.dated(found.as_slice()).await.pop();
        dated.ok_or(MemoryError::BrokeOff(None))
    }

    /// Returns true if a fact has this id.
    ///
    /// # Errors
    /// As [`KeyFactStore::list`].
    pub async fn has_id(&self, id: &str) -> Result<bool, MemoryError> {
        let id = id.to_owned();
        let found = self
            .search_one(move |facts| Ok(facts.with_id(&id).first().copied()))
            .await?;
        Ok(found.is_some())
    }

    /// Remembers a text, without the words that only announce a correction. It replaces a stored fact
    /// if it corrects it in so many words ("no, …", "actually …", "not Monday but Tuesday"), or gives a
    /// property another value of which there is only one at a time ("my boss is Karen now"), in six
    /// languages; else both are kept. `important` adds importance and never takes it away.
    ///
    /// # Errors
    /// [`MemoryError::Fact`] for a text that is empty or too long; [`MemoryError::Limit`] if it is
    /// new and the number of facts is at its bound.
    pub async fn add(
        &self,
        words: &str,
        important: bool,
        cause: &Cause,
    ) -> Result<FactChange, MemoryError> {
        let new = NewFact {
            words,
            important,
            ..NewFact::default()
        };
        self.remember(&new, cause).await
    }

    /// Remembers a fact as [`add`](Self::add) does. One that replaces a stored fact takes its
    /// place, and keeps its date if more than 70 % of the keywords are the same.
    ///
    /// # Errors
    /// As [`KeyFactStore::add`], and as [`KeyFactStore::find`] for [`NewFact::corrects`].
    pub async fn remember(
        &self,
        new: &NewFact<'_>,
        cause: &Cause,
    ) -> Result<FactChange, MemoryError> {
        let (said_so, tagged) = parse_fact(new.words)?;
        // The words that announce a correction are about the conversation, not about the person.
        let content = without_opening(&said_so);
        let important = new.important || tagged;
        let max = self.0.context().max_facts;
        let corrects = new.corrects.map(str::to_owned);
        let said = new.said.to_owned();
        self.apply(cause, move |facts| {
            let reword = |at, important, renews_date| PlannedChange::Reword {
                at,
                content: content.clone(),
                important,
                renews_date,
            };
            let indexed = |at: usize| Some((at, facts.get(at)?));
            if let Some((at, known)) = facts.with_text(&content).and_then(indexed) {
                return Ok(match important && !known.important {
                    true => reword(at, important, false),
                    false => PlannedChange::Nothing { at },
                });
            }
            let corrected = match &corrects {
                Some(which) => Some(find_fact(facts, which)?.0),
                None => best_match(facts, &said_so, &said, Relation::Corrects),
            };
            if let Some((at, known)) = corrected.and_then(indexed) {
                let tokens = (FactTokens::new(known.content), FactTokens::new(&content));
                let says_the_same = Overlap::between(&tokens.0, &tokens.1).is_match();
                return Ok(reword(at, important || known.important, !says_the_same));
            }
            // Checked after the corrections, which a full memory still takes.
            let count = facts.len();
            if count >= max {
                return Err(MemoryError::Limit { count, max });
            }
            Ok(PlannedChange::Add {
                content: content.clone(),
                important,
            })
        })
        .await
    }

    /// Returns the stored fact that contradicts a text, as far as the grammar sees, if the text
    /// does not announce that it corrects it: the user can be asked which is true. `message`: the
    /// user's message that the text was made from.
    ///
    /// # Errors
    /// As [`KeyFactStore::list`].
    pub async fn contradicted_by(
        &self,
        words: &str,
        message: &str,
    ) -> Result<Option<KeyFact>, MemoryError> {
        let (words, message) = (words.to_owned(), message.to_owned());
        let found = self.search_one(move |facts| {
            let best = |wanted| best_match(facts, &words, &message, wanted);
            // A fact that the text corrects is replaced, so it contradicts nothing any more.
            let is_answered =
                facts.with_text(&words).is_some() || best(Relation::Corrects).is_some();
            Ok(if is_answered {
                None
            } else {
                best(Relation::Contradicts)
            })
        });
        Ok(found.await?.as_ref().map(FactRecord::to_fact))
    }

    /// Edits the text of a fact, or its importance; `None` leaves either as it is.
    ///
    /// # Errors
    /// As [`KeyFactStore::find`]; [`MemoryError::Fact`] if another fact has the same text.
    pub async fn edit(
        &self,
        which: &str,
        words: Option<&str>,
        important: Option<bool>,
        cause: &Cause,
    ) -> Result<FactChange, MemoryError> {
        let new = words.map(parse_fact).transpose()?;
        let which = which.to_owned();
        self.apply(cause, move |facts| {
            let (at, known) = find_fact(facts, &which)?;
            let (content, tagged) = new.clone().unwrap_or((known.content.to_owned(), false));
            let important = important.unwrap_or(known.important || tagged);
            if content == known.content && important == known.important {
                return Ok(PlannedChange::Nothing { at });
            }
            if content != known.content && facts.with_text(&content).is_some() {
                return Err(MemoryError::fact(format!(
                    "another fact already reads “{content}”"
                )));
            }
            Ok(PlannedChange::Reword {
                at,
                content,
                important,
                renews_date: false,
            })
        })
        .await
    }

    /// Forgets a fact; in a file also the lines that are nested below it.
    ///
    /// # Errors
    /// As [`KeyFactStore::find`].
    pub async fn forget(&self, which: &str, cause: &Cause) -> Result<FactChange, MemoryError> {
        let which = which.to_owned();
        self.apply(cause, move |facts| {
            let (at, _) = find_fact(facts, &which)?;
            Ok(PlannedChange::Remove { at })
        })
        .await
    }

    pub(super) async fn read(&self) -> Result<Arc<FactCorpus>, MemoryError> {
        match &self.0 {
            Backend::Vault(memory) => memory.facts().await,
            Backend::Database(database) => Ok(database.snapshot().await?.facts),
        }
    }

    /// Reads the facts, and if asked those that were withdrawn: in a database by one statement,
    /// which reads them anyway.
    pub(crate) async fn snapshot(&self, with_withdrawn: bool) -> Result<Snapshot, MemoryError> {
        match &self.0 {
            Backend::Vault(memory) => {
                let facts = memory.facts().await?;
                let withdrawn = match with_withdrawn {
                    true => memory.withdrawn(&facts).await,
                    false => Arc::default(),
                };
                Ok(Snapshot { facts, withdrawn })
            }
            Backend::Database(database) => database.snapshot().await,
        }
    }

    /// Searches for one fact where the search holds up no other request.
    async fn search_one(
        &self,
        search: impl Fn(&dyn KnownFacts) -> Result<Option<usize>, MemoryError> + Send + 'static,
    ) -> Result<Option<FactRecord>, MemoryError> {
        match &self.0 {
            Backend::Vault(memory) => {
                let facts = memory.facts().await?;
                let searching =
                    move || Ok(search(&&facts[..])?.and_then(|at| facts.get(at).cloned()));
                self.0.compute(searching).await?
            }
            Backend::Database(database) => database.search_one(search).await,
        }
    }

    async fn apply(
        &self,
        cause: &Cause,
        plan: impl Fn(&dyn KnownFacts) -> Result<PlannedChange, MemoryError> + Send + Sync + 'static,
    ) -> Result<FactChange, MemoryError> {
        match &self.0 {
            Backend::Vault(memory) => memory.apply(cause, plan).await,
            Backend::Database(database) => database.apply(cause, plan).await,
        }
    }
}

/// Returns the facts that are wanted, the newest first.
fn newest(
    facts: &FactCorpus,
    is_wanted: impl Fn(&FactRecord) -> bool,
) -> impl Iterator<Item = &FactRecord> {
    facts
        .newest_first()
        .map(|(_, fact)| fact)
        .filter(move |fact| is_wanted(fact))
}

fn to_facts(facts: &[FactRecord]) -> Vec<KeyFact> {
    facts.iter().map(FactRecord::to_fact).collect()
}
