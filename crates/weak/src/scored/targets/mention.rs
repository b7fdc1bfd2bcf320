//! Entities that were just spoken of: "it", "the other one".

use super::{Reader, Targets};
use crate::lexicon::is_content;

impl Reader<'_> {
    /// Decides between doubtful entities by what was said before.
    pub(super) fn decided_by_mention(&self, targets: Targets) -> Targets {
        let points = self
            .words
            .iter()
            .any(|word| self.lexicon.pronouns.has(&word.folded));
        // "I have repaired it": what was just said, whatever else is to be repaired.
        if let ([entity], [by], [mentioned]) =
            (&targets.named[..], &targets.by[..], &self.mentioned[..])
            && points
            && entity != mentioned
            && by.iter().all(|at| self.is_verb(*entity, *at))
        {
            return Targets::pointed_at(vec![*mentioned]);
        }
        if !targets.named.is_empty() || targets.doubtful.is_empty() {
            return targets;
        }
        let both: Vec<usize> = targets
            .doubtful
            .iter()
            .copied()
            .filter(|entity| self.mentioned.contains(entity))
            .collect();
        match both[..] {
            [only] => Targets {
                named: vec![only],
                doubtful: Vec::new(),
                ..targets
            },
            _ => targets,
        }
    }

    /// Reads a message that names nothing: it means what was said just before.
    pub(super) fn by_mention(&self) -> Targets {
        let own = self
            .words
            .iter()
            .any(|word| is_content(&word.folded, self.lexicon));
        if self.has(&self.lexicon.other)
            && let [first] = self.mentioned[..]
        {
            // The other one of those that the earlier message could mean.
            let others: Vec<usize> = self
                .earlier
                .iter()
                .copied()
                .filter(|entity| *entity != first)
                .collect();
            // Or the one with a label like its.
            let like: Vec<usize> = (0..self.entities.len())
                .filter(|&entity| entity != first && !self.entities[entity].done)
                .filter(|&entity| {
                    let shared = |word: &&String| self.labels[first].contains(word);
                    self.labels[entity].iter().filter(shared).count() > 0
                })
                .collect();
            let others = match (&others[..], &like[..]) {
                ([_], _) => others,
                (_, [_]) => like,
                _ => others,
            };
            return match others[..] {
                [other] => Targets::pointed_at(vec![other]),
                _ => Targets {
                    doubtful: others,
                    ..Targets::default()
                },
            };
        }
        let points = self
            .words
            .iter()
            .any(|word| self.lexicon.pronouns.has(&word.folded));
        if own && !points && !self.answers {
            return Targets::default();
        }
        let confirms = self.answers && self.words.len() == 1;
        let is_guessed = own && !confirms && !self.points_alone();
        let known = if self.mentioned.is_empty() {
            &self.earlier
        } else {
            &self.mentioned
        };
        let open: Vec<usize> = self.open((0..self.entities.len()).collect());
        match (&known[..], &open[..]) {
            ([only], _) => Targets {
                is_guessed,
                ..Targets::pointed_at(vec![*only])
            },
            ([], [only]) if !own => Targets::pointed_at(vec![*only]),
            _ => Targets {
                doubtful: known.clone(),
                ..Targets::default()
            },
        }
    }

    /// Returns true if a pronoun of the message is no determiner: "finished it", and not "finished
    /// her homework".
    fn points_alone(&self) -> bool {
        let mut next = self.words.iter().skip(1);
        self.words.iter().any(|word| {
            let next = next.next();
            // "That's" has its verb already.
            let has_noun = !word.folded.contains('\'')
                && next.is_some_and(|next| is_content(&next.folded, self.lexicon));
            self.lexicon.pronouns.has(&word.folded) && !has_noun
        })
    }
}
