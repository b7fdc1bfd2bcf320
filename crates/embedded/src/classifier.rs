//! The classifier of actions: a linear layer over a hidden state of the model.
//!
//! The message is put into a short prompt of its own, which ends where the model would name the
//! action. The state there, after a block in the middle of the network, says what is asked for
//! better than any text that the model generates.

use adjutant_core::{ActionKind, ActionScores, Language};
use half::f16;

use crate::engine::KvCache;
use crate::error::ClassifierError;

/// The beginning of a classifier's file.
const MAGIC: &[u8; 8] = b"ADJACT\x00\x01";
/// Rows of the weights: kinds of actions, then languages.
const ROWS: usize = ActionKind::ALL.len() + Language::ALL.len();
/// Bytes of a file before its weights: the magic, the fingerprint, blocks and width.
const HEADER_BYTES: usize = MAGIC.len() + 32 + 4 + 4;

/// The classifiers that are built in, each for one model file.
const BUILT_IN: &[&[u8]] = &[include_bytes!("../classifiers/qwen2.5-coder-1.5b.bin")];

/// A linear layer that maps a hidden state to probabilities of actions.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionClassifier {
    pub(crate) fingerprint: [u8; 32],
    pub(crate) blocks: usize,
    /// For each row the weights of a state, and the bias.
    rows: Vec<(Vec<f32>, f32)>,
}

impl ActionClassifier {
    /// Creates a classifier for the model file with a [`Decoder::fingerprint`](crate::Decoder::fingerprint). It reads the state
    /// after the first `blocks` blocks. `rows` has the weights of a state and the bias for each of
    /// [`ActionKind::ALL`], then for each of [`Language::ALL`].
    ///
    /// # Errors
    /// [`ClassifierError`] for another number of rows, or rows of different lengths.
    pub fn new(
        fingerprint: [u8; 32],
        blocks: usize,
        rows: Vec<(Vec<f32>, f32)>,
    ) -> Result<Self, ClassifierError> {
        let width = rows.first().map_or(0, |(weights, _)| weights.len());
        if rows.len() != ROWS || width == 0 || rows.iter().any(|(row, _)| row.len() != width) {
            return Err(ClassifierError::Damaged("it has other rows"));
        }
        Ok(Self {
            fingerprint,
            blocks,
            rows,
        })
    }

    /// Reads a classifier's file.
    ///
    /// # Errors
    /// [`ClassifierError`] if it is none, or is cut off.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ClassifierError> {
        let damaged = ClassifierError::Damaged;
        let header = bytes
            .get(..HEADER_BYTES)
            .ok_or(damaged("it is too short"))?;
        let (magic, rest) = header.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(damaged("it does not begin like one"));
        }
        let (fingerprint, rest) = rest.split_at(32);
        let number = |at: usize| {
            let bytes: [u8; 4] = rest[at..at + 4].try_into().unwrap_or_default();
            u32::from_le_bytes(bytes) as usize
        };
        let (blocks, width) = (number(0), number(4));
        let body = &bytes[HEADER_BYTES..];
        let row_bytes = width
            .checked_add(1)
            .and_then(|cells| cells.checked_mul(size_of::<f16>()))
            .ok_or(damaged("its width is too large"))?;
        if Some(body.len()) != row_bytes.checked_mul(ROWS) {
            return Err(damaged("its length does not fit its width"));
        }
        let cell = |pair: &[u8]| f16::from_le_bytes([pair[0], pair[1]]).to_f32();
        let rows = body.chunks_exact(row_bytes).map(|row| {
            let mut cells: Vec<f32> = row.chunks_exact(size_of::<f16>()).map(cell).collect();
            let bias = cells.pop().unwrap_or_default();
            (cells, bias)
        });
        Self::new(
            fingerprint.try_into().unwrap_or_default(),
            blocks,
            rows.collect(),
        )
    }

    /// Returns the classifier as a file, with weights of 16 bits.
    pub fn to_bytes(&self) -> Vec<u8> {
        let width = self.rows.first().map_or(0, |(weights, _)| weights.len());
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.fingerprint);
        for number in [self.blocks, width] {
            bytes.extend(u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
        }
        for (weights, bias) in &self.rows {
            let cells = weights.iter().chain(std::iter::once(bias));
            bytes.extend(cells.flat_map(|cell| f16::from_f32(*cell).to_le_bytes()));
        }
        bytes
    }

    /// Returns the weights of a state and the bias, for each of [`ActionKind::ALL`], then for each of
    /// [`Language::ALL`].
    pub fn rows(&self) -> &[(Vec<f32>, f32)] {
        &self.rows
    }

    /// Returns the classifier that is built in for a model file.
    pub fn built_in(fingerprint: &[u8; 32]) -> Option<Self> {
        BUILT_IN
            .iter()
            .filter_map(|bytes| Self::from_bytes(bytes).ok())
            .find(|classifier| classifier.fingerprint == *fingerprint)
    }

    /// Returns the scores of a hidden state.
    pub fn scores(&self, state: &[f32]) -> ActionScores {
        let outputs: Vec<f32> = self
            .rows
            .iter()
            .map(|(weights, bias)| {
                weights
                    .iter()
                    .zip(state)
                    .map(|(weight, value)| weight * value)
                    .sum::<f32>()
                    + bias
            })
            .collect();
        ActionScores::from_outputs(&outputs)
    }
}

/// The computation of states for a classifier, with a cache of its own: the prompt of the next
/// answer must not be computed again.
pub(crate) struct StateReader {
    pub(crate) cache: KvCache,
    /// The number of tokens in the cache: those of the instruction, once they are computed.
    pub(crate) instruction_tokens: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classifier() -> ActionClassifier {
        let row = |at: usize| (vec![at as f32, 0.5], -1.0);
        ActionClassifier::new([7; 32], 3, (0..ROWS).map(row).collect()).unwrap()
    }

    #[test]
    fn every_classifier_that_is_built_in_can_be_read() {
        for bytes in BUILT_IN {
            let classifier = ActionClassifier::from_bytes(bytes).unwrap();
            let known = ActionClassifier::built_in(&classifier.fingerprint);
            assert_eq!(known, Some(classifier));
        }
        assert_eq!(ActionClassifier::built_in(&[0; 32]), None);
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let bytes = classifier().to_bytes();
        assert_eq!(ActionClassifier::from_bytes(&bytes), Ok(classifier()));
    }

    #[test]
    fn a_file_that_is_cut_off_or_no_classifier_is_refused() {
        let bytes = classifier().to_bytes();
        for length in [0, 7, HEADER_BYTES - 1, HEADER_BYTES, bytes.len() - 1] {
            assert!(ActionClassifier::from_bytes(&bytes[..length]).is_err());
        }
        let mut other = bytes.clone();
        other[0] = b'X';
        assert!(ActionClassifier::from_bytes(&other).is_err());
        let mut wide = bytes;
        wide[HEADER_BYTES - 4..HEADER_BYTES].fill(0xff);
        assert!(ActionClassifier::from_bytes(&wide).is_err());
    }

    #[test]
    fn the_likeliest_language_and_every_probability_come_from_the_state() {
        let scores = classifier().scores(&[1.0, 0.0]);
        assert_eq!(scores.language(), Language::Portuguese);
        assert_eq!(scores.of(ActionKind::Complete), 0.5);
        assert!(scores.of(ActionKind::Ask) > 0.9);
    }
}
