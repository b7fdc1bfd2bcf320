//! Sampling: chooses the next token by its logits.

use toktrie::{SimpleVob, TokenId};

use crate::error::DecodeError;

/// Settings by which the next token is chosen. The default is greedy: always the likeliest token.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Sampling {
    /// The temperature, 0 or more. Default 0: always the likeliest token, so that runs repeat on
    /// one machine.
    pub temperature: f32,
    /// Restricts the choice to the likeliest tokens that together reach this probability,
    /// `0.0..=1.0`. Default 1: no restriction.
    pub top_p: f32,
    /// Restricts the choice to so many of the likeliest tokens. Default `None`: no restriction.
    pub top_k: Option<usize>,
    /// The seed of the random numbers, so that a sampled run can be repeated. Default 0. Unused at
    /// temperature 0.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_p: 1.0,
            top_k: None,
            seed: 0,
        }
    }
}

/// Chooses the tokens of one answer.
#[derive(Debug)]
pub(crate) struct Sampler {
    sampling: Sampling,
    state: u64,
}

impl Sampler {
    pub(crate) fn new(sampling: Sampling) -> Self {
        let state = sampling.seed;
        Self { sampling, state }
    }

    /// Chooses one of the tokens in `allowed`, or one of all.
    ///
    /// # Errors
    /// [`DecodeError::Compute`] if no allowed token has a finite score, which only a damaged model
    /// causes.
    pub(crate) fn pick(
        &mut self,
        logits: &[f32],
        allowed: Option<&SimpleVob>,
    ) -> Result<TokenId, DecodeError> {
        let scored = (0..).zip(logits.iter().copied());
        let open = scored.filter(|&(token, score)| {
            score.is_finite() && allowed.is_none_or(|allowed| allowed.is_allowed(token))
        });
        let picked = match self.sampling.temperature > 0.0 {
            true => self.draw(open.collect()),
            false => open
                .reduce(|best, next| if next.1 > best.1 { next } else { best })
                .map(|(token, _)| token),
        };
        picked.ok_or_else(|| DecodeError::compute("no token has a score"))
    }

    fn draw(&mut self, mut open: Vec<(TokenId, f32)>) -> Option<TokenId> {
        open.sort_unstable_by(|left, right| right.1.total_cmp(&left.1));
        if let Some(top_k) = self.sampling.top_k {
            open.truncate(top_k.max(1));
        }
        let &(first, highest) = open.first()?;
        let temperature = self.sampling.temperature;
        let weights: Vec<f32> = open
            .iter()
            .map(|(_, score)| ((score - highest) / temperature).exp())
            .collect();
        let total: f32 = weights.iter().sum();
        let mut kept = 0.0;
        let reaches = |weight: &f32| {
            kept += weight;
            kept >= self.sampling.top_p * total
        };
        let count = weights
            .iter()
            .position(reaches)
            .map_or(weights.len(), |index| index + 1);
        let mut remaining = self.next_unit() * weights[..count].iter().sum::<f32>();
        for (&(token, _), weight) in open.iter().zip(&weights[..count]) {
            remaining -= weight;
            if remaining < 0.0 {
                return Some(token);
            }
        }
        // Rounding may leave a remainder; the likeliest token is then as good as any.
        Some(first)
    }

    /// Returns the next number in `0.0..1.0`, by SplitMix64: good enough for sampling, and the same
    /// on every platform.
    fn next_unit(&mut self) -> f32 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) >> 40) as f32 / (1u64 << 24) as f32
    }
}

/// Returns the probability of a token if only the allowed ones can be chosen.
pub(crate) fn share(logits: &[f32], allowed: &SimpleVob, token: TokenId) -> f32 {
    let at = |token: TokenId| {
        let logit = usize::try_from(token).ok().and_then(|at| logits.get(at));
        logit.copied().unwrap_or(f32::NEG_INFINITY)
    };
    let of = at(token);
    let total: f32 = allowed.iter().map(|other| (at(other) - of).exp()).sum();
    1.0 / total.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(sampling: Sampling, allowed: Option<&SimpleVob>) -> Vec<TokenId> {
        let mut sampler = Sampler::new(sampling);
        (0..64)
            .map(|_| sampler.pick(&[0.0, 3.0, f32::NAN, 2.0], allowed).unwrap())
            .collect()
    }

    #[test]
    fn greedy_takes_the_likeliest_that_is_allowed() {
        assert!(
            pick(Sampling::default(), None)
                .iter()
                .all(|&token| token == 1)
        );
        let mut allowed = SimpleVob::alloc(4);
        allowed.allow_token(0);
        allowed.allow_token(3);
        assert!(
            pick(Sampling::default(), Some(&allowed))
                .iter()
                .all(|&token| token == 3)
        );
    }

    #[test]
    fn the_share_of_a_token_is_of_the_allowed_ones() {
        let mut allowed = SimpleVob::alloc(4);
        allowed.allow_token(0);
        allowed.allow_token(3);
        let logits = [0.0, 9.0, f32::NAN, 3f32.ln()];
        assert!((share(&logits, &allowed, 3) - 0.75).abs() < 1e-6);
        assert!((share(&logits, &allowed, 0) - 0.25).abs() < 1e-6);
        let mut only = SimpleVob::alloc(4);
        only.allow_token(0);
        assert_eq!(share(&logits, &only, 0), 1.0);
    }

    #[test]
    fn a_seed_repeats_the_draw() {
        let warm = |seed| Sampling {
            temperature: 1.0,
            seed,
            ..Sampling::default()
        };
        assert_eq!(pick(warm(7), None), pick(warm(7), None));
        assert_ne!(pick(warm(7), None), pick(warm(8), None));
        assert!(pick(warm(7), None).contains(&3));
    }

    #[test]
    fn top_k_and_top_p_cut_the_tail() {
        let top_k = Sampling {
            temperature: 5.0,
            top_k: Some(1),
            ..Sampling::default()
        };
        let top_p = Sampling {
            temperature: 1.0,
            top_p: 0.5,
            ..Sampling::default()
        };
        assert!(
            pick(top_k, None)
                .iter()
                .chain(&pick(top_p, None))
                .all(|&token| token == 1)
        );
    }

    #[test]
    fn scores_that_are_no_numbers_are_an_error() {
        assert!(
            Sampler::new(Sampling::default())
                .pick(&[f32::NAN], None)
                .is_err()
        );
    }
}
