//! Calibration: how estimated sizes of requests relate to the counts that a provider reports in
//! this conversation.

use serde::{Deserialize, Serialize};

use crate::error::ModelError;
use crate::model::GenerateResponse;

/// Range of the factor, in thousandths: a report beyond it is about something else than the
/// request.
const FACTOR: std::ops::RangeInclusive<u64> = 500..=4000;
/// Number of tokens that is added to both counts: in small requests the template weighs more than
/// the text.
const SMOOTHING: u64 = 512;
/// Size of a request after one that was too long, in percent of that one.
const AFTER_TOO_LONG: u64 = 70;
/// Plausible sizes of a context window: other numbers in a message mean something else.
const WINDOWS: std::ops::RangeInclusive<u32> = 256..=100_000_000;

/// The relation between estimated and reported token counts of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    /// Reported tokens for a thousand estimated ones.
    factor: u64,
    /// Tokens that the provider's template adds to each request.
    overhead: u32,
    /// Estimated size above which a request was too long.
    ceiling: Option<u32>,
    /// True if the ceiling was learned before the last turn.
    is_ceiling_old: bool,
    /// Context window that the provider named when a request was too long.
    window: Option<u32>,
    reported: bool,
}

impl Default for Calibration {
    /// Returns a calibration without corrections.
    fn default() -> Self {
        Self {
            factor: 1000,
            overhead: 0,
            ceiling: None,
            is_ceiling_old: false,
            window: None,
            reported: false,
        }
    }
}

impl Calibration {
    /// Marks a known ceiling as learned in an earlier turn.
    pub(crate) fn turn_started(&mut self) {
        self.is_ceiling_old = self.ceiling.is_some();
    }

    /// Resets what depended on the beginning of requests, which has changed.
    pub(crate) fn prefix_changed(&mut self) {
        self.overhead = 0;
    }

    /// Learns from a reply. `counted` is the estimated size of its request; `exact`: counted by the
    /// model's own tokenizer, so that only the template's overhead is learned.
    pub(crate) fn replied(
        &mut self,
        reply: &Result<GenerateResponse, ModelError>,
        counted: u32,
        attempts: u32,
        exact: bool,
    ) {
        match reply {
            Ok(reply) => self.answered(counted, reply.usage.input_tokens, exact),
            Err(ModelError::ContextTooLong { message, .. }) if attempts > 0 => {
                self.was_too_long(counted, message);
            }
            Err(_) => {}
        }
    }

    fn answered(&mut self, counted: u32, reported: Option<u64>, exact: bool) {
        if self.ceiling.is_some_and(|ceiling| counted > ceiling) {
            // A larger request was accepted since, so what was too long was about that moment.
            self.ceiling = None;
        }
        // Some servers report only tokens that were not cached: that is not the size of the
        // request.
        let Some(reported) =
            reported.filter(|reported| reported * 1000 >= u64::from(counted) * FACTOR.start())
        else {
            return;
        };
        if !exact {
            let factor = (reported + SMOOTHING) * 1000 / (u64::from(counted) + SMOOTHING);
            self.factor = factor.clamp(*FACTOR.start(), *FACTOR.end());
        }
        // `tokens` adds the overhead, which is about to be measured.
        self.overhead = 0;
        let reported = u32::try_from(reported).unwrap_or(u32::MAX);
        self.overhead = reported.saturating_sub(self.tokens(counted));
        self.reported = true;
    }

    fn was_too_long(&mut self, counted: u32, message: &str) {
        // Less than was refused, so that the next request has a chance; how much less is not known.
        let most = u32::try_from(u64::from(counted) * AFTER_TOO_LONG / 100).unwrap_or(u32::MAX);
        self.ceiling = Some(self.ceiling.map_or(most, |known| known.min(most)));
        self.is_ceiling_old = false;
        if let Some(window) = window_in(message) {
            self.window = Some(self.window.map_or(window, |known| known.min(window)));
        }
    }

    /// Returns the expected count of the provider for an estimated size. Never less than was
    /// reported for a request of that size.
    #[must_use]
    pub fn tokens(&self, counted: u32) -> u32 {
        let tokens = (u64::from(counted) * self.factor).div_ceil(1000);
        u32::try_from(tokens)
            .unwrap_or(u32::MAX)
            .saturating_add(self.overhead)
    }

    /// Returns the largest estimated size for which the provider is expected to count at most
    /// `tokens`.
    ///
    /// A request of less than half of them that was too long says something about the moment, or
    /// about a smaller window than is known: it counts in its turn, and the next turn tries again.
    #[must_use]
    pub fn counted_within(&self, tokens: u32) -> u32 {
        let counted = u64::from(tokens.saturating_sub(self.overhead)) * 1000 / self.factor;
        let counted = u32::try_from(counted).unwrap_or(u32::MAX);
        let ceiling = self
            .ceiling
            .filter(|ceiling| !self.is_ceiling_old || *ceiling >= counted / 2);
        ceiling.map_or(counted, |ceiling| counted.min(ceiling))
    }

    /// Returns the model's context window: `known`, or less if the provider named a smaller one.
    #[must_use]
    pub fn window(&self, known: u32) -> u32 {
        self.window.map_or(known, |named| named.min(known))
    }

    /// Returns true if the provider reported a usable count.
    #[must_use]
    pub fn is_reported(&self) -> bool {
        self.reported
    }

    /// Returns the tokens that the provider's template adds.
    #[must_use]
    pub fn overhead(&self) -> u32 {
        self.overhead
    }

    /// Returns the expected count of the provider for a part of a request, without the template's
    /// overhead.
    #[must_use]
    pub fn share_of(&self, counted: u32) -> u32 {
        self.tokens(counted).saturating_sub(self.overhead)
    }
}

/// Returns the context window that a provider names in an error, if it is recognised.
///
/// Source: messages of OpenAI, vLLM, Mistral, xAI, Gemini, llama.cpp, Ollama and our own (checked
/// 2026-11).
#[must_use]
pub fn window_in(message: &str) -> Option<u32> {
    const BEFORE: [&str; 13] = [
        "maximum context length",
        "maximum prompt length",
        "maximum number of tokens allowed",
        "maximum input length",
        "context length is",
        "context length of",
        "context size",
        "context window",
        "num_ctx",
        "n_ctx",
        "max_model_len",
        "token limit",
        "model's limit",
    ];
    /// Maximum number of words between the name of the limit and its number.
    const BETWEEN_MAX: usize = 16;
    let message = message.to_ascii_lowercase();
    let named = BEFORE.iter().filter_map(|name| {
        let rest = &message[message.find(name)? + name.len()..];
        let at = rest
            .find(|c: char| c.is_ascii_digit())
            .filter(|at| *at <= BETWEEN_MAX)?;
        number(&rest[at..])
    });
    // Anthropic: "prompt is too long: 210000 tokens > 200000 maximum".
    let compared = || {
        let (before, _) = message.split_once(" maximum")?;
        let digits = before
            .rsplit(|c: char| !c.is_ascii_digit() && c != ',')
            .next()?;
        before
            .trim_end_matches(digits)
            .trim_end()
            .ends_with('>')
            .then(|| number(digits))?
    };
    named
        .chain(compared())
        .filter(|window| WINDOWS.contains(window))
        .min()
}

fn number(text: &str) -> Option<u32> {
    let digits: String = text
        .chars()
        .take_while(|c| c.is_ascii_digit() || matches!(c, ',' | '_'))
        .filter(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}
