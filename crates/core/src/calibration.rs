//! How our count of a request relates to the provider's: learned from what it reported in this
//! conversation.

use serde::{Deserialize, Serialize};

use crate::error::ModelError;
use crate::model::GenerateResponse;

/// The factor is at least and at most this, in thousandths: a report beyond it is of something else
/// than the request.
const FACTOR: std::ops::RangeInclusive<u64> = 500..=4000;
/// Counts of a small request say little: what stands around it weighs more than its words. So many
/// tokens that are right are added to both sides.
const SMOOTHING: u64 = 512;
/// What is sent after the provider said that it was too much, as a part of that, in hundredths.
const AFTER_TOO_LONG: u64 = 70;
/// No window is smaller or larger than that: other numbers in a message are of something else.
const WINDOWS: std::ops::RangeInclusive<u32> = 256..=100_000_000;

/// How our count of a request relates to the provider's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    /// The provider's tokens for a thousand of ours.
    factor: u64,
    /// What it counts beside that: what its template adds.
    overhead: u32,
    /// More than this, as we count, was too long for it.
    ceiling: Option<u32>,
    /// The ceiling was learned in an earlier turn than the last.
    is_ceiling_old: bool,
    /// The window it named when a request was too long.
    window: Option<u32>,
    reported: bool,
}

impl Default for Calibration {
    /// Our count as it is.
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
    /// Takes note that a turn starts: a ceiling that is known by now was learned in an earlier one.
    pub(crate) fn turn_started(&mut self) {
        self.is_ceiling_old = self.ceiling.is_some();
    }

    /// Takes note that requests begin otherwise from now on.
    pub(crate) fn prefix_changed(&mut self) {
        self.overhead = 0;
    }

    /// Learns from a reply of the model. `counted`: what its request was counted as; `exact`: with
    /// the model's own tokenizer, so only what stands around the words is learned.
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
            self.ceiling = None;
        }
        // Some servers report only what they had not read before: that is no count of the request.
        let Some(reported) =
            reported.filter(|reported| reported * 1000 >= u64::from(counted) * FACTOR.start())
        else {
            return;
        };
        if !exact {
            let factor = (reported + SMOOTHING) * 1000 / (u64::from(counted) + SMOOTHING);
            self.factor = factor.clamp(*FACTOR.start(), *FACTOR.end());
        }
        self.overhead = 0;
        let reported = u32::try_from(reported).unwrap_or(u32::MAX);
        self.overhead = reported.saturating_sub(self.tokens(counted));
        self.reported = true;
    }

    fn was_too_long(&mut self, counted: u32, message: &str) {
        let most = u32::try_from(u64::from(counted) * AFTER_TOO_LONG / 100).unwrap_or(u32::MAX);
        self.ceiling = Some(self.ceiling.map_or(most, |known| known.min(most)));
        self.is_ceiling_old = false;
        if let Some(window) = window_in(message) {
            self.window = Some(self.window.map_or(window, |known| known.min(window)));
        }
    }

    /// What the provider will count, for what we counted. Never less than it reported for a request
    /// that was as long.
    #[must_use]
    pub fn tokens(&self, counted: u32) -> u32 {
        let tokens = (u64::from(counted) * self.factor).div_ceil(1000);
        u32::try_from(tokens)
            .unwrap_or(u32::MAX)
            .saturating_add(self.overhead)
    }

    /// Returns the most that we may count, if the provider is to count so many tokens.
    ///
    /// A request that was too long though it took less than half of them says something of that
    /// moment, or of a window that is smaller than we know: it counts in its turn, and the next
    /// turn tries again rather than never to send anything.
    #[must_use]
    pub fn counted_within(&self, tokens: u32) -> u32 {
        let counted = u64::from(tokens.saturating_sub(self.overhead)) * 1000 / self.factor;
        let counted = u32::try_from(counted).unwrap_or(u32::MAX);
        let ceiling = self
            .ceiling
            .filter(|ceiling| !self.is_ceiling_old || *ceiling >= counted / 2);
        ceiling.map_or(counted, |ceiling| counted.min(ceiling))
    }

    /// The model's window: what is known of it, or less, if the provider said so.
    #[must_use]
    pub fn window(&self, known: u32) -> u32 {
        self.window.map_or(known, |said| said.min(known))
    }

    /// Whether the provider reported anything that we learned from.
    #[must_use]
    pub fn is_reported(&self) -> bool {
        self.reported
    }

    /// What the provider counts beside what we do, in tokens.
    #[must_use]
    pub fn overhead(&self) -> u32 {
        self.overhead
    }

    /// The provider's tokens for a part of a request that we counted, without what it counts
    /// beside.
    #[must_use]
    pub fn share_of(&self, counted: u32) -> u32 {
        self.tokens(counted).saturating_sub(self.overhead)
    }
}

/// The window that a provider names when a request is too long. `None`: it names none that we
/// recognise.
///
/// Source: the messages of OpenAI, vLLM, Mistral, xAI, Gemini, llama.cpp and Ollama, and our own
/// (checked 2026-11).
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
    /// Words between the name of the bound and its number.
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
