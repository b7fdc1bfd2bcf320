//! Entities by the words of their labels.

use adjutant_core::Language;

use super::{Reader, Targets};
use crate::lexicon::is_content;
use crate::words::Likeness;

/// Words of a message from which on it is a story, which names many things by the way.
const STORY_WORDS_MIN: usize = 25;
/// Least share of a label's words that names one of several entities.
const NAMED_SHARE_MIN: f32 = 0.34;
/// That in a story, and of the entity beside which others need [`NAMED_SHARE_MIN`].
const NAMED_SHARE: f32 = 0.5;
/// Share of a label's words by which one of two entities has to be nearer to the message.
const NEARER: f32 = 0.25;

impl Reader<'_> {
    /// Reads the words that labels have.
    pub(super) fn by_words(&self) -> Targets {
        let mut spoken: Vec<(usize, Vec<usize>)> = Vec::new();
        for (at, hit) in self.hits.iter().enumerate() {
            for &entity in hit {
                match spoken.iter_mut().find(|(known, _)| *known == entity) {
                    Some((_, words)) => words.push(at),
                    None => spoken.push((entity, vec![at])),
                }
            }
        }
        // Words that fit open and done entities mean an open one.
        let same = |a: &[usize], b: &[usize]| a == b;
        let kept: Vec<(usize, Vec<usize>)> = spoken
            .iter()
            .filter(|(entity, own)| {
                let done = self.entities[*entity].done;
                !spoken.iter().any(|(other, theirs)| {
                    let more = theirs.len() > own.len() && own.iter().all(|at| theirs.contains(at));
                    let open = done && !self.entities[*other].done && same(own, theirs);
                    other != entity && (more || open)
                })
            })
            .cloned()
            .collect();
        let coverage = |(entity, own): &(usize, Vec<usize>)| {
            own.len() as f32 / self.labels[*entity].len().max(1) as f32
        };
        let is_verb_only = |(entity, own): &(usize, Vec<usize>)| self.only_verb(*entity, own);
        let firm = kept.iter().any(|one| !is_verb_only(one));
        let mut targets = Targets::default();
        for one in &kept {
            let (entity, own) = one;
            let rivals: Vec<&(usize, Vec<usize>)> = kept
                .iter()
                .filter(|rival| rival.0 != *entity && !is_verb_only(rival) && same(own, &rival.1))
                .collect();
            let nearest = rivals
                .iter()
                .all(|rival| coverage(one) >= coverage(rival) + NEARER);
            let beaten = rivals
                .iter()
                .any(|rival| coverage(rival) >= coverage(one) + NEARER);
            // A verb alone counts only where no other word does.
            if beaten || firm && is_verb_only(one) {
                continue;
            }
            if is_verb_only(one) || !nearest {
                targets.doubtful.push(*entity);
            } else {
                targets.named.push(*entity);
                targets.by.push(own.clone());
            }
        }
        self.drop_weak(&mut targets);
        self.count_doubtful(&mut targets, &kept);
        targets
    }

    /// Makes entities doubtful of which a message has few words beside others that it has more of.
    fn drop_weak(&self, targets: &mut Targets) {
        let shares: Vec<f32> = targets
            .named
            .iter()
            .zip(&targets.by)
            .map(|(entity, by)| by.len() as f32 / self.labels[*entity].len().max(1) as f32)
            .collect();
        let least = match shares.iter().any(|share| *share >= NAMED_SHARE) {
            _ if self.words.len() >= STORY_WORDS_MIN => NAMED_SHARE,
            true => NAMED_SHARE_MIN,
            false => 0.0,
        };
        // A clause that names nothing else means it: "the rent is paid and the parcel is here".
        let clauses_of = |at: usize| -> Vec<usize> {
            targets.by[at]
                .iter()
                .map(|word| self.clauses[*word])
                .collect()
        };
        let is_alone = |at: usize| {
            let own = clauses_of(at);
            let is_other = |other: usize| {
                other != at && clauses_of(other).iter().any(|clause| own.contains(clause))
            };
            let is_verb = |word: &usize| self.is_verb(targets.named[at], *word);
            !(0..shares.len()).any(is_other) && !targets.by[at].iter().all(is_verb)
        };
        let weak: Vec<usize> = (0..shares.len())
            .rev()
            .filter(|&at| {
                let is_story = self.words.len() >= STORY_WORDS_MIN;
                shares[at] < least && (is_story || !is_alone(at))
            })
            .collect();
        for at in weak {
            targets.by.remove(at);
            targets.doubtful.push(targets.named.remove(at));
        }
    }

    /// Decides between doubtful entities if the message says how many of them it means: "both
    /// invoices", "the 3 invoices".
    fn count_doubtful(&self, targets: &mut Targets, spoken: &[(usize, Vec<usize>)]) {
        targets.doubtful.sort_unstable();
        let counts = |at: usize| {
            let word = &self.words[at].folded;
            self.lexicon
                .cardinals
                .number(word)
                .or_else(|| word.parse().ok())
        };
        let count = targets.doubtful.len();
        let counted = count > 1
            && self
                .hits
                .iter()
                .any(|hit| targets.doubtful.iter().all(|entity| hit.contains(entity)))
            && ((0..self.words.len()).any(|at| counts(at) == Some(count))
                || count == 2 && self.has(&self.lexicon.both));
        if counted {
            for entity in std::mem::take(&mut targets.doubtful) {
                let by = spoken.iter().find(|(known, _)| *known == entity);
                targets.named.push(entity);
                targets
                    .by
                    .push(by.map(|(_, by)| by.clone()).unwrap_or_default());
            }
        }
    }

    /// Returns true if a word is the verb of a label that has other words too.
    pub(super) fn is_verb(&self, entity: usize, at: usize) -> bool {
        let label = &self.labels[entity];
        // English verbs have no ending by which they are known.
        let (verb, endings): (_, &[&str]) = match self.lexicon.language {
            Language::German => (label.last(), &["n"]),
            Language::French => (label.first(), &["er", "ir", "re"]),
            Language::Spanish | Language::Portuguese => (label.first(), &["ar", "er", "ir", "or"]),
            _ => (label.first(), &[""]),
        };
        label.len() > 1
            && verb.is_some_and(|verb| {
                endings.iter().any(|ending| verb.ends_with(ending))
                    && self.likeness(&self.words[at].folded, verb) >= Likeness::Near
            })
    }

    /// Returns true if only the verb of a label is spoken of, and something else with it: "bought
    /// the bread" does not name "Buy milk".
    fn only_verb(&self, entity: usize, own: &[usize]) -> bool {
        let [only] = own[..] else { return false };
        let clause = self.clauses[only];
        let others = (0..self.words.len()).any(|at| {
            at != only
                && self.clauses[at] == clause
                && is_content(&self.words[at].folded, self.lexicon)
        });
        self.is_verb(entity, only) && others
    }
}
