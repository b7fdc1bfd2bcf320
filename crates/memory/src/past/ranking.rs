//! Conversations by how well what was said in them fits a question: as a whole, and by their best
//! passage.

use std::collections::HashMap;

use adjutant_core::port::{Candidate, Passage, PastFound, Unindexed};
use adjutant_core::{ConversationId, TurnId};
use jiff::Timestamp;

use super::said::{passages, said};
use crate::rank::{Counted, Query};

/// A word in a conversation's title counts as often in the whole of it.
const TITLE: f64 = 1.0;
/// The share of a conversation's score that is its best passage's; the rest is that of the whole.
const PASSAGE: f64 = 0.3;

/// A conversation that fits.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ranked {
    pub(super) conversation: ConversationId,
    pub(super) title: String,
    /// A part of what a conversation would have that says just what was asked.
    pub(super) score: f64,
    /// Its turns that fit, and when they began, best first.
    pub(super) turns: Vec<(TurnId, Timestamp)>,
}

/// A conversation with passages that hold words of the question.
struct Whole {
    conversation: ConversationId,
    title: String,
    length: f64,
    counted: Counted,
    passages: Vec<(TurnId, Timestamp, Counted)>,
}

/// Numbers of all passages and conversations, those without a word of the question too.
#[derive(Default)]
struct Sizes {
    conversations: f64,
    passages: f64,
    length: f64,
    /// For each word of the question, passages that hold it.
    holding: Vec<f64>,
}

/// Ranks what a search gave. `index_words`: those that were searched for, each with the number of
/// its word.
pub(super) fn rank(
    query: &Query,
    index_words: &[(String, usize)],
    found: PastFound,
) -> Vec<Ranked> {
    let places: HashMap<&str, usize> = index_words
        .iter()
        .map(|(word, place)| (word.as_str(), *place))
        .collect();
    let mut sizes = Sizes {
        conversations: found.conversations as f64,
        passages: found.passages as f64,
        length: found.length as f64,
        holding: vec![0.0; query.len()],
    };
    for ((_, place), held) in index_words.iter().zip(&found.holding) {
        if let Some(holding) = sizes.holding.get_mut(*place) {
            *holding += *held as f64;
        }
    }
    let mut wholes = Wholes {
        query,
        places,
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
        let counted = wholes.count(&passage);
        wholes.add(
            (conversation, &title, conversation_length as f64),
            &passage,
            counted,
        );
    }
    for Unindexed {
        key,
        title,
        part,
        events,
    } in &found.unindexed
    {
        let newer = passages(&said(events));
        let length: f64 = newer.iter().map(|passage| f64::from(passage.length)).sum();
        sizes.passages += newer.len() as f64;
        sizes.length += length;
        sizes.conversations += f64::from(part.after == 0 && !newer.is_empty());
        wholes.lengthen(key.conversation, length);
        for passage in &newer {
            let counted = wholes.count(passage);
            for (holding, count) in sizes.holding.iter_mut().zip(&counted.counts) {
                *holding += f64::from(*count > 0.0);
            }
            if !counted.is_empty() {
                wholes.add((key.conversation, title, length), passage, counted);
            }
        }
    }
    scored(query, wholes.all, &sizes)
}

/// Conversations as they are put together from passages.
struct Wholes<'a> {
    query: &'a Query,
    places: HashMap<&'a str, usize>,
    all: Vec<Whole>,
    by_id: HashMap<ConversationId, usize>,
}

impl Wholes<'_> {
    fn count(&self, passage: &Passage) -> Counted {
        let mut counted = Counted {
            length: passage.length.into(),
            counts: Vec::new(),
        };
        for word in passage.words.split(' ') {
            if let Some(place) = self.places.get(word) {
                counted.add(*place, 1.0, self.query.len());
            }
        }
        counted
    }

    /// Adds to the length of a conversation that is there.
    fn lengthen(&mut self, conversation: ConversationId, length: f64) {
        if let Some(whole) = self
            .by_id
            .get(&conversation)
            .and_then(|at| self.all.get_mut(*at))
        {
            whole.length += length;
        }
    }

    fn add(
        &mut self,
        (conversation, title, length): (ConversationId, &str, f64),
        passage: &Passage,
        counted: Counted,
    ) {
        let next = self.all.len();
        let at = *self.by_id.entry(conversation).or_insert(next);
        if at == next {
            let mut whole = Counted::default();
            self.query
                .each_match(title, |_, word| whole.add(word, TITLE, self.query.len()));
            self.all.push(Whole {
                conversation,
                title: title.to_owned(),
                length,
                counted: whole,
                passages: Vec::new(),
            });
        }
        let Some(whole) = self.all.get_mut(at) else {
            return;
        };
        for (word, count) in counted.counts.iter().enumerate() {
            whole.counted.add(word, *count, self.query.len());
        }
        whole.passages.push((passage.turn, passage.at, counted));
    }
}

/// Scores conversations, best first, the newest first of those that fit as well.
fn scored(query: &Query, mut wholes: Vec<Whole>, sizes: &Sizes) -> Vec<Ranked> {
    let (conversations, all) = (sizes.conversations.max(1.0), sizes.passages.max(1.0));
    let counted: Vec<Counted> = wholes
        .iter()
        .map(|whole| Counted {
            length: whole.length,
            counts: whole.counted.counts.clone(),
        })
        .collect();
    let of_wholes = query.scores_among(&counted, conversations, sizes.length / conversations);
    let pieces: Vec<Counted> = wholes
        .iter()
        .flat_map(|whole| whole.passages.iter().map(|(_, _, counted)| counted.clone()))
        .collect();
    let of_passages = query.scores_held(&pieces, &sizes.holding, all, sizes.length / all);
    let part = |score: f64, most: f64| if most > 0.0 { score / most } else { 0.0 };
    let mut each = of_passages.each.into_iter();
    let mut ranked: Vec<Ranked> = Vec::new();
    for (whole, score) in wholes.drain(..).zip(of_wholes.each) {
        let mut turns: Vec<(f64, TurnId, Timestamp)> = whole
            .passages
            .iter()
            .zip(&mut each)
            .map(|((turn, at, _), score)| (score, *turn, *at))
            .collect();
        turns.sort_by(|(one, _, one_at), (other, _, other_at)| {
            other.total_cmp(one).then(other_at.cmp(one_at))
        });
        let best = turns
            .first()
            .map_or(0.0, |(score, _, _)| part(*score, of_passages.most));
        let mut fitting: Vec<(TurnId, Timestamp)> = Vec::new();
        for (_, turn, at) in turns {
            // A long turn has several passages.
            if fitting.iter().all(|(known, _)| *known != turn) {
                fitting.push((turn, at));
            }
        }
        ranked.push(Ranked {
            conversation: whole.conversation,
            title: whole.title,
            score: (1.0 - PASSAGE) * part(score, of_wholes.most) + PASSAGE * best,
            turns: fitting,
        });
    }
    let newest = |ranked: &Ranked| ranked.turns.first().map(|(_, at)| *at);
    ranked.sort_by(|one, other| {
        other
            .score
            .total_cmp(&one.score)
            .then_with(|| newest(other).cmp(&newest(one)))
    });
    ranked
}
