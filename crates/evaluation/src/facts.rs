//! Figures of automatic recall: the facts that are recalled for a question, by the function that
//! recalls them for a turn.

use adjutant_core::turn::estimate_tokens;
use adjutant_memory::RecallLimits;

use crate::share::Share;
use crate::vault_of_set::SetVault;

/// Number of facts that are chosen for a question, and the tokens of their lines.
const CHOSEN: (usize, u32) = (10, 350);

/// The figures of facts.
#[derive(Default)]
pub(crate) struct Figures {
    /// With ten facts.
    pub(crate) at_10: Share,
    /// With twice as many.
    pub(crate) at_20: Share,
    /// With the limits of a turn, which tells all facts of a small memory.
    pub(crate) told: Share,
    /// Tokens of the facts that were recalled for all questions, ten facts each.
    pub(crate) tokens: u32,
}

impl Figures {
    /// Asks one question as the first message of a conversation. One fact of each list of the
    /// evidence has to be recalled.
    pub(crate) async fn ask(
        &mut self,
        vault: &SetVault,
        question: &str,
        evidence: &[Vec<u64>],
    ) -> Result<(), String> {
        let (facts, tokens) = CHOSEN;
        let usual = RecallLimits {
            // A turn is told all facts of a small memory; the ranking is measured for any.
            all_tokens: 0,
            facts,
            tokens,
        };
        let twice = RecallLimits {
            facts: 2 * facts,
            tokens: 2 * tokens,
            ..usual
        };
        let limits = [
            (usual, &mut self.at_10),
            (twice, &mut self.at_20),
            (RecallLimits::default(), &mut self.told),
        ];
        for (limits, share) in limits {
            let recalled = vault
                .memory
                .facts()
                .relevant_to(question, &[], limits, &estimate_tokens)
                .await;
            let recalled = recalled.map_err(|error| error.to_string())?;
            if limits == usual {
                self.tokens += recalled
                    .iter()
                    .map(|recalled| estimate_tokens(&recalled.line))
                    .sum::<u32>();
            }
            let ids: Vec<u64> = recalled
                .iter()
                .flat_map(|recalled| vault.ids(&recalled.fact.content))
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
