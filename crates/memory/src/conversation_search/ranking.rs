//! The ranking of conversations for a query: by BM25 over whole conversations, and over their best
//! passages.

use std::collections::HashMap;

use adjutant_core::port::{Candidate, IndexMatches, Passage, Unindexed};
use adjutant_core::{ConversationId, TurnId};
use jiff::Timestamp;

use super::turn_text::{passages, turn_texts};
use crate::rank::{Corpus, Query, TermCounts};

/// Number of occurrences that a term in a conversation's title counts for.
const TITLE: f64 = 1.0;
/// Share of a conversation's score that its best passage makes up; the rest is that of the whole.
const PASSAGE: f64 = 0.3;

/// A conversation that matches a query.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RankedConversation {
    pub(super) conversation: ConversationId,
    pub(super) title: String,
    /// A share of the most that a conversation can score for the query.
    pub(super) score: f64,
    /// Its turns that match, and the times at which they began, best first.
    pub(super) turns: Vec<(TurnId, Timestamp)>,
}

/// A conversation with the passages of it that match.
struct Document {
    conversation: ConversationId,
    title: String,
    /// Length of all of its passages, in tokens, and the terms in those that match.
    counts: TermCounts,
    passages: Vec<(TurnId, Timestamp, TermCounts)>,
}

/// Totals over all conversations of the user, those that do not match too.
struct Totals {
    conversations: f64,
    passages: f64,
    /// Tokens of all passages.
    length: f64,
    /// For each term of the query, the number of passages that hold it.
    frequencies: Vec<f64>,
}

/// The documents of a search, put together from passages.
struct Documents<'a> {
    query: &'a Query,
    /// The index in the query of each term of the index.
    terms: HashMap<&'a str, usize>,
    all: Vec<Document>,
    by_id: HashMap<ConversationId, usize>,
}

/// Ranks the conversations that a search of the index found. `index_terms`: the terms that were
/// searched for, each with its index in the query.
pub(super) fn rank(
    query: &Query,
    index_terms: &[(String, usize)],
    found: IndexMatches,
) -> Vec<RankedConversation> {
    let mut totals = Totals {
        conversations: found.conversations as f64,
        passages: found.passages as f64,
        length: found.length as f64,
        frequencies: vec![0.0; query.len()],
    };
    for ((_, term), held) in index_terms.iter().zip(&found.holding) {
        if let Some(frequency) = totals.frequencies.get_mut(*term) {
            *frequency += *held as f64;
        }
    }
    let terms = index_terms
        .iter()
        .map(|(text, term)| (text.as_str(), *term));
    let mut documents = Documents {
        query,
        terms: terms.collect(),
        all: Vec::new(),
        by_id: HashMap::new(),
    };
    for Candidate {
        conversation,
        title,
        conversation_length,
        passage,
    } in found.candidates
    {
        let counts = documents.count(&passage);
        let length = conversation_length as f64;
        documents.add(conversation, &title, length, &passage, counts);
    }
    // Turns that are not in the index yet add to its totals.
    for Unindexed {
        key,
        title,
        part,
        events,
    } in &found.unindexed
    {
        let newer = passages(&turn_texts(events));
        let length: f64 = newer.iter().map(|passage| f64::from(passage.length)).sum();
        totals.passages += newer.len() as f64;
        totals.length += length;
        // Turns from the beginning on belong to a conversation that the index does not count yet.
        totals.conversations += f64::from(part.after == 0 && !newer.is_empty());
        if let Some(at) = documents.by_id.get(&key.conversation)
            && let Some(document) = documents.all.get_mut(*at)
        {
            document.counts.length += length;
        }
        for passage in &newer {
            let counts = documents.count(passage);
            for (frequency, count) in totals.frequencies.iter_mut().zip(&counts.counts) {
                *frequency += f64::from(*count > 0.0);
            }
            if !counts.is_empty() {
                documents.add(key.conversation, title, length, passage, counts);
            }
        }
    }
    score(query, documents.all, &totals)
}

impl Documents<'_> {
    fn count(&self, passage: &Passage) -> TermCounts {
        let mut counts = TermCounts::with_length(passage.length.into());
        for word in passage.words.split(' ') {
            if let Some(term) = self.terms.get(word) {
                counts.add(*term, 1.0, self.query.len());
            }
        }
        counts
    }

    /// Adds a passage to the document of its conversation. `title` and `length` are those of the
    /// whole conversation, for a new document.
    fn add(
        &mut self,
        conversation: ConversationId,
        title: &str,
        length: f64,
        passage: &Passage,
        counts: TermCounts,
    ) {
        let next = self.all.len();
        let at = *self.by_id.entry(conversation).or_insert(next);
        if at == next {
            let mut counts = TermCounts::with_length(length);
            self.query
                .each_match(title, |_, term| counts.add(term, TITLE, self.query.len()));
            self.all.push(Document {
                conversation,
                title: title.to_owned(),
                counts,
                passages: Vec::new(),
            });
        }
        let Some(document) = self.all.get_mut(at) else {
            return;
        };
        for (term, count) in counts.counts.iter().enumerate() {
            document.counts.add(term, *count, self.query.len());
        }
        let Passage { turn, at, .. } = passage;
        document.passages.push((*turn, *at, counts));
    }
}

/// Scores conversations, best first; of those with the same score the newest first.
fn score(query: &Query, documents: Vec<Document>, totals: &Totals) -> Vec<RankedConversation> {
    // At least one of each, because both are divided by.
    let (conversations, all) = (totals.conversations.max(1.0), totals.passages.max(1.0));
    let wholes: Vec<&TermCounts> = documents.iter().map(|document| &document.counts).collect();
    let whole_scores = query.score_in(
        &wholes,
        Corpus {
            texts: conversations,
            mean_length: totals.length / conversations,
            frequencies: &query.frequencies(&wholes),
        },
    );
    let parts: Vec<&TermCounts> = documents
        .iter()
        .flat_map(|document| document.passages.iter().map(|(_, _, counts)| counts))
        .collect();
    let part_scores = query.score_in(
        &parts,
        Corpus {
            texts: all,
            mean_length: totals.length / all,
            frequencies: &totals.frequencies,
        },
    );
    let mut part_values = part_scores.values.iter();
    let mut ranked: Vec<RankedConversation> = Vec::new();
    for (document, whole) in documents.into_iter().zip(&whole_scores.values) {
        let mut turns: Vec<(f64, TurnId, Timestamp)> = document
            .passages
            .iter()
            .zip(&mut part_values)
            .map(|((turn, at, _), score)| (*score, *turn, *at))
            .collect();
        // Of two passages with the same score the newer one is shown.
        turns.sort_by(|(one, _, one_at), (other, _, other_at)| {
            other.total_cmp(one).then(other_at.cmp(one_at))
        });
        let best = turns
            .first()
            .map_or(0.0, |(score, _, _)| part_scores.share(*score));
        let mut matching: Vec<(TurnId, Timestamp)> = Vec::new();
        for (_, turn, at) in turns {
            // A long turn has several passages.
            if matching.iter().all(|(known, _)| *known != turn) {
                matching.push((turn, at));
            }
        }
        ranked.push(RankedConversation {
            conversation: document.conversation,
            title: document.title,
            score: (1.0 - PASSAGE) * whole_scores.share(*whole) + PASSAGE * best,
            turns: matching,
        });
    }
    let newest = |ranked: &RankedConversation| ranked.turns.first().map(|(_, at)| *at);
    ranked.sort_by(|one, other| {
        other
            .score
            .total_cmp(&one.score)
            .then_with(|| newest(other).cmp(&newest(one)))
    });
    ranked
}
