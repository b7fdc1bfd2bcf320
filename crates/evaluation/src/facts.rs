//! The facts that are told with a question: by the function that chooses them for a turn.

use adjutant_core::turn::estimate_tokens;
use adjutant_memory::ToldLimits;

use crate::home::Home;
use crate::share::Share;

/// The figures of facts.
#[derive(Default)]
pub(crate) struct Figures {
    /// With the limits of a turn.
    pub(crate) at_10: Share,
    /// With twice as many.
    pub(crate) at_20: Share,
    /// Tokens that were told with all questions, with the limits of a turn.
    pub(crate) tokens: u32,
}

impl Figures {
    /// Asks one question as the first message of a conversation. One fact of each list of the
    /// evidence is to be told.
    pub(crate) async fn ask(
        &mut self,
        home: &Home,
        question: &str,
        evidence: &[Vec<u64>],
    ) -> Result<(), String> {
        let usual = ToldLimits::default();
        let twice = ToldLimits {
            facts: 2 * usual.facts,
            tokens: 2 * usual.tokens,
        };
        for (limits, share) in [(usual, &mut self.at_10), (twice, &mut self.at_20)] {
            let told = home
                .memory
                .facts()
                .fitting(question, &[], limits, &estimate_tokens)
                .await;
            let told = told.map_err(|error| error.to_string())?;
            if limits == usual {
                self.tokens += told
                    .iter()
                    .map(|told| estimate_tokens(&told.line))
                    .sum::<u32>();
            }
            let ids: Vec<u64> = told
                .iter()
                .flat_map(|told| home.ids(&told.fact.content))
                .copied()
                .collect();
            share.count(
                evidence
                    .iter()
                    .all(|any| any.iter().any(|id| ids.contains(id))),
            );
        }
        Ok(())
    }
}
